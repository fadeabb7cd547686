"""What is claimed of keys of edges holds on the GPU's own code, with arrays that demand what a GPU demands."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isfunction, signature

import pytest

from tests.contract.strict_device import StrictDevice, stand_in_for_cupy
from tests.library.graphs import test_edge_keys
from whitewater.engines import Device

# The tests that are given a device; here it is the one below.
CLAIMS = {
    name: test
    for name, test in vars(test_edge_keys).items()
    if name.startswith("test_") and isfunction(test) and "device" in signature(test).parameters
}
globals().update(CLAIMS)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with stand_in_for_cupy():
        yield StrictDevice()
