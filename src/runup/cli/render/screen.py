"""What text is drawn on: how wide and high it is, and whether it shows colours. A value; `cli/output.py` reads it."""

from __future__ import annotations

import msgspec

from kubekit.lang.printable import printable


class Screen(msgspec.Struct, frozen=True):
    """A terminal, in cells; or with `width` None a pipe or a file, whose lines are as long as they are.

    `live`: what was drawn can be drawn over, which a dumb terminal cannot.
    """

    width: int | None = None
    height: int | None = None
    colour: bool = False
    live: bool = False


PIPE = Screen()


class Drawn(str):
    """Text in which escapes are ours, for colours: what others wrote in it was made printable before."""

    __slots__ = ()


def joined(*parts: str) -> Drawn:
    """Parts one after the other; those that nothing here drew are made printable."""
    return Drawn("".join(part if isinstance(part, Drawn) else printable(part) for part in parts))
