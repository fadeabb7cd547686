"""A run with a name keeps what it makes apart from other runs, shares their downloads, and is cleaned as they are."""

import json
import re
import sys
from collections.abc import Iterator

import pytest

from tests.guarantees.running import MINE, TINY, Clone, contents, eventually
from tests.helpers.raw_files import TRIP, YELLOW_2019
from tests.helpers.web_server import Act, Site, response, serving

NAMED = ("--config", 'run={"name": "mine"}')
CLEANED = "results/taxi/cpu/quality.json"
TOPS = ("data", "results", "logs")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as served:
        yield served


def of_plain_run(clone: Clone) -> dict[str, bytes]:
    """Return the files of the run without a name, by their paths."""
    found = {f"{top}/{path}": data for top in TOPS for path, data in contents(clone / top).items()}
    return {path: data for path, data in found.items() if path.split("/")[1] == "taxi"}


def read(clone: Clone, run: str) -> list[str]:
    """Return the paths of the files of trips that a run read."""
    return [each["path"] for each in clone.json(f"data/{run}taxi/inputs.json")["files"]]


@pytest.mark.slow
def test_runs_with_and_without_a_name_keep_their_simulations_results_and_logs_apart(fresh: Clone) -> None:
    ended = fresh.snakemake("--", CLEANED)
    assert ended.status == 0, ended.terminal
    plain = of_plain_run(fresh)
    other = {"taxi": {"fetch": {"generated": {**TINY["taxi"]["fetch"]["generated"], "seed": 7}}}}
    fresh.write(MINE[-1], other)
    ended = fresh.snakemake(*NAMED, "--", "results/mine/taxi/cpu/quality.json", files=MINE)
    assert ended.status == 0, ended.terminal
    assert of_plain_run(fresh) == plain
    for path in ("logs/mine/taxi/fetch.log", "data/mine/taxi/inputs.json", "results/mine/taxi/cpu/trips"):
        assert (fresh / path).exists(), path
    months, others = ({(fresh / path).read_bytes() for path in read(fresh, run)} for run in ("", "mine/"))
    assert not months & others
    assert "Nothing to be done" in fresh.snakemake("--dry-run", "--", CLEANED).terminal


@pytest.mark.slow
def test_all_that_a_rule_writes_lies_below_the_name(fresh: Clone) -> None:
    ended = fresh.snakemake("--dry-run", *NAMED)
    assert {rule.partition("_")[0] for rule in ended.jobs} == {*TINY, "all"}
    assert set(re.findall(r"\b(?:data|results|logs)/(\w+)", ended.terminal)) == {"mine"}


@pytest.mark.slow
def test_a_crawl_goes_on_under_another_name_where_it_stopped(fresh: Clone, site: Site) -> None:
    site.put("/", response('<p>one <a href="/two">two</a></p>'))
    site.put("/two", [Act.HANG], response("<p>two</p>"))
    crawl = {"start_urls": [f"{site.url}/"], "delay": 0.0, "timeout": 300.0}
    fresh.write(MINE[-1], {"pagerank": {"fetch": {"source": "crawl", "crawl": crawl}}})
    broken = fresh.start_snakemake("--", "data/pagerank/inputs.json", files=MINE)
    eventually(lambda: site.asked()["/two"] or None, what="the request for /two")
    broken.step("fetch").kill()
    assert broken.ended().status == 1
    ended = fresh.snakemake(*NAMED, "--", "data/mine/pagerank/inputs.json", files=MINE)
    assert ended.status == 0, ended.terminal
    assert fresh.json("data/mine/pagerank/inputs.json")["pages"] == len(site.replies)
    assert site.asked() == {"/": 1, "/two": 2}
    assert not (fresh / "data/mine/pagerank/crawl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [".", "..", "a/b", "../results", "taxi", "two words"])
def test_a_name_that_is_none_is_refused_before_any_job(fresh: Clone, name: str) -> None:
    ended = fresh.snakemake("--config", f"run={json.dumps({'name': name})}")
    assert ended.message.startswith(f"ConfigError:\n--config: run.name = {name!r}: ")
    assert not any((fresh / top).exists() for top in TOPS)


@pytest.mark.slow
def test_a_download_is_made_once_for_all_runs(fresh: Clone, site: Site) -> None:
    site.put("/trips.csv", response(f"{YELLOW_2019}\n{TRIP}\n", content_type="text/csv"))
    fresh.write(MINE[-1], {"taxi": {"fetch": {"source": "files", "files": {"paths": [f"{site.url}/trips.csv"]}}}})
    for options, run in (((), ""), (NAMED, "mine/")):
        ended = fresh.snakemake(*options, "--", f"data/{run}taxi/inputs.json", files=MINE)
        assert ended.status == 0, ended.terminal
    assert read(fresh, "mine/") == read(fresh, "")
    assert [path.parent for path in (fresh / "data").rglob("*-trips.csv")] == [fresh / "data/taxi/downloads"]
    assert site.asked()["/trips.csv"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("in_file", [False, True], ids=["the name is in the command", "the name is in the file"])
def test_one_command_runs_an_application_under_a_name_and_tells_its_results_and_clean_removes_them(
    fresh: Clone, in_file: bool
) -> None:
    (fresh / ".venv").symlink_to(sys.prefix)
    mine = fresh / "data/mine/taxi/notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    name = [] if in_file else ["NAME=mine"]
    if in_file:
        fresh.write(MINE[0], {**TINY, "run": {"name": "mine"}})
    ended = fresh.start("make", "-o", ".venv/.cpu", "run", "APP=taxi", f"CONFIG={MINE[0]}", *name).ended()
    assert ended.status == 0, ended.terminal
    assert "taxi on cpu, run mine" in ended.terminal
    report = "results/mine/taxi/report.html"
    assert f"Report with all pictures: {report}" in ended.terminal
    assert (fresh / report).exists()
    assert not (fresh / "results/taxi").exists()
    ended = fresh.start("make", "clean", f"PYTHON={sys.executable}").ended()
    assert ended.status == 0, ended.terminal
    assert [path for top in TOPS for path in (fresh / top).rglob("*") if path.is_file()] == [mine]
