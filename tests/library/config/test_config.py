"""The configuration: defaults, coercion, and errors that say file, key, value and what was meant."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from whitewater.application import applications, in_project
from whitewater.cli import config as document
from whitewater.config import resolve as resolving
from whitewater.config.base import Section
from whitewater.config.resolve import Source, whole
from whitewater.engines.gpu_check import require_device
from whitewater.errors import ConfigError, DeviceError
from whitewater.tables.config import Range
from whitewater_apps.taxi.config import Clean

resolve = partial(resolving.resolve, names=in_project())
Config = whole(applications(in_project()).values())


def errors(raw: Mapping[str, object], *sources: Source) -> list[str]:
    with pytest.raises(ConfigError) as error:
        resolve(raw, sources=sources)
    return str(error.value).splitlines()


def test_an_empty_configuration_is_filled_with_defaults() -> None:
    config = resolve({})
    assert config["device"] == "cpu"
    assert config["taxi"]["fetch"]["source"] == "generated"


def test_an_engine_that_does_not_run_on_the_device_is_refused_with_the_file_that_asks_for_it() -> None:
    raw = {"engine": "local", "device": "gpu"}
    [told] = errors(raw, Source("mine.yaml", {"engine": "local"}), Source("--config", {"device": "gpu"}))
    assert told.startswith("mine.yaml: engine is 'local', which runs on the CPU only")


@pytest.mark.parametrize("name", [".", "..", "a/b", "two words", "taxi", "é"])
def test_a_name_of_a_run_that_cannot_be_a_folder_or_is_an_application_is_refused(name: str) -> None:
    [told] = errors({"run": {"name": name}}, Source("mine.yaml", {"run": {"name": name}}))
    assert told.startswith(f"mine.yaml: run.name = {name!r}: ")


@pytest.mark.parametrize("name", ["", "mine", "2019-03_b"])
def test_a_name_of_a_run_is_kept(name: str) -> None:
    assert resolve({"run": {"name": name}})["run"]["name"] == name


def test_resolving_twice_changes_nothing() -> None:
    once = resolve({"taxi": {"clean": {"ranges": {"fare_amount": {"below": 200}}}}})
    assert resolve(once) == once


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ({"devcie": "cpu"}, "device"),
        ({"taxi": {"fetch": {"sorce": "tlc"}}}, "source"),
        ({"taxi": {"clean": {"ranges": {"fare_amont": {"above": 0}}}}}, "fare_amount"),
        ({"taxi": {"clean": {"ranges": {"fare_amount": {"abov": 0}}}}}, "above"),
        ({"taxi": {"fetch": {"source": "generatd"}}}, "generated"),
    ],
)
def test_the_nearest_key_or_value_is_offered(raw: dict[str, object], meant: str) -> None:
    assert f"did you mean '{meant}'?" in errors(raw)[0]


def test_a_value_in_place_of_a_list_is_told_in_words_of_yaml() -> None:
    with pytest.raises(ConfigError, match=r"pagerank\.fetch\.edges\.files = 'a\.txt': input should be a valid list"):
        resolve({"pagerank": {"fetch": {"edges": {"files": "a.txt"}}}})


@pytest.mark.parametrize(("months", "said"), [(["2019-3"], "months.0 = '2019-3': "), ([], "months = []: ")])
def test_a_list_is_too_short_only_by_what_is_in_it(months: list[str], said: str) -> None:
    [line] = errors({"taxi": {"fetch": {"generated": {"months": months}}}})
    assert f"taxi.fetch.generated.{said}" in line


def test_a_range_can_be_switched_off() -> None:
    assert resolve({"taxi": {"clean": {"ranges": {"duration": None}}}})["taxi"]["clean"]["ranges"]["duration"] is None


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({"at_most": 7200}, {"above": 0, "at_most": 7200}),
        ({"below": 7200}, {"above": 0, "below": 7200}),
        ({"at_least": 60}, {"at_least": 60, "at_most": 21_600}),
        ({"at_most": None}, {"above": 0}),
        ({"above": None, "at_most": None}, {}),
        ({}, {"above": 0, "at_most": 21_600}),
    ],
)
def test_a_bound_is_merged_with_the_default_ones(given: dict[str, object], bounds: dict[str, float]) -> None:
    by_hand = Clean.model_validate_json(json.dumps({"ranges": {"duration": given}})).ranges.duration
    once = resolve({"taxi": {"clean": {"ranges": {"duration": given}}}})
    stated = {"above": 0, "at_least": None, "below": None, "at_most": 21_600}  # as Snakemake merges config/taxi.yaml
    assert (
        by_hand
        == Clean.model_validate({"ranges": {"duration": {**stated, **given}}}).ranges.duration
        == Range(**bounds)
    )
    assert once["taxi"]["clean"]["ranges"]["duration"] == Range(**bounds).model_dump()
    assert resolve(once) == once


@pytest.mark.parametrize(
    "wrong",
    [
        {"above": 5, "at_most": 1},
        {"above": 5, "at_most": 5},
        {"at_least": 5, "below": 5},
        {"at_least": 6, "at_most": 5},
        {"at_least": 20_000, "above": 1},
        {"at_most": 5, "below": 5},
        {"at_least": 30_000},
        {"above": float("nan")},
        {"at_most": float("inf")},
    ],
)
def test_bounds_that_nothing_passes_or_that_say_two_things_are_refused(wrong: dict[str, float]) -> None:
    (told,) = errors({"taxi": {"clean": {"ranges": {"duration": wrong}}}})
    assert "taxi.clean.ranges.duration" in told


def test_bounds_may_meet_where_both_include_the_value() -> None:
    assert Range(at_least=5, at_most=5).at_most == 5


def every_mapping(section: type[Section], *path: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the path and the default of each key that takes a section or a mapping."""
    for name, field in section.model_fields.items():
        default = field.default
        if isinstance(default, Section) and type(default).model_fields:
            yield (*path, name), default.model_dump(mode="json")
            yield from every_mapping(type(default), *path, name)
        elif isinstance(default, Mapping) and default:
            yield (*path, name), dict(default)


def test_a_part_of_any_mapping_is_merged_with_its_default() -> None:
    mappings = list(every_mapping(Config))
    assert {".".join(path) for path, _ in mappings} >= {
        "taxi.clean.ranges.duration", "genomics.simulate.samples_by_population", "benchmarks.svd_zarr"
    }  # fmt: skip
    for path, default in mappings:
        key, value = next(iter(default.items()))
        given: Any = {key: value}
        for each in reversed(path):
            given = {each: given}
        found = resolve(given)
        for each in path:
            found = found[each]
        assert found == default, path


def test_a_section_made_in_python_is_refused_with_all_its_errors_and_what_was_meant() -> None:
    with pytest.raises(ConfigError) as error:
        Clean(minimum_month_shar=0.5, ranges={"fare_amont": {"above": 0}, "speed": {"above": "fast"}})  # type: ignore[call-arg]
    told = set(str(error.value).splitlines())
    assert told == {
        "Clean: minimum_month_shar = 0.5: no such key; did you mean 'minimum_month_share'?",
        "Clean: ranges.fare_amont = {'above': 0}: no such key; did you mean 'fare_amount'?",
        "Clean: ranges.speed.above = 'fast': input should be a valid number, unable to parse string as a number",
    }


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"taxi": {"fetch": {"source": "files"}}}, "files.paths is empty"),
        ({"pagerank": {"simulate": {"links": 0.5}}}, "set 0, or 1 or more"),
        ({"recsys": {"split": {"valid_share": 0.5, "test_share": 0.5}}}, "their sum must be below 1"),
    ],
)
def test_what_cannot_be_met_is_refused_before_any_step(section: dict[str, object], said: str) -> None:
    (told,) = errors(section)
    assert said in told


def test_a_value_in_place_of_a_section_is_told_the_keys() -> None:
    (told,) = errors({"run": "mine"})
    assert told.endswith("run = 'mine': it is a section, with the keys name")


def test_a_gpu_that_is_absent_is_refused_with_what_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(DeviceError, match=r"libcuda\.so\.1.*driver is not installed.*device=cpu"):
        require_device("gpu")
    require_device("cpu")
    assert resolve({"device": "auto"})["device"] == "cpu"


@pytest.mark.usefixtures("tiny")
def test_files_are_written_and_told_apart_from_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workflows/tiny").mkdir(parents=True)
    (tmp_path / "workflows/tiny/Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    for status, told, arguments in ((1, "is out of date: run whitewater config", ["--check"]), (0, "written", [])):
        assert document.main(arguments) == status
        said = capsys.readouterr()
        assert (said.out, f"config/tiny.yaml {told}" in said.err) == ("", True)
    assert document.main(["--check"]) == 0


def test_files_schema_and_page_are_those_of_the_models() -> None:
    for path, text in document.files(applications(in_project())).items():
        assert path.read_text() == text, "run whitewater config"
