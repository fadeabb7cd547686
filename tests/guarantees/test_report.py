"""The report says what ran, whatever the configuration says when the report is made."""

import json
import sys
from pathlib import Path

from tests.guarantees.running import Clone


def test_the_cover_names_all_that_ran_and_captions_give_the_settings_of_the_run(
    finished: Clone, tmp_path: Path
) -> None:
    other, page = tmp_path / "other.json", tmp_path / "report.html"
    other.write_text(json.dumps({"taxi": {"fetch": {"source": "tlc"}, "model": {"test_fraction": 0.4}}}))
    ended = finished.start(
        sys.executable, "-m", "snakemake", "--configfile", str(other), "--report", str(page)
    ).ended()  # fmt: skip
    assert ended.status == 0, ended.terminal
    text = " ".join(page.read_text().replace("\\n", " ").split())
    assert "What ran</h1>" in text
    for name in ("Taxi", "Genomics", "PageRank", "Recsys"):
        assert f"<strong>{name}</strong> (source: generated): " in text
    assert "20 % of the trips" in text
    assert "40 % of the trips" not in text
