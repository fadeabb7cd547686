"""What a step shows while it runs, on a terminal and elsewhere."""

import fcntl
import io
import logging
import os
import pty
import re
import struct
import termios
from typing import TextIO

from whitewater.log import PROGRESS, ShortHandler


def show(stream: TextIO) -> None:
    handler = ShortHandler(stream)
    for share, message in ((0.25, "1 of 4"), (None, "read"), (0.75, "3 of 4, about 5 s to go")):
        record = logging.LogRecord("step", logging.INFO, "", 0, message, None, None)
        if share is not None:
            setattr(record, PROGRESS, share)
        handler.handle(record)
    handler.handle(logging.LogRecord("step", logging.WARNING, "", 0, "careful", None, None))


def test_elsewhere_progress_and_warnings_are_a_line_each() -> None:
    stream = io.StringIO()
    show(stream)
    assert stream.getvalue() == "1 of 4\n3 of 4, about 5 s to go\ncareful\n"


def test_on_a_terminal_progress_is_a_bar_in_one_line_that_changes() -> None:
    ours, theirs = pty.openpty()
    columns = 40
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(theirs, "w", buffering=1) as stream:
        show(stream)
        shown = ""
        while "careful" not in shown:  # a busy kernel hands it over piece by piece
            shown += os.read(ours, 10_000).decode()
    os.close(ours)
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in shown.split("\r\x1b[K")[1:]]
    bars = [line.count("━") for line in lines]
    assert [line.split("━")[0].split("╺")[0].split("╸")[0].rstrip() for line in lines] == [
        "1 of 4",
        "3 of 4, about 5 s to go",
        "careful",
    ]
    assert bars[0] > bars[1] > 0 == bars[2]  # as wide as the text leaves it
    assert max(map(len, lines[:2])) < columns
    assert "\n" not in shown.rstrip()
