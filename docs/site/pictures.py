"""Write docs/pictures, small copies of pictures of the last run and a graph of the steps.

``python docs/site/pictures.py``, after ``make run``. The copies have 128 colors and 800 pixels a line, so that the
repository stays small.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
MADE = ROOT / "docs/pictures"
SHOWN = {
    "taxi": ("tip_fraction_by_weekday_hour", "tip_fraction_by_borough", "data_quality"),
    "genomics": ("pcs_1_2", "scree", "umap"),
    "pagerank": ("neighborhood", "ranks", "convergence"),
    "recsys": ("auc", "calibration", "categories"),
}
WIDTH, COLORS = 800, 128
NODE, EDGE = re.compile(r'(\d+)\[label = "(\w+)'), re.compile(r"(\d+) -> (\d+)")
LEFT_OUT = {"all", "manifest"}  # they follow from all others
COLUMN, LINE, BOX = 118, 34, (98, 22)


def shrink(application: str, name: str) -> None:
    """Write a small copy of a picture of the last run."""
    with Image.open(ROOT / f"results/{application}/cpu/plots/{name}.png") as picture:
        small = picture.convert("RGB").resize((WIDTH, picture.height * WIDTH // picture.width))
    small.quantize(COLORS).save(MADE / f"{application}-{name}.png", optimize=True)


def steps_of(application: str) -> dict[str, set[str]]:
    """Return the steps of an application, each with those that it follows on directly, as Snakemake has them."""
    command = ["snakemake", "--snakefile", f"workflows/{application}/Snakefile", "--rulegraph"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = dict(NODE.findall(said))
    before: dict[str, set[str]] = {name: set() for name in names.values() if name not in LEFT_OUT}
    for one, other in EDGE.findall(said):
        if names[other] in before:
            before[names[other]].add(names[one])
    # A step that another predecessor follows on needs no arrow of its own.
    return {
        name: found - {far for near in found for far in _all_before(near, before)} for name, found in before.items()
    }


def _all_before(step: str, before: dict[str, set[str]]) -> set[str]:
    return before[step].union(*(_all_before(each, before) for each in before[step]))


def graph() -> str:
    """Return the steps of all applications as SVG: a step stands right of those that it follows on."""
    lines, top = [], 10
    for application in SHOWN:
        before = steps_of(application)
        columns: dict[int, list[str]] = {}
        for step in before:
            columns.setdefault(_depth(step, before), []).append(step)
        at = {
            step: (100 + column * COLUMN, top + row * LINE)
            for column, steps in columns.items()
            for row, step in enumerate(sorted(steps, key=lambda step: (-_followers(step, before), step)))
        }
        lines.append(f'<text x="8" y="{top + 16}" font-weight="bold">{application}</text>')
        lines += [_arrow(at[earlier], at[step]) for step in before for earlier in sorted(before[step])]
        lines += [_box(step, *place) for step, place in at.items()]
        top = max(y for _, y in at.values()) + LINE + 18
    width = 110 + COLUMN * max(int(x) for x in re.findall(r'<rect x="(\d+)"', "".join(lines))) // COLUMN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>', *lines, "</svg>\n",
    ])  # fmt: skip


def _followers(step: str, before: dict[str, set[str]]) -> int:
    return sum(step in _all_before(each, before) for each in before)


def _depth(step: str, before: dict[str, set[str]]) -> int:
    return 1 + max((_depth(each, before) for each in before[step]), default=-1)


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x0, y0), (x1, y1) = start, end
    x0, y0, y1 = x0 + BOX[0], y0 + BOX[1] // 2, y1 + BOX[1] // 2
    bend = x1 - COLUMN + BOX[0]  # in the last gap, so that a long arrow passes below the steps between
    middle = (bend + x1) // 2
    return f'<path d="M{x0} {y0}H{bend}C{middle} {y0} {middle} {y1} {x1} {y1}" fill="none" stroke="#999"/>'


def _box(step: str, x: int, y: int) -> str:
    width, height = BOX
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="#E8F4F2" stroke="#009688"/>'
    return f'{shape}<text x="{x + width // 2}" y="{y + 15}" text-anchor="middle">{step}</text>'


if __name__ == "__main__":
    MADE.mkdir(exist_ok=True)
    (MADE / "steps.svg").write_text(graph())
    for of, pictures in SHOWN.items():
        for each in pictures:
            shrink(of, each)
