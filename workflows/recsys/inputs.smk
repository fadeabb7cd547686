import glob
import os

CHOSEN = lookup("recsys/fetch", within=config)
GENERATED = CHOSEN["source"] == "generated"


def here(names):
    """Return the files on this machine that paths and globs stand for; a missing one is left to the error of its step."""
    places = [
        os.path.expanduser(name.removeprefix("file://")) for name in names if name
    ]
    found = {
        path for place in places if "://" not in place for path in glob.glob(place)
    }
    return sorted(path for path in found if os.path.isfile(path))


def source_files(wildcards):
    """Return the local files that `fetch` reads, so that a changed one runs it again."""
    release = CHOSEN["movielens"]["path"]
    named = {
        "criteo": CHOSEN["criteo"]["files"],
        "movielens": [release, os.path.join(release, "*")] if release else [],
        "files": CHOSEN["files"]["files"],
    }
    return here(named.get(CHOSEN["source"], []))


def named_tables(wildcards):
    """Return the local files that the operators of the features name: tables to join, and given vocabularies."""
    chosen = [
        parameters
        for feature in lookup("recsys/fit/features", within=config)
        for operator in feature["operators"]
        if isinstance(operator, dict)
        for parameters in operator.values()
    ]
    named = [value for each in chosen for value in each.values()]
    return here(
        value
        for value in named
        if isinstance(value, str) and value.endswith(".parquet")
    )


def workers(wildcards):
    """Return the cores of a step: one for a small simulated log, so that other applications run beside it, else all."""
    small = lookup("recsys/simulate/rows", within=config) <= 100_000
    return 1 if GENERATED and small else workflow.cores
