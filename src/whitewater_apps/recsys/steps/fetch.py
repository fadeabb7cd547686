"""Step `fetch`: the log, from a simulation, Criteo's days, a MovieLens release, or files whose columns are declared."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.download import Downloads, Input
from whitewater.io.places import check_readable, find, refuse_changes
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater_apps.recsys.config import Fetch
from whitewater_apps.recsys.sources.movielens import KEY, read_movielens, release_files
from whitewater_apps.recsys.sources.rows import open_files, read_rows


def fetch(run: Run[Fetch], *, simulated: Inputs, events: Output, inputs: Output) -> None:
    """Write the log, and the list of the files that were read.

    Local files are read in place; URLs are downloaded once for all runs, and interrupted downloads resume. The log,
    ``events``, has the same layout for every source (`whitewater.features.log_folder`); ``inputs`` is JSON: the source,
    the number of rows, and ``files`` with path, origin, bytes and SHA-256 of each.

    Raises InputError if a file is missing, cannot be read, is cut or has no rows; a download fails; columns are missing
    or of a wrong type; or too many lines are malformed.
    """
    source = run.settings.source
    names, key, example = named_files(run.settings, simulated)
    downloads = Downloads(run.downloads, refresh=run.refresh, anonymous=run.settings.anonymous)
    files = list(find(names, downloads=downloads, threads=run.threads, key=key, example=example).values())
    with refuse_changes([each.path for each in files]):
        read_source = read_movielens if source == "movielens" else read_rows
        log = read_source(files, events, run=run)
    write_json(inputs, {"source": source, "rows": log.rows, "files": list(map(asdict, files))})
    run.note(source=source, rows=log.rows, files=len(files), counts=log.counts)


def named_files(settings: Fetch, simulated: Mapping[str, Path]) -> tuple[Sequence[str], str, str]:
    """Return the paths, globs and URLs of the source's files, their configuration key, and an example of a name."""
    match settings.source:
        case "generated":
            if not simulated:
                raise InputError(
                    "the source is generated, but there are no simulated days. Run the step simulate first."
                )
            return [str(folder / "day-*.parquet") for folder in simulated.values()], "recsys.simulate", "day-00.parquet"
        case "criteo":
            return settings.criteo.files, "recsys.fetch.criteo.files", "day_*.gz"
        case "movielens":
            return release_files(settings.movielens), KEY, "ml.zip"
        case "files":
            return settings.files.files, "recsys.fetch.files.files", "*.parquet"


def check(settings: Any, downloads: Downloads) -> str:
    """Report the source's files to ``whitewater doctor``, and check the columns of local ones."""
    fetch: Fetch = settings.fetch  # naming the type of all settings would make the step depend on all of them
    if fetch.source == "generated":
        return ""
    names, key, example = named_files(fetch, {})
    places = check_readable(names, downloads=replace(downloads, anonymous=fetch.anonymous), key=key, example=example)
    local_files = [Input(place, place, 0, "") for place in places if "://" not in place]
    if fetch.source == "files" and local_files:
        open_files(local_files, fetch)
    return f"files of the source {fetch.source}: {len(places)}"


if __name__ == "__main__":
    main(fetch)
