"""The strict device refuses what a GPU refuses, leaves undefined or does otherwise: the contract can be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pickle import PicklingError
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed.protocol.pickle import dumps
from distributed.protocol.serialize import deserialize, serialize

from tests.contract.device_array import DeviceArray, differing, recording
from tests.contract.signatures import faults
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.genotypes.codes import count_genotypes, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage import correlated_variants
from whitewater.learn.estimators import ridge

DEVICE = StrictDevice()
XP: Any = DEVICE.xp
HOST = np.arange(6)
PACKED = Genotypes(np.full((2, 2), 0b11_10_01_00, np.uint8), 7)
TABLE, STOPS = np.zeros((2, 4), np.float32), np.array([2, 2], np.int32)


def up(array: Any) -> Any:
    return DEVICE.to_device(array)


def down(array: Any) -> list[Any]:
    values: list[Any] = DEVICE.to_host(array).tolist()
    return values


def there() -> Genotypes:
    return replace(PACKED, codes=up(PACKED.codes))


@pytest.mark.parametrize(
    "convert",
    [
        # Implicit copies to the host.
        np.asarray,
        np.sum,
        np.sin,
        list,
        sorted,
        pa.array,
        lambda values: np.concatenate([values, values]),
        lambda values: np.add(HOST, values),
        lambda values: pd.DataFrame({"values": values}),
        lambda values: 3 in values,
        lambda values: [0, 1, 2][values[0]],
        # Arrays of the host among those of the device.
        lambda values: values + HOST,
        lambda values: HOST + values,
        lambda values: values == HOST,
        lambda values: values + [1] * 6,
        lambda values: values[HOST > 2],
        lambda values: values[[0, 1]],
        lambda values: XP.where(values > 2, values, HOST),
        lambda values: XP.asarray(HOST),
        lambda values: values.clip(0, HOST),
        lambda values: values.__setitem__(slice(None), HOST),
        # Dtypes that CuPy lacks, and others than models and kernels take.
        lambda values: up(HOST.astype("datetime64[us]")),
        lambda values: XP.zeros(3, "object"),
        lambda values: XP.zeros(3, "longdouble"),
        lambda values: ridge(DEVICE, alpha=1.0).fit(values, values),
        lambda values: count_genotypes(DEVICE, PACKED),
        lambda values: expand_genotypes(DEVICE, there(), TABLE),
        lambda values: expand_genotypes(DEVICE, there(), up(TABLE.astype(np.float64))),
        lambda values: correlated_variants(DEVICE, there(), up(STOPS), 0.5),
    ],
)
def test_implicit_copies_and_other_dtypes_are_refused(convert: Callable[[Any], Any]) -> None:
    with stand_in_for_cupy(), pytest.raises((TypeError, ValueError)):
        convert(up(HOST))


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
        lambda values: values.__setitem__(up(np.array([1, 1])), up(np.array([5, 6]))),
        lambda values: XP.argsort(values // 2),
        lambda values: XP.random.default_rng(0),
        lambda values: XP.bincount(values[:0], minlength=3),
    ],
)
def test_what_a_gpu_leaves_undefined_or_does_otherwise_is_refused(undefined: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"undefined|otherwise|ties|differ|empty"):
        undefined(up(HOST))


def test_scalars_of_the_host_mix() -> None:
    values = np.int64(2) * up(HOST) + 1
    values[0] = np.int64(7)
    values += 1
    assert down(values) == [8, 4, 6, 8, 10, 12]
    assert values.dtype == np.int64


def test_elements_reductions_and_factors_are_arrays_of_the_device() -> None:
    values = up(HOST)
    for value in (values.sum(), values[2], XP.max(values)):
        assert (type(value), value.shape) == (DeviceArray, ())
    matrix = up(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    factors = XP.linalg.qr(matrix)
    assert type(factors) is tuple
    assert {type(each) for each in (matrix.T @ matrix, *factors)} == {DeviceArray}


def test_views_share_memory_and_copies_to_the_host_and_to_workers_do_not() -> None:
    values = up(HOST)
    values[2:4] = 0
    values[2:4][0] = 9
    DEVICE.to_host(values)[0] = 100
    arrived = deserialize(*serialize(values))
    arrived[0] = 7
    assert (down(values), down(arrived)) == ([0, 1, 9, 0, 4, 5], [7, 1, 9, 0, 4, 5])
    assert deserialize(*serialize(DEVICE)) == DEVICE
    with pytest.raises((TypeError, PicklingError)):
        dumps(XP)


def test_ties_and_random_numbers_that_may_differ_do() -> None:
    ties = up(np.arange(1_000) // 500)
    with differing(), recording() as calls:
        order = DEVICE.to_host(XP.argsort(ties))
        assert order.tolist() != list(range(1_000))
        assert (DEVICE.to_host(ties)[order] == DEVICE.to_host(ties)).all()
        assert down(XP.argsort(ties, kind="stable")) == list(range(1_000))
        drawn = down(XP.random.default_rng(7).random((100,)))
    assert not np.isin(drawn, np.random.default_rng(7).random(1_000)).any()
    seed = np.arange(3, dtype=np.uint32)
    drawn = down(XP.random.RandomState(seed).standard_normal(size=(8,)))
    assert not np.isin(drawn, np.random.RandomState(seed).standard_normal(8)).any()
    assert faults(calls) == []


def test_a_generator_writes_as_cupys_does() -> None:
    out, column = XP.empty((50, 2)), XP.empty((50, 2))[:, 0]
    with differing():
        generator = XP.random.default_rng(7)
        # One number, since it is not told how many.
        assert len(np.unique(down(generator.random(out=out)))) == 1
        assert len(np.unique(down(generator.random((50, 2), out=out)))) == 100
        assert len(np.unique(down(generator.standard_normal(out=out)))) == 100
        with pytest.raises(ValueError, match="contiguous"):
            generator.random(50, out=column)


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda values: XP.errstate(divide="ignore"), "RAPIDS has no cupy.errstate"),
        (lambda values: values.setflags(write=False), "RAPIDS has no cupy.ndarray.setflags"),
        (lambda values: XP.take(values, values, mode="clip"), "got an unexpected keyword argument 'mode'"),
        (lambda values: values.sum(where=values > 0), "got an unexpected keyword argument 'where'"),
        (lambda values: values.cumsum(0, None, None), None),
    ],
)
def test_calls_that_cupy_refuses_are_found(call: Callable[[Any], Any], fault: str | None) -> None:
    with recording() as calls:
        call(up(HOST))
    found = faults(calls)
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]
