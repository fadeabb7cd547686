"""The sources that the configuration names are tried, each at its place."""

from pathlib import Path
from typing import Any

import fsspec
import pytest
import zarr

from whitewater import source_checks
from whitewater.config.resolve import resolve
from whitewater.source_checks import check_source as check


def test_generated_source_needs_nothing() -> None:
    tried = check("taxi", resolve({})["taxi"])
    assert tried.status == "ok"


def test_files_source_tries_each_path_and_the_zone_table(tmp_path: Path) -> None:
    trips, zones = tmp_path / "trips.csv", tmp_path / "zones.csv"
    trips.write_text("fare,tip\n")
    fetch = {"source": "files", "files": {"paths": [str(trips)], "zones": str(zones)}}
    taxi = resolve({"taxi": {"fetch": fetch}})["taxi"]
    tried = check("taxi", taxi)
    assert tried.status == "fail"
    assert str(zones) in tried.found
    zones.write_text("LocationID\n")
    assert check("taxi", taxi).status == "ok"


def test_an_object_of_a_bucket_is_tried_with_few_of_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    store = fsspec.filesystem("memory")
    store.pipe_file("/trips-bucket/a.csv", b"fare,tip\n")
    asked: list[int] = []
    opened = type(store).open

    def noting(self: Any, path: str, mode: str, block_size: int) -> Any:
        asked.append(block_size)
        return opened(self, path, mode, block_size=block_size)

    monkeypatch.setattr(type(store), "open", noting)
    for name, status in {"*.csv": "ok", "b.csv": "fail", "*.parquet": "fail"}.items():
        fetch = {"source": "files", "files": {"paths": [f"memory://trips-bucket/{name}"]}}
        assert check("taxi", resolve({"taxi": {"fetch": fetch}})["taxi"]).status == status
    assert asked == [source_checks.FIRST_BYTES]
    store.rm("/trips-bucket", recursive=True)


def test_tlc_source_tries_the_first_file(served: tuple[str, Path]) -> None:
    address, folder = served
    tlc = {"base_url": address, "services": ["green"], "months": ["2019-03"]}
    taxi = resolve({"taxi": {"fetch": {"source": "tlc", "tlc": tlc}}})["taxi"]
    tried = check("taxi", taxi)
    assert tried.status == "fail"
    assert "base_url" in tried.fix
    (folder / "trip-data").mkdir()
    (folder / "trip-data" / "green_tripdata_2019-03.parquet").write_bytes(b"PAR1")
    assert check("taxi", taxi).status == "ok"


def genomics_of(**sections: Any) -> dict[str, Any]:
    section: dict[str, Any] = resolve({"genomics": sections})["genomics"]
    return section


def test_generated_genotypes_need_nothing() -> None:
    tried = check("genomics", genomics_of())
    assert (tried.name, tried.status) == ("genomics source: generated", "ok")


def make_store(path: Path) -> str:
    zarr.open_group(path, mode="w", zarr_format=2)
    zarr.consolidate_metadata(str(path), zarr_format=2)
    return str(path)


def test_stores_of_genotypes_and_of_sites_are_opened(tmp_path: Path) -> None:
    malariagen = {"store": make_store(tmp_path / "calls.zarr"), "sites": str(tmp_path / "sites.zarr")}
    genomics = genomics_of(ingest={"source": "malariagen", "malariagen": malariagen})
    tried = check("genomics", genomics)
    assert tried.status == "fail"
    assert tried.found.startswith(f"{tmp_path}/sites.zarr is no Zarr store")
    make_store(tmp_path / "sites.zarr")
    assert check("genomics", genomics).status == "ok"


def test_store_behind_a_web_server_is_opened_and_its_secrets_are_not_told(served: tuple[str, Path]) -> None:
    address, folder = served
    genomics = genomics_of(ingest={"source": "vcz", "vcz": {"store": f"{address}/a.vcz?signature=hidden"}})
    assert check("genomics", genomics).status == "fail"
    make_store(folder / "a.vcz")
    tried = check("genomics", genomics)
    assert (tried.status, tried.found) == ("ok", f"tried each: {address}/a.vcz?signature=...")


def test_store_that_does_not_answer_fails_after_one_further_try(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_checks, "REACH_SECONDS", 0.2)
    tried = check("genomics", genomics_of(ingest={"source": "vcz", "vcz": {"store": f"{silent}/a.vcz"}}))
    assert tried.status == "fail"
    assert "in 2 tries" in tried.found


def test_each_plink_file_and_the_table_of_labels_is_read(tmp_path: Path) -> None:
    ingest = {
        "source": "plink",
        "plink": {"prefix": str(tmp_path / "a")},
        "labels": {"table": f"file://{tmp_path}/labels.tsv"},
    }
    names = ["a.bed", "a.bim", "a.fam", "labels.tsv"]
    for present in range(len(names)):
        tried = check("genomics", genomics_of(ingest=ingest))
        assert tried.status == "fail"
        assert [name in tried.found for name in names] == [False] * present + [True] * (len(names) - present)
        (tmp_path / names[present]).write_text("content")
    assert check("genomics", genomics_of(ingest=ingest)).status == "ok"


def test_vcf_file_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text("##fileformat=VCFv4.3")
    paths = [str(tmp_path / "a.vcf"), str(tmp_path / "b.vcf")]
    tried = check("genomics", genomics_of(ingest={"source": "vcf", "vcf": {"paths": paths}}))
    assert tried.status == "fail"
    assert [path in tried.found for path in paths] == [False, True]


def test_second_data_set_is_checked_as_the_first(tmp_path: Path) -> None:
    store = {"source": "vcz", "vcz": {"store": str(tmp_path / "second")}}
    assert "is no Zarr store" in check("genomics", genomics_of(project={"second": store})).found
    genomics = genomics_of(project={"second": str(tmp_path / "second")})
    (tmp_path / "second.bed").write_bytes(b"content")
    tried = check("genomics", genomics)
    assert tried.status == "fail"
    assert [name in tried.found for name in ("second.bed", "second.bim", "second.fam")] == [False, True, True]
    for name in ("second.bim", "second.fam"):
        (tmp_path / name).write_text("content")
    assert check("genomics", genomics).status == "ok"


def pagerank_of(**sections: Any) -> dict[str, Any]:
    section: dict[str, Any] = resolve({"pagerank": sections})["pagerank"]
    return section


def test_generated_web_needs_nothing() -> None:
    tried = check("pagerank", pagerank_of())
    assert (tried.name, tried.status) == ("pagerank source: generated", "ok")


def test_each_file_of_edges_and_the_personalization_are_read(tmp_path: Path) -> None:
    names = ["a.e", "a.v", "topics.csv"]
    edges, vertices, table = (str(tmp_path / name) for name in names)
    section = pagerank_of(
        fetch={"source": "edges", "edges": {"files": [edges], "vertices": [vertices]}},
        pagerank={"personalization": table},
    )
    for present in range(len(names)):
        tried = check("pagerank", section)
        assert tried.status == "fail"
        assert [name in tried.found for name in names] == [False] * present + [True] * (len(names) - present)
        (tmp_path / names[present]).write_text("1 2\n")
    assert check("pagerank", section).status == "ok"


def test_folder_without_pages_fails(tmp_path: Path) -> None:
    section = pagerank_of(fetch={"source": "html", "html": {"folder": str(tmp_path)}})
    assert check("pagerank", section).status == "fail"
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.htm").write_text("<p>")
    assert check("pagerank", section).status == "ok"


def test_start_page_that_does_not_answer_is_named(served: tuple[str, Path]) -> None:
    address, folder = served
    section = pagerank_of(fetch={"source": "crawl", "crawl": {"start_urls": [f"{address}/start.html"]}})
    assert f"{address}/start.html" in check("pagerank", section).found
    assert check("pagerank", section).status == "fail"
    (folder / "start.html").write_text("<p>")
    assert check("pagerank", section).status == "ok"


def recsys_of(**fetch: Any) -> dict[str, Any]:
    section: dict[str, Any] = resolve({"recsys": {"fetch": fetch}})["recsys"]
    return section


def test_simulated_log_needs_nothing() -> None:
    tried = check("recsys", recsys_of())
    assert (tried.name, tried.status) == ("recsys source: generated", "ok")


def test_each_day_of_clicks_is_read(tmp_path: Path) -> None:
    section = recsys_of(source="criteo", criteo={"files": [str(tmp_path / "day_0"), str(tmp_path / "day_1")]})
    (tmp_path / "day_0").write_text("1\t\n")
    tried = check("recsys", section)
    assert ("day_0" in tried.found, "day_1" in tried.found) == (False, True)
    (tmp_path / "day_1").write_text("0\t\n")
    assert check("recsys", section).status == "ok"


def test_release_may_be_a_folder_or_a_file(tmp_path: Path) -> None:
    section = recsys_of(source="movielens", movielens={"path": str(tmp_path)})
    assert "ratings.csv" in check("recsys", section).found
    (tmp_path / "u.data").write_text("1\t1\t5\t0\n")
    assert check("recsys", section).status == "ok"
    missing = recsys_of(source="movielens", movielens={"path": str(tmp_path / "ml.zip")})
    assert check("recsys", missing).status == "fail"
