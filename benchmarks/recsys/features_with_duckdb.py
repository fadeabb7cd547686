"""DuckDB: a table of ids for each column of categories, and one join of all of them.

The SQL is put together from the names of our own columns.
"""

# ruff: noqa: S608

from __future__ import annotations

import duckdb

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS, KEY, NULL, RARE, THRESHOLD, Work, main


def make(work: Work) -> None:
    """Make the features."""
    database = duckdb.connect(config={"threads": work.threads, "preserve_insertion_order": False})
    database.execute(f"create view events as select * from read_parquet({work.files!r})")
    numbers = {name: f"ln(1 + greatest(coalesce({name}, 0), 0)::double)" for name in CONTINUOUS}
    moments = ", ".join(f"avg({each}), stddev_pop({each})" for each in numbers.values())
    found = database.sql(f"select {moments} from events").fetchall()[0]
    for name in CATEGORICAL:
        database.execute(
            f"create table ids_{name} as select {name}, "
            f"({RARE} + row_number() over (order by n desc, {name}))::integer as id from "
            f"(select {name}, count(*) as n from events where {name} is not null group by {name} "
            f"having n >= {THRESHOLD})"
        )
    scaled = [
        f"(({each} - {mean!r}) / {spread!r})::float as {name}"
        for (name, each), mean, spread in zip(numbers.items(), found[::2], found[1::2], strict=True)
    ]
    ids = [
        f"case when events.{name} is null then {NULL} else coalesce(ids_{name}.id, {RARE}) end::integer as {name}"
        for name in CATEGORICAL
    ]
    joins = " ".join(f"left join ids_{name} on events.{name} = ids_{name}.{name}" for name in CATEGORICAL)
    features = database.sql(f"select {KEY}, {', '.join([*scaled, *ids])} from events {joins}")
    features.write_parquet(str(work.folder / "features.parquet"), compression="uncompressed")


if __name__ == "__main__":
    main(make)
