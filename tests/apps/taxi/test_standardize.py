"""Raw files of every era become one schema, value by value as pandas reads them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.apps.taxi.pipeline import run_taxi
from tests.helpers.raw_files import TRIP, write_csv, write_parquet, yellow_frame
from tests.helpers.real_data import needs_real_data, real_data
from whitewater.engines import resolve
from whitewater.engines.config import Engine
from whitewater.errors import ConfigError
from whitewater.tables import raw_files
from whitewater_apps.taxi.config import Standardize
from whitewater_apps.taxi.schema import ISSUES, SERVICES, TRIP_COLUMNS

DEVICE = resolve("cpu")
ENGINES: tuple[Engine, ...] = get_args(Engine)


def standardized(
    path: Path, folder: Path, settings: Mapping[str, object] | None = None, *, engine: Engine = "local"
) -> pd.DataFrame:
    """Return a file's standardized rows, nulls as NA."""
    results = run_taxi(
        [path], zones=path, folder=folder, device=DEVICE, settings={"standardize": settings or {}}, upto="standardize",
        engine=engine,
    )  # fmt: skip
    tables = [pq.read_table(part) for part in sorted(results.folder.glob("standardized/part-*.parquet"))]
    frame: pd.DataFrame = pa.concat_tables(tables).to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def raw_by_pandas(path: Path) -> pd.DataFrame:
    """Read an era's CSV with pandas alone: the header's names for the first fields, text throughout."""
    lines = path.read_text().splitlines()
    names = [name.strip() for name in lines[0].split(",")]
    fields = max(line.count(",") for line in lines[1:]) + 1
    names += [f"pad {number}" for number in range(fields - len(names))]
    return pd.read_csv(path, skiprows=1, names=names, dtype="str", skip_blank_lines=True, keep_default_na=False)


@needs_real_data
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("yellow_tripdata_2009-03", "Fare_Amt Tip_Amt Trip_Pickup_DateTime Payment_Type"),
        ("yellow_tripdata_2010-05", "fare_amount tip_amount pickup_datetime payment_type"),
        ("yellow_tripdata_2012-07", "fare_amount tip_amount pickup_datetime payment_type"),
        ("yellow_tripdata_2014-02", "fare_amount tip_amount pickup_datetime payment_type"),
        ("yellow_tripdata_2015-03", "fare_amount tip_amount tpep_pickup_datetime payment_type"),
        ("yellow_tripdata_2015-10", "fare_amount tip_amount tpep_pickup_datetime payment_type"),
        ("yellow_tripdata_2016-03", "fare_amount tip_amount tpep_pickup_datetime payment_type"),
        ("yellow_tripdata_2016-10", "fare_amount tip_amount tpep_pickup_datetime payment_type"),
        ("yellow_tripdata_2017-06", "fare_amount tip_amount tpep_pickup_datetime payment_type"),
        ("green_tripdata_2013-08", "Fare_amount Tip_amount lpep_pickup_datetime Payment_type"),
        ("green_tripdata_2014-06", "Fare_amount Tip_amount lpep_pickup_datetime Payment_type"),
        ("green_tripdata_2015-03", "Fare_amount Tip_amount lpep_pickup_datetime Payment_type"),
        ("green_tripdata_2015-10", "Fare_amount Tip_amount lpep_pickup_datetime Payment_type"),
        ("green_tripdata_2016-09", "fare_amount tip_amount lpep_pickup_datetime payment_type"),
        ("green_tripdata_2017-05", "fare_amount tip_amount lpep_pickup_datetime payment_type"),
    ],
)
def test_an_era_reads_as_pandas_reads_it(name: str, columns: str, tmp_path: Path) -> None:
    fare, tip, pickup, payment = columns.split()
    path = real_data("taxi", "eras", f"{name}.csv")
    ours, raw = standardized(path, tmp_path), raw_by_pandas(path)
    assert set(ours["service"]) == {SERVICES.index(name.partition("_")[0])}
    np.testing.assert_array_equal(ours["fare_amount"].to_numpy(float), raw[fare].astype(float))
    np.testing.assert_array_equal(ours["tip_amount"].to_numpy(float), raw[tip].astype(float))
    assert ours["pickup_datetime"].astype("str").tolist() == raw[pickup].tolist()
    spelled = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "CSH": 2, "CRD": 1, "CASH": 2, "CAS": 2, "CREDIT": 1, "CRE": 1,
               "NO CHARGE": 3, "NOC": 3, "DIS": 4, "DISPUTE": 4, "NO": 3, "UNK": 5, "NA": 5}  # fmt: skip
    assert ours["payment_type"].tolist() == [spelled[text.strip().upper()] for text in raw[payment]]
    assert not ours["issues"].any()


@needs_real_data
def test_a_real_parquet_month_keeps_its_values_and_its_nulls(tmp_path: Path) -> None:
    path = real_data("taxi", "green_tripdata_2023-12.parquet")
    ours, raw = standardized(path, tmp_path), pd.read_parquet(path)
    assert len(ours) == len(raw) == 64_215
    for name, theirs in {
        "pickup_location_id": "PULocationID",
        "fare_amount": "fare_amount",
        "trip_type": "trip_type",
    }.items():
        pd.testing.assert_series_equal(
            ours[name].astype("Float64"), raw[theirs].astype("Float64"), check_names=False, check_index=False
        )
    assert ours["passenger_count"].isna().sum() == raw["passenger_count"].isna().sum() == 4_912
    assert ours["rate_code"].isna().sum() == (raw["RatecodeID"].isna() | (raw["RatecodeID"] == 99)).sum()
    flags = raw["store_and_fwd_flag"].map({"N": 0, "Y": 1})
    assert ours["store_and_forward"].astype("Float64").equals(flags.astype("Float64"))


def test_all_columns_of_the_era_are_there_with_the_types_of_the_schema(tmp_path: Path) -> None:
    ours = standardized(write_parquet(yellow_frame(500), tmp_path / "month.parquet"), tmp_path / "out")
    for name, kind in ours.dtypes.items():
        expected = "int32" if name == "issues" else TRIP_COLUMNS[str(name)].kind
        assert str(kind.pyarrow_dtype) == {"timestamp": "timestamp[us]", "float64": "double"}.get(expected, expected)


def test_values_that_cannot_be_right_are_null_and_flagged(tmp_path: Path) -> None:
    lines = [
        TRIP,
        TRIP.replace(",141,", ",999,"),
        TRIP.replace(",N,", ",?,"),
        TRIP.replace("1,2019", "1.5,2019", 1),
    ]
    ours = standardized(write_csv(tmp_path / "odd.csv", lines), tmp_path / "out")
    flagged = [[name for bit, name in enumerate(ISSUES) if mask >> bit & 1] for mask in ours["issues"]]
    assert flagged == [[], ["pickup_location_id"], ["store_and_forward"], ["vendor_id"]]
    assert ours["pickup_location_id"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_become_microseconds(unit: Literal["s", "ms", "us", "ns"], tmp_path: Path) -> None:
    frame = yellow_frame(200)
    changed = frame.assign(tpep_pickup_datetime=frame["tpep_pickup_datetime"].dt.as_unit(unit))
    ours = standardized(write_parquet(changed, tmp_path / "month.parquet"), tmp_path / "out")
    assert ours["pickup_datetime"].astype("datetime64[us]").tolist() == frame["tpep_pickup_datetime"].tolist()


def test_block_size_changes_no_row(tmp_path: Path) -> None:
    path = write_parquet(yellow_frame(5_000), tmp_path / "month.parquet", row_group_size=2_000)
    small = standardized(path, tmp_path / "small", {"block_rows": 1_000})
    large = standardized(path, tmp_path / "large")
    pd.testing.assert_frame_equal(small, large)


@pytest.mark.parametrize("engine", ENGINES)
def test_whole_numbers_of_text_are_kept_and_others_flagged(engine: Engine, tmp_path: Path) -> None:
    kept = {"1": 1, "1.0": 1, " 7 ": 7, '"7"': 7, "007": 7, "1e2": 100, "-0.00": 0, "32767": 32767, "": None}
    flagged = ["-1", "1.5", "32768", "1e9", "99999999999999999999", "-0.1", "1e-3"]
    lines = [TRIP.replace(",1,", f",{text},", 1) for text in [*kept, *flagged]]
    assert lines[0] == TRIP
    ours = standardized(write_csv(tmp_path / "odd.csv", lines), tmp_path / "out", engine=engine)
    found = [None if pd.isna(value) else int(value) for value in ours["passenger_count"]]
    assert found == [*kept.values(), *[None] * len(flagged)]
    bit = 1 << ISSUES.index("passenger_count")
    assert ours["issues"].tolist() == [*[0] * len(kept), *[bit] * len(flagged)]


@pytest.mark.parametrize("engine", ENGINES)
def test_types_that_only_arrow_casts_give_the_values_of_usual_ones(engine: Engine, tmp_path: Path) -> None:
    frame = yellow_frame(50)
    usual = pa.Table.from_pandas(frame, preserve_index=False)
    odd = {
        "fare_amount": pa.decimal128(9, 2), "tip_amount": pa.string(), "extra": pa.float32(),
        "PULocationID": pa.string(), "payment_type": pa.uint64(), "tpep_dropoff_datetime": pa.timestamp("ns", "UTC"),
    }  # fmt: skip
    unusual = usual
    for name, type_ in odd.items():
        values = usual[name]
        if pa.types.is_timestamp(type_):
            values = pc.assume_timezone(values, "America/New_York")
        elif pa.types.is_decimal(type_):
            values = pc.round(values, 2)
        unusual = unusual.set_column(usual.schema.get_field_index(name), name, values.cast(type_, safe=False))
    unusual = unusual.set_column(6, "store_and_fwd_flag", usual["store_and_fwd_flag"].dictionary_encode())
    pq.write_table(unusual, tmp_path / "odd.parquet", row_group_size=20)
    made = standardized(tmp_path / "odd.parquet", tmp_path / "odd", engine=engine)
    expected = standardized(write_parquet(frame, tmp_path / "usual.parquet"), tmp_path / "usual", engine=engine)
    pd.testing.assert_frame_equal(made, expected, rtol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_of_codes_without_any_and_lines_that_are_all_malformed(engine: Engine, tmp_path: Path) -> None:
    blank = write_csv(tmp_path / "blank.csv", [TRIP.replace(",N,", ",,")] * 3)
    assert standardized(blank, tmp_path / "blank", engine=engine)["store_and_forward"].isna().all()
    torn = write_csv(tmp_path / "torn.csv", [TRIP[:20]] * 1000 + [TRIP])
    settings = {"block_rows": 1000, "max_malformed_fraction": 1}
    with mock.patch.object(raw_files, "BYTES_A_ROW", 2):
        assert len(standardized(torn, tmp_path / "torn", settings, engine=engine)) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("write", [write_parquet, lambda frame, path: frame.to_csv(path, index=False) or path])
def test_times_of_a_declared_form_are_those_of_iso(engine: Engine, write: Any, tmp_path: Path) -> None:
    form, frame = "%m/%d/%Y %I:%M:%S %p", yellow_frame(48)
    times = {name: frame[name].dt.floor("s") for name in ("tpep_pickup_datetime", "tpep_dropoff_datetime")}
    american = {name: each.dt.strftime(form) for name, each in times.items()}
    path = write(frame.assign(**american), tmp_path / "american")
    made = standardized(path, tmp_path / "made", {"datetime_format": form}, engine=engine)
    expected = standardized(write_parquet(frame.assign(**times), tmp_path / "iso"), tmp_path / "expected")
    assert made["pickup_datetime"].equals(expected["pickup_datetime"])
    assert made["dropoff_datetime"].equals(expected["dropoff_datetime"])


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%Y %I:%M:%S %p", "%Y-%m-%dT%H:%M:%S%z", ""])
def test_a_form_that_tells_times_is_accepted(form: str) -> None:
    assert Standardize(datetime_format=form).datetime_format == form


@pytest.mark.parametrize("form", ["%m/%d/%Y %I:%M", "%H:%M", "%Q", "day"])
def test_a_form_that_tells_no_day_or_half_an_hour_of_the_clock_is_refused(form: str) -> None:
    with pytest.raises(ConfigError, match="datetime_format"):
        Standardize(datetime_format=form)


def test_the_catalog_tells_of_each_member_of_a_zip_file_and_of_its_origin(tmp_path: Path) -> None:
    text = write_csv(tmp_path / "plain.csv", [TRIP, TRIP[:40]] * 2)
    path = tmp_path / "both.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.write(text, name)
    settings = {"standardize": {"max_malformed_fraction": 1}}
    catalog = run_taxi(
        [path], zones=path, folder=tmp_path / "out", device=DEVICE, settings=settings, upto="standardize"
    ).catalog
    assert [(each["path"], each["form"], each["rows"], each["malformed"]) for each in catalog] == [
        (f"{path}/a.csv", "zip", 4, 2), (f"{path}/b.csv", "zip", 4, 2)
    ]  # fmt: skip
    assert [each["origin"].rpartition("/")[2] for each in catalog] == ["a.csv", "b.csv"]
