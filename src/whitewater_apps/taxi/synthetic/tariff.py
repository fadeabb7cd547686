"""The rates of fare of New York's taxis, and when each came into force.

Sources: TLC's rate of fare before and from 2022-12-19 ("Taximeter Rate of Fare and Various
Surcharges"); the State's congestion surcharge from 2019-02-02; the data dictionaries' notes on the airport fee and the
congestion fee of the Central Business District. All in US dollars. Holidays are not modeled.
"""

from __future__ import annotations

import numpy as np

from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.synthetic.city import JFK, LAGUARDIA, NEWARK, Floats, Integers, city

MICROSECONDS = 1_000_000
SLOW_MILES_A_MINUTE = 5 / 60  # driven while the meter counts minutes, below 12 miles an hour
HISTORY = {
    "initial": {"2015-01-01": 2.50, "2022-12-19": 3.00},
    "unit": {"2015-01-01": 0.50, "2022-12-19": 0.70},
    "jfk_flat": {"2015-01-01": 52.0, "2022-12-19": 70.0},
    "newark": {"2015-01-01": 17.5, "2022-12-19": 20.0},
    "rush": {"2015-01-01": 1.00, "2022-12-19": 2.50},
    "jfk_rush": {"2015-01-01": 0.00, "2017-01-01": 4.50, "2022-12-19": 5.00},
    "night": {"2015-01-01": 0.50, "2022-12-19": 1.00},
    "laguardia": {"2015-01-01": 0.00, "2022-12-19": 5.00},
    "mta_tax": {"2015-01-01": 0.50},
    "improvement": {"2015-01-01": 0.30, "2022-12-19": 1.00},
    "congestion_yellow": {"2015-01-01": 0.00, "2019-02-02": 2.50},
    "congestion_other": {"2015-01-01": 0.00, "2019-02-02": 2.75},
    "airport_taxi": {"2015-01-01": 0.00, "2021-01-01": 1.25, "2023-04-01": 1.75},
    "airport_app": {"2015-01-01": 0.00, "2021-01-01": 2.50},
    "cbd_taxi": {"2015-01-01": 0.00, "2025-01-05": 0.75},
    "cbd_app": {"2015-01-01": 0.00, "2025-01-05": 1.50},
    "bridge_toll": {"2015-01-01": 5.33, "2015-03-22": 5.54, "2017-03-19": 5.76, "2019-03-31": 6.12, "2021-04-11": 6.55,
                    "2023-08-06": 6.94},
}  # fmt: skip


def rate(name: str, pickup: Integers) -> Floats:
    """Return the rate in force at each pickup, in US dollars; ``pickup`` in microseconds since 1970."""
    history = HISTORY[name]
    since = np.array(list(history), "datetime64[us]").astype(np.int64)
    return np.asarray(np.array(list(history.values()))[np.searchsorted(since, pickup, side="right") - 1])


def metered_fare(pickup: Integers, miles: Floats, seconds: Floats) -> Floats:
    """Return the meter's fare: a unit for each fifth of a mile, or for each minute below 12 miles an hour.

    The slower a trip on average, the greater the share of it that counts by the minute.
    """
    miles_an_hour = miles / np.maximum(seconds, 1) * 3600
    slow_minutes = seconds / 60 * np.clip(1.05 - miles_an_hour / 22, 0.05, 0.95)
    fast_miles = np.maximum(miles - slow_minutes * SLOW_MILES_A_MINUTE, 0.2 * miles)
    return np.asarray(rate("initial", pickup) + rate("unit", pickup) * np.floor(5 * fast_miles + slow_minutes))


def rate_codes(service: Service, start: Integers, end: Integers, *, random: np.random.Generator) -> Integers:
    """Return 1 standard, 2 JFK (between Manhattan and the airport; green: to it only), 3 Newark, 5 negotiated."""
    manhattan = city().borough == "Manhattan"
    flat = manhattan[start] & (end == JFK)
    if service == "yellow":
        flat |= manhattan[end] & (start == JFK)
    negotiated = random.random(len(start)) < (0.025 if service == "green" else 0.004)
    return np.select([negotiated, flat, end == NEWARK], [5, 2, 3], 1)


def surcharges(pickup: Integers, start: Integers, end: Integers, codes: Integers) -> Floats:
    """Return the surcharges for rush hours and nights, neither with a negotiated fare, and for LaGuardia."""
    day, hour = pickup // MICROSECONDS // 86_400, pickup // MICROSECONDS // 3_600 % 24
    rush = ((day + 3) % 7 < 5) & (hour >= 16) & (hour < 20)
    night = (hour >= 20) | (hour < 6)
    metered = np.isin(codes, (1, 3))
    rates = [rate("rush", pickup), rate("night", pickup), rate("jfk_rush", pickup)]
    hourly = np.select([rush & metered, night & metered, rush & (codes == 2)], rates, 0.0)
    return np.asarray(hourly + rate("laguardia", pickup) * ((start == LAGUARDIA) | (end == LAGUARDIA)))


def zone_fees(service: Service, pickup: Integers, start: Integers, end: Integers) -> dict[str, Floats]:
    """Return the fees that depend on place: congestion surcharge, airport fee, fee of the Central Business District."""
    surcharged = city().service_zone == "Yellow Zone"
    touches = surcharged[start] | surcharged[end]
    airport, district = ("airport_app", "cbd_app") if service == "fhvhv" else ("airport_taxi", "cbd_taxi")
    fetched = np.isin(start, (JFK, LAGUARDIA)) & (service != "green")
    fetched |= np.isin(end, (JFK, LAGUARDIA)) & (service == "fhvhv")
    return {
        "congestion_surcharge": rate(f"congestion_{'yellow' if service == 'yellow' else 'other'}", pickup) * touches,
        "airport_fee": rate(airport, pickup) * fetched,
        "cbd_congestion_fee": rate(district, pickup) * touches,
    }


def tolls(pickup: Integers, start: Integers, end: Integers, miles: Floats, *, random: np.random.Generator) -> Floats:
    """Return tolls: most likely on long trips from one borough to another, certain to Newark."""
    crosses = city().borough[start] != city().borough[end]
    airport = np.isin(start, (JFK, LAGUARDIA)) | np.isin(end, (JFK, LAGUARDIA))
    likely = np.select([crosses & airport, crosses & (miles > 8), crosses], [0.45, 0.30, 0.06], 0.0)
    toll = rate("bridge_toll", pickup)
    paid = np.where(random.random(len(start)) < likely, toll, 0.0)
    return np.where((start == NEWARK) | (end == NEWARK), 2 * toll + 2, paid)
