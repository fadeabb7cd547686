"""URLs in normal form: hand-written expectations, urllib as oracle for references, and properties for any text."""

from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from w3lib.url import canonicalize_url

from whitewater.web.urls import MAXIMUM_LENGTH, host, normal_or_refusal, normalize

BASE = "https://example.org/a/b/c?x=1"

NORMAL_FORMS = {
    "HTTP://EXAMPLE.Org:80": "http://example.org/",
    "https://example.org:443/a": "https://example.org/a",
    "https://example.org:80/a": "https://example.org:80/a",
    "http://example.org:/a": "http://example.org/a",
    "http://example.org:0081/": "http://example.org:81/",
    "http://example.org/a#top?b": "http://example.org/a",
    "http://example.org/a?": "http://example.org/a",
    "http://example.org/a/./b/../c/..": "http://example.org/a/",
    "http://example.org/%2e%2E/a": "http://example.org/a",
    "http://example.org/%7euser/%2f%c3%a9": "http://example.org/~user/%2F%C3%A9",
    "http://example.org/é ü?q=ß": "http://example.org/%C3%A9%20%C3%BC?q=%C3%9F",
    "http://example.org/100%": "http://example.org/100%25",
    "http://example.org/%4%31": "http://example.org/%2541",
    "http://example.org/?a[]=1&b='x'": "http://example.org/?a%5B%5D=1&b=%27x%27",
    "http://example.org/a//b": "http://example.org/a//b",
    "http:\\\\example.org\\a?b\\c": "http://example.org/a?b%5Cc",
    " \thttp://exam\nple.org/a\r\n/b \x00": "http://example.org/a/b",
    "https:example.org": "https://example.org/",
    "https:////example.org": "https://example.org/",
    "http://münchen.de": "http://xn--mnchen-3ya.de/",
    "http://MÜNCHEN.de": "http://xn--mnchen-3ya.de/",
    "http://☃.net": "http://xn--n3h.net/",
    "http://\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45\u3002org": "http://example.org/",
    "http://ex%61mple.org": "http://example.org/",
    "http://example.org.": "http://example.org./",
    "http://@example.org/": "http://example.org/",
    "http://under_score.example.org": "http://under_score.example.org/",
    "http://0x7f.1": "http://127.0.0.1/",
    "http://2130706433": "http://127.0.0.1/",
    "http://[0:0::1]:80/": "http://[::1]/",
    "http://example.org/\ud800": "http://example.org/%EF%BF%BD",
}

REFUSED = {
    "mailto:a@example.org": "scheme",
    "javascript:void(0)": "scheme",
    "data:text/html," + "x" * MAXIMUM_LENGTH: "scheme",
    "tel:+123": "scheme",
    "ftp://example.org/": "scheme",
    "a:b": "scheme",
    "http://user:password@example.org/": "invalid",
    "http://": "invalid",
    "http://a..b/": "invalid",
    "http://a b/": "invalid",
    "http://exa%mple.org/": "invalid",
    "http://a<b/": "invalid",
    "http://example.org:65536/": "invalid",
    "http://example.org:0/": "invalid",
    "http://example.org:port/": "invalid",
    "http://example.org:\uff18\uff10/": "invalid",
    "http://256.0.0.1/": "invalid",
    "http://a.1/": "invalid",
    "http://[::1/": "invalid",
    "http://[::g]/": "invalid",
    "http://[fe80::1%25eth0]/": "invalid",
    "http://" + "a" * 64 + ".org/": "invalid",
    "http://" + "a." * 127 + "org/": "invalid",
    "relative.html": "invalid",
    "http://example.org/" + "a" * MAXIMUM_LENGTH: "too_long",
    "http://example.org/" + "é" * (MAXIMUM_LENGTH // 5): "too_long",
}

# RFC 3986, section 5.4, with another base.
REFERENCES = ["", "#s", "?y", "g", "./g", "g/", "/g", "//g.org", "g?y", "g;x", ";x", ".", "./", "..", "../", "../g",
              "../..", "../../", "../../g", "../../../g", "/./g", "/../g", "g.", ".g", "g..", "..g", "./../g", "./g/.",
              "g/./h", "g/../h", "g;x=1/../y", "g?y/./x", "g?y/../x", "http://other.org/x", "1:b", "./a:b"]  # fmt: skip

schemes = st.sampled_from(
    ["http:", "HTTPS:", "https:/", "http://", "https://", "", "//", "/", "mailto:", "?", "../", "a:"]
)
marks = st.sampled_from(["%7E", "%c3", "%", "/", "..", ".", "?", "&", "=", "#", "[", "]", ":", "@", "\\", " ", "\n"])
names = st.sampled_from(["example", ".org", "é", "xn--", "0x1", "1", "\uff18", "ß", "\u200d", "\ud800", "a" * 70])
pieces = marks | names
any_url = st.builds("{}{}".format, schemes, st.text() | st.lists(pieces).map("".join))


@pytest.mark.parametrize("url", NORMAL_FORMS, ids=ascii)
def test_two_ways_to_write_an_address_have_one_normal_form(url: str) -> None:
    assert normalize(url) == NORMAL_FORMS[url]


@pytest.mark.parametrize("url", REFUSED, ids=lambda url: ascii(url)[:40])
def test_what_is_not_an_address_of_a_page_is_refused_for_a_reason(url: str) -> None:
    assert normalize(url) is None
    assert normal_or_refusal(url) == REFUSED[url]


@pytest.mark.parametrize("reference", REFERENCES)
def test_references_lead_where_urllib_says(reference: str) -> None:
    expected = urljoin(BASE, reference).partition("#")[0]
    assert normalize(reference, BASE) == (expected if urlsplit(expected).path else f"{expected}/")


def test_a_scheme_without_slashes_is_relative_where_the_base_has_it() -> None:
    assert normalize("https:d", BASE) == "https://example.org/a/b/d"
    assert normalize("http:d", BASE) == "http://d/"


def test_an_empty_query_replaces_that_of_the_base() -> None:
    assert normalize("?", BASE) == "https://example.org/a/b/c"


def test_listed_parameters_go_and_the_others_keep_their_order() -> None:
    dropped = {"utm_source", "gclid"}
    assert normalize("http://h/?z=1&utm_source=x&a=2&%67clid&a=1", None, dropped) == "http://h/?z=1&a=2&a=1"
    assert normalize("http://h/?utm_source=x", None, dropped) == "http://h/"
    assert normalize("http://h/?utm_sources=x&&b", None, dropped) == "http://h/?utm_sources=x&&b"


def test_the_host_has_the_port_that_is_not_the_usual_one() -> None:
    assert host("http://example.org:8080/a:b/c") == "example.org:8080"
    assert host("https://example.org/") == "example.org"


@given(any_url)
def test_any_text_has_a_normal_form_that_is_its_own_or_none(url: str) -> None:
    for base in (None, BASE):
        normal = normalize(url, base, {"utm_source"})
        if normal is None:
            assert normal_or_refusal(url, base) in {"scheme", "invalid", "too_long"}
            continue
        assert normal.isascii()
        assert normal.isprintable()
        assert normalize(normal, base, {"utm_source"}) == normal
        split = urlsplit(normal)
        assert split.scheme in {"http", "https"}
        assert split.hostname
        assert not split.fragment


@given(st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r")), st.text(st.characters(codec="utf-8")))
def test_characters_survive_as_utf_8(path: str, value: str) -> None:
    from urllib.parse import quote

    segment, parameter = quote(f"p{path}", safe=""), quote(value, safe="")
    normal = normalize(f"http://example.org/{segment}?v=x{parameter}")
    if normal is not None:
        assert unquote(urlsplit(normal).path) == f"/p{path}"
        assert parse_qsl(urlsplit(normal).query)[0] == ("v", f"x{value}")


@pytest.mark.parametrize(
    "url", ["http://example.org/a%7eb?b=%c3%a9&c=x", "https://EXAMPLE.org/é", "http://h.org:80/a?b=1"]
)
def test_normal_forms_are_those_of_w3lib_where_it_sorts_nothing(url: str) -> None:
    theirs = canonicalize_url(url).replace(":80/", "/")
    assert normalize(url) == theirs
