"""URLs and UUIDs are parsed as Go's `net/url` and github.com/google/uuid v1.6.0 parse them."""

from __future__ import annotations

import pytest

from kubekit.lang.formats import is_accepted, parse_url, parse_uuid

# What Go 1.26's `url.Parse` answers, with the defaults of a go.mod that names Go 1.24.
URLS = {
    "": True,
    "https://up.example/graph": True,
    "/graph": True,
    "graph": True,
    "a:b": True,
    "a/b:c": True,
    "*": True,
    "mailto:x": True,
    "///x:y": True,
    "http://[::1]:80/x": True,
    "http://[fe80::1%25en0]/": True,
    "http://host:80:90/": True,
    "http://host/?q=%zz": True,
    "http://x/ y": True,
    "1abc:x": False,
    ":x": False,
    "a_b:c": False,
    "http://[": False,
    "http://[::1": False,
    "http://[1.2.3.4]/": False,
    "http://a b/": False,
    "http://host:port/": False,
    "http://host/%zz": False,
    "http://host/#%zz": False,
    "http://us er@host/": False,
    "http://ho%20st/": False,
    "http://x\x00/": False,
    "http://x/\x7f": False,
}
CANONICAL = "7f2f6c0e-5d0e-4a47-9f0f-0d7d0a7d9a01"
UUIDS = {
    CANONICAL: "",
    f"urn:uuid:{CANONICAL}": "",
    f"URN:UUID:{CANONICAL.upper()}": "",
    f"{{{CANONICAL}}}": "",
    f"x{CANONICAL}y": "",
    CANONICAL.replace("-", ""): "",
    "": "invalid UUID length: 0",
    f"{CANONICAL} ": "invalid UUID length: 37",
    "7f2f6c0e5d0e4a479f0f0d7d0a7d9a0é": "invalid UUID length: 33",
    f"urn:uuix:{CANONICAL}": 'invalid urn prefix: "urn:uuix:"',
    "7f2f6c0e-5d0e4a47-9f0f-0d7d0a7d-9a01": "invalid UUID format",
    f"{CANONICAL[:-1]}g": "invalid UUID format",
}


@pytest.mark.parametrize(("text", "accepted"), URLS.items(), ids=map(repr, URLS))
def test_accepts_the_urls_that_go_parses(text: str, *, accepted: bool) -> None:
    """Relative ones and the empty one included."""
    assert is_accepted(parse_url, text) is accepted


@pytest.mark.parametrize(("text", "error"), UUIDS.items(), ids=map(repr, UUIDS))
def test_parses_the_uuids_that_go_parses(text: str, error: str) -> None:
    """Four forms, and the words of the errors."""
    if not error:
        assert str(parse_uuid(text)) == CANONICAL
        return
    with pytest.raises(ValueError, match="invalid") as raised:
        parse_uuid(text)
    assert str(raised.value) == error
