"""Measure what has become slower since a commit: `make bench-guard`; see benchmarks/README.md.

The applications' benchmarks run as they are now and as they were at the base, in turns. The base runs twice: how much
it differs from itself says what a difference means on this machine (an A/A test).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.arguments import parser_of, plan_of
from benchmarks.genomics import commands as genomics
from benchmarks.genomics import simulated_store
from benchmarks.genomics.accuracy import reference
from benchmarks.measure import Variant, measure
from benchmarks.pagerank import commands as pagerank
from benchmarks.pagerank import corpus, rmat
from benchmarks.process_tree import MeasurementError
from benchmarks.recsys import click_log, feature_rows
from benchmarks.recsys import commands as recsys
from benchmarks.report import Plan, Report, Size, table
from benchmarks.taxi import commands as taxi
from benchmarks.taxi import simulated_months

BASE = "2e53e2b"
NOW, BEFORE, AGAIN = "now", "base", "base again"
# A case is slower where the CPU time of its process is by more than this above the base's, and outside the A/A band.
ALLOWED = 1.05
# The same code on other threads may sum real numbers in another order.
TOLERANCE = 1e-6
TOOL = "whitewater"


@dataclass(frozen=True)
class Case:
    """A benchmark of an application; ``variant`` makes its command, which writes below a folder."""

    name: str
    size: Size
    variant: Callable[[Path], Variant]


@dataclass(frozen=True)
class Verdict:
    """How a case compares: medians of CPU seconds, and ratios to the base taken round by round."""

    case: str
    base_cpu_seconds: float
    now_cpu_seconds: float
    cpu: float
    again: tuple[float, float]
    wall: float

    @property
    def slower(self) -> bool:
        """Whether it became slower by more than is allowed, and by more than the base differs from itself."""
        return self.cpu > ALLOWED and self.cpu > max(self.again)


def cases(data: Path, *, threads: int, scale: float) -> Iterator[Case]:
    """Yield the cases, each with its input made, at a fraction of the recorded sizes."""
    yield from _taxi(data / "taxi", threads=threads, scale=scale)
    yield _components(data / "genomics", threads=threads, scale=scale)
    yield from _pagerank(data / "pagerank", threads=threads, scale=scale)
    yield from _recsys(data / "recsys", threads=threads, scale=scale)


def _taxi(data: Path, *, threads: int, scale: float) -> Iterator[Case]:
    months = simulated_months.prepare(
        data, months=12, rows=int(3_000_000 * scale), seed=2019, with_csv=False, processes=threads
    )
    size = Size(rows=months.rows, bytes=sum(file.stat().st_size for file in months.parquet), basis="file")
    yield Case("taxi A", size, lambda _: taxi.variant(TOOL, months.parquet, months, threads=threads))
    yield Case(
        "taxi B", size, lambda folder: taxi.variant(TOOL, months.parquet, months, threads=threads, output=folder)
    )


def _components(data: Path, *, threads: int, scale: float) -> Case:
    stored = simulated_store.prepare(
        data, samples=2_504, variants=int(200_000 * scale), seed=1, with_plink=False, threads=threads
    )
    exact = reference(stored.store, file=stored.store.with_name("reference.npz"), threads=threads)
    size = Size(rows=stored.samples * stored.variants, bytes=stored.file_bytes, basis="file")
    return Case("genomics PCA", size, lambda folder: genomics.variant(TOOL, stored, exact, folder, threads=threads))


def _pagerank(data: Path, *, threads: int, scale: float) -> Iterator[Case]:
    edges = rmat.prepare(data, scale=20, edges=int(16_000_000 * scale), seed=1)
    documents = corpus.prepare(data, documents=int(100_000 * scale), seed=1)
    yield Case(
        "pagerank rank",
        Size(rows=edges.edges, bytes=edges.file_bytes, basis="file"),
        lambda folder: pagerank.variant("rank", TOOL, edges.folder, folder, threads=threads),
    )
    yield Case(
        "pagerank index",
        Size(rows=documents.documents, bytes=documents.file_bytes, basis="file"),
        lambda folder: pagerank.variant("index", TOOL, documents.folder, folder, threads=threads),
    )


def _recsys(data: Path, *, threads: int, scale: float) -> Iterator[Case]:
    log = click_log.prepare(
        data, rows=int(2_000_000 * scale), largest_cardinality=int(1_000_000 * scale), seed=1, threads=threads
    )
    rows = feature_rows.prepare(data, log, threads=threads)
    yield Case(
        "recsys features",
        Size(rows=log.rows, bytes=log.file_bytes, basis="file"),
        lambda folder: recsys.features_variant_of(TOOL, log, folder, threads=threads),
    )
    yield Case(
        "recsys batches",
        Size(rows=rows.rows, bytes=rows.file_bytes, basis="file"),
        lambda _: recsys.load_variant_of(TOOL, rows, threads=threads),
    )


def build(commit: str, folder: Path) -> Path:
    """Return a folder with the repository as it was at a commit and an environment of its own lock, made once."""
    tree = folder / commit
    if not (tree / "Makefile").exists():
        staged = folder / f".{commit}"
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", commit], capture_output=True, check=False)
        if packed.returncode:
            sys.exit(
                f"git archive {commit}: {packed.stderr.decode().strip()}. The guard needs the history of the clone."
            )
        subprocess.run(["tar", "--extract", "--directory", str(staged)], input=packed.stdout, check=True)
        staged.rename(tree)
    subprocess.run(["make", "--directory", str(tree), ".venv/.bench"], check=True)
    return tree


def compare(case: Case, tree: Path, written: Path, *, plan: Plan) -> Report:
    """Measure a case now and at the base, which runs twice."""
    environment = {"PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTHONSAFEPATH": "1"}
    variants = [replace(case.variant(written / NOW), name=NOW)]
    for name in (BEFORE, AGAIN):
        made = case.variant(written / name.replace(" ", "-"))
        command = (str(tree / ".venv/bin/python"), *made.command[1:])
        variants.append(replace(made, name=name, command=command, environment={**made.environment, **environment}))
    written.mkdir(parents=True, exist_ok=True)
    try:
        return measure(case.name, variants, oracle=BEFORE, plan=plan, size=case.size, parameters={"base": BASE})
    finally:
        shutil.rmtree(written, ignore_errors=True)


def judge(report: Report) -> Verdict:
    """Return how a case compares.

    Raises
    ------
    MeasurementError
        If the answers differ.
    """
    for name, outcome in report.outcomes.items():
        if outcome.void:
            raise MeasurementError(f"{report.name}: {name} is void: {outcome.void}")
    now, before = (report.outcomes[name].summary["cpu_seconds"].median for name in (NOW, BEFORE))
    to_base, to_again = report.ratios[BEFORE], report.ratios[AGAIN]
    differs = sorted(_paired(report, AGAIN))
    # The median of now against all samples of the base, of which there are twice as many.
    cpu = (to_base["cpu_seconds"].median * to_again["cpu_seconds"].median) ** 0.5
    wall = (to_base["wall_seconds"].median * to_again["wall_seconds"].median) ** 0.5
    return Verdict(report.name, before, now, cpu, (differs[0], differs[-1]), wall)


def _paired(report: Report, name: str) -> Iterator[float]:
    """Yield the CPU time of a variant divided by the base's, round by round."""
    base = {sample.round: sample.cpu_seconds for sample in report.outcomes[BEFORE].samples}
    for sample in report.outcomes[name].samples:
        yield sample.cpu_seconds / base[sample.round]


def page(verdicts: Sequence[Verdict], *, commit: str) -> str:
    """Return the comparison as a page of Markdown."""
    rows = [
        f"| {each.case} | {each.base_cpu_seconds:.2f} | {each.now_cpu_seconds:.2f} | {each.cpu:.3f} "
        f"| {each.again[0]:.3f} - {each.again[1]:.3f} | {each.wall:.3f} | {'slower' if each.slower else 'as fast'} |"
        for each in verdicts
    ]
    return "\n".join(
        [
            f"Since {BASE}, now at {commit}. Ratios: now / base, round by round; the band: the base against itself.",
            "",
            "| case | base, CPU s | now, CPU s | CPU ratio | A/A band | wall ratio | verdict |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"All together: {total(verdicts):.3f} of the base's CPU time; allowed are {ALLOWED}.",
        ]
    )


def total(verdicts: Sequence[Verdict]) -> float:
    """Return the CPU time of all cases now, as a share of the base's."""
    return sum(each.now_cpu_seconds for each in verdicts) / sum(each.base_cpu_seconds for each in verdicts)


def _arguments() -> Any:
    parser = parser_of("guard", rounds=7)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the recorded sizes, to try the guard")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help='only these, such as "taxi B"; all, if not given')
    parser.set_defaults(seconds=100.0, data=Path("data/benchmarks"), results=Path("results/benchmarks/guard"))
    return parser.parse_args()


def main() -> int:
    """Compare all cases, write the page and a report of each, and return 1 if one or all together are slower."""
    arguments = _arguments()
    tree = build(BASE, arguments.data / "guard").resolve()
    plan = plan_of(arguments, tolerance=TOLERANCE)
    verdicts, commit = [], ""
    for case in cases(arguments.data, threads=arguments.threads, scale=arguments.scale):
        if arguments.cases and case.name not in arguments.cases:
            continue
        report = compare(case, tree, arguments.data / "guard/written", plan=plan)
        report.write(arguments.results / f"{case.name.replace(' ', '-')}.json")
        print(table(report), end="\n\n", flush=True)
        try:
            verdicts.append(judge(report))
        except MeasurementError as error:
            sys.exit(str(error))
        commit = report.revision.commit[:12] + (" with changes" if report.revision.changed else "")
    if not verdicts:
        sys.exit(f"There is no case {' or '.join(arguments.cases)}. See the first column of page.md for their names.")
    text = page(verdicts, commit=commit)
    (arguments.results / "page.md").write_text(text + "\n")
    print(text)
    return int(any(each.slower for each in verdicts) or total(verdicts) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
