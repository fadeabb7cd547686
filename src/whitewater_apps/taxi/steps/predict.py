"""Step `predict`: the tip fraction that a stored model expects of each trip."""

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.store import remove_unfinished, write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.taxi.artifact import TipModel, load
from whitewater_apps.taxi.config import Predict, Service
from whitewater_apps.taxi.prediction import predict_row_group
from whitewater_apps.taxi.schema import SERVICES
from whitewater_apps.taxi.trip_files import row_groups
from whitewater_apps.taxi.zones import read_zones

logger = logging.getLogger(__name__)
# Readers of Parquet folders skip a file whose name begins so.
SUMMARY = "_summary.json"


def predict(run: Run[Predict], *, trips: Path, zones: Path, model: Path, predictions: Output) -> None:
    """Predict the tip fraction of cleaned trips, in a directory of partitions or in one Parquet file.

    Writes Parquet files below ``service=.../``, in the order of the trips: pickup_datetime, observed (null where no tip
    was recorded), ridge and forest (null for a service that the model does not know). `SUMMARY` beside them counts the
    trips of each service that are predicted, and those that are not.

    Raises InputError if there are no trips, or none of them can be predicted.
    """
    stored, groups = load(model, read_zones(zones)), row_groups(trips)
    if not groups:
        raise InputError(f"{trips} holds no trips to predict. Give cleaned trips.")
    predictions.mkdir()
    trips_of: Counter[Service] = Counter()
    predicted: Counter[Service] = Counter()
    with run.workers() as workers:
        work = partial(predict_row_group, directory=predictions, engine=run.engine, device=run.device)
        for each in workers.map(work, groups, label="predict", shared={"model": stored}):
            trips_of[each.service] += each.trips
            predicted[each.service] += each.predicted
    summary = summarize(trips_of, predicted, stored)
    _check(summary, trips=trips, model=model)
    remove_unfinished(predictions)
    write_json(predictions / SUMMARY, summary)
    run.note(services=summary)


def summarize(
    trips: Mapping[Service, int], predicted: Mapping[Service, int], model: TipModel
) -> dict[str, dict[str, Any]]:
    """Return by service the trips, those predicted, and those that are not with the reason."""
    known = ", ".join(model.services) or "no service"
    return {
        service: {
            "trips": trips[service],
            "predicted": predicted[service],
            "not_predicted": trips[service] - predicted[service],
            "reason": None if service in model.services else f"the model was fitted on trips of {known}",
        }
        for service in SERVICES
        if trips[service]
    }


def _check(summary: Mapping[str, Mapping[str, Any]], *, trips: Path, model: Path) -> None:
    """Say how many trips are predicted, and which are not and why; refuse a model that predicts none."""
    total, predicted = (sum(each[key] for each in summary.values()) for key in ("trips", "predicted"))
    reasons = "; ".join(
        f"{each['not_predicted']} of {service}, as {each['reason'] or 'the models give no finite number'}"
        for service, each in summary.items()
        if each["not_predicted"]
    )
    if not predicted:
        raise InputError(f"none of the {total} trips in {trips} can be predicted by {model}: {reasons}. Fit a model on "
                         "trips of the same service.")  # fmt: skip
    logger.info("%d of %d trips predicted", predicted, total)
    if reasons:
        logger.warning("not predicted: %s", reasons)


if __name__ == "__main__":
    main(predict)
