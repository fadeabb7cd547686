"""Graphs and text: Whitewater against the tools that a user would pick, ranking a graph and indexing documents."""
