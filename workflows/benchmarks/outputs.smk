# The rows of the published table: what has a size of its own.
ROWS = [
    name
    for name, section in lookup("benchmarks", within=config).items()
    if isinstance(section, dict) and "scale" in section
]
# Name of a picture -> what is shown.
PICTURES = {
    "variants": "all variants of each row",
    "roofline": "against the limits of this machine",
    "search": "time against data size (R14, R15)",
    "scaling": "time against workers",
}


def row_reports():
    return [f"results/benchmarks/{{device}}/rows/{name}.json" for name in ROWS]


def scaled_rows(wildcards):
    """Return the settings of `scaling`, with those of the rows that it measures."""
    section = lookup("benchmarks", within=config)
    chosen = section["scaling"]["rows"]
    return json.dumps(
        {name: section[name] for name in ("scaling", *chosen)}, sort_keys=True
    )


def picture(name):
    """Return a picture's file, with its place in the report."""
    return report(
        f"results/benchmarks/{{device}}/plots/{name}.svg",
        caption=f"report/{name}.rst",
        category="Benchmarks",
        subcategory="Pictures",
        labels={"picture": PICTURES[name], "device": "{device}"},
    )


def pictures():
    """Return the files of all pictures; the report shows each once."""
    return [picture(name) for name in PICTURES] + [
        f"results/benchmarks/{{device}}/plots/{name}.png" for name in PICTURES
    ]


def results(device):
    """Return what a complete run leaves on a device."""
    names = [
        "results.json",
        "results.parquet",
        "table.md",
        "scaling.json",
        "checked.txt",
    ]
    drawn = [f"plots/{name}.{form}" for name in PICTURES for form in ("svg", "png")]
    return [f"results/benchmarks/{device}/{name}" for name in [*names, *drawn]]
