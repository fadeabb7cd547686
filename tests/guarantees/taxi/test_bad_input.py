"""Bad input ends a run with one message that names the file and the remedy, or goes to quarantine."""

import gzip
import http.server
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.guarantees.running import Clone, Ended, leftovers
from tests.helpers.raw_files import TRIP, YELLOW_2019, write_csv, write_parquet, write_zones, yellow_frame

FETCHED = "data/taxi/inputs.json"
STANDARDIZED = "results/taxi/cpu/standardized"
QUALITY = "results/taxi/cpu/quality.json"


def fetch(clone: Clone, fetched: dict[str, Any], **variables: str) -> Ended:
    """Run `taxi` until the trips are found or downloaded."""
    return clone.run("taxi", {"fetch": fetched}, FETCHED, **variables)


def standardize(clone: Clone, *names: str, target: str = STANDARDIZED, **settings: Any) -> Ended:
    """Run `taxi` on files of the clone until they are of one schema, or until a later target."""
    write_zones(clone / "zones.csv")
    fetched = {"source": "files", "files": {"paths": names, "zones": "zones.csv"}}
    return clone.run("taxi", {"fetch": fetched, "standardize": settings}, target)


def assert_refused(clone: Clone, ended: Ended, *parts: str) -> None:
    """Check that a run failed with one message with these parts, that the log has the traceback, and no result."""
    assert ended.message.startswith("InputError: ")
    for part in parts:
        assert part in ended.message
    assert "Traceback" in "".join(path.read_text() for path in (clone / "logs").rglob("*.log"))
    assert not [path for path in (clone / "results").rglob("[!.]*") if path.is_file()]
    assert leftovers(clone) == []


# ---- what fetch is told to get


def test_a_missing_file_stops_the_workflow_with_its_name(fresh: Clone) -> None:
    ended = fresh.run("taxi", {"fetch": {"source": "files", "files": {"paths": ["yelow_2019-03.parquet"]}}})
    assert ended.status == 1
    assert "Traceback" not in ended.terminal
    assert [message.splitlines()[0] for message in ended.messages] == [
        "InputError: yelow_2019-03.parquet does not exist. Check taxi.fetch.files."
    ]
    assert "logs/taxi/fetch.log (check log file(s) for error details)" in ended.terminal
    assert "Traceback" in (fresh / "logs/taxi/fetch.log").read_text()
    assert not list((fresh / "results").rglob("*"))


@pytest.mark.parametrize("path", ["nowhere/*.parquet", "data"])
def test_a_path_that_names_no_file_is_refused(fresh: Clone, path: str) -> None:
    (fresh / "data").mkdir()
    ended = fetch(fresh, {"source": "files", "files": {"paths": [path]}})
    assert_refused(fresh, ended, path)
    assert not (fresh / FETCHED).exists()


def test_a_zone_table_that_is_none_is_refused(fresh: Clone) -> None:
    write_csv(fresh / "trips.csv", [TRIP])
    (fresh / "zones.csv").write_text("LocationID,Zone\n1,Newark\n")
    ended = fetch(fresh, {"source": "files", "files": {"paths": ["trips.csv"], "zones": "zones.csv"}})
    assert_refused(fresh, ended, "zones.csv", "Borough")
    assert not (fresh / FETCHED).exists()


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
    ended = fetch(fresh, {"source": "tlc", "tlc": tlc})
    assert_refused(fresh, ended, f"{server}/{asked}/trip-data/yellow_tripdata_2019-03.parquet", said)
    assert not (fresh / FETCHED).exists()


def test_a_server_that_does_not_answer_is_named(fresh: Clone) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        ended = fetch(fresh, {"source": "tlc", "tlc": {"base_url": base_url, "retries": 0}})
    assert_refused(fresh, ended, base_url, "could not be downloaded in 1 tries", "Connection refused")
    assert not (fresh / FETCHED).exists()


def test_a_bucket_that_does_not_have_the_object_is_named(fresh: Clone, server: str) -> None:
    ended = fetch(
        fresh,
        {"source": "files", "files": {"paths": ["gs://no-such-bucket/yellow.parquet"]}},
        STORAGE_EMULATOR_HOST=f"{server}/404",
        # The server speaks no gRPC, by which gcsfs would ask for the kind of the bucket.
        GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT="false",
    )
    assert_refused(fresh, ended, "gs://no-such-bucket/yellow.parquet")
    assert not (fresh / FETCHED).exists()


# ---- what is in the files


def truncate_parquet(path: Path) -> None:
    write_parquet(yellow_frame(2_000), path)
    path.write_bytes(path.read_bytes()[:-100])


def damage_pages(path: Path) -> None:
    write_parquet(yellow_frame(2_000), path)
    data = bytearray(path.read_bytes())
    data[4:2_000] = b"\xff" * 1_996
    path.write_bytes(data)


def truncate_gzip(path: Path) -> None:
    whole = gzip.compress("\n".join([YELLOW_2019, *[TRIP] * 5_000]).encode())
    path.write_bytes(whole[: len(whole) // 2])


def rename_columns(path: Path) -> None:
    header = YELLOW_2019.replace("congestion_surcharge", "congestion_charge").replace("extra", "moon_phase")
    write_csv(path, [TRIP], header=header)


def write_for_hire(path: Path) -> None:
    header = "dispatching_base_num,pickup_datetime,dropOff_datetime,PUlocationID,DOlocationID,SR_Flag"
    write_csv(path, ["B00001,2019-03-01 00:00:00,2019-03-01 00:10:00,1,2,"], header=header)


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("truncated.parquet", truncate_parquet, ["truncated", "Download or write it again"]),
        ("damaged.parquet", damage_pages, []),
        ("truncated.csv.gz", truncate_gzip, ["truncated"]),
        ("empty.csv", lambda path: path.write_bytes(b""), []),
        ("binary.csv", lambda path: path.write_bytes(b"\x00\x01\x02\x03" * 100), []),
        ("bytes.csv", lambda path: path.write_bytes(b"\xff\xfe\xfd"), []),
        (
            "renamed.csv",
            rename_columns,
            ["'congestion_charge' (did you mean 'congestion_surcharge'?)", "'moon_phase'", "Rename them"],
        ),
        ("for_hire.csv", write_for_hire, ["have no fares", "yellow, green or fhvhv"]),
    ],
)
def test_of_two_files_the_one_that_cannot_be_used_is_named_with_its_fault(
    fresh: Clone, name: str, spoil: Callable[[Path], object], said: list[str]
) -> None:
    write_csv(fresh / "good.csv", [TRIP])
    spoil(fresh / name)
    ended = standardize(fresh, "good.csv", name)
    assert_refused(fresh, ended, name, *said)
    assert "good.csv" not in ended.message


def test_a_torn_row_goes_to_quarantine_as_it_stood(fresh: Clone) -> None:
    torn = TRIP[: len(TRIP) // 2]
    write_csv(fresh / "yellow.csv", [*[TRIP] * 500, torn, *[TRIP] * 499])
    ended = standardize(fresh, "yellow.csv", target=QUALITY)
    assert ended.status == 0, ended.terminal
    rejected = pd.read_parquet(fresh / "results/taxi/cpu/quarantine")
    assert rejected["raw_line"].tolist() == [torn]
    assert [list(reasons) for reasons in rejected["reasons"]] == [["malformed_line"]]
    quality = fresh.json(QUALITY)
    assert quality["totals"] == {"rows_in": 1_000, "rows_out": 999, "quarantined": 1}
    assert quality["files"][0]["malformed"] == 1


def test_a_file_with_too_many_torn_rows_is_refused(fresh: Clone) -> None:
    write_csv(fresh / "yellow.csv", [TRIP, TRIP[:40]] * 50)
    ended = standardize(fresh, "yellow.csv", max_malformed_fraction=0.1)
    assert_refused(fresh, ended, "yellow.csv", "50 of 100", "taxi.standardize.max_malformed_fraction")


# ---- what is not the fault of the input


def test_an_error_that_nobody_foresaw_is_one_line_and_its_traceback_is_in_the_log(fresh: Clone) -> None:
    # Python runs this module as it starts.
    (fresh / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('/.snakemake/scripts/' in word for word in sys.orig_argv):\n"
        "    import numpy\n"
        "    numpy.random.default_rng = lambda *_: {}['what nobody foresaw']\n"
    )
    ended = fetch(fresh, {}, PYTHONPATH=str(fresh.folder))
    assert ended.message.startswith("taxi fetch failed: KeyError: 'what nobody foresaw'")
    assert ended.message.endswith("The traceback is in logs/taxi/fetch.log.")
    assert len(ended.message.splitlines()) == 1
    assert "Traceback" in (fresh / "logs/taxi/fetch.log").read_text()
    assert not (fresh / FETCHED).exists()


def test_an_output_that_cannot_be_placed_is_named(fresh: Clone) -> None:
    # By hand: Snakemake makes the folders of all outputs itself.
    (fresh / "results").write_text("in the way")
    ended = fresh.step("fetch", {"inputs": "results/inputs.json", "zones": "zones.csv"})
    assert ended.message.startswith("IntegrityError: results/inputs.json")
    assert "cannot be written" in ended.message
