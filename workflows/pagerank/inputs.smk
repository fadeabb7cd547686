CHOSEN = lookup("pagerank/fetch", within=config)
# Whether the web is simulated, and whether the source has pages, which are parsed and indexed.
GENERATED = CHOSEN["source"] == "generated"
PAGES = CHOSEN["source"] != "edges"


def named_files():
    """Return the places that `fetch` and `edges` read: what the section of the source names."""
    named = CHOSEN.get(CHOSEN["source"], {})
    if "folder" in named:
        return files_in(named["folder"])
    return [*named.get("files", []), *named.get("vertices", [])]


def personalization():
    return [lookup("pagerank/rank/personalization", within=config)]


def own_judgments():
    return [lookup("pagerank/search/judgments", within=config)]


def judgments(wildcards):
    """Return the path of the table of right answers: the user's, or that of the simulated web."""
    [own] = own_judgments()
    simulated = str(rules.simulate.output.queries) if GENERATED else []
    return str(local_path(own) or own) if own else simulated


source_files = watch_files(named_files)
# Settings of a simulation stand for its files, which are not there when it fails.
source = state(
    named_files,
    lookup("pagerank/fetch", within=config),
    *([lookup("pagerank/simulate", within=config)] if GENERATED else []),
)
