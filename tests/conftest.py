"""The devices that tests run on."""

import pytest
from hypothesis import settings

from whitewater.devices import Device, resolve
from whitewater.errors import DeviceError

# A machine that does other things as well is slow at times, which is no fault of the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; the GPU is skipped, with the reason, where there is none that can be used."""
    name: str = request.param
    try:
        return resolve(name)
    except DeviceError as error:
        pytest.skip(str(error))
