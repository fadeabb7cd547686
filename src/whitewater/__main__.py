"""`python -m whitewater <application> <step>`, `doctor`, `results`, `config`, `clean`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from whitewater import registry
from whitewater.errors import WhitewaterError
from whitewater.process import leave

# Tasks are parallel already; threads of BLAS and OpenMP besides them take turns on the same cores, and sum up
# in another order with each number of them. Snakemake sets these to the threads of the rule.
ONE_THREAD = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip
# Modules with a function `main`, imported when they are asked for.
COMMANDS = {
    "doctor": "whitewater.doctor",
    "results": "whitewater.results",
    "config": "whitewater.config.document",
    "clean": "whitewater.clean",
}
CLUSTER_VARIABLE = "WHITEWATER_CLUSTER"
REFRESH_VARIABLE = "WHITEWATER_REFRESH"
# As a shell tells of a process that a signal ended: 128 and the number of SIGINT.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = given[0] if given else "--help"
    try:
        if command in registry.APPLICATIONS:
            return _of_application(command, given[1:])
        if command in COMMANDS:
            status: int = import_module(COMMANDS[command]).main(given[1:])
            return status
    except WhitewaterError as error:
        print(error.told(), file=sys.stderr)
        return 1
    return _usage(command)


def _usage(command: str) -> int:
    names = "\n".join(f"  {name} <step>   one of {', '.join(_names(name))}" for name in registry.APPLICATIONS)
    text = (
        f"usage: python -m whitewater <command> [options]\n\n{names}\n"
        "  doctor        what this machine can run, each line tried\n"
        "  results       what the last run made, and where it is\n"
        "  config        write the JSON schema and the page of the configuration\n"
        "  clean         remove what runs wrote, and nothing else"
    )
    asked = command in {"-h", "--help", "help"}
    print(text if asked else f"no command {command!r}\n{text}", file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


def _names(application: str) -> list[str]:
    return [*registry.steps(application), *registry.commands(application)]


def _of_application(application: str, arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else ""
    if name not in _names(application):
        print(
            f"usage: python -m whitewater {application} <step>; steps: {', '.join(_names(application))}",
            file=sys.stderr,
        )
        return 2
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    commands = registry.commands(application)
    if name in commands:
        try:
            status: int = registry.load(commands[name])(list(arguments[1:]))
        except KeyboardInterrupt:
            print(f"{application} {name} was interrupted and left nothing unfinished.", file=sys.stderr)
            return INTERRUPTED
        return status
    return _step(application, arguments)


def _step(application: str, arguments: Sequence[str]) -> int:
    name, known = arguments[0], registry.steps(application)
    log = _early_log(arguments)
    from whitewater.log import logged

    with logged(log, name=f"{application} {name}"):
        _execute(application, name, known[name], arguments[1:])
    return 0


def _early_log(arguments: Sequence[str]) -> Path | None:
    """Return the log before anything heavy is imported, so that a failed import is in it."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--log", type=Path)
    log: Path | None = parser.parse_known_args(list(arguments))[0].log
    return log


def _execute(application: str, name: str, step: registry.Step, arguments: Sequence[str]) -> None:
    function = step.load()
    flags = registry.flags(function)
    given = _parser(f"{application} {name}", function.__doc__ or "", flags).parse_args(list(arguments))
    from whitewater import devices
    from whitewater.config.cluster import Cluster
    from whitewater.step import Run, execute

    values = {flag.name: _value(flag, getattr(given, flag.name)) for flag in flags}
    run = Run(
        application=application,
        step=name,
        device=devices.resolve(given.device),
        settings=step.settings.from_option(given.settings, option="--settings"),
        threads=given.threads,
        cluster_settings=Cluster.from_option(given.cluster, option="--cluster"),
        refresh=given.refresh,
        report=given.log.with_suffix(".dask.html") if given.log else None,
    )
    execute(
        run,
        function,
        inputs={flag.name: values[flag.name] for flag in flags if not flag.written},
        outputs={flag.name: values[flag.name] for flag in flags if flag.written},
        record=given.record,
    )


def _value(flag: registry.Flag, given: list[Path]) -> Path | dict[str, Path]:
    return {path.name: path for path in given} if flag.many else given[0]


def _parser(command: str, description: str, flags: Sequence[registry.Flag]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m whitewater {command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"), help="where it computes (default: cpu)")
    parser.add_argument("--threads", type=int, default=1, help="threads or worker processes (default: 1)")
    parser.add_argument(
        "--settings", default="{}", help="JSON: the section of the configuration that bears the step's name"
    )
    parser.add_argument("--cluster", default=os.environ.get(CLUSTER_VARIABLE, "{}"), help="JSON: the section `cluster`")
    parser.add_argument(
        "--refresh",
        action="store_true",
        default=bool(os.environ.get(REFRESH_VARIABLE)),
        help="download again what was downloaded before",
    )
    parser.add_argument("--log", type=Path, help="file for everything printed")
    parser.add_argument("--record", type=Path, help="file for the record of what ran where, on what, in what time")
    for flag in flags:
        parser.add_argument(
            f"--{flag.name.replace('_', '-')}",
            type=Path,
            required=flag.written or not flag.many,
            default=[],
            nargs=("+" if flag.written else "*") if flag.many else 1,
            help="written" if flag.written else "read",
        )
    return parser


if __name__ == "__main__":
    try:
        status = main()
    except SystemExit as ended:  # of an error, which is told already: a task that still runs is not waited for
        status = int(ended.code or 0)
    except BaseException:
        status = 1
        traceback.print_exc()
    leave(status)
