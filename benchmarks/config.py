"""Settings of the published tables that are run again: how large, and how long each is measured."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from whitewater.config.base import Section

COMMON = ("scale", "seconds", "rounds")


class Row(Section):
    """One row of the published table."""

    scale: float = Field(1.0, gt=0, description="Size as a fraction of the published one.")
    seconds: float = Field(
        2.0,
        gt=0,
        description="For each case, no round of measurements is begun that would end later; at least 3 are made.",
    )
    rounds: int = Field(10, ge=1, description="Rounds of measurements at most; each takes one sample of every variant.")
    timeout: float = Field(900.0, gt=0, description="Seconds after which a sample is stopped, and its variant is void.")


class SvdZarr(Row):
    """R11: principal components of genotypes in a Zarr store."""

    store: str = Field(
        "", description="A VCF Zarr store of your own, such as gs://bucket/store; empty: one is simulated."
    )


class Scaling(Section):
    """How rows that use Dask scale with its workers: threads, processes, and an attached cluster of processes."""

    rows: tuple[Literal["groupby_dask", "join_dask", "array_random", "svd_compressed"], ...] = Field(
        ("array_random",), description="Rows that are measured."
    )
    workers: tuple[int, ...] = Field((), description="Numbers of workers; empty: 1, 2, 4, ... up to the cores.")
    seconds: float = Field(4.0, gt=0, description="As for a row.")
    rounds: int = Field(10, ge=1, description="As for a row.")
    timeout: float = Field(900.0, gt=0, description="As for a row.")


class Limits(Section):
    """What this machine can do at most: memory copied, matrices multiplied, files read."""

    rounds: int = Field(10, ge=1, description="Times that each limit is measured; the median counts.")


def row(scale: float, **others: Any) -> Row:
    """Return the settings of a row whose size here is a fraction of the published one."""
    return Row(scale=scale, **others)


class Benchmarks(Section):
    """The published tables, run again: `snakemake --cores all benchmarks`.

    ``scale`` and ``seconds`` hold for every row that does not set its own.
    """

    scale: float | None = Field(
        None,
        gt=0,
        description="Size of every row as a fraction of the published one; by default each row has its own, "
        "with which all take about 8 minutes on 2 cores.",
    )
    seconds: float | None = Field(None, gt=0, description="Seconds of measurements of every case.")
    rounds: int | None = Field(None, ge=1, description="Rounds of measurements of every case, at most.")
    limits: Limits = Limits()
    array_elementwise: Row = row(0.05)
    frame: Row = row(0.05)
    csv_read: Row = row(0.02)
    csv_sum: Row = row(0.006)
    groupby_dask: Row = row(0.003)
    join_dask: Row = row(0.0005)
    array_random: Row = row(0.0001)
    svd_tall: Row = row(0.02)
    svd_compressed: Row = row(0.001)
    svd_genotypes: Row = row(0.0003)
    svd_zarr: SvdZarr = SvdZarr(scale=0.001, rounds=2)
    packing: Row = row(0.0003)
    ridge_fit: Row = row(0.05)
    grid_search: Row = row(0.2)
    forest_search: Row = row(0.000005, rounds=2)
    umap: Row = row(0.0006, rounds=2)
    taxi_tips: Row = row(0.0005, rounds=3)
    pagerank: Row = row(0.002, rounds=2)
    recsys_features: Row = row(0.0002)
    joblib_forest: Row = row(0.025)
    futures: Row = row(0.003)
    scaling: Scaling = Scaling()

    @model_validator(mode="before")
    @classmethod
    def _for_every_row(cls, given: Any) -> Any:
        """Hand `COMMON` to the rows that do not set their own."""
        if not isinstance(given, dict):
            return given
        common = {key: given[key] for key in COMMON if given.get(key) is not None and _is_valid(key, given[key])}
        filled = dict(given)
        for name, field in cls.model_fields.items():
            own = given.get(name, {})
            if isinstance(field.default, Row) and isinstance(own, dict):
                filled[name] = {**common, **own}
        return filled


def _is_valid(key: str, value: Any) -> bool:
    """Whether a row takes the value; one that it refuses is an error of the section, and not of each row as well."""
    try:
        Row.model_validate({key: value})
    except ValidationError:
        return False
    return True
