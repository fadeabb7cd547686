"""Pages of HTML: what they say and link to, in any encoding and however broken; oracle: another parser."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.real_data import needs_real_data, real_data
from whitewater.web.page_content import HtmlPage, decode, is_too_complex, page_links, read_html, read_page
from whitewater.web.pages import Page

URL = "https://example.org/a/b.html"


def page_of(body: bytes, content_type: str | None = "text/html") -> Page:
    return Page(URL, 200, content_type, None, body)


def targets(html: str, *, nofollow: bool = True) -> list[str]:
    return page_links(read_html(html), URL, nofollow=nofollow, drop_parameters={"utm_source"})[0]


class Oracle(HTMLParser):
    """Links and title of well-formed pages."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.title = ""
        self._in_title = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        self.links += [urljoin(URL, value) for name, value in attrs if tag == "a" and name == "href" and value]

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        self.title += data if self._in_title else ""


def test_a_page_has_a_title_a_text_and_links() -> None:
    page = read_html(
        "<!doctype html><html><head><title> The\n title </title><style>p {}</style></head><body><p>One <b>w</b>ord,"
        "<p>two<br>lines &amp; <a href=c.html>a\tlink</a><script>no</script><noscript>no</noscript>"
        "<template>no <a href=no></a></template><!-- no --><map><area href='/d?x=1&amp;y=2'></map></body></html>"
    )
    assert page.title == "The title"
    assert page.text == "One word, two lines & a link"
    assert [url for url, _ in page.hrefs] == ["c.html", "/d?x=1&y=2"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div>a</div>b", "a b"),
        ("a<div>b</div>", "a b"),
        ("<ul><li>a<li>b</ul>c", "a b c"),
        ("<td>a<td>b", "ab"),
        ("<table><tr><td>a<td>b</table>c", "a b c"),
        ("<span><div>a</div></span>b", "a b"),
        ("<h1>a</h1><h2>b</h2>", "a b"),
        ("H<sub>2</sub>O\u00a0!", "H2O !"),
        ("<x-y>a</x-y>b", "ab"),
        ("<svg><title>no</title><text>yes</text></svg>", "yes"),
        ("<frameset><frame src=x></frameset>", ""),
    ],
)
def test_words_are_apart_where_blocks_end_and_only_there(html: str, text: str) -> None:
    assert read_html(html).text == text


def test_links_are_those_of_the_standard_librarys_parser() -> None:
    html = "<title>x</title>" + "".join(
        f"<p><a class=x href='{path}'>{path}</a>" for path in ("c", "/d", "../e?f=1", "//g/")
    )
    assert targets(html) == Oracle(html).links
    assert read_html(html).title == Oracle(html).title


def test_each_target_counts_once_and_each_link_by_what_becomes_of_it() -> None:
    html = (
        "<a href=c><a href=./c><a href=c?utm_source=x><a href=mailto:x><a href=http://a..b/><a href=d rel='x NoFollow'>"
    )
    html += f"<a href={'e' * 3000}><a name=x><a href=''><a href='#top'>"
    found, left_out = page_links(read_html(html), URL, nofollow=True, drop_parameters={"utm_source"})
    assert found == ["https://example.org/a/c", URL]
    assert left_out == {"repeated": 3, "scheme": 1, "invalid": 1, "nofollow": 1, "too_long": 1}
    assert len(found) + left_out.total() == 9


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("<base href=/d/>", "https://example.org/d/c"),
        ("<base href=//h/d/><base href=/e/>", "https://h/d/c"),
        ("<base target=x><base href=/e/>", "https://example.org/e/c"),
        ("<base href=mailto:x>", "https://example.org/a/c"),
    ],
)
def test_links_are_relative_to_the_base(base: str, expected: str) -> None:
    assert targets(f"<a href=c>{base}") == [expected]


@pytest.mark.parametrize("content", ["nofollow", "noindex, NOFOLLOW", "none"])
def test_all_links_of_a_page_can_be_marked_nofollow(content: str) -> None:
    html = f"<meta name=Robots content='{content}'><a href=c>"
    assert targets(html) == []
    assert targets(html, nofollow=False) == ["https://example.org/a/c"]
    assert targets("<meta name=robots content=noindex><a href=c>") == ["https://example.org/a/c"]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        ("0; URL = 'x y'", "x y"),
        ("0, url=x", "x"),
        ("00.0;url=x", "x"),
        ("5;url=x", None),
        ("0", None),
        ("0.5;url=x", None),
        ("", None),
        (" " * 200_000 + "x", None),  # which would take minutes, if each blank were tried twice
    ],
)
def test_a_refresh_at_once_is_a_redirect(content: str, target: str | None) -> None:
    assert read_html(f'<meta http-equiv=Refresh content="{content}">').refresh == target


@pytest.mark.parametrize(
    "link", ["<svg><a xlink:href=b>x</a></svg>", "<math><a xlink:href=b>", "<svg><base xlink:href=b>"]
)
def test_an_attribute_of_another_name_space_is_no_link(link: str) -> None:
    page = read_html(f"{link}</svg></math><a href=c>c</a>")
    assert (page.hrefs, page.base) == ([("c", False)], None)


@pytest.mark.parametrize(
    "page", ["<p>x<html><head><title>A</title>", "<svg><title>x</title></svg><body><title>A</title>"]
)
def test_the_title_may_stand_anywhere_but_in_a_picture(page: str) -> None:
    assert read_html(page).title == "A"


def test_the_canonical_address_is_named_in_the_head_only() -> None:
    assert read_html("<link rel='x Canonical' href=c><link rel=canonical href=d>").canonical == "c"
    assert read_html("<p><link rel=canonical href=c>").canonical is None
    assert read_html("<noscript><img src=x></noscript><link rel=canonical href=c>").canonical == "c"


UMLAUTS = "Grüße, „Welt“ … naïve"
KANA = "日本語のページ"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (UMLAUTS.encode(), None, UMLAUTS),
        (UMLAUTS.encode("cp1252"), None, UMLAUTS),
        (UMLAUTS.encode("cp1252"), "text/html; charset=ISO-8859-1", UMLAUTS),
        (b"<meta charset=utf-16>" + UMLAUTS.encode(), None, UMLAUTS),
        (b"<meta charset=latin1>" + UMLAUTS.encode("cp1252"), None, UMLAUTS),
        (UMLAUTS.encode("utf-16"), "text/html; charset=utf-8", UMLAUTS),
        (b"\xef\xbb\xbf" + UMLAUTS.encode(), "text/html; charset=latin-1", UMLAUTS),
        (UMLAUTS.encode("utf-16-le"), "text/html; charset=utf-16le", UMLAUTS),
        (b"<meta http-equiv=content-type content='text/html; charset=Shift_JIS'>" + KANA.encode("cp932"), None, KANA),
        (b"<meta charset=utf-8>" + KANA.encode("euc-jp"), "text/html; charset=euc-jp", KANA),
        ("Grüße".encode("cp1252"), "text/html; charset=utf-8", "Gr\ufffd\ufffde"),
        (b"a\xff\xfeb\xc3", "text/html; charset=utf-8", "a\ufffd\ufffdb\ufffd"),
        (b"a\x81\xff", None, "a\ufffdÿ"),
        (UMLAUTS.encode(), "text/html; charset=no-such-encoding", UMLAUTS),
        (UMLAUTS.encode(), "text/html; charset=base64", UMLAUTS),
        (b"a\\ud800b", "text/html; charset=raw-unicode-escape", "a?b"),
    ],
)
def test_pages_are_read_in_the_encoding_that_a_browser_would_take(
    body: bytes, content_type: str | None, text: str
) -> None:
    assert read_html(decode(body, content_type)).text == text


def test_what_is_not_text_is_refused_by_kind() -> None:
    assert read_page(page_of(b"\x89PNG", "image/png"), maximum_bytes=10) == "other_type"
    assert read_page(page_of(b"PK\0\0"), maximum_bytes=10) == "binary"
    assert read_page(page_of(b"x" * 11), maximum_bytes=10) == "too_large"
    assert read_page(page_of("x\0".encode("utf-16")), maximum_bytes=10) == "binary"
    assert isinstance(read_page(page_of(b"x" * 10, None), maximum_bytes=10), HtmlPage)
    assert isinstance(read_page(page_of("xyz".encode("utf-16")), maximum_bytes=10), HtmlPage)


def test_of_plain_text_the_first_line_is_the_title_and_tags_are_text() -> None:
    page = read_page(
        page_of(b"\n First  line\r\n<a href=c>no link</a>", "Text/Plain; charset=utf-8"), maximum_bytes=100
    )
    assert page == HtmlPage(title="First line", text="First line <a href=c>no link</a>")
    assert read_page(page_of(b"", "text/plain"), maximum_bytes=100) == HtmlPage()


@given(st.binary(), st.none() | st.text() | st.sampled_from(["text/html; charset=utf-16", "text/html;charset=zip"]))
def test_any_bytes_of_any_type_are_read_or_refused(body: bytes, content_type: str | None) -> None:
    read_page(page_of(body, content_type), maximum_bytes=1000)


opening = st.sampled_from(
    ["<a href=", "<a href='x'>", "<b>", "<p>", "<table>", "<td>", "<base href=", "<title>", "<svg>"]
)
closing = st.sampled_from(["</a>", "</p>", "</script>", "</", "-->", '"', "'", ">"])
others = st.sampled_from(["<!--", "<script>", "<template>", "<", "&amp", "&#xD800;", "\0", "é", "x", " ", "<frameset>"])
tags = opening | closing | others | st.just("<meta http-equiv=refresh content=0;url=")


@given(st.lists(tags, max_size=60).map("".join))
def test_broken_html_is_read_and_its_text_is_collapsed(html: str) -> None:
    page = read_html(html)
    assert page.text == " ".join(page.text.split())
    found, left_out = page_links(page, URL, nofollow=True)
    assert len(found) + left_out.total() == len(page.hrefs)


def test_elements_nested_a_hundred_thousand_deep_are_refused_before_they_take_minutes() -> None:
    assert read_page(page_of(b"<div>" * 100_000), maximum_bytes=10**6) == "too_complex"
    assert is_too_complex("<div></x><!-- </div> --><i title='</div>'></i>" * 50_000)
    assert is_too_complex("".join(f"<p><font color={number}>t" for number in range(5000)))
    assert not is_too_complex(f"<!--{''.join(f'<i class={number}>' for number in range(1500))}-->" + "<p>x</p>" * 5000)
    assert not is_too_complex("".join(f"<td><FONT COLOR={number % 500}>t</font>" for number in range(10_000)))
    assert not is_too_complex("<p><b>t" * 4000)
    assert not is_too_complex("".join(f"<p><font color={number}>t</font>" for number in range(4000)))
    assert is_too_complex("<p " + " ".join(f"a{number}" for number in range(50_000)) + ">")


@pytest.mark.parametrize("unclosed", ["<p>x", "<li>x", "<br>", "<td>x", "<script>'<div>'</script>", "<div>x</div>"])
def test_large_pages_without_depth_are_not_refused(unclosed: str) -> None:
    assert not is_too_complex(unclosed * 50_000)


def test_nesting_that_needs_no_long_search_is_read_to_its_depth() -> None:
    page = read_html("<b>" * 30_000 + "x<a href=c>" + "<span>" * 30_000 + "y")
    assert page.text == "xy"
    assert len(page.hrefs) == 1


@needs_real_data
@pytest.mark.parametrize("corpus", ["corpus0", "corpus1", "corpus2"])
def test_the_pages_of_cs50_link_to_each_other_as_the_standard_librarys_parser_says(corpus: str) -> None:
    files: list[Path] = sorted(real_data("graph", "cs50", corpus).glob("*.html"))
    assert files
    for file in files:
        oracle = Oracle(file.read_text())
        assert targets(file.read_text()) == list(dict.fromkeys(oracle.links))
        assert read_html(file.read_text()).title == oracle.title.strip()
