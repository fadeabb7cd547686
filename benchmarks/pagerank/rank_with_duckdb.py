"""DuckDB: everything in SQL, an iteration being a join and a group-by; ids are not renumbered."""

from __future__ import annotations

from typing import Any

import duckdb

from benchmarks.pagerank.rank_variant import CHANGE, DAMPING, TOP, Ranked, Work, main


def rank(work: Work) -> Ranked:
    """Rank the vertices."""
    database = duckdb.connect(config={"threads": work.threads, "preserve_insertion_order": False})
    with work.phase("load"):
        database.execute("create table edges as select distinct source, target from read_parquet(?)", [work.files])
    with work.phase("renumber"):
        database.execute(
            "create table vertices as select id, coalesce(degree, 0) as degree from "
            "(select source as id from edges union select target from edges) left join "
            "(select source as id, count(*) as degree from edges group by source) using (id)"
        )
        count, edges = _one(database, "select (select count(*) from vertices), (select count(*) from edges)")
        database.execute("create table ranks as select id, degree, 1.0::double / ? as rank from vertices", [count])
    with work.phase("solve"):
        change, iterations = 1.0, 0
        while change > CHANGE:
            (dangling,) = _one(database, "select coalesce(sum(rank), 0.0) from ranks where degree = 0")
            database.execute(
                "create or replace table following as select id, degree, "
                "coalesce(pulled, 0.0) * ? + ? as rank from vertices left join "
                "(select target as id, sum(rank / degree) as pulled from edges join ranks on source = ranks.id "
                "group by target) using (id)",
                [DAMPING, (DAMPING * dangling + 1 - DAMPING) / count],
            )
            (change,) = _one(database, "select sum(abs(f.rank - r.rank)) from following f join ranks r using (id)")
            database.execute("drop table ranks; alter table following rename to ranks")
            iterations += 1
    with work.phase("join_back"):
        best = database.execute("select id, rank from ranks order by rank desc limit ?", [TOP]).fetchall()
    return Ranked(count, edges, [row[0] for row in best], [row[1] * count for row in best], iterations)


def _one(database: Any, query: str) -> Any:
    return database.execute(query).fetchone()


if __name__ == "__main__":
    main(rank)
