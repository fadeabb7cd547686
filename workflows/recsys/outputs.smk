# Outputs that come in many files.
RESULTS = [
    "workflow",
    "statistics.json",
    "train",
    "valid",
    "test",
    "drift.json",
    "metrics.json",
    "manifest.json",
]
# Name of a picture -> subcategory of the report, what is shown.
PICTURES = {
    "auc": ("Prediction", "AUC with and without the features"),
    "calibration": ("Prediction", "calibration"),
    "drift": ("Data", "drift from day to day"),
    "categories": ("Features", "categories by frequency"),
    "numbers": ("Features", "a number before and after"),
}


def picture_files(form):
    return [f"results/recsys/{{device}}/plots/{name}.{form}" for name in PICTURES]


def picture(path):
    """Return a picture's file, with its place in the report."""
    name = Path(path).stem
    subject, what = PICTURES[name]
    return report(
        path,
        caption=f"report/{name}.rst",
        category="Recsys",
        subcategory=subject,
        labels={"picture": what, "device": "{device}"},
    )


def pictures():
    """Return the files of all pictures; the report shows each once, in the first of its formats."""
    shown, *others = lookup("recsys/plot/formats", within=config)
    return [picture(path) for path in picture_files(shown)] + [
        path for form in others for path in picture_files(form)
    ]


def records():
    """Return the records of all steps that run."""
    on_host = [*(["simulate"] if GENERATED else []), "fetch", "split"]
    on_device = ["fit", "features", "drift", "train", "plot"]
    return [f"logs/recsys/{step}.json" for step in on_host] + [
        f"logs/recsys/{{device}}/{step}.json" for step in on_device
    ]


def results(device):
    """Return what a complete run leaves on a device, so that a file that was removed is made again.

    The records are among it: a step that fails loses its record, so that the next run runs it again. Without that,
    results of data that have changed since would count as finished where a step before them failed.
    """
    formats = lookup("recsys/plot/formats", within=config)
    drawn = [path for form in formats for path in picture_files(form)]
    return [path.format(device=device) for path in [*drawn, *records()]] + [
        f"results/recsys/{device}/{name}" for name in RESULTS
    ]
