"""From edges in any order to a graph, out of core."""
