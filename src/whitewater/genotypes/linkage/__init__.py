"""Linkage disequilibrium: pairs of correlated variants, and which of them to keep."""
