"""The page that leads from nothing to a project of one's own is true: its commands run, in their order."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/new-project.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_commands_of_the_page_lead_to_a_project_of_ones_own(tmp_path: Path) -> None:
    assert len(COMMANDS) >= PAGE.count("\n## ") > 0
    # As in the environment of the checkout, but for what tests set; a project's own comes before it.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    passed_on = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHONPATH"))
    }
    ended = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", "\n".join(COMMANDS)], cwd=tmp_path, check=False, text=True,
        env={**passed_on, "PATH": path, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
             "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "Nothing to be done" in ended.stdout or "Nothing to do" in ended.stdout, ended.stdout
    results = tmp_path / "bikes/results/mine/bikes/cpu"
    assert json.loads((results / "quality.json").read_text())["totals"] == {
        "rows_in": 14 * 24 + 1, "rows_out": 14 * 24, "quarantined": 1
    }  # fmt: skip
    table = pd.read_parquet(results / "wind_by_hour.parquet")
    assert table["mean"].tolist() == [10 * hour + 7.5 for hour in range(24)]
    assert set(table["counter"]) == {"Bridge"}
