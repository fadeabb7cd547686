"""What CONTRIBUTING.md refuses: loops over rows, Python functions over rows, and tables that grow in a loop."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROW_LOOPS = {"iterrows", "itertuples", "applymap"}
OVER_ROWS = {"map", "transform", "agg", "aggregate", "filter"}
GROWING = {"concat", "append", "concatenate", "hstack", "vstack", "column_stack", "concat_tables"}
# What calls a function for each task, and not for each row.
POOLS = {"pool", "client", "workers", "run", "work", "executor"}


def slow_idioms(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each slow idiom in `source`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _over_rows(node, node.func):
            yield node.lineno, node.func.attr
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign | ast.AugAssign | ast.AnnAssign) and _grows(inner):
                    yield inner.lineno, "grows in a loop"


def _over_rows(call: ast.Call, function: ast.Attribute) -> bool:
    receiver = ast.unparse(function.value).rpartition(".")[2]
    first = call.args[0] if call.args else None
    if function.attr == "apply":
        return not isinstance(first, ast.Constant)
    return function.attr in ROW_LOOPS or (
        function.attr in OVER_ROWS and isinstance(first, ast.Lambda) and receiver not in POOLS
    )


def _grows(assigned: ast.Assign | ast.AugAssign | ast.AnnAssign) -> bool:
    """Whether a name becomes a copy of itself and more: the whole is copied in each turn."""
    call = assigned.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in GROWING):
        return False
    targets = assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]
    parts = {ast.unparse(node) for each in call.args for node in ast.walk(each) if isinstance(node, ast.expr)}
    return any(ast.unparse(target) in parts for target in targets)


def _code(path: Path) -> str:
    if path.suffix == ".py":
        return path.read_text()
    cells = json.loads(path.read_text())["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("%", "!")))


def test_no_slow_idiom_in_the_code_and_the_notebooks() -> None:
    files = [path for folder in ("src", "benchmarks", "notebooks", "envs") for path in Path(folder).rglob("*.*")]
    read = [path for path in files if path.suffix in {".py", ".ipynb"} and ".ipynb_checkpoints" not in path.parts]
    assert len(read) > 100
    assert [f"{path}:{line}: {name}" for path in read for line, name in slow_idioms(_code(path))] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("for row in trips.iterrows(): pass", ["iterrows"]),
        ("speed = trips.apply(lambda trip: trip.distance / trip.hours, axis=1)", ["apply"]),
        ("names = trips.groupby('zone').apply(first)", ["apply"]),
        ("zones = trips['zone'].map(lambda zone: zone.lower())", ["map"]),
        ("done = run.pool.map(lambda part: part.sum(), parts)", []),
        ("for part in parts: table = pd.concat([table, part])", ["grows in a loop"]),
        ("while more: self.rows = np.append(self.rows, next(more))", ["grows in a loop"]),
        ("for part in parts: rows.append(part)\ntable = pd.concat(rows)", []),
    ],
)
def test_the_check_finds_what_it_is_for_and_nothing_else(source: str, found: list[str]) -> None:
    assert [name for _, name in slow_idioms(source)] == found
