"""What RAPIDS accepts, and whether a call is among it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path

CALLABLE, VALUE = "callable", "value"
NOT_INSTALLED = "RAPIDS is not installed here; `make test-contract-rapids` installs it and asks it"
RECORDED = Path(__file__).with_name("rapids-26.10.json")
# Keywords of these are names of columns.
NAMES_COLUMNS = frozenset({"cudf.DataFrame.assign", "cudf.DataFrame.groupby.agg"})


@dataclass(frozen=True, order=True)
class Call:
    """A call of a function or method by its full name; of a method without the object. Not a call: ``used`` is true."""

    name: str
    positional: int = 0
    keywords: tuple[str, ...] = ()
    used: bool = False

    def __str__(self) -> str:
        if self.used:
            return self.name
        arguments = ["_"] * self.positional + [f"{keyword}=_" for keyword in self.keywords]
        return f"{self.name}({', '.join(arguments)})"


@cache
def recorded() -> dict[str, str]:
    """Return what `tests.contract.record` says of each name of RAPIDS."""
    calls: dict[str, str] = json.loads(RECORDED.read_text())["calls"]
    return calls


def problem(call: Call) -> str | None:
    """Say why RAPIDS refuses a call, or return None: it is there, and its parameters take the arguments."""
    found = recorded().get(call.name)
    if found is None:
        return f"RAPIDS has no {call.name}, or tests/contract/record.py does not know of it"
    if call.used or found == CALLABLE:
        return None
    if found == VALUE:
        return f"{call.name} cannot be called"
    accepted = parse(found)
    try:
        keywords = () if call.name in NAMES_COLUMNS else call.keywords
        bound = accepted.bind(*[None] * call.positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return f"{call.name}{found}: {error}"
    # What **keywords takes in is passed on to who knows where, so it proves nothing.
    swallowed = [bound.arguments[name] for name, each in accepted.parameters.items()
                 if each.kind == Parameter.VAR_KEYWORD and name in bound.arguments]  # fmt: skip
    return f"{call.name}{found}: no parameter {', '.join(swallowed[0])}" if swallowed else None


def parse(text: str) -> Signature:
    """Return the signature written as ``(a, /, b=..., *, c)``.

    Raises
    ------
    SyntaxError
        If the text is not a parameter list of Python.
    """
    return signature(eval(f"lambda {text[1:-1]}: None"))  # noqa: S307, of our own file and of installed packages
