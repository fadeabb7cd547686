"""Command `query`: search the index and print the best documents."""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from whitewater.errors import InputError
from whitewater.io.terminal_text import fold_text, printable
from whitewater.manifest import is_of_last_run
from whitewater.text.config import Search
from whitewater.text.index_folder import open_index
from whitewater_apps.pagerank.steps.search import answer

INDEXES = tuple(Path(f"results/pagerank/{device}/index") for device in ("cpu", "gpu"))
SETTINGS = ("k1", "b", "prior", "half", "limit")


def main(arguments: Sequence[str]) -> int:
    """Answer a query and return the exit status."""
    options = _parser().parse_args(list(arguments))
    settings = Search.from_option(
        json.dumps({name: getattr(options, name) for name in SETTINGS}), option="whitewater pagerank query"
    )
    result = answer(open_index(_find_index(options.index)), " ".join(options.words), settings)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may lack a letter
    columns = shutil.get_terminal_size().columns
    with suppress(BrokenPipeError):  # the reader has closed the pipe
        print(json.dumps(result, ensure_ascii=False, indent=2) if options.json else _format_answer(result, columns))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="whitewater pagerank query",
        description="Search the index: BM25 with PageRank as prior. Phrases in quotes need index.positions.",
        allow_abbrev=False,
    )
    parser.add_argument("words", nargs="+", help="what to search for")
    parser.add_argument("--index", type=Path, help=f"the index (default: {' or '.join(map(str, INDEXES))})")
    parser.add_argument("--json", action="store_true", help="print JSON, as in queries.json")
    for name in SETTINGS:
        field = Search.model_fields[name]
        kind = int if field.annotation is int else float
        description = f"{field.description} (default: {field.default})"
        parser.add_argument(f"--{name}", type=kind, default=field.default, help=description)
    return parser


def _find_index(path: Path | None) -> Path:
    existing = [index for index in ([path] if path else INDEXES) if (index / "index.json").exists()]
    for index in existing:
        if path or is_of_last_run(index):
            return index
    if existing:
        raise InputError(f"{existing[0]} is of an earlier run; the last one made no index, as plain edges have no "
                         f"text. To search it anyway, use --index {existing[0]}.")  # fmt: skip
    raise InputError(f"there is no index at {path or ' or '.join(map(str, INDEXES))}. Run `snakemake pagerank` to make "
                     "one, or name another with --index.")  # fmt: skip


def _format_answer(answer: dict[str, Any], columns: int) -> str:
    """Format an answer for a terminal; title and URL are cut to one line."""
    lines = [f"No document has {printable(word)!r}." for word in answer["unknown"]]
    if not answer["results"]:
        return "\n".join([*lines, f"Nothing matches {printable(answer['query'])!r}."])
    for result in answer["results"]:
        number = f"{result['position']:2}. "
        fold = partial(fold_text, columns=columns - len(number))
        title, *details = [
            *fold(result["title"] or "(no title)", lines=1),
            *fold(result["url"], lines=1),
            *fold(result["snippet"], lines=3),
            f"{result['score']:.3f} = text {result['bm25']:.3f} + PageRank {result['prior']:.3f}",
        ]
        lines += ["", number + title, *(" " * len(number) + line for line in details)]
    total = f"{len(answer['results'])} of {answer['found']:,} documents"
    return "\n".join([*lines, "", total]).lstrip("\n")
