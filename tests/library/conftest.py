"""The application of the tests' own, declared as an installed package would."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from whitewater import application


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Declare the tiny application, one whose package is missing, and no other."""
    places = {"tiny": "tests.library.tiny_application:TINY", "broken": "tests.library.no_application:BROKEN"}
    entry_points = [EntryPoint(name, place, application.GROUP) for name, place in places.items()]
    with monkeypatch.context() as patched:
        patched.setattr(application, "entry_points", lambda group: entry_points)
        application.find_entry_points.cache_clear()
        yield
    application.find_entry_points.cache_clear()
