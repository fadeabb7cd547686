"""Checks of whether this machine has a usable GPU, and what is missing."""

import ctypes
from importlib.util import find_spec

from whitewater.engines.device import versions
from whitewater.errors import DeviceError

# The packages that our GPU modules import.
PACKAGES = ("cudf", "cupy", "cuml", "cugraph", "pylibcugraph", "nvforest", "rmm", "xgboost", "numba_cuda", "pynvml")


def require_device(name: str, *, attached: bool = False) -> None:
    """Raise DeviceError for ``gpu`` without a usable GPU. A run calls it, dry runs and reports do not.

    If tasks run on an ``attached`` cluster, each step asks its workers instead.
    """
    if name == "gpu" and not attached and (problem := missing_gpu()):
        raise DeviceError(
            f"device=gpu, but no usable NVIDIA GPU was found. {problem} Remove device=gpu (or set device=cpu) to "
            "compute on the CPU, or run where `nvidia-smi` lists a GPU and envs/gpu.lock is installed; "
            "`whitewater doctor` checks both."
        )


def missing_gpu() -> str | None:
    """Say what a GPU run lacks on this machine, or return None; imports no GPU package, unlike `gpu_problem`."""
    looked = "Looked for the NVIDIA driver (libcuda.so.1) and for a device that it lists, and for the package cudf"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return f"{looked}: the driver is not installed; {_packages()}."
    count, version = ctypes.c_int(0), ctypes.c_int(0)
    status = driver.cuInit(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    description = f"driver for CUDA {cuda_version(version.value)}"
    if status != 0:
        return f"{looked}: {description}, but it does not start (cuInit gives error {status}); {_packages()}."
    driver.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return f"{looked}: {description}, but it lists no device (is CUDA_VISIBLE_DEVICES empty?); {_packages()}."
    if first_version("cudf-cu13", "cudf") is None:
        return f"{looked}: {description} with {count.value} device(s); {_packages()}."
    return None


def gpu_names() -> list[str]:
    """Return the names of the GPUs that are visible by CUDA_VISIBLE_DEVICES."""
    driver, count, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0), ctypes.create_string_buffer(256)
    driver.cuInit(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for device in range(count.value):
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode())
    return names


def gpu_problem() -> str | None:
    """Say why CuPy cannot compute on a GPU in this process, or return None."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        problem = f"the packages {', '.join(missing)} are not installed"
    else:
        import cupy

        if cupy.cuda.is_available():
            return None
        built_for = cuda_version(cupy.cuda.runtime.runtimeGetVersion())
        problem = f"CuPy, which is built for CUDA {built_for}, finds no GPU that it can use"
    return f"{problem}. {missing_gpu() or f'The NVIDIA driver lists a device; {_packages()}.'}"


def cuda_version(number: int) -> str:
    """Return CUDA's version number, 1000 * major + 10 * minor, as text."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _packages() -> str:
    names = (("cudf-cu13", "cudf"), ("cupy-cuda13x", "cupy"), ("cuml-cu13", "cuml"), ("dask-cuda",))
    return "packages: " + ", ".join(f"{name[-1]} {first_version(*name) or 'not installed'}" for name in names)


def first_version(*distributions: str) -> str | None:
    """Return the version of the first of the distributions that is installed, or None."""
    return next(filter(None, versions(*distributions).values()), None)
