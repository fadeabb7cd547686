"""Step `fetch`: the log, from a simulation, Criteo's days, a MovieLens release, or files whose columns are declared.

Whatever the source, the log is one folder in one layout. Files of the user are read where they are; others are
downloaded, once, and what was read is written down with checksums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.download import Downloads, Input
from whitewater.io.places import find, refuse_changes, try_files
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Inputs, Output, Run
from whitewater_apps.recsys.config import Fetch
from whitewater_apps.recsys.sources.movielens import KEY, read_movielens, release_files
from whitewater_apps.recsys.sources.rows import open_files, read_rows

SIMULATED_DAYS = "day-*.parquet"


def fetch(run: Run[Fetch], *, simulated: Inputs, events: Output, inputs: Output) -> None:
    """Write the log, and the list of the files that were read.

    Downloads are shared by runs of all names; one that was broken off goes on where it stopped. ``simulated`` is the
    folder of simulated days, for the source ``generated``. ``events`` is the log, see `whitewater.features.log_folder`;
    ``inputs`` JSON: the source, the number of rows, and ``files`` with path, origin, bytes and SHA-256 of each.

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
    """Return the paths, globs and URLs of the source's files, the key that names them, and a name one might have."""
    match settings.source:
        case "generated":
            if not simulated:
                raise InputError("There are no simulated days: the source is generated. Run the step simulate before.")
            return [str(folder / SIMULATED_DAYS) for folder in simulated.values()], "recsys.simulate", "day-00.parquet"
        case "criteo":
            return settings.criteo.files, "recsys.fetch.criteo.files", "day_*.gz"
        case "movielens":
            return release_files(settings.movielens), KEY, "ml.zip"
        case "files":
            return settings.files.files, "recsys.fetch.files.files", "*.parquet"


def check(settings: Any, downloads: Downloads) -> str:
    """Say for ``whitewater doctor`` which files there are; in those on this machine, look for the declared columns."""
    fetch: Fetch = settings.fetch  # a type of all settings would make the step depend on all of them
    if fetch.source == "generated":
        return ""
    names, key, example = named_files(fetch, {})
    found = try_files(names, downloads=replace(downloads, anonymous=fetch.anonymous), key=key, example=example)
    here = [Input(place, place, 0, "") for place in found if "://" not in place]
    if fetch.source == "files" and here:
        open_files(here, fetch)
    return f"files of the source {fetch.source}: {len(found)}"


if __name__ == "__main__":
    main(fetch)
