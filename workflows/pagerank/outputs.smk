# Outputs that come in many files.
RESULTS = [
    "vertices.parquet",
    "ranks.parquet",
    "edges.json",
    "convergence.json",
    "communities.json",
    "graph",
    "manifest.json",
]
FOUND_BY_SEARCH = ["index", "queries.json"]
# Name of a picture -> subcategory of the report, what is shown.
PICTURES = {
    "ranks": ("Ranks", "PageRank by position"),
    "convergence": ("Ranks", "convergence"),
    "neighbourhood": ("Ranks", "the top pages and their links"),
    "degrees": ("Graph", "in- and out-degrees"),
    "communities": ("Graph", "sizes of components and communities"),
}


def picture_files(form):
    return [f"results/pagerank/{{device}}/plots/{name}.{form}" for name in PICTURES]


def picture(path):
    """Return a picture's file, with its place in the report."""
    name = Path(path).stem
    subject, what = PICTURES[name]
    return report(
        path,
        caption=f"report/{name}.rst",
        category="PageRank",
        subcategory=subject,
        labels={"picture": what, "device": "{device}"},
    )


def pictures():
    """Return the files of all pictures; the report shows each once, in the first of its formats."""
    shown, *others = lookup("pagerank/plot/formats", within=config)
    return [picture(path) for path in picture_files(shown)] + [
        path for form in others for path in picture_files(form)
    ]


def records():
    """Return the records of all steps that run."""
    simulated = ["simulate"] if GENERATED else []
    parsed = ["parse"] if PAGES else []
    on_host = [*simulated, "fetch", *parsed, "edges"]
    found = ["index", "search"] if PAGES else []
    on_device = ["renumber", "pagerank", "communities", *found, "plot"]
    return [f"logs/pagerank/{step}.json" for step in on_host] + [
        f"logs/pagerank/{{device}}/{step}.json" for step in on_device
    ]


def results(device):
    """Return what a complete run leaves on a device, so that a file that was removed is made again.

    The records are among it: a step that fails loses its record, so that the next run runs it again. Without that,
    results of data that have changed since would count as finished where a step before them failed.
    """
    formats = lookup("pagerank/plot/formats", within=config)
    drawn = [path for form in formats for path in picture_files(form)]
    names = RESULTS + (FOUND_BY_SEARCH if PAGES else [])
    return [path.format(device=device) for path in [*drawn, *records()]] + [
        f"results/pagerank/{device}/{name}" for name in names
    ]
