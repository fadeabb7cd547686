"""The findings of a run of the genomics application, in sentences."""

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from whitewater import lazy_pandas as pd
from whitewater.figures.words import pluralize
from whitewater.io.store import read_json
from whitewater_apps.genomics.decisions import FALSE_PAIRS

_MOST_PCS = 2
_MOST_LABELS = 42  # that pictures tell apart
_LEAST_P = 1e-300
_LEVEL = 0.01
# The reasons of step `ld_prune`.
PRUNED = "^(linkage disequilibrium|closer than .*)$"


def headline(results: Path) -> list[str]:
    """Return a list of sentences about the results of one device, such as ``results/genomics/cpu``."""
    topics = (
        (_describe_data, ("variants.parquet", "samples.parquet")),
        (_describe_relatives, ("relatedness.json",)),
        (_describe_components, ("eigenvalues.json",)),
        (_describe_projection, ("projected.parquet",)),
        (_describe_map, ("umap.json",)),
    )
    files = [(describe, [results / name for name in names]) for describe, names in topics]
    return [sentence for describe, paths in files if all(map(Path.exists, paths)) for sentence in describe(*paths)]


def _describe_data(variants: Path, samples: Path) -> list[str]:
    table = pq.read_table(variants, columns=["kept", "reasons"])
    kept = pc.sum(table["kept"]).as_py() or 0
    # Pruned variants have passed quality control, so they have no other reason.
    pruned = pc.sum(pc.match_substring_regex(pc.list_flatten(table["reasons"]), PRUNED)).as_py() or 0
    count = pq.read_metadata(samples).num_rows
    before = f"{pluralize(count, 'sample')}; {kept + pruned:,} of {len(table):,} variants kept"
    return [f"{before}, {kept:,} after pruning linkage disequilibrium." if pruned else f"{before}."]


def _describe_relatives(path: Path) -> list[str]:
    pairs = read_json(path)["chance_pairs"]
    if pairs is None or pairs < FALSE_PAIRS:
        return []
    return [f"Few variants tell relatives from strangers. Pairs that are relatives by chance: up to {pairs:,.0f}."]


def _describe_components(path: Path) -> list[str]:
    """Describe significance and, if there are scores, the first components, with the labels at their ends if few."""
    results, scores = read_json(path), path.with_name("pcs.parquet")
    tests, significant = results["tracy_widom"], results["significant_components"]
    verb = "is" if significant == 1 else "are"
    largest = max((test["p_value"] for test in tests[:significant]), default=None)
    p_value = ": none is more than noise" if largest is None else f", p ≤ {max(largest, _LEAST_P):.2g}"
    sentences = [f"{significant} of {len(tests)} components {verb} significant (Tracy-Widom{p_value})."]
    if not scores.exists():
        return sentences
    table = pd.read_parquet(scores).dropna(subset=["label"])
    for number, share in enumerate(results["explained_variance_ratio"][: min(_MOST_PCS, significant)], start=1):
        means = table.groupby("label")[f"PC{number}"].mean().sort_values()
        ends = f" and runs from {means.index[0]} to {means.index[-1]}" if 2 <= len(means) <= _MOST_LABELS else ""
        sentences.append(f"PC{number} explains {100 * share:.3g} % of the variance{ends}.")
    return sentences + _describe_labels(table)


def _describe_labels(table: "pd.DataFrame") -> list[str]:
    """Name the components that separate labels, by the Kruskal-Wallis test with Bonferroni correction."""
    from scipy.stats import kruskal

    groups, names = table.groupby("label"), [name for name in map(str, table) if name.startswith("PC")]
    if len(groups) < 2 or not names:
        return []
    between = groups[names].transform("mean").var() / table[names].var()
    p_values = {name: kruskal(*(rows.to_numpy() for _, rows in groups[name])).pvalue for name in names}
    separating = [name for name in names if p_values[name] < _LEVEL / len(names)]
    if not separating:
        return ["No component separates the labels beyond noise (Kruskal-Wallis)."]
    shares = " and ".join(f"{name} ({100 * between[name]:.3g} %)" for name in separating)
    others = len(names) - len(separating)
    rest = f" Along the other {others} they differ by no more than noise." if others else ""
    largest = max(*(p_values[name] for name in separating), _LEAST_P)
    return [
        f"The labels differ along {shares}; in parentheses, the share of the variance between labels "
        f"(Kruskal-Wallis, p ≤ {largest:.2g}).{rest}"
    ]


def _describe_projection(path: Path) -> list[str]:
    table = pd.read_parquet(path, columns=["data_set", "reason", "PC1"])
    placed = table[table["PC1"].notna()]
    second = int((placed["data_set"] == "second").sum())
    # An empty column need not be text.
    relatives = int(placed["reason"].astype("string").str.startswith("relative of").sum())
    others = len(placed) - second - relatives
    counts = {"relatives of others": relatives, "left out for other reasons": others, "of the second data set": second}
    parts = [f"{number:,} {what}" for what, number in counts.items() if number]
    were = "sample was" if len(placed) == 1 else "samples were"
    sentences = [f"{len(placed):,} {were} projected: {', '.join(parts)}."] if parts else []
    if lost := len(table) - len(placed):
        samples = "sample has" if lost == 1 else "samples have"
        sentences.append(f"{lost:,} {samples} no scores: column `reason` of projected.parquet tells why.")
    return sentences


def _describe_map(path: Path) -> list[str]:
    quality = read_json(path)
    if quality["trustworthiness"] is not None:
        return []
    samples, neighbors = quality["samples"], quality["neighbors"]
    return [f"No map was made: {samples:,} samples are not more than umap.neighbors, {neighbors}."]
