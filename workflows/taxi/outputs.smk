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
        f"<results>/taxi/{{device}}/tips_by_{name}.{form}"
        for name in TABLES
        for form in ["parquet", "csv"]
    ]
