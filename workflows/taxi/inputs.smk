def named_files():
    """Return the places that `fetch` reads, of the source `files`."""
    chosen = lookup("taxi/fetch", within=config)
    files = chosen["files"]
    return [*files["paths"], files["zones"]] if chosen["source"] == "files" else []


source_files = watch_files(named_files)
source = state(named_files, lookup("taxi/fetch", within=config))
