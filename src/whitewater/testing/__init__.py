"""What users of an application are promised, as tests that a project calls: `whitewater.testing.guarantees`.

It needs pytest, of the extra ``dev``.
"""
