"""One error type for each kind of fault. Every message says what, where, and what to do, and tells no secret."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class WhitewaterError(Exception):
    """Base of the errors that are shown to the user as one message, without a traceback."""

    def with_kind(self) -> str:
        """Return the message after its kind of fault: the class below that the error is of, or is a special case of."""
        kind = next(each for each in type(self).__mro__ if WhitewaterError in each.__bases__)
        return f"{kind.__name__}: {self}"


class ConfigError(WhitewaterError):
    """A key or value of the configuration cannot be used."""


class InputError(WhitewaterError):
    """An input is missing, unreadable, or not of a form that is understood."""


class DeviceError(WhitewaterError):
    """The requested device, or a package it needs, is not usable on this machine."""


class PackageError(WhitewaterError):
    """A package that a step needs is not installed."""


class IntegrityError(WhitewaterError):
    """A result failed its own check: rows lost, a checksum that differs, an output that another run owns."""


class ResourceError(WhitewaterError):
    """The work does not fit into this machine's memory or disk."""


SHOWN = 5


def shorten_list(items: Sequence[str]) -> str:
    """Return the first items as text for a message, and how many more there are."""
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message that offers the nearest of the known names, or nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def redact(url: str) -> str:
    """Return the URL without what may be secret: user, password, and the values in its query."""
    location, mark, query = url.partition("#")[0].partition("?")
    scheme, separator, rest = location.partition("://")
    host, slash, path = rest.partition("/")
    names = "&".join(f"{pair.partition('=')[0]}=..." for pair in query.split("&") if pair)
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}{mark}{names}"


def without_secrets(value: Any) -> Any:
    """Return settings with every URL in them `redact`, at any depth."""
    if isinstance(value, str):
        return redact(value) if "://" in value else value
    if isinstance(value, dict):
        return {key: without_secrets(item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list) else value
