"""Each line of the doctor is something that was tried, so these tests break the thing itself."""

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from distributed import Security

from tests.library.tiny_application import TINY
from whitewater.cli import doctor
from whitewater.config.resolve import resolve
from whitewater.engines import memory
from whitewater.engines.config import Cluster
from whitewater.engines.gpu_check import missing_gpu

ROOT = Path(__file__).parents[3]


def write_lock(folder: Path, *lines: str) -> Path:
    lock = folder / "cpu.lock"
    lock.write_text("# a comment\n" + "".join(f"{line} \\\n    --hash=sha256:{'0' * 64}\n" for line in lines))
    return lock


def test_every_check_of_the_default_configuration_passes_here() -> None:
    checks = doctor.run(resolve({}, []), root=ROOT)
    assert {check.name: check.status for check in checks if check.status in {"fail", "warn"}} == {}


NUMPY, OTHER = f"numpy=={numpy.__version__}", "win32" if sys.platform != "win32" else "linux"


@pytest.mark.parametrize(
    ("locked", "declared", "status", "found"),
    [
        ([NUMPY], "numpy", "ok", ""),
        (["numpy==1.2.3"], "numpy", "warn", f"numpy==1.2.3 ({numpy.__version__})"),
        (["no-such-package==1.0"], "no-such-package==1.*", "fail", "no-such-package==1.0 (missing)"),
        ([NUMPY, "no-such-package==1.0"], "numpy", "warn", "no-such-package"),
        ([NUMPY, f"no-such-package==1.0 ; sys_platform == '{OTHER}'"], "numpy", "ok", ""),
    ],
    ids=["as locked", "another version", "declared and missing", "missing for others", "another platform"],
)
def test_packages_are_compared_with_the_lock(  # noqa: PLR0917, fixtures and what a case has
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: list[str], declared: str, status: str, found: str
) -> None:
    monkeypatch.setattr("whitewater.cli.doctor.metadata.requires", lambda name: [declared])
    check = doctor.check_packages(write_lock(tmp_path, *locked))
    assert check.status == status
    assert found in check.found
    assert status == "ok" or "cpu.lock" in check.fix


@pytest.mark.parametrize(("granted", "status"), [(4, "ok"), (1, "warn")])
def test_cores_know_the_quota(monkeypatch: pytest.MonkeyPatch, granted: int, status: str) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr("dask.system.cpu_count", lambda: granted)
    assert doctor.check_cores().status == status


def test_control_group_with_little_memory_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup").write_text("0::/job\n")
    (tmp_path / "memory.max").write_text("500000000\n")
    monkeypatch.setattr(memory, "PROCESS", tmp_path)
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    check = doctor.check_memory()
    assert (check.status, check.found) == ("fail", "0.5 GB available")


def test_disk_with_too_little_space_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_DISK", 1 << 62)
    assert doctor.check_disk(tmp_path).status == "fail"


def test_write_access_leaves_nothing_behind(tmp_path: Path) -> None:
    assert doctor.check_write_access(tmp_path / "results").status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_file_in_the_place_of_a_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    check = doctor.check_write_access(tmp_path / "results")
    assert check.status == "fail"
    assert "Not a directory" in check.found


def test_folder_that_nobody_can_write_to_fails() -> None:
    check = doctor.check_write_access(Path("/proc/results"))
    assert check.status == "fail"


@pytest.mark.skipif(missing_gpu() is None, reason="this machine has a GPU")
def test_absent_gpu_fails_only_where_it_is_needed() -> None:
    assert doctor.check_gpu(needed=True).status == "fail"
    assert doctor.check_gpu(needed=False).status == "skip"


def test_threads_need_no_port() -> None:
    assert doctor.check_scheduler(Cluster(kind="threads"), "local").status == "skip"
    assert doctor.check_scheduler(Cluster(kind="threads", performance_report=True), "local").status == "ok"
    assert doctor.check_scheduler(Cluster(kind="threads"), "dask").status == "ok"


def test_an_engine_that_does_not_run_on_the_device_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("{engine: local, device: gpu}")
    assert doctor.main(["--configfile", "mine.yaml"]) == 1
    assert "mine.yaml: engine is 'local', which runs on the CPU only" in capsys.readouterr().out


def test_scheduler_to_attach_to_that_does_not_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater.engines.cluster.CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    check = doctor.check_scheduler(Cluster(kind="attach", address=f"tcp://127.0.0.1:{port}"), "dask")
    assert check.status == "fail"
    assert str(port) in check.found


def test_scheduler_to_attach_to_that_answers_passes() -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as here:
        check = doctor.check_scheduler(Cluster(kind="attach", address=here.scheduler_address), "dask")
    assert check.status == "ok"
    assert "workers: 1" in check.found


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A cluster's certificate, which is its own authority, and its key; and another key."""
    folder = tmp_path_factory.mktemp("certificates")
    for number in (1, 2):
        made = Security.temporary()
        (folder / f"cert{number}.pem").write_text(made.tls_ca_file)
        (folder / f"key{number}.pem").write_text(made.tls_client_key)
    (folder / "text.pem").write_text("no certificate")
    return {path.stem: str(path) for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("cert", "key", "status", "found"),
    [
        ("cert1", "key1", "ok", "cert1.pem"),
        ("cert1", "key2", "fail", "MISMATCH"),
        ("text", "key1", "fail", "not the certificates"),
        ("cert1", "absent", "fail", "cluster.tls_key, ./absent.pem: No such file"),
        ("folder", "key1", "fail", "cluster.tls_cert, .: Is a directory"),
    ],
)
def test_files_of_tls_are_read(certificates: dict[str, str], cert: str, key: str, status: str, found: str) -> None:
    files = certificates | {"absent": "./absent.pem", "folder": "."}
    check = doctor.check_tls({"tls_ca_file": files["cert1"], "tls_cert": files[cert], "tls_key": files[key]})
    assert (check.status, found in check.found) == (status, True), check.found
    assert status == "ok" or "docs/clusters.md" in check.fix


def test_json_is_a_list_of_checks_and_the_status_counts_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").write_text("in the way")
    assert doctor.main(["--json"]) == 1
    checks = json.loads(capsys.readouterr().out)
    assert all(check.keys() == {"name", "status", "found", "fix"} for check in checks)
    assert [check["name"] for check in checks if check["status"] == "fail"] == ["write access to results/"]


@pytest.mark.parametrize(
    ("declared", "status", "found"),
    [
        (["numpy>=1"], "ok", ""),
        (["numpy>=1", 'no-such-package>=1; extra == "dev"'], "ok", ""),
        (["no-such-package>=1"], "fail", "no-such-package>=1 (missing)"),
        (["no-such-package"], "fail", "no-such-package (missing)"),
        (['no-such-package>=1; extra == "taxi"'], "warn", "no-such-package>=1 (missing)"),
        (['numpy>=99; extra == "taxi"'], "warn", f"numpy>=99 ({numpy.__version__})"),
    ],
)
def test_without_a_lock_packages_are_compared_with_what_is_declared(
    monkeypatch: pytest.MonkeyPatch, declared: list[str], status: str, found: str
) -> None:
    monkeypatch.setattr("whitewater.cli.doctor.metadata.requires", lambda name: declared)
    check = doctor.check_packages(Path("no.lock"))
    assert (check.status, check.fix == "") == (status, status == "ok")
    assert found in check.found


def test_every_failed_line_is_printed_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").write_text("in the way")
    assert doctor.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    failed = [number for number, line in enumerate(lines) if line.startswith("fail")]
    assert failed
    assert all(lines[number + 1].strip().startswith("fix: ") for number in failed)


def test_configuration_with_an_unknown_key_is_one_failed_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("devcie: cpu\n")
    monkeypatch.chdir(tmp_path)
    assert doctor.main(["--json"]) == 1
    (check,) = json.loads(capsys.readouterr().out)
    assert "config.yaml: devcie" in check["found"]
    assert "did you mean 'device'?" in check["found"]


def test_own_configuration_file_goes_over_those_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("cluster: {kind: threads, performance_report: true}\n")
    (tmp_path / "own.yaml").write_text("cluster: {performance_report: false}\n")
    monkeypatch.chdir(tmp_path)
    doctor.main(["--json", "--configfile", "own.yaml"])
    assert "not needed for cluster.kind=threads" in capsys.readouterr().out


def test_a_configuration_file_that_cannot_be_read_is_one_failed_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.yaml").write_text("taxi:\n\tfetch: 3\n")
    monkeypatch.chdir(tmp_path)
    assert doctor.main(["--json", "--configfile", "own.yaml"]) == 1
    (check,) = json.loads(capsys.readouterr().out)
    assert check["found"].startswith("own.yaml, line 2, column 1: found character")


def test_an_application_of_which_a_package_is_missing_fails_with_what_installs_it(tmp_path: Path) -> None:
    check = doctor.check_sources(replace(TINY, check="no_such_package.check:check"), {}, downloads=tmp_path)
    assert (check.status, check.found) == ("fail", "No module named 'no_such_package'")
    assert "pip install 'whitewater[tiny]'" in check.fix


@pytest.mark.gpu
@pytest.mark.skipif(missing_gpu() is not None, reason=f"no GPU: {missing_gpu()}")
def test_gpu_is_named() -> None:
    check = doctor.check_gpu(needed=True)
    assert check.status == "ok"
    assert "NVIDIA" in check.found
