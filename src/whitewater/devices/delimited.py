"""Comma-separated text as columns; lines that cannot be parsed are handed back as they stood.

Each field goes from its characters straight into its number, in one pass over the text; fields that are not wanted are
only counted. A line is one record: a quoted field does not go on in the next line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

import numpy as np

from whitewater.devices import delimited_lines
from whitewater.devices.arrow_kinds import dtype_of, empty
from whitewater.devices.blocks import BAD_INTEGER, Array, Encoded, Kind, Parsed, RawBlock
from whitewater.devices.delimited_lines import EXTRA_ROWS, LENGTH, LONG, STATE, parse_lines, plan_of
from whitewater.devices.delimited_words import Words, long_numbers

# Lines parsed at once on the CPU: their numbers stay in the cache of a core.
_LINES = 1 << 13
# One bit of an int64 for each column.
_MOST_COLUMNS = 63
_PARSERS = {"float64": delimited_lines.FLOAT, "timestamp": delimited_lines.TIMESTAMP, "text": delimited_lines.TEXT}
_GPU_THREADS = 128


def cpu_parse_delimited(data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
    r"""Parse whole lines of comma-separated text without a header.

    Parameters
    ----------
    data
        Lines that end with ``\n`` or ``\r\n``, which the last one may lack. Empty lines are skipped and are no rows.
    names
        All fields of a line, in order.
    columns
        The fields wanted, at most 63, and what each becomes. An empty field is null. Blanks around numbers are ignored.

    Returns
    -------
    Parsed
        The columns of the lines that could be parsed, in order; and the other lines: those with another number of
        fields, with unsound quotes, or with a field that is not of its kind. Bytes that are not UTF-8 are replaced.
    """
    text = _with_last_newline(data)
    plan = _plan(names, columns)
    # `bytes.count` is three times slower, and holds the interpreter's lock.
    lines = int(np.count_nonzero(text == delimited_lines.NEWLINE))
    arrays = {name: empty(lines, dtype_of(kind)) for name, kind in columns.items()}
    words = {name: Words(text) for name, kind in columns.items() if kind == "text"}
    malformed: list[str] = []
    rows = 0
    for numbers, faults in _slices(text, plan, len(columns)):
        malformed += [_line(data, span) for span in faults.tolist()]
        stop = rows + numbers.shape[1]
        for values, (name, kind) in zip(numbers, columns.items(), strict=True):
            if kind == "text":
                words[name].encode(values, arrays[name][rows:stop])
            else:
                arrays[name][rows:stop] = _narrow(np, values, kind)
        rows = stop
    block: RawBlock = {name: values[:rows] for name, values in arrays.items()}
    block |= {name: vocabulary.encoded(arrays[name][:rows]) for name, vocabulary in words.items()}
    return Parsed(block, rows, tuple(malformed))


def _with_last_newline(data: bytes) -> Array:
    return np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)


def _line(data: bytes, span: int) -> str:
    begin = span >> 32
    return data[begin : begin + (span & LENGTH)].decode("utf-8", "replace").removesuffix("\r")


def _plan(names: Sequence[str], columns: Mapping[str, Kind]) -> Array:
    if len(columns) > _MOST_COLUMNS or not set(columns) <= set(names):
        raise ValueError(f"{list(columns)} are not at most {_MOST_COLUMNS} of the fields {list(names)}")
    if "id" in columns.values():
        raise ValueError("kind id is that of Parquet's columns only")
    order = {name: slot for slot, name in enumerate(columns)}
    kinds = [
        _PARSERS.get(columns[name], delimited_lines.INTEGER) if name in columns else delimited_lines.SKIPPED
        for name in names
    ]
    return plan_of(np.array(kinds, np.int16), np.array([order.get(name, 0) for name in names], np.int16))


def _slices(text: Array, plan: Array, columns: int) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers (int64 (columns, lines)) of some lines, and the spans of those that are malformed."""
    integers = np.empty((columns + EXTRA_ROWS, _LINES), np.int64)
    floats = integers.view(np.float64)
    position = 0
    while position < len(text):
        position, lines, faults = parse_lines(text, position, plan, integers, floats)
        for slot, at, nearest in long_numbers(text, integers[:, :lines]):
            floats[slot, at] = nearest
        yield integers[:columns, :lines], integers[STATE, :faults]


def _narrow(xp: ModuleType, values: Array, kind: Kind) -> Array:
    if kind == "float64":
        return values.view(np.float64)
    if kind == "timestamp":
        return values
    narrow: Array = xp.where(values > np.iinfo(kind).max, BAD_INTEGER, values).astype(kind)
    return narrow


def gpu_parse_delimited(data: bytes, names: Sequence[str], columns: Mapping[str, Kind]) -> Parsed:
    """Parse whole lines of comma-separated text on the GPU, a thread to each line; see `cpu_parse_delimited`.

    Texts are numbered, and numbers of more than 18 digits read, on the host.
    """
    import cupy

    from whitewater.devices.gpu_kernels import gpu_parse_lines

    host = _with_last_newline(data)
    text = cupy.asarray(host)
    ends = cupy.where(text == delimited_lines.NEWLINE)[0]
    starts = cupy.concatenate([cupy.zeros(1, np.int64), ends[:-1] + 1])
    integers = cupy.empty((len(columns) + EXTRA_ROWS, len(starts)), np.int64)
    floats = cupy.empty((len(columns), len(starts)), np.float64)
    blocks = -(-len(starts) // _GPU_THREADS)
    gpu_parse_lines[blocks, _GPU_THREADS](text, starts, cupy.asarray(_plan(names, columns)), integers, floats)
    if int(integers[LONG].max()):
        for slot, at, nearest in long_numbers(host, cupy.asnumpy(integers)):
            floats[slot, cupy.asarray(at)] = cupy.asarray(nearest)
    faults = cupy.where(integers[STATE] == delimited_lines.MALFORMED)[0]
    bounds = zip(cupy.asnumpy(starts[faults]).tolist(), cupy.asnumpy(ends[faults]).tolist(), strict=True)
    parsed = cupy.where(integers[STATE] == delimited_lines.PARSED)[0]
    block: RawBlock = {}
    for slot, (name, kind) in enumerate(columns.items()):
        values = (floats if kind == "float64" else integers)[slot][parsed]
        block[name] = _encoded_on_gpu(host, values) if kind == "text" else _narrow(cupy, values, kind)
    return Parsed(block, len(parsed), tuple(_line(data, begin << 32 | end - begin) for begin, end in bounds))


def _encoded_on_gpu(text: Array, spans: Array) -> Encoded:
    import cupy

    words, codes = Words(text), np.empty(len(spans), np.int32)
    words.encode(cupy.asnumpy(spans), codes)
    encoded = words.encoded(codes)
    return Encoded(cupy.asarray(encoded.codes), encoded.vocabulary)
