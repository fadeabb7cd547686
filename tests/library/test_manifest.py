"""Records of steps and the manifest that gathers them: of another format, each is refused with the remedy."""

import json
from pathlib import Path

import pytest

from whitewater.engines import resolve
from whitewater.errors import InputError
from whitewater.manifest import FORMAT, Configured, is_of_last_run, manifest, read_manifest
from whitewater.step import Inputs, Output, Run

REFUSALS = [
    (None, rf"has format None; this version reads {FORMAT}\. Run snakemake again\."),
    (FORMAT - 1, rf"has format {FORMAT - 1}; this version reads {FORMAT}\. Run snakemake again\."),
    (FORMAT + 1, rf"has format {FORMAT + 1}; this version reads {FORMAT}\. A newer version of Whitewater wrote it"),
]


@pytest.mark.parametrize(("version", "message"), REFUSALS)
def test_a_record_of_another_format_is_not_gathered(tmp_path: Path, version: int | None, message: str) -> None:
    (tmp_path / "clean.json").write_text(json.dumps({"format": version, "step": "clean", "outputs": {}}))
    records = Inputs({"clean": tmp_path / "clean.json"})
    run = Run("tiny", "manifest", resolve("cpu"), Configured())
    with pytest.raises(InputError, match=message):
        manifest(run, records=records, inputs=tmp_path / "inputs.json", manifest=Output(tmp_path / "manifest.json"))


@pytest.mark.parametrize(("version", "message"), REFUSALS)
def test_a_manifest_of_another_format_is_refused(tmp_path: Path, version: int | None, message: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": version, "outputs": []}))
    for read in (read_manifest, lambda path: is_of_last_run(path.with_name("index"))):
        with pytest.raises(InputError, match=message):
            read(tmp_path / "manifest.json")
