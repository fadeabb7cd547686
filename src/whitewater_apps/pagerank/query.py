"""Command `query`: asks the index, and prints the best documents."""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.terminal_text import fold_text, printable
from whitewater.manifest import is_of_last_run
from whitewater.text.config import Search
from whitewater.text.index_folder import open_index
from whitewater_apps.pagerank.steps.search import answer

PLACES = tuple(Path(f"results/pagerank/{device}/index") for device in ("cpu", "gpu"))
SNIPPET_LINES = 3
SETTINGS = ("k1", "b", "prior", "half", "limit")


def main(arguments: Sequence[str]) -> int:
    """Answer a query and return the exit status.

    Raises InputError if there is no index, or the query asks for nothing, and ConfigError if a value is out of its
    range.
    """
    given = _parser().parse_args(list(arguments))
    settings = Search.from_option(
        json.dumps({name: getattr(given, name) for name in SETTINGS}), option="whitewater pagerank query"
    )
    found = answer(open_index(_place(given.index)), " ".join(given.words), settings)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may lack a letter
    columns = shutil.get_terminal_size().columns
    print(json.dumps(found, ensure_ascii=False, indent=2) if given.json else _as_text(found, columns))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="whitewater pagerank query",
        description="Ask the index: BM25 with PageRank as prior. Phrases in quotes need index.positions.",
        allow_abbrev=False,
    )
    parser.add_argument("words", nargs="+", help="what to search for")
    parser.add_argument("--index", type=Path, help=f"the index (default: {' or '.join(map(str, PLACES))})")
    parser.add_argument("--json", action="store_true", help="print JSON, as in queries.json")
    for name in SETTINGS:
        field = Search.model_fields[name]
        kind = int if field.annotation is int else float
        described = f"{field.description} (default: {field.default})"
        parser.add_argument(f"--{name}", type=kind, default=field.default, help=described)
    return parser


def _place(given: Path | None) -> Path:
    found = [place for place in ([given] if given else PLACES) if (place / "index.json").exists()]
    for place in found:
        if given or is_of_last_run(place):
            return place
    if found:
        raise InputError(f"{found[0]} is of an earlier run; the last one made no index, as plain edges have no text. "
                         f"--index {found[0]} asks it nevertheless.")  # fmt: skip
    raise InputError(f"there is no index at {given or ' or '.join(map(str, PLACES))}. `snakemake pagerank` "
                     "makes one; --index names another place.")  # fmt: skip


def _as_text(answer: dict[str, Any], columns: int) -> str:
    """Return an answer for a terminal of some columns; a title and a URL take one line, however long they are."""
    lines = [f"No document has {printable(word)!r}." for word in answer["unknown"]]
    if not answer["results"]:
        return "\n".join([*lines, f"Nothing matches {printable(answer['query'])!r}."])
    for each in answer["results"]:
        mark = f"{each['position']:2}. "
        indent = " " * len(mark)
        fold = partial(fold_text, columns=columns - len(mark))
        title, *others = [
            *fold(each["title"] or "(no title)", lines=1),
            *fold(each["url"], lines=1),
            *fold(each["snippet"], lines=SNIPPET_LINES),
            f"{each['score']:.3f} = text {each['bm25']:.3f} + PageRank {each['prior']:.3f}",
        ]
        lines += ["", mark + title, *(indent + line for line in others)]
    shown = f"{len(answer['results'])} of {answer['found']:,} documents"
    return "\n".join([*lines, "", shown]).lstrip("\n")
