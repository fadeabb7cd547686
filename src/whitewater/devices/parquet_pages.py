"""The pages of a Parquet column chunk, decoded by kernels of our own.

Covers what writers make of flat columns: data pages of version 1 and 2, plain and dictionary encoding, every codec that
pyarrow has. What the values become is decided once for each entry of the dictionary, so a row costs one table look-up.
No byte of a file is trusted: each read is checked against the end of its page, and each index against the dictionary.

The format: https://parquet.apache.org/docs/file-format/ (page headers in Thrift's compact protocol; levels and dictionary
indices in the hybrid of run lengths and bit packing).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from whitewater.devices.protocol import Array

# Columns of a table of pages; the kernels see them as constants.
BODY, COMPRESSED, UNCOMPRESSED, VALUES, ENCODING, KIND, LEVELS, PLAIN_BODY, CHECKSUM, START, PRESENT = range(11)
FIELDS = 11
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY = 0, 2, 8
NO_CHECKSUM = -1
INCOMPLETE, MALFORMED = -1, -2
# Bytes after the last one that the bit unpacking may read (and ignores).
PADDING = 8
WINDOW_BYTES = 1 << 20
BATCH_ROWS = 1 << 17
