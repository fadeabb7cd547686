"""The one schema of trips, and the eras of raw files told apart by their columns.

Sources: the data dictionaries of the Taxi and Limousine Commission (TLC) for yellow, green and high-volume for-hire
(fhvhv) trips, revision of 2025-03-18, and the headers of the files as published since 2009.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from whitewater.errors import InputError
from whitewater.tables.casts import Clock
from whitewater.tables.casts import Kind as RawKind
from whitewater.tables.eras import Codes, Era, Names
from whitewater.tables.raw_files import Source
from whitewater_apps.taxi.config import Service

Kind = Literal["int8", "int16", "int32", "float64", "timestamp"]
# The code of a service is its place.
SERVICES: tuple[Service, ...] = get_args(Service)
# Where trips of each service are made, for sentences.
PLACES: dict[Service, str] = {"yellow": "in yellow taxis", "green": "in green taxis", "fhvhv": "on app rides"}
# The service whose trips are paid in the app.
APP = SERVICES.index("fhvhv")
CARD, CASH, NO_CHARGE, DISPUTE = 1, 2, 3, 4
PAYMENT_NAMES = {0: "Flex Fare", 1: "Credit card", 2: "Cash", 3: "No charge", 4: "Dispute", 5: "Unknown", 6: "Voided"}
NULL_RATE_CODE = 99
# Stands for a spelling that is not understood; no code is negative.
NO_CODE = -1
# The reason of a trip that began in another month than its file is of; pictures ask for it without the rules.
STRAY_MONTH = "stray_month"


@dataclass(frozen=True)
class Column:
    """A column of the schema: its kind in memory and in Parquet, its unit, and what it means."""

    kind: Kind
    unit: str
    meaning: str


TRIP_COLUMNS: dict[str, Column] = {
    "service": Column("int8", "code", "0 yellow, 1 green, 2 fhvhv; in Parquet the partition key, as text"),
    "vendor_id": Column(
        "int8", "code", "1 CMT, 2 VeriFone/Curb (VTS), 3 DDS, 6 Myle, 7 Helix; fhvhv: the license's number"
    ),
    "pickup_datetime": Column("timestamp", "local time", "when the meter was started"),
    "dropoff_datetime": Column("timestamp", "local time", "when the meter was stopped"),
    "passenger_count": Column("int16", "passengers", "entered by the driver"),
    "trip_distance": Column("float64", "miles", "as the meter measured it"),
    "rate_code": Column(
        "int16", "code", "1 standard, 2 JFK, 3 Newark, 4 Nassau/Westchester, 5 negotiated, 6 group; 99 is null"
    ),
    "store_and_forward": Column("int8", "0 or 1", "1 when the record waited in the vehicle for a connection"),
    "pickup_location_id": Column("int16", "taxi zone", "1 to 265; null when the record has coordinates only"),
    "dropoff_location_id": Column("int16", "taxi zone", "1 to 265; null when the record has coordinates only"),
    "pickup_longitude": Column("float64", "degrees", "to 2016-06"),
    "pickup_latitude": Column("float64", "degrees", "to 2016-06"),
    "dropoff_longitude": Column("float64", "degrees", "to 2016-06"),
    "dropoff_latitude": Column("float64", "degrees", "to 2016-06"),
    "payment_type": Column(
        "int8", "code", "0 Flex Fare, 1 card, 2 cash, 3 no charge, 4 dispute, 5 unknown, 6 voided; fhvhv: null"
    ),
    "trip_type": Column("int8", "code", "green: 1 street hail, 2 dispatch"),
    "fare_amount": Column("float64", "US dollars", "metered fare; fhvhv: base passenger fare"),
    "extra": Column("float64", "US dollars", "rush hour and night surcharges; 'surcharge' to 2014"),
    "mta_tax": Column("float64", "US dollars", "MTA tax"),
    "tip_amount": Column("float64", "US dollars", "tips by card or app; cash tips are not recorded"),
    "tolls_amount": Column("float64", "US dollars", "tolls"),
    "ehail_fee": Column("float64", "US dollars", "green; null almost everywhere"),
    "improvement_surcharge": Column("float64", "US dollars", "since 2015"),
    "congestion_surcharge": Column("float64", "US dollars", "since 2019"),
    "airport_fee": Column("float64", "US dollars", "since 2021"),
    "cbd_congestion_fee": Column("float64", "US dollars", "since 2025"),
    "total_amount": Column("float64", "US dollars", "what was charged, with tips by card; fhvhv: null"),
    "black_car_fund": Column("float64", "US dollars", "fhvhv"),
    "sales_tax": Column("float64", "US dollars", "fhvhv"),
    "driver_pay": Column("float64", "US dollars", "fhvhv; before tolls and tips"),
    "request_datetime": Column("timestamp", "local time", "fhvhv: when the ride was requested"),
    "on_scene_datetime": Column("timestamp", "local time", "fhvhv: when the driver arrived"),
    "trip_time": Column("int32", "seconds", "fhvhv"),
    "shared_request": Column("int8", "0 or 1", "fhvhv: asked for a shared ride"),
    "shared_match": Column("int8", "0 or 1", "fhvhv: shared the ride"),
    "access_a_ride": Column("int8", "0 or 1", "fhvhv: on behalf of the MTA"),
    "wheelchair_request": Column("int8", "0 or 1", "fhvhv"),
    "wheelchair_match": Column("int8", "0 or 1", "fhvhv"),
}

KINDS: dict[str, Kind] = {name: column.kind for name, column in TRIP_COLUMNS.items()}
# One bit of `issues` for each column of codes or counts: set where the raw value could not be understood.
ISSUES = tuple(name for name, kind in KINDS.items() if kind.startswith("int"))

FLAGS = {"n": 0, "y": 1, "false": 0, "true": 1}
# Every spelling seen in 2009-2025, lower case and stripped.
PAYMENTS = {
    "flex fare": 0, "credit": 1, "credit card": 1, "cre": 1, "crd": 1, "card": 1, "cash": 2, "csh": 2, "cas": 2,
    "no charge": 3, "noc": 3, "no": 3, "dispute": 4, "dis": 4, "unknown": 5, "unk": 5, "na": 5, "voided": 6,
    "voided trip": 6, "voi": 6,
}  # fmt: skip
VENDORS = {
    "cmt": 1, "vts": 2, "dds": 3, "hv0001": 1, "hv0002": 2, "hv0003": 3, "hv0004": 4, "hv0005": 5, "hv0006": 6,
}  # fmt: skip
# Codes above these are not of the data dictionary; a flag is 0 or 1.
LARGEST_CODE = {
    "payment_type": 6,
    "service": len(SERVICES) - 1,
    "pickup_location_id": 265,
    "dropoff_location_id": 265,
}
SPELLINGS: dict[str, dict[str, int]] = {
    "vendor_id": VENDORS,
    "payment_type": PAYMENTS,
    "service": {service: code for code, service in enumerate(SERVICES)},
    **dict.fromkeys(
        (
            "store_and_forward", "shared_request", "shared_match", "access_a_ride", "wheelchair_request",
            "wheelchair_match",
        ),
        FLAGS,
    ),
}  # fmt: skip

# Raw name, stripped and lower case -> column, beside its own name. The era decides nothing else: units were the same
# throughout.
ALIASES: dict[str, str] = {
    **{name: name for name in TRIP_COLUMNS},
    "vendor_name": "vendor_id", "vendorid": "vendor_id", "hvfhs_license_num": "vendor_id",
    "trip_pickup_datetime": "pickup_datetime", "tpep_pickup_datetime": "pickup_datetime",
    "lpep_pickup_datetime": "pickup_datetime", "trip_dropoff_datetime": "dropoff_datetime",
    "tpep_dropoff_datetime": "dropoff_datetime", "lpep_dropoff_datetime": "dropoff_datetime",
    "trip_miles": "trip_distance", "ratecodeid": "rate_code", "store_and_fwd_flag": "store_and_forward",
    "start_lon": "pickup_longitude", "start_lat": "pickup_latitude",
    "end_lon": "dropoff_longitude", "end_lat": "dropoff_latitude",
    "pulocationid": "pickup_location_id", "dolocationid": "dropoff_location_id", "color": "service",
    "fare_amt": "fare_amount", "base_passenger_fare": "fare_amount", "surcharge": "extra",
    "tip_amt": "tip_amount", "tips": "tip_amount", "tolls_amt": "tolls_amount", "tolls": "tolls_amount",
    "total_amt": "total_amount", "bcf": "black_car_fund", "shared_request_flag": "shared_request",
    "shared_match_flag": "shared_match", "access_a_ride_flag": "access_a_ride",
    "wav_request_flag": "wheelchair_request", "wav_match_flag": "wheelchair_match",
}  # fmt: skip
# Known columns that the schema leaves out: a pandas index that leaked into 2010-02 and 2010-03, and base licenses.
NOT_CARRIED = frozenset({"__index_level_0__", "dispatching_base_num", "originating_base_num"})
# Raw names that the files of one service alone have. Not vendor_id: whoever tidies VendorID calls it so, too.
OWN_NAMES: dict[Service, frozenset[str]] = {
    "yellow": frozenset({
        "tpep_pickup_datetime", "tpep_dropoff_datetime", "trip_pickup_datetime", "trip_dropoff_datetime", "vendor_name",
        "rate_code", "store_and_forward", "start_lon", "start_lat", "end_lon", "end_lat", "fare_amt", "surcharge",
        "tip_amt", "tolls_amt", "total_amt",
    }),
    "green": frozenset({"lpep_pickup_datetime", "lpep_dropoff_datetime", "trip_type", "ehail_fee"}),
    "fhvhv": frozenset({
        "hvfhs_license_num", "originating_base_num", "request_datetime", "on_scene_datetime", "trip_miles", "trip_time",
        "base_passenger_fare", "tolls", "bcf", "sales_tax", "tips", "driver_pay", "shared_request_flag",
        "shared_match_flag", "access_a_ride_flag", "wav_request_flag", "wav_match_flag",
    }),
}  # fmt: skip
# Where there are no fares, one of these tells the trips of for-hire vehicles, of 2015 to today.
FHV_NAMES = frozenset(
    {"dispatching_base_num", "dispatching_base_number", "pickup_date", "sr_flag", "affiliated_base_number"}
)


def _raw_kind(kind: Kind) -> RawKind:
    return "timestamp" if kind == "timestamp" else "number"


NAMES = Names(
    aliases=ALIASES,
    not_carried=NOT_CARRIED,
    kinds={name: _raw_kind(kind) for name, kind in KINDS.items()},
    spelled=frozenset(SPELLINGS),
    required=("pickup_datetime", "dropoff_datetime", "fare_amount", "tip_amount"),
    of=("a file of taxi trips with fares", "TLC"),
)


def largest_code(column: str) -> int:
    """Return the largest code or count that a column of integers may hold."""
    if SPELLINGS.get(column) is FLAGS:
        return 1
    return LARGEST_CODE.get(column, int(np.iinfo(KINDS[column]).max))


def code_of(column: str, text: str | None) -> int | None:
    """Return the code of a spelling: None for null or blank, `NO_CODE` for one that is not known."""
    key = (text or "").strip().lower()
    if not key:
        return None
    digits = key.removesuffix(".0")
    # No code has more digits than nine, and Python reads no number that is very long.
    code = int(digits) if digits.isdecimal() and len(digits) <= 9 else NO_CODE
    return SPELLINGS[column].get(key, code if code <= largest_code(column) else NO_CODE)


CODES: dict[str, Codes] = {
    name: Codes(
        # Zones are counted from 1.
        int(name.endswith("location_id")),
        largest_code(name),
        partial(code_of, name) if name in SPELLINGS else None,
        null=NULL_RATE_CODE if name == "rate_code" else None,
        # Nothing else tells the service.
        required=name == "service",
    )
    for name in ISSUES
}


def recognize(raw_names: Sequence[str], *, path: str, numeric: Collection[str] = ()) -> Era:
    """Tell the era of a file by its columns, not by its name.

    ``numeric`` are those of the columns that the file stores as numbers; a code among them needs no spelling.

    Raises InputError if a column is not understood, a column that every era has is missing, two columns mean the same,
    the service cannot be told, or the file holds trips of for-hire vehicles without fares.
    """
    _refuse_without_fares({name.strip().lower() for name in raw_names}, path=path)
    era = NAMES.era(raw_names, path=path, numeric=numeric)
    if "service" in era.columns:
        return era
    return replace(era, constants={"service": SERVICES.index(_service(raw_names, path=path))})


SOURCE = Source(recognize, NAMES, rows="trips", setting="taxi.fetch.files.paths", clock=Clock("America/New_York"))


def _service(raw_names: Sequence[str], *, path: str) -> Service:
    """Return the one service that has columns of such names."""
    own = {service: [name for name in raw_names if name.strip().lower() in OWN_NAMES[service]] for service in SERVICES}
    found = [service for service in SERVICES if own[service]]
    if len(found) == 1:
        return found[0]
    told = "; ".join(f"{', '.join(map(repr, own[service]))} would be {service}" for service in found)
    known = f"{', '.join(SERVICES[:-1])} or {SERVICES[-1]}"
    raise InputError(f"{path}: the trips may be {known}: {told or 'no column tells'}. Name the columns as TLC does, or "
                     "add a column 'color' that names the service of each trip.")  # fmt: skip


def _refuse_without_fares(keys: set[str], *, path: str) -> None:
    if any(ALIASES.get(key) == "fare_amount" for key in keys):
        return
    if "hvfhs_license_num" in keys:
        raise InputError(f"{path}: the fhvhv (high-volume for-hire) trips of this old form have no fares and no tips. "
                         "Use the Parquet file that TLC publishes today.")  # fmt: skip
    if keys & FHV_NAMES:
        raise InputError(f"{path}: for-hire vehicle (fhv) trips have no fares and no tips. "
                         "Use yellow, green or fhvhv (high-volume for-hire) files.")  # fmt: skip
