"""Results never outlive their inputs: what changed is read again, and what failed on it fails again."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.guarantees.running import MINE, Clone, make_clone, sha256
from tests.helpers.genotype_stores import random_alleles, write_plink
from tests.helpers.raw_files import TRIP, write_csv, write_zones

Write = Callable[[Path], object]
YEARS_AGO = (1_500_000_000, 1_500_000_000)
EDGES = "".join(f"{source} {target}\n" for source in range(30) for target in range(30) if (source * target) % 7 == 1)
DOSAGES = random_alleles(60, 40, missing=0.0).sum(axis=2)


@dataclass(frozen=True)
class Case:
    """An application on files of its user.

    Attributes
    ----------
    fetch
        The section of the configuration that names them.
    write
        Writes them.
    bad
        Rule that fails on other files -> what writes these.
    late
        A result that both rules are before.
    changed
        A file, and what to replace in it by as many bytes.
    reads
        The rule that reads the files, ``first`` the one that writes their checksums down.
    """

    section: Mapping[str, Any]
    write: Write
    bad: Mapping[str, Write]
    late: str
    changed: tuple[str, bytes, bytes]
    first: str
    reads: str


def text(name: str, content: str) -> Write:
    return lambda folder: (folder / name).write_text(content)


def write_trips(folder: Path) -> None:
    write_csv(folder / "trips.csv", [TRIP.replace("08:00:00", f"08:00:{second:02d}") for second in range(60)])
    write_zones(folder / "zones.csv")


def write_clicks(folder: Path, rows: int = 600) -> None:
    numbers = np.random.default_rng(1).integers(0, 20, (rows, 40)).tolist()
    lines = (
        "\t".join([str(row[0] % 2), *map(str, row[1:14]), *(f"{word:08x}" for word in row[14:])]) for row in numbers
    )
    (folder / "day_0").write_text("".join(f"{line}\n" for line in lines))


def write_genotypes(folder: Path, dosages: npt.NDArray[Any] = DOSAGES) -> None:
    write_plink(folder / "calls", dosages)


CASES = {
    "taxi": Case(
        {"fetch": {"source": "files", "files": {"paths": ["trips.csv"], "zones": "zones.csv"}}},
        write_trips,
        {"taxi_standardize": text("trips.csv", "a,b\n1,2\n"), "taxi_fetch": text("zones.csv", "LocationID\n1\n")},
        "results/taxi/cpu/quality.json",
        ("trips.csv", b"12.8", b"12.9"),
        "taxi_fetch",
        "taxi_standardize",
    ),
    "recsys": Case(
        {"fetch": {"source": "criteo", "criteo": {"files": ["day_0"]}}},
        write_clicks,
        {"recsys_fetch": text("day_0", "no log\n"), "recsys_split": lambda folder: write_clicks(folder, 1)},
        "results/recsys/cpu/statistics.json",
        ("day_0", b"\t", b" "),
        "recsys_fetch",
        "recsys_fetch",
    ),
    "pagerank": Case(
        {"fetch": {"source": "edges", "edges": {"files": ["web*.txt"]}}},
        text("web.txt", EDGES),
        {"pagerank_edges": text("web.txt", "1 x\n"), "pagerank_fetch": lambda folder: (folder / "web.txt").unlink()},
        "results/pagerank/cpu/ranks.parquet",
        ("web.txt", b"1 1\n", b"1 2\n"),
        "pagerank_fetch",
        "pagerank_edges",
    ),
    "genomics": Case(
        {"ingest": {"source": "plink", "plink": {"prefix": "calls"}}},
        write_genotypes,
        {
            "genomics_ingest": text("calls.bim", "no table\n"),
            "genomics_variant_qc": lambda folder: write_genotypes(folder, np.zeros_like(DOSAGES)),
        },
        "results/genomics/cpu/variants.parquet",
        ("calls.fam", b"-9", b"01"),
        "genomics_ingest",
        "genomics_ingest",
    ),
}
FAILURES = [(application, rule) for application, case in CASES.items() for rule in case.bad]


@pytest.fixture(scope="module")
def finished_on_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Clone]:
    """Clones with a result of files, by application; each is made when it is first asked for."""

    class Clones(dict[str, Clone]):
        def __missing__(self, application: str) -> Clone:
            case = CASES[application]
            self[application] = clone = make_clone(tmp_path_factory.mktemp("stale") / application)
            case.write(clone.folder)
            ended = clone.run(application, case.section, case.late)
            assert ended.status == 0, ended.terminal
            assert "Nothing to be done" in clone.snakemake("--dry-run", "--", case.late, files=MINE).terminal
            return clone

    return Clones()


@pytest.fixture
def clone(request: pytest.FixtureRequest, finished_on_files: dict[str, Clone], tmp_path: Path) -> Iterator[Clone]:
    """A copy of an application's clone, to change at will."""
    copy = finished_on_files[request.param].copy(tmp_path / "clone")
    yield copy
    copy.end()


def age(folder: Path) -> None:
    """Give all files of the user a time before that of all results."""
    for path in folder.iterdir():
        if path.is_file():
            os.utime(path, YEARS_AGO)


@pytest.mark.parametrize(("clone", "rule"), FAILURES, indirect=["clone"])
def test_a_step_that_failed_on_a_changed_input_fails_again_for_any_later_result(clone: Clone, rule: str) -> None:
    case = CASES[rule.partition("_")[0]]
    case.bad[rule](clone.folder)
    age(clone.folder)
    ended = clone.snakemake("--", case.late, files=MINE)
    assert ended.status == 1, ended.terminal
    assert f"Error in rule {rule}:" in ended.terminal
    assert (clone / case.late).exists()
    assert rule in clone.snakemake("--dry-run", "--", case.late, files=MINE).jobs


EACH = pytest.mark.parametrize(("clone", "application"), [(each, each) for each in CASES], indirect=["clone"])


def change(clone: Clone, application: str) -> Path:
    """Change bytes of a file, and neither its size nor its time."""
    name, old, new = CASES[application].changed
    path = clone / name
    times, data = path.stat(), path.read_bytes()
    assert len(old) == len(new)
    assert old in data
    path.write_bytes(data.replace(old, new, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return path


@EACH
def test_a_file_that_is_replaced_by_an_older_one_is_read_again(clone: Clone, application: str) -> None:
    case = CASES[application]
    change(clone, application)
    age(clone.folder)
    assert case.first in clone.snakemake("--dry-run", "--", case.late, files=MINE).jobs


@EACH
def test_bytes_that_are_read_are_those_of_the_list_of_inputs(clone: Clone, application: str) -> None:
    case, inputs = CASES[application], f"data/{application}/inputs.json"
    changed = change(clone, application)
    if case.reads != case.first:
        ended = clone.snakemake("--forcerun", case.reads, "--", case.late, files=MINE)
        assert ended.messages[0].startswith(f"IntegrityError: {changed.name} changed since ")
        assert f"--forcerun {case.first}" in ended.messages[0]
        assert ended.status == 1
    else:
        ended = clone.snakemake("--forcerun", case.first, "--", inputs, files=MINE)
        assert ended.status == 0, ended.terminal
        listed = {Path(each["path"]).name: each["sha256"] for each in clone.json(inputs)["files"]}
        assert listed[changed.name] == sha256(changed)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("trips [1].csv", "trips [1].csv"),
        ("{x}.csv", "{x}.csv"),
        ("a b.csv", "file://{folder}/a%20b.csv"),
        ("{device}.csv", "file://{folder}/{{device}}.csv"),
    ],
)
def test_a_file_of_any_name_is_read_and_followed(fresh: Clone, name: str, spelled: str) -> None:
    path = write_csv(fresh / name, [TRIP])
    place = spelled.replace("{folder}", str(fresh.folder)).replace("{{", "{").replace("}}", "}")
    section, inputs = {"fetch": {"source": "files", "files": {"paths": [place]}}}, "data/taxi/inputs.json"
    ended = fresh.run("taxi", section, inputs)
    assert ended.status == 0, ended.terminal
    assert fresh.json(inputs)["files"][0]["sha256"] == sha256(path)
    write_csv(path, [TRIP, TRIP])
    os.utime(path, YEARS_AGO)
    assert "taxi_fetch" in fresh.snakemake("--dry-run", "--", inputs, files=MINE).jobs


def test_a_missing_file_of_any_name_is_told_as_such(fresh: Clone) -> None:
    sections = {
        "taxi": {"fetch": {"source": "files", "files": {"paths": ["{x}.csv"]}}},
        "recsys": {
            "fetch": {"source": "files", "files": {"files": ["{x}.csv"], "columns": [{"name": "a", "role": "label"}]}}
        },
        "genomics": {"ingest": {"source": "vcf", "vcf": {"paths": ["{x}.vcf"]}}},
        "pagerank": {"fetch": {"source": "edges", "edges": {"files": ["{x}.txt"]}}, "search": {"judgments": "{x}.csv"}},
    }
    fresh.write(MINE[-1], sections)
    targets = [f"data/{application}/inputs.json" for application in sections]
    ended = fresh.snakemake("--keep-going", "--", *targets, files=MINE)
    assert ended.status == 1
    assert "Wildcard" not in ended.terminal
    told = sorted(message.partition(".")[0] for message in ended.messages)
    assert [message for message in told if not message.startswith("InputError: {x}")] == []
    assert len(told) == len(sections)
