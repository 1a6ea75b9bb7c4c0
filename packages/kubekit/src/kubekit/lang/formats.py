"""Checks the string formats that an OpenAPI schema may name, by the rules of kube-openapi's strfmt.

In: a format's name and a string. Out: whether it matches; an unknown format always does, as for the API server.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date

from kubekit.lang.pattern import Pattern
from kubekit.lang.urls import URLError, parse_request_uri

_TIME = Pattern(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_HOSTNAME = Pattern(r"(?=.{1,255}\Z)[a-zA-Z0-9_](?:[a-zA-Z0-9\-_]{0,62}[a-zA-Z0-9_])?(?:\.[a-zA-Z0-9\-_]{1,63})*\.?")
_EMAIL = Pattern(r"[^@\s]+@[^@\s]+")
_MAC = Pattern(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}")
_UUID = Pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_GO_DURATION = Pattern(r"[+-]?(?:0|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+")
_WORD_DURATION = Pattern(
    r"\s*[0-9]+\s*(?:ns|us|µs|ms|s|m|h|d|w|nano\w*|micro\w*|milli\w*|sec\w*|min\w*|hour\w*|day\w*|week\w*)"
)


def is_date(text: str) -> bool:
    """Returns whether `text` is a date such as `2026-11-21`."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    """Returns whether `text` is an RFC 3339 time, with T and Z in either case."""
    day, separator, time = text.lower().partition("t")
    match = _TIME.fullmatch(time)
    if not separator or not is_date(day) or match is None:
        return False
    hour, minute, second = match.groups()
    return hour <= "23" and minute <= "59" and second <= "59"


def is_uri(text: str) -> bool:
    """Returns whether `text` is an absolute URL or an absolute path."""
    try:
        parse_request_uri(text)
    except URLError:
        return False
    return True


def _is_byte(text: str) -> bool:
    """Reports whether the text is base64 with padding."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_ipv4(text: str) -> bool:
    """Reports whether the text is an IPv4 address."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    """Reports whether the text is an IPv6 address."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    """Reports whether the text is an address with a prefix length."""
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return "/" in text


def _full_match(pattern: Pattern) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_duration(text: str) -> bool:
    return _GO_DURATION.fullmatch(text) is not None or _WORD_DURATION.fullmatch(text) is not None


_CHECKS: dict[str, Callable[[str], bool]] = {
    "byte": _is_byte,
    "cidr": _is_cidr,
    "date": is_date,
    "date-time": is_date_time,
    "datetime": is_date_time,
    "duration": _is_duration,
    "email": _full_match(_EMAIL),
    "hostname": _full_match(_HOSTNAME),
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "mac": _full_match(_MAC),
    "uri": is_uri,
    "uuid": _full_match(_UUID),
}


def is_format(name: str, text: str) -> bool:
    """Returns whether `text` has the format `name`; formats that the API server does not know accept everything."""
    check = _CHECKS.get(name)
    return check is None or check(text)
