"""The small parts that pages are made of: badges, bars, facts, tables, times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from runup.cli.render.html.markup import Child, Markup, el, join

GOOD, BUSY, WARN, BAD, IDLE = "good", "busy", "warn", "bad", "idle"


def badge(label: str, tone: str) -> Markup:
    """A word on a coloured ground."""
    return el("span", label, class_=f"badge {tone}")


def bar(parts: Iterable[tuple[str, int]], total: int, label: str) -> Markup:
    """A bar of `parts` (colour, count) out of `total`; `label` is for who cannot see it."""
    shares = (
        el("i", class_=f"fill-{tone}", style=f"width:{100 * count / total:.2f}%") for tone, count in parts if count
    )
    return el("div", *shares, class_="bar", role="img", aria_label=label)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names and values beside each other; one without a value is left out."""
    shown = (el("div", join(el("dt", name), el("dd", value))) for name, value in pairs if value)
    return el("dl", *shown, class_="facts")


def grid(caption: str, heads: Sequence[str], lines: Iterable[Child]) -> Markup:
    """A table that may be moved sideways where it is too wide; `caption` says what it lists."""
    head = el("tr", *(el("th", name, scope="col") for name in heads))
    table = el("table", el("caption", caption), el("thead", head), el("tbody", *lines))
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def moment(when: datetime) -> str:
    """A time to the minute."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def age(span: timedelta) -> str:
    """A length of time in its two largest units; nothing is negative."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"
