"""The screen that text is drawn on: its size, and whether it shows colours. A value, which `cli/output.py` creates."""

from __future__ import annotations

import msgspec

from kubekit.lang.text import printable


class Screen(msgspec.Struct, frozen=True):
    """A terminal, in cells; or, with `width` None, a pipe or file, whose lines are not wrapped.

    `live`: what was drawn can be drawn over, which a dumb terminal cannot.
    """

    width: int | None = None
    height: int | None = None
    colour: bool = False
    live: bool = False


PIPE = Screen()


class Drawn(str):
    """Text in which all escapes are ours, for colours: other people's text in it has been made printable."""

    __slots__ = ()


def join_parts(*parts: str) -> Drawn:
    """Returns the parts one after the other; parts that are not `Drawn` are made printable."""
    return Drawn("".join(part if isinstance(part, Drawn) else printable(part) for part in parts))
