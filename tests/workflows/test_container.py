"""The steps of the Dockerfile, carried out in a root that debootstrap makes, and a run there by an unknown user."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.guarantees.running import TINY

ROOT = Path(__file__).parents[2]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
STRANGER = 12345, 23456  # a user and a group that the image does not know

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@dataclass
class Image:
    """A root folder, and what instructions of a Dockerfile have set for its commands."""

    root: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    )
    folder: str = "/"
    user: str = "0:0"
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()

    def build(self, dockerfile: str, target: str) -> None:
        """Carry out the instructions of a stage, after those of the stage that it starts from."""
        stages = dict(re.findall(r"(?ms)^FROM (\S+ AS \w+)\n(.*?)(?=^FROM |\Z)", dockerfile.replace("\\\n", " ")))
        start, body = next((head.split()[0], body) for head, body in stages.items() if head.endswith(f" {target}"))
        if any(head.endswith(f" {start}") for head in stages):
            self.build(dockerfile, start)
        for line in body.splitlines():
            if line and not line.startswith("#"):
                self.carry_out(*line.split(maxsplit=1))

    def carry_out(self, instruction: str, rest: str) -> None:
        """Carry out one instruction."""
        if instruction == "ENV":
            for name, value in (each.split("=", 1) for each in shlex.split(rest)):
                self.environment[name] = value.replace("$PATH", self.environment["PATH"])
        elif instruction == "WORKDIR":
            self.folder = rest
            self.at(rest).mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            source, target = rest.split()
            copy_context(source, self.at(self.folder) / target)
        elif instruction == "RUN":
            self.run(["sh", "-c", rest])
        elif instruction == "USER":
            self.user = rest
        else:
            setattr(self, {"ENTRYPOINT": "entrypoint", "CMD": "command"}[instruction], json.loads(rest))

    def at(self, path: str) -> Path:
        """Return a path of the image, as it is from outside."""
        return self.root / path.lstrip("/")

    def run(self, command: Sequence[str], *, volume: Path | None = None, user: str | None = None) -> str:
        """Run a command, with a folder mounted at /work where one is given, and return what it said."""
        mounts = [f"mount -t proc proc {self.root}/proc", f"mount --rbind /dev {self.root}/dev"]
        mounts += [f"mount --bind {volume} {self.root}/work"] if volume else []
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        inside = f"cd {self.folder} && exec {shlex.join(command)}"
        chroot = [
            "chroot",
            f"--userspec={user or self.user}",
            str(self.root),
            "env",
            "-i",
            *environment,
            "sh",
            "-c",
            inside,
        ]
        # The mounts are gone with the command.
        ended = subprocess.run(
            ["unshare", "--mount", "sh", "-c", " && ".join([*mounts, f"exec {shlex.join(chroot)}"])],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout[-3000:]
        return ended.stdout


def copy_context(source: str, target: Path) -> None:
    """Copy what Docker would: a file, or all that .dockerignore lets through."""
    if source != ".":
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, target)
        return
    everything, *lines, caches = (ROOT / ".dockerignore").read_text().splitlines()
    assert (everything, caches) == ("*", "**/__pycache__")
    for name in (line.removeprefix("!") for line in lines):
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
            )
        else:
            shutil.copy(ROOT / name, target)


@pytest.fixture
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.geteuid() != 0:
        pytest.skip("only root may make a Debian root")
    if not shutil.which("debootstrap"):
        pytest.skip("debootstrap is not installed")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    root = tmp_path_factory.mktemp("image") / "root"
    debootstrap = ["debootstrap", "--variant=minbase", "--include=ca-certificates,python3-venv", "bookworm", str(root)]
    made = subprocess.run(["unshare", "--mount", *debootstrap], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"debootstrap: {made.stdout[-300:]}")
    # As on this machine: how names are resolved, and whom it trusts.
    for file in (Path("/etc/resolv.conf"), CERTIFICATES):
        shutil.copy(file, root / file.relative_to("/"))
    image = Image(root)
    image.build((ROOT / "Dockerfile").read_text(), "cpu")
    yield image
    shutil.rmtree(root)  # 1.8 GB


def files_of(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in folder.rglob("*") if path.is_file()}


def test_a_stranger_runs_all_applications_in_a_folder_that_stays_hers(image: Image, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(json.dumps(TINY))
    os.chown(tmp_path, *STRANGER)
    code = files_of(image.at("/whitewater"))
    user = "{}:{}".format(*STRANGER)
    image.run([*image.entrypoint, *image.command, "--configfile", "tiny.yaml"], volume=tmp_path, user=user)
    for application in TINY:
        assert (tmp_path / "results" / application / "cpu" / "manifest.json").exists()
    made = [path for path in tmp_path.rglob("*") if path.name != "tiny.yaml"]
    assert {(each.lstat().st_uid, each.lstat().st_gid) for each in made} == {STRANGER}
    assert {path.name for path in tmp_path.iterdir()} == {".snakemake", "data", "logs", "results", "tiny.yaml"}
    assert files_of(image.at("/whitewater")) == code
