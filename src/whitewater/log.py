"""The log of a step: everything it prints, progress, and the traceback of what went wrong."""

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from whitewater.errors import PackageError, WhitewaterError

# In the environment of a job whose run shows one line a step and, last, the message of a step that has failed.
SHORT = "WHITEWATER_SHORT"
# Stands alone on the line before the message with which a step's log ends.
FAILED = "------ failed ------"
# Attribute of a record that tells how far a step is: the share of its tasks that are done, 0 to 1.
PROGRESS = "progress"
CLEAR_LINE = "\r\x1b[K"
BAR = 24


@contextmanager
def logged(log: Path | None, *, name: str, package: str = "whitewater") -> Iterator[None]:
    """Send all output of the process to the file ``log``; progress and one final message reach the terminal too.

    Progress is what the library and ``package`` log. A `WhitewaterError` ends the process with status 1 and its
    message; any other error also with status 1, its last line and a pointer to the log, where the traceback is.
    """
    # As sys.stderr does, it shows what it cannot encode, such as the bytes of a file's name, with backslashes.
    terminal = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    short = log is not None and SHORT in os.environ
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        # Native libraries and child processes write there as well; appending keeps the lines of an orphan of a killed
        # run from overwriting those of the next one.
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.close(target)
        handlers.append(ShortHandler(terminal) if short else logging.StreamHandler(terminal))
    for handler in handlers:
        handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s", datefmt="%H:%M:%S"))
    for logger in map(logging.getLogger, {"whitewater", package}):
        logger.handlers[:] = handlers
        logger.setLevel(logging.INFO)
        logger.propagate = False
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        reported = absent_package(error, needed_by=name) or error
        with suppress(OSError):  # the log may be on the disk that is full
            if log is not None or not isinstance(reported, WhitewaterError):
                traceback.print_exc(file=sys.stderr)
            if log is not None:
                print(f"{FAILED}\n{_message(reported, log, name=name)}", file=sys.stderr)
            sys.stderr.flush()
        if not short:
            print(_message(reported, log, name=name), file=terminal)
        raise SystemExit(1) from None
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        terminal.flush()


def absent_package(error: BaseException, *, needed_by: str) -> PackageError | None:
    """Return what tells that a package is not installed, ``needed_by`` a step or command; None of another error."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not package or package in sys.stdlib_module_names or find_spec(package):
        return None
    return PackageError(
        f"{needed_by} needs the package {package!r}, which is not installed for {sys.executable}. In a checkout, "
        f"`make run` installs it; in an environment of your own: pip install '.[{needed_by.partition(' ')[0]}]'"
    )


class ShortHandler(logging.StreamHandler[TextIO]):
    """Shows warnings, and progress as a bar in one line that changes, or a line each if this is not a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record that is one of them."""
        share: float | None = getattr(record, PROGRESS, None)
        if share is None and record.levelno < logging.WARNING:
            return
        text = self.format(record)
        if not self.stream.isatty():
            self.stream.write(f"{text}\n")
        elif share is None:
            self.stream.write(f"{CLEAR_LINE}{text}\n")
        else:
            # As wide as the terminal leaves beside the text.
            columns = os.get_terminal_size(self.stream.fileno()).columns
            width = max(1, min(BAR, columns - len(text) - 2))
            done = round(share * width)
            self.stream.write(f"{CLEAR_LINE}{text} \x1b[32m{'━' * done}\x1b[90m{'━' * (width - done)}\x1b[0m")
        self.flush()


def _message(error: BaseException, log: Path | None, *, name: str) -> str:
    if isinstance(error, WhitewaterError):
        return error.with_kind()
    if isinstance(error, KeyboardInterrupt):
        return f"{name} was interrupted and left nothing unfinished."
    what = f"{type(error).__name__}: {error}".rstrip(" :.")
    where = f" The traceback is in {log}." if log else ""
    return f"{name} failed: {what}.{where}"
