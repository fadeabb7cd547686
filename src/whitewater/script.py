"""A step as a script: run by a rule's ``script:``, or by hand with flags made from the step's parameters.

A rule names its inputs and outputs like the parameters of the step. Unnamed inputs only set the order of rules; the
output ``record`` is the record of the run. ``params`` has ``settings``, the step's section of the configuration, and
``engine`` if the step computes on the device. Without ``engine`` it computes on the host.
"""

import argparse
import faulthandler
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
from whitewater.engines.config import Cluster, choose_engine
from whitewater.errors import ConfigError, did_you_mean
from whitewater.log import log_output
from whitewater.process import exit_fast, exit_status, start_fast
from whitewater.step import Inputs, Output, Outputs, Run, execute

# Tasks already run in parallel. BLAS and OpenMP threads on top would compete for the same cores, and their number
# changes the order of sums. Snakemake would set these variables to the threads of the rule.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
OUTPUT_TYPES, GROUP_TYPES = (Output, Outputs), (Inputs, Outputs)


def main(function: Callable[..., None]) -> NoReturn:
    """Run a step, for the rule whose script this is or from the command line, and end the process."""
    script = vars(sys.modules["__main__"])
    job = script.get("snakemake")
    # Snakemake runs a copy. This is the path of the original, or its URL, which may end with ``@<tag or commit>``.
    module = re.sub(r".*src/([\w/]+)\.py(@.*)?", r"\1", script["__file__"]).replace("/", ".")
    if job is None:
        command = [sys.executable, "-m", "whitewater", *_split_module(module), *sys.argv[1:]]
        os.execve(command[0], command, os.environ | ONE_THREAD)  # noqa: S606, our own list; before NumPy is imported
    start_fast()
    faulthandler.enable(2)  # the log then says where native code crashed
    # Import the step by its module name: caches of kernels and other processes use that name.
    log = Path(job.log[0]) if job.log else None
    exit_fast(exit_status(lambda: _run(module, log, partial(_parse_job, job))))


def run_by_hand(module: str, arguments: Sequence[str]) -> int:
    """Run the step of a module with flags, and return the exit status."""
    early = argparse.ArgumentParser(add_help=False)
    early.add_argument("--log", type=Path)
    # The log is opened before the step is imported, so that it has the error of a failed import.
    log = early.parse_known_args(list(arguments))[0].log
    return _run(module, log, partial(_parse_flags, arguments, *_split_module(module)))


def _run(module: str, log: Path | None, parse: Callable[[Callable[..., None]], argparse.Namespace]) -> int:
    """Run the step of a module; ``parse`` returns the options and lists of paths for the step's function."""
    application, step = _split_module(module)
    with log_output(log, name=f"{application} {step}", package=module.partition(".")[0]):
        function = load(f"{module}:{step}")
        options = parse(function)
        cluster: Cluster = options.cluster
        run = Run(
            application=application,
            step=step,
            engine=choose_engine({"engine": options.engine, "cluster": cluster.model_dump()}, options.device),
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
            paths = list(map(Path, getattr(options, name)))
            side = outputs if kind in OUTPUT_TYPES else inputs
            side[name] = {path.name: path for path in paths} if kind in GROUP_TYPES else paths[0]
        execute(run, function, inputs=inputs, outputs=outputs, record=options.record and Path(options.record))
    return 0


def paths_of(function: Callable[..., None]) -> dict[str, Any]:
    """Return the type of each path of a step by name: ``Path``, ``Inputs``, ``Output`` or ``Outputs``."""
    return {name: kind for name, kind in function.__annotations__.items() if name not in ("run", "return")}


def _settings_of(function: Callable[..., None]) -> type[Section]:
    """Return the model of a step's settings: ``Clean`` for ``run: Run[Clean]``."""
    return get_args(function.__annotations__["run"])[0]


def _parse_job(job: Any, function: Callable[..., None]) -> argparse.Namespace:
    """Return the options and paths of a Snakemake job."""
    known = paths_of(function)
    named = {name: value for name, value in job.params.items() if name in known}
    named |= {**dict(job.input.items()), **dict(job.output.items())}
    record = named.pop("record", None)
    for name in named:
        if name not in known:
            hint = f"its step has {', '.join(known)}{did_you_mean(name, known)}"
            raise ConfigError(f"rule {job.rule} names a path {name!r}, but {hint}")
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


def _parse_flags(
    arguments: Sequence[str], application: str, step: str, function: Callable[..., None]
) -> argparse.Namespace:
    """Return the options and paths of a command line. Unknown flags are reported before missing ones."""
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
    # The paths of the rules, as hints; outside of a project there are no rules.
    file = Path("workflows", application, "Snakefile")
    rules = file.read_text(encoding="utf-8") if file.exists() else ""
    bodies = dict(re.findall(r"^ *rule (\w+):(.*?)(?=^ *rule |\Z)", rules, re.MULTILINE | re.DOTALL))
    written = {
        rule: {name: f"{top}/{path}" for name, top, path in re.findall(r'(\w+)=\D{0,11}"<(\w+)>/([^"]+)"', body)}
        for rule, body in bodies.items()
    }
    read = re.findall(r"(\w+)=rules\.(\w+)\.output\.(\w+)", bodies.get(step, ""))
    hints = {name: written[rule].get(output, f"see rule {rule}") for name, rule, output in read} | written.get(step, {})
    for name, kind in paths_of(function).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=Path,
            required=kind in OUTPUT_TYPES or kind not in GROUP_TYPES,
            default=[],
            nargs=("+" if kind in OUTPUT_TYPES else "*") if kind in GROUP_TYPES else 1,
            metavar="PATH",
            help=f"{'written' if kind in OUTPUT_TYPES else 'read'}; in a run: {hints.get(name, 'see its rule')}",
        )
    known = parser._option_string_actions
    for flag in (word.partition("=")[0] for word in arguments):
        if flag.startswith("-") and flag not in known:
            parser.error(f"unknown argument {flag}{did_you_mean(flag, known)}")
    return parser.parse_args(list(arguments))


def _split_module(module: str) -> tuple[str, str]:
    """Return application and step of ``<package>.<application>.steps.<step>``."""
    application, _, step = module.split(".")[-3:]
    return application, step
