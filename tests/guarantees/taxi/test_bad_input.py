"""Bad input ends a step with one message that names the file and the remedy, or goes to quarantine."""

import gzip
import http.server
import json
import socket
import struct
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended, leftovers, listed
from tests.raw_files import TRIP, YELLOW_2019, write_csv, write_parquet, write_zones, yellow_frame

FETCHED = {"inputs": "data/taxi/inputs.json", "zones": "data/taxi/zones.csv"}


def fetch(clone: Clone, **settings: Any) -> Ended:
    return clone.step("fetch", FETCHED, settings=settings)


def standardise(clone: Clone, *files: Path, **settings: Any) -> Ended:
    paths = {"inputs": clone.write("inputs.json", listed(*files)), "standardised": "out"}
    return clone.step("standardise", paths, settings=settings)


def clean(clone: Clone) -> Ended:
    write_zones(clone / "zones.csv")
    inputs = {"standardised": "out", "zones": "zones.csv"}
    outputs = {"trips": "trips", "quarantine": "quarantine", "quality": "quality.json"}
    return clone.step("clean", {**inputs, **outputs})


def assert_refused(clone: Clone, ended: Ended, *parts: str, kind: str = "InputError") -> None:
    """Check that a step failed with one message with these parts, that its log has the traceback, and no output."""
    assert ended.message.startswith(f"{kind}: ")
    for part in parts:
        assert part in ended.message
    assert "Traceback" in "".join(path.read_text() for path in (clone / "logs").glob("*.log"))
    assert not (clone / "out").exists()
    assert not (clone / FETCHED["inputs"]).exists()
    assert leftovers(clone) == []


# ---- what fetch is told to get


def test_a_missing_file_stops_the_workflow_with_its_name(fresh: Clone) -> None:
    settings = {"taxi": {"fetch": {"source": "files", "files": {"paths": ["yelow_2019-03.parquet"]}}}}
    ended = fresh.snakemake("--", "taxi", files=("tiny.yaml", fresh.write("mine.yaml", settings)))
    assert ended.status == 1
    assert "Traceback" not in ended.terminal
    assert [message.splitlines()[0] for message in ended.messages] == [
        "InputError: yelow_2019-03.parquet does not exist. Check taxi.fetch.files."
    ]
    assert "logs/taxi/fetch.log (check log file(s) for error details)" in ended.terminal
    assert "Traceback" in (fresh / "logs/taxi/fetch.log").read_text()
    assert not list((fresh / "results").rglob("*"))


@pytest.mark.parametrize("path", ["nowhere/*.parquet", "data", "yellow_2019-03.csv"])
def test_a_path_that_names_no_file_is_refused(fresh: Clone, path: str) -> None:
    (fresh / "data").mkdir()
    assert_refused(fresh, fetch(fresh, source="files", files={"paths": [path]}), path)


def test_a_zone_table_that_is_none_is_refused(fresh: Clone) -> None:
    write_csv(fresh / "trips.csv", [TRIP])
    (fresh / "zones.csv").write_text("LocationID,Zone\n1,Newark\n")
    ended = fetch(fresh, source="files", files={"paths": ["trips.csv"], "zones": "zones.csv"})
    assert_refused(fresh, ended, "zones.csv", "Borough")


class BadServer(http.server.BaseHTTPRequestHandler):
    """Answers with the status that the first part of the path asks for, or breaks the connection."""

    def do_GET(self) -> None:
        asked = self.path.split("/")[1]
        if asked == "reset":
            # Closing with no time to linger sends a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        if asked == "page":
            page = b"<html>Please log in</html>"
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
            return
        self.send_error(int(asked))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def finish(self) -> None:
        if not self.wfile.closed and self.connection.fileno() >= 0:
            super().finish()


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server on the loopback interface that serves nothing good."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), BadServer) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("404", "is not published (the server answered 404"),
        ("403", "the server refuses it (403"),
        ("500", "could not be downloaded in 1 tries: the server answered 500"),
        ("reset", "could not be downloaded in 1 tries"),
        ("page", "is not a whole Parquet file"),
    ],
)
def test_a_url_that_gives_no_file_is_refused(fresh: Clone, server: str, asked: str, said: str) -> None:
    tlc = {"base_url": f"{server}/{asked}", "retries": 0, "months": ["2019-03"], "services": ["yellow"]}
    ended = fetch(fresh, source="tlc", tlc=tlc)
    url = f"{server}/{asked}/trip-data/yellow_tripdata_2019-03.parquet"
    assert_refused(fresh, ended, url, said)


def test_a_server_that_does_not_answer_is_named(fresh: Clone) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        ended = fetch(fresh, source="tlc", tlc={"base_url": base_url, "retries": 0})
    assert_refused(fresh, ended, base_url, "could not be downloaded in 1 tries", "Connection refused")


def test_a_bucket_that_does_not_have_the_object_is_named(fresh: Clone, server: str) -> None:
    ended = fresh.step(
        "fetch",
        FETCHED,
        settings={"source": "files", "files": {"paths": ["gs://no-such-bucket/yellow.parquet"]}},
        STORAGE_EMULATOR_HOST=f"{server}/404",
        # The server speaks no gRPC, by which gcsfs would ask for the kind of the bucket.
        GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT="false",
    )
    assert_refused(fresh, ended, "gs://no-such-bucket/yellow.parquet")


# ---- what standardise finds in the files


def test_a_truncated_parquet_file_is_refused(fresh: Clone) -> None:
    path = write_parquet(yellow_frame(2_000), fresh / "yellow.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    assert_refused(fresh, standardise(fresh, path), str(path), "truncated", "Download or write it again")


def test_a_parquet_file_with_damaged_pages_is_refused(fresh: Clone) -> None:
    path = write_parquet(yellow_frame(2_000), fresh / "yellow.parquet")
    data = bytearray(path.read_bytes())
    data[4:2_000] = b"\xff" * 1_996
    path.write_bytes(data)
    assert_refused(fresh, standardise(fresh, path), str(path))


def test_a_truncated_gzip_file_is_refused(fresh: Clone) -> None:
    path = fresh / "yellow.csv.gz"
    whole = gzip.compress("\n".join([YELLOW_2019, *[TRIP] * 5_000]).encode())
    path.write_bytes(whole[: len(whole) // 2])
    assert_refused(fresh, standardise(fresh, path), str(path), "truncated")


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02\x03" * 100, b"\xff\xfe\xfd"])
def test_a_file_that_is_no_table_is_refused(fresh: Clone, data: bytes) -> None:
    path = fresh / "yellow.csv"
    path.write_bytes(data)
    assert_refused(fresh, standardise(fresh, path), str(path))


def test_columns_that_are_not_understood_are_named(fresh: Clone) -> None:
    header = YELLOW_2019.replace("congestion_surcharge", "congestion_charge").replace("extra", "moon_phase")
    path = write_csv(fresh / "yellow.csv", [TRIP], header=header)
    ended = standardise(fresh, path)
    hint = "'congestion_charge' (did you mean 'congestion_surcharge'?)"
    assert_refused(fresh, ended, str(path), hint, "'moon_phase'", "Rename them")


def test_for_hire_trips_are_refused_because_they_have_no_fares(fresh: Clone) -> None:
    header = "dispatching_base_num,pickup_datetime,dropOff_datetime,PUlocationID,DOlocationID,SR_Flag"
    path = write_csv(fresh / "fhv.csv", ["B00001,2019-03-01 00:00:00,2019-03-01 00:10:00,1,2,"], header=header)
    assert_refused(fresh, standardise(fresh, path), str(path), "have no fares", "yellow, green or fhvhv")


def test_of_many_files_the_bad_one_is_named(fresh: Clone) -> None:
    good, bad = (write_parquet(yellow_frame(100), fresh / f"{name}.parquet") for name in ("good", "bad"))
    bad.write_bytes(bad.read_bytes()[:50])
    ended = standardise(fresh, good, bad)
    assert_refused(fresh, ended, str(bad))
    assert str(good) not in ended.message


def test_a_torn_row_goes_to_quarantine_as_it_stood(fresh: Clone) -> None:
    torn = TRIP[: len(TRIP) // 2]
    path = write_csv(fresh / "yellow.csv", [*[TRIP] * 500, torn, *[TRIP] * 499])
    assert standardise(fresh, path).status == 0
    assert clean(fresh).status == 0
    rejected = pd.read_parquet(fresh / "quarantine")
    assert rejected["raw_line"].tolist() == [torn]
    assert [list(reasons) for reasons in rejected["reasons"]] == [["malformed_line"]]
    quality = fresh.json("quality.json")
    assert quality["totals"] == {"rows_in": 1_000, "rows_out": 999, "quarantined": 1}
    assert quality["files"][0]["malformed"] == 1


def test_a_file_with_too_many_torn_rows_is_refused(fresh: Clone) -> None:
    path = write_csv(fresh / "yellow.csv", [TRIP, TRIP[:40]] * 50)
    ended = standardise(fresh, path, max_malformed_fraction=0.1)
    assert_refused(fresh, ended, str(path), "50 of 100", "taxi.standardise.max_malformed_fraction")


# ---- what is not the fault of the input


def test_an_error_that_nobody_foresaw_is_one_line_and_its_traceback_is_in_the_log(fresh: Clone) -> None:
    (fresh / "out").mkdir()
    (fresh / "out/files.json").write_text(json.dumps([{"not": "what standardise writes"}]))
    ended = clean(fresh)
    assert ended.message.startswith("taxi clean failed: KeyError: ")
    assert ended.message.endswith("The traceback is in logs/clean.log.")
    assert len(ended.message.splitlines()) == 1
    assert "Traceback" in fresh.log("clean")


def test_an_output_that_cannot_be_placed_is_named(fresh: Clone) -> None:
    path = write_parquet(yellow_frame(100), fresh / "yellow.parquet")
    listing = fresh.write("inputs.json", listed(path))
    (fresh / "results").write_text("in the way")
    ended = fresh.step("standardise", {"inputs": listing, "standardised": "results/standardised"})
    assert ended.message.startswith("IntegrityError: results/standardised")
    assert "cannot be written" in ended.message
