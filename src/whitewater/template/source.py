"""Where templates and the library come from: a checkout, or an installed wheel, which includes their files.

A template is simply an application: its package, workflow and tests, with the files that all projects share.
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

# Files that an installer adds to those of a wheel.
INSTALLED = {"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json", "RECORD"}
HERE = Path(__file__).parent
IN_WHEEL = HERE / "files"
CHECKOUT = Path(__file__).parents[3]


def root() -> Path:
    """Return the folder of the template files: the checkout, or what ``envs/build_hook.py`` put in the wheel."""
    return IN_WHEEL if IN_WHEEL.is_dir() else CHECKOUT


def templates() -> dict[str, Application]:
    """Return the applications that a project can be made from, by name."""
    known = applications(in_project(root()))
    return {name: application for name, application in known.items() if application.steps}


def package_folder(application: Application) -> Path:
    """Return the folder of an application's package."""
    return Path(sys.modules[application.package].__path__[0])


def files_below(folder: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder, sorted, without caches of Python, Jupyter and Snakemake."""
    for path in [folder, *sorted(folder.rglob("*"))]:
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints", ".snakemake"} & set(path.parts):
            yield path


def library_wheel() -> tuple[str, bytes]:
    """Return name and bytes of the library's wheel, built from the checkout or repacked from the installed files."""
    files = _build_wheel() if root() == CHECKOUT else {
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
    # Sorted, uncompressed, and with ZipInfo's default time: equal files give equal bytes, so updates see no change.
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in [*sorted(files.items()), (record, "".join([*lines, f"{record},,\n"]).encode())]:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return f"{information.removesuffix('.dist-info')}-py3-none-any.whl", buffer.getvalue()


def _build_wheel() -> dict[str, bytes]:
    """Build the wheel of the checkout and return its files, or raise ConfigError if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        process = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        if process.returncode:
            raise ConfigError(
                f"the wheel of {CHECKOUT} could not be built: {process.stderr.strip()} Use the environment that `make` "
                "sets up, which has Hatchling."
            )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}
