"""The recsys application gives the CPU's results on the GPU: ids, hashes and folds equal, floats within rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.contract.recsys_steps import (
    TABLES,
    WORKFLOWS,
    assert_same_batches,
    assert_same_features,
    assert_same_table,
    assert_same_values,
    data,
    run_steps,
    serve,
    spread_out,
    write_inputs,
)
from tests.gpu.conftest import THREADS, Both, on_both
from whitewater.engines import Device, resolve
from whitewater.errors import IntegrityError
from whitewater.features.columns.codes import count_codes, factorize, sum_by_code
from whitewater.features.columns.parquet import read_columns
from whitewater.features.dataset import as_table
from whitewater.features.feature_folder import write_file
from whitewater.features.operators import Categorify, LogOp, Normalize, TargetEncoding
from whitewater.features.schema import Field, Schema
from whitewater.features.workflow import Workflow
from whitewater.io.store import read_json

pytestmark = pytest.mark.gpu
ROWS, CODES = 3_000_000, 70_000


@pytest.fixture(scope="module")
def inputs(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inputs(tmp_path_factory.mktemp("recsys"))


@pytest.fixture(scope="module")
def both(gpu: Device, inputs: Path) -> Both[Path]:
    with spread_out():
        return on_both(
            gpu,
            lambda site, results: run_steps(site, inputs=inputs, results=results),
            inputs.parent,
        )


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_features_are_the_same_in_the_same_order(both: Both[Path], name: str) -> None:
    assert_same_features(both.gpu / name, both.cpu / name)


@pytest.mark.parametrize("name", ["statistics", "drift"])
def test_what_the_steps_tell_is_the_same(both: Both[Path], name: str) -> None:
    assert_same_values(*(read_json(each / f"{name}.json") for each in (both.gpu, both.cpu)))


def test_models_are_as_good(both: Both[Path]) -> None:
    gpu, cpu = (read_json(each / "metrics.json")["models"] for each in (both.gpu, both.cpu))
    for key, expected in cpu["logistic_regression"].items():
        assert gpu["logistic_regression"][key]["log_loss"] == pytest.approx(expected["log_loss"], abs=1e-3)
    for key, expected in cpu["boosted_trees"].items():
        assert gpu["boosted_trees"][key]["auc"] == pytest.approx(expected["auc"], abs=0.1)


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_the_same(both: Both[Path], shuffle: bool) -> None:
    assert_same_batches(*(each / f"batches_{shuffle}.npz" for each in (both.gpu, both.cpu)))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_make_the_same_of_all_that_can_be_data(both: Both[Path], name: str) -> None:
    for table in TABLES:
        assert_same_table(*(each / name / f"{table}.parquet" for each in (both.gpu, both.cpu)))
    assert_same_features(*(each / name / "features" for each in (both.gpu, both.cpu)))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_one_device_learned_the_other_serves(
    gpu: Device, both: Both[Path], inputs: Path, tmp_path: Path, name: str
) -> None:
    with spread_out():
        for device, learned in ((resolve("cpu"), both.gpu), (gpu, both.cpu)):
            folder = tmp_path / device.name
            serve(learned / name / "workflow", device, WORKFLOWS[name], inputs=inputs, folder=folder)
            for path in sorted(folder.glob("*.parquet")):
                assert_same_table(path, both.cpu / name / path.name)


def test_tasks_at_once_on_a_gpu_learn_the_same(gpu: Device) -> None:
    table = data()
    numbers = ["I2"] >> LogOp() >> Normalize()
    encoded = ["C1", ["C1", "C2"]] >> TargetEncoding(target="label")
    ids = ["C1", "C3"] >> Categorify(freq_threshold=2)
    made, expected = (
        Workflow(numbers + encoded + ids).fit_transform(table, threads=THREADS, device=device)
        for device in (gpu, resolve("cpu"))
    )
    assert made.schema.equals(expected.schema)
    for name in ("C1", "C3"):
        assert made[name].equals(expected[name])
    for name in set(expected.column_names) - {"C1", "C3"}:
        np.testing.assert_allclose(made[name], expected[name], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("start", "rows"), [(0, None), (10, 57), (418, 9)])
def test_cudf_reads_what_the_host_reads(gpu: Device, tmp_path: Path, start: int, rows: int | None) -> None:
    table = data()
    pq.write_table(table, tmp_path / "clicks.parquet")
    types = {field.name: field.type for field in table.schema if not pa.types.is_null(field.type)}
    found, expected = (
        as_table(
            read_columns(device, tmp_path / "clicks.parquet", 0, list(types), start=start, rows=rows), types, device
        )
        for device in (gpu, resolve("cpu"))
    )
    pq.write_table(found, tmp_path / "found.parquet")
    pq.write_table(expected, tmp_path / "expected.parquet")
    assert_same_table(tmp_path / "found.parquet", tmp_path / "expected.parquet")


def test_columns_are_written_to_the_same_bytes(gpu: Device, tmp_path: Path) -> None:
    table = data().drop_columns(["L1", "L2", "nothing"])
    pq.write_table(table, tmp_path / "clicks.parquet")
    types = {field.name: field.type for field in table.schema}
    for device in (gpu, resolve("cpu")):
        block = read_columns(device, tmp_path / "clicks.parquet", 0, list(types))
        (tmp_path / device.name).mkdir()
        schema = Schema(tuple(Field(name, type_) for name, type_ in types.items()))
        write_file(tmp_path / device.name, 0, as_table(block, types, device), schema, row_group_rows=100)
    found, expected = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("gpu", "cpu")
    )
    assert found == expected


def test_many_rows_are_counted_and_added_up(gpu: Device) -> None:
    random = np.random.default_rng(0)
    codes = random.zipf(1.2, ROWS).clip(max=CODES).astype(np.int32) - 2
    weights = random.normal(size=ROWS)
    known = codes >= 0
    on_gpu: tuple[Any, Any] = (gpu.to_device(codes), gpu.to_device(weights))
    counts = gpu.to_host(count_codes(on_gpu[0], CODES, gpu))
    sums = gpu.to_host(sum_by_code(*on_gpu, CODES, gpu))
    np.testing.assert_array_equal(counts, np.bincount(codes[known], minlength=CODES))
    np.testing.assert_allclose(sums, np.bincount(codes[known], weights[known], minlength=CODES), rtol=1e-9, atol=1e-7)
    with pytest.raises(IntegrityError):
        count_codes(on_gpu[0], 10, gpu)
    nothing = sum_by_code(on_gpu[0][:0], on_gpu[1][:0], 3, gpu)
    assert nothing.dtype == np.float64
    assert gpu.to_host(nothing).tolist() == [0, 0, 0]


def test_integers_become_categories(gpu: Device) -> None:
    values = np.array([5, -(2**63), 5, 2**63 - 1, 7], np.int64)
    valid = np.array([True, True, True, True, False])
    for given in (None, valid):
        found = factorize(gpu.to_device(values), None if given is None else gpu.to_device(given), gpu)
        codes = gpu.to_host(found.codes)
        words = found.dictionary.to_pylist()
        expected = [
            None if given is not None and not there else value for value, there in zip(values, valid, strict=True)
        ]
        assert [None if code < 0 else words[code] for code in codes.tolist()] == expected
        assert len(set(words)) == len(words)
