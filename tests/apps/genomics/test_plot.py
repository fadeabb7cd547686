"""The pictures of the genomics application: they draw what the tables say, legible and the same bytes each time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from scipy.stats import norm

from tests.apps.pictures import labels_overlap, legend, no_text_is_cut, written
from whitewater.figures import style
from whitewater_apps.genomics import figures, headline
from whitewater_apps.genomics.figures import MOST_LABELS, NO_LABEL, OTHER, along_genome, looks

FOUR = ("ADMIX", "AFR", "ASIA", "EUR")
# As many as the 1000 Genomes have.
MANY = tuple(f"{first}{second}" for first, second in product("ABCDEFGHIJKLM", ("FR", "IS")))
COMPONENTS = 6
QUALITY = {"trustworthiness": 0.97123, "neighbors": 15}


def table(labels: Sequence[str | None], samples: int, *, start: int = 0, **columns: Any) -> pd.DataFrame:
    """Samples on components; those of a label are together."""
    generator = np.random.default_rng(start)
    names = [labels[i % len(labels)] for i in range(samples)]
    scores = generator.normal(size=(samples, COMPONENTS)) + 6 * np.arange(samples)[:, None] % max(len(labels), 1)
    frame = pd.DataFrame(scores, columns=[f"PC{i + 1}" for i in range(COMPONENTS)])
    return frame.assign(
        sample=[f"S{start + i}" for i in range(samples)], label=pd.Series(names, dtype=object), **columns
    )


def eigenvalues(samples: int = 100, *, significant: int = 3) -> dict[str, Any]:
    values = [26.5, 12.25, 6.5, 1.25, 1.125, 1.0]
    tests = [
        {"component": i + 1, "statistic": 9.0 - i, "p_value": p, "threshold": 1.5 - i / 10}
        for i, p in enumerate([0, 1e-40, 1e-7, 0.2, 0.5, 0.9])
    ]
    return {
        "eigenvalues": values, "explained_variance_ratio": [value / samples for value in values],
        "total_variance": float(samples), "samples": samples, "variants": 12_345, "tracy_widom": tests,
        "significant_components": significant,
    }  # fmt: skip


def variants() -> pd.DataFrame:
    """Eight variants: five kept, and three that are not, one of them for two reasons."""
    reasons = [[], [], ["call rate"], ["call rate", "allele frequency"], [], ["linkage disequilibrium"], [], []]
    return pd.DataFrame({
        "call_rate": [1.0, 0.99, 0.9, 0.8, 0.97, 0.99, 1.0, 0.96],
        "allele_frequency": [0.1, 0.9, 0.3, 0.001, 0.5, 0.2, 0.45, np.nan],
        "kept": [not each for each in reasons], "reasons": reasons,
    })  # fmt: skip


def samples() -> pd.DataFrame:
    reasons = ["", "", "call rate 0.71", "relative of S0", "held out"]
    return pd.DataFrame({"call_rate": [0.99, 0.98, 0.71, 0.97, 0.96], "reason": reasons})


def kinship() -> tuple[pd.DataFrame, dict[str, Any]]:
    """One pair of twins, a parent with a child, two siblings, and a pair of each of the next degrees."""
    pairs = pd.DataFrame({"kinship": [0.49, 0.25, 0.24, 0.12, 0.06], "ibs0": [0, 1, 10, 20, 30], "variants": 1_000})
    counts = np.zeros(40, int)
    counts[10:20] = 3_999
    counts[3] = 10
    summary = {
        "pairs": 5, "undefined": 5, "maximum_kinship": 0.0884,
        "degrees": {"duplicate": 1, "first": 2, "second": 1, "third": 1},
        "histogram": {"edges": np.linspace(-0.5, 0.5, 41).tolist(), "counts": counts.tolist()}, "unrelated": 280,
        "standard_error": 0.015,
    }  # fmt: skip
    return pairs, summary


def embedding(labels: Sequence[str | None], count: int) -> pd.DataFrame:
    return table(labels, count).rename(columns={"PC1": "UMAP1", "PC2": "UMAP2"})


def loadings(components: int = 4) -> dict[str, Any]:
    generator = np.random.default_rng(2)
    values = generator.normal(size=(330, components))
    contigs = np.repeat([str(number) for number in range(1, 23)], 15).tolist()
    positions = np.tile(np.linspace(1_000, 2_000_000, 15, dtype=np.int64), 22)
    variants = pd.DataFrame({"contig": contigs, "position": positions})
    return {"loadings": values / np.linalg.norm(values, axis=0), "variants": variants}


def every_picture(labels: Sequence[str | None], count: int) -> dict[str, Figure]:
    pcs, projected = table(labels, count), table(labels, count // 15, start=count)
    pairs, summary = kinship()
    return {
        "pcs": figures.component_pair(pcs, projected, eigenvalues=eigenvalues(count), pair=(1, 2)),
        "scree": figures.scree(eigenvalues(count)),
        "loadings": figures.loadings_by_position(**loadings(), components=4),
        "missingness": figures.missingness(samples(), variants()),
        "variants": figures.variant_quality(variants()),
        "kinship": figures.kinship(pairs, relatedness=summary),
        "umap": figures.umap(embedding(labels, count), projected, quality=QUALITY),
    }


def points(axes: Axes) -> dict[str, list[PathCollection]]:
    """The samples drawn, by label: first those used, then those projected."""
    found: dict[str, list[PathCollection]] = {}
    for each in axes.collections:
        if isinstance(each, PathCollection):
            found.setdefault(str(each.get_label()), []).append(each)
    return found


def steps(axes: Axes) -> dict[str, float]:
    """The sums of the histograms in axes, by what the legend calls them."""
    return {
        str(patch.get_label()): np.asarray(patch.get_data()[0]).sum()
        for patch in axes.patches
        if isinstance(patch, StepPatch)
    }


# ---- labels


def test_no_two_labels_look_alike_and_equal_labels_do_in_every_picture() -> None:
    assert headline._MOST_LABELS == MOST_LABELS
    many = pd.Series([f"P{number:02d}" for number in range(MOST_LABELS)])
    shown = looks(many)
    assert len({(look.color, look.mark) for look in shown.values()}) == MOST_LABELS
    assert looks(many.sample(frac=1, random_state=1)) == shown


def test_of_very_many_labels_the_most_frequent_have_a_look_of_their_own() -> None:
    shown = looks(pd.Series([f"P{number:03d}" for number in range(100)] + ["P099", "P098"]))
    assert len(shown) == MOST_LABELS
    assert {"P099", "P098", "P000", OTHER} <= shown.keys()
    assert list(shown)[-1] == OTHER


def test_samples_without_a_label_come_last_and_alone_have_a_color() -> None:
    assert list(looks(pd.Series(["B", None, "A"]))) == ["A", "B", NO_LABEL]
    assert looks(pd.Series([None, None]))[NO_LABEL].color == style.BLUE


# ---- components


def test_samples_are_drawn_at_their_scores_in_the_color_of_their_label() -> None:
    pcs, projected = table(FOUR, 60), table(FOUR, 8, start=60)
    figure = figures.component_pair(pcs, projected, eigenvalues=eigenvalues(), pair=(3, 4))
    found = points(figure.axes[0])
    assert set(found) == set(FOUR)
    for label, (used, hollow) in found.items():
        for drawn, rows in ((used, pcs), (hollow, projected)):
            np.testing.assert_allclose(
                np.asarray(drawn.get_offsets()), rows.loc[rows["label"] == label, ["PC3", "PC4"]]
            )
        color = looks(pcs["label"])[label].color
        assert to_hex(np.asarray(used.get_facecolor())[0]).upper() == color
        assert to_hex(np.asarray(hollow.get_edgecolor())[0]).upper() == color
        assert len(np.asarray(hollow.get_facecolor())) == 0


def test_a_component_that_was_not_computed_is_said_to_be_missing() -> None:
    figure = figures.component_pair(table(FOUR, 60), table(FOUR, 0), eigenvalues=eigenvalues(), pair=(7, 8))
    assert f"There are {COMPONENTS} components only" in written(figure)


def test_the_scree_fills_significant_components_and_tells_their_share() -> None:
    found = eigenvalues(significant=3)
    figure = figures.scree(found)
    _, filled, hollow, noise = figure.axes[0].lines
    np.testing.assert_allclose(np.asarray(filled.get_ydata()), found["eigenvalues"][:3])
    np.testing.assert_allclose(np.asarray(hollow.get_ydata()), found["eigenvalues"][3:])
    assert hollow.get_markerfacecolor() == "white"
    np.testing.assert_allclose(np.asarray(noise.get_ydata()), [1.5, 1.4, 1.3, 1.2, 1.1, 1.0])
    assert [text.get_text() for text in figure.axes[0].texts] == ["26.5 %", "12.2 %", "6.50 %"]
    assert "3 of the first 6 components are significant" in written(figure)


# ---- quality


def test_samples_and_variants_with_too_few_calls_are_counted_apart() -> None:
    left, right = figures.missingness(samples(), variants()).axes
    counted = [{label: round(float(number)) for label, number in steps(axes).items()} for axes in (left, right)]
    assert counted == [
        {"4 samples with enough calls": 4, "1 left out: too few calls": 1},
        {"6 variants with enough calls": 6, "2 left out: too few calls": 2},
    ]


def test_no_bin_holds_calls_that_are_enough_and_too_few() -> None:
    rates = np.linspace(0.5, 1, 331)
    table = pd.DataFrame({"call_rate": rates, "reason": np.where(rates < 0.95, "call rate", "")})
    for axes in figures.missingness(table, table.rename(columns={"reason": "reasons"})).axes:
        kept, left_out = (patch.get_data()[0] > 0 for patch in axes.patches if isinstance(patch, StepPatch))
        assert kept.any()
        assert left_out.any()
        assert not (kept & left_out).any()


def test_variants_are_counted_by_reason_the_most_frequent_first() -> None:
    figure = figures.variant_quality(variants())
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "kept", "call rate", "allele frequency", "linkage disequilibrium"
    ]  # fmt: skip
    widths = [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]
    np.testing.assert_allclose(widths, np.array([5, 2, 1, 1]) / 8)
    assert axes.texts[0].get_text() == "5 (62.5 %)"
    assert "8 variants = 5 kept + 3 rejected" in written(figure)
    assert max(axes.get_xticks()) <= axes.spines["bottom"].get_bounds()[1] <= 1


def test_frequencies_are_those_of_the_rarer_allele_before_and_after() -> None:
    axes = figures.variant_quality(variants()).axes[1]
    assert steps(axes) == {"all": 7, "kept": 4}
    assert axes.get_xlim() == (0, 0.5)


# ---- relatives


def test_pairs_are_drawn_by_degree_at_their_kinship_and_share_without_a_common_allele() -> None:
    pairs, summary = kinship()
    figure = figures.kinship(pairs, relatedness=summary)
    drawn = {name: np.asarray(each.get_offsets()).tolist() for name, (each,) in points(figure.axes[0]).items()}
    assert drawn == {
        "duplicates or twins": [[0.0, 0.49]],
        "first degree": [[0.001, 0.25], [0.01, 0.24]],
        "second degree": [[0.02, 0.12]],
        "third degree": [[0.03, 0.06]],
    }
    assert "40,005 pairs" in written(figure)
    assert "Not shown: 10 pairs of a kinship below -0.3." in written(figure)
    by_chance = round(40_005 * norm.sf(2**-4.5 / 0.015))
    told = f"first degree: 2; second degree: 1; third degree: 1, no more than the {by_chance} that chance may bring."
    assert told in " ".join(written(figure).split())
    limit = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert [float(np.asarray(line.get_ydata())[0]) for line in limit] == [0.0884]


def test_all_pairs_are_in_the_histogram_and_no_relatives_is_said() -> None:
    pairs, summary = kinship()
    figure = figures.kinship(pairs.head(0), relatedness=summary)
    (histogram,) = [patch for patch in figure.axes[1].patches if isinstance(patch, StepPatch)]
    np.testing.assert_array_equal(histogram.get_data()[0], summary["histogram"]["counts"])
    assert "No pair is related." in written(figure)


def test_kinship_that_was_not_computed_is_not_drawn_as_no_relatives() -> None:
    pairs, summary = kinship()
    without = {**summary, "undefined": 0, "histogram": {**summary["histogram"], "counts": [0] * 40}}
    figure = figures.kinship(pairs.head(0), relatedness=without)
    assert "No pairs were compared" in written(figure)
    assert "related." not in written(figure)


# ---- map and genome


def test_the_map_has_its_trustworthiness_and_the_legend_of_the_labels() -> None:
    figure = figures.umap(embedding(FOUR, 40), table(FOUR, 0), quality=QUALITY)
    assert "Trustworthiness 0.971" in written(figure)
    assert legend(figure) == [f"{label} (10)" for label in FOUR]
    assert sum(len(np.asarray(each.get_offsets())) for (each,) in points(figure.axes[0]).values()) == 40


def test_contigs_are_laid_end_to_end_in_the_order_of_their_variants() -> None:
    variants = pd.DataFrame({"contig": ["2", "2", "X", "X", "X"], "position": [100, 200, 5, 105, 305]})
    places, spans = along_genome(variants)
    assert list(spans) == ["2", "X"]
    np.testing.assert_allclose(np.diff(places)[[0, 2, 3]], [0.25, 0.25, 0.5])
    assert list(spans["2"]) == [0, 0.25]
    assert places[2] == spans["X"][0]
    assert places[2] > 0.25


def test_loadings_are_shown_relative_to_equal_ones_for_each_component() -> None:
    equal = np.full((4, 3), 0.5)
    variants = pd.DataFrame({"contig": ["1", "1", "2", "2"], "position": [1, 5, 2, 9]})
    figure = figures.loadings_by_position(equal, variants, components=2)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["PC1", "PC2"]
    assert "Squared loading, relative to the mean" in written(figure)
    for axes in figure.axes:
        np.testing.assert_allclose(np.concatenate([np.asarray(line.get_ydata()) for line in axes.lines]), 1)
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["1", "2"]


# ---- all of them


@pytest.mark.parametrize(
    ("labels", "count"), [(FOUR, 370), (MANY, 3_000), ((None,), 100), (("a label that is far too long", None), 50)],
    ids=["4 labels", "26 labels", "no labels", "a long label"],
)  # fmt: skip
def test_no_text_is_cut_and_no_labels_of_an_axis_overlap(labels: Sequence[str | None], count: int) -> None:
    drawn = every_picture(labels, count).items()
    assert [name for name, figure in drawn if not no_text_is_cut(figure) or labels_overlap(figure)] == []


# ---- the step
