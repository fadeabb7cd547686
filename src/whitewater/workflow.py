"""Functions for Snakefiles: the configuration, validated before any rule, and parameters of rules."""

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
BYTES_PER_CORE = 32e6  # of the input of a job; small jobs then run beside each other
COVER = "cover"


def configuration(workflow: Any, raw: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the complete configuration of applications; see `whitewater.config.resolve.resolve`.

    ``raw`` is as Snakemake merged it. Errors name the file that a key comes from, or the command line. For a report,
    the sections are those of the finished run, and ``cover`` has the parts of its captions: the HTML cover of each
    application under its name, and its small tables under ``<application>/<table>``.
    """
    covers, raw = raw.get(COVER), {key: value for key, value in raw.items() if key != COVER}
    settings = workflow.config_settings
    overrides = [str(path) for path in settings.configfiles]
    defaults = [str(path) for path in workflow.configfiles if str(path) not in overrides]
    files = [read_source(Path(os.path.relpath(path))) for path in defaults + overrides]
    resolved = resolve(raw, names, sources=[*files, Source("--config", settings.config)])
    # Snakemake does not tell its Snakefiles that it makes a report. Captions describe the run that made the results.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--report", type=Path, nargs="?", const=Path("report.html"))
    if report := parser.parse_known_args()[0].report:
        run = Path("results", resolved["run"]["name"])
        manifests = {name: run / name / resolved["device"] / "manifest.json" for name in names}
        finished = {name: manifest for name, manifest in manifests.items() if manifest.exists()}
        recorded = {name: read_manifest(manifest)["config"] for name, manifest in finished.items()}
        return resolve({**raw, **recorded}, names) | {COVER: covers or _make_covers(finished, resolved, report)}
    return resolved


def _make_covers(manifests: Mapping[str, Path], configured: Mapping[str, Any], report: Path) -> dict[str, str]:
    from whitewater.report import add_picture_texts, cover, tables

    atexit.register(add_picture_texts, report)  # Snakemake writes the report after it has read the Snakefiles
    covers = {}
    for name, manifest in manifests.items():
        small = tables(manifest.parent)
        covers[name] = cover(manifest.parent, without_secrets(configured[name]), small.values(), report=report)
        covers |= {f"{name}/{table}": f".. raw:: html\n\n{indent(html, '   ')}\n" for table, html in small.items()}
    return covers


class RulesByPath:
    """Snakemake's ``rules``, except that an input depends on the path of an output, not on the name of its rule.

    ``use rule clean from taxi as taxi_clean with: ...`` would look for the name without its prefix and fail, see
    https://github.com/snakemake/snakemake/issues/4201.
    """

    def __init__(self, rules: Any) -> None:
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        rule = getattr(self._rules, name)
        for path in rule.output:
            path.rule = None
        return rule


def shell_prefix(packages: Sequence[str]) -> str:
    """Return the shell prefix of each job, which sets PYTHONPATH and limits BLAS and OpenMP to one thread."""
    # It runs after ``source activate`` of ``--sdm conda``, which unsets an exported PYTHONPATH.
    path = f"PYTHONPATH={shlex.quote(':'.join(packages))}${{{{PYTHONPATH:+:$PYTHONPATH}}}} " if packages else ""
    return f"export {path}{' '.join(f'{name}={value}' for name, value in ONE_THREAD.items())}; "


def step_digest(application: str, step: str) -> Callable[[Wildcards], str]:
    """Return a parameter of a rule: the digest of its step's code, see `whitewater.code_digest`."""

    @cache  # and lazy: digests of all steps would take a second
    def digest() -> str:
        package = applications([application])[application].package
        folder = Path(import_module(package).__path__[0])
        return code_digest(f"{package}.steps.{step}", folder.parents[package.count(".")])

    return lambda wildcards: digest()


def by_input(least: int, *, per_core: int = 0, per_gb: int = 0) -> Callable[[Wildcards, Any, int, int], int]:
    """Return a resource of a rule: ``least``, plus an amount for each core of the job and each GB of its input."""

    def resource(wildcards: Wildcards, input: Any, threads: int, attempt: int) -> int:
        gigabytes = bytes_read(input) / 1e9 if per_gb else 0.0
        # A job killed for lack of memory or time asks for twice as much the second time.
        return attempt * math.ceil(least + per_core * threads + per_gb * gigabytes)

    return resource


def cores_by_input(paths: Any, *, most: int) -> int:
    """Return the cores of a job by the size of its input; ``most`` if it reads no files, or they do not exist yet."""
    try:
        return max(1, min(most, math.ceil(bytes_read(paths) / BYTES_PER_CORE))) if paths else most
    except FileNotFoundError:
        return most


def bytes_read(paths: Any) -> int:
    """Return the bytes of Snakemake's ``input``: its files and folders, and the files listed in the file ``inputs``."""
    for path in paths:
        # If it does not exist yet, Snakemake asks again, provided that the error has the path as Snakemake spells it.
        os.stat(path)  # noqa: PTH116, a Path would change the spelling
    total = sum(size_of(Path(path)) for path in paths)
    with suppress(InputError):  # the step reports it
        if listing := dict(paths.items()).get("inputs"):
            total += sum(file.get("bytes", 0) for file in read_json(Path(listing))["files"])
    return total


def watch_files(names: Callable[[], Iterable[str]]) -> Callable[[Wildcards], list[str]]:
    """Return an input function: the local files that match the paths, globs and ``file://`` URLs of ``names()``."""

    def files(wildcards: Wildcards) -> list[str]:
        # Snakemake's inputs must be valid text without braces, which are wildcards. `state` alone follows other names.
        texts = (path for path in files_of(names()) if os.fsencode(path).decode("utf-8", "replace") == path)
        return [path for path in texts if not {"{", "}"} & set(path)]

    return files


def state(names: Callable[[], Iterable[str]], *sections: Any) -> Callable[[Wildcards], str]:
    """Return a parameter that changes with the sections or the files of ``names()``, even to older time stamps.

    The step that reads the files has it, and the next one too: if reading fails, results of the next step still exist,
    and Snakemake would take them for finished.
    """
    return lambda wildcards: state_of(files_of(names()), json.dumps(sections, sort_keys=True))
