"""Names of projects: which are refused, and what is renamed in the text of an application."""

import re
import subprocess
from pathlib import Path

import pytest

from whitewater.application import applications
from whitewater.cli.main import COMMANDS
from whitewater.errors import ConfigError
from whitewater.template.names import Renaming, check_free, check_name, class_name
from whitewater.template.render import Project, pyproject, render_application, tidy
from whitewater.template.source import files_below


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my-bikes", "lower-case letters"),
        ("2bikes", "lower-case letters"),
        ("Bikes", "lower-case letters"),
        ("bikes_", "lower-case letters"),
        ("fahrräder", "lower-case letters"),
        ("bikes" * 5, "at most 20 lower-case letters"),
        ("", "lower-case letters"),
        ("import", "keyword"),
        ("match", "keyword"),
        ("doctor", "command of whitewater"),
        ("device", "key of its configuration"),
        ("all", "name in it"),
    ],
)
def test_a_name_that_cannot_be_a_package_a_key_and_a_rule_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_name(name, commands=COMMANDS)


@pytest.mark.parametrize(
    ("name", "package", "why"),
    [("taxi", "mine", "application 'taxi'"), ("json", "json", "module 'json'"), ("mine", "numpy", "module 'numpy'")],
)
def test_a_name_that_is_taken_is_refused(name: str, package: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_free(name, package)


@pytest.mark.parametrize("name", ["b", "x9", "trips", "taxi2", "my_bike_trips_2025"])
def test_odd_names_are_fine(name: str) -> None:
    check_name(name, commands=COMMANDS)
    check_free(name, name)


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("whitewater_apps.taxi.config", "bike_share.config"),
        ("src/whitewater_apps/taxi/steps/tips.py", "src/bike_share/steps/tips.py"),
        ('lookup("taxi/fetch", within=config)', 'lookup("bikes/fetch", within=config)'),
        ('"<results>/taxi/{device}/tips.json"', '"<results>/bikes/{device}/tips.json"'),
        ('"../../envs/taxi-{device}.yaml"', '"../../envs/bikes-{device}.yaml"'),
        ("envs/taxi-cpu.yaml, config/taxi.yaml", "envs/bikes-cpu.yaml, config/bikes.yaml"),
        ("taxi:\n  fetch: {}\n", "bikes:\n  fetch: {}\n"),
        ("Check taxi.fetch.files.zones.", "Check bikes.fetch.files.zones."),
        ("rule taxi_clean", "rule bikes_clean"),
        ("whitewater taxi clean --help", "whitewater bikes clean --help"),
        ("snakemake --cores all taxi", "snakemake --cores all bikes"),
        ('category="Taxi"', 'category="Bikes"'),
        ("tests.apps.taxi.pipeline", "tests.apps.bikes.pipeline"),
        # Words of the domain, names of columns and files, and addresses stay.
        (
            "every taxi trip of the Taxi and Limousine Commission",
            "every taxi trip of the Taxi and Limousine Commission",
        ),
        ('"airport_taxi": 1.25, "taxi zone"', '"airport_taxi": 1.25, "taxi zone"'),
        ("misc/taxi_zone_lookup.csv", "misc/taxi_zone_lookup.csv"),
        ("https://example.org/taxi/taxi.yaml", "https://example.org/taxi/taxi.yaml"),
    ],
)
def test_identifiers_paths_and_keys_are_renamed_and_words_stay(text: str, renamed: str) -> None:
    assert Renaming(applications(["taxi"])["taxi"], "bikes", "bike_share").text(text) == renamed


@pytest.mark.parametrize(("name", "model"), [("bike_trips", "BikeTrips"), ("b", "BModel"), ("a1", "A1Model")])
def test_a_model_has_another_name_than_the_constant_of_its_application(name: str, model: str) -> None:
    assert class_name(name) == model != name.upper()


def test_in_code_the_model_and_the_declared_application_are_renamed_and_strings_are_text() -> None:
    source = 'def check(settings: Taxi, of: str = "Taxi") -> str:\n    """Taxi is a word."""\n    return TAXI.name\n'
    assert Renaming(applications(["taxi"])["taxi"], "bike_share", "bikes").python(source) == (
        'def check(settings: BikeShare, of: str = "Taxi") -> str:\n'
        '    """Taxi is a word."""\n    return BIKE_SHARE.name\n'
    )


# What stays of each application's name in a project: words of the domain, and names of the library and of others.
STAYS = {
    "genomics": r"(?!)",
    "minimal": r"\bminimal(?=[,.])|(?<=\()minimal",
    "pagerank": r"graphs\.pagerank|nx\.pagerank|_pagerank_|with pagerank",
    "recsys": r"(?!)",
    "taxi": r"(?:airport|cbd|raw)_taxi|\btaxis|taxi[ _](?:zones?|trips)|\bno taxi\b|\btaxi(?= =|,)",
}


@pytest.mark.slow
@pytest.mark.parametrize("template", STAYS)
@pytest.mark.parametrize("name", ["z", "an_odd_name_of_2025z"])
def test_a_rendered_application_is_formatted_and_keeps_no_more_of_the_old_name_than_words(
    template: str, name: str, tmp_path: Path
) -> None:
    render_application(project := Project(name, name, template), tmp_path)
    (tmp_path / "pyproject.toml").write_text(pyproject(project))
    tidy(tmp_path)
    for command in (["ruff", "check", "--no-cache"], ["snakefmt", "--check", "workflows"]):
        ended = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    for path in (path for path in files_below(tmp_path) if path.suffix in {".py", ".smk", ".yaml", ".rst"}):
        left = re.sub(rf"{STAYS[template]}|https?://\S+", "", path.read_text())
        assert re.findall(rf".*{template}.*", left) == [], path
