"""Challenges of a registry: those of honest ones, and headers that were written to keep a reader busy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.oci.credentials import MAX_CHARACTERS, parse_challenges, quote_headers
from kubekit.oci.registry_errors import BadImage, OciError

PARSED = {
    "nothing": ([], {}),
    "a scheme alone": (["Basic"], {"basic": {}}),
    "a token service": (
        ['Bearer realm="https://a.example/token",service="a, b",scope="repository:x:pull"'],
        {"bearer": {"realm": "https://a.example/token", "service": "a, b", "scope": "repository:x:pull"}},
    ),
    "bare values": (["Bearer service=s , realm=r"], {"bearer": {"service": "s", "realm": "r"}}),
    "an empty value": (['Basic realm=""'], {"basic": {"realm": ""}}),
    "escapes": ([r'Basic realm="a\"b\\"'], {"basic": {"realm": 'a"b\\'}}),
    "names in any case": (['BEARER Realm="R"'], {"bearer": {"realm": "R"}}),
    "two in one header": (['Negotiate, Basic realm="x"'], {"negotiate": {}, "basic": {"realm": "x"}}),
    "two headers": (["Negotiate", 'Basic realm="x"'], {"negotiate": {}, "basic": {"realm": "x"}}),
    "two of one scheme": (['Basic realm="x"', 'Basic realm="y"'], {"basic": {"realm": "y"}}),
    "a quote that is not closed": (['Basic realm="x'], {"basic": {"realm": ""}}),
    "what is no challenge": (['"Basic"'], {}),
    "a parameter of no scheme": (['realm="x"'], {"realm": {}}),
    "as long as may be": (["Basic " + "x" * (MAX_CHARACTERS - 6)], {"basic": {}, "x" * (MAX_CHARACTERS - 6): {}}),
    "too long": (["Basic " + "x" * (MAX_CHARACTERS - 5)], {}),
    "the seventeenth": ([*["Negotiate"] * 16, "Basic"], {"negotiate": {}}),
}


@pytest.mark.parametrize("name", PARSED)
def test_challenges(name: str) -> None:
    """Schemes with their parameters, read from left to right."""
    headers, expected = PARSED[name]
    assert parse_challenges(headers) == expected


TOKENS = st.text("abcXYZ019-._~", min_size=1, max_size=8)
PARAMETERS = st.dictionaries(TOKENS.map(str.lower), st.text(st.characters(min_codepoint=32, max_codepoint=255)))


@pytest.mark.slow
@given(st.dictionaries(TOKENS.map(str.lower), PARAMETERS, max_size=4))
def test_what_is_written_is_read(challenges: dict[str, dict[str, str]]) -> None:
    """Whatever a value holds, once it is quoted."""
    quoted = {
        scheme: ",".join(
            '{}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in each.items()
        )
        for scheme, each in challenges.items()
    }
    assert parse_challenges([", ".join(f"{scheme} {text}" for scheme, text in quoted.items())]) == challenges


BUSY = {
    "one long word": "a" * 65_000,
    "many words": "a " * 32_000,
    "parameters without an end": "a " + "a=b " * 16_000 + "!",
    "quotes": 'a a="' * 13_000,
    "escapes": 'a a="' + "\\" * 65_000,
    "blanks": "a" + " " * 65_000 + "=",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUSY)
def test_no_header_keeps_the_reader_busy(name: str) -> None:
    """65 kB took 33 s, and a hundred of them are a head. One that is short enough to be read is read as quickly."""
    assert parse_challenges([BUSY[name]] * 256) == {}
    for size in range(3_996, 4_096, 9):
        parse_challenges([BUSY[name][:size]] * 16)


@given(st.text())
def test_any_header_has_challenges_or_none(text: str) -> None:
    """And is quoted in few words."""
    parse_challenges([text])
    assert len(quote_headers([text] * 9)) <= 3 * 110


def test_the_words_of_a_registry_are_quoted_in_part() -> None:
    """The first three headers, a hundred characters of each."""
    assert quote_headers([]) == ""
    assert quote_headers(["Negotiate", "b" * 101, "c" * 100, "d"]) == f"Negotiate, {'b' * 100}..., {'c' * 100}"


@pytest.mark.parametrize("kind", [OciError, BadImage])
def test_no_error_about_an_image_is_long(kind: type[OciError]) -> None:
    """It may hold an address that the registry sent, and becomes part of a status."""
    error = kind("x" * 100_000)
    assert str(error) == error.message
    assert 4_000 < len(error.message) <= 4_096
    assert kind("short").message == "short"
