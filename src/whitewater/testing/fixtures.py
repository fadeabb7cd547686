"""Pytest fixtures for ``tests/conftest.py``: devices, a working directory, a web server."""

from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from distributed.protocol.pickle import dumps
from hypothesis import settings

from whitewater.engines import Device, resolve
from whitewater.engines.workers import DaskWorkers, Workers
from whitewater.errors import DeviceError

# A busy machine may be slow.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Return each device in turn; skip the GPU, with the reason, if it cannot be used."""
    try:
        return resolve(request.param)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def tasks_that_another_process_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail for tasks and results on threads that could not be sent to a worker process and back."""
    original = Workers.map

    def pickling_map(workers: Workers, function: Any, tasks: Sequence[Any], **options: Any) -> Iterator[Any]:
        dumps((function, tasks, options))
        for result in original(workers, function, tasks, **options):
            dumps(result)
            yield result

    monkeypatch.setattr(Workers, "map", pickling_map)
    monkeypatch.setattr(DaskWorkers, "map", original)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder, which is the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """Yield the address of a local web server and the folder that it serves."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path
        server.shutdown()
        thread.join()
