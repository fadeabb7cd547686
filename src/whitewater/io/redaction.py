"""URLs without what may be secret, for logs, records and messages."""

from __future__ import annotations

from typing import Any


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
