def named_files():
    """Return the places that `fetch` reads, of the source `files`."""
    chosen = lookup("taxi/fetch", within=config)
    files = chosen["files"]
    return [*files["paths"], files["zones"]] if chosen["source"] == "files" else []


def workers(wildcards):
    """Return the cores of a step: one for a few simulated months, so that other applications run beside it, else all."""
    chosen = lookup("taxi/fetch", within=config)
    generated = chosen["generated"]
    files = len(generated["months"]) * len(generated["services"])
    small = chosen["source"] == "generated" and files * generated["scale"] <= 0.5
    return 1 if small else workflow.cores


source_files = watched(named_files)
source = state(named_files, lookup("taxi/fetch", within=config))
