"""A model of trips: a stylized New York, its riders, and the faults of records.

The city has 265 taxi zones. Names ("Manhattan 12") and the borough of a LocationID are invented, except for airports,
unknown places and places outside the city. Boroughs are rectangles near their place on the map, so that distances are
realistic, with as many zones as in TLC's table.

Numbers imitate the published months, without a fit: two daily peaks, late nights at weekends, slow afternoons, tips by
preset buttons, mean tips of 0.22 to 0.27 of the fare by card in yellow taxis, and fares of 2019; no holidays.

Nulls together in 6 to 8 %, rate code 99, absurd distances, negative amounts, pickups of other months, and locations 264
and 265 have the rounded shares of the published green months 2023-12 and 2024-01. Other faults are widely reported.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import CARD, CASH, DISPUTE, NO_CHARGE, NULL_RATE_CODE
from whitewater_apps.taxi.zones import LOCATIONS

Trips = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

JFK, LAGUARDIA, UNKNOWN, OUTSIDE = 132, 138, 264, 265
SIZE = LOCATIONS + 1  # of arrays by LocationID; entry 0 is unused
# Borough, name, service zone; miles east and north of Times Square.
NAMED = {
    1: ("EWR", "Newark Airport", "EWR", -10.0, -4.7),
    JFK: ("Queens", "JFK Airport", "Airports", 10.7, -7.8),
    LAGUARDIA: ("Queens", "LaGuardia Airport", "Airports", 6.0, 1.2),
    UNKNOWN: ("Unknown", "N/A", "N/A", 0.0, 0.0),
    OUTSIDE: ("N/A", "Outside of NYC", "N/A", 4.0, 18.0),
}
# Number of the other zones; center, and half of width and height, in miles; willingness to tip on a logistic scale.
BOROUGHS = {
    "Manhattan": (69, (0.9, 1.8), (0.9, 5.8), 0.15),
    "Queens": (67, (8.5, -1.5), (4.5, 4.5), -0.38),
    "Brooklyn": (61, (1.8, -7.4), (3.5, 3.5), 0.08),
    "Bronx": (43, (5.6, 7.2), (3.0, 3.0), -0.90),
    "Staten Island": (20, (-8.6, -12.3), (3.5, 3.5), -0.15),
}
YELLOW_ZONES = 55  # of Manhattan, from the south, with the congestion surcharge
TIMES_SQUARE = (-73.985, 40.758)
MILES_A_DEGREE = (52.4, 69.0)  # of longitude and of latitude, at 40.76 degrees north

# Pickups and drop-offs in per mille; the airports are not in Queens here. The order of magnitude is that of the
# published months of 2019. Green taxis may not be hailed in the yellow zones.
Shares = Mapping[str, float]
PICKUPS: dict[Service, Shares] = {
    "yellow": {"Manhattan": 900, "Queens": 22, "Brooklyn": 20, "Bronx": 2, "Staten Island": 0.2, "Airports": 54,
               "EWR": 0.3},
    "green": {"Manhattan": 300, "Queens": 320, "Brooklyn": 310, "Bronx": 68, "Staten Island": 0.2},
    "fhvhv": {"Manhattan": 370, "Queens": 170, "Brooklyn": 270, "Bronx": 130, "Staten Island": 14, "Airports": 45},
}  # fmt: skip
DROPOFFS: Shares = {"Manhattan": 700, "Queens": 120, "Brooklyn": 130, "Bronx": 40, "Staten Island": 4}
REACH: dict[Service, float] = {"yellow": 2.4, "green": 1.2, "fhvhv": 1.8}  # miles
AIRPORT_REACH = 12.0
TO_AIRPORTS = 0.035  # of the trips
DETOUR = 1.35  # driven miles per mile as the crow flies, in a grid of streets
WITHIN_A_ZONE = 0.45  # miles as the crow flies
SPREAD = 0.25  # of coordinates within a zone, in miles
MICROSECONDS = 1_000_000
HOUR = 3_600 * MICROSECONDS
DAY = 24 * HOUR
# Relative numbers of trips by hour of the day, from Monday to Friday and at the weekend.
DEMAND = np.array([
    (22, 13, 8, 5, 6, 10, 24, 40, 48, 48, 46, 46, 49, 49, 51, 52, 47, 56, 64, 63, 60, 60, 54, 40),
    (53, 46, 38, 28, 16, 7, 9, 13, 21, 32, 41, 47, 51, 52, 52, 52, 50, 52, 54, 52, 48, 46, 44, 40),
])  # fmt: skip
# Willingness to tip on a logistic scale, by service, and by hour: least before dawn, most when commuting and at night.
WILLING: dict[Service, float] = {"yellow": 2.94, "green": 1.99, "fhvhv": -1.32}
BY_HOUR = np.array([
    0.15, 0.08, 0.00, -0.30, -0.68, -0.68, -0.30, 0.08, 0.22, 0.15, 0.00, -0.08, -0.15, -0.15, -0.15, -0.15, 0.00, 0.15,
    0.22, 0.30, 0.38, 0.45, 0.38, 0.30,
])  # fmt: skip
PRESETS: dict[Service, tuple[float, ...]] = {
    "yellow": (0.20, 0.25, 0.30), "green": (0.20, 0.25, 0.30), "fhvhv": (0.15, 0.20, 0.25)
}  # fmt: skip
BY_CARD: dict[Service, float] = {"yellow": 0.71, "green": 0.57}
PASSENGERS = (0.705, 0.150, 0.043, 0.020, 0.050, 0.032)  # one to six
CHARGES = (
    "fare_amount", "extra", "mta_tax", "improvement_surcharge", "tolls_amount", "congestion_surcharge",
    "airport_fee", "cbd_congestion_fee",
)  # fmt: skip
AMOUNTS = {*CHARGES, "tip_amount", "total_amount", "black_car_fund", "sales_tax", "driver_pay"}
WRONG_CLOCK = np.datetime64("2009-01-01", "us").astype(np.int64)
# Share of the trips, or of the lines of a CSV file, with each fault.
DIRT = {
    "dispatched": 0.05,  # sent by an app, not hailed: no passengers, rate code, payment, flag or surcharge
    "refunded": 0.003,  # followed by the same trip with negative amounts
    "repeated": 0.0005,  # recorded twice
    "without_distance": 0.008,
    "absurd_distance": 0.00005,  # up to 200,000 miles
    "wrong_clock": 0.0004,  # picked up in another month, or in 2009
    "reversed": 0.001,  # dropped off before being picked up
    "left_running": 0.002,  # meter stopped almost a day later
    "unknown_rate_code": 0.0008,  # 99
    "unknown_zone": 0.006,  # location 264 or 265
    "without_passengers": 0.018,
    "torn_line": 0.0001,  # half a line, in addition to the trips
}


class City(NamedTuple):
    """Zones by LocationID: borough, name, service zone; miles east and north of Times Square; willingness to tip."""

    borough: npt.NDArray[Any]
    name: npt.NDArray[Any]
    service_zone: npt.NDArray[Any]
    east: Floats
    north: Floats
    character: Floats


def _build_city() -> City:
    """Return the city, which is the same for every seed and month."""
    random = np.random.default_rng(265)
    free = random.permutation([number for number in range(1, SIZE) if number not in NAMED])
    rows: dict[int, tuple[str, str, str, float, float, float]] = {0: ("", "", "", 0.0, 0.0, 0.0)}
    rows |= {number: (*zone, -0.3) for number, zone in NAMED.items()}
    for borough, (count, center, half, character) in BOROUGHS.items():
        numbers, free = free[:count], free[count:]
        for index, number in enumerate(sorted(numbers.tolist())):
            east = center[0] + half[0] * random.uniform(-1, 1)
            north = center[1] + half[1] * (2 * index / (count - 1) - 1)
            yellow = borough == "Manhattan" and index < YELLOW_ZONES
            zone = (borough, f"{borough} {index + 1}", "Yellow Zone" if yellow else "Boro Zone")
            rows[number] = (*zone, east, north, character + random.normal(0, 0.38))
    return City(*map(np.array, zip(*(rows[number] for number in range(SIZE)), strict=True)))


CITY = _build_city()
IS_AIRPORT = np.isin(CITY.service_zone, ("Airports", "EWR"))


def miles_between(start: Integers, end: Integers) -> Floats:
    """Return the usual miles driven between locations; a trip within a zone is short, but not 0."""
    crow = np.hypot(CITY.east[start] - CITY.east[end], CITY.north[start] - CITY.north[end])
    return np.asarray(DETOUR * np.hypot(crow, WITHIN_A_ZONE))


def draw_dropoffs(service: Service, pickups: Integers, *, random: np.random.Generator) -> Integers:
    """Draw drop-off locations: airports, or by popularity times a decay with the distance from the pickup."""
    locations = np.arange(SIZE)
    reach = np.where(IS_AIRPORT, AIRPORT_REACH, REACH[service])[:, None]
    weights = _popularity(DROPOFFS) * np.exp(-miles_between(locations[:, None], locations) / reach)
    cumulative = np.cumsum(weights, axis=1)
    # Offset by the pickup, all rows of cumulative shares are one sorted array, which is searched once.
    rows = (locations[:, None] + cumulative / cumulative[:, -1:]).ravel()
    in_the_city = np.searchsorted(rows, pickups + random.random(len(pickups)), side="right") % SIZE
    airports = random.choice(np.flatnonzero(IS_AIRPORT), len(pickups), p=(0.06, 0.46, 0.48))
    return np.where(random.random(len(pickups)) < TO_AIRPORTS, airports, in_the_city)


def _popularity(shares: Shares, allowed: Mask | bool = True) -> Floats:
    """Return the share of each location; within a borough, it decays with the distance from Times Square."""
    nearness = allowed / (1 + np.hypot(CITY.east, CITY.north))
    area = np.where(CITY.service_zone == "Airports", "Airports", CITY.borough)
    weights = sum(share * nearness * (area == name) / nearness[area == name].sum() for name, share in shares.items())
    return np.asarray(weights / np.sum(weights))


def hourly_demand(hours: Integers) -> Integers:
    """Return the relative numbers of pickups; ``hours`` are hours since 1970, local time."""
    return np.asarray(DEMAND[_weekday(hours) // 5, hours % 24])


def taxi_trips(service: Service, month: str, pickup: Integers, *, random: np.random.Generator) -> Trips:
    """Return trips of yellow or green taxis; ``pickup`` is in microseconds since 1970, local time.

    The columns are those of `whitewater_apps.taxi.schema.TRIP_COLUMNS`, (trips,), without the fees of later months;
    amounts are in US dollars, in whole cents.
    """
    trips = _journeys(service, month, pickup, random=random)
    start, end, miles = trips["pickup_location_id"], trips["dropoff_location_id"], trips["trip_distance"]
    count, hours = len(pickup), pickup // HOUR
    hour, manhattan = hours % 24, CITY.borough == "Manhattan"
    flat = (manhattan[start] & (end == JFK)) | (manhattan[end] & (start == JFK))
    rush = (_weekday(hours) < 5) & (hour >= 16) & (hour < 20)
    # Between Manhattan and JFK, the fare is flat. Elsewhere, the meter counts fifths of a mile, or slow minutes.
    units = np.floor(4.2 * miles + 0.4 * trips["trip_time"] / 60)
    trips |= {
        "vendor_id": 1 + random.integers(2, size=count),
        "passenger_count": 1 + random.choice(len(PASSENGERS), count, p=PASSENGERS),
        "rate_code": np.where(flat, 2, 1),
        "store_and_forward": _draw_flags(0.005, count, random=random),
        "trip_type": np.ones(count, np.int64),
        "fare_amount": np.where(flat, 52.0, 2.50 + 0.50 * units),
        "extra": np.select([rush, (hour >= 20) | (hour < 6)], [1.0, 0.5], 0.0),
        "mta_tax": np.full(count, 0.5),
        "improvement_surcharge": np.full(count, 0.3),
    }
    charge = np.asarray(sum(trips[name] for name in CHARGES if name in trips))
    by_card = random.random(count) < BY_CARD[service] + 0.07 * CITY.character[start]
    uniform = random.random(count)
    trips["payment_type"] = np.select([uniform < 0.005, uniform < 0.007, by_card], [NO_CHARGE, DISPUTE, CARD], CASH)
    trips["tip_amount"] = _tips(service, trips, charge, random=random) * (trips["payment_type"] == CARD)
    trips["total_amount"] = np.round(charge + trips["tip_amount"], 2)
    for end_point, locations in (("pickup", start), ("dropoff", end)):
        east, north = (axis[locations] + random.normal(0, SPREAD, count) for axis in (CITY.east, CITY.north))
        trips[f"{end_point}_longitude"] = TIMES_SQUARE[0] + east / MILES_A_DEGREE[0]
        trips[f"{end_point}_latitude"] = TIMES_SQUARE[1] + north / MILES_A_DEGREE[1]
    return trips


def app_trips(month: str, pickup: Integers, *, random: np.random.Generator) -> Trips:
    """Return high-volume for-hire trips (fhvhv), with fares by miles, minutes and surge; see `taxi_trips`."""
    trips = _journeys("fhvhv", month, pickup, random=random)
    count = len(pickup)
    surge = np.maximum(random.lognormal(0.05, 0.2, count), 0.9)
    meter = 2.55 + 1.75 * trips["trip_distance"] + 0.35 * trips["trip_time"] / 60
    fare: Floats = np.maximum(meter * surge, 8).round(2)
    arrival = pickup - random.integers(10, 120, count) * MICROSECONDS
    flags = {"shared_request": 0.08, "shared_match": 0.05, "access_a_ride": 0.0, "wheelchair_request": 0.0015,
             "wheelchair_match": 0.03}  # fmt: skip
    return trips | {
        "vendor_id": random.choice((2, 3, 5), count, p=(0.03, 0.71, 0.26)),
        "fare_amount": fare,
        "tip_amount": _tips("fhvhv", trips, fare, random=random),
        "black_car_fund": np.round(0.025 * fare, 2),
        "sales_tax": np.round(0.08875 * fare, 2),
        "driver_pay": np.round(0.78 * fare, 2),
        "request_datetime": arrival - random.integers(60, 600, count) * MICROSECONDS,
        "on_scene_datetime": arrival,
        **{name: _draw_flags(share, count, random=random) for name, share in flags.items()},
    }


def _weekday(hours: Integers) -> Integers:
    """Return 0 for Monday to 6 for Sunday; 1970-01-01 was a Thursday."""
    return (hours // 24 + 3) % 7


def _draw_flags(share: float, count: int, *, random: np.random.Generator) -> Integers:
    return (random.random(count) < share).astype(np.int64)


def _journeys(service: Service, month: str, pickup: Integers, *, random: np.random.Generator) -> Trips:
    """Return the times, locations, distances, tolls and fees of trips."""
    count, can_hail = len(pickup), (service != "green") | (CITY.service_zone != "Yellow Zone")
    start = random.choice(SIZE, count, p=_popularity(PICKUPS[service], can_hail))
    end = draw_dropoffs(service, start, random=random)
    miles = np.round(miles_between(start, end) * random.lognormal(0, 0.25, count), 2)
    # Traffic is slow when demand is high. Long trips are faster, because they use highways.
    miles_an_hour = (20 - hourly_demand(pickup // HOUR) / 6) * (1 + 0.35 * np.log1p(miles / 2))
    seconds = np.rint(90 + miles / miles_an_hour * 3600 * random.lognormal(0, 0.25, count)).astype(np.int64)
    yellow, crosses = CITY.service_zone == "Yellow Zone", CITY.borough[start] != CITY.borough[end]
    # First month, US dollars, and trips that pay it.
    fees = {
        "congestion_surcharge": ("2019-01", 2.50, yellow[start] | yellow[end]),
        "airport_fee": ("2021-01", 1.25, IS_AIRPORT[start]),
        "cbd_congestion_fee": ("2025-01", 0.75, yellow[start] | yellow[end]),
    }
    return {
        "pickup_datetime": pickup,
        "dropoff_datetime": pickup + seconds * MICROSECONDS,
        "trip_time": seconds,
        "pickup_location_id": start,
        "dropoff_location_id": end,
        "trip_distance": miles,
        "tolls_amount": np.where(crosses & (random.random(count) < 0.03 * miles), 6.12, 0.0),
        **{name: fee * is_due for name, (since, fee, is_due) in fees.items() if month >= since},
    }


def _tips(service: Service, trips: Trips, charge: Floats, *, random: np.random.Generator) -> Floats:
    """Draw tips: none, a share of the charge by preset button, or whole dollars."""
    count, start, end = len(charge), trips["pickup_location_id"], trips["dropoff_location_id"]
    generous = BY_HOUR[trips["pickup_datetime"] // HOUR % 24] + CITY.character[start] + 0.5 * CITY.character[end]
    mood = random.logistic(0, 1, count) + 0.47 * generous - 0.1 * np.log1p(trips["trip_distance"])
    button = charge * np.array(PRESETS[service])[np.searchsorted((0.9, 2.4), mood)]
    dollars = np.maximum(np.rint(charge * random.normal(0.14, 0.05, count)), 1)
    tips = np.where(random.random(count) < 0.7, button, dollars)
    return np.asarray(np.round(tips * (random.logistic(0, 1, count) < WILLING[service] + generous), 2))


def add_faults(trips: Trips, *, has_dispatched: bool, random: np.random.Generator) -> Trips:
    """Return the trips with faults, and a column ``dispatched``, all false unless ``has_dispatched``."""
    count = len(trips["pickup_datetime"])

    def draw(fault: str) -> Mask:
        return random.random(count) < DIRT[fault]

    trips = {name: values.copy() for name, values in trips.items()}
    trips["dispatched"] = draw("dispatched") & has_dispatched
    pickup, dropoff = trips["pickup_datetime"], trips["dropoff_datetime"]
    left_running, is_reversed, wrong_clock = draw("left_running"), draw("reversed"), draw("wrong_clock")
    dropoff[left_running] = pickup[left_running] + DAY - random.integers(1, 600, left_running.sum()) * MICROSECONDS
    pickup[is_reversed], dropoff[is_reversed] = dropoff[is_reversed], pickup[is_reversed]
    error = random.choice((31 * DAY, -31 * DAY, (pickup[0] - WRONG_CLOCK) // DAY * DAY), wrong_clock.sum())
    for time in (pickup, dropoff):
        time[wrong_clock] -= error
    trips["trip_distance"][draw("without_distance")] = 0
    absurd = draw("absurd_distance")
    trips["trip_distance"][absurd] = np.round(np.exp(random.uniform(np.log(300), np.log(200_000), absurd.sum())), 2)
    for location in ("pickup_location_id", "dropoff_location_id"):
        unknown = draw("unknown_zone")
        trips[location][unknown] = random.choice((UNKNOWN, OUTSIDE), unknown.sum(), p=(0.7, 0.3))
    if "passenger_count" in trips:
        trips["passenger_count"][draw("without_passengers")] = 0
        trips["rate_code"][draw("unknown_rate_code")] = NULL_RATE_CODE
    _copy_to_next(trips, draw("repeated"))
    refunds = _copy_to_next(trips, draw("refunded"))
    for name in trips.keys() & AMOUNTS:
        trips[name][refunds] *= -1
    return trips


def _copy_to_next(trips: Trips, rows: Mask) -> Mask:
    """Overwrite the trip after each of the rows by a copy; return which trips are copies."""
    is_copy = np.zeros_like(rows)
    is_copy[1:] = rows[:-1]
    for values in trips.values():
        values[is_copy] = values[:-1][rows[:-1]]
    return is_copy
