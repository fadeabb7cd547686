"""The services as pictures show them: names, colours and marks, and the rows of the tips tables that are theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whitewater.style import BLACK, BLUE, GREEN, ORANGE, count

if TYPE_CHECKING:
    import pandas as pd

MEASURE = "Tip, % of the fare"
RECORDED = "Mean tip / fare of the trips whose tip was recorded: paid by card, or in an app."
NOTHING = "No trip has a recorded tip. Cash tips are not recorded, so only trips paid by card or in an app count."


@dataclass(frozen=True)
class Look:
    """How a service is named and drawn; the mark tells it from others where colours do not."""

    name: str
    colour: str
    mark: str


LOOKS = {
    "yellow": Look("Yellow taxis", ORANGE, "o"),
    "green": Look("Green taxis", GREEN, "s"),
    "fhvhv": Look("App rides (fhvhv)", BLUE, "^"),
    "all": Look("All together", BLACK, "D"),
}


def single_services(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each service that has trips with a recorded tip, in the order of `LOOKS`, without ``all``."""
    tipped = set(table.loc[table["trips"] > 0, "service"]) - {"all"}
    return {service: table[table["service"] == service] for service in LOOKS if service in tipped}


def with_total(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return `single_services`, and the rows of all together where there is more than one."""
    services = single_services(table)
    together = {"all": table[table["service"] == "all"]} if len(services) > 1 else {}
    return services | together


def sample_size(rows: pd.DataFrame) -> str:
    """Return the number of trips that the rows' means are of, as ``n = 12,345``."""
    return f"n = {count(int(rows['trips'].sum()))}"


def overall_mean(rows: pd.DataFrame) -> float:
    """Return the mean of all trips of the rows, NaN where there are none."""
    known = rows[rows["trips"] > 0]
    return float((known["mean"] * known["trips"]).sum() / known["trips"].sum()) if len(known) else float("nan")


def interval_name(table: pd.DataFrame) -> str:
    """Return what the interval of a tips table is called; its level is the attribute ``confidence`` of the table."""
    level = table.attrs.get("confidence")
    return f"{100 * level:g} % interval" if level else "interval of the mean"
