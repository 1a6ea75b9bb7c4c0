"""Builds HTML that is escaped by construction: strings are escaped, and only this module's own results are markup.

A page shows what anybody in a cluster may have written (a pod's name, an alert's summary), so it must not be possible
to forget the escaping in one of fifty places. Badges, bars, facts, tables and times are built from the same elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape
from urllib.parse import urlsplit

from kubekit.lang.text import in_utc, printable

_VOID = frozenset({"meta", "br", "hr", "link", "input"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup | None


def text(value: str) -> Markup:
    """Returns `value` as escaped HTML; Markup stays as it is."""
    return value if isinstance(value, Markup) else Markup(escape(printable(value), quote=True))


def el(tag: str, *children: Child, **attributes: str | None) -> Markup:
    """Returns an element.

    In names of attributes a last underscore is dropped (`class_`), others become dashes. An attribute that is None is
    left out.
    """
    attributes_text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    # https://html.spec.whatwg.org/multipage/syntax.html#void-elements
    if tag in _VOID:
        return Markup(f"<{tag}{attributes_text}>")
    return Markup(f"<{tag}{attributes_text}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Returns the children one after the other."""
    return Markup("".join(text(child) for child in children if child is not None))


def link(url: str, label: str) -> Markup:
    """Returns a link to the web, or the bare text for any other URL, such as `javascript:`."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if scheme not in {"http", "https"}:
        return text(url)
    return el("a", label, href=url, rel="noreferrer noopener")


GOOD, BUSY, WARN, BAD, IDLE = "good", "busy", "warn", "bad", "idle"
# The colour of each severity, on every page; a risk without one counts as a warning.
SEVERITY_TONES = {"critical": BAD, "warning": WARN, "info": BUSY, "": WARN}
_LETTERS = {"critical": "C", "warning": "W", "info": "I"}
_OF_STATES = {"refuses": "{}!", "applies": "{}", "unknown": "{}?", "accepted": "a", "informs": "~"}


def badge(label: str, tone: str) -> Markup:
    """Returns a word on a coloured background."""
    return el("span", label, class_=f"badge {tone}")


def risk_mark(severity: str, state: str) -> Markup:
    """Returns the mark of a risk: colour, shape and letter by severity, a sign or another letter by state."""
    known = severity if severity in _LETTERS else "warning"
    words = f"{severity or 'unknown severity'}, {state}"
    sign = _OF_STATES[state].format(_LETTERS[known])
    return el("span", sign, class_=f"mark {known} {state}", role="img", aria_label=words)


def bar(parts: Iterable[tuple[str, int]], total: int, label: str) -> Markup:
    """Returns a bar of `parts` (colour, count) out of `total`; `label` is for screen readers."""
    shares = (
        el("i", class_=f"fill-{tone}", style=f"width:{100 * count / total:.2f}%") for tone, count in parts if count
    )
    return el("div", *shares, class_="bar", role="img", aria_label=label)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Returns a list of names and values; pairs without a value are left out."""
    pairs_shown = (el("div", join(el("dt", name), el("dd", value))) for name, value in pairs if value)
    return el("dl", *pairs_shown, class_="facts")


def grid(caption: str, heads: Sequence[Child], lines: Iterable[Child]) -> Markup:
    """Returns a table that scrolls sideways if it is too wide; `caption` says what it lists."""
    head = el("tr", *(el("th", name, scope="col") for name in heads))
    table = el("table", el("caption", caption), el("thead", head), el("tbody", *lines))
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def long_section(title: str, *content: Child) -> Markup:
    """Returns a section with a heading and a card that may be broken between pages on paper."""
    return el("section", el("h2", title), el("div", *content, class_="card long"))


def minute_text(moment: datetime) -> str:
    """Returns a time to the minute."""
    return f"{in_utc(moment):%Y-%m-%d %H:%M} UTC"


def age(span: timedelta) -> str:
    """Returns a duration in its two largest units; a negative one counts as 0."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"
