"""The strict device refuses what a GPU refuses, leaves undefined or does otherwise: the contract can be broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed.protocol.serialize import deserialize, serialize

from tests.contract.device_array import DeviceArray, recording
from tests.contract.signatures import Describe, problems
from tests.contract.strict_device import StrictDevice, on_device

DEVICE = StrictDevice()
XP: Any = DEVICE.xp
HOST = np.arange(6)


def array() -> Any:
    return DEVICE.from_host(HOST)


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.sum,
        np.sin,
        list,
        sorted,
        pa.array,
        lambda values: np.concatenate([values, values]),
        lambda values: np.where(values > 2, values, 0),
        lambda values: np.add(HOST, values),
        lambda values: pd.DataFrame({"values": values}),
        lambda values: 3 in values,
        lambda values: [0, 1, 2][values[0]],
    ],
)
def test_implicit_copies_to_the_host_are_refused(convert: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        convert(array())


@pytest.mark.parametrize(
    "mix",
    [
        lambda values: values + HOST,
        lambda values: HOST + values,
        lambda values: values == HOST,
        lambda values: values[HOST],
        lambda values: values[HOST > 2],
        lambda values: values[[0, 1]],
        lambda values: XP.where(values > 2, values, HOST),
        lambda values: XP.concatenate([values, HOST]),
        lambda values: XP.asarray(HOST),
        lambda values: values.clip(0, HOST),
        lambda values: values.__setitem__(slice(None), HOST),
    ],
)
def test_arrays_of_host_and_device_do_not_mix(mix: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        mix(array())


def test_scalars_of_the_host_mix() -> None:
    values = np.int64(2) * array() + 1
    values[0] = np.int64(7)
    assert DEVICE.to_host(values).tolist() == [7, 3, 5, 7, 9, 11]
    assert DEVICE.to_host(values).dtype == np.int64


@pytest.mark.parametrize("dtype", ["datetime64[us]", "object", "str", "longdouble"])
def test_dtypes_that_cupy_lacks_are_refused(dtype: str) -> None:
    with pytest.raises(TypeError):
        DEVICE.from_host(np.zeros(3).astype(dtype))
    with pytest.raises(TypeError):
        XP.zeros(3, dtype)


@pytest.mark.parametrize(
    "undefined",
    [
        lambda values: (values / 0.5 + float("nan")).astype("int64"),
        lambda values: (values * 1e20).astype(XP.int32),
        lambda values: values.__setitem__(0, float("nan")),
        lambda values: values << 64,
        lambda values: values >> (values - 3),
        lambda values: values // (values - 3),
        lambda values: values % 0,
        lambda values: values.__setitem__(DEVICE.from_host(np.array([1, 1])), DEVICE.from_host(np.array([5, 6]))),
        lambda values: XP.argsort(values // 2),
        lambda values: XP.random.default_rng(0),
    ],
)
def test_what_a_gpu_leaves_undefined_or_does_otherwise_is_refused(undefined: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"undefined|otherwise|ties|differ"):
        undefined(array())


def test_reductions_and_elements_are_arrays_as_in_cupy() -> None:
    for value in (array().sum(), array()[2], XP.max(array())):
        assert isinstance(value, DeviceArray)
        assert value.shape == ()


def test_views_share_memory_and_copies_to_the_host_do_not() -> None:
    values = array()
    values[2:4] = 0
    values[2:4][0] = 9
    DEVICE.to_host(values)[0] = 100
    assert DEVICE.to_host(values).tolist() == [0, 1, 9, 0, 4, 5]


def test_arrays_and_device_travel_between_workers() -> None:
    assert DEVICE.to_host(deserialize(*serialize(array()))).tolist() == HOST.tolist()
    assert deserialize(*serialize(DEVICE)) == DEVICE


def test_primitives_take_the_dtypes_of_the_protocol_only(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="int32"):
        DEVICE.group_accumulator([6]).add([array()], on_device(np.zeros(6)))
    with pytest.raises(TypeError, match="from_host"):
        DEVICE.write_parquet({"fare_amount": np.zeros(6)}, tmp_path / "block.parquet", {"fare_amount": "float64"})
    with pytest.raises(TypeError, match="float32"):
        DEVICE.ridge(alpha=1.0).fit(array(), array())


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda values: XP.geomspace(1, 8, 4), "RAPIDS has no cupy.geomspace"),
        (lambda values: XP.errstate(divide="ignore"), "RAPIDS has no cupy.errstate"),
        (lambda values: values.setflags(write=False), "RAPIDS has no cupy.ndarray.setflags"),
        (lambda values: XP.take(values, values, mode="clip"), "got an unexpected keyword argument 'mode'"),
        (lambda values: values.sum(where=values > 0), "got an unexpected keyword argument 'where'"),
        (
            lambda values: XP.add(values, values, out=values, where=values > 0),
            "got an unexpected keyword argument 'where'",
        ),
        (lambda values: values.cumsum(0, None, None), None),
        (lambda values: values.argmax(0, None), None),
        (lambda values: XP.bincount(values, minlength=9), None),
    ],
)
def test_calls_that_cupy_refuses_are_found(rapids: Describe, call: Callable[[Any], Any], fault: str | None) -> None:
    with recording() as calls:
        call(array())
    found = problems(calls, rapids)
    assert fault is None or len(found) == 1
    assert (fault in found[0]) if fault else (found == [])
