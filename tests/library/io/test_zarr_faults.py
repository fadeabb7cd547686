"""Zarr stores elsewhere: faults that pass are tried again, those that stay are named, none becomes a fill value."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec, ZstdCodec

from tests.helpers.gcs_emulator import BUCKET, Fault, Faults, emulator, faulty, upload, web_server
from whitewater.errors import InputError, IntegrityError
from whitewater.io import zarr_arrays
from whitewater.io.zarr_arrays import Array, Group, open_group

VALUES = np.random.default_rng(5).integers(-1, 2, (12, 10, 2)).astype("i1")
STORES = ("two.vcz", "three.vcz", "plain.vcz")
CHUNK = {"two.vcz": "call_genotype/1.0.0", "three.vcz": "call_genotype/c/1/0/0", "plain.vcz": "call_genotype/c/0/0/0"}
RETRIES = 3


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zarr_arrays, "FIRST_PAUSE", 0.001)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of format 2 and 3, consolidated, and one of format 3 with shards, not consolidated."""
    folder: Path = tmp_path_factory.mktemp(BUCKET) / BUCKET
    write(folder / "two.vcz", zarr_format=2, chunks=(4, 5, 2))
    checked = [ZstdCodec(), Crc32cCodec()]
    write(folder / "three.vcz", zarr_format=3, chunks=(4, 5, 2), compressors=checked)
    write(folder / "plain.vcz", zarr_format=3, chunks=(2, 5, 2), shards=(6, 10, 2), compressors=checked)
    return folder


def write(store: Path, *, zarr_format: Any, **options: Any) -> None:
    group = zarr.create_group(store, zarr_format=zarr_format)
    array = group.create_array(
        "call_genotype", shape=VALUES.shape, dtype="i1", config={"write_empty_chunks": True}, **options
    )
    array[...] = VALUES
    texts = group.create_array("sample id #1", shape=(3,), dtype="str", config={"write_empty_chunks": True})
    texts[...] = np.array(["a", "b", "c"], dtype=object)
    if zarr_format == 2:
        zarr.consolidate_metadata(store)
    elif store.name == "three.vcz":
        with pytest.warns(UserWarning, match="Consolidated metadata"):
            zarr.consolidate_metadata(store)


@pytest.fixture(scope="module")
def google(folder: Path) -> Iterator[str]:
    with emulator() as endpoint:
        upload(endpoint, folder)
        yield endpoint


@pytest.fixture(scope="module")
def web(folder: Path) -> Iterator[str]:
    with web_server(folder.parent) as url:
        yield url


@pytest.fixture(scope="module")
def all_faults() -> Faults:
    return Faults()


@pytest.fixture
def faults(all_faults: Faults) -> Faults:
    """Faults on the way to both servers, of this test."""
    all_faults.planned.clear()
    all_faults.asked.clear()
    return all_faults


@pytest.fixture(scope="module")
def faulty_google(google: str, all_faults: Faults) -> Iterator[str]:
    with faulty(google, all_faults) as url:
        yield url


@pytest.fixture(scope="module")
def faulty_web(web: str, all_faults: Faults) -> Iterator[str]:
    with faulty(web, all_faults) as url:
        yield url


Open = Callable[..., Group]


@pytest.fixture(params=["gs", "s3", "http"])
def opened(request: pytest.FixtureRequest, faulty_google: str, faulty_web: str, faults: Faults) -> Open:
    """What opens a store over a protocol, with `faults` on the way."""
    endpoint = {"gs": faulty_google, "s3": faulty_web, "http": ""}[request.param]
    place = f"{faulty_web}/{BUCKET}" if request.param == "http" else f"{request.param}://{BUCKET}"
    return lambda store, **options: open_group(f"{place}/{store}", endpoint=endpoint, **{"retries": RETRIES, **options})


@pytest.fixture
def gs(faulty_google: str, faults: Faults) -> Open:
    return lambda store, **options: open_group(
        f"gs://{BUCKET}/{store}", endpoint=faulty_google, **{"retries": RETRIES, **options}
    )


def genotypes(group: Group) -> Array:
    return group.array("call_genotype")


def assert_read(values: NDArray[Any]) -> None:
    np.testing.assert_array_equal(values, VALUES)


@pytest.mark.parametrize("store", STORES)
def test_stores_elsewhere_read_as_here(opened: Open, store: str) -> None:
    group = opened(store)
    array = genotypes(group)
    assert_read(array.read())
    part = (slice(3, 5), slice(2, 9))
    np.testing.assert_array_equal(array.read(part), VALUES[part])
    assert group.array("sample id #1").read().tolist() == ["a", "b", "c"]
    assert "variant_position" not in group


@pytest.mark.parametrize("store", STORES)
def test_arrays_in_a_bucket_are_listed(gs: Open, store: str) -> None:
    assert gs(store).names() == ["call_genotype", "sample id #1"]


def test_a_web_server_lists_what_is_consolidated_only(web: str) -> None:
    assert open_group(f"{web}/{BUCKET}/two.vcz").names() == ["call_genotype", "sample id #1"]
    with pytest.raises(InputError, match="Consolidate the metadata"):
        open_group(f"{web}/{BUCKET}/plain.vcz").names()


PASSING: list[Fault] = [429, 500, 503, "reset", "short", "flip"]


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("store", ["three.vcz", "plain.vcz"])
def test_faults_of_a_chunk_that_pass_are_tried_again(opened: Open, faults: Faults, store: str, fault: Fault) -> None:
    array = genotypes(opened(store))
    faults.plan(CHUNK[store], fault, times=RETRIES)
    assert_read(array.read())
    assert faults.requests(CHUNK[store]) == RETRIES + 1


@pytest.mark.parametrize("fault", PASSING)
def test_faults_of_a_chunk_that_stay_are_named(opened: Open, faults: Faults, fault: Fault) -> None:
    store = "three.vcz"
    array = genotypes(opened(store))
    faults.plan(CHUNK[store], fault)
    kind = IntegrityError if fault in ("short", "flip") else InputError
    with pytest.raises(kind, match=f"call_genotype.*{CHUNK[store][-7:]}.*4 tries"):
        array.read()
    # aiohttp itself asks once more when a connection that it kept open breaks.
    assert faults.requests(CHUNK[store]) in ([RETRIES + 1, 2 * (RETRIES + 1)] if fault == "reset" else [RETRIES + 1])


@pytest.mark.parametrize("fault", [503, "reset", "short"])
def test_faults_of_the_metadata_that_pass_are_tried_again(opened: Open, faults: Faults, fault: Fault) -> None:
    faults.plan("zarr.json", fault, times=2)
    faults.plan(".zmetadata", fault, times=2)
    assert genotypes(opened("two.vcz")).shape == VALUES.shape


@pytest.mark.parametrize("fault", [401, 403])
def test_a_refused_chunk_is_not_a_missing_one(opened: Open, faults: Faults, fault: Fault) -> None:
    array = genotypes(opened("two.vcz"))
    faults.plan(CHUNK["two.vcz"], fault)
    with pytest.raises(InputError, match=r"call_genotype/1\.0\.0 may not be read"):
        array.read()
    assert faults.requests(CHUNK["two.vcz"]) == 1


@pytest.mark.parametrize("fault", [401, 403])
def test_a_refused_store_names_the_setting(gs: Open, faults: Faults, fault: Fault) -> None:
    faults.plan("", fault)
    with pytest.raises(InputError, match=r"may not be read.*anonymous: false"):
        gs("two.vcz")


def test_a_bucket_that_refuses_what_does_not_exist_is_read(gs: Open, faults: Faults) -> None:
    faults.plan("two.vcz/zarr.json", 403)
    assert_read(genotypes(gs("two.vcz")).read())


def test_a_bucket_that_may_not_be_listed_says_so(gs: Open, faults: Faults) -> None:
    group = gs("plain.vcz")
    faults.plan("/o", 403)
    with pytest.raises(InputError, match=r"may not be read.*anonymous: false"):
        group.names()


@pytest.mark.parametrize("store", STORES)
def test_a_chunk_that_is_not_there_stops_the_read_at_once(opened: Open, faults: Faults, store: str) -> None:
    array = genotypes(opened(store))
    faults.plan(CHUNK[store], 404)
    with pytest.raises(IntegrityError, match=rf"{store}/{CHUNK[store]} is not stored"):
        array.read()
    assert faults.requests(CHUNK[store]) == 1


def test_a_store_that_is_not_there_is_refused(opened: Open) -> None:
    with pytest.raises(InputError, match=r"other\.vcz is not a Zarr store"):
        opened("other.vcz")


def test_an_answer_that_does_not_come_is_given_up(opened: Open, faults: Faults) -> None:
    array = genotypes(opened("two.vcz", retries=1, timeout=0.3))
    faults.plan(CHUNK["two.vcz"], "hang", times=1)
    assert_read(array.read())
    faults.plan(CHUNK["two.vcz"], "hang")
    started = time.monotonic()
    with pytest.raises(InputError, match=r"call_genotype/1\.0\.0 could not be read in 2 tries"):
        array.read()
    assert time.monotonic() - started < 10  # not a speed: a client that retried by itself would take a minute


def test_a_server_that_nobody_runs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server(Path("tests")) as url:
        pass
    with pytest.raises(InputError, match=r"store/zarr\.json could not be read in 2 tries"):
        open_group(f"{url}/store", retries=1)


def test_pauses_grow_and_heed_the_server(gs: Open, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("whitewater.io.zarr_arrays.asyncio.sleep", note)
    monkeypatch.setattr(zarr_arrays, "FIRST_PAUSE", 0.2)
    monkeypatch.setattr(zarr_arrays, "LONGEST_PAUSE", 2.0)
    array = genotypes(gs("two.vcz", retries=6))
    faults.plan(CHUNK["two.vcz"], 503)
    with pytest.raises(InputError, match="7 tries"):
        array.read()
    assert len(pauses) == 6
    assert all(0.1 * 2**number <= pause <= 2.0 for number, pause in enumerate(pauses[:4]))
    assert pauses[-1] == 2.0


def test_no_secret_of_the_address_is_told(faulty_web: str, caplog: pytest.LogCaptureFixture, faults: Faults) -> None:
    address = f"{faulty_web.replace('//', '//user:hidden@')}/{BUCKET}/two.vcz?signature=hidden"
    array = genotypes(open_group(address, retries=1))
    assert_read(array.read())
    for fault in (503, 403, 418, "short"):
        faults.plan(CHUNK["two.vcz"], fault)
        with pytest.raises((InputError, IntegrityError)) as raised:
            array.read()
        assert "hidden" not in "".join(traceback.format_exception(raised.value))
    assert "hidden" not in caplog.text
    assert "trying again" in caplog.text


def test_many_chunks_are_asked_for_at_once_and_none_twice(gs: Open, faults: Faults) -> None:
    array = genotypes(gs("two.vcz"))
    assert_read(array.read())
    chunks = [path for path in faults.asked if "/call_genotype/" in path and not path.endswith(".zarray")]
    assert len(chunks) == 6
    assert all(faults.asked[path] == 1 for path in chunks)
