"""What users of an application are promised, as tests that a project calls, and fixtures for the tests of its own.

It needs pytest and Hypothesis, of the extra ``dev``.
"""
