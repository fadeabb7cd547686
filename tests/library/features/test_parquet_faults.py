"""A Parquet file that is cut, spoilt or lacks a column is refused by name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.library.features.test_columns import FROM_A_FIXTURE, values_of
from whitewater.errors import InputError
from whitewater.features.columns.parquet import read_columns


def read(path: Path, *names: str) -> dict[str, list[Any]]:
    found = read_columns(path, 0, names or ("n", "f", "s"))
    return {name: values_of(column) for name, column in found.items()}


def written(path: Path, **options: Any) -> bytes:
    """Write columns of every physical type, with nulls, dictionaries and several pages, and return the bytes."""
    random = np.random.default_rng(1)
    nulls = random.random(200) < 0.1
    table = pa.table(
        {
            "n": pa.array(random.integers(0, 50, 200), mask=nulls),
            "f": random.integers(0, 100, 200) / 4,
            "s": pa.array(random.choice(["a", "bb", "ccc"], 200), mask=nulls),
        }
    )
    pq.write_table(table, path, max_rows_per_page=60, **options)
    return path.read_bytes()


@settings(max_examples=60, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(data=st.data(), version=st.sampled_from(["1.0", "2.0"]), codec=st.sampled_from(["none", "snappy", "zstd"]))
@pytest.mark.slow
def test_a_spoilt_byte_is_found_by_the_checksum_or_changes_nothing(
    tmp_path: Path, data: st.DataObject, version: str, codec: str
) -> None:
    path = tmp_path / "file"
    whole = written(path, data_page_version=version, compression=codec, write_page_checksum=True)
    expected = read(path)
    end_of_pages = len(whole) - 8 - pq.read_metadata(path).serialized_size
    place, byte = data.draw(st.integers(0, end_of_pages - 1)), data.draw(st.integers(0, 255))
    path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
    try:
        found = read(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert found == expected


@settings(max_examples=60, deadline=None, suppress_health_check=FROM_A_FIXTURE)
@given(data=st.data(), version=st.sampled_from(["1.0", "2.0"]), dictionary=st.booleans())
def test_spoilt_bytes_without_checksum_never_do_worse_than_other_values(
    tmp_path: Path, data: st.DataObject, version: str, dictionary: bool
) -> None:
    path = tmp_path / "file"
    spoilt = bytearray(written(path, data_page_version=version, compression="none", use_dictionary=dictionary))
    end_of_pages = len(spoilt) - 8 - pq.read_metadata(path).serialized_size
    for place in data.draw(st.lists(st.integers(0, end_of_pages - 1), min_size=1, max_size=4)):
        spoilt[place] = data.draw(st.integers(0, 255))
    path.write_bytes(spoilt)
    with suppress(InputError):
        assert {len(column) for column in read(path).values()} == {200}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_cut_off_file_is_refused(tmp_path: Path, share: float) -> None:
    whole = written(tmp_path / "log.parquet")
    (tmp_path / "log.parquet").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match=r"log\.parquet is not a whole Parquet file"):
        read(tmp_path / "log.parquet")


def test_missing_and_repeated_columns_and_files_are_named(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["tip", "tip"])
    pq.write_table(twice, tmp_path / "file")
    with pytest.raises(InputError, match="'tip' is there more than once"):
        read(tmp_path / "file", "tip")
    with pytest.raises(InputError, match="'fare' is not there; the columns are tip, tip"):
        read(tmp_path / "file", "fare")
    with pytest.raises(InputError, match=r"absent\.parquet"):
        read(tmp_path / "absent.parquet", "fare")
