"""Step `parse`: parse pages into documents and links."""

from pathlib import Path

from whitewater.io.store import write_json
from whitewater.script import main
from whitewater.step import Output, Run
from whitewater.web.config import Parse
from whitewater.web.pages import open_pages
from whitewater.web.parse_pages import parse_pages


def parse(run: Run[Parse], *, fetched: Path, documents: Output, links: Output, summary: Output) -> None:
    """Write the documents, the aliases and the links of pages.

    If a page has several URLs, one is the document and the others are its aliases. The document is the target of a
    redirect; the canonical URL on the same host, if it was fetched; and among pages with equal title, text and links
    the one with the shortest, then the smallest URL. That comparison ignores links of a page to itself and among pages
    of the same bytes. Only the links of documents are kept.

    The folders are those of `whitewater.web.pages` and `whitewater.text.documents`. The ``summary`` is JSON:

    - ``pages``: the number ``fetched``, and of each kind: documents, redirects, duplicates, canonical, same_address (of
      equal normal form), and those left out: redirect_loop, redirect_too_long, redirect_invalid, status_404 and so on,
      and the reasons of `page_content.read_page`;
    - ``links``: the number ``found``, and of each kind: kept, repeated (within a page), nofollow, scheme, invalid,
      too_long, and merged (on pages that are aliases);
    - ``refreshes``: the redirects by meta tags.

    Raises InputError if the pages cannot be read, and IntegrityError if two URLs have the same id.
    """
    counts = parse_pages(run, open_pages(fetched), documents_to=documents, links_to=links)
    write_json(summary, counts)
    pages = counts["pages"]
    run.note(pages=pages["fetched"], documents=pages["documents"], links=counts["links"]["kept"])


if __name__ == "__main__":
    main(parse)
