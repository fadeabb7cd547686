"""Downloads against a real server on this machine that fails in every way we know."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
import pytest

from tests.helpers.real_data import needs_real_data, real_data
from tests.helpers.web_server import Act, Reply, Request, Site, response, serving
from whitewater.errors import InputError, IntegrityError, ResourceError, redact
from whitewater.io import download as module
from whitewater.io.download import Downloads, Expected, Input, local_name, read_registry

CONTENT = bytes(range(256)) * 8_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Files(Site):
    """Files of a server that are resumed where they are unchanged, and what goes wrong: one fault for each request."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: list[int | str] = field(default_factory=list)
    validator: str = "ETag"

    def ranges(self) -> list[str | None]:
        return [request.headers.get("range") for request in self.requests]

    def reply_to(self, request: Request) -> Reply:
        fault = self.faults.pop(0) if self.faults else ""
        content = self.files.get(request.path.partition("?")[0])
        if content is None or isinstance(fault, int):
            return [response(status=404 if content is None else int(fault), Retry_After="0")]
        tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        asked = request.headers.get("range", "bytes=0-") if request.headers.get("if-range") == tag else "bytes=0-"
        start = int(asked.removeprefix("bytes=").rstrip("-"))
        if start >= len(content):
            return [response(status=416, Content_Range=f"bytes */{len(content)}")]
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        headers |= {self.validator: tag} if self.validator else {}
        whole = response(content[start:], status=206 if start else 200, content_type=None, **headers)
        if not fault:
            return [whole]
        half = whole[: -(len(content) - start) // 2]
        return [half, Act.RESET] if fault == "reset" else [half]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    with serving(Files(files={"/a.bin": CONTENT})) as served:
        assert isinstance(served, Files)
        yield served


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Input]:
    def get(url: str, *, registry: dict[str, Expected] | None = None, retries: int = 3) -> Input:
        return Downloads(tmp_path, registry or {}, retries=retries, timeout=5.0).get([url])[0]

    return get


Get = Callable[..., Input]


def test_a_file_arrives_whole_and_is_pinned(site: Files, get: Get, tmp_path: Path) -> None:
    found = get(f"{site.url}/a.bin")
    assert Path(found.path).read_bytes() == CONTENT
    assert (found.sha256, found.bytes) == (SHA256, len(CONTENT))
    assert [pin["sha256"] for pin in json.loads((tmp_path / "registry.json").read_text()).values()] == [SHA256]
    assert [path.name for path in (tmp_path / "downloads").iterdir()] == [local_name(f"{site.url}/a.bin")]


def test_what_is_there_is_not_downloaded_again(site: Files, get: Get) -> None:
    first = get(f"{site.url}/a.bin")
    assert get(f"{site.url}/a.bin") == first
    assert len(site.requests) == 1


@pytest.mark.parametrize("fault", [429, 500, 502, 503, 504, 408])
def test_a_passing_answer_is_tried_again(site: Files, get: Get, fault: int) -> None:
    site.faults = [fault, fault]
    assert get(f"{site.url}/a.bin").sha256 == SHA256
    assert len(site.requests) == 3


@pytest.mark.parametrize("fault", ["short", "reset"])
def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(site: Files, get: Get, fault: str) -> None:
    site.faults = ["short", fault]
    assert get(f"{site.url}/a.bin").sha256 == SHA256
    assert site.ranges()[:2] == [None, f"bytes={len(CONTENT) // 2}-"]


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(site: Files, get: Get) -> None:
    site.faults = ["short"]
    with pytest.raises(InputError, match=r"in 1 tries.*Run again"):
        get(f"{site.url}/a.bin", retries=0)
    assert get(f"{site.url}/a.bin", retries=0).sha256 == SHA256
    assert site.ranges() == [None, f"bytes={len(CONTENT) // 2}-"]


def test_a_part_that_is_whole_is_taken_as_it_is(site: Files, get: Get, tmp_path: Path) -> None:
    site.faults = ["short"]
    with pytest.raises(InputError):
        get(f"{site.url}/a.bin", retries=0)
    part = next((tmp_path / "downloads").glob("*.part"))
    part.write_bytes(CONTENT)
    assert get(f"{site.url}/a.bin").sha256 == SHA256
    assert site.ranges() == [None, f"bytes={len(CONTENT)}-"]


def test_a_file_that_changes_between_two_tries_is_begun_anew(site: Files, get: Get) -> None:
    site.faults = ["short"]
    with pytest.raises(InputError):
        get(f"{site.url}/a.bin", retries=0)
    site.files["/a.bin"] = b"new" * 100_000
    assert Path(get(f"{site.url}/a.bin").path).read_bytes() == b"new" * 100_000


@pytest.mark.parametrize("validator", ["", "Last-Modified"])
def test_a_server_without_entity_tags_is_understood(site: Files, get: Get, validator: str) -> None:
    site.validator, site.faults = validator, ["short"]
    assert Path(get(f"{site.url}/a.bin").path).read_bytes() == CONTENT


def test_a_missing_file_is_not_tried_again(site: Files, get: Get) -> None:
    with pytest.raises(InputError, match=r"nothing\.bin is not published"):
        get(f"{site.url}/nothing.bin")
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_not_tried_again(site: Files, get: Get, status: int) -> None:
    site.faults = [status]
    with pytest.raises(InputError, match=f"refuses it .{status}"):
        get(f"{site.url}/a.bin")
    assert len(site.requests) == 1


def test_a_server_that_stays_ill_is_given_up(site: Files, get: Get) -> None:
    site.faults = [503] * 9
    with pytest.raises(InputError, match=r"could not be downloaded in 4 tries.*503"):
        get(f"{site.url}/a.bin")
    assert len(site.requests) == 4


def test_a_server_that_is_down_is_tried_again(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    with pytest.raises(InputError, match=r"in 4 tries.*refused") as caught:
        get("http://ann:password@127.0.0.1:9/a.bin?signature=abc123")
    assert not any(secret in str(caught.value) for secret in ("ann", "password", "abc123"))


@pytest.mark.parametrize("url", ["http:///a.bin", "http://ann:password@127.0.0.1:8o/a.bin"])
def test_an_address_that_is_none_is_told_at_once_without_its_secrets(get: Get, url: str) -> None:
    with pytest.raises(InputError, match="is not an address") as caught:
        get(url)
    assert "password" not in str(caught.value)


def test_a_file_replaced_upstream_is_reported_and_not_used(site: Files, get: Get) -> None:
    found = get(f"{site.url}/a.bin")
    Path(found.path).unlink()
    site.files["/a.bin"] = CONTENT[::-1]
    with pytest.raises(InputError, match=rf"replaced upstream: .*registry\.json has SHA-256 {SHA256}"):
        get(f"{site.url}/a.bin")
    assert not list(Path(found.path).parent.iterdir())


def test_another_size_is_reported_before_the_transfer(site: Files, get: Get) -> None:
    Path(get(f"{site.url}/a.bin").path).unlink()
    site.files["/a.bin"] = CONTENT * 2
    with pytest.raises(InputError, match=f"the server now sends {2 * len(CONTENT):,} bytes"):
        get(f"{site.url}/a.bin")


def test_a_registry_is_believed_before_the_first_download(site: Files, get: Get) -> None:
    url = f"{site.url}/a.bin"
    right = {url: Expected(Path("datasets.csv"), SHA256, len(CONTENT))}
    wrong = {url: Expected(Path("datasets.csv"), "0" * 64, None)}
    with pytest.raises(InputError, match=r"datasets\.csv has SHA-256 0000"):
        get(url, registry=wrong)
    assert get(url, registry=right).sha256 == SHA256
    with pytest.raises(InputError, match=r"datasets\.csv has SHA-256 0000"):
        get(url, registry=wrong)


def test_what_nobody_pinned_is_said_to_be_trusted_once_for_all_files(
    site: Files, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.files |= {"/b.bin": b"b", "/known.bin": CONTENT}
    registry = {f"{site.url}/known.bin": Expected(Path("datasets.csv"), SHA256, len(CONTENT))}
    urls = [f"{site.url}/{name}.bin" for name in ("a", "b", "known")]
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            Downloads(tmp_path, registry).get(urls)
    told = [message for message in caplog.messages if "trust on first use" in message]
    assert told == [f"{tmp_path}/registry.json: noted SHA-256 of 2 new downloads (trust on first use)"]


def test_a_file_changed_here_is_reported(site: Files, get: Get) -> None:
    Path(get(f"{site.url}/a.bin").path).write_bytes(b"edited")
    with pytest.raises(IntegrityError, match="was changed since it was downloaded"):
        get(f"{site.url}/a.bin")


PAGE = b"\xef\xbb\xbf\n <HTML><body>Please log in</body></HTML>"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", PAGE),
        ("a", b'{"error": "expired"}'),
        ("a.txt", b"<?xml version='1.0'?><Error/>"),
        ("a.csv.gz", PAGE),
        ("a.csv.gz", gzip.compress(PAGE, mtime=0)),
        ("a.zip", b"PK\x03\x04cut"),
        ("a.csv", b""),
    ],
)
def test_what_is_not_data_is_neither_kept_nor_pinned(
    site: Files, get: Get, tmp_path: Path, name: str, content: bytes
) -> None:
    site.files[f"/{name}"] = content
    with pytest.raises(InputError, match="It was not kept"):
        get(f"{site.url}/{name}")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [".fetch.lock"]


@pytest.mark.parametrize("content", [b"a,b\n<1>,2\n", b"# <html>\n1 2\n", gzip.compress(b"1 2\n", mtime=0), b"{1}\n"])
def test_data_that_have_signs_of_pages_in_them_are_kept(site: Files, get: Get, content: bytes) -> None:
    site.files["/a.txt"] = content
    assert Path(get(f"{site.url}/a.txt").path).read_bytes() == content


def test_a_disk_that_is_too_small_is_noticed_before_the_transfer(
    site: Files, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(ResourceError, match=rf"needs {len(CONTENT):,} bytes.*1,000 bytes free"):
        get(f"{site.url}/a.bin")


def test_several_files_come_at_once_and_all_faults_are_told(site: Files, tmp_path: Path) -> None:
    site.files |= {f"/{number}.bin": str(number).encode() for number in range(10)}
    urls = [f"{site.url}/{number}.bin" for number in (*range(10), 11, 12)]
    with pytest.raises(InputError) as caught:
        Downloads(tmp_path, {}, retries=0).get(urls)
    assert {"11.bin" in line or "12.bin" in line for line in str(caught.value).splitlines()} == {True}
    found = Downloads(tmp_path, {}).get(urls[:10])
    assert [Path(each.path).read_text() for each in found] == [str(number) for number in range(10)]
    assert len(site.requests) == 12


def test_secrets_are_used_but_neither_kept_nor_told(
    site: Files, get: Get, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.faults = [503]
    url = f"{site.url.replace('//', '//ann:pass%40word@')}/a.bin?signature=abc123&part=1"
    with caplog.at_level(logging.INFO):
        found = get(url)
    assert site.requests[-1].path == "/a.bin?signature=abc123&part=1"
    assert site.requests[-1].headers["authorization"] == "Basic YW5uOnBhc3NAd29yZA=="
    told = found.origin + caplog.text + (tmp_path / "registry.json").read_text() + str(found.path)
    assert not any(secret in told for secret in ("ann", "pass", "abc123"))
    assert found.origin == f"{site.url}/a.bin?signature=...&part=..."


def test_urls_of_one_name_are_kept_apart_and_a_password_does_not_matter() -> None:
    assert local_name("https://x.org/a/t.csv") != local_name("https://x.org/b/t.csv")
    assert local_name("https://x.org/t.csv?part=1") != local_name("https://x.org/t.csv?part=2")
    assert local_name("https://ann:secret@x.org/t.csv") == local_name("https://x.org/t.csv")
    assert redact("s3://bucket/t.csv") == "s3://bucket/t.csv"


@pytest.fixture
def bucket() -> Iterator[str]:
    """An object store of fsspec in this process."""
    store = fsspec.filesystem("memory")
    store.pipe_file("/bucket/a.bin", CONTENT)
    yield "memory://bucket/a.bin"
    store.rm("/bucket", recursive=True)


def test_an_object_of_a_bucket_arrives_and_is_pinned(bucket: str, get: Get) -> None:
    assert get(bucket).sha256 == SHA256
    fsspec.filesystem("memory").pipe_file("/bucket/a.bin", CONTENT[::-1])
    Path(get(bucket).path).unlink()
    with pytest.raises(InputError, match="replaced upstream"):
        get(bucket)


def test_a_broken_read_of_a_bucket_goes_on_where_it_stopped(
    bucket: str, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFile

    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    reads: list[int] = []
    whole = MemoryFile.read

    def breaking(self: MemoryFile, size: int = -1) -> bytes:
        reads.append(self.tell())
        if len(reads) == 2:
            raise OSError("connection lost")
        return bytes(whole(self, min(size, 1_000_000)))

    monkeypatch.setattr(MemoryFile, "read", breaking, raising=False)
    assert Path(get(bucket).path).read_bytes() == CONTENT
    assert reads[:3] == [0, 1_000_000, 1_000_000]


def test_a_protocol_that_nobody_knows_is_an_error(get: Get) -> None:
    with pytest.raises(InputError, match="nonsense"):
        get("nonsense://bucket/a.bin")


def test_the_registry_is_read_by_url(tmp_path: Path) -> None:
    path = tmp_path / "datasets.csv"
    path.write_text(
        f"name,url,sha256,license,size\nA,https://x.org/a,{SHA256},CC0-1.0,12\nB,https://x.org/b,,CC0-1.0,\n"
    )
    assert read_registry(path) == {
        "https://x.org/a": Expected(path, SHA256, 12),
        "https://x.org/b": Expected(path, "", None),
    }
    assert read_registry(tmp_path / "none.csv") == {}


@pytest.mark.parametrize(
    "text",
    [
        "name,url\nA,https://x.org/a\n",
        "name,url,sha256,license,size\nA,https://x.org/a,ABC,CC0-1.0,12\n",
        "name,url,sha256,license,size\nA,https://x.org/a,,CC0-1.0,large\n",
        "name,url,sha256,license,size\nA,https://x.org/a\n",
        "",
    ],
)
def test_a_registry_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "datasets.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"datasets\.csv is not a registry"):
        read_registry(path)


@needs_real_data
def test_our_registry_pins_the_file_that_the_tlc_published() -> None:
    name = "green_tripdata_2023-12.parquet"
    registry = read_registry(Path(__file__).parents[3] / "config" / "datasets.csv")
    [expected] = [expected for url, expected in registry.items() if url.endswith(name)]
    content = (real_data() / "taxi" / name).read_bytes()
    assert (expected.sha256, expected.size) == (hashlib.sha256(content).hexdigest(), len(content))
