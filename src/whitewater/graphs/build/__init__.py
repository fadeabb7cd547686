"""Builds a graph from edges in any order, out of core."""
