"""`make docs` builds the documentation site, whole, from the files that it is made of."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.guarantees.running import Clone

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


class Loaded(HTMLParser):
    """What a page loads by itself: scripts, styles, pictures, frames."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"script", "img", "iframe"} or (tag == "link" and given.get("rel") in {"stylesheet", "icon"}):
            self.found.append(given.get("src") or given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    arguments = ("--directory", str(ROOT), "-o", ".venv/.dev", "-o", ".venv/.docs", f"SITE={folder / 'site'}", "docs")
    ended = Clone(folder).start("make", *arguments).ended()
    assert ended.status == 0, ended.terminal
    return folder / "site"


def test_each_tutorial_is_there_with_its_outputs(site: Path) -> None:
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        page = (site / f"tutorials/{notebook.stem}.html").read_text()
        assert page.count("<table>") >= notebook.read_text().count("<table ") > 0
        assert page.count("<img") == notebook.read_text().count('"image/png"')


def test_pages_load_nothing_from_elsewhere_and_what_they_load_is_there(site: Path) -> None:
    for page in site.rglob("*.html"):
        for loaded in filter(None, Loaded(page).found):
            assert not re.match(r"\w+:|//", loaded), (page, loaded)
            assert page.name == "404.html" or (page.parent / loaded.partition("?")[0]).exists(), (page, loaded)


def test_the_reference_has_what_the_packages_export(site: Path) -> None:
    from whitewater import engines, features
    from whitewater.features import operators

    page = (site / "reference.html").read_text()
    for package in (engines, features, operators):
        for name in package.__all__:
            assert f'id="{package.__name__}.{name}"' in page, name


def test_the_doctor_s_fixes_are_told_in_its_own_words(site: Path) -> None:
    page = (site / "troubleshooting.html").read_text()
    assert "See whether its controller runs: scontrol ping" in (ROOT / "src/whitewater/cli/doctor.py").read_text()
    assert "See whether its controller runs: scontrol ping" in page


def test_links_to_the_source_are_its_paths_where_its_web_page_is_not_known(site: Path) -> None:
    assert "<code>src/whitewater_apps/taxi/synthetic/trips.py</code>" in (site / "applications/taxi.html").read_text()
