"""What a source of genotypes gives, as arrays to compare."""

from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater.genotypes.sources.source import Source


def encoded(source: Source) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return what the source's ranges give: dosages, counts and missing calls."""
    samples = len(source.samples)
    found, counts, missing = [], [], np.zeros(samples, np.int64)
    for start, stop in source.ranges():
        codes, tally = source.encode(start, stop)
        assert codes.dtype == (np.uint8 if source.ploidy == 2 else np.int8)
        counts.append(tally.counts)
        missing += tally.missing
        found.append(unpacked(codes, samples))
    return np.concatenate(found), np.concatenate(counts), missing


def unpacked(codes: npt.NDArray[Any], samples: int) -> npt.NDArray[np.int64]:
    if codes.dtype == np.int8:
        return codes.astype(np.int64)
    bits = np.unpackbits(codes, axis=1, bitorder="little").reshape(len(codes), -1, 2)
    return np.asarray(np.array([0, 1, 2, -1])[bits[:, :samples, 0] + 2 * bits[:, :samples, 1]])
