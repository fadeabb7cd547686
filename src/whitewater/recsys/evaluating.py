"""A plan applied to the rows of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from whitewater.errors import IntegrityError
from whitewater.recsys.rows import rows_of

if TYPE_CHECKING:
    from whitewater.devices.columns import Block, Column
    from whitewater.recsys.operator import Applying, Fitted
    from whitewater.recsys.plan import Origin, Plan, Share, Stage

Learnt = Sequence[Mapping[str, "Fitted"] | None]
"""What each stage of a plan learnt, by names of statistics; None where it is not fitted yet."""
Read = Callable[[Sequence[str]], "Block"]


def evaluated(plan: Plan, learnt: Learnt, read: Read, wanted: Mapping[str, Origin], applying: Applying) -> Block:
    """Return columns that the data has or a stage makes, of some rows.

    Columns are made one after the other, and each is let go after its last use, so that few are there at a time besides
    the results.

    Parameters
    ----------
    plan, learnt
        The stages and what they learnt.
    read
        Returns columns of the data by their names, for these rows.
    wanted
        Names of the columns to make, and where each comes from.
    applying
        Device, and whether the rows are those that were fitted on.

    Raises
    ------
    IntegrityError
        If a stage makes other columns, or of other rows, than it says.
    """
    made: dict[tuple[Origin, str], Column] = {}
    work = [
        (number, share, plan.taken(number, share, training=applying.training)) for number, share in plan.work(wanted)
    ]
    last = {(origin, name): place for place, (_, _, taken) in enumerate(work) for name, origin in taken.items()}
    kept = {(origin, name) for name, origin in wanted.items()}
    used = last.keys() | kept
    for place, (number, share, taken) in enumerate(work):
        _read_missing(made, taken, read)
        given = {name: made[origin, name] for name, origin in taken.items()}
        for key in [key for key in made if key not in kept and last[key] <= place]:
            del made[key]
        stage = plan.stages[number]
        columns = stage.operator.transform(share.inputs, given, learnt[number] or {}, applying)
        _check(stage, share, given, columns)
        made |= {(number, name): each for name, each in columns.items() if (number, name) in used}
        del given, columns
    _read_missing(made, wanted, read)
    return {name: made[origin, name] for name, origin in wanted.items()}


def _read_missing(made: dict[tuple[Origin, str], Column], wanted: Mapping[str, Origin], read: Read) -> None:
    missing = [name for name, origin in wanted.items() if origin is None and (origin, name) not in made]
    if missing:
        made |= {(None, name): column for name, column in read(missing).items()}


def _check(stage: Stage, share: Share, given: Block, columns: Block) -> None:
    if tuple(columns) != share.outputs:
        raise IntegrityError(
            f"{stage.label} made the columns {list(columns)}, not {list(share.outputs)}. Report this as a bug."
        )
    lengths = {name: len(column) for name, column in columns.items() if len(column) != rows_of(given)}
    if lengths:
        raise IntegrityError(
            f"{stage.label} made columns of other rows than the {rows_of(given)} that it was given: {lengths}. "
            "Report this as a bug."
        )
