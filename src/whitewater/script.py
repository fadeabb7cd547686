"""A step as a script: run by a rule's ``script:``, or by hand with flags that are made from its parameters.

A rule names each path as the step's parameter is called. Inputs without a name are only waited for, and an output
called ``record`` is the record of the run. ``params`` has ``settings``, the step's section of the configuration, and,
where the step computes on the device, ``engine``. A step without it computes on the host, by the engine of the CPU.
"""

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, get_args

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
WRITTEN, MANY = (Output, Outputs), (Inputs, Outputs)


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
    log = Path(job.log[0]) if job.log else None
    exit_fast(exit_status(lambda: _run(module, log, partial(_of_job, job))))


def run_by_hand(module: str, arguments: Sequence[str]) -> int:
    """Run the step of a module with flags, and return the exit status."""
    early = argparse.ArgumentParser(add_help=False)
    early.add_argument("--log", type=Path)
    # The log is there before anything heavy is imported, so that a failed import is in it.
    log = early.parse_known_args(list(arguments))[0].log
    return _run(module, log, partial(_of_flags, arguments, *_names(module)))


def _run(module: str, log: Path | None, given: Callable[[Callable[..., None]], argparse.Namespace]) -> int:
    """Run the step of a module with the options and the lists of paths that it is ``given``."""
    application, step = _names(module)
    with logged(log, name=f"{application} {step}", package=module.partition(".")[0]):
        function = load(f"{module}:{step}")
        options = given(function)
        cluster: Cluster = options.cluster
        run = Run(
            application=application,
            step=step,
            engine=choose({"engine": options.engine, "cluster": cluster.model_dump()}, options.device),
            device=engines.resolve(options.device, attached=cluster.attached),
            settings=options.settings,
            threads=options.threads,
            cluster_settings=cluster,
            refresh=options.refresh,
            report=log and log.with_suffix(".dask.html"),
        )
        inputs: dict[str, Any] = {}
        outputs: dict[str, Any] = {}
        for name, kind in paths_of(function).items():
            places = list(map(Path, getattr(options, name)))
            side = outputs if kind in WRITTEN else inputs
            side[name] = {each.name: each for each in places} if kind in MANY else places[0]
        execute(run, function, inputs=inputs, outputs=outputs, record=options.record and Path(options.record))
    return 0


def paths_of(function: Callable[..., None]) -> dict[str, Any]:
    """Return the kinds of the paths of a step by their names: ``Path``, ``Inputs``, ``Output`` or ``Outputs``."""
    return {name: each.annotation for name, each in inspect.signature(function).parameters.items() if name != "run"}


def _settings_of(function: Callable[..., None]) -> type[Section]:
    """Return the model of a step's settings, ``Clean`` of ``run: Run[Clean]``."""
    return get_args(inspect.signature(function).parameters["run"].annotation)[0]


def _of_job(job: Any, function: Callable[..., None]) -> argparse.Namespace:
    """Return the options and paths that a rule gives its step."""
    known = paths_of(function)
    named = {name: value for name, value in job.params.items() if name in known}
    named |= {**dict(job.input.items()), **dict(job.output.items())}
    record = named.pop("record", None)
    for name in named:
        if name not in known:
            has = f"its step has {', '.join(known)}{did_you_mean(name, known)}"
            raise ConfigError(f"rule {job.rule} names a path {name!r}, but {has}")
    if missing := [name for name in known if name not in named]:
        raise ConfigError(f"rule {job.rule} lacks the path {missing[0]!r}, which its step reads or writes")
    engine = job.params.get("engine")
    return argparse.Namespace(
        device=job.wildcards.device if engine else "cpu",
        engine=engine or job.config["engine"],
        threads=job.threads,
        settings=_settings_of(function).model_validate(job.params.get("settings", {})),
        cluster=Cluster.model_validate(job.config["cluster"]),
        refresh=job.config["refresh"],
        record=record,
        **{name: [value] if isinstance(value, str) else value for name, value in named.items()},
    )


def _of_flags(
    arguments: Sequence[str], application: str, step: str, function: Callable[..., None]
) -> argparse.Namespace:
    """Return the options and paths of a command line; a flag that does not exist is told before those that lack."""
    parser = argparse.ArgumentParser(
        prog=f"whitewater {application} {step}",
        description=function.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="where it computes (default: cpu)")
    parser.add_argument(
        "--engine", default="auto", choices=("auto", "dask", "local"), help="what runs its tasks (default: auto)"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads or worker processes (default: 1)")
    settings = partial(_settings_of(function).from_option, option="--settings")
    parser.add_argument("--settings", default="{}", type=settings, help="JSON: the step's section of the configuration")
    cluster = partial(Cluster.from_option, option="--cluster")
    parser.add_argument("--cluster", default="{}", type=cluster, help="JSON: the section cluster")
    parser.add_argument("--refresh", action="store_true", help="download again what was downloaded before")
    parser.add_argument("--log", type=Path, help="file for everything printed")
    parser.add_argument("--record", type=Path, help="file for the record: what ran where, on which inputs, how long")
    # Where the rules of the application have the outputs, by their names; outside of a checkout that is not known.
    file = Path("workflows", application, "Snakefile")
    rules = file.read_text(encoding="utf-8") if file.exists() else ""
    usual = {name: f"{top}/{path}" for name, top, path in re.findall(r'(\w+)=\D{0,11}"<(\w+)>/([^"]+)"', rules)}
    for name, kind in paths_of(function).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=Path,
            required=kind in WRITTEN or kind not in MANY,
            default=[],
            nargs=("+" if kind in WRITTEN else "*") if kind in MANY else 1,
            metavar="PATH",
            help=f"{'written' if kind in WRITTEN else 'read'}; in a run: {usual.get(name, 'see its rule')}",
        )
    known = parser._option_string_actions
    for flag in (word.partition("=")[0] for word in arguments):
        if flag.startswith("-") and flag not in known:
            parser.error(f"unknown argument {flag}{did_you_mean(flag, known)}")
    return parser.parse_args(list(arguments))


def _module(path: str) -> str:
    """Return the name of the module at a path below a folder ``src``, or at the URL of one in a repository."""
    # After @ is a tag, a branch or a commit.
    return re.sub(r".*src/([\w/]+)\.py(@.*)?", r"\1", path).replace("/", ".")


def _names(module: str) -> tuple[str, str]:
    """Return the names of application and step of the module ``<package>.<application>.steps.<step>``."""
    application, _, step = module.split(".")[-3:]
    return application, step
