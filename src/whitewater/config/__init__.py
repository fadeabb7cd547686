"""Typed configuration. Imports the standard library and pydantic only: it runs inside Snakemake, before any step.

Each application has a module, so that a step imports the models of its own alone; `root` has all.
"""
