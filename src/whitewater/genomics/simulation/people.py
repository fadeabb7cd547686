"""Who is in the data: unrelated founders, children of some of them, and samples that were genotyped twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

CHILDREN = 2


@dataclass(frozen=True)
class Person:
    """A sample; ``mother``, ``father`` and ``original`` are indices of earlier people, -1 for none."""

    name: str
    population: str
    role: Literal["founder", "child", "duplicate"]
    mother: int = -1
    father: int = -1
    original: int = -1


def draw_people(samples: Mapping[str, int], *, families: int, duplicates: int) -> tuple[Person, ...]:
    """Return all people: founders by population, then children, then duplicates.

    A family is two founders of one population and their two children; the populations get families in turn. The
    duplicates are those of the last founders, who are the last to be parents.

    Parameters
    ----------
    samples
        Founders of each population.
    families
        Number of families, at most the pairs that the populations have.
    duplicates
        Number of founders with a second sample.
    """
    founders = [
        Person(f"{name}_{n:03d}", name, "founder") for name, count in samples.items() for n in range(1, count + 1)
    ]
    parents = _couples(samples)[:families]
    children = [
        Person(f"family_{family:03d}_child_{child}", founders[mother].population, "child", mother, father)
        for family, (mother, father) in enumerate(parents, start=1)
        for child in range(1, CHILDREN + 1)
    ]
    originals = range(len(founders) - duplicates, len(founders))
    again = [
        Person(f"{founders[index].name}_duplicate", founders[index].population, "duplicate", original=index)
        for index in originals
    ]
    return (*founders, *children, *again)


def _couples(samples: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return pairs of neighbouring founders: the first pair of each population, then the second ones, and so on."""
    starts = [0, *np.cumsum(list(samples.values())).tolist()]
    couples = [list(zip(range(a, b - 1, 2), range(a + 1, b, 2), strict=True)) for a, b in pairwise(starts)]
    turns = max(map(len, couples), default=0)
    return list(chain.from_iterable([each[turn] for each in couples if turn < len(each)] for turn in range(turns)))


def inherit(
    founders: npt.NDArray[np.int8],
    people: Sequence[Person],
    *,
    positions: npt.NDArray[np.int64],
    recombination_rate: float,
    length: float,
    random: np.random.Generator,
) -> npt.NDArray[np.int8]:
    """Return the haplotypes of all people, int8 (variants, people, 2), from those of the founders, who come first.

    A child's first haplotype is a gamete of the mother, the second one of the father.
    """
    haplotypes = np.empty((len(founders), len(people), 2), np.int8)
    haplotypes[:, : founders.shape[1]] = founders
    for place, person in enumerate(people):
        if person.role == "duplicate":
            haplotypes[:, place] = haplotypes[:, person.original]
        if person.role == "child":
            for copy, parent in enumerate((person.mother, person.father)):
                haplotypes[:, place, copy] = gamete(
                    haplotypes[:, parent],
                    positions=positions,
                    crossovers=random.uniform(1, length + 1, random.poisson(recombination_rate * length)),
                    first=int(random.integers(2)),
                )
    return haplotypes


def gamete(
    parent: npt.NDArray[np.int8],
    *,
    positions: npt.NDArray[np.int64],
    crossovers: npt.NDArray[np.float64],
    first: int,
) -> npt.NDArray[np.int8]:
    """Return one haplotype of a parent's two, int8 (variants, 2), which begins on copy ``first``.

    It changes the copy at each crossover. Crossovers that fall uniformly, their number Poisson, are those of Haldane's
    model (1919), without interference.
    """
    copy = (first + np.searchsorted(np.sort(crossovers), positions)) % 2
    chosen: npt.NDArray[np.int8] = np.take_along_axis(parent, copy[:, np.newaxis], axis=1)[:, 0]
    return chosen


def write_labels(people: Sequence[Person], path: Path) -> None:
    """Write who is who as CSV: sample, population, role, mother and father, the names of the parents or empty."""
    import pandas as pd

    names = np.array([*(person.name for person in people), ""], dtype=object)  # index -1 is the empty name
    pd.DataFrame(
        {
            "sample": names[:-1],
            "population": [person.population for person in people],
            "role": [person.role for person in people],
            "mother": names[[person.mother for person in people]],
            "father": names[[person.father for person in people]],
        }
    ).to_csv(path, index=False, lineterminator="\n")
