"""A Dask worker without a dashboard; its own module, because it imports Dask."""

from __future__ import annotations

from typing import Any

from distributed import Worker


class WorkerWithoutDashboard(Worker):
    """Serves no pages.

    `LocalCluster` gives a worker an address to serve HTTP at only together with a dashboard, which takes half a second
    to import; without an address it would listen on all interfaces.
    """

    def __init__(self, *arguments: Any, dashboard: bool, **options: Any) -> None:
        del dashboard
        super().__init__(*arguments, dashboard=False, **options)
