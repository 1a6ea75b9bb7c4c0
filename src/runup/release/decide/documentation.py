"""Where the pages of the documentation are: one for each risk or family of risks, below a base that releases choose.

A release names its base in its metadata, an administrator another in the operator's settings (decisions D25, D29).
`BUILT_IN` is nobody's address, only what stands in a link until one of the two is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from kubekit.lang.formats import is_uri

BUILT_IN = "https://docs.runup.example"
# The key in `release-metadata`, as other tooling has its own: KEY=VALUE for `runup release new --metadata`.
KEY = "docs.runup.dev/base"
# Every risk of a status that holds 500 may carry one.
MAX_BASE = 256
_FOLDER = "/checks/"


class BadBase(ValueError):
    """No base that a path can follow; the message says what one looks like."""


def read_base(text: str) -> str:
    """`text` without the slash at its end; raises BadBase."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable or not is_uri(text) or not text.isascii() or not text.isprintable() or " " in text:
        raise BadBase("is no http or https URL that a path can follow")
    if len(text) > MAX_BASE:
        raise BadBase(f"is longer than {MAX_BASE} characters")
    return text.rstrip("/")


def page(risk: str, base: str = "") -> str:
    """The page about `risk`; a family such as `MachineConfigPoolPaused-worker` shares one."""
    return (base or BUILT_IN) + _FOLDER + risk.partition("-")[0]


def moved(url: str, bases: Iterable[str], to: str) -> str:
    """`url`, or the same page below `to` where it leads to a page below one of `bases`."""
    for base in bases:
        if base and url.startswith(base + _FOLDER):
            return to + url.removeprefix(base)
    return url
