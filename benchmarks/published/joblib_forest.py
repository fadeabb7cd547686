"""R20: scikit-learn's random forest, fitted under joblib's Dask backend.

``with joblib.parallel_backend("dask"): RandomForestClassifier().fit(X, y)``; the source gives no size. Here 200,000
rows of 20 columns and 50 trees. Whatever the backend, the same seed makes the same trees, so that predictions are
compared one by one. It is scikit-learn on the CPU: forests of the GPU are those of R15.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import JsonValue

from benchmarks.published.dask_cluster import dask_client
from benchmarks.published.row import ONE_BLAS_THREAD, SEED, CallCase, Row, Timed, Variant, Work
from benchmarks.report import Size

ROWS = 200_000
COLUMNS = 20
INFORMATIVE = 8
CLASSES = 3
TREES = 50
TEST_ROWS = 500
# Of three classes a guess is right in a third of the rows.
ACCURACY = 0.6
# So that no thread waits long for the last task of another.
TASKS_OF_THREAD = 4
# One more than the largest seed that scikit-learn draws for a tree.
SEEDS = np.iinfo(np.int32).max


def rows(work: Work) -> int:
    """Return the number of rows that forests are fitted on."""
    return max(200, round(ROWS * work.scale))


def draw(work: Work) -> tuple[Any, Any, Any, Any]:
    """Return columns, float64 (rows, 20), and classes, int64 (rows,), to fit on, and those to test on."""
    from sklearn.datasets import make_classification

    x, y = make_classification(
        rows(work) + TEST_ROWS,
        n_features=COLUMNS,
        n_informative=INFORMATIVE,
        n_classes=CLASSES,
        random_state=SEED,
    )
    return x[TEST_ROWS:], y[TEST_ROWS:], x[:TEST_ROWS], y[:TEST_ROWS]


def predicted(forest: Any, x: Any, y: Any) -> JsonValue:
    """Return the class of each row and whether most are right, and how many trees and nodes there are."""
    classes = forest.predict(x)
    return {
        "trees": len(forest.estimators_),
        "nodes": sum(tree.tree_.node_count for tree in forest.estimators_),
        "classes": "".join(map(str, classes.tolist())),
        "accurate": bool((classes == y).mean() > ACCURACY),
    }


def classifier(**options: Any) -> Any:
    """Return the forest of the definition, not fitted yet."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**{"n_estimators": TREES, "random_state": SEED, **options})


@contextmanager
def as_published(work: Work) -> Iterator[Timed]:
    """Joblib tasks, one a tree, on the workers of a Dask cluster."""
    import joblib  # type: ignore[import-untyped]

    x, y, *test = draw(work)
    with dask_client(work.device, work.cluster, threads=work.threads):

        def call() -> Any:
            with joblib.parallel_backend("dask"):
                return classifier(n_jobs=-1).fit(x, y)

        yield Timed(call, answer=lambda forest: predicted(forest, *test))


@contextmanager
def threads(work: Work) -> Iterator[Timed]:
    """scikit-learn's own threads."""
    x, y, *test = draw(work)
    yield Timed(lambda: classifier(n_jobs=work.threads).fit(x, y), answer=lambda forest: predicted(forest, *test))


@contextmanager
def few_tasks(work: Work) -> Iterator[Timed]:
    """Tasks of many trees, a few for each thread of the workers, to each of which the data are sent once a call.

    Columns are float32, to which scikit-learn converts them, and one after the other in memory, as a split reads them.
    """
    x, y, *test = draw(work)
    with work.device.workers(work.cluster, threads=work.threads) as workers:

        def call() -> Any:
            shared = {"x": np.asfortranarray(x, dtype=np.float32), "y": y}
            shares = shares_of(TREES, TASKS_OF_THREAD * sum(workers.threads))
            parts = dict(workers.as_completed(grow, shares, shared))
            return joined([parts[place] for place in range(len(shares))])

        yield Timed(call, answer=lambda forest: predicted(forest, *test))


def shares_of(trees: int, tasks: int) -> list[tuple[int, int]]:
    """Return the first tree and the number of trees of each task that has any."""
    edges = [trees * task // tasks for task in range(tasks + 1)]
    return [(start, stop - start) for start, stop in pairwise(edges) if stop > start]


def grow(share: tuple[int, int], *, x: Any, y: Any) -> Any:
    """Return a forest of some of the trees: each draws a seed, and those of the trees before are passed over."""
    first, count = share
    seeds = np.random.RandomState(SEED)
    seeds.randint(SEEDS, size=first)
    return classifier(n_estimators=count, random_state=seeds, n_jobs=1).fit(x, y)


def joined(parts: list[Any]) -> Any:
    """Return one forest of the trees of all."""
    forest = parts[0]
    forest.estimators_ = [tree for part in parts for tree in part.estimators_]
    return forest.set_params(n_estimators=len(forest.estimators_))


ROW = Row(
    id="R20",
    name="joblib_forest",
    title='`RandomForestClassifier` under `joblib.parallel_backend("dask")`, 200,000 rows of 20 columns',
    cases=(
        CallCase(
            name="",
            variants=(
                Variant("tuned", few_tasks, environment=ONE_BLAS_THREAD),
                Variant("as_published", as_published, environment=ONE_BLAS_THREAD),
                Variant("scikit_learn", threads, environment=ONE_BLAS_THREAD),
            ),
            oracle="scikit_learn",
            size=lambda work: Size(rows=rows(work), bytes=8 * rows(work) * (COLUMNS + 1), basis="memory"),
        ),
    ),
)
