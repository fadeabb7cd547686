"""The start and end of the process of a step or command, and the cores it may use."""

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


def usable_cores() -> int:
    """Return how many cores this process may use; on macOS, which does not say, all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def import_fast() -> None:
    """Tune this process for the imports before `start_fast`."""
    gc.disable()  # imports leave no garbage
    # Pydantic would read the metadata of all installed packages in search of plugins.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"


def start_fast() -> None:
    """Tune this process, after its imports, for work on many blocks of rows."""
    gc.freeze()  # skip the imported modules, which would be scanned four times for Numba's first kernel
    gc.enable()
    # Keep the memory of a block for the next one, instead of returning it to the system, which would zero it again.
    with suppress(AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(-1, 256 << 20)  # M_TRIM_THRESHOLD, see mallopt(3)
        set_option(-3, 32 << 20)  # M_MMAP_THRESHOLD, at the largest value that glibc accepts


def exit_status(run: Callable[[], int]) -> int:
    """Call a function and return its exit status, or print the traceback of its error and return 1."""
    try:
        return run()
    except SystemExit as error:  # its message has been printed
        return int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1


def exit_fast(status: int) -> NoReturn:
    """Run the exit handlers and end the process at once."""
    # Python itself would wait for pools, threads and processes, forever if an error left one of them waiting for work.
    # It would also take a third of a second to free hundreds of modules.
    try:
        _kill_children()
        handlers = Thread(target=atexit._run_exitfuncs, daemon=True)
        handlers.start()
        handlers.join(5.0)  # they take milliseconds, unless one hangs
        _kill_children()  # a pool replaces the processes that it lost
        for stream in (sys.stdout, sys.stderr):
            with suppress(BrokenPipeError):  # the reader has closed the pipe
                stream.flush()
    finally:
        os._exit(status)


def _kill_children() -> None:
    """Kill leftover child processes, which would run on and keep the terminal and the log open."""
    if hasattr(os, "waitid"):  # on macOS since Python 3.13
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # there are none, and importing psutil takes longer than this
            return
    import psutil

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            # Python's resource tracker removes what the killed processes shared, and then ends by itself.
            if not any("resource_tracker" in word for word in child.cmdline()):
                child.kill()
