"""Whether inputs answer: the first byte of each place that a source names is really read."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from whitewater import __version__
from whitewater.errors import InputError

USER_AGENT = f"whitewater/{__version__}"


def unreachable(places: Iterable[str], *, anonymous: bool, seconds: float) -> dict[str, str]:
    """Return why each place that did not yield a byte in time did not; empty when all answered.

    Parameters
    ----------
    places
        Paths, globs or URLs of any protocol that fsspec knows. Of a glob, the first match is read.
    anonymous
        Read ``gs://`` and ``s3://`` without credentials.
    seconds
        How long all places together may take.
    """
    pending = set(places)
    answers: queue.Queue[tuple[str, str]] = queue.Queue()
    for place in pending:
        # A daemon, because a client that hangs must not keep the process from ending.
        threading.Thread(target=_try, args=(place, anonymous, seconds, answers), daemon=True).start()
    problems: dict[str, str] = {}
    deadline = time.monotonic() + seconds
    while pending:
        try:
            place, problem = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return problems | dict.fromkeys(sorted(pending), f"no answer within {seconds:g} s")
        pending.discard(place)
        if problem:
            problems[place] = problem
    return problems


def first_byte(place: str, *, anonymous: bool, seconds: float) -> None:
    """Read the first byte of a file, or of the first match of a glob.

    Raises
    ------
    InputError
        If nothing matches, or what matches is empty. Other failures are those of the place's protocol.
    """
    import fsspec

    filesystem, path = fsspec.core.url_to_fs(place, **_options(place, anonymous=anonymous, seconds=seconds))
    # A question mark is left alone: in a URL it starts the query.
    matches = sorted(filesystem.glob(path)) if "*" in path else [path]
    if not matches:
        raise InputError("no file matches")
    if not filesystem.cat_file(matches[0], start=0, end=1):
        raise InputError("the file is empty")


def _try(place: str, anonymous: bool, seconds: float, answers: queue.Queue[tuple[str, str]]) -> None:
    try:
        first_byte(place, anonymous=anonymous, seconds=seconds)
    except Exception as error:  # every protocol has errors of its own, and each is an answer
        answers.put((place, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__))
    else:
        answers.put((place, ""))


def _options(place: str, *, anonymous: bool, seconds: float) -> Mapping[str, Any]:
    """Return what the protocol's fsspec implementation is told."""
    protocol = place.partition("://")[0]
    if protocol in {"http", "https"}:
        from aiohttp import ClientTimeout

        return {"client_kwargs": {"headers": {"User-Agent": USER_AGENT}, "timeout": ClientTimeout(total=seconds)}}
    if protocol in {"gs", "gcs"} and anonymous:
        return {"token": "anon"}
    if protocol in {"s3", "s3a"} and anonymous:
        return {"anon": True}
    return {}
