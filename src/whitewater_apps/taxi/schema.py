"""The schema of all trips, and the names of its columns in raw files of every era.

Sources: the data dictionaries of the Taxi and Limousine Commission (TLC) for yellow, green and high-volume for-hire
(fhvhv) trips, revision of 2025-03-18, and the headers of the files as published since 2009.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from whitewater.errors import InputError
from whitewater.tables.casts import Clock
from whitewater.tables.eras import Codes, Era, Source
from whitewater_apps.taxi.config import Service

Kind = Literal["int8", "int16", "int32", "float64", "timestamp", "string"]
# The code of a service is its index.
SERVICES: tuple[Service, ...] = get_args(Service)
# Names of services in sentences.
PLACES: dict[Service, str] = {"yellow": "in yellow taxis", "green": "in green taxis", "fhvhv": "on app rides"}
# This service is paid in the app.
APP = SERVICES.index("fhvhv")
CARD, CASH, NO_CHARGE, DISPUTE = 1, 2, 3, 4
PAYMENT_NAMES = {0: "Flex Fare", 1: "Credit card", 2: "Cash", 3: "No charge", 4: "Dispute", 5: "Unknown", 6: "Voided"}
NULL_RATE_CODE = 99
# The reason to reject a trip of another month than its file. Here, so that figures do not import the rules.
STRAY_MONTH = "stray_month"
# The models of tips and their names. Here, so that sentences do not import the figures.
MODELS = {"ridge": "Ridge regression", "forest": "Random forest"}
# Every spelling of 2009 to 2025, stripped and in lower case.
PAYMENTS = {
    "flex fare": 0, "credit": 1, "credit card": 1, "cre": 1, "crd": 1, "card": 1, "cash": 2, "csh": 2, "cas": 2,
    "no charge": 3, "noc": 3, "no": 3, "dispute": 4, "dis": 4, "unknown": 5, "unk": 5, "na": 5, "voided": 6,
    "voided trip": 6, "voi": 6,
}  # fmt: skip
VENDORS = {
    "cmt": 1, "vts": 2, "dds": 3, "hv0001": 1, "hv0002": 2, "hv0003": 3, "hv0004": 4, "hv0005": 5, "hv0006": 6,
}  # fmt: skip
FLAG = Codes(1, {"n": 0, "y": 1, "false": 0, "true": 1})
# Zones are counted from 1.
ZONE = Codes(265, least=1)


@dataclass(frozen=True)
class Column:
    """A column of the schema: its type in memory and in Parquet, its unit, and its meaning.

    Integers are ``codes``, or any number from 0 up. A ``string`` has no fixed vocabulary, such as the id of a station.
    """

    kind: Kind
    unit: str
    meaning: str
    codes: Codes | None = None


TRIP_COLUMNS: dict[str, Column] = {
    "service": Column("int8", "code",
                      ", ".join(f"{code} {service}" for code, service in enumerate(SERVICES))
                      + "; in Parquet the partition key, as text",
                      # Nothing else tells the service.
                      Codes(len(SERVICES) - 1, dict(zip(SERVICES, range(len(SERVICES)), strict=True)), nullable=False)),
    "vendor_id": Column("int8", "code",
                        "1 CMT, 2 VeriFone/Curb (VTS), 3 DDS, 6 Myle, 7 Helix; fhvhv: the license's number",
                        Codes(127, VENDORS)),
    "pickup_datetime": Column("timestamp", "local time", "when the meter was started"),
    "dropoff_datetime": Column("timestamp", "local time", "when the meter was stopped"),
    "passenger_count": Column("int16", "passengers", "entered by the driver"),
    "trip_distance": Column("float64", "miles", "as the meter measured it"),
    "rate_code": Column("int16", "code",
                        "1 standard, 2 JFK, 3 Newark, 4 Nassau/Westchester, 5 negotiated, 6 group; 99 is null",
                        Codes(32_767, null=NULL_RATE_CODE)),
    "store_and_forward": Column("int8", "0 or 1", "1 when the record waited in the vehicle for a connection", FLAG),
    "pickup_location_id": Column("int16", "taxi zone", "1 to 265; null when the record has coordinates only", ZONE),
    "dropoff_location_id": Column("int16", "taxi zone", "1 to 265; null when the record has coordinates only", ZONE),
    "pickup_longitude": Column("float64", "degrees", "to 2016-06"),
    "pickup_latitude": Column("float64", "degrees", "to 2016-06"),
    "dropoff_longitude": Column("float64", "degrees", "to 2016-06"),
    "dropoff_latitude": Column("float64", "degrees", "to 2016-06"),
    "payment_type": Column("int8", "code",
                           "0 Flex Fare, 1 card, 2 cash, 3 no charge, 4 dispute, 5 unknown, 6 voided; fhvhv: null",
                           Codes(6, PAYMENTS)),
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
    "shared_request": Column("int8", "0 or 1", "fhvhv: asked for a shared ride", FLAG),
    "shared_match": Column("int8", "0 or 1", "fhvhv: shared the ride", FLAG),
    "access_a_ride": Column("int8", "0 or 1", "fhvhv: on behalf of the MTA", FLAG),
    "wheelchair_request": Column("int8", "0 or 1", "fhvhv", FLAG),
    "wheelchair_match": Column("int8", "0 or 1", "fhvhv", FLAG),
}  # fmt: skip

KINDS: dict[str, Kind] = {name: column.kind for name, column in TRIP_COLUMNS.items()}
# Quantities that are the duration of a trip, and their units in seconds.
DURATIONS = {"duration": 1, "minutes": 60, "hours": 3600}
# Quantities that are ratios of columns or quantities. Null unless the divisor is above 0.
RATIOS = {"speed": ("trip_distance", "hours"), "tip_fraction": ("tip_amount", "fare_amount")}
# Columns that every era has.
REQUIRED = ("pickup_datetime", "dropoff_datetime", "fare_amount", "tip_amount")
# What tables summarize and models predict.
TARGET = "tip_fraction"
# The columns of codes or counts. Each has a bit in `issues`, which is set if the raw value is invalid.
ISSUES = tuple(name for name, kind in KINDS.items() if kind.startswith("int"))

# Raw name, stripped and in lower case -> column, in addition to the column's own name; None for columns to ignore: a
# pandas index that leaked into 2010-02 and 2010-03, and base licenses. Units never changed. The names of a service are
# peculiar to its files; vendor_id is not, because people who tidy up VendorID choose it, too.
RAW_NAMES: dict[Service | None, dict[str, str | None]] = {
    None: {
        "vendorid": "vendor_id", "ratecodeid": "rate_code", "store_and_fwd_flag": "store_and_forward",
        "pulocationid": "pickup_location_id", "dolocationid": "dropoff_location_id", "color": "service",
        "__index_level_0__": None, "dispatching_base_num": None,
    },
    "yellow": {
        "tpep_pickup_datetime": "pickup_datetime", "tpep_dropoff_datetime": "dropoff_datetime",
        "trip_pickup_datetime": "pickup_datetime", "trip_dropoff_datetime": "dropoff_datetime",
        "vendor_name": "vendor_id", "rate_code": "rate_code", "store_and_forward": "store_and_forward",
        "start_lon": "pickup_longitude", "start_lat": "pickup_latitude", "end_lon": "dropoff_longitude",
        "end_lat": "dropoff_latitude", "fare_amt": "fare_amount", "surcharge": "extra", "tip_amt": "tip_amount",
        "tolls_amt": "tolls_amount", "total_amt": "total_amount",
    },
    "green": {
        "lpep_pickup_datetime": "pickup_datetime", "lpep_dropoff_datetime": "dropoff_datetime",
        "trip_type": "trip_type", "ehail_fee": "ehail_fee",
    },
    "fhvhv": {
        "hvfhs_license_num": "vendor_id", "originating_base_num": None, "request_datetime": "request_datetime",
        "on_scene_datetime": "on_scene_datetime", "trip_miles": "trip_distance", "trip_time": "trip_time",
        "base_passenger_fare": "fare_amount", "tolls": "tolls_amount", "bcf": "black_car_fund",
        "sales_tax": "sales_tax", "tips": "tip_amount", "driver_pay": "driver_pay",
        "shared_request_flag": "shared_request", "shared_match_flag": "shared_match",
        "access_a_ride_flag": "access_a_ride", "wav_request_flag": "wheelchair_request",
        "wav_match_flag": "wheelchair_match",
    },
}  # fmt: skip
ALIASES = {name: name for name in TRIP_COLUMNS} | {
    raw: column for names in RAW_NAMES.values() for raw, column in names.items()
}
# In a file without fares, any of these is a sign of for-hire vehicles, since 2015.
FHV_NAMES = {"dispatching_base_num", "dispatching_base_number", "pickup_date", "sr_flag", "affiliated_base_number"}
CODES: dict[str, Codes] = {name: TRIP_COLUMNS[name].codes or Codes(int(np.iinfo(KINDS[name]).max)) for name in ISSUES}

_TYPES = {name: pa.timestamp("us") if kind == "timestamp" else pa.type_for_alias(kind) for name, kind in KINDS.items()}
# Parts that `standardize` writes have those of these columns that their era has. Bit i of `issues` is for ISSUES[i].
STANDARDIZED_SCHEMA = pa.schema({**_TYPES, "issues": pa.int32()})
# Of kept trips. Their service is in the path.
TRIP_SCHEMA = pa.schema({name: type_ for name, type_ in _TYPES.items() if name != "service"})


def columns_of(quantity: str) -> tuple[str, ...]:
    """Return the columns that a quantity is computed from."""
    if quantity in DURATIONS:
        return ("pickup_datetime", "dropoff_datetime")
    return tuple(column for operand in RATIOS.get(quantity, ()) for column in columns_of(operand)) or (quantity,)


class TripFiles(Source):
    """Raw files of trips, each of one service or with a column for it."""

    def recognize(self, raw_names: Sequence[str], *, path: str, numeric: Collection[str] = ()) -> Era:
        """Return the era of a file, see `Source.recognize`; raises InputError, too, if its service is not clear."""
        keys = {name.strip().lower() for name in raw_names}
        if not any(ALIASES.get(key) == "fare_amount" for key in keys):
            if "hvfhs_license_num" in keys:
                raise InputError(f"{path}: the fhvhv (high-volume for-hire) trips of this old form have no fares and "
                                 "no tips. Use the Parquet file that TLC publishes today.")  # fmt: skip
            if keys & FHV_NAMES:
                raise InputError(f"{path}: for-hire vehicle (fhv) trips have no fares and no tips. "
                                 "Use yellow, green or fhvhv (high-volume for-hire) files.")  # fmt: skip
        era = super().recognize(raw_names, path=path, numeric=numeric)
        if "service" in era.columns:
            return era
        return replace(era, constants={"service": SERVICES.index(_service(raw_names, path=path))})


def _raw_kind(column: Column) -> Literal["timestamp", "text", "code", "number"]:
    if column.codes and column.codes.spellings:
        return "code"
    return "timestamp" if column.kind == "timestamp" else "text" if column.kind == "string" else "number"


SOURCE = TripFiles(
    aliases=ALIASES,
    kinds={name: _raw_kind(column) for name, column in TRIP_COLUMNS.items()},
    required=REQUIRED,
    of=("a file of taxi trips with fares", "TLC"),
    rows="trips",
    setting="taxi.fetch.files.paths",
    clock=Clock("America/New_York"),
)


def _service(raw_names: Sequence[str], *, path: str) -> Service:
    """Return the only service to which some of these columns are peculiar."""
    own = {service: [name for name in raw_names if name.strip().lower() in RAW_NAMES[service]] for service in SERVICES}
    matches = [service for service in SERVICES if own[service]]
    if len(matches) == 1:
        return matches[0]
    hints = "; ".join(f"{', '.join(map(repr, own[service]))} would be {service}" for service in matches)
    options = f"{', '.join(SERVICES[:-1])} or {SERVICES[-1]}"
    raise InputError(f"{path}: the trips may be {options}: {hints or 'no column tells'}. Name the columns as TLC does, "
                     "or add a column 'color' that names the service of each trip.")  # fmt: skip
