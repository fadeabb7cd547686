"""What steps and the run that they are part of agree on about the terminal that they share."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

# In the environment of a job: the run shows one line a step and, last, the message of a step that has failed.
SHORT = "WHITEWATER_SHORT"
# Stands alone on the line before the message with which a step's log ends.
FAILED = "------ failed ------"


def clear_line(stream: TextIO) -> str:
    """Return what removes the line of progress, which the next one replaces, from a terminal; nothing elsewhere."""
    return "\r\x1b[K" if stream.isatty() else ""


def failure_in(log: Path) -> str:
    """Return the message with which the log of a failed step ends, or nothing where there is none."""
    try:
        text = log.read_text(errors="backslashreplace")
    except OSError:
        return ""
    return text.rpartition(f"{FAILED}\n")[2].strip() if FAILED in text else ""
