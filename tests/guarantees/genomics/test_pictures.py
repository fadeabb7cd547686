"""What the pictures of the genomics application, the log and the headline say of awkward data, all in one run."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended, make_clone
from tests.helpers.genotype_stores import Sites, sample_names, write_plink

pytestmark = pytest.mark.slow
RESULTS = "results/genomics/cpu"
LABELS = ("$x^2$", r"$\frac{$", "_under", "汉族", "日本")
CONTIGS = [f"NW_0{number:04}.1" for number in range(90)]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, Ended]:
    """A run on 150 samples at 90 variants, each on a contig of its own: too few for ten components."""
    clone = make_clone(tmp_path_factory.mktemp("pictures") / "clone")
    random = np.random.default_rng(2)
    dosages = random.binomial(2, random.uniform(0.2, 0.8, (90, 1)), (90, 150))
    sites = Sites(CONTIGS, [1_000] * 90, [f"rs{row}" for row in range(90)], ["G"] * 90, ["A"] * 90)
    write_plink(clone / "cohort", dosages, sites=sites)
    labels = [LABELS[place % len(LABELS)] for place in range(150)]
    pd.DataFrame({"sample": sample_names(150), "population": labels}).to_csv(clone / "labels.csv", index=False)
    ended = clone.run("genomics", {
        "ingest": {"source": "plink", "plink": {"prefix": "cohort"}, "labels": {"table": "labels.csv"}},
        "relatedness": {"maximum_chance_relatives": 150},
        "umap": {"neighbors": 150},
        "plot": {"formats": ["svg", "png"], "components": 2},
    })  # fmt: skip
    return clone, ended


@pytest.fixture
def clone(drawn: tuple[Clone, Ended]) -> Clone:
    clone, ended = drawn
    assert ended.status == 0, ended.terminal
    return clone


def written(clone: Clone, picture: str) -> list[str]:
    """Return the texts of a picture, each a comment in front of its shapes."""
    return re.findall(r"<!-- (.*?) -->", (clone / f"{RESULTS}/plots/{picture}.svg").read_text(), re.DOTALL)


def test_labels_are_written_as_they_are_and_told_apart(clone: Clone) -> None:
    texts = [text.rsplit(" (", 1)[0] for text in written(clone, "pcs_1_2")]
    for label in ("$x^2$", r"$\frac{$", "_under", r"\u6c49\u65cf", r"\u65e5\u672c"):
        assert label in texts
    (text, shapes), *_ = re.findall(
        r"<!-- (\$x\^2\$ .*?) -->(.*?)</g>", (clone / f"{RESULTS}/plots/pcs_1_2.svg").read_text(), re.DOTALL
    )
    assert shapes.count("<use ") == len(text), (
        "each letter is drawn, also the dollar signs, which would begin a formula"
    )


def test_names_of_many_contigs_do_not_overlap(clone: Clone) -> None:
    texts = written(clone, "loadings_by_position")
    named = [text for text in texts if text in CONTIGS]
    assert 2 <= len(named) <= 12
    assert f"Contig ({len(named)} of 90 named)" in texts


def test_a_component_is_significant_exactly_where_it_is_above_the_line(clone: Clone) -> None:
    found = clone.json(f"{RESULTS}/eigenvalues.json")
    above = [value > test["threshold"] for value, test in zip(found["eigenvalues"], found["tracy_widom"], strict=True)]
    assert above == [test["p_value"] < 0.01 for test in found["tracy_widom"]]
    assert [*above, False].index(False) == found["significant_components"]
    assert "least that would be significant" in written(clone, "scree")


def test_samples_without_scores_are_counted_alike_everywhere_with_their_reason(
    clone: Clone, drawn: tuple[Clone, Ended]
) -> None:
    table = pd.read_parquet(clone / f"{RESULTS}/projected.parquet")
    assert table["PC1"].isna().all()
    assert table["reason"].str.endswith("; called at 90 of the variants of the components, 100 are needed").all()
    count = len(table)
    assert f"0 samples projected; {count} have no scores" in drawn[1].terminal
    note = f"Not shown: {count} samples without scores: column `reason` of projected.parquet tells why."
    assert note in written(clone, "pcs_1_2")
    told = clone.start("python", "-m", "whitewater", "results", PYTHONPATH=str(clone / "src")).ended()
    assert f"{count} samples have no scores" in told.terminal
    assert "samples were projected" not in told.terminal
    assert "Few variants tell relatives from strangers. Pairs that are relatives by chance: up to " in told.terminal
