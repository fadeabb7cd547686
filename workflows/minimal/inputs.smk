def named_files():
    """Return the places of the user that `fetch` reads."""
    return lookup("minimal/fetch/files", within=config)


source_files = watch_files(named_files)
source = state(named_files, lookup("minimal/fetch", within=config))
