"""Step `fetch`: simulate, find or download the readings, and list the files with their checksums."""

from dataclasses import asdict

from whitewater.io.download import Downloads
from whitewater.io.places import find
from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater_apps.minimal.config import Fetch
from whitewater_apps.minimal.readings import SOURCE
from whitewater_apps.minimal.synthetic import write_generated


def fetch(run: Run[Fetch], *, inputs: Output) -> None:
    """Write a sorted list of the files, so that their order in the settings does not matter."""
    settings = run.settings
    names = settings.files or map(str, write_generated(inputs.parent / "generated", settings))
    downloads = Downloads(run.downloads, refresh=run.refresh, anonymous=settings.anonymous)
    places = find(names, downloads=downloads, threads=run.threads, key=SOURCE.setting, example="*.csv")
    files = [asdict(places[place]) for place in sorted(places)]
    write_json(inputs, {"files": files})
    run.note(files=len(files), bytes=sum(file["bytes"] for file in files))


if __name__ == "__main__":
    main(fetch)
