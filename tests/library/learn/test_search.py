"""Searches, splits and scores are those of scikit-learn, and none depends on the order in which tasks end."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import PredefinedSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.library.learn.rows import FORMS, sample_of
from whitewater.engines import Array, resolve
from whitewater.engines.workers import thread_workers
from whitewater.learn.config import Forest, Search
from whitewater.learn.sample import Sample, split_by_time
from whitewater.learn.trained import (
    HOUR,
    Scores,
    choose,
    evaluate,
    fit_groups,
    grid,
    hour_mean,
    score_fold,
    summarize,
)
from whitewater.step import Run

DEVICE = resolve("cpu")
RESAMPLED = Search(bootstrap=60, seed=1)
SETTINGS = Search(ridge_alphas=(1.0, 1e6), forest=Forest(trees=(5,), depths=(2, 6), rows_per_tree=500))


class TestSplit:
    def test_held_out_trips_are_the_latest(self) -> None:
        sample = sample_of()
        training, held_out = split_by_time(sample, 0.2)
        assert training.time.max() < held_out.time.min()
        assert len(held_out) == pytest.approx(0.2 * len(sample), abs=2)
        assert len(training) + len(held_out) == len(sample)

    def test_trips_of_one_moment_stay_together(self) -> None:
        sample = sample_of()
        hours = Sample(sample.hashes, sample.time // 86_400_000_000, sample.target, sample.features, sample.eligible)
        training, held_out = split_by_time(hours, 0.5)
        assert not set(training.time) & set(held_out.time)

    def test_both_parts_stay_in_the_order_of_the_hash(self) -> None:
        for part in split_by_time(sample_of(), 0.2):
            assert (np.diff(part.hashes.astype(object)) >= 0).all()


class TestSearch:
    @pytest.mark.parametrize("alpha", [1.0, 1e4])
    def test_ridge_scores_are_those_of_scikit_learn_on_folds_of_consecutive_rows(self, alpha: float) -> None:
        sample = sample_of(1_998)
        fold = np.repeat(np.arange(5), [399, 400, 399, 400, 400])
        expected = cross_validate(
            make_pipeline(StandardScaler(), Ridge(alpha=alpha)),
            FORMS.linear(sample.features, DEVICE),
            sample.target,
            cv=PredefinedSplit(fold),
            scoring=("r2", "neg_mean_absolute_error"),
        )
        candidate, rows = ("ridge", {"alpha": alpha}), (sample.features, sample.target, sample.time)
        found = [
            score_fold((candidate, number, rows), forms=FORMS, settings=SETTINGS, device=DEVICE) for number in range(5)
        ]
        assert [score.r2 for score in found] == pytest.approx(expected["test_r2"], rel=1e-9)
        assert [-score.mae for score in found] == pytest.approx(expected["test_neg_mean_absolute_error"], rel=1e-9)

    def test_the_grid_is_searched_whole_and_the_best_candidates_are_chosen(self) -> None:
        run = Run("rides", "model", DEVICE, SETTINGS)
        with thread_workers(2) as workers:
            trained = fit_groups({"bikes": split_by_time(sample_of(), 0.2)}, run, forms=FORMS, workers=workers)["bikes"]
        found, best = trained.metrics["search"]["candidates"], trained.metrics["search"]["best"]
        assert [(each["model"], len(each["folds"])) for each in found] == [("ridge", 5)] * 2 + [("forest", 5)] * 2
        assert best == {"ridge": {"alpha": 1.0}, "forest": {"trees": 5, "depth": 6}}

    def test_of_equal_candidates_the_most_regular_is_chosen(self) -> None:
        equal = [summarize(each, [Scores(0.2, None, 0.1)] * 5) for each in grid(SETTINGS)]
        assert choose(equal, "ridge") == {"alpha": 1e6}
        assert choose(equal, "forest") == {"trees": 5, "depth": 2}
        assert [each["parameters"] for each in equal[:2]] == [{"alpha": 1e6}, {"alpha": 1.0}]


class TestEvaluation:
    def observed(self) -> tuple[Array, dict[str, Array]]:
        random = np.random.default_rng(0)
        observed = random.gamma(2, 0.1, 500)
        return observed, {"hour_mean": np.full(500, 0.19), "good": observed + random.normal(0, 0.05, 500)}

    def test_values_are_those_of_scikit_learn(self) -> None:
        observed, predictions = self.observed()
        scores = evaluate(observed, predictions, settings=RESAMPLED, device=DEVICE)
        for name, prediction in predictions.items():
            assert scores[name]["r2"]["value"] == pytest.approx(r2_score(observed, prediction), rel=1e-9)
            assert scores[name]["mae"]["value"] == pytest.approx(mean_absolute_error(observed, prediction), rel=1e-9)
        gain = r2_score(observed, predictions["good"]) - r2_score(observed, predictions["hour_mean"])
        assert scores["good"]["r2_gain"]["value"] == pytest.approx(gain, rel=1e-9)

    def test_intervals_are_percentiles_over_resampled_trips(self) -> None:
        observed, predictions = self.observed()
        rows = [np.random.default_rng([1, replicate]).integers(0, 500, 500) for replicate in range(60)]
        r2 = [r2_score(observed[each], predictions["good"][each]) for each in rows]
        mae = [mean_absolute_error(observed[each], predictions["good"][each]) for each in rows]
        scores = evaluate(observed, predictions, settings=RESAMPLED, device=DEVICE)["good"]
        for name, resampled in (("r2", r2), ("mae", mae)):
            expected = np.quantile(resampled, [0.025, 0.975])
            np.testing.assert_allclose([scores[name]["low"], scores[name]["high"]], expected)

    def test_a_target_that_does_not_vary_has_no_r2(self) -> None:
        observed = np.full(50, 0.2)
        scores = evaluate(observed, {"hour_mean": observed + 0.1}, settings=RESAMPLED, device=DEVICE)["hour_mean"]
        assert scores["r2"] == {"value": None, "low": None, "high": None}
        assert scores["mae"]["value"] == pytest.approx(0.1)

    def test_the_baseline_is_the_mean_of_the_hour_of_training_trips(self) -> None:
        sample = sample_of()
        hour = sample.time // HOUR % 24
        training, later = (sample.take(rows) for rows in (hour != 4, np.arange(300)))
        of_hour = [training.target[hour[hour != 4] == each] for each in range(24)]
        means = np.array([each.mean() if len(each) else training.target.mean() for each in of_hour])
        found = hour_mean(training.target, training.time, later.time, DEVICE)
        np.testing.assert_allclose(found, means[later.time // HOUR % 24])
