"""Typed configuration. Imports the standard library and pydantic only: it runs inside Snakemake, before any step."""

from whitewater.config.resolve import Source, require_device, resolve
from whitewater.config.root import Cluster, Config

__all__ = ["Cluster", "Config", "Source", "require_device", "resolve"]
