"""What operators ask of frames is what cuDF has: recorded on pandas, where joins and groups come in another order.

The same tests as of the library say what comes out; here it is watched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.contract.executed import Line, executed_lines, never_run
from tests.contract.frame_calls import frames_as_cudf
from tests.contract.gaps import faults
from tests.contract.signatures import Call
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.helpers.recsys_logs import clicks, write_log
from tests.library.features.test_with_dask import CARRIED, CLOSE, EXACT, assert_equal, cut, files, fitted
from whitewater.features import with_dask
from whitewater.features.dataset import Dataset
from whitewater.features.operator import ApplyMode, Node
from whitewater.features.operators import JoinExternal
from whitewater.features.workflow import Workflow

pytestmark = pytest.mark.slow  # it compiles, or runs steps twice

DEVICE = StrictDevice()
FEATURES = Path(__file__).parents[2] / "src" / "whitewater" / "features"
# Functions of frames: in these files all, in others those that name a frame.
OF_OPERATORS = ("by_category", "categorify", "hashed", "join", "learn_vocabulary")
OF_FRAMES = (
    "frames.py", "with_dask.py", "categories/groups.py", "categories/values.py",
    *(f"operators/{name}.py" for name in OF_OPERATORS),
)  # fmt: skip
WORDS = frozenset({"Frame", "Series", "frame", "series"})
# What only cuDF has, or the host's side of it.
OF_CUDF = frozenset({"_read_files", "_cast_frame", "_nulls", "hashes", "table_of", "frame_of"})
# What is asked of pandas where cuDF has a way of its own: its frames are made of Arrow's tables.
OF_PANDAS = "cudf.ArrowDtype"
ELSEWHERE = {"return column.series", "return _read_files(span, types, device)"}


@dataclass(frozen=True)
class Watched:
    """What was asked of frames, and the lines that ran."""

    calls: Mapping[Call, Sequence[str]]
    lines: set[Line]
    different: list[str]


def on_frames(graph: Node, rows: Any) -> Workflow:
    """Return a workflow fitted on frames whose arrays are those of a strict device."""
    return Workflow(graph, carry=CARRIED).fit(rows, threads=2, device=DEVICE, engine="dask")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("features")
    pq.write_table(pa.table({"C2": ["", "a"], "price": [1, None], "name": ["x", None]}), folder / "joined.parquet")
    joined = ["C2"] >> JoinExternal(table=str(folder / "joined.parquet"), on="C2", columns=("price", "name"))
    graphs = {**EXACT, **CLOSE, "joined": joined}
    rows, different = clicks(120, seed=3), []
    local = {name: fitted(graph, rows, "local") for name, graph in graphs.items()}
    expected = {name: each.transform(rows, training=True) for name, each in local.items()}
    with pytest.MonkeyPatch.context() as patch:
        shuffled = cut(rows, 3, 0, patch)
        with stand_in_for_cupy(), frames_as_cudf(arrays=True) as calls, executed_lines() as lines:
            for name, graph in graphs.items():
                by_frames = on_frames(graph, shuffled)
                made = by_frames.transform(rows, training=True, device=DEVICE, engine="dask")
                assert_equal(made, expected[name], tolerance=0.0 if name in EXACT else 1e-6)
                if name in EXACT and files(by_frames, folder / name) != files(local[name], folder / f"{name} local"):
                    different.append(name)
                if name == "lists":
                    lazy = with_dask.frames(by_frames.transformation, Dataset(rows), ApplyMode(DEVICE))
                    assert list(lazy.compute(scheduler="synchronous")) == made.column_names
            log = write_log(rows, folder / "log")
            made = on_frames(EXACT["past"], log).transform(log, device=DEVICE, engine="dask")
            assert_equal(made, local["past"].transform(rows))
    return Watched(calls, lines, different)


def test_every_call_of_a_frame_binds_in_cudf_and_runs_into_no_gap(watched: Watched) -> None:
    calls = {call: places for call, places in watched.calls.items() if call.name != OF_PANDAS}
    assert faults(calls) == []


def test_what_is_learned_does_not_depend_on_the_order_of_joins_and_groups(watched: Watched) -> None:
    assert watched.different == []


def test_joins_and_groups_were_watched(watched: Watched) -> None:
    called = {call.name for call in watched.calls}
    assert {"cudf.DataFrame.merge", "cudf.DataFrame.groupby", "cudf.DataFrame.sort_values"} <= called
    assert {"cudf.Series.values", "cupy.ldexp", "cupy.isnan", "cupy.take"} <= called


@pytest.mark.parametrize("name", OF_FRAMES)
def test_every_line_of_frames_ran(watched: Watched, name: str) -> None:
    missed = never_run(FEATURES / name, watched.lines, words=WORDS, without=OF_CUDF)
    assert [each for each in missed if each.split(": ", 1)[1] not in ELSEWHERE] == []
