"""The check of slow idioms: what each rule finds, what none does, comments that let a finding stand, the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from whitewater import idioms
from whitewater.__main__ import main
from whitewater.idioms import RULES
from whitewater.idioms.sources import read

ROOT = Path(__file__).parents[2]
HEADER = """
import cudf, cupy, dask, itertools, math
import dask.dataframe as dd
import numpy as np
import pandas as pd
from pathlib import Path
trips = pd.read_parquet("trips.parquet")
lazy = dd.read_parquet("trips")
"""

BAD = {
    "WW101": [
        "for i in range(len(trips)):\n    print(trips.iloc[i])",
        "for i in range(trips.shape[0]):\n    trips.loc[i, 'fare'] = 0",
        "fares = trips['fare']\nfor i in range(fares.size):\n    print(fares[i] - fares[i - 1])",
        "rows = len(trips)\nfor i in range(1, rows):\n    print(trips['fare'].iloc[i])",
        "x = np.zeros(9)\nfor i in range(len(x)):\n    x[i] += i * i",
        "x = np.zeros((9, 9))\nfor i in range(x.shape[0]):\n    for j in range(9):\n        y = 2 * x[i, j]",
        "def total(values: np.ndarray):\n    result = 0.0\n    for i in range(len(values)):\n"
        "        result += values[i] * 2\n    return result",
        "def one(values: np.ndarray):\n    for i in range(len(values)):\n        if values[i] < 3:\n            break",
        "def show(df):\n    for i in range(len(df)):\n        print(df.fare[i])",
    ],
    "WW102": [
        "for number, trip in anything.iterrows():\n    print(trip)",
        "rows = [trip.fare for trip in trips.itertuples()]",
        "rows = list(trips.itertuples(index=False))",
    ],
    "WW103": [
        "for fare in trips['fare']:\n    print(fare)",
        "pairs = [a / b for a, b in zip(trips['fare'], trips['distance'])]",
        "for i, fare in enumerate(trips.fare.fillna(0)):\n    print(i, fare)",
        "def show(fares: pd.Series):\n    for key, fare in fares.items():\n        print(key, fare)",
        "long = trips[trips['distance'] > 9]\nfor fare in long['fare'].to_numpy():\n    print(fare)",
        "for fare in trips['fare'].values:\n    print(fare)",
    ],
    "WW201": [
        "for path in paths:\n    trips = pd.concat([trips, pd.read_parquet(path)])",
        "for path in paths:\n    trips = trips.append(pd.read_parquet(path))",
        "while more():\n    trips = cudf.concat((trips, block()), axis=0)",
        "for path in paths:\n    whole = whole.append(block(path), ignore_index=True)",
        "for row in rows:\n    trips.loc[len(trips)] = row",
        "for row in rows:\n    anything.loc[anything.shape[0]] = row",
        "class Log:\n    def add(self, blocks):\n        for block in blocks:\n"
        "            self.rows = pd.concat([self.rows, block])",
    ],
    "WW202": [
        "x = np.array([])\nfor block in blocks:\n    x = np.append(x, block)",
        "for block in blocks:\n    x = np.concatenate([x, block])",
        "for block in blocks:\n    x = np.vstack((block, x))",
        "for block in blocks:\n    x = np.r_[x, block]",
        "while more():\n    x = cupy.hstack([x, block()])",
        "def grow(xp, blocks, x):\n    for block in blocks:\n        x = xp.concatenate((x, block))",
    ],
    "WW203": [
        "for zone in zones:\n    print(pd.read_csv('trips.csv').query('zone == @zone'))",
        "folder = Path('data')\nfor zone in zones:\n    x = np.load(folder / 'ranks.npy')[zone]",
        "means = [pd.read_parquet('trips.parquet')[name].mean() for name in names]",
        "def show(path: Path, zones):\n    for zone in zones:\n        print(pd.read_csv(path), zone)",
    ],
    "WW301": [
        "speed = anything.apply(lambda trip: trip['distance'] / trip['hours'], axis=1)",
        "speed = anything.apply(speed_of, axis='columns')",
        "doubled = trips['fare'].apply(lambda fare: 2 * fare)",
        "def double(fare):\n    return 2 * fare\ndoubled = trips['fare'].map(double)",
        "words = trips['fare'].map(str)",
        "doubled = anything.applymap(double)",
        "doubled = trips.map(lambda value: 2 * value)",
        "doubled = lazy['fare'].apply(lambda fare: 2 * fare, meta=('fare', 'f8'))",
    ],
    "WW302": [
        "spread = trips.groupby('zone')['fare'].agg(lambda fares: fares.max() - fares.min())",
        "spread = trips.groupby('zone').agg({'fare': ['mean', lambda fares: fares.iloc[0]]})",
        "spread = trips.groupby('zone').agg(spread=('fare', lambda fares: fares.max()))",
        "def centre(fares):\n    return fares - 1\ngroups = trips.groupby('zone').fare\nx = groups.transform(centre)",
        "top = anything.groupby('zone').apply(lambda trips: trips.head(3))",
        "x = trips['fare'].rolling(7).apply(lambda fares: fares.iloc[-1])",
    ],
    "WW303": [
        "f = np.vectorize(lambda fare: fare / 2)",
        "@np.vectorize\ndef f(fare):\n    return fare / 2",
        "f = np.frompyfunc(lambda a, b: a, 2, 1)",
        "from numpy import vectorize as v\nf = v(lambda fare: fare / 2)",
        "x = np.apply_along_axis(lambda row: row[0], 1, y)",
    ],
    "WW401": [
        "def search(device, x, alphas):\n    for alpha in alphas:\n        fit(device.from_host(x), alpha)",
        "errors = [error(alpha, cupy.asarray(x)) for alpha in alphas]",
        "frame = cudf.read_parquet('trips.parquet')\nfor zone in zones:\n    show(zone, frame.to_pandas())",
        "x = cupy.zeros((9, 9))\nfor i in range(9):\n    show(i, x.get())",
        "table = cudf.DataFrame({})\nfor name in names:\n    show(name, table['fare'].to_numpy())",
        "while not done():\n    show(cudf.from_pandas(trips))",
    ],
    "WW402": [
        "x = cupy.zeros(9)\nfor i in range(9):\n    show(float(x[i]))",
        "def show(device, ranks):\n    x = device.from_host(ranks)\n    return [x[i].item() for i in range(9)]",
        "def show(device):\n    xp = device.xp\n    for value in xp.arange(9):\n        print(value)",
    ],
    "WW403": [
        "def total(xp, blocks):\n    result = 0.0\n    for block in blocks:\n        result += float(xp.sum(block))",
        "def norms(device, blocks):\n    for block in blocks:\n"
        "        found.append(device.xp.linalg.norm(block).item())",
        "x = cupy.zeros((9, 9))\nfor i in range(9):\n    total += int(x.sum())",
    ],
    "WW501": [
        "for name in names:\n    print(lazy[name].mean().compute())",
        "means = {name: lazy[name].mean().compute() for name in names}",
        "for path in paths:\n    total += dd.read_parquet(path).fare.sum().compute()",
        "for name in names:\n    print(dask.compute(lazy[name].mean()))",
    ],
}

# What looks like a slow idiom and is none: each once raised a doubt while the rules were written.
GOOD = {
    "plain Python": """
        lines = []
        for i in range(len(names)):
            lines.append(names[i])
        for key, value in {"a": 1}.items():
            lines.append(settings.get(key))
        for first, second in zip(names, itertools.count()):
            text = ", ".join([first, str(second)])
        x = list(map(lambda each: each + 1, lines))
        whole = [*whole, 1]
        squares = executor.map(lambda each: each ** 2, lines)
        for name in names:
            path = path.append(name)
            total += float(name)
            metrics.append(int(name))
    """,
    "columns, labels, blocks and groups of a frame": """
        for name in trips:
            print(trips[name].mean())
        for name in trips.columns:
            print(name)
        for zone, group in trips.groupby("zone"):
            print(zone, len(group))
        for zone in trips["zone"].unique():
            print(zone)
        for block in pd.read_csv("trips.csv", chunksize=1000):
            print(len(block))
        for name in trips["zone"].tolist():
            print(name)
        for i in range(len(trips)):
            print(names[i])
    """,
    "functions of a library, of whole columns, and by name": """
        a = trips["zone"].map({1: "Bronx"})
        b = trips.groupby("zone").agg({"fare": "mean"})
        c = trips.groupby("zone")["fare"].transform("mean")
        d = trips.apply(np.sqrt)
        e = trips.apply(lambda column: column.fillna(0))
        f = trips["zone"].map(names_of_zones)
        g = trips["fare"].rolling(7).apply(lambda fares: fares[-1], raw=True, engine="numba")
        h = itertools.groupby(trips, key=lambda trip: trip)
        i = cudf.Series([1]).apply(lambda fare: fare + 1)
        j = cupy.vectorize(lambda fare: fare + 1)
        k = trips.pipe(lambda frame: frame.head())
        m = lazy.map_partitions(lambda frame: frame.head())
        n = trips.assign(speed=lambda frame: frame["distance"] / frame["hours"])
    """,
    "arrays that are made anew, or joined once": """
        for block in blocks:
            x = np.diff(block)
            x = np.append(x, 0)
            y = np.concatenate([x, x])
        for block in blocks:
            x, counts = np.unique(block, return_counts=True)
            x = np.insert(x, 0, 0)
            with opened(block) as y:
                y = np.append(y, 0)
        x = np.append(x, 0)
        parts = np.concatenate([np.append(each, 0) for each in blocks])
        for x in blocks:
            x = np.append(x, 1)
            rows = pd.concat([block, other])
    """,
    "rows of matrices, which are arrays themselves": """
        counts = np.zeros((5, 9))
        for row in range(len(counts)):
            counts[row] = np.bincount(draw(row), minlength=9)
        def rows(matrix: np.ndarray):
            for i in range(len(matrix)):
                yield matrix[i]
        for row in range(len(counts)):
            print(2 * counts[row])
        for line in np.zeros((3, 3)):
            print(line.sum())
        cube = np.zeros((3, 4, 5))
        for i in range(cube.shape[0]):
            for j in range(4):
                cube[i, j] += draw(i, j)
        sums = np.empty(9)
        for i in range(len(sums)):
            sums[i] = step(i).sum()
        alphas = np.logspace(-3, 1, 9)
        for i in range(len(alphas)):
            fit(alphas[i])
    """,
    "loops that Numba compiles": """
        import numba
        from numba import cuda, njit
        from whitewater.devices.kernel import kernel
        @kernel
        def one(x: np.ndarray, y: np.ndarray):
            for i in range(len(x)):
                if x[i] > 0:
                    y[i] = x[i]
        @njit(cache=True)
        def two(x: np.ndarray):
            total = 0
            for i in range(x.size):
                total += x[i]
        @numba.vectorize(["f8(f8)"])
        def three(x):
            return x
        @cuda.jit
        def four(x: np.ndarray):
            for i in range(len(x)):
                x[i] = float(x[i])
        def five(x: np.ndarray):
            for i in range(len(x)):
                x[i] = float(x[i])
        fast = njit(five)
        def made(numba):
            @numba.jit(nopython=True)
            def six(x: np.ndarray):
                for i in range(len(x)):
                    x[i] = 2 * x[i] if x[i] > 0 else 0
            return six
    """,
    "blocks that cross to the device, each once": """
        def load(device, blocks, ranks):
            for block in blocks:
                yield device.from_host(block)
            for number in range(9):
                yield device.to_host(blocks[number])
            while float(device.xp.abs(ranks).max()) > 1e-9:
                ranks = step(ranks)
                show(device.to_host(ranks))
            for _ in range(9):
                spin(ranks)
                show(device.to_host(ranks))
            for _ in range(9):
                ranks += 1
                show(device.to_host(ranks))
            return [device.to_host(each) for each in blocks]
    """,
    "files that differ, or are read until they are there": """
        for path in paths:
            a = pd.read_csv(path)
            b = np.load(f"{path}.npy")
            c = pd.read_parquet("trips.parquet", columns=[path])
        for attempt in range(5):
            a = pd.read_csv("trips.csv")
            if len(a):
                break
        with open("trips.csv") as stream:
            for number in range(3):
                a = pd.read_csv(stream, nrows=9)
    """,
    "results that decide what comes next, and partitions one by one": """
        total = lazy["fare"].sum().compute()
        for number in range(lazy.npartitions):
            show(lazy.partitions[number].compute())
        for part in lazy.to_delayed():
            show(part.compute())
        while total > 1:
            total = lazy.query(f"fare < {total}").fare.mean().compute()
        for turn in range(99):
            error = step(lazy).compute()
            if error < 1e-9:
                break
    """,
    "names that are not always frames": """
        table = pd.read_csv("zones.csv")
        table = table.to_dict()
        for i in range(len(table)):
            print(table["zone"][i])
        def names(trips):
            return [trip["name"] for trip in trips["items"]]
        def of_list(frame: list):
            for i in range(len(frame)):
                print(frame[i])
        def of_any(df):
            df = df.to_dict("records")
            for i in range(len(df)):
                print(df[i])
    """,
}


def found(tmp_path: Path, code: str, *, header: str = HEADER) -> list[str]:
    path = tmp_path / "steps.py"
    path.write_text(header + code + "\n")
    return [finding.rule.code for finding in idioms.inspect(read(path))]


def dedented(code: str) -> str:
    return re.sub(r"^ {8}", "", code, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("code", "example"), [(code, example) for code, examples in BAD.items() for example in examples]
)
def test_each_rule_finds_its_idiom(tmp_path: Path, code: str, example: str) -> None:
    assert code in found(tmp_path, example)


@pytest.mark.parametrize("example", GOOD.values(), ids=GOOD)
def test_what_is_not_slow_is_not_found(tmp_path: Path, example: str) -> None:
    assert found(tmp_path, dedented(example)) == []


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.after and rule.before], ids=lambda rule: rule.code
)
def test_the_explained_example_is_found_and_its_remedy_is_not(tmp_path: Path, rule: idioms.Rule) -> None:
    def inside(code: str) -> str:
        lines = "\n".join(f"    {line}" for line in dedented_example(code).splitlines())
        return f"def step(trips: pd.DataFrame, device, xp, fares: np.ndarray):\n{lines}"

    lazy = "trips = dd.read_parquet('trips')\n" if rule.code == "WW501" else ""
    if rule.code != "WW001":
        assert rule.code in found(tmp_path, inside(lazy + dedented_example(rule.before)))
        assert found(tmp_path, inside(lazy + dedented_example(rule.after))) == []


def dedented_example(code: str) -> str:
    lines = code.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines if line.strip())


def test_every_rule_of_code_has_an_example_here() -> None:
    assert set(BAD) == set(RULES) - {"WW001", "WW002"}


LOOP = "for trip in trips.itertuples():{end}\n    print(trip)"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (LOOP.format(end="  # idiom: WW102 because it prints three rows"), []),
        ("# idiom: WW102 because it prints three rows\n" + LOOP.format(end=""), []),
        (LOOP.format(end="  # idiom: WW102"), ["WW001", "WW102"]),
        (LOOP.format(end="  # idiom: WW102 because"), ["WW001", "WW102"]),
        (LOOP.format(end="  # idiom: WW999 because there is no such rule"), ["WW001", "WW102"]),
        (LOOP.format(end="  # idiom: WW101 because of another rule"), ["WW002", "WW102"]),
        ("x = 1  # idiom: WW102 because nothing is here", ["WW002"]),
        ("x = 1  # idiom: WW001 because suppressions are not suppressed", ["WW001"]),
        ("x = 1  # an idiom of the field, and no suppression", []),
        ("x = '# idiom: WW102'  # a string is no comment", []),
        ("print(\n    trips.itertuples(), trips.applymap(str)  # idiom: WW102, WW301 because of both\n)", []),
    ],
)
def test_a_comment_with_a_reason_lets_a_finding_stand(tmp_path: Path, code: str, expected: list[str]) -> None:
    assert sorted(found(tmp_path, code)) == expected


def notebook(path: Path, *cells: tuple[str, str]) -> Path:
    contents = [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in cells]
    path.write_text(json.dumps({"cells": contents, "nbformat": 4}))
    return path


def test_a_notebooks_findings_name_cell_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook(
        tmp_path / "steps.ipynb",
        ("markdown", "# for i in range(len(trips))"),
        ("code", "import pandas as pd\n%matplotlib inline\ntrips = pd.read_csv('trips.csv')"),
        ("code", "%%bash\nfor i in 1 2; do echo $i; done"),
        ("code", "x = 1\nfor fare in trips['fare']:\n    print(fare)"),
    )
    assert main(["idioms", str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:cell 4:2:1: WW103 iteration over the values of a column. ")


def test_the_command_prints_place_code_and_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "steps.py"
    path.write_text("import numpy as np\n\nf = np.vectorize(abs)\n")
    assert main(["idioms", str(tmp_path)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}:3:5: WW303 ")
    assert RULES["WW303"].suggestion in first
    assert last == "1 slow idiom in 1 file. `python -m whitewater idioms --explain CODE` says why."


def test_clean_files_give_a_short_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "steps.py").write_text("x = 1\n")
    notebook(tmp_path / "steps.ipynb", ("code", "x = 1"))
    assert main(["idioms", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "No slow idioms in 2 files.\n"


@pytest.mark.parametrize(
    ("name", "contents", "told"),
    [
        ("steps.py", b"x = 1\nfor in y:\n", "steps.py:2: is not Python"),
        ("steps.py", b"x = '\xff'\n", "steps.py"),
        ("steps.py", b"x = 1\0", "steps.py"),
        ("steps.ipynb", b"{", "steps.ipynb: cannot be read"),
        ("steps.ipynb", b"[]", "steps.ipynb: cannot be read"),
        ("steps.ipynb", b'{"cells": [1]}', "steps.ipynb: cannot be read: its cell 1 has no text"),
        ("steps.py", b"x = " + 100_000 * b"-" + b"1", "steps.py: cannot be read: it is nested too deeply"),
        (
            "steps.ipynb",
            b'{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "for in"]}]}',
            "steps.ipynb:cell 1:2:",
        ),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, contents: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(contents)
    (tmp_path / "tail.py").write_text("f = table.applymap(str)\n")
    assert main(["idioms", str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert told in output.err
    assert "WW301" in output.out
    assert "2 files, of which 1 could not be read" in output.out


def test_a_wrong_path_or_an_empty_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["idioms", str(tmp_path / "absent")]) == 2
    assert main(["idioms", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "absent: there is no such file or folder" in error
    assert f"{tmp_path}: there are no Python files" in error


def test_folders_without_code_of_the_user_are_left_out_unless_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (".venv", ".git", ".hidden", "results", "data", "environment", "steps"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "slow.py").write_text("f = table.applymap(str)\n")
    (tmp_path / "environment/pyvenv.cfg").touch()
    assert main(["idioms", str(tmp_path)]) == 1
    assert "1 slow idiom in 1 file." in capsys.readouterr().out
    assert main(["idioms", str(tmp_path / "results")]) == 1
    with pytest.raises(SystemExit):
        main(["idioms", "--help"])
    told = capsys.readouterr().out
    assert all(name in told for name in ("hidden folders", "environments", "results", "data"))


@pytest.mark.parametrize("code", RULES)
def test_explain_and_the_page_say_the_same(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["idioms", "--explain", code]) == 0
    explained = capsys.readouterr().out
    page = (ROOT / "docs/idioms.md").read_text()
    assert explained in page
    assert f"| {code} | {RULES[code].title} | {RULES[code].suggestion} |" in page


def test_the_page_has_no_rule_that_the_code_has_not() -> None:
    page = (ROOT / "docs/idioms.md").read_text()
    assert re.findall(r"^\| (WW\d+)", page, flags=re.MULTILINE) == list(RULES)
    assert re.findall(r"^## (WW\d+)", page, flags=re.MULTILINE) == list(RULES)
