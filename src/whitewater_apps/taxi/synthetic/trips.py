"""Riders: when they travel, how long it takes, how they pay, and how they tip.

The numbers below are chosen, not fitted: their shapes are those of the published months (two daily peaks, late nights
at weekends, slow afternoons; tips by the preset buttons of the payment screen), and mean tip fractions come out near
the published ones, 0.22 to 0.27 of the fare by card in yellow taxis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.schema import CARD, CASH, DISPUTE, NO_CHARGE
from whitewater_apps.taxi.synthetic import city, tariff
from whitewater_apps.taxi.synthetic.city import Floats, Integers, Mask
from whitewater_apps.taxi.synthetic.tariff import MICROSECONDS

Trips = dict[str, npt.NDArray[Any]]

# Trips by hour of the day, in any unit.
WEEKDAY = (22, 13, 8, 5, 6, 10, 24, 40, 48, 48, 46, 46, 49, 49, 51, 52, 47, 56, 64, 63, 60, 60, 54, 40)
SATURDAY = (52, 44, 36, 26, 14, 6, 9, 15, 24, 35, 43, 49, 52, 53, 53, 54, 52, 55, 60, 60, 56, 55, 58, 58)
SUNDAY = (54, 47, 39, 29, 17, 8, 8, 11, 18, 29, 39, 46, 50, 51, 51, 50, 48, 49, 48, 44, 40, 36, 30, 22)
WEEKDAYS = (0.90, 0.97, 1.00, 1.05, 1.10)  # Monday to Friday
# Miles an hour of a short trip on a weekday.
SPEED = (
    17, 18, 19, 20, 21, 20, 16, 12.5, 11, 10.5, 10.5, 10.3, 10, 10, 10, 9.8, 9.8, 9.8, 10.3, 11.2, 12.2, 13, 13.8, 15,
)  # fmt: skip
# How willing to tip riders are by hour, on a logistic scale: least before dawn, most when commuting and at night.
GENEROSITY = (
    0.15, 0.10, 0.00, -0.20, -0.45, -0.45, -0.20, 0.05, 0.15, 0.10, 0.00, -0.05, -0.10, -0.10, -0.10, -0.10, 0.00, 0.10,
    0.15, 0.20, 0.25, 0.30, 0.25, 0.20,
)  # fmt: skip
# Share of the trips paid by card, by year.
CARDS: dict[Service, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "yellow": ((2009, 2013, 2019, 2024), (0.25, 0.53, 0.71, 0.80)),
    "green": ((2013, 2019, 2024), (0.45, 0.57, 0.68)),
}
CHARGES = (
    "fare_amount", "extra", "mta_tax", "improvement_surcharge", "tolls_amount", "congestion_surcharge",
    "airport_fee", "cbd_congestion_fee",
)  # fmt: skip
PRESETS = (0.20, 0.25, 0.30)
NO_TIP: dict[Service, float] = {"yellow": 0.05, "green": 0.12, "fhvhv": 0.80}
BOROUGH_CHARACTER = {"Manhattan": 0.10, "Brooklyn": 0.05, "Queens": -0.20, "Bronx": -0.60, "Staten Island": -0.10}
PASSENGERS = (0.705, 0.150, 0.043, 0.020, 0.050, 0.032)  # one to six


def hourly_demand(service: Service, hours: Integers) -> Floats:
    """Return how many trips begin in an hour, in any unit; ``hours`` are hours since 1970, local time."""
    weekday, hour = (hours // 24 + 3) % 7, hours % 24
    working = np.array((*WEEKDAYS, 1.0, 1.0))[weekday]
    demand = np.array([WEEKDAY] * 5 + [SATURDAY, SUNDAY], np.float64)[weekday, hour] * working
    # Rides ordered by app are many when taxis are few: late in the evening and at night.
    late = (hour >= 20) | (hour < 5)
    return np.asarray(np.where(late & (service == "fhvhv"), 1.5, 1.0) * demand)


def taxi_trips(service: Service, pickup: Integers, *, random: np.random.Generator) -> Trips:
    """Return trips of yellow or green taxis, which began at ``pickup``: microseconds since 1970, local time.

    The columns are those of `whitewater_apps.taxi.schema.TRIP_COLUMNS`, (trips,); amounts are US dollars in whole
    cents.
    """
    trips = _journeys(service, pickup, random=random)
    start, end, miles = trips["pickup_location_id"], trips["dropoff_location_id"], trips["trip_distance"]
    count = len(pickup)
    codes = tariff.rate_codes(service, start, end, random=random)
    metered = tariff.metered_fare(pickup, miles, trips["trip_time"])
    negotiated = np.maximum(5 * np.rint(metered * random.lognormal(0.1, 0.3, count) / 5), 5)
    fares = [tariff.rate("jfk_flat", pickup), metered + tariff.rate("newark", pickup), negotiated]
    trips |= {
        "vendor_id": np.where(random.random(count) < (0.37 if service == "yellow" else 0.14), 1, 2),
        "passenger_count": 1 + np.searchsorted(np.cumsum(PASSENGERS)[:-1], random.random(count)),
        "rate_code": codes,
        "store_and_forward": (random.random(count) < 0.005).astype(np.int64),
        "trip_type": np.where(codes == 5, 2, 1),
        "fare_amount": np.select([codes == 2, codes == 3, codes == 5], fares, metered),
        "extra": tariff.surcharges(pickup, start, end, codes),
        "mta_tax": tariff.rate("mta_tax", pickup) * (codes != 5),
        "improvement_surcharge": tariff.rate("improvement", pickup),
        "tolls_amount": tariff.tolls(pickup, start, end, miles, random=random),
        **tariff.zone_fees(service, pickup, start, end),
    }
    # A meter of vendor 1 measures tenths of a mile, one of vendor 2 hundredths.
    trips["trip_distance"] = np.where(trips["vendor_id"] == 1, np.round(miles, 1), miles)
    trips["payment_type"] = _payments(service, trips, random=random)
    charged = np.asarray(np.sum([trips[name] for name in CHARGES], axis=0))
    trips["tip_amount"] = _card_tips(service, trips, charged, random=random) * (trips["payment_type"] == CARD)
    trips["total_amount"] = np.round(charged + trips["tip_amount"], 2)
    for end_point, locations in (("pickup", start), ("dropoff", end)):
        trips[f"{end_point}_longitude"], trips[f"{end_point}_latitude"] = city.coordinates(locations, random=random)
    return trips


def app_trips(pickup: Integers, *, random: np.random.Generator) -> Trips:
    """Return high-volume for-hire trips (fhvhv); see `taxi_trips`.

    Fares are a base, miles, minutes and a surge; most riders do not tip, the others by buttons of whole dollars or of
    a share of the fare.
    """
    trips = _journeys("fhvhv", pickup, random=random)
    start, end, count = trips["pickup_location_id"], trips["dropoff_location_id"], len(pickup)
    minutes = trips["trip_time"] / 60
    surge = np.maximum(random.lognormal(0.05, 0.2, count), 0.9)
    fare = np.round(np.maximum((2.55 + 1.75 * trips["trip_distance"] + 0.35 * minutes) * surge, 8), 2)
    license = np.array([2, 3, 5])[np.searchsorted((0.03, 0.74), random.random(count))]
    waited, boarded = random.gamma(2.0, 150.0, count), random.gamma(1.5, 40.0, count)
    shared = random.random(count) < 0.08
    trips |= {
        "vendor_id": license,
        "fare_amount": fare,
        "tolls_amount": tariff.tolls(pickup, start, end, trips["trip_distance"], random=random),
        "black_car_fund": np.round(0.025 * fare, 2),
        "sales_tax": np.round(0.08875 * fare, 2),
        "driver_pay": np.round(fare * random.normal(0.78, 0.06, count), 2),
        "request_datetime": pickup - np.rint(waited + boarded).astype(np.int64) * MICROSECONDS,
        "on_scene_datetime": pickup - np.rint(boarded).astype(np.int64) * MICROSECONDS,
        "shared_request": shared.astype(np.int64),
        "shared_match": (shared & (random.random(count) < 0.6)).astype(np.int64),
        "access_a_ride": np.zeros(count, np.int64),
        "wheelchair_request": (random.random(count) < 0.0015).astype(np.int64),
        "wheelchair_match": (random.random(count) < 0.03).astype(np.int64),
        **tariff.zone_fees("fhvhv", pickup, start, end),
    }
    dollars = np.array([1.0, 2, 3, 5])[np.searchsorted((0.30, 0.55, 0.85), random.random(count))]
    share = fare * np.array([0.10, 0.15, 0.20])[np.searchsorted((0.3, 0.7), random.random(count))]
    tips = np.where(random.random(count) < 0.6, dollars, share)
    trips["tip_amount"] = np.round(tips * _draw_tippers("fhvhv", _generosity(trips), random=random), 2)
    return trips


def _journeys(service: Service, pickup: Integers, *, random: np.random.Generator) -> Trips:
    """Return where trips lead, how far, and how long they take."""
    count = len(pickup)
    start = city.draw_pickups(service, count, random=random)
    end = city.draw_dropoffs(service, start, random=random)
    miles = np.round(city.miles_between(start, end) * random.lognormal(0, 0.25, count), 2)
    hour, weekend = pickup // MICROSECONDS // 3_600 % 24, (pickup // MICROSECONDS // 86_400 + 3) % 7 > 4
    speed = np.array(SPEED, np.float64)[hour] * np.where(weekend & (hour >= 7) & (hour < 20), 1.15, 1.0)
    # A long trip is driven faster: it uses the highways.
    speed *= 1 + 0.35 * np.log1p(miles / 2)
    seconds = np.rint(90 + miles / speed * 3600 * random.lognormal(0, 0.25, count)).astype(np.int64)
    return {
        "pickup_datetime": pickup,
        "dropoff_datetime": pickup + seconds * MICROSECONDS,
        "trip_time": seconds,
        "pickup_location_id": start,
        "dropoff_location_id": end,
        "trip_distance": miles,
    }


def _payments(service: Service, trips: Trips, *, random: np.random.Generator) -> Integers:
    """Draw how riders pay: by card the more often the farther they go; a few do not pay or dispute the fare."""
    pickup, count = trips["pickup_datetime"], len(trips["pickup_datetime"])
    years = pickup.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    share = np.interp(years, *CARDS[service])
    willing = np.log(share / (1 - share)) + 0.25 * np.log((trips["trip_distance"] + 0.5) / 2.5)
    card = random.random(count) < _logistic(willing + 0.5 * _character()[trips["pickup_location_id"]])
    odd = random.random(count)
    return np.select([odd < 0.005, odd < 0.007, card], [NO_CHARGE, DISPUTE, CARD], CASH)


def _card_tips(service: Service, trips: Trips, charged: Floats, *, random: np.random.Generator) -> Floats:
    """Draw tips by card: none, a preset share of what is charged, whole dollars, or up to a whole total."""
    count, miles = len(charged), trips["trip_distance"]
    generous = _generosity(trips)
    # The screens of vendor 2 leave tolls out of what their buttons are a share of.
    base = charged - np.where(trips["vendor_id"] == 2, trips["tolls_amount"], 0.0)
    mood = random.logistic(0, 1, count) + 0.7 * generous - 0.1 * np.log1p(miles)
    button = np.searchsorted((0.68, 0.90), _logistic(mood))
    preset = base * np.array(PRESETS)[button]
    dollars = np.maximum(np.rint(base * random.normal(0.15, 0.05, count)), 1)
    rounded = np.ceil(1.1 * charged) - charged
    habit = random.random(count)
    tips = np.select([habit < 0.66, habit < 0.90], [preset, dollars], rounded)
    return np.asarray(np.round(tips * _draw_tippers(service, generous, random=random), 2))


def _generosity(trips: Trips) -> Floats:
    """Return how willing to tip riders are, by hour, by the zones they travel between, and to or from an airport."""
    character, hour = _character(), trips["pickup_datetime"] // MICROSECONDS // 3_600 % 24
    start, end = trips["pickup_location_id"], trips["dropoff_location_id"]
    airport = np.isin(start, city.AIRPORTS) | np.isin(end, city.AIRPORTS)
    return np.asarray(np.array(GENEROSITY)[hour] + character[start] + 0.5 * character[end] - 0.25 * airport)


def _draw_tippers(service: Service, generous: Floats, *, random: np.random.Generator) -> Mask:
    """Draw who tips at all."""
    usual = NO_TIP[service]
    return random.random(len(generous)) > _logistic(np.log(usual / (1 - usual)) - generous)


@lru_cache
def _character() -> Floats:
    """Return how willing to tip the riders of each zone are: a trait of the city, not of a simulated month."""
    by_borough = [BOROUGH_CHARACTER.get(borough, 0.0) for borough in city.city().borough]
    return np.asarray(by_borough + np.random.default_rng(1_653).normal(0, 0.25, city.SIZE))


def _logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)))
