"""A stylized New York: where its 265 taxi zones are, how far apart, how popular, and how willing to tip.

Zones get neutral names ("Manhattan 12"), and which LocationID is in which borough is invented, but for ids that have
a meaning of their own: the airports, unknown places and places outside the city. Boroughs have as many zones as in
TLC's table, in rectangles about where they are on the map, so that distances are believable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whitewater_apps.taxi.config import Service
from whitewater_apps.taxi.zones import LOCATIONS

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
# Number of the other zones; center, and half of width and height, in miles; how willing to tip, on a logistic scale.
BOROUGHS = {
    "Manhattan": (69, (0.9, 1.8), (0.9, 5.8), 0.15),
    "Queens": (67, (8.5, -1.5), (4.5, 4.5), -0.38),
    "Brooklyn": (61, (1.8, -7.4), (3.5, 3.5), 0.08),
    "Bronx": (43, (5.6, 7.2), (3.0, 3.0), -0.90),
    "Staten Island": (20, (-8.6, -12.3), (3.5, 3.5), -0.15),
}
YELLOW_ZONES = 55  # of Manhattan's, from the south: where the congestion surcharge is due
TIMES_SQUARE = (-73.985, 40.758)
MILES_A_DEGREE = (52.4, 69.0)  # of longitude and of latitude, at 40.76 degrees north

# Share of the pickups and of the drop-offs, in per mille; the airports are not in Queens here. The order of magnitude
# is that of the counts by borough in the published months of 2019; green taxis may not be hailed in the yellow zones.
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
DETOUR = 1.35  # driven miles for each mile as the crow flies, in a grid of streets
WITHIN_A_ZONE = 0.45  # miles as the crow flies
SPREAD = 0.25  # of coordinates within a zone, in miles


class City(NamedTuple):
    """Zones by LocationID: borough, name, service zone; miles east and north of Times Square; willingness to tip."""

    borough: npt.NDArray[Any]
    name: npt.NDArray[Any]
    service_zone: npt.NDArray[Any]
    east: Floats
    north: Floats
    character: Floats


def _build() -> City:
    """Return the city, always the same: a zone's neighbors, name and riders do not depend on a simulated month."""
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


CITY = _build()
IS_AIRPORT = np.isin(CITY.service_zone, ("Airports", "EWR"))


def miles_between(start: Integers, end: Integers) -> Floats:
    """Return the miles driven, usually, between locations; a trip within a zone is short but not nothing."""
    crow = np.hypot(CITY.east[start] - CITY.east[end], CITY.north[start] - CITY.north[end])
    return np.asarray(DETOUR * np.hypot(crow, WITHIN_A_ZONE))


def draw_pickups(service: Service, count: int, *, random: np.random.Generator) -> Integers:
    """Draw pickup locations by popularity."""
    allowed = (service != "green") | (CITY.service_zone != "Yellow Zone")
    return random.choice(SIZE, count, p=_popularity(PICKUPS[service], allowed))


def draw_dropoffs(service: Service, pickups: Integers, *, random: np.random.Generator) -> Integers:
    """Draw drop-off locations: airports, or by popularity times a decay with the distance from the pickup."""
    every = np.arange(SIZE)
    reach = np.where(IS_AIRPORT, AIRPORT_REACH, REACH[service])[:, None]
    weights = _popularity(DROPOFFS) * np.exp(-miles_between(every[:, None], every) / reach)
    cumulative = np.cumsum(weights, axis=1)
    # Rows of cumulative shares one above the other make one sorted array, so that one search serves all trips.
    rows = (every[:, None] + cumulative / cumulative[:, -1:]).ravel()
    in_the_city = np.searchsorted(rows, pickups + random.random(len(pickups)), side="right") % SIZE
    airports = random.choice(np.flatnonzero(IS_AIRPORT), len(pickups), p=(0.06, 0.46, 0.48))
    return np.where(random.random(len(pickups)) < TO_AIRPORTS, airports, in_the_city)


def coordinates(locations: Integers, *, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return longitude and latitude of points in the zones, in degrees."""
    east = CITY.east[locations] + random.normal(0, SPREAD, len(locations))
    north = CITY.north[locations] + random.normal(0, SPREAD, len(locations))
    return TIMES_SQUARE[0] + east / MILES_A_DEGREE[0], TIMES_SQUARE[1] + north / MILES_A_DEGREE[1]


def _popularity(shares: Shares, allowed: Mask | bool = True) -> Floats:
    """Return the share of each location: within a borough the more, the nearer it is to Times Square."""
    near = allowed / (1 + np.hypot(CITY.east, CITY.north))
    part = np.where(CITY.service_zone == "Airports", "Airports", CITY.borough)
    weights = sum(share * near * (part == place) / near[part == place].sum() for place, share in shares.items())
    return np.asarray(weights / np.sum(weights))
