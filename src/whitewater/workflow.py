"""What Snakefiles ask of Whitewater: the configuration, checked before any rule, and parameters of rules."""

import argparse
import atexit
import json
import math
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any

from whitewater.application import applications
from whitewater.code_digest import code_digest
from whitewater.config.resolve import Source, resolve
from whitewater.config_files import read_source
from whitewater.errors import InputError, without_secrets
from whitewater.io.places import files_of, state_of
from whitewater.io.store import read_json, size_of
from whitewater.manifest import read_manifest
from whitewater.script import ONE_THREAD

Wildcards = Any
# A core for so many bytes that a job reads: small jobs run beside each other.
BYTES_PER_CORE = 32e6
COVER = "cover"


def configuration(workflow: Any, raw: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the whole configuration of applications, complete; see `whitewater.config.resolve.resolve`.

    ``raw`` is as Snakemake merged it. Errors name the file that a key comes from, or the command line. Where a report
    is made, the sections are those of the run, and ``cover`` holds what goes into reStructuredText: HTML under the name
    of each application, and under ``<application>/<table>`` its small tables.
    """
    covers, raw = raw.get(COVER), {key: value for key, value in raw.items() if key != COVER}
    settings = workflow.config_settings
    named = [str(path) for path in settings.configfiles]
    own = [str(path) for path in workflow.configfiles if str(path) not in named]
    files = [read_source(Path(os.path.relpath(path))) for path in own + named]
    resolved = resolve(raw, names, sources=[*files, Source("--config", settings.config)])
    # Snakemake does not tell its Snakefiles that it makes a report. Its captions say what ran, whatever would run now.
    page = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    page.add_argument("--report", type=Path, nargs="?", const=Path("report.html"))
    if report := page.parse_known_args()[0].report:
        run = Path("results", resolved["run"]["name"])
        manifests = {name: run / name / resolved["device"] / "manifest.json" for name in names}
        finished = {name: manifest for name, manifest in manifests.items() if manifest.exists()}
        recorded = {name: read_manifest(manifest)["config"] for name, manifest in finished.items()}
        return resolve({**raw, **recorded}, names) | {COVER: covers or _covers(finished, resolved, report)}
    return resolved


def _covers(manifests: Mapping[str, Path], configured: Mapping[str, Any], report: Path) -> dict[str, str]:
    from whitewater.report import add_picture_texts, cover, tables

    atexit.register(add_picture_texts, report)  # Snakemake writes the report after it has read the Snakefiles
    covers = {}
    for name, manifest in manifests.items():
        shown = tables(manifest.parent)
        covers[name] = cover(manifest.parent, without_secrets(configured[name]), shown.values(), report=report)
        covers |= {f"{name}/{table}": f".. raw:: html\n\n{indent(html, '   ')}\n" for table, html in shown.items()}
    return covers


class RulesByPath:
    """Snakemake's ``rules``, but that an input is tied to the path of an output, and not to the name of its rule.

    ``use rule clean from taxi as taxi_clean with: ...`` would ask for the name without its prefix, and not find it; see
    https://github.com/snakemake/snakemake/issues/4201.
    """

    def __init__(self, rules: Any) -> None:
        self._named = rules

    def __getattr__(self, name: str) -> Any:
        rule = getattr(self._named, name)
        for path in rule.output:
            path.rule = None
        return rule


def shell_prefix(packages: Sequence[str]) -> str:
    """Return what the shell of each job does first: folders on Python's path, and one thread for BLAS and OpenMP.

    It comes after ``source activate``, and is kept by ``--sdm conda``, which unsets an exported PYTHONPATH.
    """
    path = f"PYTHONPATH={shlex.quote(':'.join(packages))}${{{{PYTHONPATH:+:$PYTHONPATH}}}} " if packages else ""
    return f"export {path}{' '.join(f'{name}={value}' for name, value in ONE_THREAD.items())}; "


def step_digest(application: str, step: str) -> Callable[[Wildcards], str]:
    """Return a parameter of a rule: the digest of its step's code, see `whitewater.code_digest`.

    Of steps that are not asked for it is not made: reading all modules takes a second.
    """

    @cache
    def digest() -> str:
        package = applications([application])[application].package
        places = import_module(package).__path__
        return code_digest(f"{package}.steps.{step}", Path(places[0]).parents[package.count(".")])

    return lambda wildcards: digest()


def by_input(least: int, *, per_core: int = 0, per_gb: int = 0) -> Callable[[Wildcards, Any, int, int], int]:
    """Return a resource of a rule: ``least``, and more for each core of a job and each GB that it reads.

    Times the attempt: a job that was killed for want of memory or time asks for twice as much when it is tried again.
    """

    def resource(wildcards: Wildcards, input: Any, threads: int, attempt: int) -> int:
        gigabytes = bytes_read(input) / 1e9 if per_gb else 0.0
        return attempt * math.ceil(least + per_core * threads + per_gb * gigabytes)

    return resource


def cores_by_input(paths: Any, *, most: int) -> int:
    """Return the cores of a job, by what it reads; ``most`` before that is there, and of a job that reads no files."""
    try:
        return max(1, min(most, math.ceil(bytes_read(paths) / BYTES_PER_CORE))) if paths else most
    except FileNotFoundError:
        return most


def bytes_read(paths: Any) -> int:
    """Return the bytes of Snakemake's ``input``: files, folders, and what a file by the name ``inputs`` lists.

    Raises FileNotFoundError, with the path as Snakemake knows it, if an input is not there yet: it asks again later.
    """
    for path in paths:
        os.stat(path)  # noqa: PTH116, of paths the error would not have the text
    total = sum(size_of(Path(path)) for path in paths)
    with suppress(InputError):  # the step says what is wrong with it
        if listed := dict(paths.items()).get("inputs"):
            total += sum(each.get("bytes", 0) for each in read_json(Path(listed))["files"])
    return total


def watched(names: Callable[[], Iterable[str]]) -> Callable[[Wildcards], list[str]]:
    """Return an input function: the local files that the paths, globs and ``file://`` URLs of ``names()`` stand for."""

    def files(wildcards: Wildcards) -> list[str]:
        # Snakemake can hold text without braces, which would be wildcards. Other names are followed by `state` alone.
        texts = (path for path in files_of(names()) if os.fsencode(path).decode("utf-8", "replace") == path)
        return [path for path in texts if not {"{", "}"} & set(path)]

    return files


def state(names: Callable[[], Iterable[str]], *sections: Any) -> Callable[[Wildcards], str]:
    """Return a parameter that changes with the files of ``names()``, older times included, or with the sections.

    The step that reads the files has it, and so does the next one. Where the reading fails, later results are still
    there, and without it Snakemake would take them for finished.
    """
    return lambda wildcards: state_of(files_of(names()), json.dumps(sections, sort_keys=True))
