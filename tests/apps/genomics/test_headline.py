"""What the genomics application says of its results: counts and contrasts as the files have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from whitewater_apps.genomics.headline import headline


def write_data(place: Path, *, reasons: list[list[str]], samples: int) -> None:
    pd.DataFrame({"kept": [not each for each in reasons], "reasons": reasons}).to_parquet(
        place / "variants.parquet", index=False
    )
    pd.DataFrame({"sample": [f"S{i}" for i in range(samples)]}).to_parquet(place / "samples.parquet", index=False)


def write_components(
    place: Path, means: Mapping[str | None, float], *, significant: int = 1, spread: float = 0.1
) -> None:
    """Ten samples a label at the given mean of PC1, with as many at the negative mean of PC2."""
    offsets = np.linspace(-spread, spread, 10)
    rows = [
        {"sample": f"{label}{i}", "label": label, "PC1": mean + offset, "PC2": -mean + offset}
        for label, mean in means.items()
        for i, offset in enumerate(offsets)
    ]
    table = pd.DataFrame(rows).astype({"label": object})
    table.to_parquet(place / "pcs.parquet", index=False)
    found: dict[str, Any] = {
        "explained_variance_ratio": [0.0712, 0.031, 0.002], "significant_components": significant,
        "tracy_widom": [{"component": i + 1, "p_value": p} for i, p in enumerate([0.0, 0.0003, 0.5])],
    }  # fmt: skip
    (place / "eigenvalues.json").write_text(json.dumps(found))


def test_nothing_is_said_of_files_that_are_not_there(tmp_path: Path) -> None:
    assert headline(tmp_path) == []


def test_variants_are_counted_before_and_after_pruning(tmp_path: Path) -> None:
    pruned, poor = ["linkage disequilibrium"], ["call rate", "allele count"]
    write_data(tmp_path, reasons=[[], [], pruned, poor, poor], samples=1_372)
    assert headline(tmp_path) == ["1,372 samples; 3 of 5 variants kept, 2 after pruning linkage disequilibrium."]


def test_significance_is_told_without_scores(tmp_path: Path) -> None:
    write_components(tmp_path, {"AFR": -5, "EUR": 1})
    (tmp_path / "pcs.parquet").unlink()
    assert headline(tmp_path) == ["1 of 3 components is significant (Tracy-Widom, p ≤ 1e-300)."]


def test_significant_components_are_counted_and_each_of_the_first_two_has_a_sentence(tmp_path: Path) -> None:
    write_components(tmp_path, {"AFR": -5, "EUR": 1, "ASIA": 2}, significant=2)
    assert headline(tmp_path) == [
        "2 of 3 components are significant (Tracy-Widom, p ≤ 0.0003).",
        "PC1 explains 7.12 % of the variance and runs from AFR to ASIA.",
        "PC2 explains 3.1 % of the variance and runs from ASIA to AFR.",
        "The labels differ along PC1 (100 %) and PC2 (100 %); in parentheses, the share of the variance between "
        "labels (Kruskal-Wallis, p ≤ 2.5e-06).",
    ]


def test_components_that_do_not_separate_the_labels_are_called_noise(tmp_path: Path) -> None:
    write_components(tmp_path, {"AFR": 0, "EUR": 0}, significant=0)
    assert headline(tmp_path) == [
        "0 of 3 components are significant (Tracy-Widom: none is more than noise).",
        "No component separates the labels beyond noise (Kruskal-Wallis).",
    ]


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ({"AFR": 5, "EUR": -1}, "and runs from EUR to AFR."),
        ({"A": 0, "B": 0.1, "C": 0.05}, "and runs from A to B."),
        ({"A": 3}, "of the variance."),
        ({None: 3}, "of the variance."),
    ],
    ids=["two labels", "three labels", "one label", "no label"],
)  # fmt: skip
def test_a_component_is_described_by_the_labels_at_its_ends(
    tmp_path: Path, means: dict[str | None, float], said: str
) -> None:
    write_components(tmp_path, means)
    sentence = headline(tmp_path)[1]
    assert sentence.startswith("PC1 explains 7.12 % of the variance")
    assert sentence.endswith(said)


def test_a_p_value_too_small_for_a_number_is_not_said_to_be_0(tmp_path: Path) -> None:
    write_components(tmp_path, {"A": 0, "B": 9}, significant=1)
    assert headline(tmp_path)[0] == "1 of 3 components is significant (Tracy-Widom, p ≤ 1e-300)."
