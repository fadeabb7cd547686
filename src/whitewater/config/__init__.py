"""Typed configuration. It runs inside Snakemake, before any step, so it imports little."""
