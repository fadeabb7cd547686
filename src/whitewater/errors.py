"""One error type for each kind of fault. Every message says what, where, and what to do, and leaks no secret."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class WhitewaterError(Exception):
    """Base of the errors that the user sees as one message, without a traceback."""

    def with_kind(self) -> str:
        """Return the message behind its kind, which is one of the classes below even for a subclass of them."""
        kind = next(base for base in type(self).__mro__ if WhitewaterError in base.__bases__)
        return f"{kind.__name__}: {self}"


class ConfigError(WhitewaterError):
    """A key or value of the configuration cannot be used."""


class InputError(WhitewaterError):
    """An input is missing, unreadable, or in an unknown format."""


class DeviceError(WhitewaterError):
    """The requested device, or a package it needs, cannot be used on this machine."""


class PackageError(WhitewaterError):
    """A package that a step needs is not installed."""


class IntegrityError(WhitewaterError):
    """A result failed its own check: lost rows, a different checksum, an output that another run owns."""


class ResourceError(WhitewaterError):
    """The work does not fit into this machine's memory or disk."""


SHOWN = 5


def shorten_list(items: Sequence[str]) -> str:
    """Join the first items for a message, and say how many more there are."""
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the closest known name; empty if none is close."""
    matches = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def redact(url: str) -> str:
    """Return the URL without possible secrets: user, password, and the values of its query."""
    location, mark, query = url.partition("#")[0].partition("?")
    scheme, separator, rest = location.partition("://")
    host, slash, path = rest.partition("/")
    names = "&".join(f"{pair.partition('=')[0]}=..." for pair in query.split("&") if pair)
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}{mark}{names}"


def without_secrets(value: Any) -> Any:
    """Return settings in which every URL, at any depth, is passed through `redact`."""
    if isinstance(value, str):
        return redact(value) if "://" in value else value
    if isinstance(value, dict):
        return {key: without_secrets(item) for key, item in value.items()}
    return [without_secrets(item) for item in value] if isinstance(value, list) else value
