"""Batches of a folder of features, against the Arrow table that it was written from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitewater.engines import memory, resolve
from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError
from whitewater.features import loader
from whitewater.features.columns.column import column_of
from whitewater.features.dataset import as_table
from whitewater.features.feature_folder import FeatureFolder, open_features, write_features, write_file
from whitewater.features.loader import Batch, Batches
from whitewater.features.schema import Field, Schema

CPU = resolve("cpu")
IDS = {"cardinality": 1000}
FIELDS = (
    Field("price", pa.float32(), ("numbers",)),
    Field("user", pa.int32(), ("ids",), IDS),
    Field("total", pa.float64(), ("numbers",)),
    Field("count", pa.int64(), ("numbers",)),
    Field("filled", pa.bool_(), ("numbers",)),
    Field("item", pa.int16(), ("ids",), IDS),
    Field("label", pa.int8(), ("label",)),
    Field("words", pa.list_(pa.int32()), ("ids",), IDS | {"length": 3}),
    Field("weights", pa.list_(pa.float64()), ("numbers",), {"length": 2}),
    Field("row_id", pa.int64(), ("key",)),
)


def table_of(rows: int) -> pa.Table:
    generator = np.random.default_rng(rows)
    total = generator.normal(0, 1e6, rows)
    total[::7] = np.nan
    data = {
        "price": generator.normal(size=rows).astype(np.float32),
        "user": generator.integers(-(2**31), 2**31, rows).astype(np.int32),
        "total": total,
        "count": generator.integers(-(2**60), 2**60, rows),
        "filled": generator.random(rows) < 0.5,
        "item": generator.integers(-(2**15), 2**15, rows).astype(np.int16),
        "label": generator.integers(0, 2, rows).astype(np.int8),
        "words": list(generator.integers(0, 1000, (rows, 3))),
        "weights": list(generator.normal(size=(rows, 2))),
        "row_id": np.arange(rows) + 10**12,
    }
    return pa.table({field.name: pa.array(data[field.name], field.type) for field in FIELDS})


def folder_of(
    path: Path, table: pa.Table, *, files: int = 2, row_group_rows: int = 1000, fields: tuple[Field, ...] = FIELDS
) -> FeatureFolder:
    path.mkdir(parents=True)
    bounds = np.linspace(0, len(table), files + 1).astype(int).tolist()
    written = []
    for number, (start, stop) in enumerate(pairwise(bounds)):
        part = table.slice(start, stop - start)
        if len(part):
            block = {field.name: column_of(part[field.name]) for field in fields}
            found = as_table(block, Schema(fields).types)
            written.append(write_file(path, number, found, Schema(fields), row_group_rows=row_group_rows))
    write_features(path, Schema(fields), written, seed=None)
    return open_features(path)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> FeatureFolder:
    return folder_of(tmp_path_factory.mktemp("features") / "train", table_of(5003))


def row_ids(batches: Iterator[Batch]) -> list[int]:
    return list(chain.from_iterable((batch["row_id"] - 10**12).tolist() for batch in batches))


def ids_of(folder: FeatureFolder, *, epoch: int = 0, **options: Any) -> list[int]:
    return row_ids(Batches(folder, **{"columns": ["row_id"], "batch_rows": 100, **options}).epoch(epoch))


def loading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("batches")]


# ---- what is in a batch


def test_matrices_hold_what_the_table_holds(features: FeatureFolder) -> None:
    batches = Batches(features, columns=[field.name for field in FIELDS], batch_rows=700)
    found = list(batches.epoch())
    whole = {name: np.concatenate([batch[name] for batch in found]) for name in batches.columns}
    table = table_of(5003).take(pa.array(whole["row_id"] - 10**12))
    numbers = [table[name].to_numpy().astype(np.float32) for name in ("price", "total", "count", "filled")]
    assert batches.columns["continuous"] == ("price", "total", "count", "filled")
    assert np.array_equal(whole["continuous"], np.stack(numbers, axis=1), equal_nan=True)
    assert np.array_equal(whole["categorical"], np.stack([table["user"], table["item"]], axis=1))
    assert np.array_equal(whole["label"], table["label"])
    assert np.array_equal(whole["words"], np.stack(table["words"].to_numpy()))
    assert np.array_equal(whole["weights"], np.stack(table["weights"].to_numpy()).astype(np.float32))


def test_types_and_shapes_are_those_that_models_take(features: FeatureFolder) -> None:
    batch = next(Batches(features, batch_rows=64).epoch())
    assert {name: (array.dtype.name, array.shape) for name, array in batch.items()} == {
        "continuous": ("float32", (64, 4)),
        "categorical": ("int32", (64, 2)),
        "label": ("float32", (64,)),
        "words": ("int32", (64, 3)),
        "weights": ("float32", (64, 2)),
    }
    assert all(array.flags.c_contiguous for array in batch.values())


def test_ids_of_64_bits_widen_those_beside_them(tmp_path: Path) -> None:
    fields = (FIELDS[1], Field("far", pa.int64(), (), {"cardinality": 2**40}), FIELDS[-1])
    table = table_of(300).append_column("far", pa.array(np.arange(300) + 2**39))
    folder = folder_of(tmp_path / "f", table, fields=fields)
    found = np.concatenate([batch["categorical"] for batch in Batches(folder, shuffle=False).epoch()])
    assert found.dtype == np.int64
    assert np.array_equal(found, np.stack([table["user"], table["far"]], axis=1))


def test_only_columns_that_are_asked_for_are_loaded_in_their_order(features: FeatureFolder) -> None:
    batches = Batches(features, columns=["count", "price"])
    assert batches.columns == {"continuous": ("count", "price")}
    assert list(next(batches.epoch())) == ["continuous"]


def test_other_libraries_take_the_memory_of_a_batch(features: FeatureFolder) -> None:
    batch = next(Batches(features).epoch())
    for array in batch.values():
        taken = np.from_dlpack(array)
        assert np.shares_memory(taken, array)
        assert np.array_equal(taken, array, equal_nan=True)


def test_some_columns_of_an_array_are_what_they_are_among_all(features: FeatureFolder) -> None:
    whole, some = (
        next(Batches(features, columns=columns, shuffle=False).epoch())
        for columns in (None, ["filled", "price", "item", "words"])
    )
    assert np.array_equal(some["continuous"], whole["continuous"][:, [3, 0]])
    assert np.array_equal(some["categorical"], whole["categorical"][:, [1]])
    assert np.array_equal(some["words"], whole["words"])


def test_nulls_of_numbers_are_nan(tmp_path: Path) -> None:
    columns = {"price": [None, 1.5], "count": [2, None], "filled": [None, True]}
    table = pa.table({name: pa.array(values, Schema(FIELDS)[name].type) for name, values in columns.items()})
    folder = folder_of(tmp_path / "f", table, fields=tuple(Schema(FIELDS)[name] for name in columns))
    found = np.concatenate([batch["continuous"] for batch in Batches(folder, shuffle=False).epoch()])
    assert np.array_equal(found, [[np.nan, 2, np.nan], [1.5, np.nan, 1]], equal_nan=True)


# ---- which rows, and in which order


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(0, 2000),
    shards=st.integers(1, 5),
    block=st.integers(1, 300),
    written=st.fixed_dictionaries({"files": st.integers(1, 3), "row_group_rows": st.integers(100, 900)}),
    options=st.fixed_dictionaries(
        {"batch_rows": st.integers(1, 900), "window_rows": st.integers(1, 1500), "shuffle": st.booleans()}
    ),
)
def test_each_row_is_in_one_batch_of_one_shard(
    rows: int, *, shards: int, block: int, written: dict[str, int], options: dict[str, Any]
) -> None:
    fields = (FIELDS[1], FIELDS[-1])
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        features = folder_of(Path(folder) / "f", table_of(rows), fields=fields, **written)
        patch.setattr(loader, "_BLOCK_ROWS", block)
        parts = [
            Batches(features, columns=["row_id", "user"], shard=(index, shards), **options) for index in range(shards)
        ]
        found = [list(part.epoch(rows)) for part in parts]
    assert [len(each) for each in found] == [len(part) for part in parts]
    sizes = [len(row_ids(iter(each))) for each in found]
    assert sizes == [part.rows for part in parts]
    assert max(sizes) - min(sizes) <= 1
    batches = list(chain.from_iterable(found))
    assert sorted(row_ids(iter(batches))) == list(range(rows))
    users = table_of(rows)["user"].to_numpy()
    assert all(np.array_equal(batch["categorical"][:, 0], users[batch["row_id"] - 10**12]) for batch in batches)


def test_without_shuffling_rows_are_in_the_order_of_the_folder(features: FeatureFolder) -> None:
    assert ids_of(features, shuffle=False) == list(range(5003))
    shards = [ids_of(features, shuffle=False, shard=(index, 3)) for index in range(3)]
    assert list(chain.from_iterable(shards)) == list(range(5003))


def test_epochs_and_seeds_have_orders_of_their_own(features: FeatureFolder) -> None:
    orders = [ids_of(features, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (0, 1, 2)]
    assert len(set(map(tuple, orders))) == 6
    assert ids_of(features, seed=1, epoch=2) == orders[-1]


def test_the_order_is_the_same_on_every_machine(features: FeatureFolder) -> None:
    # Written down once; an order that changes makes training unrepeatable.
    assert ids_of(features, seed=7, epoch=3, batch_rows=1000)[:8] == [3827, 3144, 2631, 144, 3710, 4881, 39, 825]


@pytest.mark.parametrize("threads", [3, 9])
def test_threads_change_nothing(features: FeatureFolder, threads: int) -> None:
    assert ids_of(features, window_rows=300, threads=threads) == ids_of(features, window_rows=300)


def test_rows_of_a_batch_are_from_all_over_the_folder(monkeypatch: pytest.MonkeyPatch, features: FeatureFolder) -> None:
    monkeypatch.setattr(loader, "_BLOCK_ROWS", 50)
    order = np.array(ids_of(features, seed=2, window_rows=500))
    assert abs(np.corrcoef(order, np.arange(5003))[0, 1]) < 0.1
    assert np.median(np.abs(np.diff(order))) > 500
    first = order[:500]
    assert len(set((first // 50).tolist())) >= 10
    assert (np.diff(first) == 1).mean() < 0.02


# ---- threads and memory


def test_no_thread_is_left_when_the_consumer_raises(features: FeatureFolder) -> None:
    def consume() -> None:
        for _ in Batches(features, batch_rows=100, window_rows=100).epoch():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consume()
    assert loading_threads() == []


def test_no_thread_is_left_at_the_end(features: FeatureFolder) -> None:
    assert len(list(Batches(features, batch_rows=100).epoch())) == 51
    assert loading_threads() == []


def test_only_so_many_windows_are_made_ahead(monkeypatch: pytest.MonkeyPatch, features: FeatureFolder) -> None:
    made = []
    make = Batches._window

    def counted(*arguments: Any) -> Any:
        made.append(1)
        return make(*arguments)

    monkeypatch.setattr(Batches, "_window", counted)
    batches = Batches(features, batch_rows=100, window_rows=100, threads=3).epoch()
    for taken in range(1, 6):
        next(batches)
        time.sleep(0.05)
        assert len(made) == taken + 3
    batches.close()  # type: ignore[attr-defined]


def test_windows_that_exceed_memory_are_refused(monkeypatch: pytest.MonkeyPatch, features: FeatureFolder) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(ResourceError, match="window_rows"):
        Batches(features)


# ---- faults


@pytest.fixture
def own(tmp_path: Path) -> FeatureFolder:
    return folder_of(tmp_path / "own", table_of(2500), files=1)


def with_column(name: str, values: pa.Array) -> pa.Table:
    table = table_of(2500)
    return table.set_column(table.column_names.index(name), name, values)


def lists(*first: list[int | None] | None) -> pa.Array:
    return pa.array([*first, *[[1, 2, 3]] * (2500 - len(first))], pa.list_(pa.int32()))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("user", pa.array([None] + [1] * 2499, pa.int32()), "'user' has 1 nulls"),
        ("label", pa.array([None, None] + [1] * 2498, pa.int8()), "'label' has 2 nulls"),
        ("words", lists([1, None, 2]), "'words' has 1 nulls"),
    ],
)
def test_nulls_that_are_not_a_number_are_refused_where_their_column_is_loaded(
    tmp_path: Path, name: str, values: pa.Array, message: str
) -> None:
    folder = folder_of(tmp_path / "f", with_column(name, values))
    with pytest.raises(InputError, match=f"{message}.*Fill them"):
        Batches(folder)
    others = [field.name for field in FIELDS if field.name != name]
    assert sum(len(batch["row_id"]) for batch in Batches(folder, columns=others).epoch()) == 2500


@pytest.mark.parametrize("first", [[[1, 2]], [[1, 2], [1, 2, 3, 4]], [None, [1, 2, 3, 4, 5]]])
def test_lists_of_other_lengths_are_not_written(tmp_path: Path, first: list[list[int | None] | None]) -> None:
    with pytest.raises(IntegrityError, match="'words' has lists of other lengths than 3"):
        folder_of(tmp_path / "f", with_column("words", lists(*first)))


@pytest.mark.parametrize("array", [np.zeros((2400, 4), np.float32), np.zeros((2500, 4)), np.zeros((4, 2500), "f4").T])
def test_arrays_of_other_rows_or_types_than_the_folder_says_are_refused(own: FeatureFolder, array: Any) -> None:
    np.save(own.array_path(0, 0), array)
    with pytest.raises(IntegrityError, match=r"part-00000-00.npy holds .*, not float32 \(2500, 4\)\. Run the step"):
        Batches(own)


def test_damage_of_the_beginning_of_an_array_is_refused(own: FeatureFolder) -> None:
    data = bytearray(own.array_path(0, 1).read_bytes())
    data[3] ^= 0xFF
    own.array_path(0, 1).write_bytes(data)
    with pytest.raises(InputError, match=r"part-00000-01.npy cannot be read.*Run the step features again"):
        Batches(own)


def test_objects_that_would_be_unpickled_are_refused(own: FeatureFolder) -> None:
    np.save(own.array_path(0, 0), np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match=r"part-00000-00.npy cannot be read"):
        Batches(own)


@pytest.mark.parametrize("start", [-100, 1000])
def test_a_file_that_lacks_bytes_is_refused(own: FeatureFolder, start: int) -> None:
    path = own.array_path(0, 0)
    data = path.read_bytes()
    path.write_bytes(data[:start] + data[start + 100 :] if start > 0 else data[:start])
    with pytest.raises(InputError, match=r"part-00000-00.npy cannot be read"):
        Batches(own)


def test_a_folder_that_lacks_an_array_is_refused(own: FeatureFolder) -> None:
    own.array_path(0, 2).unlink()
    with pytest.raises(InputError, match=r"lacks part-00000-02.npy. Run the step features again"):
        open_features(own.path)


def test_files_that_change_between_epochs_are_refused(own: FeatureFolder) -> None:
    batches = Batches(own)
    list(batches.epoch(0))
    array = np.load(own.array_path(0, 0))
    np.save(own.array_path(0, 0), array[::-1].copy())
    with pytest.raises(IntegrityError, match="was changed"):
        list(batches.epoch(1))
    own.array_path(0, 0).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        list(batches.epoch(2))
    assert loading_threads() == []


def test_columns_that_are_not_numbers_are_refused_by_name(own: FeatureFolder) -> None:
    others = {
        "text": Field("name", pa.string()),
        "lists of any length": Field("name", pa.list_(pa.int32()), (), IDS),
        "uint64": Field("name", pa.uint64()),
        "signed integers": Field("name", pa.float32(), (), IDS),
    }
    for field in others.values():
        with pytest.raises(ConfigError, match="'name'"):
            Batches(replace(own, schema=Schema((*FIELDS, field))))
    with pytest.raises(InputError, match="'nothing'"):
        Batches(own, columns=["nothing"])


def test_arrays_of_one_name_are_refused(own: FeatureFolder) -> None:
    for field in (Field("second", pa.int8(), ("label",)), replace(FIELDS[7], name="continuous")):
        with pytest.raises(ConfigError, match=r"Rename|leave out"):
            Batches(replace(own, schema=Schema((*FIELDS, field))))


@pytest.mark.parametrize(
    "options",
    [
        {"batch_rows": 0}, {"threads": 0}, {"window_rows": 0}, {"shard": (0, 0)}, {"shard": (2, 2)},
        {"shard": (-1, 2)}, {"seed": -1}, {"columns": []}, {"columns": ["price", "price"]},
    ],
)  # fmt: skip
def test_parameters_out_of_their_range_are_refused(features: FeatureFolder, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Batches(features, **options)


def test_an_interrupted_epoch_can_be_taken_up_again(features: FeatureFolder) -> None:
    batches = Batches(features, columns=["row_id"], batch_rows=100)
    assert row_ids(islice(batches.epoch(4), 20, None)) == row_ids(batches.epoch(4))[2000:]
