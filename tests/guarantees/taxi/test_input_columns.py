"""What the columns of a raw file must tell, in CSV and in Parquet alike: each thing once, and one service."""

import pyarrow as pa
import pyarrow.parquet as pq

from tests.guarantees.running import Clone
from tests.guarantees.taxi.inputs import assert_refused, cleaned, run, trips, write_trips
from tests.helpers.raw_files import YELLOW_2019, write_csv, yellow_frame

YELLOW_2009 = (
    "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,Start_Lon,Start_Lat,"
    "Rate_Code,store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,surcharge,mta_tax,Tip_Amt,Tolls_Amt,Total_Amt"
)
YELLOW_2014 = (
    "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, rate_code, payment_type, "
    "fare_amount, surcharge, mta_tax, tip_amount, tolls_amount, total_amount"
)
GREEN = (
    "VendorID,lpep_pickup_datetime,lpep_dropoff_datetime,store_and_fwd_flag,RatecodeID,PULocationID,DOLocationID,"
    "passenger_count,trip_distance,fare_amount,extra,mta_tax,tip_amount,tolls_amount,ehail_fee,improvement_surcharge,"
    "total_amount,payment_type,trip_type"
)
FHVHV = (
    "hvfhs_license_num,dispatching_base_num,request_datetime,pickup_datetime,dropoff_datetime,PULocationID,"
    "DOLocationID,trip_miles,trip_time,base_passenger_fare,tolls,bcf,sales_tax,tips,driver_pay"
)
WITHOUT_PREFIX = YELLOW_2019.replace("tpep_", "")


def test_a_column_that_is_there_twice_is_refused(fresh: Clone) -> None:
    table = pa.Table.from_pandas(yellow_frame(10), preserve_index=False)
    for name, second in {"same": "fare_amount", "like": "Fare_Amt"}.items():
        write_trips(fresh / f"{name}.csv", f"{YELLOW_2019},{second}")
        pq.write_table(table.append_column(second, pa.array([99.0] * 10)), fresh / f"{name}.parquet")
    files = [fresh / f"{name}.{form}" for name in ("same", "like") for form in ("csv", "parquet")]
    same, like = "column 'fare_amount' appears twice", "columns 'fare_amount' and 'Fare_Amt' both mean fare_amount"
    said = [f"{file}: {same if file.stem == 'same' else like}. Remove one." for file in files]
    assert_refused(fresh, run(fresh, *files), "4 files are refused", *said)


def test_a_column_of_the_zone_table_that_is_there_twice_is_refused(fresh: Clone) -> None:
    (fresh / "zones.csv").write_text("LocationID,Borough,Zone,borough\n1,EWR,Newark Airport,Queens\n")
    files = {"paths": [str(write_trips(fresh / "trips.csv", YELLOW_2019))], "zones": "zones.csv"}
    ended = fresh.run("taxi", {"fetch": {"source": "files", "files": files}}, "data/taxi/zones.csv")
    assert_refused(fresh, ended, "zones.csv: column 'Borough' appears twice. Remove one.")


def test_a_service_is_told_by_columns_that_it_alone_has(fresh: Clone) -> None:
    # Each a service's own columns, with those that name it outright taken away.
    headers = {
        "yellow 2009.csv": YELLOW_2009,
        "yellow 2014.csv": YELLOW_2014,
        "yellow 2019.csv": YELLOW_2019,
        "green.csv": GREEN.replace("lpep_", ""),
        "green.parquet": GREEN.replace("lpep_", ""),
        "green 2.csv": GREEN.replace("lpep_", "").replace("ehail_fee,", ""),
        "fhvhv.csv": FHVHV.removeprefix("hvfhs_license_num,"),
        "fhvhv.parquet": FHVHV.removeprefix("hvfhs_license_num,"),
    }
    quality = cleaned(fresh, *(write_trips(fresh / name, header) for name, header in headers.items()))
    services = {file["path"].rpartition("/")[2]: file["service"] for file in quality["files"]}
    assert services == {name: name.split()[0].split(".")[0] for name in headers}
    kept = trips(fresh)
    assert kept["service"].value_counts().to_dict() == {"yellow": 3, "green": 3, "fhvhv": 2}
    assert (kept["fare_amount"] == 10).all()
    assert (kept["tip_amount"] == 2).all()


def test_a_service_that_cannot_be_told_is_not_guessed(fresh: Clone) -> None:
    mute = [write_trips(fresh / f"mute.{form}", WITHOUT_PREFIX) for form in ("csv", "parquet")]
    torn = write_trips(fresh / "torn.csv", f"{WITHOUT_PREFIX},trip_type,surcharge".replace("extra,", ""))
    assert_refused(
        fresh,
        run(fresh, *mute, torn),
        *(f"{path}: the trips may be yellow, green or fhvhv: no column tells." for path in mute),
        f"{torn}: the trips may be yellow, green or fhvhv: 'surcharge' would be yellow; 'trip_type' would be green.",
        "add a column 'color' that names the service of each trip",
    )


def test_a_trip_whose_own_service_is_blank_is_not_guessed(fresh: Clone) -> None:
    colors = [{"color": color} for color in ("yellow", "green", "", "mauve")]
    files = [write_trips(fresh / f"colored.{form}", f"{WITHOUT_PREFIX},color", *colors) for form in ("csv", "parquet")]
    assert cleaned(fresh, *files)["totals"] == {"rows_in": 8, "rows_out": 4, "quarantined": 4}
    assert trips(fresh)["service"].value_counts().to_dict() == {"yellow": 2, "green": 2}
    assert {tuple(reasons) for reasons in trips(fresh, "quarantine")["reasons"]} == {("unreadable_service",)}


def test_for_hire_trips_of_every_year_are_refused_because_they_have_no_fares(fresh: Clone) -> None:
    headers = {
        "2015": "Dispatching_base_num,Pickup_date,locationID",
        "2017": "Dispatching_base_num,Pickup_DateTime,DropOff_datetime,PUlocationID,DOlocationID",
        "2018": "Pickup_DateTime,DropOff_datetime,PUlocationID,DOlocationID,SR_Flag,Dispatching_base_number,"
        "Dispatching_base_num",
        "high volume 2019": "hvfhs_license_num,dispatching_base_num,pickup_datetime,dropoff_datetime,PULocationID,"
        "DOLocationID,SR_Flag",
    }
    files = {name: write_csv(fresh / f"{name}.csv", ["1"], header=header) for name, header in headers.items()}
    fhv = "for-hire vehicle (fhv) trips have no fares and no tips"
    old = "the fhvhv (high-volume for-hire) trips of this old form have no fares and no tips"
    said = [f"{path}: {old if 'volume' in name else fhv}" for name, path in files.items()]
    assert_refused(fresh, run(fresh, *files.values()), *said)
