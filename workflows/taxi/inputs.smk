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


def workers(wildcards):
    """Return the cores of a step: one for a few simulated months, so that other applications run beside it, else all."""
    chosen = lookup("taxi/fetch", within=config)
    generated = chosen["generated"]
    files = len(generated["months"]) * len(generated["services"])
    small = chosen["source"] == "generated" and files * generated["scale"] <= 0.5
    return 1 if small else workflow.cores
