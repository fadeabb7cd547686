"""XGBoost takes arrays of a GPU for what they are, by the interface of CUDA's arrays, which CuPy's have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.contract.strict_device import stand_in_for_cupy

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.random((30, 3), np.float32)
LABELS = (ROWS[:, 0] > 0.5).astype(np.float32)


class CudaArray:
    """What XGBoost asks of an array of CuPy."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, "stream": None}

    def __len__(self) -> int:
        return int(self.shape[0])


def _trained() -> Any:
    return xgboost.train({"device": "cpu"}, xgboost.QuantileDMatrix(ROWS, label=LABELS), 2)


@pytest.mark.skipif(xgboost.build_info()["USE_CUDA"], reason="this XGBoost computes on GPUs: tests/gpu tries it")
@pytest.mark.parametrize(
    "use",
    [
        lambda: xgboost.QuantileDMatrix(CudaArray(ROWS), label=LABELS),
        lambda: xgboost.QuantileDMatrix(ROWS, label=CudaArray(LABELS)),
        lambda: _trained().inplace_predict(CudaArray(ROWS)),
    ],
)
def test_arrays_of_a_gpu_are_not_mistaken_for_others(use: Callable[[], object]) -> None:
    with stand_in_for_cupy(), pytest.raises(xgboost.core.XGBoostError, match="not compiled with GPU support"):
        use()
