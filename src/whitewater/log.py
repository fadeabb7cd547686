"""The log of a step: everything it prints, its progress, and the traceback of its failure."""

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

# Environment variable of jobs of a run that shows one line for each step and, last, the messages of failed steps.
SHORT = "WHITEWATER_SHORT"
# The line before the final message in the log of a failed step.
FAILED = "------ failed ------"
# Attribute of a log record: the fraction of the step's tasks that are done, 0 to 1.
PROGRESS = "progress"
CLEAR_LINE = "\r\x1b[K"


@contextmanager
def log_output(log: Path | None, *, name: str, package: str = "whitewater") -> Iterator[None]:
    """Send all output of the process to the file ``log``; progress and one final message go to the terminal too.

    Progress is what the library and ``package`` log. Any error ends the process with status 1: a `WhitewaterError` with
    its message, another with its last line and the path of the log, which has the traceback.
    """
    # Like sys.stderr, escape what cannot be encoded, such as bytes in file names.
    terminal = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    short = log is not None and SHORT in os.environ
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        # Native libraries and child processes write here too. With O_APPEND, an orphan of a killed run does not
        # overwrite lines of the next run.
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
        with suppress(OSError):  # the full disk may be that of the log
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
    """Return a PackageError if ``error`` means that ``needed_by`` needs a package that is not installed, else None."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if not package or package in sys.stdlib_module_names or find_spec(package):
        return None
    return PackageError(
        f"{needed_by} needs the package {package!r}, which is not installed for {sys.executable}. In a checkout, "
        f"`make run` installs it; in an environment of your own: pip install '.[{needed_by.partition(' ')[0]}]'"
    )


class ShortHandler(logging.StreamHandler[TextIO]):
    """Shows warnings and progress only: progress as one bar on a terminal, as lines in a file."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning or the progress."""
        share: float | None = getattr(record, PROGRESS, None)
        if share is None and record.levelno < logging.WARNING:
            return
        text = self.format(record)
        if not self.stream.isatty():
            self.stream.write(f"{text}\n")
        elif share is None:
            self.stream.write(f"{CLEAR_LINE}{text}\n")
        else:
            columns = os.get_terminal_size(self.stream.fileno()).columns
            width = max(1, min(24, columns - len(text) - 2))
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
