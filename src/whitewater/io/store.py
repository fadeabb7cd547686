"""Atomic outputs and checksums.

A run writes beside the final paths and renames at its end. Two locks (`flock`, which the kernel releases however a
process dies) keep runs apart. The *owner* file names the newest run, so that an orphan of a killed run cannot overwrite
its outputs. Each run holds a lock on its *life* file, so that the next run removes the leftovers of dead runs only.
"""

import errno
import fcntl
import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from whitewater.errors import ConfigError, InputError, IntegrityError, ResourceError

logger = logging.getLogger(__name__)

TIMESTAMP = ".snakemake_timestamp"  # Snakemake leaves it in output directories; it is not part of the result
_FULL = {
    errno.ENOSPC: "the disk is full ({error}; {free})",
    errno.EDQUOT: "the disk quota is used up ({error})",
    errno.EFBIG: "the limit on the size of a file is reached ({error}; see ulimit -f)",
}


@contextmanager
def stage_outputs(outputs: Mapping[str, Path], *, owner: Path) -> Iterator[dict[str, Path]]:
    """Yield a path to write for each output; on success check, synchronize and rename all, else remove them.

    ``outputs`` are the final paths of files and directories; their parents are created. They are renamed in this order,
    so a record that vouches for the others comes last. ``owner`` is the file that names the newest run of these
    outputs. Each path is hidden, does not exist yet, and has the directory and the suffix of its output.

    Raises IntegrityError if an output is missing, empty or cannot be renamed, or a newer run has begun; and
    ResourceError if the disk, a quota or the limit on file sizes is exhausted.
    """
    token = secrets.token_hex(8)
    paths = {name: _staging(path, token) for name, path in outputs.items()}
    with _life(owner, token, outputs), _explain_errors(outputs, only_full=True):
        yield dict(paths)
        with _explain_errors(outputs):
            for name, path in paths.items():
                if not path.exists():
                    raise IntegrityError(f"The step ended without writing {outputs[name]}. Report this as a bug.")
                if not (_files(path) if path.is_dir() else path.stat().st_size):
                    raise IntegrityError(f"The step wrote {outputs[name]} empty. Report this as a bug.")
                _synchronize(path)
            _commit(paths, outputs, owner=owner, token=token)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file or directory in hexadecimal; for a directory, it is what this command prints there.

    ``find . -type f ! -name .snakemake_timestamp | LC_ALL=C sort | xargs sha256sum | sha256sum``
    """
    return digests([path], threads=1)[path]


def digests(paths: Sequence[Path], *, threads: int) -> dict[Path, str]:
    """Return the `sha256` of each path; ``threads`` threads read the files."""
    files = [file for path in paths for file in (_files(path) if path.is_dir() else [path])]
    with ThreadPoolExecutor(threads) as pool:
        hashes = dict(zip(files, pool.map(_digest, files), strict=True))
    for path in filter(Path.is_dir, paths):
        listing = "".join(f"{hashes[file]}  ./{file.relative_to(path).as_posix()}\n" for file in _files(path))
        hashes[path] = hashlib.sha256(listing.encode()).hexdigest()
    return {path: hashes[path] for path in paths}


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a directory."""
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, keys sorted. Raises IntegrityError for NaN or infinity, which JSON lacks."""
    try:
        data = json_bytes(value) + b"\n"
    except ValueError as error:
        raise IntegrityError(f"{path}: a value is not a finite number ({error}). Report this as a bug.") from error
    write_bytes(path, data)


def json_bytes(value: Any) -> bytes:
    """Return the bytes that `write_json` writes, without the final newline."""
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False).encode()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably; parent directories are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = _staging(path, secrets.token_hex(8))
    try:
        with _explain_errors({path.name: path}, only_full=True):
            staging.write_bytes(data)
            put_in_place(staging, path)
    finally:
        _remove(staging)


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file atomically, so that a task that runs twice cannot leave a partial one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = unfinished_path(path)
    write(staging)
    staging.replace(path)


def unfinished_path(path: Path) -> Path:
    """Return the hidden path of a file of a data set that this process writes, until it is whole and renamed."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def remove_unfinished(data_set: Path) -> None:
    """Remove the files with an `unfinished_path`, which are left when a worker is killed."""
    for path in data_set.rglob(".*"):
        path.unlink()


def read_json(path: Path) -> Any:
    """Read JSON. Raises InputError if the file is missing, unreadable or not JSON."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a readable JSON file: {error}. Remove it and run again.") from error


def check_format(path: Path, version: object, readable: int, *, remedy: str, writer: str = "") -> None:
    """Raise InputError unless a path has the ``readable`` format; ``writer`` is the version that wrote it."""
    if isinstance(version, int) and version > readable:
        remedy = f"A newer version of Whitewater wrote it{writer}: use that one."
    if version != readable:
        raise InputError(f"{path} has format {version}; this version reads {readable}. {remedy}")


def put_in_place(staging: Path, final: Path) -> None:
    """Synchronize a finished file to disk and rename it to its final name, on the same file system."""
    _synchronize(staging)
    staging.replace(final)
    _fsync(final.parent)


def check_replaceable(directory: Path, *, sign: str) -> None:
    """Raise ConfigError if an output folder holds anything but an earlier output, which has a file ``sign``."""
    is_replaceable = not os.path.lexists(directory) or (directory / sign).is_file()
    if not is_replaceable and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(
            f"{directory} exists and would be replaced with everything in it, but it has no {sign}, as outputs of this "
            "kind have. Name another folder, or remove it."
        )


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if missing; wait while another process holds it."""
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("waiting for another process, which holds %s", path)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _life(owner: Path, token: str, outputs: Mapping[str, Path]) -> Iterator[None]:
    """Take over the outputs, remove what dead runs left of them, and hold a lock as a sign of life."""
    dead = []
    with ExitStack() as stack:
        with _explain_errors(outputs):
            for directory in {owner.parent, *(path.parent for path in outputs.values())}:
                directory.mkdir(parents=True, exist_ok=True)
            # All under the owner's lock: no other run sees a life file that is not locked yet.
            with owner.open("a+b", buffering=0) as register:
                fcntl.flock(register, fcntl.LOCK_EX)
                for life in sorted(owner.parent.glob(f"{owner.name}.*")):
                    with suppress(BlockingIOError, FileNotFoundError), life.open("r+b") as sign:
                        # Succeeds only if the process is gone.
                        fcntl.flock(sign, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        _remove_traces(life, outputs)
                        dead.append(life)
                own = owner.with_name(f"{owner.name}.{token}")
                fcntl.flock(stack.enter_context(own.open("xb")), fcntl.LOCK_EX)
                register.truncate(0)
                register.write(token.encode())
        try:
            yield
        finally:
            # Also of the dead once more: their tasks on a cluster may have gone on writing.
            for life in (own, *dead):
                _remove_traces(life, outputs)


def _remove_traces(life: Path, outputs: Mapping[str, Path]) -> None:
    """Remove what a run left behind; if that fails, its life file stays, so that the next run tries again."""
    token = life.name.rpartition(".")[2]
    with suppress(OSError):
        for final in outputs.values():
            _remove(_staging(final, token))
            _remove(_replaced(final, token))
        _remove(life)


def _commit(paths: Mapping[str, Path], outputs: Mapping[str, Path], *, owner: Path, token: str) -> None:
    with owner.open("r+b") as register:
        fcntl.flock(register, fcntl.LOCK_EX)
        if register.read().decode() != token:
            raise IntegrityError(
                f"A newer run of the same step has begun, so this one leaves {_names(outputs)} to it. "
                "Wait for the newer run to end."
            )
        for name, path in paths.items():
            final, replaced = outputs[name], _replaced(outputs[name], token)
            if final.is_dir() and not final.is_symlink():
                final.rename(replaced)
            path.replace(final)
            _fsync(final.parent)
            _remove(replaced)


@contextmanager
def _explain_errors(outputs: Mapping[str, Path], *, only_full: bool = False) -> Iterator[None]:
    """Explain errors of the operating system; with ``only_full``, only those of exhausted space."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            disks = sorted({path.parent for path in outputs.values()})
            free = ", ".join(f"{shutil.disk_usage(disk).free:,} bytes free in {disk}" for disk in disks)
            raise ResourceError(f"{_names(outputs)}: {_FULL[error.errno].format(error=error, free=free)}. Nothing "
                                "unfinished was left. Free space or write to another disk, then run again."
                                ) from error  # fmt: skip
        if only_full:
            raise
        raise IntegrityError(f"{_names(outputs)} cannot be written: {error}. Check that the directory exists and may "
                             "be written, then run again.") from error  # fmt: skip


def _staging(final: Path, token: str) -> Path:
    return final.with_name(f".{final.name}.{token}.part{final.suffix}")


def _replaced(final: Path, token: str) -> Path:
    return final.with_name(f".{final.name}.{token}.replaced")


def _names(outputs: Mapping[str, Path]) -> str:
    return ", ".join(map(str, outputs.values()))


def _files(directory: Path) -> list[Path]:
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != TIMESTAMP]
    return sorted(files, key=lambda path: os.fsencode(path.relative_to(directory).as_posix()))


def _digest(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _synchronize(path: Path) -> None:
    for part in [*path.rglob("*"), path]:
        _fsync(part)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
