"""Builds HTML that is escaped by construction: strings are escaped, and only this module's own results are markup.

A page shows what anybody in a cluster may have written (a pod's name, an alert's summary), so it must not be possible
to forget the escaping in one of fifty places.
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

from kubekit.lang.text import printable

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
