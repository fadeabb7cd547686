"""Installed versions of the library, made from one wheel of the checkout, and their command."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from whitewater.template.source import library_wheel


class Installed:
    """The library as an installer leaves it in a folder, apart from the checkout; its template can be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def files(self) -> Path:
        """What projects are made from."""
        return self.folder / "whitewater/template/files"

    def edit(self, path: str, old: str, new: str) -> None:
        """Put a text in the place of another, which is there once."""
        text = (self.folder / path).read_text()
        assert text.count(old) == 1
        (self.folder / path).write_text(text.replace(old, new))

    def run(self, place: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run the command in a folder."""
        return subprocess.run(
            [sys.executable, "-m", "whitewater", *arguments], cwd=place, check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip


@pytest.fixture(scope="session")
def wheel() -> tuple[str, bytes]:
    """Name and bytes of the wheel of this checkout."""
    return library_wheel()


def install(wheel: tuple[str, bytes], folder: Path) -> Installed:
    """Install a wheel into a folder."""
    folder.mkdir()
    (folder / wheel[0]).write_bytes(wheel[1])
    with zipfile.ZipFile(folder / wheel[0]) as archive:
        archive.extractall(folder)
    return Installed(folder)


@pytest.fixture(scope="session")
def installed(wheel: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """This version; nothing may be changed in it."""
    return install(wheel, tmp_path_factory.mktemp("installed") / "packages")


@pytest.fixture(scope="session")
def newer(wheel: tuple[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A version after this one: a comment in each rule file, another first line of README."""
    version = install(wheel, tmp_path_factory.mktemp("newer") / "packages")
    version.edit(
        "whitewater/template/files/workflows/common.smk", "import sys\n", "# Of a newer version.\nimport sys\n"
    )
    version.edit("whitewater/template/README.md", "# {name}\n", "# The project {name}\n")
    return version


@pytest.fixture(scope="session")
def project(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project made outside the checkout, as it was committed; nothing may be changed in it."""
    folder = tmp_path_factory.mktemp("projects")
    ended = installed.run(folder, ["new", "bikes", "--from", "minimal"])
    assert ended.returncode == 0, ended.stderr
    return folder / "bikes"
