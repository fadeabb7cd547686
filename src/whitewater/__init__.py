"""Reproducible data-science applications that run unchanged on a laptop's CPU and on NVIDIA GPUs."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

__version__ = "0.2.0"
# Set before other modules of the package are imported: a worker that runs for days has the code of that time or later.
imported = time.time()


def _log_failed_import(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from whitewater.log import log_output

    script = vars(sys.modules["__main__"])
    application, _, file = script["__file__"].split("/")[-3:]
    log = script["snakemake"].log
    with (
        suppress(SystemExit),
        log_output(Path(log[0]) if log else None, name=f"{application} {file.partition('.')[0]}"),
    ):
        raise error


# A rule's script imports what its step needs before `main` runs, so a failed import has to be logged from here.
if hasattr(sys.modules["__main__"], "snakemake"):
    from whitewater.process import import_fast

    import_fast()
    sys.excepthook = _log_failed_import
