import glob
import os

CHOSEN = lookup("pagerank/fetch", within=config)
# Whether the web is simulated, whether the source has pages, which are parsed, and whether there is text to search in.
GENERATED = CHOSEN["source"] == "generated"
PAGES = CHOSEN["source"] in {"generated", "html", "crawl", "warc"}
SEARCHABLE = PAGES or CHOSEN["source"] == "wikipedia"


def here(names):
    """Return the files on this machine that paths and globs stand for; a missing one is left to the error of its step."""
    places = [
        os.path.expanduser(name.removeprefix("file://")) for name in names if name
    ]
    found = {
        path for place in places if "://" not in place for path in glob.glob(place)
    }
    return sorted(path for path in found if can_be_input(path))


def files_in(folder):
    """Return the files of a folder that can be inputs."""
    paths = [
        os.path.join(directory, name)
        for directory, _, names in os.walk(folder)
        for name in names
    ]
    return sorted(path for path in paths if can_be_input(path))


def can_be_input(path):
    """Return whether a path is a file whose name Snakemake can hold; steps read others, but a change runs nothing again."""
    is_text = os.fsencode(path).decode("utf-8", "replace") == path
    return os.path.isfile(path) and is_text and not {"{", "}"} & set(path)


def source_files(wildcards):
    """Return the local files that `fetch` and `edges` read, so that a changed one runs them again."""
    source = CHOSEN["source"]
    if source == "html":
        return files_in(os.path.expanduser(CHOSEN["html"]["folder"]))
    named = {
        "warc": CHOSEN["warc"]["files"],
        "edges": [*CHOSEN["edges"]["files"], *CHOSEN["edges"]["vertices"]],
        "wikipedia": [
            CHOSEN["wikipedia"][table]
            for table in ("page", "pagelinks", "linktarget", "redirect")
        ],
    }
    return here(named.get(source, []))


def personalization_file(wildcards):
    return here([lookup("pagerank/pagerank/personalization", within=config)])


def judgments(wildcards):
    """Return the table of right answers: the user's, or that of the simulated web."""
    own = lookup("pagerank/search/judgments", within=config)
    if own:
        return os.path.expanduser(own)
    return rules.simulate.output.queries if GENERATED else []


def workers(wildcards):
    """Return the cores of a step: one for a small simulated web, so that other applications run beside it, else all."""
    simulated = lookup("pagerank/simulate", within=config)
    small = simulated["pages"] * simulated["words"] <= 1e6
    return 1 if GENERATED and small else workflow.cores
