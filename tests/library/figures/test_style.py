"""The look of pictures: the same bytes on any machine, text that is data as it is, and numbers as people read them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from PIL import Image

from whitewater.errors import InputError
from whitewater.figures import style, words
from whitewater.figures.style import NO_LETTER, fit_text


@style.with_style
def figure_of(*names: str) -> Figure:
    figure, body = style.new_figure(9, 3, title="A title", subtitle="A subtitle.", notes=["A note."])
    axes = body.subplots()
    for place, name in enumerate(names):
        axes.text(0.5, place / 3, name)
    return figure


def test_equal_data_give_equal_bytes_whatever_the_machine_prefers(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with mpl.rc_context({"font.size": 30, "svg.hashsalt": None, "axes.grid": False} if name == "second" else {}):
            figure = figure_of("$x$", "汉")
            for form in ("png", "svg"):
                style.save(figure, tmp_path / f"{name}.{form}")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
    with Image.open(tmp_path / "first.png") as image:
        assert not {"Software", "Creation Time"} & set(image.info)
        assert image.width > 1000
    text = (tmp_path / "first.svg").read_text()
    assert "<svg" in text
    assert "<dc:date" not in text


def test_a_format_that_is_not_offered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        style.save(style.text_figure("title", "reason"), tmp_path / "picture.pdf")


@pytest.mark.parametrize(
    ("number", "long", "short"),
    [
        (980, "980", "980"),
        (12_345, "12,345", "12.3k"),
        (1_234_567, "1,234,567", "1.23M"),
        (23_456_789, "23.5 million", "23.5M"),
        (1_200_000_000, "1.2 billion", "1.2G"),
    ],
)
def test_counts_are_readable(number: int, long: str, short: str) -> None:
    assert (words.count(number), words.short_count(number)) == (long, short)


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.26, "26.0 %"), (1.0, "100 %"), (0.000923, "0.0923 %"), (0.0, "0.00 %")]
)
def test_shares_have_three_digits(fraction: float, text: str) -> None:
    assert words.percent(fraction) == text


@pytest.mark.parametrize(
    ("name", "drawn"), [("東京 $x$\n\x07", f"{NO_LETTER * 2} $x$ {NO_LETTER}"), ("Αθήνα Москва", "Αθήνα Москва")]
)
def test_letters_that_the_font_lacks_are_marked_and_others_kept(name: str, drawn: str) -> None:
    assert fit_text(name, points=300, size=8) == drawn


@pytest.mark.parametrize("name", ["W" * 200, "i" * 20_000, "A" * 100 + "z", ""])
def test_names_are_cut_in_the_middle_to_the_room_there_is(name: str) -> None:
    short = fit_text(name, points=200, size=8)
    text = Figure().text(0, 0, short, size=8, family="DejaVu Sans")
    assert text.get_window_extent().width * 72 / 100 <= 202
    assert short == name or "…" in short
    assert short[-1:] == name[-1:]


def test_each_picture_is_drawn_in_each_format_and_letters_that_the_font_lacks_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plots = {name: tmp_path / name for name in ("b.png", "a.svg", "a.png", "c.svg")}
    names = {"a": ("染色体$1$",), "b": (r"$\frac{",), "c": ("2", "日")}
    figures = {picture: partial(figure_of, *texts) for picture, texts in names.items()}
    assert style.draw_all(figures, plots) == ["a", "b", "c"]
    (told,) = caplog.messages
    assert told == f"The font of the pictures lacks letters of names in a, c: they are drawn as {NO_LETTER}"
    assert "<!-- ▯▯▯$1$ -->" in (tmp_path / "a.svg").read_text()
    for path in plots.values():
        start = path.read_bytes()[:8]
        assert start == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else start.startswith(b"<?xml")


def test_a_picture_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"moon.*ranks, degrees"):
        style.draw_all({"ranks": figure_of, "degrees": figure_of}, {"moon.png": tmp_path / "moon.png"})
