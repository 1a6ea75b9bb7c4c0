"""Parses the challenges of a registry: the values of `WWW-Authenticate` headers (RFC 9110, 11.6.1).

A registry may be anybody's: what it sends is read once from left to right, and only as much of it as honest ones send.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kubekit.lang.text import printable

MAX_HEADERS = 16
"""Number of headers that are read."""
MAX_CHARACTERS = 4096
"""Number of characters of a header that may be read; the realm of a challenge is a URL."""
_SHOWN = 100
# Each pattern matches at one place and without going back, and what it leaves out cannot be matched again.
_BLANK = re.compile(r"[ \t,]*")
_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+")
_PARAMETER = re.compile(r'[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))')
_ESCAPED = re.compile(r"\\(.)")


def parse_challenges(headers: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Returns the parameters of each scheme; names are in lower case. Of two challenges of a scheme the last counts.

    A header that is too long, and whatever follows what is not a challenge, is left out.
    """
    challenges: dict[str, Mapping[str, str]] = {}
    for header in list(headers)[:MAX_HEADERS]:
        if len(header) <= MAX_CHARACTERS:
            challenges |= _parse_header(header)
    return challenges


def quote_headers(headers: Iterable[str]) -> str:
    """Returns the headers as a message may quote them, empty if there are none."""
    texts = [printable(header) for header in list(headers)[:3]]
    return ", ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in texts)


def _parse_header(header: str) -> dict[str, Mapping[str, str]]:
    """Returns the parameters by scheme of one WWW-Authenticate header (RFC 9110, section 11.6.1)."""
    challenges: dict[str, Mapping[str, str]] = {}
    parameters: dict[str, str] = {}
    at = _skip_pattern(_BLANK, header, 0)
    while name := _TOKEN.match(header, at):
        value = _PARAMETER.match(header, name.end()) if challenges else None
        if value is None:
            parameters = {}
            challenges[name[0].lower()] = parameters
        else:
            quoted, bare = value.groups()
            parameters[name[0].lower()] = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
        at = _skip_pattern(_BLANK, header, (value or name).end())
    return challenges


def _skip_pattern(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
