"""Where templates and the library come from: a checkout, or its wheel, which brings their files along.

A template is an application itself: its package, its workflow, its tests, and what this repository has around them.
"""

import base64
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

from whitewater.application import Application, applications, in_project
from whitewater.errors import ConfigError

# What an installer adds to the files of a wheel.
INSTALLED = {"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json", "RECORD"}
HERE = Path(__file__).parent
IN_WHEEL = HERE / "files"
CHECKOUT = Path(__file__).parents[3]


def root() -> Path:
    """Return the folder that holds what is rendered: a checkout, or what ``envs/build_hook.py`` put into the wheel."""
    return IN_WHEEL if IN_WHEEL.is_dir() else CHECKOUT


def templates() -> dict[str, Application]:
    """Return the applications that a project can be made from, by name."""
    return {name: each for name, each in applications(in_project(root())).items() if each.steps}


def package_folder(application: Application) -> Path:
    """Return the folder of an application's package."""
    return Path(sys.modules[application.package].__path__[0])


def files_below(folder: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder, sorted, without what Python and editors leave there."""
    for path in [folder, *sorted(folder.rglob("*"))]:
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints", ".snakemake"} & set(path.parts):
            yield path


def library_wheel() -> tuple[str, bytes]:
    """Return the file name and the bytes of the wheel of this library, for the `vendor/` folder of a project.

    It is built from the checkout, or packed from what is installed: equal files give an equal wheel, so that an update
    that changes nothing is none.

    Raises ConfigError if it is a checkout and Hatchling is not installed, or fails.
    """
    files = _built() if root() == CHECKOUT else {
        str(PurePosixPath(file)): file.read_binary()
        for file in distribution("whitewater").files or []
        if file.suffix != ".pyc" and ".." not in file.parts and file.name not in INSTALLED
    }  # fmt: skip
    information = next(name for name in files if name.endswith(".dist-info/METADATA")).split("/")[0]
    record = f"{information}/RECORD"
    lines = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    # Sorted, not compressed, and all of the earliest time that a wheel can tell: that of a new entry.
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in [*sorted(files.items()), (record, "".join([*lines, f"{record},,\n"]).encode())]:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return f"{information.removesuffix('.dist-info')}-py3-none-any.whl", buffer.getvalue()


def _built() -> dict[str, bytes]:
    """Build the checkout and return the files of its wheel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        ended = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise ConfigError(
                f"the wheel of {CHECKOUT} could not be built: {ended.stderr.strip()} Use the environment that `make` "
                "sets up, which has Hatchling."
            )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}
