"""A workflow: features that are fitted once and applied alike to training data, to new data and to one row.

::

    numbers = ["I1", "I2"] >> FillMedian() >> LogOp() >> Normalize()
    categories = ["C1", "C2", ["C1", "C2"]] >> Categorify(freq_threshold=5)
    workflow = Workflow(numbers + categories, carry=["label"])
    workflow.fit(Dataset("train.parquet"))
    workflow.save("workflow")
    table = Workflow.load("workflow").transform(Dataset("today.parquet"))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from whitewater.engines import Device
from whitewater.engines.choose import choose
from whitewater.errors import ConfigError
from whitewater.features.config import Fit
from whitewater.features.dataset import Dataset
from whitewater.features.feature_folder import FORMAT
from whitewater.features.fit import fit_workflow
from whitewater.features.operator import Node, Selection, as_node
from whitewater.features.schema import Schema
from whitewater.features.transform import Transformation, write_in_order
from whitewater.io.store import check_replaceable, staged
from whitewater.step import Run

if TYPE_CHECKING:
    import pyarrow as pa

    from whitewater.engines.choose import Engine


class Workflow:
    """Features, and after `fit` what they learned.

    ``features`` are a graph, or names of columns of the data. ``carry`` are columns of the data that go along unchanged
    where the data have them, such as the label, which serving lacks.

    Results do not depend on ``threads`` (by default all cores), nor, but for the last digits of floats, on ``device``
    (by default the CPU) and ``engine`` (by default the kernels for one machine, ``local``, and on a GPU ``dask``).

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
        self._fitted: Transformation | None = None

    @property
    def fitted(self) -> Transformation:
        """What was fitted; raises ConfigError if nothing was."""
        if self._fitted is None:
            raise ConfigError("the workflow is not fitted. Call fit with a dataset, or load one that is.")
        return self._fitted

    @property
    def input_schema(self) -> Schema:
        """The columns of the data that `transform` needs."""
        return Schema(tuple(self.fitted.plan.schema[name] for name in self.fitted.columns(training=False)))

    @property
    def output_schema(self) -> Schema:
        """The columns of the results, without those that are carried along."""
        return Schema(self.fitted.plan.output_fields())

    def fit(
        self, dataset: Any, *, threads: int | None = None, device: Device | None = None, engine: Engine | None = None
    ) -> Self:
        """Learn from a dataset, or from what can be one.

        Raises ConfigError if the features cannot be made of these columns, or by this engine; InputError if there are
        no rows, or a file is damaged; ResourceError if row groups, or what is learned, do not fit into memory.
        """
        if self._graph is None:
            raise ConfigError("a loaded workflow is fitted already. Build it anew to fit it again.")
        run = run_on(device, "fit", threads=threads, engine=engine)
        with run.workers(small=run.device == Device()) as workers:
            self._fitted = fit_workflow(self._graph, as_dataset(dataset), carry=self._carried, run=run, workers=workers)
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
        """Make the features of data: a dataset or what can be one, whose results are a table of Arrow.

        ``training`` tells that the rows are those that were fitted on, in order to train a model: then statistics of
        the target leave each row's own fold out. Raises InputError if a column is missing, or of another kind than in
        fitting.
        """
        import pyarrow as pa

        run, dataset = run_on(device, "transform", threads=threads, engine=engine), as_dataset(data)
        with run.workers(small=run.device == Device()) as workers:
            tables = list(self.fitted.tables(dataset, run=run, workers=workers, training=training))
        if tables:
            return pa.concat_tables(tables)
        return pa.schema([(each.name, each.type) for each in self.fitted.fields(dataset.schema)]).empty_table()

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
        """Make the features of data as `transform` does, and write them as a folder, whole or not at all.

        ``tags`` say what carried columns are for: ``{"clicked": "label", "row": "key"}``, so that loaders know them.
        Memory holds a part of the data for each thread, and never all of it. Returns the number of rows; see
        `whitewater.features.feature_folder` for what is in the folder. One that is there is replaced; raises
        ConfigError if another folder or file is there.
        """
        run, target = run_on(device, "transform", threads=threads), Path(folder).absolute()
        check_replaceable(target, sign=FORMAT.name)
        owner = target.with_name(f".{target.name}.owner")
        with staged({"features": target}, owner=owner) as paths, run.workers() as workers:
            return write_in_order(
                self.fitted, as_dataset(data), paths["features"], run=run, workers=workers,
                row_group_rows=row_group_rows, tags=tags, training=training,
            )  # fmt: skip

    def fit_transform(self, data: Any, *, threads: int | None = None, device: Device | None = None) -> pa.Table:
        """Fit, and make the features of the same rows for training; see `transform`."""
        self.fit(data, threads=threads, device=device)
        return self.transform(data, training=True, threads=threads, device=device)

    def save(self, directory: str | Path) -> None:
        """Write the fitted workflow as a folder, whole or not at all; one that is there is replaced.

        Raises ConfigError if it is not fitted, or another folder or file is there.
        """
        from whitewater.features.artifact import save

        save(self.fitted, Path(directory))

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a fitted workflow; raises as `whitewater.features.artifact.load` does."""
        from whitewater.features.artifact import load

        loaded = cls.__new__(cls)
        loaded._graph, loaded._fitted = None, load(Path(directory))
        loaded._carried = loaded._fitted.carried
        return loaded


def as_dataset(data: Any) -> Dataset:
    """Return data as a dataset."""
    return data if isinstance(data, Dataset) else Dataset(data)


def run_on(device: Device | None, step: str, *, threads: int | None = None, engine: Engine | None = None) -> Run[Fit]:
    """Return how a workflow is fitted or applied, by default on all cores, and by Dask on a GPU.

    Raises ConfigError if there are to be no threads, or the engine is local on a GPU.
    """
    device = device or Device()
    engine = choose({"engine": engine or "auto", "cluster": {}}, device.name)
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}; give 1 or more, or None for all cores.")
    threads = threads or len(os.sched_getaffinity(0))
    return Run("features", step, device, Fit(), threads, engine=engine)
