# Name of a picture -> subcategory of the report, what is shown.
PICTURES = {
    "ranks": ("Ranks", "PageRank by position"),
    "convergence": ("Ranks", "convergence"),
    "neighborhood": ("Ranks", "the top pages and their links"),
    "degrees": ("Graph", "in- and out-degrees"),
    "communities": ("Graph", "sizes of components and communities"),
}
