"""Recommender features: learnt from a log once, and applied alike to tables and to single rows."""
