"""The configuration: defaults, coercion, and errors that say file, key, value and what was meant."""

from collections.abc import Mapping

import pytest

from whitewater.config import document
from whitewater.config.gpu import require_device
from whitewater.config.resolve import Source, resolve
from whitewater.errors import ConfigError, DeviceError


def errors(raw: Mapping[str, object], *sources: Source) -> list[str]:
    with pytest.raises(ConfigError) as error:
        resolve(raw, sources=sources)
    return str(error.value).splitlines()


def test_an_empty_configuration_is_filled_with_defaults() -> None:
    config = resolve({})
    assert config["device"] == "cpu"
    assert config["taxi"]["fetch"]["source"] == "generated"


def test_resolving_twice_changes_nothing() -> None:
    once = resolve({"taxi": {"clean": {"ranges": {"fare_amount": {"below": 200}}}}})
    assert resolve(once) == once


def test_strings_of_the_command_line_become_numbers() -> None:
    config = resolve({"taxi": {"fetch": {"generated": {"scale": "0.5"}}}})
    assert config["taxi"]["fetch"]["generated"]["scale"] == 0.5


def test_all_errors_are_reported_at_once_each_with_its_source() -> None:
    file = {"device": "gpuu", "taxi": {"clean": {"rangs": {}}}}
    line = {"taxi": {"model": {"folds": "five"}}}
    raw = {"device": "gpuu", "taxi": {"clean": {"rangs": {}}, "model": {"folds": "five"}}}
    found = errors(raw, Source("my.yaml", file), Source("--config", line))
    assert len(found) == 3
    assert "my.yaml: device = 'gpuu'" in "\n".join(found)
    assert any(each.startswith("--config: taxi.model.folds = 'five'") for each in found)
    assert any(each.startswith("my.yaml: taxi.clean.rangs") for each in found)


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


def test_a_range_can_be_switched_off() -> None:
    assert resolve({"taxi": {"clean": {"ranges": {"duration": None}}}})["taxi"]["clean"]["ranges"]["duration"] is None


def test_files_without_paths_are_refused() -> None:
    assert "files.paths is empty" in errors({"taxi": {"fetch": {"source": "files"}}})[0]


def test_a_map_of_more_components_than_are_computed_is_refused() -> None:
    (told,) = errors({"genomics": {"pca": {"components": 5}, "umap": {"components": 10}}})
    assert "umap.components is 10, but pca.components is 5" in told
    assert resolve({"genomics": {"pca": {"components": 5}, "umap": {"components": 5}}})


def test_a_gpu_that_is_absent_is_refused_with_what_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(DeviceError, match=r"libcuda\.so\.1.*driver is not installed.*device=cpu"):
        require_device("gpu")
    require_device("cpu")
    assert resolve({"device": "auto"})["device"] == "cpu"


def test_schema_and_page_are_those_of_the_models() -> None:
    assert document.SCHEMA.read_text() == document.schema(), "run python -m whitewater config"
    assert document.PAGE.read_text() == document.page(), "run python -m whitewater config"
