"""The arguments that the benchmarks of the applications share: how long, on how many threads, and where."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Plan


def parser_of(application: str, *, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the shared arguments; ``rounds`` is the default."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{application}",
        description="Run in the root of the repository.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds at most")
    parser.add_argument("--seconds", type=float, help="begin no round that would end later; at least 3 rounds are made")
    parser.add_argument("--threads", type=int, default=2, help="threads of each tool")
    parser.add_argument("--data", type=Path, default=Path("data/benchmarks") / application, help="folder of the inputs")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"), help="folder of the reports")
    return parser


def add_tools(parser: argparse.ArgumentParser) -> None:
    """Add the choice of tools and of the oracle, whose defaults are those of the case."""
    parser.add_argument("--tools", nargs="+", help="tools to measure; must hold the oracle")
    parser.add_argument("--oracle", help="tool whose answer is right")


def with_tools(
    parser: argparse.ArgumentParser,
    tools: Mapping[str, Sequence[str]],
    oracles: Mapping[str, str],
    slow: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Read the command line; tools and oracle of the case are filled in, but ``slow`` tools must be asked for."""
    arguments = parser.parse_args()
    known = tools[arguments.case]
    arguments.tools = arguments.tools or known
    arguments.oracle = arguments.oracle or oracles[arguments.case]
    if unknown := set(arguments.tools) - {*known, *(slow or {}).get(arguments.case, ())}:
        parser.error(f"no tools of case {arguments.case}: {', '.join(sorted(unknown))}")
    return arguments


def plan_of(arguments: Any, *, tolerance: float = 1e-9) -> Plan:
    """Return the rounds, the time and the threads that are asked for."""
    return Plan(rounds=arguments.rounds, seconds=arguments.seconds, threads=arguments.threads, tolerance=tolerance)
