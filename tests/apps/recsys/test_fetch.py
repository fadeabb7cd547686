"""The step `fetch` of the recsys application: every source leaves one log, and nothing is lost in silence.

What Python's own `csv` and DuckDB read of the same files is compared with the log.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.oracle import sql
from tests.helpers.real_data import needs_real_data, real_data
from tests.helpers.recsys_logs import Row, column, records, run_fetch, table, write
from whitewater.errors import InputError
from whitewater.io import text_files
from whitewater_apps.recsys.sources import rows as sources_rows

NAMES = ["label", *(f"I{number}" for number in range(1, 14)), *(f"C{number}" for number in range(1, 27))]
# ---- Criteo's days


def clicks(rows: int, *, seed: int = 0) -> list[list[str]]:
    """Lines of Criteo's, as fields: nulls, negative numbers, texts."""
    lines = []
    for row in range(seed, seed + rows):
        numbers = ["" if (row + each) % 4 == 0 else str((row * 31 + each) % 97 - 3) for each in range(13)]
        texts = ["" if (row + each) % 5 == 0 else f"{(row * each * 2654435761) % 2**32:08x}" for each in range(26)]
        lines.append([str(row % 2), *numbers, *texts])
    return lines


def lines_of(fields: Sequence[Sequence[str]], delimiter: str = "\t") -> str:
    return "".join(delimiter.join(line) + "\n" for line in fields)


def as_row(fields: Sequence[str]) -> Row:
    """What a line means, by Python's own conversions."""
    values = dict(zip(NAMES, fields, strict=True))
    return {
        name: (None if not value else value if name[0] == "C" else int(float(value))) for name, value in values.items()
    }


def test_days_of_criteo_are_a_log_whose_time_is_the_line(folder: Path) -> None:
    days = [clicks(7), clicks(5, seed=100), clicks(3, seed=200)]
    write(folder / "in/day_0", lines_of(days[0]))
    write(folder / "in/day_2.gz", gzip.compress(lines_of(days[1]).encode()))
    write(folder / "in/day_10", lines_of(days[2])[:-1].replace("\n", "\r\n"))
    log = run_fetch("criteo", files=["in/day_*"])
    expected = [
        {"row_id": place, "day": day, "time": place, **as_row(fields)}
        for place, (day, fields) in enumerate((day, fields) for day, lines in enumerate(days) for fields in lines)
    ]
    assert records(log) == expected
    assert (log.source, log.time.unit, log.rows) == ("criteo", "position", 15)
    assert [(file.rows, file.day) for file in log.files] == [(7, 0), (5, 1), (3, 2)]
    assert log.counts == {"lines": 15, "empty": 0, "malformed": 0}
    assert {log.columns[name] for name in NAMES[1:14]} == {"continuous"}
    assert {log.columns[name] for name in NAMES[14:]} == {"categorical"}
    inputs = json.loads(Path("data/recsys/inputs.json").read_text())
    assert (inputs["source"], inputs["rows"]) == ("criteo", 15)
    assert [each["path"] for each in inputs["files"]] == ["in/day_0", "in/day_2.gz", "in/day_10"]
    content = Path("in/day_2.gz").read_bytes()
    assert inputs["files"][1] == {"path": "in/day_2.gz", "origin": "in/day_2.gz", "bytes": len(content),
                                  "sha256": hashlib.sha256(content).hexdigest()}  # fmt: skip


def test_files_keep_the_order_in_which_they_are_named(folder: Path) -> None:
    for number in range(3):
        write(folder / f"{number}.tsv", lines_of(clicks(1, seed=number)))
    log = run_fetch("criteo", files=["2.tsv", "0.tsv", "./2.tsv", "1.tsv"])
    assert column(log, "label") == [0, 0, 1]
    assert column(log, "I1") == [as_row(clicks(1, seed=number)[0])["I1"] for number in (2, 0, 1)]


@needs_real_data
def test_the_published_sample_is_read_as_duckdb_reads_it(folder: Path) -> None:
    sample = real_data("recsys", "criteo_sample.txt")
    log = run_fetch("criteo", files=[str(sample)], delimiter="comma")
    integers = ", ".join(f"CAST(I{number} AS BIGINT) AS I{number}" for number in range(1, 14))
    texts = ", ".join(f"NULLIF(C{number}, '') AS C{number}" for number in range(1, 27))
    kinds = {name: "DOUBLE" if name[0] in "lI" else "VARCHAR" for name in NAMES}
    found = sql(f"SELECT CAST(label AS TINYINT) AS label, {integers}, {texts} FROM read_csv('{sample}', types={kinds})")
    expected = pa.Table.from_pandas(found, schema=table(log).select(NAMES).schema, preserve_index=False)
    assert table(log).select(NAMES).equals(expected)
    assert log.rows == 200
    assert sum(value < 0 for value in column(log, "I2")) == 15


def test_a_header_tells_the_order_of_the_columns(folder: Path) -> None:
    order = NAMES[::-1]
    fields = [dict(zip(NAMES, line, strict=True)) for line in clicks(4)]
    text = lines_of([order, *([line[name] for name in order] for line in fields)], ",")
    write(folder / "a.csv", b"\xef\xbb\xbf" + text.encode())
    log = run_fetch("criteo", files=["a.csv"], delimiter="comma")
    assert [{name: row[name] for name in NAMES} for row in records(log)] == [as_row(line) for line in clicks(4)]
    write(folder / "a.csv", text.replace("C7", "C77"))
    with pytest.raises(InputError, match=r"a\.csv has no column 'C7'; its columns are C26, "):
        run_fetch("criteo", files=["a.csv"], delimiter="comma")


BAD_LINES = {
    "few fields": "0\t1\t2",
    "many fields": "\t".join(clicks(1)[0]) + "\tx",
    "text for a number": "\t".join(["0", "many", *clicks(1)[0][2:]]),
    "a fraction": "\t".join(["0", "1.5", *clicks(1)[0][2:]]),
    "text for a label": "\t".join(["label", *clicks(1)[0][1:]]),
    "carriage return": "\t".join(clicks(1)[0])[:-3] + "\rab",
    "two lines in one": "\t".join(clicks(1)[0]) + "\r" + "\t".join(clicks(1)[0]),
    "not UTF-8": "\t".join([*clicks(1)[0][:-1], "\udcff"]),
    "a number of 20 digits": "\t".join(["0", "12345678901234567890", *clicks(1)[0][2:]]),
}


@pytest.mark.parametrize("bad", list(BAD_LINES.values()), ids=list(BAD_LINES))
def test_a_malformed_line_is_left_out_counted_and_told(
    folder: Path, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = lines_of(clicks(250)).splitlines()
    lines[140:140] = [bad]
    write(folder / "day", ("\n".join(lines) + "\n").encode(errors="surrogateescape"))
    with caplog.at_level(logging.WARNING):
        log = run_fetch("criteo", files=["day"])
    assert log.counts == {"lines": 251, "empty": 0, "malformed": 1}
    assert column(log, "row_id") == [*range(140), *range(141, 251)]
    assert [{name: row[name] for name in NAMES} for row in records(log)] == [as_row(line) for line in clicks(250)]
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("day: 1 of 251 lines are malformed: line 141: ")
    assert json.loads(Path("logs/fetch.json").read_text())["facts"]["counts"]["malformed"] == 1


def test_empty_lines_are_counted_and_are_not_rows(folder: Path) -> None:
    lines = lines_of(clicks(6)).splitlines()
    write(folder / "day", "\n".join(["", *lines[:3], "", "\r", *lines[3:], "", ""]))
    log = run_fetch("criteo", files=["day"])
    assert log.counts == {"lines": 10, "empty": 4, "malformed": 0}
    assert column(log, "row_id") == [1, 2, 3, 6, 7, 8]


def test_a_file_with_too_many_malformed_lines_is_refused(folder: Path) -> None:
    lines = lines_of(clicks(200)).splitlines()
    write(folder / "day", "\n".join([*lines[:198], "x", "y"]))
    assert run_fetch("criteo", files=["day"]).counts["malformed"] == 2
    write(folder / "day", "\n".join([*lines[:197], "x", "y", "z"]))
    with pytest.raises(InputError, match=r"day: 3 of 200 lines are malformed: line 198: .*More than 1% are too many"):
        run_fetch("criteo", files=["day"])


def test_a_file_of_another_format_is_refused_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_rows, "MALFORMED_OF_BLOCK", 10)
    write(folder / "day", lines_of([line[1:] for line in clicks(1000)]))  # Kaggle's test set: it has no labels
    with pytest.raises(InputError, match=r"day: 1,000 of 1,000 lines are malformed: line 1: Expected 40 columns, got"):
        run_fetch("criteo", files=["day"])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bad=st.sets(st.integers(0, 199), max_size=2),
    empty=st.sets(st.integers(0, 199), max_size=3),
    floats=st.sets(st.integers(0, 199), max_size=5),
    sizes=st.tuples(st.integers(1000, 9000), st.integers(3000, 60_000)),
)
def test_the_log_does_not_depend_on_blocks_and_spans(
    folder: Path, bad: set[int], empty: set[int], floats: set[int], sizes: tuple[int, int]
) -> None:
    lines = []
    for place, fields in enumerate(clicks(200)):
        written = [f"{each}.0" if place in floats and each and column < 14 else each
                   for column, each in enumerate(fields)]  # fmt: skip
        lines.append("" if place in empty else "x" if place in bad else "\t".join(written))
    write(folder / "day_0", "\n".join(lines) + "\n")
    write(folder / "day_1.gz", gzip.compress(lines_of(clicks(30)).encode()))
    rows = [
        {"row_id": place, "day": 0, "time": place, **as_row(fields)}
        for place, fields in enumerate(clicks(200))
        if place not in bad | empty
    ]
    rows += [{"row_id": 200 + place, "day": 1, "time": 200 + place, **as_row(fields)}
             for place, fields in enumerate(clicks(30))]  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_files, "BLOCK_BYTES", sizes[0])
        patched.setattr(sources_rows, "SPAN_BYTES", sizes[1])
        assert records(run_fetch("criteo", files=["day_*"])) == rows


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-6], "a gzip file that is cut off"),
        (lambda data: data[: len(data) // 2], "a gzip file that is cut off"),
        (lambda data: data[:-8] + bytes(8), "a damaged gzip file .*CRC check failed"),
        (lambda data: data[:60] + b"\xff" * 8 + data[68:], "a damaged gzip file"),
    ],
)
def test_a_torn_gzip_file_is_an_error(folder: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    write(folder / "day_0.gz", damage(gzip.compress(lines_of(clicks(500)).encode())))
    write(folder / "day_1.gz", gzip.compress(lines_of(clicks(5)).encode()))
    with pytest.raises(InputError, match=f"day_0.gz is {message}"):
        run_fetch("criteo", files=["day_*"])
    assert not Path("data/recsys/events").exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_an_error(folder: Path, content: bytes) -> None:
    write(folder / "day_0", lines_of(clicks(5)))
    write(folder / "day_1", content)
    with pytest.raises(InputError, match="day_1 is empty"):
        run_fetch("criteo", files=["day_*"])


def test_a_line_without_end_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(text_files, "LONGEST_LINE", 5000)
    write(folder / "day_0", lines_of(clicks(5)) + "x" * 10_000)
    with pytest.raises(InputError, match="day_0: a line is longer than 5,000 bytes"):
        run_fetch("criteo", files=["day_0"])


# ---- the generated log


def simulated_day(path: Path, first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    found = pa.table(
        {
            "time": pa.array([1_400_000_000 + 100 * number for number in numbers], pa.int64()),
            "label": pa.array([number % 3 == 0 for number in numbers]).cast(pa.int8()),
            "I1": pa.array([None if number % 4 == 0 else number for number in numbers], pa.int32()),
            "I2": pa.array([number / 7 for number in numbers], pa.float64()),
            "C1": pa.array(
                [None if number % 5 == 0 else ("", "é", 'a"b')[number % 3] for number in numbers], pa.string()
            ),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(found, path, row_group_size=4)
    return found


def test_simulated_days_are_a_log_in_seconds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_rows, "SPAN_ROWS", 8)
    days = [simulated_day(folder / f"simulated/day-{day:02d}.parquet", 20 * day, rows)
            for day, rows in enumerate((20, 0, 13))]  # fmt: skip
    log = run_fetch("generated", folder / "simulated")
    found = table(log)
    assert found.select(days[0].column_names).equals(pa.concat_tables(days))
    assert found.column("row_id").to_pylist() == list(range(33))
    assert found.column("day").to_pylist() == [0] * 20 + [2] * 13
    assert (log.source, log.time.unit) == ("generated", "seconds")
    assert log.columns == {"row_id": "key", "day": "key", "time": "time", "label": "label", "I1": "continuous",
                           "I2": "continuous", "C1": "categorical"}  # fmt: skip
    assert [file.rows for file in log.files] == [8, 8, 4, 8, 5]


def test_the_generated_log_needs_the_simulation(folder: Path) -> None:
    with pytest.raises(InputError, match="Run the step simulate first"):
        run_fetch("generated")


def test_files_are_downloaded(folder: Path, served: tuple[str, Path]) -> None:
    address, root = served
    write(root / "day_0.gz", gzip.compress(lines_of(clicks(5)).encode()))
    log = run_fetch("criteo", files=[f"{address}/day_0.gz?token=secret"])
    assert log.rows == 5
    (read,) = json.loads(Path("data/recsys/inputs.json").read_text())["files"]
    assert read["origin"] == f"{address}/day_0.gz?token=..."
    assert Path(read["path"]).parent == Path("data/recsys/downloads")
