"""Devices: the object through which a step computes on the CPU or the GPU."""

from whitewater.engines.device import Array, Device
from whitewater.errors import DeviceError

__all__ = ["Array", "Device", "resolve"]


def resolve(name: str, *, attached: bool = False) -> Device:
    """Return the device called ``cpu`` or ``gpu``.

    If tasks run on an ``attached`` cluster, this process needs no GPU. Raises DeviceError if the name is unknown, or
    the device's packages or hardware are not usable; there is no fallback.

    Examples
    --------
    >>> device = resolve("cpu")
    >>> device.to_host(device.xp.arange(3))
    array([0, 1, 2])
    """
    if name == "cpu":
        return Device()
    if name == "gpu":
        from whitewater.engines.gpu import GpuDevice

        return GpuDevice.connect(attached=attached)
    raise DeviceError(f"device {name!r} does not exist. Use cpu or gpu.")
