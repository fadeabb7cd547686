# Name of a picture -> subcategory of the report, what is shown. Those of pairs of components are named by `pictured`.
PICTURES = {
    "scree": ("Components", "eigenvalues and their significance"),
    "loadings_by_position": ("Components", "loadings along the genome"),
    "umap": ("Components", "UMAP"),
    "missingness": ("Data quality", "call rates of samples and variants"),
    "variant_quality": ("Data quality", "variants by reason of rejection"),
    "kinship": ("Relatedness", "kinship of pairs"),
}


def pairs():
    """Return the pairs of components that are drawn: 1 and 2, 3 and 4, ...; of an odd number, the last with the one before."""
    drawn = lookup("genomics/plot/components", within=config)
    last = min(drawn, lookup("genomics/pca/components", within=config))
    whole = [(first, first + 1) for first in range(1, last, 2)]
    return whole + ([(last - 1, last)] if last % 2 and last > 1 else [])


def pictured():
    """Return all pictures: name -> subcategory of the report, what is shown."""
    components = {
        f"pcs_{x}_{y}": ("Components", f"PC{x} and PC{y}") for x, y in pairs()
    }
    return components | PICTURES
