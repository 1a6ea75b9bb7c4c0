"""Small parts of pages: badges, bars, facts, tables, times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kubekit.lang.text import in_utc
from runup.cli.render.html.markup import Child, Markup, el, join

GOOD, BUSY, WARN, BAD, IDLE = "good", "busy", "warn", "bad", "idle"


def badge(label: str, tone: str) -> Markup:
    """Returns a word on a coloured background."""
    return el("span", label, class_=f"badge {tone}")


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
