"""A stored workflow: what it holds, and what becomes of one that is damaged, newer, or of unknown operators."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.helpers.recsys_logs import clicks, features
from whitewater.errors import InputError, IntegrityError
from whitewater.features.operators import (
    Categorify,
    FillMedian,
    JoinExternal,
    JoinGroupby,
    Normalize,
    PastMean,
    Rename,
    TargetEncoding,
)
from whitewater.features.workflow import Workflow

CLICKS = clicks(400)
FITTED = Workflow(features(), carry=["label", "row_id"]).fit(CLICKS)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    FITTED.save(tmp_path / "workflow")
    return tmp_path / "workflow"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def rewrite(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what is written, as someone would who can write checksums."""
    value = json.loads((folder / "workflow.json").read_bytes())
    change(value)
    del value["sha256"]
    unsigned = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    value["sha256"] = hashlib.sha256(unsigned.encode()).hexdigest()
    (folder / "workflow.json").write_text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def test_a_loaded_workflow_makes_the_same_bits(stored: Path) -> None:
    loaded = Workflow.load(stored)
    for training in (False, True):
        assert loaded.transform(CLICKS, training=training).equals(FITTED.transform(CLICKS, training=training))
    assert loaded.input_schema == FITTED.input_schema
    assert loaded.output_schema == FITTED.output_schema


def test_equal_workflows_are_equal_bytes_and_so_is_a_loaded_one(stored: Path, tmp_path: Path) -> None:
    Workflow(features(), carry=["label", "row_id"]).fit(CLICKS, threads=3).save(tmp_path / "again")
    Workflow.load(stored).save(tmp_path / "loaded")
    for copy in (tmp_path / "again", tmp_path / "loaded"):
        assert {path.relative_to(copy): path.read_bytes() for path in files(copy)} == {
            path.relative_to(stored): path.read_bytes() for path in files(stored)
        }


def test_a_stored_workflow_is_json_and_parquet_and_says_what_it_is(stored: Path) -> None:
    assert {path.suffix for path in files(stored)} == {".json", ".parquet"}
    value = json.loads((stored / "workflow.json").read_bytes())
    assert value["format"] == 1
    assert [each["name"] for each in value["output"]] == FITTED.output_schema.names
    assert set(value["files"]) == {path.relative_to(stored).as_posix() for path in files(stored)} - {"workflow.json"}
    assert "cpu" not in json.dumps(value)


def test_every_damaged_byte_is_found(stored: Path) -> None:
    for path in files(stored):
        data = path.read_bytes()
        places = {0, 4, data.find(b" "), data.find(b"\n"), len(data) // 3, len(data) // 2, len(data) - 9, len(data) - 1}
        for place in places:
            damaged = bytearray(data)
            damaged[place] ^= 0x10
            path.write_bytes(damaged)
            with pytest.raises((IntegrityError, InputError), match=path.name):
                Workflow.load(stored)
        path.write_bytes(data)
    Workflow.load(stored)


def test_a_cut_or_missing_file_is_named(stored: Path) -> None:
    for path in files(stored):
        data = path.read_bytes()
        path.write_bytes(data[:-1])
        with pytest.raises(IntegrityError, match=path.name):
            Workflow.load(stored)
        path.unlink()
        with pytest.raises(InputError, match=path.name):
            Workflow.load(stored)
        path.write_bytes(data)


def test_no_table_is_interpreted_before_all_were_checked(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, last = [path for path in files(stored) if path.suffix == ".parquet"]
    last.write_bytes(b"PAR1" + last.read_bytes()[4:-1] + b"x")
    monkeypatch.setattr(pq, "ParquetFile", lambda *_, **__: pytest.fail("interpreted"))
    with pytest.raises(IntegrityError, match=last.name):
        Workflow.load(stored)


def test_a_newer_format_is_refused_with_the_version_that_wrote_it(stored: Path) -> None:
    rewrite(stored, lambda value: value.update(format=2, whitewater="9.9"))
    with pytest.raises(InputError, match=r"format 2; this version reads 1. A newer version .* wrote it \(9\.9\)"):
        Workflow.load(stored)


def test_an_unknown_operator_is_refused(stored: Path) -> None:
    rewrite(stored, lambda value: value["nodes"][0].update(operator="os.system"))
    with pytest.raises(InputError, match=r"an operator 'os.system', which this version of Whitewater does not know"):
        Workflow.load(stored)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value["nodes"][1].update(parameters={"min_value": "low"}),
        lambda value: value["nodes"][1]["parameters"].update(command="rm"),
        lambda value: value["nodes"][1].update(parameters=None),
    ],
)
def test_wrong_parameters_are_refused(stored: Path, change: Any) -> None:
    rewrite(stored, change)
    with pytest.raises(InputError, match="the parameters of the workflow's operator Clip are wrong"):
        Workflow.load(stored)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.pop("nodes"),
        lambda value: value.pop("files"),
        lambda value: value["nodes"][0].pop("inputs"),
        lambda value: value["nodes"][1].update({"from": {"I1": 40, "I2": 40, "I3": 40}}),
        lambda value: value["nodes"][0]["statistics"].clear(),
        lambda value: value["nodes"][0]["statistics"]["I1"].update(facts={"median": "7"}),
        lambda value: value["files"].update({"../../secret": "0" * 64}),
        lambda value: value["input"][0].update(type="object"),
        lambda value: value["output"][0].update(type="int8"),
    ],
)
def test_what_is_not_a_workflow_is_refused(stored: Path, change: Any) -> None:
    rewrite(stored, change)
    with pytest.raises(IntegrityError):
        Workflow.load(stored).transform(CLICKS)


def learned(tmp_path: Path) -> Path:
    """Return a stored workflow of one column and an operator of each kind that learns."""
    prices = tmp_path / "prices.parquet"
    pq.write_table(pa.table({"C1": ["b", "a"], "price": [1, 2]}), prices)
    nodes = (
        ["C1"] >> Categorify() >> Rename(postfix="_id"),
        ["C1"] >> TargetEncoding(target="label", kfold=4),
        ["C1"] >> JoinGroupby(),
        ["C1"] >> PastMean(target="label", period=5000),
        ["C1"] >> JoinExternal(table=str(prices), on="C1", columns=("price",)),
        ["I1"] >> FillMedian(),
        ["I2"] >> Normalize(),
    )
    Workflow(reduce(add, nodes)).fit(CLICKS).save(tmp_path / "learned")
    return tmp_path / "learned"


@pytest.mark.parametrize(
    ("operator", "statistic", "facts"),
    [
        ("Categorify", "C1", {"values": 3}),
        ("Categorify", "C1", {"kind": "int64"}),
        ("Categorify", "C1", {"kind": "float"}),
        ("TargetEncoding", "C1", {"of": ["C2"]}),
        ("TargetEncoding", "C1", {"of": []}),
        ("TargetEncoding", "C1", {"kinds": ["number"]}),
        ("FillMedian", "I1", {"median": None}),
        ("FillMedian", "I1", {"count": "2"}),
        ("FillMedian", "I1", {"median": math.nan}),
        ("Normalize", "I2", {"mean": "2"}),
    ],
)
def test_what_an_operator_did_not_learn_is_refused(
    operator: str, statistic: str, facts: dict[str, Any], tmp_path: Path
) -> None:
    folder = learned(tmp_path)

    def change(value: dict[str, Any]) -> None:
        (node,) = (each for each in value["nodes"] if each["operator"] == operator)
        node["statistics"][statistic]["facts"].update(facts)

    rewrite(folder, change)
    with pytest.raises(IntegrityError, match=f"{statistic} of {operator} cannot be read|Fit"):
        Workflow.load(folder)


@pytest.mark.parametrize(
    ("operator", "change"),
    [
        ("TargetEncoding", lambda table: table.slice(1)),
        ("TargetEncoding", lambda table: table.drop_columns(["category"])),
        ("JoinGroupby", lambda table: pa.concat_tables([table, table[:1]])),
        ("JoinGroupby", lambda table: table.drop_columns(["category"])),
        ("Categorify", lambda table: table.slice(1)),
        ("Categorify", lambda table: table.drop_columns(["count"])),
        ("TargetEncoding", lambda table: table.drop_columns(["label_sum_3"])),
        ("JoinGroupby", lambda table: table.drop_columns(["rows"])),
        ("PastMean", lambda table: table.drop_columns(["sums"])),
        ("PastMean", lambda table: table.drop_columns(["null_rows"])),
        ("PastMean", lambda table: shortened(table, "periods")),
        ("JoinExternal", lambda table: table.drop_columns(["price"])),
    ],
)
def test_tables_that_an_operator_did_not_write_are_refused(operator: str, change: Any, tmp_path: Path) -> None:
    folder = learned(tmp_path)
    (path,) = folder.glob(f"*-{operator}/*.parquet")
    pq.write_table(change(pq.read_table(path)), path)
    name, checksum = path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()
    rewrite(folder, lambda value: value["files"].update({name: checksum}))
    with pytest.raises(IntegrityError, match=f"of {operator} cannot be read|Fit"):
        Workflow.load(folder)


def shortened(table: pa.Table, name: str) -> pa.Table:
    """Return a table whose lists of a column lack their first item."""
    lists = pc.list_slice(table[name].combine_chunks(), 1)
    return table.set_column(table.column_names.index(name), name, lists)


def test_a_folder_without_a_workflow_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no fitted workflow"):
        Workflow.load(tmp_path)


def test_files_that_were_given_to_fit_are_not_needed_any_more(tmp_path: Path) -> None:
    """Of a vocabulary, and of a table to join."""
    vocabulary, prices = tmp_path / "vocabulary.parquet", tmp_path / "prices.parquet"
    pq.write_table(pa.table({"item": ["b", "a"]}), vocabulary)
    pq.write_table(pa.table({"item": ["b", "a"], "price": [1, 2]}), prices)
    rows = pa.table({"item": ["a", "b", "c", None]})
    ids = ["item"] >> Categorify(vocabs={"item": str(vocabulary)}) >> Rename(postfix="_id")
    workflow = Workflow(ids + (["item"] >> JoinExternal(table=str(prices), on="item", columns=("price",)))).fit(rows)
    workflow.save(tmp_path / "workflow")
    vocabulary.unlink()
    prices.unlink()

    assert Workflow.load(tmp_path / "workflow").transform(rows).equals(workflow.transform(rows))
