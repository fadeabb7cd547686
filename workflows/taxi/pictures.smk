# The pictures of the report: name -> category, what is shown.
PICTURES = {
    "tip_fraction_by_hour": ("Tips", "by hour"),
    "tip_fraction_by_weekday_hour": ("Tips", "by weekday and hour"),
    "tip_fraction_by_borough": ("Tips", "by borough"),
    "tip_fraction_by_zone": ("Tips", "by zone"),
    "data_quality": ("Data quality", "rejected trips by month and reason"),
    "predicted_against_observed": ("Model", "predicted against observed"),
}


def picture(name, form):
    """Return a picture's file, with its place in the report."""
    category, what = PICTURES[name]
    labels = {"picture": what, "device": "{device}"}
    path = f"results/taxi/{{device}}/plots/{name}.{form}"
    return report(path, caption=f"report/{name}.rst", category=category, labels=labels)


def pictures():
    """Return the files of all pictures; the report shows each once, in the first of its formats."""
    shown, *others = lookup("taxi/plot/formats", within=config)
    hidden = [f"results/taxi/{{device}}/plots/{name}.{form}" for form in others for name in PICTURES]
    return [picture(name, shown) for name in PICTURES] + hidden
