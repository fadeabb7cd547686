"""Step `drift`: how far the columns of a log are on each later day from the first, and whether that is significant.

A day is a value of the log's column ``day``: for some sources a file, or a period of about equally many rows. The first
one is the reference. ``drift.json`` holds the settings, the days, the number of ``days_without_rows`` between them, the
names of the columns by verdict (``summary``), and for each of the ``columns`` its ``name``, ``role`` and share of
``nulls`` in the reference, for categories also their number there (``known``), its worst ``verdict`` and its later
``days``. A day of a column has, null where there is nothing to compare,

- ``nulls``: share of rows that are null (for lists: empty);
- ``psi`` and ``jensen_shannon`` (base 2, 0 to 1), over the bins of the column, including that of nulls;
- ``ks``: for numbers: Kolmogorov-Smirnov distance (0 to 1) of the values that are not null; exact if the reference has
  few distinct values, else at most about 0.001 below the true one;
- ``new_categories``: for categories: share of the rows with a category that is not in the reference;
- ``chance``: for each measure, the limit that it exceeds by chance in about one of a thousand unchanged columns
  (somewhat too low if bins hold few rows);
- ``above``: the measures above both their threshold and their limit of chance;
- ``verdict``: ``drift`` if there are any; else ``chance`` if a measure is above its threshold; else ``stable``.

Rows are counted at *places*, each in a bin: for numbers the intervals ``(., e0], (e0, e1], ... (en, .)``, then nulls;
for categories the most frequent ones of the reference, then one for its others, for new categories, and for nulls.
"""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.special import chdtri, kolmogi, ndtri, rel_entr

from whitewater.features.log_folder import FORMAT, Log, LogFile, open_log
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.tables.arrow_arrays import one_array, to_numpy
from whitewater_apps.recsys.config import Drift

logger = logging.getLogger(__name__)
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Parts = Iterable[pa.ChunkedArray]  # a column, by row group
VERDICTS = ("drift", "chance", "stable")  # from worst to best
EDGES = 1024  # approximate number of values at which the distribution of numbers is known
# Fewest rows of a category with its own place; the shares of rarer ones vary too much by chance.
LEAST_ROWS = 10
SAMPLE = 1 << 18  # rows of the reference that determine the edges
_DIGITS = 6
# An empty bin counts as half a row, so that its distance from a full one is finite.
EMPTY = 0.5
# Probability that a measure exceeds its limit of chance although nothing has changed.
_CHANCE = 0.001


@dataclass(frozen=True)
class Bins:
    """Bins of a column."""

    bins: Counts  # (places,), the bin of each place
    count: Callable[[Parts], Counts]  # counts rows at the places
    categories: int | None = None  # number in the reference
    once: int = 0  # number of those with one row


def drift(run: Run[Drift], *, events: Path, drift: Output) -> None:
    """Compare each day with the first; raises InputError if a file of the log is missing or damaged.

    Each thread holds a row group of a column, and the column's categories of two days.
    """
    log, settings, days = open_log(events), run.settings, list[dict[str, Any]]()
    for day, files in _days(log):
        rows = sum(file.rows for file in files)
        clicks = sum(pc.sum(part).as_py() for part in _read(log, log.label, files))
        days.append({"day": day, "rows": rows, "label_rate": _share(clicks, rows)})
    names = [name for name, role in log.columns.items() if role in ("continuous", "categorical", "list")]
    with run.workers() as workers:
        shared = {"log": log, "settings": settings}
        columns = list(workers.map(column_report, names, label="columns compared", ordered=True, shared=shared))
    summary = {verdict: [each["name"] for each in columns if each["verdict"] == verdict] for verdict in VERDICTS}
    report = {
        "format": 1,
        "source": log.source,
        "period": log.time.period,
        "reference": {name: days[0][name] for name in ("day", "rows")},
        "thresholds": settings.model_dump(include={"psi", "ks", "jensen_shannon", "new_categories"}),
        "days": days,
        "days_without_rows": log.files[-1].day - log.files[0].day + 1 - len(days),
        "columns": columns,
        "summary": summary,
    }
    write_json(drift, report)
    if len(days) == 1:
        logger.warning("%s has one %s only: there is nothing to compare it with", events, log.time.period)
    run.note(days=len(days), columns=len(columns), **{verdict: len(names) for verdict, names in summary.items()})
    logger.info("drift of %d columns over %d %ss: %s", len(columns), len(days), log.time.period,
                ", ".join(summary["drift"]))  # fmt: skip


def column_report(name: str, *, log: Log, settings: Drift) -> dict[str, Any]:
    """Return the report on a column."""
    (_, first), *later = _days(log)
    read = partial(_read, log, name)
    if log.columns[name] == "continuous":
        bins = number_bins(_sample(read(first), rows=sum(file.rows for file in first)), bins=settings.bins)
    else:
        bins = category_bins(read(first), categories=settings.categories)
    reference = bins.count(read(first))
    days = [{"day": day, **compare(bins, reference, bins.count(read(files)), settings)} for day, files in later]
    return {
        "name": name,
        "role": log.columns[name],
        "nulls": _share(int(reference[-1]), int(reference.sum())),
        **({} if bins.categories is None else {"known": bins.categories}),
        "verdict": min((day["verdict"] for day in days), key=VERDICTS.index, default=VERDICTS[-1]),
        "days": days,
    }


def _days(log: Log) -> list[tuple[int, list[LogFile]]]:
    return [(day, list(files)) for day, files in groupby(log.files, key=lambda file: file.day)]


def _read(log: Log, name: str, files: Sequence[LogFile]) -> Iterator[pa.ChunkedArray]:
    """Yield a column of files, by row group; text has a dictionary."""
    texts = [name] if pa.types.is_string(log.types[name]) else None
    for path, rows in ((log.path / file.name, file.rows) for file in files):
        with FORMAT.explain_errors(path), pq.ParquetFile(path, read_dictionary=texts) as file:
            FORMAT.check_rows(path, file.metadata.num_rows, rows)
            for number in range(file.num_row_groups):
                yield file.read_row_group(number, [name], use_threads=False).column(0).unify_dictionaries()


def _sample(parts: Parts, *, rows: int) -> Floats:
    """Return the numbers that are not null; of more than `SAMPLE` rows only every second, third, ..."""
    step, first, samples = -(-rows // SAMPLE), 0, []
    for part in parts:
        samples.append(floats(part)[-first % step :: step])
        first += len(part)
    sample: Floats = np.concatenate(samples)
    return sample[~np.isnan(sample)]


def floats(part: pa.ChunkedArray) -> Floats:
    """Return numbers, NaN where they are null."""
    return to_numpy(part.cast(pa.float64(), safe=False).fill_null(np.nan))


def number_bins(sample: Floats, *, bins: int) -> Bins:
    """Return the bins for a sample of the reference, float64 (values,), without NaN.

    Bins end at the quantiles 1 / ``bins``, 2 / ``bins``, ... of the sample: (., q1], (q1, q2], ..., (qn, .). A value
    with a share of at least 1 / ``bins`` is a bin of its own, so a constant column has three bins, two of them empty.
    Places end before and at each value, or at the quantiles 1 / `EDGES`, 2 / `EDGES`, ...
    """
    values, rows = np.unique(sample, return_counts=True)
    heavy = values[rows * bins >= len(sample)]
    # A place from the largest number below a value to the value holds nothing else.
    cuts = np.unique(np.concatenate([_quantiles(sample, bins)[:-1], np.nextafter(heavy, -np.inf), heavy]))
    fine = values if len(values) <= EDGES else np.append(values[0], _quantiles(sample, EDGES))
    edges = np.unique(np.concatenate([np.nextafter(fine, -np.inf), fine, cuts, [np.inf]]))
    places = np.append(np.searchsorted(cuts, edges), len(cuts) + 1)

    def count(parts: Parts) -> Counts:
        # NaN, for null, is sorted after infinity.
        at = (np.searchsorted(edges, floats(part)) for part in parts)
        return sum((np.bincount(each, minlength=len(places)) for each in at), np.zeros(len(places), np.int64))

    return Bins(places, count)


def _quantiles(sample: Floats, count: int) -> Floats:
    """Return the smallest values that a share of 1/count, 2/count, ..., all values do not exceed."""
    ranks = -(-np.arange(1, count + 1) * len(sample) // count) - 1
    return np.sort(sample)[ranks] if len(sample) else sample


def category_bins(parts: Parts, *, categories: int) -> Bins:
    """Return the bins for the categories of the reference.

    The ``categories`` most frequent ones, then the smallest, have their own places, if they have `LEAST_ROWS`. Elements
    of lists are counted one by one.
    """
    table = value_counts(parts)[0].sort_by([("rows", "descending"), ("value", "ascending")])
    values, rows = one_array(table["value"]), to_numpy(table["rows"])
    others = min(categories, int((rows >= LEAST_ROWS).sum()))
    # New categories come after the last.
    places = np.append(np.minimum(np.arange(len(values)), others), others + 1)

    def count(parts: Parts) -> Counts:
        distinct, nulls = value_counts(parts)
        at_places = np.zeros(others + 3, np.int64)
        at = to_numpy(pc.index_in(distinct["value"], value_set=values).fill_null(len(values)))
        np.add.at(at_places, places[at], to_numpy(distinct["rows"]))
        at_places[-1] = nulls
        return at_places

    bins = np.array([*range(others), others, others, others + 1])
    return Bins(bins, count, categories=len(values), once=int((rows == 1).sum()))


def value_counts(parts: Parts) -> tuple[pa.Table, int]:
    """Return each ``value`` of a column or of its lists' elements with its ``rows``, and the nulls or empty lists."""
    names, tables, nulls = ["value", "rows"], list[pa.Table](), 0
    for part in parts:
        elements = part
        if pa.types.is_list(part.type):
            elements = pc.list_flatten(part)
            nulls += len(part) - int(np.count_nonzero(to_numpy(pc.list_value_length(part).fill_null(0))))
        else:
            nulls += part.null_count
        values, rows = elements.drop_null().value_counts().flatten()
        decoded = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        both = pa.concat_tables([*tables, pa.table([decoded, rows], names)])
        tables = [both.group_by("value", use_threads=False).aggregate([("rows", "sum")]).rename_columns(names)]
    return tables[0], nulls


def compare(bins: Bins, reference: Counts, counts: Counts, settings: Drift) -> dict[str, Any]:
    """Return the measures of a day, their limits of chance and the verdict, given the rows at places of the bins."""
    before, now = (np.bincount(bins.bins, places).astype(np.int64) for places in (reference, counts))
    rows, values, total = int(counts.sum()), int(counts[:-1].sum()), int(reference[:-1].sum())
    # Each measure and its limit of chance. Columns of lists count elements, so there may be none.
    measures: dict[str, tuple[float | None, float]] = {"psi": (None, 0.0), "jensen_shannon": (None, 0.0)}
    if before.any() and now.any():
        limits = chance(before, now)
        measures = {each.__name__: (each(before, now), limits[each.__name__]) for each in (psi, jensen_shannon)}
    if bins.categories is None:
        comparable = total > 0 and values > 0
        distance = kolmogorov_smirnov(reference[:-1], counts[:-1]) if comparable else None
        measures["ks"] = distance, chance_of_ks(total, values) if comparable else 1.0
    else:
        limit = chance_of_new_categories(bins.once, total, rows) if total and rows else 1.0
        measures["new_categories"] = _share(int(counts[-2]), rows), limit
    high = {name: value for name, (value, _) in measures.items() if value and value > getattr(settings, name)}
    above = [name for name, value in high.items() if value > measures[name][1]]
    return {
        "nulls": _share(int(counts[-1]), rows),
        **{name: None if value is None else round(value, _DIGITS) for name, (value, _) in measures.items()},
        "chance": {name: round(limit, _DIGITS) for name, (_, limit) in measures.items()},
        "above": above,
        "verdict": "drift" if above else "chance" if high else "stable",
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


# ---- measures of two histograms over the same bins, int64 (bins,), both of at least one row


def psi(reference: Counts, counts: Counts) -> float:
    """Return the population stability index: the sum of (q - p) log(q / p) over the bins.

    p and q are the shares of a bin in the reference and now. A bin that is empty in one of them counts as `EMPTY` rows
    there; one that is empty in both is skipped. By convention a change is small below 0.1, and large above 0.25
    (Siddiqi, Credit Risk Scorecards, 2006).
    """
    occupied = (reference > 0) | (counts > 0)
    before = np.maximum(reference[occupied], EMPTY) / reference.sum()
    now = np.maximum(counts[occupied], EMPTY) / counts.sum()
    return float((rel_entr(now, before) + rel_entr(before, now)).sum())


def jensen_shannon(reference: Counts, counts: Counts) -> float:
    """Return the Jensen-Shannon distance: the square root of the divergence with base 2, from 0 to 1.

    The divergence is the mean of the Kullback-Leibler divergences of both histograms from their mean (Lin 1991); its
    root is a metric (Endres and Schindelin 2003). SciPy's function returns NaN if rounding makes it negative.
    """
    before, now = reference / reference.sum(), counts / counts.sum()
    mean = (before + now) / 2
    divergence = (rel_entr(before, mean) + rel_entr(now, mean)).sum() / math.log(4)
    return math.sqrt(min(max(divergence, 0.0), 1.0))


def kolmogorov_smirnov(reference: Counts, counts: Counts) -> float:
    """Return the Kolmogorov-Smirnov distance, taken at the ends of ascending bins only.

    The true distance is larger by at most the share of the reference in one bin, and equal if bins are single values.
    """
    return float(np.abs(np.cumsum(reference) / reference.sum() - np.cumsum(counts) / counts.sum()).max())


def chance(reference: Counts, counts: Counts) -> dict[str, float]:
    """Return the limits of chance of `psi` and `jensen_shannon`.

    Both grow with the chi-square statistic of the histograms: the index is about (1/n + 1/m) times the statistic
    (Yurdakul and Naranjo 2020), and the squared distance about 1 / (8 log 2) times the index. With fewer than one
    expected row per bin this is rough.
    """
    degrees_of_freedom = int(((reference > 0) | (counts > 0)).sum()) - 1
    quantile = chdtri(degrees_of_freedom, _CHANCE) if degrees_of_freedom else 0.0
    psi_limit = float(quantile * (1 / int(reference.sum()) + 1 / int(counts.sum())))
    return {"psi": psi_limit, "jensen_shannon": min(math.sqrt(psi_limit / (8 * math.log(2))), 1.0)}


def chance_of_ks(reference: int, rows: int) -> float:
    """Return the limit of chance of `kolmogorov_smirnov` for samples of these sizes (Smirnov 1948)."""
    return float(min(kolmogi(_CHANCE) * math.sqrt(1 / reference + 1 / rows), 1.0))


def chance_of_new_categories(once: int, reference: int, rows: int) -> float:
    """Return the limit of chance of the share of rows with a category that the reference lacks.

    Of its ``reference`` rows with a category, ``once`` have one that occurs only once: their share estimates the
    probability of an unseen category in the next row (Good 1953). The 3 comes from the rule of three, for none seen.
    """
    share = (once + 3) / reference
    return float(min(share + ndtri(1 - _CHANCE) * math.sqrt(share * (1 / reference + 1 / rows)), 1.0))


if __name__ == "__main__":
    main(drift)
