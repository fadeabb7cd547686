"""The command ``whitewater``: runs single steps of applications, and the commands below."""

import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

import whitewater
from whitewater.application import Application, applications, in_project, load
from whitewater.errors import WhitewaterError, did_you_mean
from whitewater.log import absent_package
from whitewater.process import exit_fast, exit_status

# Each command is a module of this folder with a function `main`, which is imported when it is needed.
COMMANDS = {
    "new": "write a project of your own, made from an application",
    "add": "write a step, or an application, into a project",
    "update": "merge a newer version of the template into a project",
    "doctor": "check what this machine can run",
    "results": "list what the last run made, and where it is",
    "compare": "compare two runs: settings, rows, times and findings",
    "config": "write config/, its schema and its page, or check a file of yours",
    "clean": "remove what runs wrote, and nothing else",
    "cluster": "start, stop or inspect workers that outlive steps: several GPUs, or processes",
    "completion": 'print completions for bash and zsh: eval "$(whitewater completion)"',
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words else "--help"
    try:
        if command == "--version":
            print(f"whitewater {whitewater.__version__}")
            return 0
        if command in COMMANDS:
            return load(f"whitewater.cli.{command}:main")(words[1:])
        known = in_project()
        if command in known:
            return _run_application(applications([command])[command], words[1:])
        return _usage(command, applications(known).values())
    except WhitewaterError as error:
        print(error.with_kind(), file=sys.stderr)
        return 1


def run() -> NoReturn:
    """Run the command line and end the process."""
    exit_fast(exit_status(main))


def _usage(command: str, known: Iterable[Application]) -> int:
    steps = {application.name: _names(application) for application in known if _names(application)}
    lines = [f"  {name + ' <step>':17} one of {', '.join(names)}" for name, names in steps.items()]
    lines += ["", *(f"  {name:17} {purpose}" for name, purpose in COMMANDS.items()), "  --version"]
    text = "usage: whitewater <command> [options]\n\n" + "\n".join(lines).lstrip("\n")
    is_help = command in {"-h", "--help", "help"}
    if not is_help:
        text = f"no command {command!r}{did_you_mean(command, [*COMMANDS, *steps])}\n{text}"
    print(text, file=sys.stdout if is_help else sys.stderr)
    return 0 if is_help else 2


def _names(application: Application) -> list[str]:
    return [*application.steps, *application.commands]


def _run_application(application: Application, arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    names = _names(application)
    if name not in names:
        problem = f"no step {name!r}{did_you_mean(name, names)}\n" if name else ""
        print(f"{problem}usage: whitewater {application.name} <step>; steps: {', '.join(names)}", file=sys.stderr)
        return 2
    from whitewater.script import ONE_THREAD, run_by_hand

    os.environ.update(ONE_THREAD)
    if name in application.steps:
        return run_by_hand(f"{application.package}.steps.{name}", arguments[1:])
    try:
        return load(application.commands[name])(arguments[1:])
    except KeyboardInterrupt:
        print(f"{application.name} {name} was interrupted and left nothing unfinished.", file=sys.stderr)
        return 128 + signal.SIGINT  # as shells report a process that a signal ended
    except ModuleNotFoundError as error:
        if missing := absent_package(error, needed_by=f"{application.name} {name}"):
            raise missing from error
        raise
