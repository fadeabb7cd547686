"""The benchmarks, whose section of the configuration and whose workflow are as those of an application."""

from benchmarks.config import Benchmarks
from whitewater.application import Application

BENCHMARKS = Application("benchmarks", settings=Benchmarks, package="benchmarks", apart=True)
