"""Remove what runs wrote: ``make clean``, or ``python -m whitewater.cli.clean``, which needs only Python.

It removes outputs that are listed in records and manifests or named in the rules of the workflows, generated raw files,
logs, leftovers of killed runs, caches, and logs of clusters that have ended. A recorded output that was changed later
is kept with its record, and so is every other file. Downloads are kept unless ``--downloads`` is given. Symbolic links
are not followed, so nothing outside of this folder is touched.
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
# Snakemake's own files; the environments that it built are kept.
SNAKEMAKE, ENVIRONMENTS = Path(".snakemake"), {"conda", "conda-archive", "singularity"}
OUTPUT = re.compile(r'"<(data|results|logs)>/([^"]+)"')
LOGS = (".log", ".json", ".jsonl", ".dask.html")
# Unfinished outputs, owner files, and locks; see `whitewater.io.store`.
TRACE = re.compile(r"\..+\.[0-9a-f]{16}(\.part.*|\.replaced)?|\.\w+-\w+\.owner|\.(fetch|labels)\.lock")


def main(arguments: list[str]) -> int:
    """Clean the current folder and list the files that are kept."""
    parser = argparse.ArgumentParser(prog="whitewater clean", description=__doc__)
    parser.add_argument("--downloads", action="store_true", help="remove downloads, their pins, and crawls, too")
    options = parser.parse_args(arguments)
    if not Path("workflows").is_dir():
        raise InputError("There is no folder workflows here. Run this in the folder of the project.")
    recorded = _read_outputs()
    present = list(filter(_is_ours, recorded))
    hashes = digests(present, threads=os.cpu_count() or 1)
    changed = [path for path in present if hashes[path] != recorded[path][0]]
    # Keep the record too: the next call needs it to recognize the file.
    kept = {*changed, *(recorded[path][1] for path in changed)}
    traces = (folder / name for folder, names in _walk() for name in names if TRACE.fullmatch(name))
    removable = {*recorded, *_rule_outputs(), *traces, *_caches(), *(_downloads() if options.downloads else ())}
    for path in filter(_is_ours, sorted(removable - kept)):
        remove = shutil.rmtree if path.is_dir() else Path.unlink
        remove(path)
    for folder, _ in _walk():
        if not any(folder.iterdir()):
            folder.rmdir()
    if changed:
        print(f"Changed since a run wrote them, so they stay: {shorten_list(sorted(map(str, changed)))}.")
    paths = [folder / name for folder, names in _walk() if folder.name != "downloads" for name in names]
    foreign = [path for path in paths if (path.is_symlink() or not path.is_dir()) and not kept & {path, *path.parents}]
    if foreign:
        print(f"No run wrote these, so they stay: {shorten_list(sorted(map(str, foreign)))}.")
    return 0


def _read_outputs() -> dict[Path, tuple[str, Path]]:
    """Return the SHA-256 of each recorded output, and the record or manifest that lists it."""
    recorded: dict[Path, tuple[str, Path]] = {}
    for source in (*Path("results").rglob("manifest.json"), *Path("logs").rglob("*.json")):
        # Other JSON files may have any content.
        with suppress(InputError, AttributeError, KeyError, TypeError):
            outputs = read_json(source).get("outputs", [])
            for output in outputs.values() if isinstance(outputs, dict) else outputs:
                recorded[Path(os.path.normpath(output["path"]))] = output["sha256"], source
    return {path: entry for path, entry in recorded.items() if any(map(path.is_relative_to, TOPS))}


def _rule_outputs() -> Iterator[Path]:
    """Yield the outputs, logs and generated files of the rules, and the reports, for runs of all names."""
    snakefiles = {file.parent.name: file for file in Path("workflows").glob("*/Snakefile")}
    logs = [path.parent.name for name in snakefiles for path in Path("logs").glob(f"*/{name}") if path.is_dir()]
    for run in {"", *logs} - set(snakefiles):  # the plain run has no name
        for name, file in snakefiles.items():
            for top, path in OUTPUT.findall(file.read_text(encoding="utf-8")):
                output = Path(top, run, re.sub(r"\{\w+\}", "*", path.replace("{device}", "[cg]pu")))
                for suffix in LOGS if output.suffix == ".log" else (output.suffix,):
                    yield from Path().glob(str(output.with_suffix(suffix)))
            for pattern in ("generated/*", "generated/.*.part"):  # raw files that a step `fetch` simulated
                yield from Path("data", run, name).glob(pattern)
        yield from (Path("results", run, folder, "report.html") for folder in ("", *snakefiles))


def _walk() -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders of runs with the names in them, deepest first, without following links."""
    for top in TOPS:
        if not top.is_symlink():
            for folder, folders, files in os.walk(top, topdown=False):
                yield Path(folder), [*folders, *files]


def _caches() -> Iterator[Path]:
    yield from map(Path, CACHES)
    if not any(map(runs, FILE.parent.glob("*.log"))):
        yield FILE.parent
    if SNAKEMAKE.is_dir() and not SNAKEMAKE.is_symlink():
        yield from (path for path in SNAKEMAKE.iterdir() if path.name not in ENVIRONMENTS)
    for folder, folders, _ in os.walk("."):
        if "__pycache__" in folders:
            yield Path(folder, "__pycache__")
        folders[:] = [name for name in folders if not name.startswith(".venv") and name != "__pycache__"]


def _downloads() -> Iterator[Path]:
    data = Path("data")
    yield from (path for path in data.glob("*/downloads/*") if re.fullmatch(r"[0-9a-f]{12}-.*", path.name))
    for pattern in ("*/registry.json", "*/crawl/*.sqlite*", "*/crawl/lock"):
        yield from data.glob(pattern)


def _is_ours(path: Path) -> bool:
    """Tell whether a path exists inside this folder, not through a symbolic link."""
    here = Path.cwd().resolve()
    return path.exists() and not path.is_symlink() and (path.parent.resolve() / path.name).is_relative_to(here)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        sys.exit(f"InputError: {error}")
