"""A step as a script: run by a rule's ``script:``, or by hand with flags that are made from its parameters.

A rule names each path as the step's parameter is called. Inputs without a name are only waited for, and an output
called ``record`` is the record of the run. ``params`` has ``settings``, the step's section of the configuration, and,
where the step computes on the device, ``engine``. A step without it computes on the host, by the engine of the CPU.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_args

from whitewater import engines
from whitewater.application import load
from whitewater.config.base import Section
from whitewater.engines.config import Cluster, choose
from whitewater.errors import ConfigError, did_you_mean
from whitewater.log import logged
from whitewater.process import exit_fast, exit_status, start_fast
from whitewater.step import Inputs, Output, Outputs, Run, execute

# Tasks are parallel already; threads of BLAS and OpenMP besides them take turns on the same cores, and sum up
# in another order with each number of them. Snakemake sets these to the threads of the rule.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
RECORD = "record"


def main(function: Callable[..., None]) -> NoReturn:
    """Run a step for the rule whose script this is, or from the command line; end the process."""
    script = vars(sys.modules["__main__"])
    job = script.get("snakemake")
    module = _module(script["__file__"])  # that of the repository, which Snakemake runs a copy of
    if job is None:
        command = [sys.executable, "-m", "whitewater", *_names(module), *sys.argv[1:]]
        os.execve(command[0], command, os.environ | ONE_THREAD)  # noqa: S606, a list of ours; before NumPy is imported
    start_fast()
    # The step is imported by its name, by which kernels are cached, and tasks found by other processes.
    exit_fast(exit_status(lambda: _run_job(job, module)))


class Parameter(NamedTuple):
    """A path of a step: its name, whether it is written, and whether there are many of it."""

    name: str
    written: bool
    many: bool


def parameters(function: Callable[..., None]) -> list[Parameter]:
    """Return the paths of a step, from the types of its parameters."""
    kinds = {name: each.annotation for name, each in inspect.signature(function).parameters.items() if name != "run"}
    return [Parameter(name, kind in (Output, Outputs), kind in (Inputs, Outputs)) for name, kind in kinds.items()]


def settings_of(function: Callable[..., None]) -> type[Section]:
    """Return the model of a step's settings, ``Clean`` of ``run: Run[Clean]``."""
    model: type[Section] = get_args(inspect.signature(function).parameters["run"].annotation)[0]
    return model


def run_by_hand(location: str, arguments: Sequence[str]) -> int:
    """Run the step at ``module:name`` with flags, and return the exit status."""
    module = location.partition(":")[0]
    application, name = _names(module)
    early = argparse.ArgumentParser(add_help=False)
    early.add_argument("--log", type=Path)
    # The log is there before anything heavy is imported, so that a failed import is in it.
    log: Path | None = early.parse_known_args(list(arguments))[0].log
    with logged(log, name=f"{application} {name}", package=module.partition(".")[0]):
        function = load(location)
        paths = parameters(function)
        options = _parse_flags(_parser(f"{application} {name}", function.__doc__ or "", paths), arguments)
        cluster = Cluster.from_option(options.cluster, option="--cluster")
        run = Run(
            application=application,
            step=name,
            engine=choose({"engine": options.engine, "cluster": cluster.model_dump()}, options.device),
            device=engines.resolve(options.device, attached=cluster.attached),
            settings=settings_of(function).from_option(options.settings, option="--settings"),
            threads=options.threads,
            cluster_settings=cluster,
            refresh=options.refresh,
            report=log and log.with_suffix(".dask.html"),
        )
        _execute(run, function, {path.name: getattr(options, path.name) for path in paths}, options.record)
    return 0


def _run_job(job: Any, module: str) -> int:
    application, name = _names(module)
    log = Path(job.log[0]) if job.log else None
    with logged(log, name=f"{application} {name}", package=module.partition(".")[0]):
        function = load(f"{module}:{name}")
        known = [path.name for path in parameters(function)]
        named = {name: value for name, value in job.params.items() if name in known}
        named |= {**dict(job.input.items()), **dict(job.output.items())}
        record = named.pop(RECORD, None)
        engine = job.params.get("engine")
        cluster = Cluster.model_validate(job.config["cluster"])
        run = Run(
            application=application,
            step=name,
            device=engines.resolve(job.wildcards.device if engine else "cpu", attached=cluster.attached),
            engine=engine or choose(job.config, "cpu"),
            settings=settings_of(function).model_validate(job.params.get("settings", {})),
            threads=job.threads,
            cluster_settings=cluster,
            refresh=job.config["refresh"],
            report=log and log.with_suffix(".dask.html"),
        )
        _check_names(known, named, rule=job.rule)
        paths = {name: [value] if isinstance(value, str) else list(value) for name, value in named.items()}
        _execute(run, function, paths, record)
    return 0


def _execute(run: Run[Any], function: Callable[..., None], given: Mapping[str, Any], record: str | None) -> None:
    paths: tuple[dict[str, Any], dict[str, Any]] = {}, {}  # those that are read, and those that are written
    for path in parameters(function):
        places = list(map(Path, given[path.name]))
        paths[path.written][path.name] = {each.name: each for each in places} if path.many else places[0]
    execute(run, function, inputs=paths[0], outputs=paths[1], record=Path(record) if record else None)


def _check_names(known: Collection[str], named: Mapping[str, Any], *, rule: str) -> None:
    for name in named:
        if name not in known:
            has = f"its step has {', '.join(known)}{did_you_mean(name, known)}"
            raise ConfigError(f"rule {rule} names a path {name!r}, but {has}")
    if missing := [name for name in known if name not in named]:
        raise ConfigError(f"rule {rule} lacks the path {missing[0]!r}, which its step reads or writes")


def _module(path: str) -> str:
    """Return the name of the module at a path below a folder ``src``, or at the URL of one in a repository."""
    # After @ is a tag, a branch or a commit.
    return re.sub(r".*src/([\w/]+)\.py(@.*)?", r"\1", path).replace("/", ".")


def _names(module: str) -> tuple[str, str]:
    """Return the names of application and step of the module ``<package>.<application>.steps.<step>``."""
    application, _, step = module.split(".")[-3:]
    return application, step


def _parser(command: str, description: str, paths: Sequence[Parameter]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"whitewater {command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="where it computes (default: cpu)")
    parser.add_argument(
        "--engine", default="auto", choices=("auto", "dask", "local"), help="what runs its tasks (default: auto)"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads or worker processes (default: 1)")
    parser.add_argument("--settings", default="{}", help="JSON: the step's section of the configuration")
    parser.add_argument("--cluster", default="{}", help="JSON: the section cluster")
    parser.add_argument("--refresh", action="store_true", help="download again what was downloaded before")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    parser.add_argument("--record", type=Path, help="file for the record: what ran where, on which inputs, how long")
    usual = _usual_paths(command.partition(" ")[0])
    for path in paths:
        parser.add_argument(
            f"--{path.name.replace('_', '-')}",
            type=Path,
            required=path.written or not path.many,
            default=[],
            nargs=("+" if path.written else "*") if path.many else 1,
            metavar="PATH",
            help=f"{'written' if path.written else 'read'}; in a run: {usual.get(path.name, 'see its rule')}",
        )
    return parser


def _parse_flags(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse flags; one that does not exist is an error of usage, before those that are required are missed."""
    known = parser._option_string_actions
    for flag in (word.partition("=")[0] for word in arguments):
        if flag.startswith("-") and flag not in known:
            parser.error(f"unknown argument {flag}{did_you_mean(flag, known)}")
    return parser.parse_args(list(arguments))


def _usual_paths(application: str) -> dict[str, str]:
    """Return where the rules of an application have the outputs, by their names; nothing outside of a checkout."""
    file = Path("workflows", application, "Snakefile")
    rules = file.read_text(encoding="utf-8") if file.exists() else ""
    return {name: f"{top}/{path}" for name, top, path in re.findall(r'(\w+)=\D{0,11}"<(\w+)>/([^"]+)"', rules)}
