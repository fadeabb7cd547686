"""Step `train`: what the features are worth to a baseline.

A logistic regression and boosted trees are fitted on the training rows: with all groups of features, without each one,
and with only the group ``plain``, the raw numbers. The validation rows decide when the trees stop; the quality is
measured on the test rows, which are later.
"""

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from whitewater.engines import Array, Device, memory
from whitewater.errors import InputError
from whitewater.features.feature_folder import CATEGORICAL, CONTINUOUS, LABEL, FeatureFolder, open_features
from whitewater.io.store import write_json
from whitewater.learn import estimators
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.recsys.config import Train
from whitewater_apps.recsys.prediction_quality import ALL, PLAIN, WITHOUT, quality

logger = logging.getLogger(__name__)
# Threads with fewer wait for each other; their number does not change the trees.
CELLS_OF_A_THREAD = 10_000_000
_CELL = np.dtype(np.float32)
Rows = Mapping[str, tuple[Array, Array]]  # features and labels by part
Model = tuple[Callable[[Array], Array], dict[str, Any]]  # a function that predicts, and facts


def train(run: Run[Train], *, train: Path, valid: Path, test: Path, metrics: Output) -> None:
    """Train models with and without groups of features, and write how good their predictions are.

    The parts are folders of features. ``metrics`` is JSON: rows and label rates of the parts, groups of features, and
    for each model and set of features the `whitewater_apps.recsys.prediction_quality.quality`.

    Raises InputError if there are no features, no training rows or no test rows, or all training rows have one label;
    ResourceError if the features do not fit into memory.
    """
    paths = {"train": train.resolve(), "valid": valid.resolve(), "test": test.resolve()}
    with run.workers(small=True) as workers:
        measures = next(workers.map(partial(learn, run=run), [paths], label="train"))
    for name, part in measures["parts"].items():
        if part["rows"] < part["of"]:
            logger.warning("%s: %d of %d rows are used, evenly drawn (recsys.train.maximum_rows)", paths[name].name,
                           part["rows"], part["of"])  # fmt: skip
    write_json(metrics, measures)
    rows = {name: part["rows"] for name, part in measures["parts"].items()}
    run.note(rows=rows, features=sum(map(len, measures["groups"].values())))


def learn(paths: Mapping[str, Path], *, run: Run[Train]) -> dict[str, Any]:
    """Return the metrics of models, given the folders of features of training, validation and test rows."""
    folders = {part: open_features(path) for part, path in paths.items()}
    groups = find_groups(folders["train"])
    names = [name for group in groups.values() for name in group]
    limit = run.settings.maximum_rows
    parts = {part: load_matrix(each, names, run.device, maximum_rows=limit) for part, each in folders.items()}
    summaries: dict[str, dict[str, Any]] = {}
    for part, (_, y) in parts.items():
        rate = float(y.mean(dtype="float64")) if len(y) else None
        summaries[part] = {"rows": len(y), "of": folders[part].rows, "label_rate": rate}
    for part, name in (("train", "training"), ("test", "test")):
        if not summaries[part]["rows"]:
            raise InputError(f"there are no {name} rows. Check recsys.split.")
    if (rate := summaries["train"]["label_rate"]) in (0.0, 1.0):
        raise InputError(f"all {summaries['train']['rows']:,} training rows have the label {rate:g}: nothing can be "
                         "learned. Check the label in recsys.fetch, or split elsewhere (recsys.split).")  # fmt: skip
    # The ids of categories have no order, which a regression needs.
    numeric = {field.name for field in folders["train"].schema if CATEGORICAL not in field.tags}
    models: dict[str, dict[str, Any]] = {"logistic_regression": {}, "boosted_trees": {}}
    for sets, fit, usable in zip(models.values(), (_fit_regression, _fit_trees), (numeric, set(names)), strict=True):
        for key, features in feature_sets(groups, usable, each=run.settings.without_each_group).items():
            places = run.device.to_device(np.array([names.index(name) for name in features]))
            rows = {part: (X[:, places], y) for part, (X, y) in parts.items()}
            # Some kernels of BLAS report an invalid operation on the padding of their blocks; `quality` refuses NaN.
            with np.errstate(invalid="ignore"):
                predict, facts = fit(rows, run)
                predictions = run.device.to_host(predict(rows["test"][0]))
            measures = quality(run.device.to_host(rows["test"][1]), predictions)
            sets[key] = {"features": len(features), **facts, **measures}
            logger.info("%s, %d features: AUC %s", key, len(features), measures["auc"])
    return {"parts": summaries, "groups": groups, "models": models}


def find_groups(folder: FeatureFolder) -> dict[str, list[str]]:
    """Return the features that are numbers or ids, without lists, by their last tag; untagged ones are ``other``."""
    groups: dict[str, list[str]] = {}
    loaded = {name for matrix in folder.matrices if matrix.name in (CONTINUOUS, CATEGORICAL) for name in matrix.columns}
    for field in folder.schema:
        if field.name in loaded and not pa.types.is_list(field.type):
            groups.setdefault(field.tags[-1] if field.tags else "other", []).append(field.name)
    if not groups:
        raise InputError(f"{folder.path} has no features that are numbers. Check recsys.fit.features.")
    return groups


def feature_sets(groups: Mapping[str, Sequence[str]], usable: Container[str], *, each: bool) -> dict[str, list[str]]:
    """Return the usable features by set: of all groups, of the plain one, and with ``each``, without each group.

    Sets that are empty or equal to that of all groups are left out.
    """
    others = [group for group in groups if group != PLAIN]
    chosen = {ALL: others or [PLAIN], PLAIN: [PLAIN] if PLAIN in groups else []}
    if each:
        chosen |= {WITHOUT + group: [other for other in others if other != group] for group in others}
    sets = {
        key: [name for group in chosen_groups for name in groups[group] if name in usable]
        for key, chosen_groups in chosen.items()
    }
    return {key: names for key, names in sets.items() if names and (key == ALL or names != sets[ALL])}


def load_matrix(
    folder: FeatureFolder, names: Sequence[str], device: Device, *, maximum_rows: int
) -> tuple[Array, Array]:
    """Return features and labels of at most ``maximum_rows``: of more rows, every second, third, ... is taken.

    Both are float32 on the device: features (rows, features), NaN where one is null, and labels (rows,), 0 or 1.

    Raises InputError if the folder has no label, or an infinite feature; ResourceError if the arrays do not fit into
    memory.
    """
    labels = [field.name for field in folder.schema if LABEL in field.tags]
    if not labels:
        raise InputError(f"{folder.path} has no column with the tag {LABEL!r}, so there is nothing to learn.")
    folder.refuse_nulls([*names, *labels])
    step = max(1, -(-folder.rows // maximum_rows))
    rows = len(range(0, folder.rows, step))
    memory.forecast(
        2 * rows * (len(names) + 1) * _CELL.itemsize, what=f"a matrix of {rows:,} rows and {len(names)} features",
        remedy="Lower recsys.train.maximum_rows.", device=device,
    )  # fmt: skip
    X, y = device.xp.empty((rows, len(names)), _CELL), device.xp.empty(rows, _CELL)
    seen = filled = 0
    for number, file in enumerate(folder.files):
        drawn = slice(-seen % step, None, step)
        target = slice(filled, filled + len(range(file.rows)[drawn]))
        for place, matrix in enumerate(folder.matrices):
            chosen = [name for name in matrix.columns if name in names]
            if matrix.name == LABEL:
                y[target] = device.to_device(folder.array(number, place)[drawn].astype(_CELL))
            elif chosen:
                values = folder.array(number, place)[drawn][:, [matrix.columns.index(name) for name in chosen]]
                at = device.to_device(np.array([names.index(name) for name in chosen]))
                X[target, at] = device.to_device(np.ascontiguousarray(values, _CELL))
        seen, filled = seen + file.rows, target.stop
    if infinite := np.flatnonzero(device.to_host(device.xp.isinf(X).any(axis=0))).tolist():
        raise InputError(f"{folder.path}: a value of {', '.join(names[place] for place in infinite)} is infinite, or "
                         "beyond 32 bits. Bound it by Clip in recsys.fit.features, or correct the log.")  # fmt: skip
    return X, y


def _fit_regression(rows: Rows, run: Run[Train]) -> Model:
    """Fit a logistic regression on standardized features; nulls become the mean."""
    xp, (features, labels) = run.device.xp, rows["train"]
    mean = xp.nanmean(features, axis=0, dtype=xp.float64)
    mean = xp.where(xp.isnan(mean), 0, mean)
    spread = xp.sqrt(xp.nanmean((features - mean) ** 2, axis=0, dtype=xp.float64))
    spread = xp.where(spread > 0, spread, 1)

    def standardize(X: Array) -> Array:
        values: Array = ((X - mean) / spread).astype(xp.float32)
        values[xp.isnan(values)] = 0
        return values

    model = estimators.logistic_regression(run.device, penalty=run.settings.penalty)
    model.fit(standardize(features), labels)
    return lambda X: model.predict_proba(standardize(X))[:, 1], {}


def _fit_trees(rows: Rows, run: Run[Train]) -> Model:
    threads = max(1, min(run.threads, rows["train"][0].size // CELLS_OF_A_THREAD))
    chosen = run.settings.model_dump(include={"trees", "depth", "learning_rate", "seed"})
    predict, trees = estimators.fit_boosted_trees(run.device, rows["train"], rows["valid"], threads=threads, **chosen)
    return predict, {"trees": trees}


if __name__ == "__main__":
    main(train)
