# Outputs that come in many files.
TABLES = [
    "hour",
    "weekday_hour",
    "month",
    "payment_type",
    "passenger_count",
    "borough",
    "zone",
]
# Name of a picture -> subcategory of the report, what is shown.
PICTURES = {
    "tip_fraction_by_hour": ("Tips", "by hour"),
    "tip_fraction_by_weekday_hour": ("Tips", "by weekday and hour"),
    "tip_fraction_by_borough": ("Tips", "by borough"),
    "tip_fraction_by_zone": ("Tips", "by zone"),
    "data_quality": ("Data quality", "rejected trips by month and reason"),
    "predicted_against_observed": ("Model", "predicted against observed"),
}


def tables():
    """Return the files of all tips tables."""
    return [
        f"results/taxi/{{device}}/tips_by_{name}.{form}"
        for name in TABLES
        for form in ["parquet", "csv"]
    ]


def picture_files(form):
    return [f"results/taxi/{{device}}/plots/{name}.{form}" for name in PICTURES]


def picture(path):
    """Return a picture's file, with its place in the report."""
    name = Path(path).stem
    subject, what = PICTURES[name]
    labels = {"picture": what, "device": "{device}"}
    caption = f"report/{name}.rst"
    return report(
        path, caption=caption, category="Taxi", subcategory=subject, labels=labels
    )


def pictures():
    """Return the files of all pictures; the report shows each once, in the first of its formats."""
    shown, *others = lookup("taxi/plot/formats", within=config)
    return [picture(path) for path in picture_files(shown)] + [
        path for form in others for path in picture_files(form)
    ]


def records():
    """Return the records of all steps that the manifest gathers."""
    steps = ["standardise", "clean", "tips", "model", "plot"]
    return [
        "logs/taxi/fetch.json",
        *(f"logs/taxi/{{device}}/{step}.json" for step in steps),
    ]


def results(device):
    """Return what a complete run leaves on a device, so that a file that was removed is made again.

    The records are among it: a step that fails loses its record, so that the next run runs it again. Without that,
    results of data that have changed since would count as finished where a step before them failed.
    """
    formats = lookup("taxi/plot/formats", within=config)
    files = [*tables(), *(path for form in formats for path in picture_files(form))]
    names = ["trips", "quarantine", "quality.json", "model", "manifest.json"]
    return [path.format(device=device) for path in [*files, *records()]] + [
        f"results/taxi/{device}/{name}" for name in names
    ]
