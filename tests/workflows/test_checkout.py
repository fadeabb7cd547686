"""A workflow runs the packages of the checkout that it lies in, whichever others Python would find."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from whitewater.code_digest import code_digest

ROOT = Path(__file__).parents[2]
OWN_VERSION = "of the checkout that runs"
TINY = {"taxi": {"fetch": {"generated": {"scale": 0.001, "months": ["2019-03"], "services": ["yellow"]}}}}

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the repository, which is not the one that is installed, with a version of its own."""
    folder = tmp_path / "checkout"
    for name in ("src", "config", "envs", "workflows/taxi"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "workflows" / "common.smk", folder / "workflows")
    (folder / "src" / "whitewater" / "__init__.py").write_text(f'__version__ = "{OWN_VERSION}"\n')
    (folder / "tiny.yaml").write_text(json.dumps(TINY))
    return folder


@pytest.mark.parametrize("behind", [False, True], ids=["a decoy alone", "a decoy before the checkout"])
def test_steps_are_those_whose_digest_is_recorded(checkout: Path, tmp_path: Path, behind: bool) -> None:
    decoy = tmp_path / "decoy" / "whitewater"
    decoy.mkdir(parents=True)
    (decoy / "__init__.py").write_text("raise RuntimeError('another checkout was imported')\n")
    path = os.pathsep.join([str(decoy.parent), *([str(checkout / "src")] if behind else [])])
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--snakefile", "workflows/taxi/Snakefile"]
    subprocess.run(
        [*command, "--configfile", "tiny.yaml", "--", "data/taxi/inputs.json"],
        cwd=checkout, env={**os.environ, "PYTHONPATH": path}, check=True,
    )  # fmt: skip
    record = json.loads((checkout / "logs" / "taxi" / "fetch.json").read_text())
    assert record["versions"]["whitewater"] == OWN_VERSION
    digest = code_digest("whitewater_apps.taxi.steps.fetch", checkout / "src")
    recorded = [file.read_text() for file in (checkout / ".snakemake" / "metadata").rglob("*") if file.is_file()]
    assert any(digest in each for each in recorded)
