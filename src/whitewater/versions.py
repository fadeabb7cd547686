"""Versions of installed distributions, for records and checks."""

from importlib import metadata


def versions(*distributions: str) -> dict[str, str | None]:
    """Return the version of each distribution, or None where it is not installed."""
    return {name: _version(name) for name in distributions}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
