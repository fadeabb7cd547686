"""The devices that tests run on, and Dask workers for them."""

from collections.abc import Iterator

import pytest
from distributed import Client

from whitewater.devices import Device, resolve
from whitewater.errors import DeviceError


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device in turn; the GPU is skipped, with the reason, where there is none that can be used."""
    name: str = request.param
    try:
        return resolve(name)
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """Dask workers on two threads of this process."""
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as client:
        yield client
