"""What can be checked of the recipes for containers without building them; test_container.py carries out the steps."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
RECIPE = (ROOT / "apptainer.def").read_text()
SENT = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
STAGES = dict(re.findall(r"(?ms)^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", DOCKERFILE))


def instructions(stage: str, instruction: str) -> list[str]:
    """Return the arguments of each instruction of one kind in a stage."""
    return re.findall(rf"(?m)^{instruction} (.*)$", STAGES[stage])


def test_has_a_target_for_each_device() -> None:
    assert {"cpu", "gpu"} <= STAGES.keys()


def test_every_base_image_is_pinned_to_a_full_version() -> None:
    bases = [base for base in re.findall(r"(?m)^FROM (\S+)", DOCKERFILE) if base not in STAGES]
    assert bases
    for base in bases:
        assert re.search(r":\d+\.\d+\.\d+[\w.-]*$", base), base


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_installs_the_lock_of_the_device_by_hash_and_the_checkout_without_dependencies(device: str) -> None:
    lock, checkout = (run for run in instructions(device, "RUN") if " install " in run)
    assert f"--requirement envs/{device}.lock" in lock
    assert "--require-hashes" in lock
    assert {"--offline", "--no-deps", "--no-build-isolation", "--editable"} <= set(checkout.split())


def test_installs_the_installer_by_hash() -> None:
    installs = [run for run in instructions("base", "RUN") if " install " in run]
    assert len(installs) == 1
    assert "--require-hashes --requirement envs/bootstrap.lock" in " ".join(installs[0].split())


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_runs_as_an_ordinary_user_in_the_folder_that_is_mounted(device: str) -> None:
    lines = STAGES[device].splitlines()
    assert lines.index("WORKDIR /work") < lines.index("USER 1000:1000")
    assert not [line for line in lines[lines.index("WORKDIR /work") :] if line.startswith(("COPY", "RUN"))]
    assert json.loads(instructions(device, "ENTRYPOINT")[0])[-1] == "/whitewater/Snakefile"


def test_copied_files_exist_and_reach_the_build() -> None:
    assert [name for name in SENT if not (ROOT / name).exists()] == []
    assert {"Snakefile", "benchmarks", "config", "envs", "profiles", "src", "workflows"} <= set(SENT)


def section(name: str) -> list[str]:
    """Return the lines of a section of Apptainer's recipe."""
    found = re.search(rf"(?ms)^%{name}\n(.*?)(?=^%|\Z)", RECIPE)
    assert found
    return [line.strip() for line in found[1].splitlines() if line.strip()]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_apptainer_takes_the_steps_of_the_dockerfile(device: str) -> None:
    assert re.findall(r"(?m)^From: (.*)$", RECIPE) == re.findall(r"(?m)^FROM (\S+) AS base$", DOCKERFILE)
    assert section("files") == [f"{name} /whitewater/{name}" for name in SENT]
    setting, folder, *steps = [line.replace("{{ device }}", device) for line in section("post")]
    assert setting.startswith("export VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH")
    assert [folder, *steps] == [
        "cd /whitewater",
        *(step for stage in ("base", device) for step in instructions(stage, "RUN") if " install " in step),
    ]
    assert section("runscript") == ['exec snakemake --snakefile /whitewater/Snakefile "$@"']


def test_the_editor_s_container_is_a_stage_and_sets_up_by_a_target_of_the_makefile() -> None:
    settings = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert settings["build"] == {"dockerfile": "../Dockerfile", "context": "..", "target": "dev"}
    assert settings["remoteUser"] in instructions("dev", "RUN")[0].split()
    target = settings["postCreateCommand"].removeprefix("make .venv")
    assert f"\n%{target}: " in (ROOT / "Makefile").read_text()
