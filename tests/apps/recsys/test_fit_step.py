"""The steps `fit` and `features`, and the command `transform`: from a log to features for training and serving."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.recsys_logs import clicks, write_log
from whitewater.engines import resolve
from whitewater.engines.config import Cluster, Engine
from whitewater.errors import ConfigError, InputError, IntegrityError
from whitewater.features import dataset
from whitewater.features import transform as transforming
from whitewater.features.columns import groups
from whitewater.features.config import Feature, Fit
from whitewater.features.feature_folder import FeatureFolder, open_features
from whitewater.features.operators import by_category
from whitewater.features.workflow import Workflow
from whitewater.step import Output, Run
from whitewater_apps.recsys import cli
from whitewater_apps.recsys.config import Features
from whitewater_apps.recsys.steps.features import features
from whitewater_apps.recsys.steps.fit import fit

CPU, THREADS = resolve("cpu"), Cluster()
ROWS = 900
CLICKS = clicks(ROWS)
GROUPS = (
    Feature(
        name="numbers", columns=("I*",), operators=("FillMedian", {"Clip": {"min_value": 0}}, "LogOp", "Normalize")
    ),
    Feature(name="categories", columns=("C*",), operators=({"Categorify": {"freq_threshold": 3}},)),
    Feature(name="lists", columns=("L*",), operators=({"Categorify": {}}, {"ListSlice": {"start": 3}})),
    Feature(name="targets", columns=("C1", ("C1", "C2")), operators=({"TargetEncoding": {"target": "label"}},)),
)


def fitted(train: Path, out: Path, *groups: Feature, engine: Engine = "local", cluster: Cluster = THREADS) -> Path:
    settings = Fit(features=groups or GROUPS)
    run = Run("recsys", "fit", CPU, settings, threads=2, engine=engine, cluster_settings=cluster)
    fit(run, train=train, workflow=Output(out / "workflow"), statistics=Output(out / "statistics.json"))
    return out


def made(
    log: Path, out: Path, *, threads: int = 2, engine: Engine = "local", cluster: Cluster = THREADS, **settings: Any
) -> FeatureFolder:
    """Return the features of training rows."""
    given = Features(**{"row_group_rows": 100, **settings})
    run = Run("recsys", "features", CPU, given, threads=threads, engine=engine, cluster_settings=cluster)
    features(
        run, train=log, valid=log, test=log, workflow=out / "workflow", train_features=Output(out / "train"),
        valid_features=Output(out / "valid"), test_features=Output(out / "test"),
    )  # fmt: skip
    return open_features(out / "train")


def table(folder: Path) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))], ignore_index=True)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(CLICKS, tmp_path_factory.mktemp("log") / "log")


@pytest.fixture
def out(log: Path, tmp_path: Path) -> Path:
    return fitted(log, tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("cluster", [THREADS, pytest.param(Cluster(kind="processes"), marks=pytest.mark.slow)])
def test_engines_give_the_same_bytes(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    past = (
        Feature(name="past", columns=("C*",), operators=({"PastCount": {"period": 5000}}, "LogOp", "Normalize")),
        Feature(name="means", columns=("C2",), operators=({"PastMean": {"target": "label", "period": 5000}},)),
    )
    found = []
    for engine in ("local", "dask"):
        if engine == "dask":  # which does without kernels
            for module in (by_category, groups):
                monkeypatch.setattr(module, "categories_of", None)
        out = fitted(log, tmp_path / engine, *GROUPS, *past, engine=engine, cluster=cluster)
        made(log, out, engine=engine, cluster=cluster)
        found.append({each.relative_to(out): each.read_bytes() for each in out.rglob("*") if each.is_file()})
    assert found[0].keys() == found[1].keys()
    assert [name for name, each in found[0].items() if found[1][name] != each] == []


# ---- fit


def test_statistics_tell_by_group_what_was_learned(out: Path) -> None:
    statistics = json.loads((out / "statistics.json").read_bytes())
    assert statistics["rows"] == ROWS
    assert list(statistics["groups"]) == sorted(group.name for group in GROUPS)
    numbers = statistics["groups"]["numbers"]
    assert [each["operator"] for each in numbers["operators"]] == ["FillMedian", "Clip", "LogOp", "Normalize"]
    learned = numbers["operators"][0]["learned"]["I1"]
    assert learned["median"] == np.nanmedian(CLICKS["I1"].to_pandas())
    columns = {each["name"]: each for each in statistics["groups"]["categories"]["columns"]}
    assert columns["C2"]["properties"]["cardinality"] == 3 + 6
    assert columns["C2"]["tags"][-1] == "categories"


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"operators": ["LogOpp"]}, "group 'a': there is no operator 'LogOpp'; did you mean 'LogOp'?"),
        (
            {"operators": [{"Clip": {"minimum": 0}}]},
            "group 'a': Clip: minimum = 0: no such key; the keys here are",
        ),
        ({"operators": [{"Clip": {}, "LogOp": {}}]}, "is not one operator"),
        ({"columns": ["I9"]}, "group 'a': no column matches 'I9'. The columns are I1, I2, I3, C1, "),
        (
            {"columns": [["C1", "I9"]]},
            "group 'a': 'I9' is not among the columns of the data: row_id, day, time, label, ",
        ),
        ({"columns": ["X*"]}, "group 'a': no column matches 'X*'"),
        ({"columns": ["label"]}, "'label' is the label"),
        ({"columns": [["C1", "label"]]}, "'label' is the label"),
        ({"columns": ["C1"]}, "LogOp takes numbers, but the column 'C1'"),
    ],
)
def test_wrong_features_are_told_with_their_group(
    log: Path, tmp_path: Path, group: dict[str, Any], message: str
) -> None:
    feature = Feature.model_validate({"name": "a", "columns": ["I1"], "operators": ["LogOp"], **group})
    with pytest.raises(ConfigError) as error:
        fitted(log, tmp_path, feature)
    assert message in str(error.value)


def test_no_glob_matches_label_time_or_keys(log: Path, tmp_path: Path) -> None:
    everything = Feature(name="all", columns=("*",), operators=({"Categorify": {}},))
    only = Feature(name="all", columns=("[!I]*",), operators=({"Categorify": {}},))
    with pytest.raises(ConfigError, match="column I2 is of type double"):
        fitted(log, tmp_path / "everything", everything)
    found = Workflow.load(fitted(log, tmp_path / "only", only) / "workflow").input_schema.names
    assert set(found) == {"C1", "C2", "C3", "C4", "L1", "L2"}


# ---- features


def test_each_training_row_is_there_once_with_its_label_and_features(log: Path, out: Path) -> None:
    folder = made(log, out)
    assert (folder.rows, folder.seed) == (ROWS, 7)
    found = table(out / "train")
    expected = Workflow.load(out / "workflow").transform(CLICKS, training=True).to_pandas()
    assert list(found["row_id"]) != sorted(found["row_id"])
    pd.testing.assert_frame_equal(found.sort_values("row_id", ignore_index=True), expected, check_dtype=False)


def test_other_rows_are_in_order_and_without_their_labels_in_them(log: Path, out: Path) -> None:
    made(log, out)
    expected = Workflow.load(out / "workflow").transform(CLICKS).to_pandas()
    for name in ("valid", "test"):
        folder = open_features(out / name)
        assert folder.seed is None
        pd.testing.assert_frame_equal(table(folder.path), expected, check_dtype=False)


def test_columns_have_the_tag_of_their_group(log: Path, out: Path) -> None:
    folder = made(log, out)
    tags = {field.name: field.tags[-1] for field in folder.schema}
    assert [name for name, tag in tags.items() if tag == "numbers"] == ["I1", "I2", "I3"]
    assert [name for name, tag in tags.items() if tag == "targets"] == ["TE_C1_label", "TE_C1_C2_label"]
    assert (tags["label"], tags["row_id"]) == ("label", "key")
    assert folder.schema["C1"].properties["cardinality"] == 1 + table(out / "valid")["C1"].max()


def test_row_groups_are_of_about_one_size_and_plain(log: Path, out: Path) -> None:
    folder = made(log, out, row_group_rows=128)
    footers = [pq.read_metadata(folder.path / file.name) for file in folder.files]
    groups = [footer.row_group(number) for footer in footers for number in range(footer.num_row_groups)]
    assert {group.num_rows for group in groups} == {113, 109}
    for group in groups:
        chunk = group.column(0)
        assert (chunk.compression, chunk.has_dictionary_page) == ("UNCOMPRESSED", False)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_order_depends_on_the_rows_and_the_seed_only(
    log: Path, out: Path, tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transforming, "BUCKET_ROWS", 250)
    expected = contents(made(log, out).path)
    assert len(expected) == 4 * (1 + 4) + 1  # files, each with arrays of numbers, ids, labels and a key; features.json
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    # The same rows in another order, in other row groups.
    days = CLICKS["day"].to_pandas()
    order = np.lexsort([np.random.default_rng(3).permutation(ROWS), days])
    other = write_log(CLICKS.take(pa.array(order)), tmp_path / "other", row_group_rows=70)
    (tmp_path / "again").mkdir()
    (out / "workflow").rename(tmp_path / "again" / "workflow")
    assert contents(made(other, tmp_path / "again", threads=threads).path) == expected
    (tmp_path / "seed").mkdir()
    (tmp_path / "again" / "workflow").rename(tmp_path / "seed" / "workflow")
    reseeded = contents(made(other, tmp_path / "seed", seed=8).path)
    assert reseeded["part-00000.parquet"] != expected["part-00000.parquet"]


def test_a_row_number_that_is_there_twice_is_refused(out: Path, tmp_path: Path) -> None:
    twice = write_log(pa.concat_tables([CLICKS, CLICKS.slice(0, 1)]), tmp_path / "twice")
    with pytest.raises(IntegrityError, match="row_id"):
        made(twice, out)


def test_a_folder_that_is_damaged_is_refused(log: Path, out: Path) -> None:
    folder = made(log, out)
    (folder.path / folder.files[0].name).unlink()
    with pytest.raises(InputError, match=r"lacks part-00000\.parquet"):
        open_features(folder.path)
    changes: list[dict[str, Any]] = [
        {"rows": 1}, {"files": [{"name": "../a", "rows": ROWS}]}, {"columns": [{}]}
    ]  # fmt: skip
    for change in changes:
        value = json.loads((folder.path / "features.json").read_bytes())
        (out / "changed").mkdir(exist_ok=True)
        (out / "changed" / "features.json").write_text(json.dumps(value | change))
        with pytest.raises(InputError, match="Run the step features again"):
            open_features(out / "changed")


# ---- transform


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pq.write_table(CLICKS, tmp_path / "in.parquet", row_group_size=200)
    return tmp_path / "in.parquet"


def transform(out: Path, source: Path, *options: str) -> int:
    return cli.main(["--workflow", str(out / "workflow"), str(source), str(out / "out.parquet"), *options])


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_command_makes_what_the_steps_make(
    log: Path, out: Path, source: Path, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "FEW_ROWS", 0)
    made(log, out)
    assert transform(out, source, "--threads", threads) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out / "out.parquet"), table(out / "test"), check_dtype=False)


def test_serving_needs_neither_labels_nor_numbers_of_rows(out: Path, source: Path) -> None:
    pq.write_table(CLICKS.drop_columns(["label", "row_id", "time", "day"]), source)
    assert transform(out, source) == 0
    assert not {"label", "row_id"} & set(pq.read_schema(out / "out.parquet").names)


@pytest.mark.parametrize("options", [["--threads", "0"], ["--workflow", "nowhere"]])
def test_wrong_arguments_are_told(out: Path, source: Path, options: list[str]) -> None:
    with pytest.raises((ConfigError, InputError)):
        transform(out, source, *options)


def test_the_file_that_is_read_is_not_written(out: Path, source: Path) -> None:
    with pytest.raises(ConfigError, match="Write to another file"):
        cli.main(["--workflow", str(out / "workflow"), str(source), str(source)])
    assert pq.read_table(source).equals(CLICKS)


@pytest.mark.parametrize("folder", ["", "results"])
def test_the_command_replaces_no_folder(folder: str, tmp_path: Path) -> None:
    kept = tmp_path / "results" / "kept"
    kept.parent.mkdir()
    kept.write_text("kept")

    with pytest.raises(ConfigError, match="is not a file"):
        cli.main(["--workflow", "workflow", "in.parquet", str(tmp_path / folder)])

    assert kept.read_text() == "kept"


def test_the_command_writes_nothing_into_the_folder_that_it_reads(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="or is in it"):
        cli.main(["--workflow", "workflow", str(tmp_path), str(tmp_path / "out.parquet")])
