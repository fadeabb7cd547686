def named_files():
    """Return the places that `fetch` reads, of the source `files`."""
    chosen = lookup("minimal/fetch", within=config)
    return chosen["files"]["paths"] if chosen["source"] == "files" else []


source_files = watched(named_files)
source = state(named_files, lookup("minimal/fetch", within=config))
