"""HTML that is escaped by construction: text goes in as text, only what this module made goes in as markup.

A page shows what anybody in a cluster may have written (a pod's name, an alert's summary), so forgetting to escape one
of fifty places must not be possible.
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

from kubekit.lang.printable import printable

_VOID = frozenset({"meta", "br", "hr", "link"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup | None


def text(value: str) -> Markup:
    """`value` as it is to be read."""
    return value if isinstance(value, Markup) else Markup(escape(printable(value), quote=True))


def el(tag: str, *children: Child, **attributes: str | None) -> Markup:
    """An element. Of attributes, a last underscore is dropped (`class_`), others become dashes; None is left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Children one after the other."""
    return Markup("".join(text(child) for child in children if child is not None))


def link(url: str, label: str) -> Markup:
    """A link to the web, or the bare text where the address is none: `javascript:` is an address too."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if scheme not in {"http", "https"}:
        return text(url)
    return el("a", label, href=url, rel="noreferrer noopener")
