"""Source `criteo`: days of clicks as Criteo publishes them, text, plain or gzip, one file a day.

A line has a label, 13 integers I1 to I13 and 26 texts C1 to C26; an empty field is null, integers may be negative. The
files have no header; one that has one, with these names in any order, is understood too, as are integers that were
written as 260.0. Rows have no time but their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from whitewater.config.recsys import Fetch, FileColumn
from whitewater.download import Input
from whitewater.errors import InputError
from whitewater.recsys.log_folder import LABEL, LogWriter
from whitewater.recsys.sources.layout import Layout
from whitewater.recsys.sources.spans import Span, write_spans
from whitewater.recsys.sources.text import Format, head_of, text_spans
from whitewater.step import Run

INTEGERS = tuple(f"I{number}" for number in range(1, 14))
TEXTS = tuple(f"C{number}" for number in range(1, 27))
FIELDS = (LABEL, *INTEGERS, *TEXTS)
LAYOUT = Layout(
    (
        FileColumn(name=LABEL, role="label"),
        *(FileColumn(name=name, role="continuous") for name in INTEGERS),
        *(FileColumn(name=name, role="categorical") for name in TEXTS),
    ),
    {**dict.fromkeys(INTEGERS, "int64"), **dict.fromkeys(TEXTS, "string")},
)
_TYPES = {LABEL: pa.float64(), **dict.fromkeys(INTEGERS, pa.int64()), **dict.fromkeys(TEXTS, pa.string())}
_DELIMITERS = {"tab": "\t", "comma": ","}


def read_criteo(files: Sequence[Input], log: Path, *, run: Run[Fetch]) -> Mapping[str, int]:
    """Write the log of days, given in their order; see `whitewater.recsys.sources.spans.write_spans`.

    Raises InputError if a file is empty, cut or damaged, its header lacks a name, or too many lines are malformed.
    """
    delimiter = _DELIMITERS[run.settings.criteo.delimiter]
    spans = [span for number, file in enumerate(files) for span in _spans(file, number, delimiter)]
    writer = LogWriter(log, "criteo", LAYOUT.log_columns, "position", run.settings.row_group_rows)
    return write_spans(spans, LAYOUT, writer, run=run)


def _spans(file: Input, number: int, delimiter: str) -> Sequence[Span]:
    head = head_of(file, delimiter)
    header = LABEL in head.fields
    names = head.fields if header else list(FIELDS)
    lacking = [name for name in FIELDS if names.count(name) != 1]
    if lacking:
        raise InputError(f"{file.origin}: its header has not each of {', '.join(lacking)} once. Correct it, or check "
                         "recsys.fetch.criteo.delimiter.")  # fmt: skip
    format_ = Format(tuple(names), delimiter, quoted=False, types=_TYPES)
    return text_spans(file, number, format_=format_, header=header, head=head)
