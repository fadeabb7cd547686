"""The start and the end of a process that does one thing, a step or a command, and the cores that it has."""

import atexit
import ctypes
import gc
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import NoReturn

# What is registered for the end of a process takes milliseconds, unless it waits for what will not come.
EXIT_SECONDS = 5.0


def usable_cores() -> int:
    """Return how many cores this process may use; of all, where the system (macOS) does not say which."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_fast() -> None:
    """Make this process ready for work on many blocks of rows, once it has imported what it needs.

    Python does not look for garbage among what is imported any more: Numba's first kernel makes it look four times. And
    glibc keeps the memory of a block for the next one, where it would give it back, and the system zero it anew; other
    systems' C libraries stay as they are.
    """
    gc.freeze()
    gc.enable()
    with suppress(AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(-1, 256 << 20)  # M_TRIM_THRESHOLD, see mallopt(3)
        set_option(-3, 32 << 20)  # M_MMAP_THRESHOLD, and what glibc takes at most for it


def exit_status(run: Callable[[], int]) -> int:
    """Return the status of what runs to its end; what stops it is told."""
    try:
        return run()
    except SystemExit as stopped:  # of an error, which is told already: a task that still runs is not waited for
        return int(stopped.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1


def exit_fast(status: int) -> NoReturn:
    """End the process with a status, whatever libraries left running; do what was registered for its end.

    Python would wait for pools, threads and processes: for ever where an error left one of them waiting for work. And
    it would take apart hundreds of modules and free what they hold one by one, for a third of a second.
    """
    try:
        _kill_children()
        registered = Thread(target=atexit._run_exitfuncs, daemon=True)
        registered.start()
        registered.join(EXIT_SECONDS)
        _kill_children()  # a pool replaces the processes that it lost
        for stream in (sys.stdout, sys.stderr):
            with suppress(BrokenPipeError):  # whoever read it has seen enough
                stream.flush()
    finally:
        os._exit(status)


def _kill_children() -> None:
    """Kill what this process started and nobody ended: it would run on, and keep terminal and log open.

    Python's tracker of shared resources is spared. It ends by itself and removes what the killed ones shared.
    """
    import psutil

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if not any("resource_tracker" in word for word in child.cmdline()):
                child.kill()
