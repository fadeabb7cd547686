"""The devices that tests run on, servers that answer and that do not, and how long a test may take."""

import os
import socket
import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from distributed.protocol.pickle import dumps
from hypothesis import settings

from whitewater.engines import Device, resolve
from whitewater.engines.workers import Threads
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


@pytest.fixture(autouse=True)
def tasks_that_another_process_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse tasks and results on threads that could not be sent to a worker process and back."""
    do = Threads.map

    def packed(workers: Threads, function: Any, tasks: Sequence[Any], **options: Any) -> Iterator[Any]:
        dumps((function, tasks, options))
        for result in do(workers, function, tasks, **options):
            dumps(result)
            yield result

    monkeypatch.setattr(Threads, "map", packed)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """Address of a web server on this machine, and the folder that it serves."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path
        server.shutdown()
        thread.join()


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


MOST_SECONDS_UNMARKED = 10
# A machine whose cores are shared with others is at times half as fast, in processor time, too.
SLOWNESS = 2


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
