import glob
import os


def local_files(wildcards):
    """Return the local files that `fetch` reads, so that a changed one runs it again; a missing one is left to its error."""
    chosen = lookup("taxi/fetch", within=config)
    if chosen["source"] != "files":
        return []
    named = [*chosen["files"]["paths"], chosen["files"]["zones"]]
    return sorted(
        {
            path
            for name in named
            if "://" not in name
            for path in glob.glob(os.path.expanduser(name))
        }
    )
