"""What an application says of its operations, for the one table of what runs on which engine and device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """A step that computes on the device: the libraries and kernels that its bodies are made of.

    ``cpu`` is one body, whose tasks either engine runs; ``gpu`` is that of GPUs, in the step's process or on a cluster.
    """

    cpu: str
    gpu: str
