"""What MkDocs calls, since mkdocs.yml names this file: pages made from files elsewhere, and their links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter
from troubleshooting import troubleshooting  # beside this file

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
APPLICATIONS = sorted(path.parent.name for path in ROOT.glob("workflows/*/README.md"))
# The pages by the file that each is a copy of.
COPIES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/GPU.md": "benchmarks-gpu.md",
    "config/README.md": "modules.md",
    **{f"workflows/{name}/README.md": f"applications/{name}.md" for name in APPLICATIONS},
}
NOTEBOOKS = {path.relative_to(ROOT).as_posix(): f"tutorials/{path.stem}.md" for path in ROOT.glob("notebooks/*.ipynb")}
PAGES = COPIES | NOTEBOOKS
ORIGINS = {page: source for source, page in PAGES.items()}
EXPORTER: Any = MarkdownExporter  # it has no types
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|data:|#)([^)#\s]+)(#[^)\s]*)?\)")
EXPORTS = re.compile(r"^__all__ = ", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/, and the pictures of the tutorials."""
    made = {page: (ROOT / source).read_text() for source, page in COPIES.items()}
    made |= {"reference.md": reference(), "troubleshooting.md": troubleshooting(ROOT)}
    for page, content in [*made.items(), *tutorials()]:
        files.append(File.generated(config, page, content=content))
    return files


def tutorials() -> Iterator[tuple[str, str | bytes]]:
    """Yield each tutorial with the outputs that are committed, and their pictures."""
    for source, page in NOTEBOOKS.items():
        name = Path(source).stem
        naming = {"unique_key": name, "output_files_dir": f"{name}_files"}
        body, made = EXPORTER().from_filename(str(ROOT / source), naming)
        yield page, body.replace('<table border="1" class="dataframe">', "<table>")  # the site's look, not pandas'
        yield from ((f"tutorials/{file}", picture) for file, picture in made["outputs"].items())


def reference() -> str:
    """Return a page of what the packages of the library export by ``__all__``; mkdocstrings fills it in."""
    modules = [path.parent for path in ROOT.glob("src/whitewater/**/__init__.py") if EXPORTS.search(path.read_text())]
    names = sorted(".".join(folder.relative_to(ROOT / "src").parts) for folder in modules)
    return "# Python\n\nWhat the packages of the library export.\n\n" + "\n".join(f"::: {name}\n" for name in names)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages, or to its web page where that is known."""
    uri = page.file.src_uri
    folder = posixpath.dirname(ORIGINS.get(uri, f"docs/{uri}"))

    def changed(link: re.Match[str]) -> str:
        picture, text, path, anchor = link.groups(default="")
        if files.get_file_from_path(posixpath.normpath(posixpath.join(posixpath.dirname(uri), path))):
            return link[0]
        target = posixpath.normpath(posixpath.join(folder, path))
        there = PAGES.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(there):
            return f"{picture}[{text}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{anchor})"
        if picture or not (ROOT / target).exists():
            return link[0]  # MkDocs says that it leads nowhere
        if config.repo_url:
            return f"[{text}]({config.repo_url}/blob/HEAD/{target}{anchor})"
        return text if posixpath.basename(target) in text else f"{text} (`{target}`)"

    return LINK.sub(changed, markdown)
