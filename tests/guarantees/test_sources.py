"""`whitewater doctor` tries what a configuration names as sources, before a step is run."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.guarantees.running import ROOT, Clone
from tests.helpers.genotype_stores import random_alleles, write_plink
from tests.helpers.raw_files import TRIP, write_csv
from tests.helpers.web_server import Site, response, serving


def found(clone: Clone, application: str, section: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return status, text and remedy of the line of an application; what is run leaves nothing behind."""
    mine = clone.write("mine.yaml", {application: section})
    command = (sys.executable, "-m", "whitewater", "doctor", "--json", "--configfile", mine)
    ended = clone.start(*command, PYTHONPATH=str(ROOT / "src")).ended()
    lines = {check["name"]: check for check in json.loads(ended.terminal)}
    assert not (clone / "data").exists()
    others = [check["status"] for name, check in lines.items() if name.startswith("sources of ")]
    assert sorted(others)[-3:] == ["skip"] * 3  # of simulated data
    check = lines[f"sources of {application}"]
    return check["status"], check["found"], check["fix"]


@pytest.fixture
def files(fresh: Clone) -> Clone:
    """A clone with a few files of each kind in it."""
    write_csv(fresh / "trips.csv", [TRIP])
    write_plink(fresh / "calls", random_alleles(20, 30).sum(axis=2).clip(-1))
    texts = {
        "web.txt": "1 2\n",
        "log.csv": "label,x\n1,2\n",
        "empty.vcf": "",
        "pages/a.html": "<p>",
        "odd.csv": "a\n1\n",
    }
    for name, text in texts.items():
        (fresh / name).parent.mkdir(exist_ok=True)
        (fresh / name).write_text(text)
    return fresh


def columns(*names: str) -> dict[str, Any]:
    """Return the section of a log of which these columns are read, beside the label."""
    numbers = [{"name": name, "role": "continuous"} for name in names]
    files = {"files": ["log.csv"], "columns": [{"name": "label", "role": "label"}, *numbers]}
    return {"fetch": {"source": "files", "files": files}}


PLINK = {"source": "plink", "plink": {"prefix": "calls"}}
HTML = {"base_url": "https://example.org/"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("application", "section", "status", "told"),
    [
        ("taxi", {"fetch": {"source": "files", "files": {"paths": ["tr*.csv"]}}}, "ok", "files of trips: 1; no table"),
        (
            "taxi",
            {"fetch": {"source": "files", "files": {"paths": ["odd.csv"]}}},
            "fail",
            "columns not understood: 'a'",
        ),
        ("taxi", {"fetch": {"source": "files", "files": {"paths": ["no.csv"]}}}, "fail", "no.csv does not exist"),
        ("recsys", columns("x"), "ok", "files of the source files: 1"),
        ("recsys", columns("y"), "fail", "log.csv has no column 'y'"),
        ("pagerank", {"fetch": {"source": "edges", "edges": {"files": ["web.txt"]}}}, "ok", "source edges: 1"),
        (
            "pagerank",
            {"fetch": {"source": "html", "html": {"folder": "pages", **HTML}}},
            "ok",
            "a folder of HTML files",
        ),
        ("pagerank", {"fetch": {"source": "html", "html": {"folder": "config", **HTML}}}, "fail", "has no HTML files"),
        ("genomics", {"ingest": PLINK}, "ok", "20 variants of 30 samples"),
        ("genomics", {"ingest": PLINK, "project": {"second": "others"}}, "fail", "lacks others.bed"),
        ("genomics", {"ingest": {"source": "vcf", "vcf": {"paths": ["empty.vcf"]}}}, "fail", "empty.vcf is empty"),
    ],
)
def test_sources_that_can_be_read_pass_and_others_are_told_with_their_remedy(
    files: Clone, application: str, section: Mapping[str, Any], status: str, told: str
) -> None:
    line = found(files, application, section)
    assert (line[0], bool(line[2])) == (status, status == "fail")
    assert told in line[1]


@pytest.mark.slow
def test_a_file_elsewhere_is_asked_for_and_not_downloaded(fresh: Clone) -> None:
    with serving(Site()) as site:
        site.put("/there.csv", response(f"{TRIP}\n", content_type="text/csv"))
        for name, status, told in (("there", "ok", "files of trips: 1"), ("gone", "fail", "gone.csv")):
            section = {"fetch": {"source": "files", "files": {"paths": [f"{site.url}/{name}.csv"]}}}
            line = found(fresh, "taxi", section)
            assert line[0] == status
            assert told in line[1]
        assert site.asked() == {"/there.csv": 1, "/gone.csv": 1}
