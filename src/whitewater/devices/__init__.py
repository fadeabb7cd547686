"""Where computation happens: one object that a step is given, the CPU's or the GPU's."""

from whitewater.devices.blocks import (
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
from whitewater.devices.genotypes import Genotypes
from whitewater.devices.protocol import Device
from whitewater.devices.resolve import resolve

__all__ = [
    "BAD_INTEGER",
    "NULL_INTEGER",
    "NULL_TIMESTAMP",
    "Array",
    "Block",
    "Device",
    "Encoded",
    "Genotypes",
    "GroupStatistics",
    "Kind",
    "Parsed",
    "RawBlock",
    "resolve",
]
