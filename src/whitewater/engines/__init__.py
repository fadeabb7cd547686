"""Where computation happens: one object that a step is given, the CPU's or the GPU's."""

from whitewater.engines.blocks import (
    BAD_INTEGER,
    NULL_INTEGER,
    NULL_TIMESTAMP,
    Array,
    Block,
    Encoded,
    GroupStatistics,
    Kind,
    Parsed,
    RawBlock,
)
from whitewater.engines.device import Device
from whitewater.engines.resolve import resolve

__all__ = [
    "BAD_INTEGER",
    "NULL_INTEGER",
    "NULL_TIMESTAMP",
    "Array",
    "Block",
    "Device",
    "Encoded",
    "GroupStatistics",
    "Kind",
    "Parsed",
    "RawBlock",
    "resolve",
]
