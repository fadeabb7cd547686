"""The formats that genotypes are read from; each module opens one."""

from whitewater.genomics.sources.source import Source, open_source

__all__ = ["Source", "open_source"]
