"""Reproducible data-science applications that run unchanged on a laptop's CPU and on NVIDIA GPUs."""

import time

__version__ = "0.2.0"
# Before any other module of it: a process of days, a worker, runs what was on the disk then, or was imported since.
imported = time.time()
