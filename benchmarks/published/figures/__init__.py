"""The pictures of the published tables: functions of results that return Matplotlib figures."""

from benchmarks.published.figures.roofline import roofline
from benchmarks.published.figures.scaling import scaling
from benchmarks.published.figures.search import search
from benchmarks.published.figures.variants import variants

__all__ = ["roofline", "scaling", "search", "variants"]
