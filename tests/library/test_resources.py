"""What a job asks for by what it reads: files, folders, and what a list of the source's files says."""

import json
from pathlib import Path

import pytest
from snakemake.iocontainers import InputFiles

from whitewater.workflow import by_input, cores_by_input


def given(*paths: Path, **named: Path) -> InputFiles:
    """Return paths as a rule's functions get them."""
    files = InputFiles(map(str, paths))
    for name, path in named.items():
        files.append(str(path))
        files._set_name(name, len(files) - 1)
    return files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """3 MB in a folder and a folder in it."""
    (tmp_path / "part" / "deeper").mkdir(parents=True)
    (tmp_path / "part" / "a").write_bytes(bytes(1_000_000))
    (tmp_path / "part" / "deeper" / "b").write_bytes(bytes(2_000_000))
    return tmp_path / "part"


def test_memory_grows_with_the_input_the_cores_and_the_attempt(folder: Path) -> None:
    memory = by_input(100, per_core=10, per_gb=1000)
    read = given(folder, folder / "a")
    assert memory({}, read, 1, 1) == 100 + 10 + 4
    assert memory({}, read, 3, 1) == 100 + 30 + 4
    assert memory({}, read, 3, 2) == 2 * memory({}, read, 3, 1)


def test_files_that_a_list_of_inputs_names_count_by_their_size_there(folder: Path) -> None:
    listed = folder / "inputs.json"
    listed.write_text(json.dumps({"files": [{"bytes": 5_000_000_000}, {"path": "of unknown size"}]}))
    assert by_input(0, per_gb=1)({}, given(inputs=listed), 1, 1) == 6
    assert by_input(0, per_gb=1)({}, given(listed), 1, 1) == 1
    listed.write_text("damaged, which the step that reads it tells")
    assert by_input(0, per_gb=1)({}, given(inputs=listed), 1, 1) == 1


def test_an_input_that_is_not_there_yet_is_named_as_snakemake_knows_it(tmp_path: Path) -> None:
    read = given(tmp_path / "later")
    with pytest.raises(FileNotFoundError) as raised:
        by_input(1, per_gb=1)({}, read, 1, 1)
    assert raised.value.filename in read
    assert by_input(1)({}, read, 1, 1) == 1


def test_little_input_takes_one_core_and_no_input_takes_all(folder: Path, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as sparse:
        sparse.truncate(100_000_000)
    assert cores_by_input(given(folder), most=8) == 1
    assert cores_by_input(given(folder, tmp_path / "large"), most=8) == 4
    assert cores_by_input(given(folder, tmp_path / "large"), most=2) == 2
    assert cores_by_input(given(tmp_path / "later"), most=8) == 8
    assert cores_by_input(given(), most=8) == 8
