"""Reproducible data-science applications that run unchanged on a laptop's CPU and on NVIDIA GPUs."""

import gc
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

__version__ = "0.2.0"
# Before any other module of it: a process of days, a worker, runs what was on the disk then, or was imported since.
imported = time.time()


def _tell_failed_import(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from whitewater.log import logged

    script = vars(sys.modules["__main__"])
    application, _, file = script["__file__"].split("/")[-3:]
    log = script["snakemake"].log
    with suppress(SystemExit), logged(Path(log[0]) if log else None, name=f"{application} {file.partition('.')[0]}"):
        raise error


# The script of a rule imports what its step needs before anything of ours runs.
if hasattr(sys.modules["__main__"], "snakemake"):
    # Imports leave no garbage, but Python looks for it again and again. `start_fast` enables it when they are done.
    gc.disable()
    sys.excepthook = _tell_failed_import
