CHOSEN = lookup("recsys/fetch", within=config)
GENERATED = CHOSEN["source"] == "generated"


def named_files():
    """Return the places that `fetch` reads."""
    release = CHOSEN["movielens"]["path"]
    named = {
        "criteo": CHOSEN["criteo"]["files"],
        "movielens": [release, *files_in(release)],
        "files": CHOSEN["files"]["files"],
    }
    return named.get(CHOSEN["source"], [])


def named_tables():
    """Return the files that the operators of the features name: tables to join, and given vocabularies."""
    chosen = [
        parameters
        for feature in lookup("recsys/fit/features", within=config)
        for operator in feature["operators"]
        if isinstance(operator, dict)
        for parameters in operator.values()
    ]
    named = [value for each in chosen for value in each.values()]
    return [
        value
        for value in named
        if isinstance(value, str) and value.endswith(".parquet")
    ]


source_files = watch_files(named_files)
# Settings of a simulation stand for its files, which are not there when it fails.
source = state(
    named_files,
    lookup("recsys/fetch", within=config),
    *([lookup("recsys/simulate", within=config)] if GENERATED else []),
)
