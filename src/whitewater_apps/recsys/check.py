"""What there is of the source of the log, for ``whitewater doctor``."""

from __future__ import annotations

from dataclasses import replace

from whitewater.io.download import Downloads, Input
from whitewater.io.places import try_files
from whitewater_apps.recsys.config import Recsys
from whitewater_apps.recsys.sources.rows import open_files
from whitewater_apps.recsys.steps.fetch import named_files


def check(settings: Recsys, downloads: Downloads) -> str:
    """Say which files there are; the declared columns are looked for in those on this machine."""
    fetch = settings.fetch
    if fetch.source == "generated":
        return ""
    names, key, example = named_files(fetch, {})
    found = try_files(names, downloads=replace(downloads, anonymous=fetch.anonymous), key=key, example=example)
    here = [Input(place, place, 0, "") for place in found if "://" not in place]
    if fetch.source == "files" and here:
        open_files(here, fetch)
    return f"files of the source {fetch.source}: {len(found)}"
