"""The strict device refuses what a GPU refuses, leaves undefined or does otherwise: the contract can be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pickle import PicklingError
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dask.delayed import delayed
from distributed.protocol.pickle import dumps
from distributed.protocol.serialize import deserialize, serialize

from tests.contract.conftest import NOT_INSTALLED
from tests.contract.device_array import AT, DeviceArray, differing, recording
from tests.contract.signatures import Describe, problems, recorded
from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from whitewater.genotypes.decode import count_genotypes, expand_genotypes
from whitewater.genotypes.genotypes import Genotypes
from whitewater.genotypes.linkage.pairs import correlated_variants
from whitewater.learn.estimators import ridge

DEVICE = StrictDevice()
XP: Any = DEVICE.xp
HOST = np.arange(6)


def array() -> Any:
    return DEVICE.to_device(HOST)


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
        DEVICE.to_device(np.zeros(3).astype(dtype))
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
        lambda values: values.__setitem__(DEVICE.to_device(np.array([1, 1])), DEVICE.to_device(np.array([5, 6]))),
        lambda values: XP.argsort(values // 2),
        lambda values: XP.random.default_rng(0),
    ],
)
def test_what_a_gpu_leaves_undefined_or_does_otherwise_is_refused(undefined: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"undefined|otherwise|ties|differ"):
        undefined(array())


def test_ties_and_random_numbers_that_may_differ_do() -> None:
    ties = DEVICE.to_device(np.arange(1_000) // 500)
    with differing(), recording() as calls:
        order = DEVICE.to_host(XP.argsort(ties))
        assert order.tolist() != list(range(1_000))
        assert (DEVICE.to_host(ties)[order] == DEVICE.to_host(ties)).all()
        assert DEVICE.to_host(XP.argsort(ties, kind="stable")).tolist() == list(range(1_000))
        drawn = DEVICE.to_host(XP.random.default_rng(7).random((100,)))
    assert not np.isin(drawn, np.random.default_rng(7).random(1_000)).any()
    assert problems(calls, recorded().get) == []


def test_a_generator_writes_as_cupys_does() -> None:
    out, column = XP.empty((50, 2)), XP.empty((50, 2))[:, 0]
    with differing():
        generator = XP.random.default_rng(7)
        # One number, since it is not told how many.
        assert len(np.unique(DEVICE.to_host(generator.random(out=out)))) == 1
        assert len(np.unique(DEVICE.to_host(generator.random((50, 2), out=out)))) == 100
        assert len(np.unique(DEVICE.to_host(generator.standard_normal(out=out)))) == 100
        with pytest.raises(ValueError, match="contiguous"):
            generator.random(50, out=column)


def test_what_cupy_has_of_changes_in_place_at_indices_is_there_and_no_more() -> None:
    values, places = DEVICE.to_device(np.array([4, 1, 9], np.uint64)), DEVICE.to_device(np.array([1, 1]))
    XP.maximum.at(values, places, DEVICE.to_device(np.array([7, 5], np.uint64)))
    assert DEVICE.to_host(values).tolist() == [4, 7, 9]
    with pytest.raises(TypeError, match=r"no maximum\.at of int64"):
        XP.maximum.at(array(), places, array()[:2])
    with recording() as calls:
        XP.multiply.at(values, places, places)
    assert problems(calls, recorded().get) != []


@pytest.mark.rapids
@pytest.mark.skipif(find_spec("cupy") is None, reason=NOT_INSTALLED)
def test_cupy_changes_in_place_at_indices_by_these_functions() -> None:
    cupy: Any = import_module("cupy")
    assert {name for name in (*AT, "multiply") if getattr(cupy, name)._scatter_op} == set(AT)


def test_nothing_cannot_be_counted_as_in_cupy() -> None:
    with pytest.raises(ValueError, match="empty"):
        XP.bincount(array()[:0], minlength=3)


def test_dask_gets_cupys_functions_for_numpys() -> None:
    blocks = [da.from_delayed(delayed(array)(), (6,), meta=array()[:0]) for _ in range(2)]
    with recording() as calls:
        total = da.concatenate(blocks).sum().compute(scheduler="synchronous")
    assert isinstance(total, DeviceArray)
    assert int(total) == 30
    assert "cupy.sum" in {call.name for call in calls}


def test_random_numbers_are_not_those_of_numpy() -> None:
    seed = np.arange(3, dtype=np.uint32)
    drawn = DEVICE.to_host(XP.random.RandomState(seed).standard_normal(size=(4, 2)))
    assert drawn.shape == (4, 2)
    assert np.abs(drawn - np.random.RandomState(seed).standard_normal((4, 2))).min() > 0


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


def test_arrays_and_the_device_are_copied_to_workers_and_the_namespace_is_not() -> None:
    arrived = deserialize(*serialize(array()))
    arrived[0] = 7
    assert DEVICE.to_host(arrived).tolist() == [7, *HOST[1:]]
    assert deserialize(*serialize(DEVICE)) == DEVICE
    with pytest.raises((TypeError, PicklingError)):
        dumps(XP)


def test_models_and_kernels_take_arrays_of_the_device_of_their_dtypes_only() -> None:
    here = Genotypes(np.full((2, 2), 0b11_10_01_00, np.uint8), 7)
    there = replace(here, codes=DEVICE.to_device(here.codes))
    table, stops = np.zeros((2, 4), np.float32), np.array([2, 2], np.int32)
    refusals: list[Callable[[], Any]] = [
        lambda: ridge(DEVICE, alpha=1.0).fit(array(), array()),
        lambda: count_genotypes(DEVICE, here),
        lambda: expand_genotypes(DEVICE, there, table),
        lambda: expand_genotypes(DEVICE, there, DEVICE.to_device(table.astype(np.float64))),
        lambda: count_genotypes(DEVICE, there, DEVICE.to_device(np.ones(7, np.int8))),
        lambda: correlated_variants(DEVICE, there, DEVICE.to_device(stops), 0.5),
    ]
    for refused in refusals:
        with stand_in_for_cupy(), pytest.raises(TypeError):
            refused()


def test_linear_algebra_gives_arrays_of_the_device_without_names() -> None:
    values = DEVICE.to_device(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    factors = XP.linalg.qr(values)
    assert type(factors) is tuple
    assert all(isinstance(each, DeviceArray) for each in (values.T @ values, *factors))


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
