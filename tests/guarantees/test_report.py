"""The report says what ran and what was found, whatever the configuration says when the report is made."""

import json
import re
import sys
from html import escape

import pytest

from tests.guarantees.running import REMOTE, Clone


@pytest.fixture(scope="module")
def page(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a finished run, made with another configuration than that of the run; blanks are single."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "other.json").write_text(
        json.dumps({"taxi": {"fetch": {"source": "tlc"}, "model": {"test_fraction": 0.4}}})
    )
    report = finished / "results/report.html"
    ended = finished.start(
        sys.executable, "-m", "snakemake", "--configfile", str(folder / "other.json"), "--report", str(report)
    ).ended()
    assert ended.status == 0, ended.terminal
    text = report.read_text()
    report.unlink()
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').split())


def test_the_cover_names_all_that_ran_and_captions_give_the_settings_of_the_run(page: str) -> None:
    assert "What ran, and what it found</h1>" in page
    for name in ("Taxi", "Genomics", "PageRank", "Recsys"):
        assert f"<h1>{name}</h1>" in page
    assert page.count("Source: generated.") == 4
    assert "20 % of the trips" in page
    assert "40 % of the trips" not in page


def test_the_cover_has_the_findings_the_tables_the_steps_and_links_of_each_application(
    finished: Clone, page: str
) -> None:
    found = finished.start(sys.executable, "-m", "whitewater", "compare", ".", ".", "--json").ended().terminal
    for place, each in json.loads(found)["applications"].items():
        name = place.partition(" ")[0]
        for sentence in each["found"]:
            assert json.dumps(escape(sentence))[1:-1] in page, sentence
        assert f'aria-label="Steps of {name}, ' in page
        assert f'<a href="{name}/cpu/manifest.json">manifest</a>' in page
    assert "<summary>Table: tips_by_borough</summary>" in page


def test_beside_a_picture_stand_its_small_table_or_numbers_and_it_has_a_text_for_screen_readers(page: str) -> None:
    for file in ("tips_by_borough.csv", "eigenvalues.json", "convergence.json", "metrics.json"):
        table = f"<summary>Table: {file.partition('.')[0]}</summary>"
        assert re.search(f"{re.escape(file)}</tt>[^<]*</p> {re.escape(table)}".replace("</p> ", "</p> <details>"), page)
    assert "{ src: this.props.app.state.contentPath, alt: results[" in page


def test_the_cover_says_which_settings_are_not_those_of_the_run(page: str) -> None:
    assert "These results are not of the present configuration:" in page
    assert "<code>model.test_fraction</code>: ran with 0.2, configured is 0.4" in page
    assert '<code>fetch.source</code>: ran with "generated", configured is "tlc"' in page


def test_the_report_needs_no_network(page: str) -> None:
    assert not re.findall(REMOTE, page)
