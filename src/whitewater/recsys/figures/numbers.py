"""A column of numbers as it came, and as the features have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from whitewater import style
from whitewater.recsys.figures.histograms import Histogram, histogram
from whitewater.recsys.figures.names import shown_name

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from whitewater.recsys.feature_folder import FeatureFolder
    from whitewater.recsys.log_folder import Log
    from whitewater.recsys.schema import Field

_TITLE = "A number before and after"
_IDS = "categorical"


@style.styled
def numbers(statistics: Mapping[str, Any], *, events: Log, features: FeatureFolder) -> Figure:
    """Draw the distributions of the first column of numbers that is a feature under the same name, before and after.

    Parameters
    ----------
    statistics
        The content of `statistics.json`, which has the operators.
    events
        Log of rows.
    features
        Features of the same rows.
    """
    field = _first(events, features)
    if field is None:
        return style.explained(_TITLE, "No column of numbers of the log is a feature of numbers under the same name.")
    name = shown_name(field.name, points=200, size=10.5)
    subtitle = f"Column {name} of {style.count(features.rows)} test rows. {_operators(statistics, field)}"
    figure, body = style.titled(9, 3.9, title=_TITLE, subtitle=subtitle)
    left, right = body.subplots(1, 2)
    _draw(left, histogram(events.row_groups(), field.name), style.BLUE, what="As it came", label="Value in the log")
    _draw(
        right, histogram(features.row_groups(), field.name), style.GREEN, what="Feature", label="Value of the feature"
    )
    return figure


def _first(events: Log, features: FeatureFolder) -> Field | None:
    measured = {field.name: field for field in features.schema if _is_number(field.type) and _IDS not in field.tags}
    continuous = [name for name, role in events.columns.items() if role == "continuous"]
    return next((measured[name] for name in continuous if name in measured), None)


def _is_number(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _operators(statistics: Mapping[str, Any], field: Field) -> str:
    """Say which operators the groups of a feature have."""
    groups = statistics["groups"]
    of = [group for group in groups if any(column["name"] == field.name for column in groups[group]["columns"])]
    if not of:
        return ""
    names = [each["operator"] for each in groups[of[-1]]["operators"]]
    return f"Operators of its group, {shown_name(of[-1])}: {', '.join(dict.fromkeys(names)) or 'none'}."


def _draw(axes: Axes, found: Histogram, colour: str, *, what: str, label: str) -> None:
    title = f"{what}: {_nulls(found)}"
    if not len(found.counts):
        style.explain(axes, title, "There is no finite value to draw.")
        return
    axes.set_title(title)
    axes.stairs(found.counts, found.edges, fill=True, color=colour, baseline=0.5)
    axes.set_yscale("log")
    axes.set(xlabel=label, ylabel="Test rows", ylim=(0.5, float(found.counts.max()) * 2))
    axes.xaxis.set_major_locator(_few_ticks())


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6)


def _nulls(found: Histogram) -> str:
    nulls = f"{style.percent(found.nulls / found.rows)} null" if found.nulls else "no null"
    return f"{nulls}, {style.count(found.infinite)} infinite" if found.infinite else nulls
