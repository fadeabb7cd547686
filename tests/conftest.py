"""The devices that tests run on."""

import pytest

from whitewater.devices import Device, resolve
from whitewater.errors import DeviceError


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; the GPU is skipped, with the reason, where there is none that can be used."""
    name: str = request.param
    try:
        return resolve(name)
    except DeviceError as error:
        pytest.skip(str(error))
