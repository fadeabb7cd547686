"""scikit-learn's encoders on pandas: StandardScaler, and OrdinalEncoder, whose codes are put in order of frequency."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder, StandardScaler

from benchmarks.recsys.features_variant import CATEGORICAL, CONTINUOUS, KEY, NULL, RARE, THRESHOLD, Work, main


def make(work: Work) -> None:
    """Make the features."""
    columns = [KEY, *CONTINUOUS, *CATEGORICAL]
    frame = pd.concat([pd.read_parquet(file, columns=columns) for file in work.files], ignore_index=True)
    logarithm = FunctionTransformer(lambda values: np.log1p(np.maximum(np.nan_to_num(values), 0)))
    numbers = StandardScaler().fit_transform(
        logarithm.fit_transform(frame[CONTINUOUS].to_numpy(np.float64, na_value=np.nan))
    )
    features = {KEY: frame[KEY].to_numpy()} | {
        name: numbers[:, place].astype(np.float32) for place, name in enumerate(CONTINUOUS)
    }
    for name in CATEGORICAL:
        encoder = OrdinalEncoder(encoded_missing_value=-1, dtype=np.int64)
        codes = encoder.fit_transform(frame[[name]].astype(object).where(frame[[name]].notna(), np.nan))[:, 0]
        features[name] = by_frequency(codes)[codes]
    pd.DataFrame(features).to_parquet(work.folder / "features.parquet", compression=None)


def by_frequency(codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the id of each code, which are in the order of the texts; the last one is that of null."""
    counts = np.bincount(codes[codes >= 0])
    order = np.argsort(-counts, kind="stable")
    frequent = order[counts[order] >= THRESHOLD]
    ids = np.full(len(counts) + 1, RARE, np.int32)
    ids[frequent] = RARE + 1 + np.arange(len(frequent))
    ids[-1] = NULL
    return ids


if __name__ == "__main__":
    main(make)
