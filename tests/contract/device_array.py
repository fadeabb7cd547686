"""Arrays that behave as CuPy's do where CuPy's differ from NumPy's, computed by NumPy.

What CuPy refuses, these refuse: implicit copies to the host, arrays of the host among the operands, dtypes that a GPU
has not. What it leaves undefined or does otherwise without a word, they refuse, too: floats that do not fit the integer
that they are cast to, shifts by more than the width, division of integers by 0, one element assigned twice, ties in a
sort that is not stable, random streams; a `RandomState`, which Dask needs, draws others than NumPy's. Within
`differing`, ties come in another order than NumPy's, and generators draw other numbers, instead. What is asked of them
is recorded, to be compared with what CuPy accepts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib import mixins

from tests.contract.signatures import Call
from tests.contract.traffic import count

DTYPES = "biufc"
# Where our source lies: the application's, and that of benchmarks.
SOURCES = (
    f"{Path('src') / 'whitewater'}/",
    f"{Path('src') / 'whitewater_apps'}/",
    f"{Path(__file__).parents[2] / 'benchmarks'}/",
)
DASK = f"{Path('site-packages') / 'dask'}/"
_RECORDINGS: list[dict[Call, list[str]]] = []
_DIFFERING: list[np.random.Generator] = []


@contextmanager
def differing() -> Iterator[None]:
    """Let ties in a sort, and random numbers, be others than NumPy's: for code whose results depend on neither."""
    _DIFFERING.append(np.random.default_rng(0))
    try:
        yield
    finally:
        _DIFFERING.pop()


@contextmanager
def recording() -> Iterator[dict[Call, list[str]]]:
    """Yield a mapping that fills with the calls made meanwhile and the lines of our source that made them."""
    calls: dict[Call, list[str]] = {}
    _RECORDINGS.append(calls)
    try:
        yield calls
    finally:
        _RECORDINGS.pop()


def record(name: str, positional: int = 0, keywords: Sequence[str] = (), *, used: bool = False) -> None:
    """Note a call, or the use of a value."""
    if not used:
        count(operations=1)
    for calls in _RECORDINGS:
        places = calls.setdefault(Call(name, positional, tuple(keywords), used), [])
        place = _place()
        if place not in places:
            places.append(place)


def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that records its calls by the name that RAPIDS has for it."""

    def called(*arguments: Any, **keywords: Any) -> Any:
        record(name, len(arguments), tuple(keywords))
        return function(*arguments, **keywords)

    return called


def install(patch: pytest.MonkeyPatch, modules: Mapping[str, Mapping[str, Any]]) -> None:
    """Let modules with these members be imported, and the packages around them; their functions record their calls."""
    names = {name for full in modules for name in accumulate(full.split("."), "{}.{}".format)}
    for name in sorted(names):
        made = ModuleType(name)
        for key, member in modules.get(name, {}).items():
            is_function = callable(member) and not isinstance(member, type)
            setattr(made, key, watched(f"{name}.{key}", member) if is_function else member)
        patch.setitem(sys.modules, name, made)
        package, _, last = name.rpartition(".")
        if package:
            patch.setattr(sys.modules[package], last, made, raising=False)


def wrap(result: Any) -> Any:
    """Return what NumPy returned as CuPy would: arrays of the device, of no dimensions where NumPy has a scalar.

    Raises TypeError if CuPy has no such dtype.
    """
    if isinstance(result, np.ndarray | np.generic):
        return DeviceArray(np.asarray(result))
    if type(result) in (list, tuple):
        return type(result)(wrap(each) for each in result)
    return result


def unwrap(argument: Any) -> Any:
    """Return an argument for NumPy. Raises TypeError if it is an array of the host."""
    if isinstance(argument, DeviceArray):
        return argument.on_host
    if isinstance(argument, np.ndarray):
        raise TypeError("an array of the host is among the operands: use device.to_device")
    if type(argument) in (list, tuple):
        return type(argument)(unwrap(each) for each in argument)
    return argument


class DeviceArray(mixins.NDArrayOperatorsMixin):
    """An array of a device that does not exist."""

    # CuPy's, by which Dask tells whose functions it calls.
    __array_priority__ = 100

    def __init__(self, on_host: npt.NDArray[Any]) -> None:
        if on_host.dtype.kind not in DTYPES or on_host.dtype.itemsize > 8 * (1 + (on_host.dtype.kind == "c")):
            raise TypeError(f"CuPy has no dtype {on_host.dtype}")
        self.on_host = on_host
        if on_host.base is None:
            count(allocated=on_host.nbytes)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("implicit copy to the host: use device.to_host")

    def __array_ufunc__(self, function: np.ufunc, _: str, *operands: Any, out: Any = None, **keywords: Any) -> Any:
        """Do what an operator says; a function of NumPy by its name is Dask's to call, as below."""
        if sys._getframe(1).f_code.co_filename != mixins.__file__ and not isinstance(operands[0], np.generic):
            return self.__array_function__(function, (), operands, keywords)
        for each in operands:
            if not isinstance(each, DeviceArray | int | float | complex | np.generic):
                raise TypeError(f"{function.__name__} of an array of the device and {type(each)}: use device.to_device")
        keywords |= {} if out is None else {"out": out[0]}
        found = Function(f"cupy.{function.__name__}", function)(*operands, **keywords)
        return found if out is None else out[0]

    def __array_function__(self, function: Callable[..., Any], _: object, arguments: Any, keywords: Any) -> Any:
        """Call CuPy's function for NumPy's, as CuPy does; ours would hide which one runs, so that only Dask may."""
        if not _is_called_by_dask():
            raise TypeError(f"np.{function.__name__} of an array of the device: use device.xp, or device.to_host")
        module = getattr(function, "__module__", "numpy")
        return Function(f"{module}.{function.__name__}".replace("numpy", "cupy", 1), function)(*arguments, **keywords)

    def __iter__(self) -> NoReturn:
        raise TypeError("iterating an array of the device copies one element at a time: use device.to_host")

    def __reduce__(self) -> tuple[Callable[..., DeviceArray], tuple[npt.NDArray[Any]]]:
        return _received, (self.on_host,)

    def __len__(self) -> int:
        return len(self.on_host)

    def __bool__(self) -> bool:
        return bool(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def _scalar(self) -> npt.NDArray[Any]:
        """Return what is copied to the host as one number."""
        count(down=self.on_host.nbytes)
        return self.on_host

    def __repr__(self) -> str:
        return f"DeviceArray({self.on_host!r})"

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.on_host[_index(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        place, new = _index(key), unwrap(value)
        if np.ndim(new) and _repeats(place):
            raise ValueError("one element is assigned twice: which value stays is undefined on a GPU")
        _refuse_undefined_cast(np.asarray(new), self.on_host.dtype)
        self.on_host[place] = new

    def set(self, array: npt.NDArray[Any]) -> None:
        """Copy an array of the host into this one."""
        record("cupy.ndarray.set", 1)
        count(up=array.nbytes)
        self.on_host[...] = array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self.on_host, name)
        if callable(value):
            return Function(f"cupy.ndarray.{name}", value, self.on_host)
        record(f"cupy.ndarray.{name}", used=True)
        return wrap(value)


def on_host(array: Any, *dtypes: str) -> npt.NDArray[Any]:
    """Return the NumPy array inside one of the device. Raises TypeError if it is the host's or of another dtype."""
    if not isinstance(array, DeviceArray):
        raise TypeError(f"{type(array)} where an array of the device is needed: use device.to_device")
    if array.on_host.dtype.name not in dtypes:
        raise TypeError(f"dtype {array.on_host.dtype} where {' or '.join(dtypes)} is needed")
    return array.on_host


def on_device(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array of the device around a NumPy array."""
    return cast(npt.NDArray[Any], DeviceArray(array))


def _received(sent: npt.NDArray[Any]) -> DeviceArray:
    """Return an array that another process sent, in memory of its own."""
    return DeviceArray(np.array(sent))


class Namespace(ModuleType):
    """NumPy as far as it is called by the names of a namespace, taking and returning arrays of the device."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name)
        self._module = module
        self.__file__ = module.__file__  # of every module, rather than what is asked of CuPy

    def __reduce__(self) -> NoReturn:
        raise TypeError("a module cannot be pickled: ask the device for it where it is used")

    def __getattr__(self, name: str) -> Any:
        full_name = f"{self.__name__}.{name}"
        if full_name in CLASSES:
            return CLASSES[full_name]
        if full_name == "cupy.random.default_rng" and _DIFFERING:
            return Generator
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return Namespace(full_name, value)
        if not callable(value) or isinstance(value, type):
            record(full_name, used=True)
            return value
        return Function(full_name, value)


class Generator:
    """Draws arrays of the device: from another stream than NumPy's of this seed, as CuPy's is."""

    NAME = "cupy.random.Generator"

    def __init__(self, seed: Any) -> None:
        record("cupy.random.default_rng", 1)
        seeds = seed._seed_seq if isinstance(seed, XORWOW) else np.random.SeedSequence(seed)
        self._of_numpy: Any = np.random.default_rng(seeds.spawn(1)[0])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        draw = getattr(self._of_numpy, name)

        def drawn(*arguments: Any, out: Any = None, **keywords: Any) -> Any:
            given = (*keywords, "out") if out is not None else tuple(keywords)
            record(f"{self.NAME}.{name}", len(arguments), given)
            if out is None:
                return wrap(draw(*arguments, **keywords))
            if not out.flags.c_contiguous:
                raise ValueError("CuPy's generators write to contiguous arrays only")
            # CuPy's `random`, unlike its `standard_normal`, draws one number for all where it is not told how many.
            size = () if name == "random" and not arguments and "size" not in keywords else out.shape
            out.on_host[...] = draw(size)
            return out

        return drawn


class RandomState(Generator):
    """Draws as a `Generator` does."""

    NAME = "cupy.random.RandomState"

    def __init__(self, seed: Any) -> None:
        record("cupy.random.RandomState", 1)
        self._of_numpy = np.random.RandomState(np.flip(seed))


class XORWOW:
    """A generator of bits, which has no stream of its own; Dask asks it for its seeds, and for its module."""

    def __init__(self, seed: Any = None) -> None:
        record("cupy.random.XORWOW", 1)
        self._seed_seq = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)


# Dask takes the first part for the name of the library.
XORWOW.__module__ = "cupy.random"


# What CuPy has for classes of NumPy.
CLASSES: dict[str, type] = {
    "cupy.ndarray": DeviceArray,
    "cupy.random.RandomState": RandomState,
    "cupy.random.XORWOW": XORWOW,
}


class Function:
    """A function or universal function of the namespace, or a method of an array."""

    def __init__(self, name: str, function: Any, *owner: npt.NDArray[Any]) -> None:
        self._name, self._function, self._owner = name, function, owner

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        record(self._name, len(arguments), tuple(keywords))
        inside = unwrap(arguments)
        named = {name: unwrap(value) for name, value in keywords.items()}
        _refuse_undefined(self._name, [*self._owner, *inside], named)
        if self._name == "cupy.argsort" and _DIFFERING and named.get("kind") != "stable":
            shuffled = _DIFFERING[-1].permutation(len(inside[0]))
            return wrap(shuffled[np.argsort(inside[0][shuffled], kind="stable")])
        result = self._function(*inside, **named)
        # The results of CuPy's factorizations have no names.
        return wrap(tuple(result) if isinstance(result, tuple) and ".linalg." in self._name else result)


def _place() -> str:
    """Return file and line of our source that called."""
    frame = sys._getframe(1)
    while frame.f_back and not is_our_source(frame.f_code.co_filename):
        frame = frame.f_back
    file = frame.f_code.co_filename
    for source in SOURCES:
        file = file.rpartition(source)[2]
    return f"{file}:{frame.f_lineno}"


def is_our_source(file: str) -> bool:
    """Tell whether a file is one of ours that computes on devices."""
    return any(source in file for source in SOURCES)


def _is_called_by_dask() -> bool:
    """Tell whether Dask calls, be it by way of another library, rather than our source."""
    frame: FrameType | None = sys._getframe(2)
    while frame and not is_our_source(frame.f_code.co_filename):
        if DASK in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _index(key: Any) -> Any:
    """Return an index for NumPy; a list of the host would be copied to the device without a word."""
    if any(isinstance(each, list) for each in (key if isinstance(key, tuple) else (key,))):
        raise TypeError("a list of the host is used as an index: use device.to_device")
    return unwrap(key)


def _repeats(key: Any) -> bool:
    arrays = [each for each in (key if isinstance(key, tuple) else (key,)) if isinstance(each, np.ndarray)]
    if not arrays or arrays[0].dtype.kind == "b":
        return False
    rows = np.stack([np.ravel(each) for each in np.broadcast_arrays(*arrays)])
    return bool(np.unique(rows, axis=1).shape[1] < rows.shape[1])


def _refuse_undefined(name: str, operands: Sequence[Any], keywords: dict[str, Any]) -> None:
    """Refuse operands for which a GPU gives other results than a CPU."""
    first, second = (*operands, None, None)[:2]
    match name.removeprefix("cupy.").removeprefix("ndarray."):
        case random if random.startswith("random."):
            raise ValueError("random streams differ between NumPy and CuPy: draw on the host, or use a stable hash")
        case "astype":
            _refuse_undefined_cast(first, np.dtype(keywords["dtype"] if second is None else second))
        case "argsort" if keywords.get("kind") != "stable" and not _DIFFERING and len(np.unique(first)) < first.size:
            raise ValueError("there are ties, whose order NumPy leaves open: use kind='stable'")
        case "bincount" if not first.size:
            raise ValueError("an empty array is counted, which CuPy refuses: count one value more")
        case "left_shift" | "right_shift":
            bits, width = np.asarray(second), 8 * np.result_type(first, second).itemsize
            if ((bits < 0) | (bits >= width)).any():
                raise ValueError(f"a shift by less than 0 or by {width} bits or more is undefined on a GPU")
        case "floor_divide" | "remainder" | "mod" | "divmod" if _divides_integers_by_0(first, second):
            raise ValueError("integers are divided by 0, which is undefined on a GPU")


def _divides_integers_by_0(first: Any, second: Any) -> bool:
    return np.result_type(first, second).kind in "iu" and bool(np.equal(second, 0).any())


def _refuse_undefined_cast(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    if values.dtype.kind != "f" or dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    if not np.all((values > float(limits.min) - 1) & (values < float(limits.max) + 1)):
        raise ValueError(f"floats that are not finite or do not fit are cast to {dtype}, which a GPU does otherwise")
