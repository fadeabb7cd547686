"""The table of zones: every form in circulation gives the same answer, and none multiplies trips."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from whitewater.errors import InputError
from whitewater_apps.taxi.zones import read_zones, zones_csv

OFFICIAL = (
    '"LocationID","Borough","Zone","service_zone"\r\n1,"EWR","Newark Airport","EWR"\r\n'
    '4,"Manhattan","Alphabet City","Yellow Zone"\r\n264,"Unknown","N/A","N/A"\r\n265,"N/A","Outside of NYC","N/A"\r\n'
)


def table(folder: Path, text: str) -> Path:
    path = folder / "zones.csv"
    path.write_text(text, newline="")
    return path


def test_boroughs_and_names_are_indexed_by_location(tmp_path: Path) -> None:
    zones = read_zones(table(tmp_path, OFFICIAL))
    assert zones.borough_names == ("EWR", "Manhattan", "N/A", "Unknown")
    assert tuple(zones.boroughs[location] for location in (1, 4, 265, 264)) == zones.borough_names
    assert (zones.names[4], zones.service_zones[4]) == ("Alphabet City", "Yellow Zone")
    assert len(zones.names) == len(zones.boroughs) == 266


def test_a_location_that_the_table_lacks_has_no_borough(tmp_path: Path) -> None:
    zones = read_zones(table(tmp_path, OFFICIAL))
    assert (zones.boroughs[2], zones.names[2]) == (None, None)
    assert zones.within("Manhattan") == (4,)
    assert zones.within("Bronx") == ()


def test_not_available_is_a_text_and_stands_for_a_blank(tmp_path: Path) -> None:
    blank = OFFICIAL.replace('"N/A"', "")
    assert zones_csv(read_zones(table(tmp_path, blank))) == zones_csv(read_zones(table(tmp_path, OFFICIAL)))
    assert read_zones(tmp_path / "zones.csv").names[264] == "N/A"


def test_rows_that_repeat_another_are_dropped_and_counted(tmp_path: Path) -> None:
    twice = OFFICIAL + '4,"Manhattan","Alphabet City","Yellow Zone"\r\n' * 2
    zones = read_zones(table(tmp_path, twice))
    assert zones.duplicates == 2
    assert zones_csv(zones) == zones_csv(read_zones(table(tmp_path, OFFICIAL)))


def test_a_location_with_two_meanings_is_refused_by_number(tmp_path: Path) -> None:
    conflict = OFFICIAL + '4,"Queens","Alphabet City","Yellow Zone"\r\n'
    with pytest.raises(InputError, match="LocationID 4"):
        read_zones(table(tmp_path, conflict))


@pytest.mark.parametrize("location", ["0", "266", "-4", "4.5", "four"])
def test_a_location_outside_the_city_is_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(InputError, match=f"LocationID '{location}'"):
        read_zones(table(tmp_path, OFFICIAL + f'{location},"Bronx","X","X"\r\n'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "LocationID and Borough and Zone"),
        ("LocationID,Zone\n1,Newark\n", "Borough"),
        ("LocationID,Borough,Zone\n", "rows"),
        ("LocationID,Borough,Zone\n1,EWR\n", "row 2"),
        ('LocationID,Borough,Zone\n1,EWR,"torn\n', "not a readable table"),
    ],
)
def test_a_table_that_cannot_be_understood_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_zones(table(tmp_path, text))


def test_the_table_survives_writing_and_reading(tmp_path: Path) -> None:
    quoted = OFFICIAL.replace("Alphabet City", 'Alphabet ""A, B"" City')
    text = zones_csv(read_zones(table(tmp_path, quoted)))
    assert zones_csv(read_zones(table(tmp_path, text))) == text
    assert list(csv.DictReader(text.splitlines()))[1]["Zone"] == 'Alphabet "A, B" City'
