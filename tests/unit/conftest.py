"""Servers on this machine that answer, and that do not."""

import socket
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from distributed.protocol.pickle import dumps

from whitewater.step import Run
from whitewater.workers import Threads, Workers


@pytest.fixture(autouse=True)
def tasks_that_another_process_could_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse tasks and results on threads that could not be sent to a worker process and back."""
    do = Run.map

    def packed(run: Run[Any], function: Any, tasks: Sequence[Any], *, client: Workers, **options: Any) -> Iterator[Any]:
        if isinstance(client, Threads):
            dumps((function, tasks, options))
        for result in do(run, function, tasks, client=client, **options):
            if isinstance(client, Threads):
                dumps(result)
            yield result

    monkeypatch.setattr(Run, "map", packed)


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
