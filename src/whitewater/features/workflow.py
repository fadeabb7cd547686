"""A workflow: features that are fitted once, and applied in the same way to training data, new data and single rows.

::

    numbers = ["I1", "I2"] >> FillMedian() >> LogOp() >> Normalize()
    categories = ["C1", "C2", ["C1", "C2"]] >> Categorify(freq_threshold=5)
    workflow = Workflow(numbers + categories, carry=["label"])
    workflow.fit(Dataset("train.parquet"))
    workflow.save("workflow")
    table = Workflow.load("workflow").transform(Dataset("today.parquet"))
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from whitewater.engines import Device
from whitewater.engines.config import Engine, choose_engine
from whitewater.errors import ConfigError
from whitewater.features import artifact, feature_folder
from whitewater.features.config import Fit
from whitewater.features.dataset import Dataset
from whitewater.features.fit import fit_workflow
from whitewater.features.operator import Node, Selection, as_node
from whitewater.features.plan import Plan
from whitewater.features.schema import Schema
from whitewater.features.transform import tables, write_results
from whitewater.io.folder import Format
from whitewater.io.store import check_replaceable, stage_outputs
from whitewater.process import usable_cores
from whitewater.step import Run


class Workflow:
    """Features, and after `fit` the statistics that they need.

    ``features`` is a graph, or names of columns of the data. ``carry`` names columns to copy to the results if the data
    have them, such as the label, which is unknown in serving.

    Results do not depend on ``threads`` (default: all cores). Only the last digits of floats depend on ``device``
    (default: the CPU) and ``engine`` (default: ``local`` on the CPU, ``dask`` on a GPU).

    Examples
    --------
    >>> from whitewater.features import Workflow
    >>> from whitewater.features.operators import FillMissing
    >>> workflow = Workflow(["x"] >> FillMissing(fill_val=0)).fit({"x": [1.0, None]})
    >>> workflow.transform({"x": [None, 4.0]})["x"].to_pylist()
    [0.0, 4.0]
    """

    def __init__(self, features: Node | Selection, *, carry: Sequence[str] = ()) -> None:
        self._graph: Node | None = as_node(features)
        self._carried = tuple(carry)
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """The fitted plan; raises ConfigError before `fit`."""
        if self._plan is None:
            raise ConfigError("the workflow is not fitted. Call fit with a dataset, or load one that is.")
        return self._plan

    @property
    def input_schema(self) -> Schema:
        """The columns of the data that `transform` needs."""
        return Schema(tuple(self.plan.schema[name] for name in self.plan.data_columns(training=False)))

    @property
    def output_schema(self) -> Schema:
        """The columns of the results, except those that ``carry`` names."""
        return Schema(self.plan.fields())

    def fit(
        self, dataset: Any, *, threads: int | None = None, device: Device | None = None, engine: Engine | None = None
    ) -> Self:
        """Learn from a `Dataset`, or from data that it can read.

        Raises ConfigError if the features cannot be computed from these columns, or with this engine; InputError if
        there are no rows, or a file is damaged; ResourceError if row groups or statistics do not fit into memory.
        """
        if self._graph is None:
            raise ConfigError("a loaded workflow is already fitted. Build a new one to fit again.")
        run = run_on(device, "fit", threads=threads, engine=engine)
        with run.workers(small=run.device == Device()) as workers:
            self._plan = fit_workflow(self._graph, _as_dataset(dataset), carry=self._carried, run=run, workers=workers)
        return self

    def transform(
        self,
        data: Any,
        *,
        training: bool = False,
        threads: int | None = None,
        device: Device | None = None,
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return the features of a `Dataset`, or of data that it can read, as an Arrow table.

        Set ``training`` for the rows that the workflow was fitted on: statistics of the target then exclude each row's
        own fold. Raises InputError if a column is missing, or of another kind than in the fitted data.
        """
        run, dataset = run_on(device, "transform", threads=threads, engine=engine), _as_dataset(data)
        with run.workers(small=run.device == Device()) as workers:
            parts = list(tables(self.plan, dataset, run=run, workers=workers, training=training))
        empty = pa.schema(Schema(self.plan.fields(dataset.schema)).types).empty_table()
        return pa.concat_tables(parts or [empty])

    def transform_to(
        self,
        folder: str | Path,
        data: Any,
        *,
        training: bool = False,
        tags: Mapping[str, str] | None = None,
        row_group_rows: int = 131_072,
        threads: int | None = None,
        device: Device | None = None,
    ) -> int:
        """Write the features that `transform` returns to a folder, all or nothing; return the number of rows.

        ``tags`` tells loaders the roles of carried columns: ``{"clicked": "label", "row": "key"}``. Memory holds one
        part of the data per thread. `whitewater.features.feature_folder` describes the folder. An existing folder of
        features is replaced; anything else there raises ConfigError.
        """
        run, target = run_on(device, "transform", threads=threads), Path(folder).absolute()
        with _replaced(target, feature_folder.FORMAT) as path, run.workers() as workers:
            return write_results(
                self.plan, _as_dataset(data), path, run=run, workers=workers,
                row_group_rows=row_group_rows, tags=tags, training=training,
            )  # fmt: skip

    def fit_transform(self, data: Any, *, threads: int | None = None, device: Device | None = None) -> pa.Table:
        """Fit, and return the features of the same rows for training; see `transform`."""
        self.fit(data, threads=threads, device=device)
        return self.transform(data, training=True, threads=threads, device=device)

    def save(self, directory: str | Path) -> None:
        """Write the fitted workflow to a folder, all or nothing.

        A saved workflow is replaced; anything else there, and a workflow that is not fitted, raises ConfigError.
        """
        with _replaced(Path(directory).absolute(), artifact.FORMAT) as path:
            artifact.write(self.plan, path)

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a fitted workflow; raises as `whitewater.features.artifact.load` does."""
        loaded = cls.__new__(cls)
        loaded._graph, loaded._plan = None, artifact.load(Path(directory))
        return loaded


@contextmanager
def _replaced(folder: Path, kind: Format) -> Iterator[Path]:
    """Yield a path to write a folder to; it replaces an older one of its kind when it is complete."""
    check_replaceable(folder, sign=kind.name)
    with stage_outputs({"folder": folder}, owner=folder.with_name(f".{folder.name}.owner")) as paths:
        yield paths["folder"]


def _as_dataset(data: Any) -> Dataset:
    return data if isinstance(data, Dataset) else Dataset(data)


def run_on(device: Device | None, step: str, *, threads: int | None = None, engine: Engine | None = None) -> Run[Fit]:
    """Return the run of a workflow; raises ConfigError if ``threads`` is below 1, or the engine is local on a GPU."""
    device = device or Device()
    engine = choose_engine({"engine": engine or "auto", "cluster": {}}, device.name)
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}; give 1 or more, or None for all cores.")
    return Run("features", step, device, Fit(), threads or usable_cores(), engine=engine)
