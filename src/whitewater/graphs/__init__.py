"""Graphs: from edges in files to ranks, components and communities."""
