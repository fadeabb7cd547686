"""A stylised New York: where its 265 taxi zones are, how far apart, and how popular.

Zones get neutral names ("Manhattan 12"), and which LocationID is in which borough is invented, but for ids that have
a meaning of their own: the airports, unknown places and places outside the city. The boroughs have as many zones as in
TLC's table; they are where they are on the map, so that distances are believable.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.zones import LOCATIONS

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NEWARK, JFK, LAGUARDIA, UNKNOWN, OUTSIDE = 1, 132, 138, 264, 265
AIRPORTS = (NEWARK, JFK, LAGUARDIA)
SIZE = LOCATIONS + 1  # of arrays by LocationID; entry 0 is unused
NAMED = {
    NEWARK: ("EWR", "Newark Airport", "EWR", (-10.0, -4.7)),
    JFK: ("Queens", "JFK Airport", "Airports", (10.7, -7.8)),
    LAGUARDIA: ("Queens", "LaGuardia Airport", "Airports", (6.0, 1.2)),
    UNKNOWN: ("Unknown", "N/A", "N/A", (0.0, 0.0)),
    OUTSIDE: ("N/A", "Outside of NYC", "N/A", (4.0, 18.0)),
}
# Zones besides those above; center in miles east and north of Times Square, and radius in miles.
BOROUGHS = {
    "Manhattan": (69, (0.4, 1.8), 0.6),
    "Queens": (67, (8.5, -1.5), 5.0),
    "Brooklyn": (61, (1.8, -7.4), 4.0),
    "Bronx": (43, (5.6, 7.2), 3.5),
    "Staten Island": (20, (-8.6, -12.3), 4.0),
}
YELLOW_ZONES = 55  # of Manhattan's, from the south: where the congestion surcharge is due
TIMES_SQUARE = (-73.985, 40.758)
MILES_A_DEGREE = (52.4, 69.0)  # of longitude and of latitude, at 40.76 degrees north

# Share of the pickups and of the drop-offs, in per mille; the airports are not in Queens here. The order of magnitude
# is that of the counts by borough in the published months of 2019; green taxis may not be hailed in the yellow zones.
Shares = Mapping[str | int, float]
PICKUPS: dict[Service, Shares] = {
    "yellow": {"Manhattan": 900, "Queens": 22, "Brooklyn": 20, "Bronx": 2, "Staten Island": 0.2,
               JFK: 26, LAGUARDIA: 28, NEWARK: 0.3},
    "green": {"Manhattan": 300, "Queens": 320, "Brooklyn": 310, "Bronx": 68, "Staten Island": 0.2,
              JFK: 0.5, LAGUARDIA: 0.5},
    "fhvhv": {"Manhattan": 370, "Queens": 170, "Brooklyn": 270, "Bronx": 130, "Staten Island": 14,
              JFK: 21, LAGUARDIA: 24, NEWARK: 0.1},
}  # fmt: skip
DROPOFFS: Shares = {"Manhattan": 700, "Queens": 120, "Brooklyn": 130, "Bronx": 40, "Staten Island": 4,
                    JFK: 10, LAGUARDIA: 11, NEWARK: 2, OUTSIDE: 4}  # fmt: skip
REACH: dict[Service, float] = {"yellow": 2.4, "green": 1.2, "fhvhv": 1.8}
AIRPORT_REACH = 12.0
TO_AIRPORTS: dict[Service, float] = {"yellow": 0.035, "green": 0.025, "fhvhv": 0.045}
DETOUR = 1.35  # driven miles for each mile as the crow flies, in a grid of streets
WITHIN_A_ZONE = 0.45  # miles as the crow flies
SPREAD = 0.25  # of coordinates within a zone, in miles


class City(NamedTuple):
    """Zones by LocationID, entry 0 unused: borough, name and service zone; miles east and north of Times Square."""

    borough: npt.NDArray[Any]
    name: npt.NDArray[Any]
    service_zone: npt.NDArray[Any]
    east: Floats
    north: Floats


@lru_cache
def city() -> City:
    """Return the city, always the same.

    Manhattan's zones lie in three columns from the Battery to Inwood, which is north-north-east of it; those of the
    other boroughs are spread evenly over a disc: Vogel's sunflower, by the golden angle.
    """
    rows: dict[int, tuple[str, str, str, tuple[float, float]]] = {0: ("", "", "", (0.0, 0.0)), **NAMED}
    free = [number for number in range(1, SIZE) if number not in NAMED]
    # Dealt out by a fixed shuffle, so that the boroughs are mixed along the ids as in TLC's table.
    numbers = iter(np.random.default_rng(265).permutation(free).tolist())
    for borough, (count, (east, north), radius) in BOROUGHS.items():
        for index, number in enumerate(sorted(next(numbers) for _ in range(count))):
            angle, distance = index * np.pi * (3 - 5**0.5), radius * ((index + 0.5) / count) ** 0.5
            place = east + float(distance * np.cos(angle)), north + float(distance * np.sin(angle))
            service_zone = "Boro Zone"
            if borough == "Manhattan":
                above = 11.6 * index / (count - 1)
                place = -1.0 + 0.33 * above + 0.6 * (index % 3 - 1), above - 4.0
                service_zone = "Yellow Zone" if index < YELLOW_ZONES else service_zone
            rows[number] = (borough, f"{borough} {index + 1}", service_zone, place)
    *texts, places = zip(*(rows[number] for number in range(SIZE)), strict=True)
    return City(*map(np.array, texts), *np.array(places).T)


def miles_between(start: Integers, end: Integers) -> Floats:
    """Return the miles driven, usually, between locations; a trip within a zone is short but not nothing."""
    here = city()
    crow = np.hypot(here.east[start] - here.east[end], here.north[start] - here.north[end])
    return np.asarray(DETOUR * np.hypot(crow, WITHIN_A_ZONE))


def draw_pickups(service: Service, count: int, *, random: np.random.Generator) -> Integers:
    """Draw pickup locations by popularity."""
    cumulative = np.cumsum(_popularity(PICKUPS[service], hailed_in_yellow_zones=service != "green"))
    return np.searchsorted(cumulative / cumulative[-1], random.random(count), side="right")


def draw_dropoffs(service: Service, pickups: Integers, *, random: np.random.Generator) -> Integers:
    """Draw drop-off locations by a gravity model: popularity times a decay with the distance from the pickup."""
    # Rows of cumulative shares one above the other make one sorted array, so that one search serves all trips.
    return np.searchsorted(_gravity(service), pickups + random.random(len(pickups)), side="right") % SIZE


def coordinates(locations: Integers, *, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return longitude and latitude of points in the zones, in degrees."""
    east = city().east[locations] + random.normal(0, SPREAD, len(locations))
    north = city().north[locations] + random.normal(0, SPREAD, len(locations))
    return TIMES_SQUARE[0] + east / MILES_A_DEGREE[0], TIMES_SQUARE[1] + north / MILES_A_DEGREE[1]


@lru_cache
def _gravity(service: Service) -> Floats:
    """Return rows of 266 cumulative shares of the drop-offs, that of location ``n`` from ``n`` to ``n + 1``."""
    every = np.arange(SIZE)
    airport = np.isin(every, AIRPORTS)
    popularity = _popularity(DROPOFFS)
    miles = miles_between(every[:, None], every[None, :])
    in_the_city = ~airport * popularity * np.exp(-miles / np.where(airport, AIRPORT_REACH, REACH[service])[:, None])
    to_airports = airport * popularity * np.exp(-miles / AIRPORT_REACH)
    share = TO_AIRPORTS[service]
    weights = (1 - share) * (in_the_city / in_the_city.sum(axis=1, keepdims=True))
    weights += share * (to_airports / to_airports.sum(axis=1, keepdims=True))
    cumulative = np.cumsum(weights, axis=1)
    return np.asarray((every[:, None] + cumulative / cumulative[:, -1:]).ravel())


def _popularity(shares: Shares, *, hailed_in_yellow_zones: bool = True) -> Floats:
    """Return a weight for each location: within a borough by Zipf's law, the most popular next to Times Square."""
    here = city()
    allowed = hailed_in_yellow_zones | (here.service_zone != "Yellow Zone")
    weights = np.zeros(SIZE)
    for place, share in shares.items():
        if isinstance(place, int):
            weights[place] = share
            continue
        members = np.flatnonzero((here.borough == place) & (here.service_zone != "Airports") & allowed)
        rank = np.argsort(np.argsort(np.hypot(here.east[members], here.north[members])))
        zipf = 1 / (rank + 3.0)
        weights[members] = share * zipf / zipf.sum()
    return weights
