"""Values of a source's files, and the fault that no log may have."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pt

Values: TypeAlias = pa.ChunkedArray | pa.Array


class RefusedError(ValueError):
    """A label or a time that can be read, but that no log may have: unlike a malformed line, it is never left out."""


def is_text(type_: pa.DataType) -> bool:
    """Say whether a type is text, also text that is encoded by a dictionary."""
    inner = type_.value_type if pt.is_dictionary(type_) else type_
    return bool(pt.is_string(inner) or pt.is_large_string(inner) or pt.is_string_view(inner))
