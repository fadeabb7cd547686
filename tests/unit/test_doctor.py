"""Each line of the doctor is something that was tried, so these tests break the thing itself."""

import json
import socket
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy
import pytest
import zarr

from whitewater import doctor, memory
from whitewater.config import Cluster, resolve
from whitewater.config.resolve import missing_gpu
from whitewater.reachability import unreachable

ROOT = Path(__file__).parents[2]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address of a web server on this machine, and the folder that it serves."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path
        server.shutdown()
        thread.join()


@pytest.fixture
def silent() -> Iterator[str]:
    """Address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def write_lock(folder: Path, *lines: str, requested: str = "numpy\n") -> Path:
    (folder / "cpu.in").write_text(requested)
    lock = folder / "cpu.lock"
    lock.write_text("# a comment\n" + "".join(f"{line} \\\n    --hash=sha256:{'0' * 64}\n" for line in lines))
    return lock


def test_every_check_of_the_default_configuration_passes_here() -> None:
    checks = doctor.run(resolve({}), root=ROOT)
    assert {check.name: check.status for check in checks if check.status in {"fail", "warn"}} == {}


def test_python_that_is_too_old_fails_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_python().status == "ok"
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (sys.version_info.major, sys.version_info.minor + 1))
    check = doctor.check_python()
    assert check.status == "fail"
    assert "PYTHON=" in check.fix


def test_packages_at_their_locked_versions_pass(tmp_path: Path) -> None:
    lock = write_lock(tmp_path, f"numpy=={numpy.__version__}")
    assert doctor.check_packages(lock).status == "ok"


def test_package_at_another_version_is_named_with_both_versions(tmp_path: Path) -> None:
    check = doctor.check_packages(write_lock(tmp_path, "numpy==1.2.3"))
    assert check.status == "warn"
    assert f"numpy {numpy.__version__} (lock: 1.2.3)" in check.found


def test_requested_package_that_is_missing_fails(tmp_path: Path) -> None:
    lock = write_lock(tmp_path, "no-such-package==1.0", requested="no-such-package==1.*\n")
    check = doctor.check_packages(lock)
    assert check.status == "fail"
    assert "missing: no-such-package" in check.found
    assert "cpu.lock" in check.fix


def test_package_that_only_others_need_is_a_warning_when_missing(tmp_path: Path) -> None:
    check = doctor.check_packages(write_lock(tmp_path, f"numpy=={numpy.__version__}", "no-such-package==1.0"))
    assert check.status == "warn"


def test_package_of_another_platform_is_not_missed(tmp_path: Path) -> None:
    other = "win32" if sys.platform != "win32" else "linux"
    lock = write_lock(tmp_path, f"numpy=={numpy.__version__}", f"no-such-package==1.0 ; sys_platform == '{other}'")
    assert doctor.check_packages(lock).status == "ok"


def test_missing_lock_fails(tmp_path: Path) -> None:
    assert doctor.check_packages(tmp_path / "cpu.lock").status == "fail"


@pytest.mark.parametrize(
    ("quota", "status"), [("max 100000", "ok"), ("50000 100000", "warn"), ("9900000 100000", "ok")]
)
def test_cores_know_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, status: str) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(f"{quota}\n")
    monkeypatch.setattr(doctor, "CPU_QUOTA", file)
    assert doctor.check_cores().status == status


def test_control_group_with_little_memory_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("500000000\n")
    monkeypatch.setattr(memory, "CGROUP_LIMITS", (limit,))
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


def test_scheduler_to_attach_to_that_does_not_answer_fails(unused_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whitewater.cluster.CONNECT_SECONDS", 1)
    check = doctor.check_scheduler(Cluster(kind="attach", address=f"tcp://127.0.0.1:{unused_port}"))
    assert check.status == "fail"
    assert str(unused_port) in check.found


def test_scheduler_to_attach_to_that_answers_passes() -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as here:
        check = doctor.check_scheduler(Cluster(kind="attach", address=here.scheduler_address))
    assert check.status == "ok"
    assert "workers: 1" in check.found


def test_places_that_answer_are_reachable(served: tuple[str, Path]) -> None:
    address, folder = served
    (folder / "trips.csv").write_text("fare,tip\n")
    places = [str(folder / "trips.csv"), str(folder / "*.csv"), f"{address}/trips.csv", f"file://{folder}/trips.csv"]
    assert unreachable(places, anonymous=True, seconds=10) == {}


def test_each_place_that_does_not_answer_is_named(served: tuple[str, Path], silent: str, unused_port: int) -> None:
    address, folder = served
    (folder / "empty.csv").touch()
    expected = {
        str(folder / "missing.csv"): "FileNotFoundError",
        str(folder / "*.parquet"): "no file matches",
        str(folder / "empty.csv"): "empty",
        f"{address}/missing.csv": "FileNotFoundError",
        f"http://127.0.0.1:{unused_port}/trips.csv": "Cannot connect",
        f"{silent}/trips.csv": "",
    }
    problems = unreachable(expected, anonymous=True, seconds=3)
    assert problems.keys() == expected.keys()
    for place, reason in expected.items():
        assert reason in problems[place]


def test_generated_source_needs_nothing() -> None:
    check = doctor.check_taxi_source(resolve({})["taxi"]["fetch"])
    assert check.status == "ok"


def test_files_source_tries_each_path_and_the_zone_table(tmp_path: Path) -> None:
    trips, zones = tmp_path / "trips.csv", tmp_path / "zones.csv"
    trips.write_text("fare,tip\n")
    fetch = {"source": "files", "files": {"paths": [str(trips)], "zones": str(zones)}}
    fetch = resolve({"taxi": {"fetch": fetch}})["taxi"]["fetch"]
    check = doctor.check_taxi_source(fetch)
    assert check.status == "fail"
    assert str(zones) in check.found
    zones.write_text("LocationID\n")
    assert doctor.check_taxi_source(fetch).status == "ok"


def test_tlc_source_tries_the_first_file(served: tuple[str, Path]) -> None:
    address, folder = served
    tlc = {"base_url": address, "services": ["green"], "months": ["2019-03"]}
    fetch = resolve({"taxi": {"fetch": {"source": "tlc", "tlc": tlc}}})["taxi"]["fetch"]
    check = doctor.check_taxi_source(fetch)
    assert check.status == "fail"
    assert "base_url" in check.fix
    (folder / "trip-data").mkdir()
    (folder / "trip-data" / "green_tripdata_2019-03.parquet").write_bytes(b"PAR1")
    assert doctor.check_taxi_source(fetch).status == "ok"


def genomics_of(**sections: Any) -> dict[str, Any]:
    section: dict[str, Any] = resolve({"genomics": sections})["genomics"]
    return section


def test_generated_genotypes_need_nothing() -> None:
    check = doctor.check_genomics_source(genomics_of())
    assert (check.name, check.status) == ("genomics source: generated", "ok")


def make_store(path: Path) -> str:
    zarr.open_group(path, mode="w", zarr_format=2)
    zarr.consolidate_metadata(str(path), zarr_format=2)
    return str(path)


def test_stores_of_genotypes_and_of_sites_are_opened(tmp_path: Path) -> None:
    malariagen = {"store": make_store(tmp_path / "calls.zarr"), "sites": str(tmp_path / "sites.zarr")}
    genomics = genomics_of(ingest={"source": "malariagen", "malariagen": malariagen})
    check = doctor.check_genomics_source(genomics)
    assert check.status == "fail"
    assert check.found.startswith(f"{tmp_path}/sites.zarr is no Zarr store")
    make_store(tmp_path / "sites.zarr")
    assert doctor.check_genomics_source(genomics).status == "ok"


def test_store_behind_a_web_server_is_opened_and_its_secrets_are_not_told(served: tuple[str, Path]) -> None:
    address, folder = served
    genomics = genomics_of(ingest={"source": "vcz", "vcz": {"store": f"{address}/a.vcz?signature=hidden"}})
    assert doctor.check_genomics_source(genomics).status == "fail"
    make_store(folder / "a.vcz")
    check = doctor.check_genomics_source(genomics)
    assert (check.status, check.found) == ("ok", f"opened each: {address}/a.vcz?signature=...")


def test_store_that_does_not_answer_fails_after_one_further_try(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "REACH_SECONDS", 0.2)
    check = doctor.check_genomics_source(genomics_of(ingest={"source": "vcz", "vcz": {"store": f"{silent}/a.vcz"}}))
    assert check.status == "fail"
    assert "in 2 tries" in check.found


def test_each_plink_file_and_the_table_of_labels_is_read(tmp_path: Path) -> None:
    ingest = {
        "source": "plink",
        "plink": {"prefix": str(tmp_path / "a")},
        "labels": {"table": f"file://{tmp_path}/labels.tsv"},
    }
    names = ["a.bed", "a.bim", "a.fam", "labels.tsv"]
    for present in range(len(names)):
        check = doctor.check_genomics_source(genomics_of(ingest=ingest))
        assert check.status == "fail"
        assert [name in check.found for name in names] == [False] * present + [True] * (len(names) - present)
        (tmp_path / names[present]).write_text("content")
    assert doctor.check_genomics_source(genomics_of(ingest=ingest)).status == "ok"


def test_vcf_file_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text("##fileformat=VCFv4.3")
    paths = [str(tmp_path / "a.vcf"), str(tmp_path / "b.vcf")]
    check = doctor.check_genomics_source(genomics_of(ingest={"source": "vcf", "vcf": {"paths": paths}}))
    assert check.status == "fail"
    assert [path in check.found for path in paths] == [False, True]


def test_second_data_set_is_plink_files_where_there_are_any_else_a_store(tmp_path: Path) -> None:
    genomics = genomics_of(project={"second": str(tmp_path / "second")})
    assert "is no Zarr store" in doctor.check_genomics_source(genomics).found
    (tmp_path / "second.bed").write_bytes(b"content")
    check = doctor.check_genomics_source(genomics)
    assert check.status == "fail"
    assert [name in check.found for name in ("second.bed", "second.bim", "second.fam")] == [False, True, True]
    for name in ("second.bim", "second.fam"):
        (tmp_path / name).write_text("content")
    assert doctor.check_genomics_source(genomics).status == "ok"


def test_json_is_a_list_of_checks_and_the_status_counts_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # no envs/cpu.lock here
    assert doctor.main(["--json"]) == 1
    checks = json.loads(capsys.readouterr().out)
    assert all(check.keys() == {"name", "status", "found", "fix"} for check in checks)
    assert [check["name"] for check in checks if check["status"] == "fail"] == ["packages of cpu.lock"]


def test_every_failed_line_is_printed_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").write_text("in the way")
    assert doctor.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    failed = [number for number, line in enumerate(lines) if line.startswith("fail")]
    assert len(failed) == 2
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
    (tmp_path / "config" / "taxi.yaml").write_text("taxi: {fetch: {source: tlc, generated: {scale: 1}}}\n")
    (tmp_path / "own.yaml").write_text("taxi: {fetch: {source: generated}}\n")
    monkeypatch.chdir(tmp_path)
    doctor.main(["--json", "--configfile", "own.yaml"])
    assert "taxi source: generated" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.skipif(missing_gpu() is not None, reason=f"no GPU: {missing_gpu()}")
def test_gpu_is_named() -> None:
    check = doctor.check_gpu(needed=True)
    assert check.status == "ok"
    assert "NVIDIA" in check.found
