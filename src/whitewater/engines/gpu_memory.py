"""The memory of the GPU that this process uses: one pool for CuPy, cuDF and cuML, what it holds and what is free.

Read from the sources of RMM, cuDF and numba-cuda for RAPIDS 26.10; no GPU ran it when it was written.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmm.mr import StatisticsResourceAdaptor

# Read when cuDF and numba.cuda are imported. cuDF moves columns to the host when the pool is exhausted; Numba does not
# wait for the stream of each array of CuPy that a kernel is given, as both use the same stream.
ENVIRONMENT = {"CUDF_SPILL": "on", "NUMBA_CUDA_ARRAY_INTERFACE_SYNC": "0"}
_LOCK = Lock()


def prepare_memory() -> None:
    """Let CUDA's asynchronous pool, through RMM, allocate for CuPy and cuDF, and count what it gives; once a process.

    To be called before the first allocation. A pool that was set before, by ``dask cuda worker --rmm-async``, stays.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with _LOCK:
        if _statistics() is not None:
            return
        import cupy
        import rmm.mr
        from rmm.allocators.cupy import rmm_cupy_allocator

        resource = rmm.mr.get_current_device_resource()
        if isinstance(resource, rmm.mr.CudaMemoryResource):
            resource = rmm.mr.CudaAsyncMemoryResource()
        rmm.mr.set_current_device_resource(rmm.mr.StatisticsResourceAdaptor(resource))
        cupy.cuda.set_allocator(rmm_cupy_allocator)


def free_memory() -> int:
    """Return the bytes of the GPU that this process may still take.

    To what the driver calls free comes what the pool keeps for later allocations: it gives nothing back by itself, so
    that it holds at least the most bytes that it ever gave out, less those that are in use.
    """
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    counting = _statistics()
    pooled = counting.allocation_counts.peak_bytes - counting.allocation_counts.current_bytes if counting else 0
    return int(free + pooled)


def peak_memory() -> int | None:
    """Return the most bytes that this process held on its GPU at once, or None where `prepare_memory` was not called.

    Counts what went through RMM: all arrays of cuDF and CuPy and the work space of cuML, not the CUDA context.
    """
    counting = _statistics()
    return int(counting.allocation_counts.peak_bytes) if counting else None


def _statistics() -> StatisticsResourceAdaptor | None:
    """Return RMM's resource that counts; rmm.statistics knows the topmost only, above which cuDF puts its own."""
    import rmm.mr

    resource = rmm.mr.get_current_device_resource()
    while not isinstance(resource, rmm.mr.StatisticsResourceAdaptor):
        if not isinstance(resource, rmm.mr.UpstreamResourceAdaptor):
            return None
        resource = resource.get_upstream()
    return resource
