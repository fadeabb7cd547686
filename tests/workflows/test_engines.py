"""The table of operations: its rows are the rules that have an engine, and its refusals are those of a run."""

import re
from itertools import product
from pathlib import Path

import pytest

from whitewater.application import applications, in_project
from whitewater.cli.config import ENGINES_PAGE, files
from whitewater.engines.config import choose_engine
from whitewater.errors import ConfigError

ROOT = Path(__file__).parents[2]
KNOWN = applications(in_project(ROOT))


@pytest.mark.parametrize("name", KNOWN)
def test_the_operations_of_an_application_are_its_rules_that_have_an_engine(name: str) -> None:
    rules = re.split(r"(?m)^rule (\w+):$", (ROOT / "workflows" / name / "Snakefile").read_text())[1:]
    with_engine = [rule for rule, body in zip(rules[::2], rules[1::2], strict=True) if "engine=engine," in body]
    assert sorted(KNOWN[name].operations) == sorted(with_engine)


@pytest.mark.parametrize(("engine", "device"), list(product(["local", "dask"], ["cpu", "gpu"])))
def test_each_engine_runs_on_a_device_or_is_refused_as_the_table_says(engine: str, device: str) -> None:
    config = {"engine": engine, "cluster": {"kind": "auto"}}
    if (engine, device) != ("local", "gpu"):
        assert choose_engine(config, device) == engine
        return
    with pytest.raises(ConfigError) as error:
        choose_engine(config, device)
    assert f"*{error.value}*" in files(KNOWN)[ENGINES_PAGE]
