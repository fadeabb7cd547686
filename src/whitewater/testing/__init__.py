"""Tests of the guarantees of an application, and fixtures; they need pytest and Hypothesis, of the extra ``dev``."""
