"""Typed configuration. Imports the standard library and pydantic only: it runs inside Snakemake, before any step."""

from whitewater.config.resolve import Source, describe_auto, require_device, resolve
from whitewater.config.root import Cluster, Config

__all__ = ["Cluster", "Config", "Source", "describe_auto", "require_device", "resolve"]
