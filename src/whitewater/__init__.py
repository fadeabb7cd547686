"""Reproducible data-science applications that run unchanged on a laptop's CPU and on NVIDIA GPUs."""

__version__ = "0.2.0"
