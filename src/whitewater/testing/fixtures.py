"""What tests of an application may ask for: devices, a folder, a server that answers.

They are fixtures of pytest, which ``tests/conftest.py`` imports.
"""

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

# A machine that does other things as well is slow at times, which is not the code's fault.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Return each device in turn; the GPU is skipped, with the reason, where there is none that can be used."""
    try:
        return resolve(request.param)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def tasks_that_another_process_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse tasks and results on threads that could not be sent to a worker process and back."""
    do = Workers.map

    def packed(workers: Workers, function: Any, tasks: Sequence[Any], **options: Any) -> Iterator[Any]:
        dumps((function, tasks, options))
        for result in do(workers, function, tasks, **options):
            dumps(result)
            yield result

    monkeypatch.setattr(Workers, "map", packed)
    monkeypatch.setattr(DaskWorkers, "map", do)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory of a test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """Yield the address of a web server on this machine, and the folder that it serves."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path
        server.shutdown()
        thread.join()
