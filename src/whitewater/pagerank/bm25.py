"""Scores: BM25 of the text, and PageRank as a prior that does not depend on the query.

Sources: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse
document frequency of Apache Lucene, which is above 0 for every term. S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25
Extension to Multiple Weighted Fields" (2004): words of the title count several times. N. Craswell, S. Robertson,
H. Zaragoza, M. Taylor, "Relevance Weighting for Query Independent Evidence" (2005): the prior saturates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def inverse_document_frequency(document_frequency: int, documents: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5))."""
    return math.log1p((documents - document_frequency + 0.5) / (document_frequency + 0.5))


def saturated_frequency(
    frequencies: npt.NDArray[Any], lengths: npt.NDArray[Any], *, mean_length: float, k1: float, b: float
) -> Floats:
    """Return f (k1 + 1) / (f + k1 (1 - b + b length / mean length)), float64 (documents,)."""
    counted = frequencies.astype(np.float64)
    found: Floats = counted * (k1 + 1) / (counted + k1 * (1 - b + b * lengths / mean_length))
    return found


def prior(ranks: Floats, *, vertices: int, most: float, half: float) -> Floats:
    """Return most r / (half + r), float64 (documents,), where r is the rank as a multiple of the mean rank."""
    relative = ranks * vertices
    added: Floats = most * relative / (half + relative)
    return added
