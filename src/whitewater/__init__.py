"""Reproducible data-science applications that run unchanged on a laptop's CPU and on NVIDIA GPUs."""

import sys
import time
from types import TracebackType

__version__ = "0.2.0"
# Before any other module of it: a process of days, a worker, runs what was on the disk then, or was imported since.
imported = time.time()


def _tell_failed_import(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from whitewater.log import tell_failed_import

    tell_failed_import(error, script=vars(sys.modules["__main__"]))


# The script of a rule imports what its step needs before anything of ours runs.
if hasattr(sys.modules["__main__"], "snakemake"):
    sys.excepthook = _tell_failed_import
