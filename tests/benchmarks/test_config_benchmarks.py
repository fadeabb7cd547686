"""The configuration of the published tables: one section a row, each with a size of its own."""

from benchmarks.config import Benchmarks, Row
from benchmarks.published.row import NAMES, load
from whitewater.config.resolve import resolve


def test_rows_and_sections_have_the_same_names() -> None:
    assert list(NAMES) == [name for name, field in Benchmarks.model_fields.items() if isinstance(field.default, Row)]


def test_rows_are_numbered_in_their_order() -> None:
    assert [load(name).id for name in NAMES] == [f"R{number}" for number in range(1, 22)]
    assert [load(name).name for name in NAMES] == list(NAMES)


def test_a_scale_for_all_rows_leaves_those_alone_that_set_their_own() -> None:
    section = resolve({"benchmarks": {"scale": "1", "frame": {"scale": 0.5}}}, ["benchmarks"])["benchmarks"]
    assert section["frame"]["scale"] == 0.5
    assert section["csv_read"]["scale"] == section["svd_zarr"]["scale"] == 1.0


def test_a_row_that_sets_one_key_keeps_its_other_defaults() -> None:
    section = resolve({"benchmarks": {"frame": {"seconds": 1}}}, ["benchmarks"])["benchmarks"]
    assert section["frame"] == {**Benchmarks().frame.model_dump(), "seconds": 1.0}
    assert section["frame"]["scale"] < 1
