"""Remove what runs wrote: ``make clean``, or ``python -m whitewater.cli.clean``, which needs nothing but Python.

Removed are the outputs that records and manifests of runs list, those that the rules of the workflows name, raw files
in folders ``generated`` beside them, logs, what killed runs left, caches, and logs of clusters that have ended. A
recorded output that has changed since stays, with its record, and so does every other file. Downloads stay without
``--downloads``. Nothing outside of this folder is touched: symbolic links are not followed.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from whitewater.cli.cluster import FILE, runs
from whitewater.errors import InputError, shorten_list
from whitewater.io.store import digests, read_json

TOPS = (Path("data"), Path("results"), Path("logs"))
CACHES = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "data/benchmarks")
# What Snakemake keeps of its own, but for the environments that it made.
SNAKEMAKE, ENVIRONMENTS = Path(".snakemake"), {"conda", "conda-archive", "singularity"}
OUTPUT = re.compile(r'"<(data|results|logs)>/([^"]+)"')
LOGS = (".log", ".json", ".jsonl", ".dask.html")
# What a step `fetch` generated in the place of raw files, beside its outputs.
GENERATED = ("generated/*", "generated/.*.part")
# Unfinished outputs, signs of life, and locks; see `whitewater.io.store`.
TRACE = re.compile(r"\..+\.[0-9a-f]{16}(\.part.*|\.replaced)?|\.\w+-\w+\.owner|\.(fetch|labels)\.lock")
DOWNLOAD = re.compile(r"[0-9a-f]{12}-.*")


def main(arguments: list[str]) -> int:
    """Clean the current folder and say what stays."""
    parser = argparse.ArgumentParser(prog="whitewater clean", description=__doc__)
    parser.add_argument("--downloads", action="store_true", help="remove downloads, their pins, and crawls, too")
    options = parser.parse_args(arguments)
    if not Path("workflows").is_dir():
        raise InputError("There is no folder workflows here. Run this where the repository is.")
    recorded = _recorded()
    present = list(filter(_is_ours, recorded))
    hashes = digests(present, threads=os.cpu_count() or 1)
    changed = [path for path in present if hashes[path] != recorded[path][0]]
    # With its record, by which the next call knows it, too.
    spared = {*changed, *(recorded[path][1] for path in changed)}
    traces = (folder / name for folder, names in _folders() for name in names if TRACE.fullmatch(name))
    doomed = {*recorded, *_of_runs(), *traces, *_caches(), *(_downloads() if options.downloads else ())}
    for path in filter(_is_ours, sorted(doomed - spared)):
        remove = shutil.rmtree if path.is_dir() else Path.unlink
        remove(path)
    for folder, _ in _folders():
        if not any(folder.iterdir()):
            folder.rmdir()
    if changed:
        print(f"Changed since a run wrote them, so they stay: {shorten_list(sorted(map(str, changed)))}.")
    names = [folder / name for folder, names in _folders() if folder.name != "downloads" for name in names]
    others = [path for path in names if (path.is_symlink() or not path.is_dir()) and not spared & {path, *path.parents}]
    if others:
        print(f"No run wrote these, so they stay: {shorten_list(sorted(map(str, others)))}.")
    return 0


def _recorded() -> dict[Path, tuple[str, Path]]:
    """Return the SHA-256 of each output, and the file that lists it: a record, or else a manifest."""
    listed: dict[Path, tuple[str, Path]] = {}
    for source in (*Path("results").rglob("manifest.json"), *Path("logs").rglob("*.json")):
        # Another file of JSON may be anything.
        with suppress(InputError, AttributeError, KeyError, TypeError):
            outputs = read_json(source).get("outputs", [])
            for each in outputs.values() if isinstance(outputs, dict) else outputs:
                listed[Path(os.path.normpath(each["path"]))] = each["sha256"], source
    return {path: each for path, each in listed.items() if any(map(path.is_relative_to, TOPS))}


def _of_runs() -> Iterator[Path]:
    """Yield what the rules name, with all that a step leaves beside its log, and reports; of runs of all names."""
    snakefiles = {file.parent.name: file for file in Path("workflows").glob("*/Snakefile")}
    logs = [path.parent.name for name in snakefiles for path in Path("logs").glob(f"*/{name}") if path.is_dir()]
    for run in {"", *logs} - set(snakefiles):  # the plain run has no name
        for name, file in snakefiles.items():
            for top, path in OUTPUT.findall(file.read_text(encoding="utf-8")):
                pattern = Path(top, run, re.sub(r"\{\w+\}", "*", path.replace("{device}", "[cg]pu")))
                for suffix in LOGS if pattern.suffix == ".log" else (pattern.suffix,):
                    yield from Path().glob(str(pattern.with_suffix(suffix)))
            for each in GENERATED:
                yield from Path("data", run, name).glob(each)
        yield from (Path("results", run, folder, "report.html") for folder in ("", *snakefiles))


def _folders() -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders of runs, not through links, with what is in each; deepest first."""
    for top in TOPS:
        if not top.is_symlink():
            for folder, folders, files in os.walk(top, topdown=False):
                yield Path(folder), [*folders, *files]


def _caches() -> Iterator[Path]:
    yield from map(Path, CACHES)
    if not any(map(runs, FILE.parent.glob("*.log"))):
        yield FILE.parent
    if SNAKEMAKE.is_dir() and not SNAKEMAKE.is_symlink():
        yield from (each for each in SNAKEMAKE.iterdir() if each.name not in ENVIRONMENTS)
    for folder, folders, _ in os.walk("."):
        if "__pycache__" in folders:
            yield Path(folder, "__pycache__")
        folders[:] = [name for name in folders if not name.startswith(".venv") and name != "__pycache__"]


def _downloads() -> Iterator[Path]:
    data = Path("data")
    yield from (path for path in data.glob("*/downloads/*") if DOWNLOAD.fullmatch(path.name))
    for pattern in ("*/registry.json", "*/crawl/*.sqlite*", "*/crawl/lock"):
        yield from data.glob(pattern)


def _is_ours(path: Path) -> bool:
    """Return whether something is there, in this folder itself and not by way of a link."""
    here = Path.cwd().resolve()
    return path.exists() and not path.is_symlink() and (path.parent.resolve() / path.name).is_relative_to(here)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        sys.exit(f"InputError: {error}")
