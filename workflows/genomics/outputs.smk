# Outputs that come in many files.
RESULTS = [
    "variants.parquet",
    "kinship.parquet",
    "relatedness.json",
    "samples.parquet",
    "pcs.parquet",
    "eigenvalues.json",
    "loadings.zarr",
    "projected.parquet",
    "umap.parquet",
    "umap.json",
    "manifest.json",
]
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
    drawn, computed = (
        lookup(f"genomics/{step}/components", within=config) for step in ["plot", "pca"]
    )
    last = min(drawn, computed)
    whole = [(first, first + 1) for first in range(1, last, 2)]
    return whole + ([(last - 1, last)] if last % 2 and last > 1 else [])


def pictured():
    """Return all pictures: name -> caption, subcategory of the report, what is shown."""
    components = {
        f"pcs_{x}_{y}": ("pcs", "Components", f"PC{x} and PC{y}") for x, y in pairs()
    }
    return components | {name: (name, *place) for name, place in PICTURES.items()}


def picture_files(form):
    return [f"results/genomics/{{device}}/plots/{name}.{form}" for name in pictured()]


def picture(path):
    """Return a picture's file, with its place in the report."""
    caption, subject, what = pictured()[Path(path).stem]
    return report(
        path,
        caption=f"report/{caption}.rst",
        category="Genomics",
        subcategory=subject,
        labels={"picture": what, "device": "{device}"},
    )


def pictures():
    """Return the files of all pictures; the report shows each once, in the first of its formats."""
    shown, *others = lookup("genomics/plot/formats", within=config)
    return [picture(path) for path in picture_files(shown)] + [
        path for form in others for path in picture_files(form)
    ]


def records():
    """Return the records of all steps that run."""
    on_host = ["simulate", "ingest"] if GENERATED else ["ingest"]
    before = ["variant_qc", "ld_prune", "relatedness", "pack"]
    after = ["pca", "project", "umap", "plot"]
    outliers = ["outliers"] if REMOVES_OUTLIERS else []
    return [f"logs/genomics/{step}.json" for step in on_host] + [
        f"logs/genomics/{{device}}/{step}.json" for step in before + outliers + after
    ]


def results(device):
    """Return what a complete run leaves on a device, so that a file that was removed is made again.

    The records are among it: a step that fails loses its record, so that the next run runs it again. Without that,
    results of data that have changed since would count as finished where a step before them failed.
    """
    formats = lookup("genomics/plot/formats", within=config)
    drawn = [path for form in formats for path in picture_files(form)]
    return [path.format(device=device) for path in [*drawn, *records()]] + [
        f"results/genomics/{device}/{name}" for name in RESULTS
    ]
