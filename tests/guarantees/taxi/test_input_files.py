"""A file that is not a table of trips is refused in words that name what it is; all such files are named at once."""

import gzip
import re

import pandas as pd

from tests.guarantees.running import Clone
from tests.guarantees.taxi.inputs import assert_refused, run, write_trips
from tests.helpers.raw_files import TRIP, YELLOW_2019, write_csv, write_parquet, yellow_frame

LINES = [YELLOW_2019, *[TRIP] * 300]
TEXT = "\n".join([*LINES, ""])


def test_every_file_that_is_refused_is_named_with_its_own_fault(fresh: Clone) -> None:
    utf16 = "is text in UTF-16. Save it as UTF-8."
    files = {
        "utf16.csv": (TEXT.encode("utf-16"), utf16),
        "utf16_be.csv": (b"\xfe\xff" + TEXT.encode("utf-16-be"), utf16),
        "utf16.csv.gz": (gzip.compress(TEXT.encode("utf-16")), utf16),
        "semicolons.csv": (TEXT.replace(",", ";").encode(), "separates its fields by semicolons"),
        "tabs.csv": (TEXT.replace(",", "\t").encode(), "separates its fields by tabs"),
        "headless.csv": (TEXT.partition("\n")[2].encode(), f"has no header: its first line begins with '{TRIP[:60]}"),
        "cr.csv": (TEXT.replace("\n", "\r").encode(), "ends its lines with CR alone. Convert the line ends to LF."),
        "header_only.csv": (f"{YELLOW_2019}\n".encode(), "has columns, but no trips"),
        "zeros.csv": (bytes(1000), "is neither Parquet nor text"),
        "empty.csv": (b"", "is empty"),
        "columns.csv": (b"moon,phase\n1,2\n", "columns not understood: 'moon', 'phase'"),
        "cut.csv.gz": (gzip.compress(TEXT.encode())[:40], "Check the file."),
    }
    for name, (data, _) in files.items():
        (fresh / name).write_bytes(data)
    good = write_trips(fresh / "good.csv", YELLOW_2019)
    cut = write_parquet(yellow_frame(500), fresh / "cut.parquet")
    cut.write_bytes(cut.read_bytes()[:-100])
    empty = write_parquet(yellow_frame(0), fresh / "none.parquet")
    times = write_parquet(yellow_frame(9).assign(tpep_pickup_datetime=1_551_427_200), fresh / "times.parquet")
    lists = write_parquet(
        yellow_frame(9).assign(fare_amount=pd.Series([[1.0]] * 9, dtype=object)), fresh / "lists.parquet"
    )
    ended = run(fresh, good, cut, empty, times, lists, *(fresh / name for name in files))
    assert_refused(
        fresh,
        ended,
        "16 files are refused.",
        "cut.parquet is a damaged",
        "none.parquet has columns, but",
        "times.parquet: column 'tpep_pickup_datetime': int64 is not a point in time",
        "lists.parquet: column 'fare_amount': ",
    )
    for name, (_, words) in files.items():
        [line] = re.findall(rf"^- {re.escape(str(fresh / name))}:? (.*)$", ended.message, re.MULTILINE)
        assert words in line
    assert str(good) not in ended.message
    assert len(ended.message) < 5_000


def test_lines_that_cannot_be_parsed_are_explained_by_the_first_in_each_file(fresh: Clone) -> None:
    wide, word = TRIP + ",7", TRIP.replace(",10.0,", ",ten dollars,")
    files = {
        "wide.csv": (wide, "has 19 fields, not 18"),
        "word.csv": (word, "column 'fare_amount': 'ten dollars' is not a number"),
    }
    paths = [write_csv(fresh / name, [TRIP] * 6 + [line] * 3) for name, (line, _) in files.items()]
    said = [f"{path}: 3 of 9 lines cannot be parsed" for path in paths]
    assert_refused(fresh, run(fresh, *paths), "2 files are refused.", *said, *(words for _, words in files.values()))
