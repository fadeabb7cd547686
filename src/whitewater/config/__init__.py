"""Typed configuration: what its sections have in common, and the whole of it, which Snakemake has before any step."""
