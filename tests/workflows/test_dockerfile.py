"""What can be checked of the Dockerfile without building it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
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
def test_runs_as_an_ordinary_user(device: str) -> None:
    lines = STAGES[device].splitlines()
    user = max(number for number, line in enumerate(lines) if line.startswith("USER "))
    assert lines[user] == "USER whitewater"
    assert user < next(number for number, line in enumerate(lines) if line.startswith("ENTRYPOINT"))


def test_copied_files_exist_and_reach_the_build() -> None:
    sent = [
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    missing = [pattern for pattern in sent if not list(ROOT.glob(pattern))]
    assert not missing
    assert {"Snakefile", "benchmarks", "config", "envs", "profiles", "src", "workflows"} <= set(sent)
