"""Slow idioms in a user's steps, found before they land: ``python -m whitewater idioms``.

Reads Python files and notebooks, never runs them, and imports nothing but the standard library.
"""

from whitewater.idioms.command import main
from whitewater.idioms.inspection import inspect
from whitewater.idioms.rules import RULES, Finding, Rule

__all__ = ["RULES", "Finding", "Rule", "inspect", "main"]
