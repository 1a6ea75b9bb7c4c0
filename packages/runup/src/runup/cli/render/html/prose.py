"""Turns prose into HTML: commands in backticks, and the Markdown that the pages of risks are written in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runup.cli.render.html.markup import Markup, el, join, link, text

_CODE = re.compile(r"`([^`\n]+)`")
_INLINE = re.compile(r"`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^*]+)\*\*|\[(?P<label>[^\]]+)\]\((?P<url>[^)\s]+)\)")
_FENCE = "```"
# What is in backticks and begins so is typed, and gets a button for copying; the rest is a name or a value.
_COMMAND = re.compile(r"(?:oc|kubectl|runup|helm|etcdctl|k3s|rke2|talosctl) \S")


def prose(words: str, *, commands: bool = False) -> Markup:
    """Returns a text with the parts in backticks as code."""
    parts: list[str] = []
    place = 0
    for match in _CODE.finditer(words):
        class_ = "command" if commands and _COMMAND.match(match[1]) else None
        parts += [text(words[place : match.start()]), el("code", match[1], class_=class_)]
        place = match.end()
    return join(*map(Markup, parts), text(words[place:]))


def markdown(page: str) -> Markup:
    """Returns the HTML of a Markdown page without its title; only links to the web are kept as links."""
    return join(*(_block(block) for block in _blocks(page)))


def _blocks(page: str) -> Iterator[str]:
    """Yields paragraphs and whole fenced blocks."""
    lines: list[str] = []
    fenced = False
    for line in page.splitlines():
        if line.startswith(_FENCE):
            fenced = not fenced
        if not fenced and (not line.strip() or line.startswith("# ")):
            yield from ["\n".join(lines)] if lines else []
            lines = []
            continue
        lines.append(line)
    yield from ["\n".join(lines)] if lines else []


def _block(block: str) -> Markup:
    if block.startswith(_FENCE):
        return el("pre", el("code", "\n".join(block.splitlines()[1:]).removesuffix(_FENCE).rstrip()))
    # A line with its code, bold words and links as elements.
    words = " ".join(block.split())
    parts: list[Markup] = []
    place = 0
    for match in _INLINE.finditer(words):
        parts += [text(words[place : match.start()]), _marked_element(match)]
        place = match.end()
    return el("p", join(*parts, text(words[place:])))


def _marked_element(match: re.Match[str]) -> Markup:
    """Returns the element of one match; only web addresses become links."""
    if match["code"]:
        return el("code", match["code"])
    if match["bold"]:
        return el("strong", match["bold"])
    is_web = match["url"].startswith(("https://", "http://"))
    return link(match["url"], match["label"]) if is_web else text(match["label"])
