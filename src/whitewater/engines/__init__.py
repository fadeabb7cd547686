"""Where computation happens: one object that a step is given, the CPU's or the GPU's."""

from whitewater.engines.device import Array, Device
from whitewater.errors import DeviceError

__all__ = ["Array", "Device", "resolve"]


def resolve(name: str, *, attached: bool = False) -> Device:
    """Return the device called ``cpu`` or ``gpu``.

    ``attached`` says that the tasks run on a cluster: this process then makes no use of the GPU and needs none.

    Raises DeviceError if the name is unknown, or the device's packages or hardware are not usable here. There is no
    fallback.

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
