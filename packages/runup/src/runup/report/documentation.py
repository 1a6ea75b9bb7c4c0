"""Computes the addresses of documentation pages: one for each risk or family of risks, below a base that releases
choose.

A release names its base in its metadata, an administrator another in the operator's settings
(docs/decisions/0072 D25, D29). `BUILT_IN` is a placeholder in links until one of the two is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from kubekit.lang.formats import is_uri

BUILT_IN = "https://docs.runup.example"
# The key in `release-metadata`: KEY=VALUE for `runup release new --metadata`.
KEY = "docs.runup.dev/base"
# Limited because each of up to 500 risks in a status may contain it.
MAX_BASE = 256
_FOLDER = "/checks/"


class BadBase(ValueError):
    """The text is not a base URL that a path can follow; the message says what is wrong."""


def read_base(text: str) -> str:
    """Returns `text` without the slash at its end; raises BadBase."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable or not is_uri(text) or not text.isascii() or not text.isprintable() or " " in text:
        raise BadBase("is not an http or https URL to which a path can be added")
    if len(text) > MAX_BASE:
        raise BadBase(f"is longer than {MAX_BASE} characters")
    return text.rstrip("/")


def page(risk: str, base: str = "") -> str:
    """Returns the URL of the page about `risk`; a family such as `MachineConfigPoolPaused-worker` shares one."""
    return (base or BUILT_IN) + _FOLDER + risk.partition("-")[0]


def move_below(url: str, bases: Iterable[str], to: str) -> str:
    """Returns `url`, or the same page below `to` if it is a page below one of `bases`."""
    for base in bases:
        if base and url.startswith(base + _FOLDER):
            return to + url.removeprefix(base)
    return url
