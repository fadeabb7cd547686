"""The end of a process."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End the process: do what was registered for its end, and leave its memory to the system.

    Python would take apart hundreds of modules and free what they hold one by one, for a third of a second.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # whoever read it has seen enough
            continue
    os._exit(status)
