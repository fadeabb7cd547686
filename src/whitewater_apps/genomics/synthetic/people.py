"""Who is in the data: unrelated founders, children of some of them, and samples that were genotyped twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater_apps.genomics.synthetic.chromosome import Genotypes

CHILDREN = 2


class Person(NamedTuple):
    """A founder, child or duplicate; ``mother``, ``father`` and ``original`` are indices of earlier people, or -1."""

    name: str
    population: str
    role: str
    mother: int = -1
    father: int = -1
    original: int = -1


def draw_people(samples: Mapping[Any, int], *, families: int, duplicates: int) -> tuple[Person, ...]:
    """Return all people: the founders of each population, then children, then duplicates.

    A family is two founders of one population and their two children; the populations get families in turn. The
    duplicates are those of the last founders, who are the last to be parents.
    """
    founders = [
        Person(f"{name}_{n:03d}", name, "founder") for name, count in samples.items() for n in range(1, count + 1)
    ]
    starts = pairwise(accumulate(samples.values(), initial=0))
    couples = [[(here, here + 1) for here in range(start, end - 1, 2)] for start, end in starts]
    in_turn = [couple for couple in chain.from_iterable(zip_longest(*couples)) if couple]
    children = [
        Person(f"family_{family:03d}_child_{child}", founders[mother].population, "child", mother, father)
        for family, (mother, father) in enumerate(in_turn[:families], start=1)
        for child in range(1, CHILDREN + 1)
    ]
    again = [
        Person(f"{founders[index].name}_duplicate", founders[index].population, "duplicate", original=index)
        for index in range(len(founders) - duplicates, len(founders))
    ]
    return (*founders, *children, *again)


def inherit(
    founders: Genotypes,
    people: Sequence[Person],
    *,
    positions: npt.NDArray[np.int64],
    recombination_rate: float,
    length: float,
    random: np.random.Generator,
) -> Genotypes:
    """Return the haplotypes of all people, int8 (variants, people, 2), from those of the founders, who come first.

    A child's first haplotype is a gamete of the mother, the second one of the father. It begins on either copy and
    changes it at each crossover; these fall uniformly, their number Poisson: Haldane's model (1919), without
    interference.
    """
    haplotypes = np.empty((len(founders), len(people), 2), np.int8)
    haplotypes[:, : founders.shape[1]] = founders
    for place, person in enumerate(people):
        if person.role == "duplicate":
            haplotypes[:, place] = haplotypes[:, person.original]
        if person.role == "child":
            for copy, parent in enumerate((person.mother, person.father)):
                crossovers = random.uniform(1, length + 1, random.poisson(recombination_rate * length))
                side = (random.integers(2) + np.searchsorted(np.sort(crossovers), positions)) % 2
                haplotypes[:, place, copy] = haplotypes[np.arange(len(side)), parent, side]
    return haplotypes


def write_labels(people: Sequence[Person], path: Path) -> None:
    """Write who is who as CSV: sample, population, role, mother and father, the names of the parents or empty."""
    import pandas as pd

    names = [*(person.name for person in people), ""]  # index -1 is the empty name
    rows = [(*person[:3], names[person.mother], names[person.father]) for person in people]
    pd.DataFrame(rows, columns=["sample", "population", "role", "mother", "father"]).to_csv(path, index=False)
