"""Files of the configuration are read as Snakemake reads them, and what is wrong is told with its line."""

from pathlib import Path

import pytest

from whitewater.config_files import project_files, read_configuration, read_source
from whitewater.errors import ConfigError


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"device: \xff", r"own.yaml is not text in UTF-8"),
        (b"device: \x07", r"own.yaml is not text in UTF-8"),
        (
            b"device: cpu\ntaxi: {fetch: 3\nrun: a",
            r"own.yaml, line 3, column 4: .* ',' or '}' \(while parsing a flow mapping that begins in line 2\)",
        ),
        (b"taxi:\n\tfetch: 3\n", r"own.yaml, line 2, column 1: found character .* Indent with spaces"),
        (b"- cpu", r"own.yaml has no keys"),
        (b"taxi:\n  tips: {}\nrun: {}\ntaxi:\n  fetch: {}\n", r"own.yaml, line 4: 'taxi' is in line 1 already\."),
        (b"a: {\n  on: 1}", r"own.yaml, line 2: the key on means true or false in YAML\. Put it in quotes\."),
        (b"a: [{b: 1}, {b: 1, 'b': 2}]", r"own.yaml, line 1: 'b' is in line 1 already\."),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_bytes(data)
    with pytest.raises(ConfigError, match=f"^{told}"):
        read_source(Path("own.yaml"))


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match=r"none.yaml: No such file"):
        read_source(Path("none.yaml"))


@pytest.mark.parametrize(
    "text",
    ['{\n\t"device": "cpu"\n}', "device: cpu", "{device: cpu}", "<<: {device: gpu}\ndevice: cpu"],
)
def test_json_indented_with_tabs_is_read_as_yaml_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    assert read_source(file).values == {"device": "cpu"}


def test_files_in_the_folder_that_belong_to_no_application_are_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("refresh: true")
    (tmp_path / "config/mine.yaml").write_text("cluster: {kind: threads}")
    assert project_files(Path()) == [Path("config/config.yaml")]
    assert read_configuration(Path(), [])["cluster"]["kind"] == "auto"
    both = read_configuration(Path(), [Path("config/mine.yaml")])
    assert (both["refresh"], both["cluster"]["kind"]) == (True, "threads")
