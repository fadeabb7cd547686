"""A documented model of genotypes: a published demography, families, and the dirt of real call sets."""
