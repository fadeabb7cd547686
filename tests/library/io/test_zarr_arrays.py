"""Zarr arrays read equal to what zarr-python wrote, and nothing that is missing or damaged is filled in."""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

from whitewater.errors import InputError, IntegrityError
from whitewater.io.zarr_arrays import Array, open_group

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])
NUMBERS = ["i1", "u1", "<i4", ">i4", "<f8", ">u2", "?", "c8"]
COMPRESSORS_OF_FORMAT_2 = [
    None,
    numcodecs.Blosc("zstd", 5, numcodecs.Blosc.BITSHUFFLE),
    numcodecs.Blosc("lz4", 1, numcodecs.Blosc.NOSHUFFLE),
    numcodecs.Zstd(1),
    numcodecs.GZip(1),
    numcodecs.Zlib(1),
    numcodecs.LZ4(),
    numcodecs.BZ2(1),
]
COMPRESSORS_OF_FORMAT_3: list[list[Any]] = [
    [],
    [BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")],
    [ZstdCodec(level=1, checksum=True)],
    [ZstdCodec(level=1)],
    [GzipCodec(level=1)],
    [Crc32cCodec()],
    [GzipCodec(level=1), Crc32cCodec()],
]
Selection = tuple[slice, ...]


def write(store: Path, values: NDArray[Any], *, zarr_format: int = 3, name: str = "values", **options: Any) -> Path:
    """Write an array with zarr-python, every chunk of it, and return the store's path."""
    options = {"config": {"write_empty_chunks": True}, "chunks": values.shape, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns of data types and codecs that only it knows
        group = zarr.open_group(store, mode="a", zarr_format=zarr_format)  # type: ignore[arg-type]
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, **options)
        if values.size:
            array[...] = values
    return store


def open_array(store: Path, name: str) -> Array:
    return open_group(store).array(name)


def some(shape: tuple[int, ...], dtype: str = "i1") -> NDArray[Any]:
    values = np.random.default_rng(3).integers(0, 100, shape)
    return values.astype(dtype)


@st.composite
def shapes(draw: st.DrawFn, minimum: int = 0) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Selection]:
    """Shape, chunks, chunks in a shard, and a selection."""
    dimensions = draw(st.integers(minimum, 3))
    shape = tuple(draw(st.integers(0 if axis else 1, 9)) for axis in range(dimensions))
    chunks = tuple(draw(st.integers(1, 5)) for _ in shape)
    shards = tuple(draw(st.integers(1, 3)) for _ in shape)
    bounds = [sorted(draw(st.tuples(st.integers(-size, size), st.integers(-size, size)))) for size in shape]
    selection = tuple(slice(*each) for each in bounds)[: draw(st.integers(0, dimensions))]
    return shape, chunks, shards, selection


def check(values: NDArray[Any], selection: Selection, **options: Any) -> None:
    """Write and read back: all of it, and a selection."""
    with tempfile.TemporaryDirectory() as folder:
        array = open_array(write(Path(folder, "store"), values, **options), "values")
        np.testing.assert_array_equal(array.read(), values, strict=array.dtype == values.dtype)
        np.testing.assert_array_equal(array.read(selection), values[selection])
        assert array.shape == values.shape
        assert array.dtype.isnative


@settings(max_examples=40, deadline=None)
@given(
    shapes(), st.sampled_from(NUMBERS), st.sampled_from(COMPRESSORS_OF_FORMAT_2), st.sampled_from("CF"), st.booleans()
)
def test_format_2_reads_as_written(shapes: Any, dtype: str, compressor: Any, order: str, nested: bool) -> None:
    shape, chunks, _, selection = shapes
    encoding = {"name": "v2", "separator": "/" if nested else "."}
    check(some(shape, dtype), selection, zarr_format=2, chunks=chunks, compressors=compressor, order=order,
          chunk_key_encoding=encoding)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(shapes(), st.sampled_from(NUMBERS), st.sampled_from(COMPRESSORS_OF_FORMAT_3), st.data())
def test_format_3_reads_as_written(shapes: Any, dtype: str, compressors: list[Any], data: st.DataObject) -> None:
    shape, chunks, _, selection = shapes
    filters = [
        TransposeCodec(order=order) for order in data.draw(st.lists(st.permutations(range(len(shape))), max_size=2))
    ]
    encoding = {"name": data.draw(st.sampled_from(["default", "v2"])), "separator": data.draw(st.sampled_from("/."))}
    serializer = BytesCodec(endian=data.draw(st.sampled_from(["little", "big"])))
    check(some(shape, dtype), selection, chunks=chunks, compressors=compressors, filters=filters if shape else [],
          serializer=serializer, chunk_key_encoding=encoding)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(shapes(minimum=1), st.sampled_from(NUMBERS), st.sampled_from(COMPRESSORS_OF_FORMAT_3), st.data())
def test_shards_read_as_written(shapes: Any, dtype: str, compressors: list[Any], data: st.DataObject) -> None:
    shape, chunks, shards, selection = shapes
    order = data.draw(st.permutations(range(len(shape))))
    inner = [TransposeCodec(order=order)] if data.draw(st.booleans()) else []
    location: Any = data.draw(st.sampled_from(["start", "end"]))
    codecs: Any = data.draw(
        st.sampled_from([[BytesCodec(), Crc32cCodec()], [BytesCodec()], [BytesCodec(endian="big")]])
    )
    codec = ShardingCodec(chunk_shape=chunks, codecs=[*inner, BytesCodec(), *compressors], index_codecs=codecs,
                          index_location=location)  # fmt: skip
    outer = tuple(chunk * count for chunk, count in zip(chunks, shards, strict=True))
    check(some(shape, dtype), selection, chunks=outer, serializer=codec, compressors=[], filters=[])


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
@pytest.mark.parametrize(
    "options",
    [
        {"filters": [TransposeCodec(order=(1, 0))]},
        {"compressors": [GzipCodec(level=1)]},
        {"serializer": ShardingCodec(chunk_shape=(4, 4), codecs=[ShardingCodec(chunk_shape=(1, 2))])},
    ],
    ids=["transposed", "compressed", "nested"],
)
def test_shards_in_which_an_absent_chunk_would_go_unnoticed_are_refused(tmp_path: Path, options: Any) -> None:
    codec = ShardingCodec(chunk_shape=(2, 2))
    store = write(tmp_path / "store", some((8, 8)),
                  **{"chunks": (4, 8), "serializer": codec, "compressors": [], "filters": [], **options})  # fmt: skip
    with pytest.raises(InputError, match=r"array values of .* cannot be read: .*plain shards"):
        open_array(store, "values")


def test_a_codec_that_only_zarr_python_knows_is_left_to_it() -> None:
    from zarr.codecs.numcodecs import Zlib  # type: ignore[import-not-found,unused-ignore]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(some((9, 9)), (slice(1, 5),), chunks=(4, 8), compressors=[Zlib(level=1)])
        codec = ShardingCodec(chunk_shape=(2, 4), codecs=[BytesCodec(), Zlib(level=1)])
        check(some((9, 9)), (slice(1, 5),), chunks=(4, 8), serializer=codec, compressors=[], filters=[])


@pytest.mark.parametrize(
    "filters", [[numcodecs.Delta("i4")], [numcodecs.FixedScaleOffset(offset=0, scale=1, dtype="i4")]]
)
def test_filters_of_format_2_are_undone(filters: list[Any]) -> None:
    check(some((9, 5), "i4"), (slice(2, 7),), zarr_format=2, chunks=(4, 3), filters=filters)


@FORMATS
@pytest.mark.parametrize("dtype", [np.dtypes.StringDType(), "U7", "S4"])
def test_text_is_read_as_str(tmp_path: Path, zarr_format: int, dtype: Any) -> None:
    texts = ["A", "", "CGTA", "x", "T", "rs1"] + ([] if dtype == "S4" else ["NA1é"])
    values = np.array(texts, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = open_array(write(tmp_path / "store", values, zarr_format=zarr_format, chunks=(4,)), "values")
        found = array.read()
    assert found.tolist() == texts
    assert {type(each) for each in found.tolist()} == {str}
    assert found.dtype == array.dtype
    assert array.read((slice(2, 5),)).tolist() == texts[2:5]


def test_fixed_width_bytes_are_utf_8(tmp_path: Path) -> None:
    values = np.array([["Jürgen".encode(), b"A"], [b"", b"C"]])
    store = write(tmp_path / "store", values, zarr_format=2, chunks=(1, 2))
    assert open_array(store, "values").read().tolist() == [["Jürgen", "A"], ["", "C"]]


def test_fixed_width_bytes_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    store = write(tmp_path / "store", np.array([b"J\xfcrgen"]), zarr_format=2)
    with pytest.raises(IntegrityError, match=r"store: values .* not UTF-8"):
        open_array(store, "values").read()


@FORMATS
def test_threads_read_the_same_as_one(tmp_path: Path, zarr_format: int) -> None:
    values = some((60, 40, 2))
    array = open_array(write(tmp_path / "store", values, zarr_format=zarr_format, chunks=(7, 9, 2)), "values")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda start: array.read((slice(start, start + 11),)), range(49)))
    for start, part in enumerate(found):
        np.testing.assert_array_equal(part, values[start : start + 11])


@FORMATS
@pytest.mark.parametrize("consolidated", [False, True])
def test_a_group_tells_its_arrays_and_attributes(tmp_path: Path, zarr_format: int, consolidated: bool) -> None:
    store = tmp_path / "store"
    for name in ("2L/calldata/GT", "samples", "2L/variants/POS"):
        write(store, some((4, 2)), zarr_format=zarr_format, name=name)
    zarr.open_group(store, mode="a").attrs["vcf_zarr_version"] = "0.5"
    if consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(store)
    group = open_group(str(store))
    assert group.names() == ["2L/calldata/GT", "2L/variants/POS", "samples"]
    assert group.attributes == {"vcf_zarr_version": "0.5"}
    assert "samples" in group
    assert "2L/calldata" not in group
    assert "2R" not in group
    assert open_array(store / "2L", "variants/POS").read().shape == (4, 2)
    assert open_group(f"file://{store}").name == str(store)


def test_an_array_can_be_sent_to_another_process(tmp_path: Path) -> None:
    values = some((9, 5))
    array = open_array(write(tmp_path / "store", values, chunks=(4, 2), shards=(8, 4)), "values")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)).read(), values)  # noqa: S301


def test_slices_with_steps_are_refused(tmp_path: Path) -> None:
    array = open_array(write(tmp_path / "store", some((9,))), "values")
    with pytest.raises(ValueError, match="slices of step 1"):
        array.read((slice(0, 9, 2),))


# What is missing or damaged

CHUNKED = pytest.mark.parametrize(
    ("zarr_format", "key"), [(2, "values/1.0"), (3, "values/c/1/0")], ids=["format 2", "format 3"]
)


def chunked(tmp_path: Path, zarr_format: int, **options: Any) -> Path:
    """Write an array of 3 x 2 chunks."""
    return write(tmp_path / "store", some((12, 10)), zarr_format=zarr_format, **{"chunks": (4, 5), **options})


@CHUNKED
@pytest.mark.parametrize("consolidated", [False, True])
def test_a_chunk_that_is_not_stored_stops_the_read(
    tmp_path: Path, zarr_format: int, key: str, consolidated: bool
) -> None:
    store = chunked(tmp_path, zarr_format)
    if consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(store)
    (store / key).unlink()
    array = open_array(store, "values")
    with pytest.raises(IntegrityError, match=rf"store/{key} is not stored.*WRITE_EMPTY_CHUNKS"):
        array.read()
    np.testing.assert_array_equal(array.read((slice(0, 4),)), some((12, 10))[:4])


@FORMATS
def test_chunks_of_fill_values_that_a_writer_omits_are_not_made_up(tmp_path: Path, zarr_format: int) -> None:
    store = write(tmp_path / "store", np.zeros((4, 4), "i1"), zarr_format=zarr_format, chunks=(2, 2),
                  config={"write_empty_chunks": False}, fill_value=0)  # fmt: skip
    with pytest.raises(IntegrityError, match=r"store/values/(c/)?\d[./]\d is not stored.*WRITE_EMPTY_CHUNKS=True"):
        open_array(store, "values").read()


@FORMATS
def test_nothing_is_read_of_an_empty_selection(tmp_path: Path, zarr_format: int) -> None:
    store = chunked(tmp_path, zarr_format)
    array = open_array(store, "values")
    for path in (store / "values").rglob("*"):
        if path.is_file() and path.suffix != ".json" and not path.name.startswith("."):
            path.unlink()
    assert array.read((slice(3, 3),)).shape == (0, 10)


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("selection", [(), (slice(0, 5), slice(0, 4))], ids=["whole shard", "part of a shard"])
def test_an_inner_chunk_that_a_shard_lacks_stops_the_read(tmp_path: Path, location: Any, selection: Selection) -> None:
    values = np.ones((8, 8), "i1")
    values[2:4, 2:4] = 0  # the fill value: this inner chunk is omitted
    codec = ShardingCodec(chunk_shape=(2, 2), index_location=location)
    store = write(tmp_path / "store", values, chunks=(4, 8), serializer=codec, compressors=[], filters=[], fill_value=0,
                  config={"write_empty_chunks": False})  # fmt: skip
    array = open_array(store, "values")
    with pytest.raises(IntegrityError, match=r"store/values/c/0/0 is a shard without its inner chunk \(1, 1\)"):
        array.read(selection)
    assert array.read((slice(4, 8),)).min() == 1


@CHUNKED
def test_only_an_array_that_is_named_as_filled_is_filled(tmp_path: Path, zarr_format: int, key: str) -> None:
    store = chunked(tmp_path, zarr_format)
    (store / key).unlink()
    as_zarr_reads = zarr.open_group(store, mode="r")["values"]
    np.testing.assert_array_equal(open_group(store, filled=["values"]).array("values").read(), as_zarr_reads)
    with pytest.raises(IntegrityError, match="not stored"):
        open_group(store, filled=["others"]).array("values").read()


def test_a_lost_shard_is_never_filled(tmp_path: Path) -> None:
    store = write(tmp_path / "store", some((8, 8)), chunks=(2, 2), shards=(4, 8))
    (store / "values/c/1/0").unlink()
    with pytest.raises(IntegrityError, match="not stored"):
        open_group(store, filled=["values"]).array("values").read()


def test_a_shard_that_is_not_stored_stops_a_read_of_a_part_of_it(tmp_path: Path) -> None:
    store = write(tmp_path / "store", some((8, 8)), chunks=(2, 2), shards=(4, 8))
    (store / "values/c/1/0").unlink()
    with pytest.raises(IntegrityError, match=r"store/values/c/1/0 is not stored"):
        open_array(store, "values").read((slice(4, 5), slice(0, 2)))


@CHUNKED
@pytest.mark.parametrize("compressed", [True, False])
def test_a_chunk_that_was_cut_or_grew_stops_the_read(
    tmp_path: Path, zarr_format: int, key: str, compressed: bool
) -> None:
    store = chunked(tmp_path, zarr_format, **({} if compressed else {"compressors": None}))
    whole = (store / key).read_bytes()
    for data in (whole[:-1], whole[:7], b"", whole + b"x"):
        (store / key).write_bytes(data)
        with pytest.raises(IntegrityError, match=rf"store/{key} is damaged"):
            open_array(store, "values").read()


@pytest.mark.parametrize("compressor", COMPRESSORS_OF_FORMAT_2, ids=str)
def test_a_whole_chunk_of_another_length_stops_the_read(tmp_path: Path, compressor: Any) -> None:
    store = chunked(tmp_path, 2, compressors=compressor)
    for length in (19, 21, 0):
        values = some((length,))
        (store / "values/1.0").write_bytes(compressor.encode(values) if compressor else values.tobytes())
        with pytest.raises(IntegrityError, match=r"store/values/1\.0 is damaged"):
            open_array(store, "values").read()


@pytest.mark.parametrize(
    ("zarr_format", "compressors"),
    [(2, numcodecs.GZip(1)), (2, numcodecs.Zstd(1, checksum=True)), (3, [GzipCodec()]), (3, [Crc32cCodec()]),
     (3, [ZstdCodec(level=1, checksum=True)]), (3, [BloscCodec(), Crc32cCodec()])],
    ids=["gzip", "zstd", "gzip 3", "crc32c", "zstd 3", "blosc and crc32c"],
)  # fmt: skip
def test_every_changed_byte_is_noticed_where_the_codec_has_a_checksum(
    tmp_path: Path, zarr_format: int, compressors: Any
) -> None:
    store = chunked(tmp_path, zarr_format, compressors=compressors)
    path = store / ("values/1.0" if zarr_format == 2 else "values/c/1/0")
    whole, array, values, harmless = path.read_bytes(), open_array(store, "values"), some((12, 10)), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(IntegrityError):
            # gzip's time stamp and the like mean nothing, and may change.
            np.testing.assert_array_equal(array.read(), values)
            harmless += 1
    assert harmless < 12


@given(st.binary(min_size=0, max_size=80), st.sampled_from(COMPRESSORS_OF_FORMAT_2))
@settings(max_examples=60, deadline=None)
def test_garbage_is_damage_or_of_the_right_length(data: bytes, compressor: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = write(Path(folder, "store"), some((4, 5)), zarr_format=2, compressors=compressor)
        (store / "values/0.0").write_bytes(data)
        with suppress(IntegrityError):
            assert open_array(store, "values").read().shape == (4, 5)


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("selection", [(), (slice(0, 2), slice(0, 2))], ids=["whole shard", "part of a shard"])
def test_a_damaged_shard_stops_the_read(tmp_path: Path, location: Any, selection: Selection) -> None:
    codec = ShardingCodec(chunk_shape=(2, 2), index_location=location, codecs=[BytesCodec(), Crc32cCodec()])
    store = write(tmp_path / "store", some((4, 8)), serializer=codec, compressors=[], filters=[])
    path, array = store / "values/c/0/0", open_array(store, "values")
    whole = path.read_bytes()
    for data in (whole[:-70], whole[:10], b"", b"\0" * len(whole), bytes(byte ^ 0x11 for byte in whole)):
        path.write_bytes(data)
        with pytest.raises(IntegrityError, match=r"store/values/c/0/0 is damaged"):
            array.read(selection)


def test_an_inner_chunk_without_bytes_is_damage(tmp_path: Path) -> None:
    codec = ShardingCodec(chunk_shape=(2, 2), index_codecs=[BytesCodec()])
    store = write(tmp_path / "store", some((4, 4)), serializer=codec, compressors=[], filters=[])
    path = store / "values/c/0/0"
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))  # the last length of the index
    for selection in ((), (slice(2, 4), slice(2, 4))):
        with pytest.raises(IntegrityError, match=r"store/values/c/0/0 is damaged: an inner chunk has no bytes"):
            open_array(store, "values").read(selection)


@FORMATS
def test_damaged_text_stops_the_read(tmp_path: Path, zarr_format: int) -> None:
    values = np.array(["S1", "S2", "sample"], np.dtypes.StringDType())
    store = write(tmp_path / "store", values, zarr_format=zarr_format, compressors=None)
    path = store / ("values/0" if zarr_format == 2 else "values/c/0")
    whole = path.read_bytes()
    for data in (whole[:-3], b"\x02" + whole[1:], whole[:4] + b"\xff\xff\xff\xff" + whole[8:], b""):
        path.write_bytes(data)
        with pytest.raises(IntegrityError, match=r"store/values/(c/)?0 is damaged"):
            open_array(store, "values").read()


# What is not understood


def edited(store: Path, key: str, **changes: Any) -> Path:
    path = store / key
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return store


@FORMATS
@pytest.mark.parametrize(
    "garbage",
    [b"{", b"[1]", b"\xff\xfe", b'"text"', b"{}", b'{"zarr_format": 7}', b'{"zarr_format": 2, "shape": "x"}'],
)
def test_metadata_that_is_garbage_is_refused(tmp_path: Path, zarr_format: int, garbage: bytes) -> None:
    store = chunked(tmp_path, zarr_format)
    (store / ("values/.zarray" if zarr_format == 2 else "values/zarr.json")).write_bytes(garbage)
    with pytest.raises(InputError, match="values"):
        open_array(store, "values")


@pytest.mark.parametrize(
    ("zarr_format", "changes"),
    [(2, {"compressor": {"id": "nonesuch"}}), (2, {"chunks": [0, 5]}), (2, {"shape": [-1, 5]}), (2, {"dtype": "?9"}),
     (2, {"filters": [{"id": "pickle"}]}), (3, {"codecs": []}), (3, {"codecs": [{"name": "nonesuch"}]}),
     (3, {"chunk_grid": {"name": "other"}}), (3, {"data_type": "int5"}), (3, {"chunk_key_encoding": {"name": "x"}}),
     (3, {"codecs": [{"name": "numcodecs.pickle"}]}), (3, {"shape": [12]})],
    ids=str,
)  # fmt: skip
def test_metadata_that_is_not_understood_is_refused(tmp_path: Path, zarr_format: int, changes: dict[str, Any]) -> None:
    key = "values/.zarray" if zarr_format == 2 else "values/zarr.json"
    store = edited(chunked(tmp_path, zarr_format), key, **changes)
    with pytest.raises(InputError, match="array values of"):
        open_array(store, "values")


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    store = chunked(tmp_path, 2)
    edited(store, "values/.zarray", dtype="|O", fill_value=None, filters=[{"id": "pickle", "protocol": 5}])
    with pytest.raises(InputError, match=r"array values of .*pickle"):
        open_array(store, "values")


def spoil_nothing(store: Path) -> None:
    shutil.rmtree(store)


def spoil_root(store: Path) -> None:
    (store / "zarr.json").unlink()


def spoil_group(store: Path) -> None:
    (store / "zarr.json").write_bytes((store / "values/zarr.json").read_bytes())


@pytest.mark.parametrize("spoil", [spoil_nothing, spoil_root, spoil_group])
def test_what_is_no_group_is_refused(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    store = chunked(tmp_path, 3)
    spoil(store)
    with pytest.raises(InputError, match="store is not a Zarr store or a group in one"):
        open_group(store)


@FORMATS
@pytest.mark.parametrize("name", ["other", "values/c", "../store/values", "/values", "", "values/", "a//b"])
def test_what_is_not_an_array_of_the_store_is_refused(tmp_path: Path, zarr_format: int, name: str) -> None:
    with pytest.raises(InputError, match="store"):
        open_array(chunked(tmp_path, zarr_format), name)


def test_an_unknown_protocol_is_refused_without_secrets() -> None:
    with pytest.raises(InputError, match="protocol ftp") as raised:
        open_group("ftp://user:secret@host/store?key=secret")
    assert "secret" not in str(raised.value)
