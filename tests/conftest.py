"""The devices that tests run on, and which tests are slow."""

import os
import time
from collections.abc import Generator

import pytest
from hypothesis import settings

from whitewater.devices import Device, resolve
from whitewater.errors import DeviceError

# A machine that does other things as well is slow at times, which is no fault of the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; the GPU is skipped, with the reason, where there is none that can be used."""
    name: str = request.param
    try:
        return resolve(name)
    except DeviceError as error:
        pytest.skip(str(error))


# Each of these asks for one fault after another by whole commands, a few seconds each. `make test` leaves them out;
# `make test-slow` and CI run them.
SLOW_GUARANTEES = {
    "genomics": ("test_faults_of_a_bucket", "test_few_data", "test_sources"),
    "guarantees": ("test_bytes_that_are_no_text", "test_configuration", "test_downloads", "test_staleness"),
    "pagerank": ("test_duplicates", "test_edge_files", "test_faults_of_the_web", "test_names", "test_query"),
    "recsys": (
        "test_columns",
        "test_faults_of_a_log",
        "test_headline",
        "test_memory",
        "test_movielens",
        "test_times_and_labels",
    ),
    "taxi": (
        "test_bad_input",
        "test_full_disk",
        "test_input_codes",
        "test_input_columns",
        "test_input_files",
        "test_input_months",
        "test_input_times",
        "test_killed",
        "test_tips",
        "test_zones",
    ),
}
MOST_SECONDS_UNMARKED = 10
# A machine whose cores are shared with others is at times half as fast, in processor time, too.
SLOWNESS = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow guarantees."""
    for item in items:
        if "guarantees" in item.path.parts and item.path.stem in SLOW_GUARANTEES.get(item.path.parent.name, ()):
            item.add_marker(pytest.mark.slow)


def seconds_so_far() -> tuple[float, float]:
    """Return seconds of the clock, and processor seconds of this process and of the children it has waited for."""
    used = os.times()
    return time.monotonic(), used.user + used.system + used.children_user + used.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test in CI that takes more than ten seconds and is not marked slow, so that `make test` stays short.

    The lesser of time and processor time counts, for neither a loaded machine nor many cores to matter, and twice as
    much is allowed.
    """
    before = seconds_so_far()
    yield
    seconds = min(after - start for start, after in zip(before, seconds_so_far(), strict=True))
    if "CI" in os.environ and seconds > SLOWNESS * MOST_SECONDS_UNMARKED and not item.get_closest_marker("slow"):
        pytest.fail(
            f"{seconds:.0f} s: mark a test above {MOST_SECONDS_UNMARKED} s with pytest.mark.slow, or shorten it"
        )
