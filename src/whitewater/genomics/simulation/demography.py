"""American admixture: the history of three continents and of a population that descends from all of them.

The model is that of the simulations of Browning et al. (2018), "Ancestry-specific recent effective population size in
the Americas", PLoS Genetics 14:e1007385, which adds an admixed population to the model of Gravel et al. (2011),
"Demographic history and rare allele sharing among human populations", PNAS 108:11983. stdpopsim lists it as
AmericanAdmixture_4B11. Sizes are diploid individuals, times generations ago, rates a generation.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msprime

ANCESTRAL_SIZE = 7310
AFRICAN_EXPANSION = 5920
AFRICAN_SIZE = 14474  # from the expansion until today

OUT_OF_AFRICA = 2040
OUT_OF_AFRICA_SIZE = 1861
OUT_OF_AFRICA_MIGRATION = 1.5e-4  # with Africa

EURASIAN_SPLIT = 920
EUROPEAN_SIZE, EUROPEAN_GROWTH = 1032, 0.0038  # size at the split
ASIAN_SIZE, ASIAN_GROWTH = 554, 0.0048  # size at the split
MIGRATION = {("AFR", "EUR"): 2.5e-5, ("AFR", "ASIA"): 7.8e-6, ("EUR", "ASIA"): 3.11e-5}

ADMIXTURE = 12
ADMIXED_SIZE, ADMIXED_GROWTH = 30000, 0.05  # size at the admixture
ANCESTRY = {"AFR": 1 / 6, "EUR": 1 / 3, "ASIA": 1 / 2}


def american_admixture() -> msprime.Demography:
    """Return the model; its sampled populations are AFR, EUR, ASIA and ADMIX."""
    import msprime

    model = msprime.Demography()
    model.add_population(name="AFR", initial_size=AFRICAN_SIZE)
    model.add_population(name="EUR", **_grown(EUROPEAN_SIZE, EUROPEAN_GROWTH, EURASIAN_SPLIT))
    model.add_population(name="ASIA", **_grown(ASIAN_SIZE, ASIAN_GROWTH, EURASIAN_SPLIT))
    model.add_population(name="ADMIX", **_grown(ADMIXED_SIZE, ADMIXED_GROWTH, ADMIXTURE))
    model.add_population(name="OUT_OF_AFRICA", initial_size=OUT_OF_AFRICA_SIZE)
    model.add_population(name="EXPANDED", initial_size=AFRICAN_SIZE)
    model.add_population(name="ANCESTRAL", initial_size=ANCESTRAL_SIZE)
    for populations, rate in MIGRATION.items():
        model.set_symmetric_migration_rate(populations, rate)
    model.add_admixture(ADMIXTURE, derived="ADMIX", ancestral=list(ANCESTRY), proportions=list(ANCESTRY.values()))
    model.add_population_split(EURASIAN_SPLIT, derived=["EUR", "ASIA"], ancestral="OUT_OF_AFRICA")
    model.add_symmetric_migration_rate_change(EURASIAN_SPLIT, ["AFR", "OUT_OF_AFRICA"], OUT_OF_AFRICA_MIGRATION)
    model.add_population_split(OUT_OF_AFRICA, derived=["AFR", "OUT_OF_AFRICA"], ancestral="EXPANDED")
    model.add_population_split(AFRICAN_EXPANSION, derived=["EXPANDED"], ancestral="ANCESTRAL")
    return model


def _grown(size: float, growth: float, generations: float) -> dict[str, float]:
    """Return today's size of a population that has grown since its beginning, and its growth."""
    return {"initial_size": size * exp(growth * generations), "growth_rate": growth}
