"""Variants of two data sets are matched by id, else by place, and only where their alleles are the same."""

import pandas as pd
import pytest

from whitewater.genotypes.pca.projection import match_variants


def table(*rows: tuple[str, int, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["contig", "position", "id", "reference", "alternate"])


FIRST = table(("1", 100, "rs1", "A", "G"))


@pytest.mark.parametrize(
    ("other", "swapped", "outcome"),
    [
        (("1", 100, "rs1", "A", "G"), False, "same"),
        (("1", 100, "rs1", "G", "A"), True, "swapped"),
        (("1", 100, "rs1", "T", "C"), False, "same, other strand"),
        (("1", 100, "rs1", "C", "T"), True, "swapped, other strand"),
        (("1", 100, "other name", "a", "g"), False, "same"),
        (("7", 999, "rs1", "A", "G"), False, "same"),
    ],
)
def test_the_same_variant_is_found_however_it_is_written(
    other: tuple[str, int, str, str, str], swapped: bool, outcome: str
) -> None:
    found = match_variants(FIRST, table(("1", 1, "rs0", "A", "G"), other), keep_ambiguous=False)
    assert (found.first.tolist(), found.second.tolist(), found.swapped.tolist()) == ([0], [1], [swapped])
    assert found.counts == {outcome: 1}


@pytest.mark.parametrize(
    ("other", "outcome"),
    [(("1", 100, "rs1", "A", "T"), "other alleles"), (("1", 101, "rs2", "A", "G"), "absent")],
)
def test_another_variant_is_counted_and_not_matched(other: tuple[str, int, str, str, str], outcome: str) -> None:
    found = match_variants(FIRST, table(other), keep_ambiguous=False)
    assert (len(found.first), found.counts) == (0, {outcome: 1})


@pytest.mark.parametrize("alleles", [("A", "T"), ("G", "C"), ("AC", "GT")])
def test_where_the_alleles_do_not_tell_the_strand_the_caller_decides(alleles: tuple[str, str]) -> None:
    ambiguous = table(("1", 100, "rs1", *alleles))
    assert match_variants(ambiguous, ambiguous, keep_ambiguous=False).counts == {"strand unknown": 1}
    assert match_variants(ambiguous, ambiguous, keep_ambiguous=True).counts == {"same": 1}


def test_a_place_is_not_looked_up_where_the_ids_say_that_it_is_another_variant() -> None:
    first = table(("1", 100, "rs1", "A", "G"), ("1", 200, "rs2", "A", "G"))
    moved = table(("1", 100, "rs2", "A", "G"))
    found = match_variants(first, moved, keep_ambiguous=False)
    assert (found.first.tolist(), found.counts) == ([1], {"absent": 1, "same": 1})


def test_of_several_variants_at_a_place_the_one_with_fitting_alleles_counts() -> None:
    second = table(("1", 100, "a", "A", "C"), ("1", 100, "b", "G", "A"))
    found = match_variants(table(("1", 100, "rs1", "A", "G")), second, keep_ambiguous=False)
    assert (found.second.tolist(), found.swapped.tolist()) == ([1], [True])


def test_alleles_of_several_bases_read_backwards_on_the_other_strand() -> None:
    first = table(("1", 100, "rs1", "AC", "TC"))
    assert match_variants(first, table(("1", 100, "rs1", "GT", "GA")), keep_ambiguous=False).counts == {
        "same, other strand": 1
    }
    assert match_variants(first, table(("1", 100, "rs1", "TG", "AG")), keep_ambiguous=False).counts == {
        "other alleles": 1
    }


def test_variants_of_unknown_position_match_by_an_id_that_was_not_made_of_it() -> None:
    unknown = [("1", 0, "rs1", "A", "G"), ("1", 0, "1:0:A:G", "A", "G"), ("1", 0, "rs2", "A", "G")]
    other = table(("1", 0, "zz1", "A", "G"), ("1", 0, "1:0:A:G", "A", "G"), ("1", 0, "rs2", "A", "G"))
    found = match_variants(table(*unknown), other, keep_ambiguous=False)
    assert (found.first.tolist(), found.second.tolist()) == ([2], [2])
    assert found.counts == {"absent": 2, "same": 1}
