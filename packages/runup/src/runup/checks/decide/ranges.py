"""Parses ranges of versions, as a declarative check writes them: `>=5.0.0 <5.2.0`, alternatives separated by `||`.

Comparators are `>=`, `>`, `<=`, `<` and `=` (or none); adjacent ones must all hold. `5.2` is short for 5.2.0. The order
is that of SemVer, so 5.2.0-rc.1 is below 5.2.0: write `>=5.2.0-0` to include release candidates.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

import msgspec

from kubekit.lang.version import Version, VersionError

_COMPARATOR = re.compile(r"\s*(>=|<=|>|<|=)?\s*([^\s,<>=|]+)[\s,]*")
_SHORT = re.compile(r"\d+\.\d+")
_OPERATORS: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "=": operator.eq,
}


class RangeError(ValueError):
    """Error raised if a text is not a range of versions."""


class Range(msgspec.Struct, frozen=True):
    """A set of versions; an empty range contains all of them."""

    text: str = ""
    alternatives: tuple[tuple[tuple[str, Version], ...], ...] = ()

    def __contains__(self, version: Version) -> bool:
        return not self.alternatives or any(
            all(_OPERATORS[comparator](version, bound) for comparator, bound in alternative)
            for alternative in self.alternatives
        )


def parse_range(text: str) -> Range:
    """Returns the range that `text` describes. Raises RangeError."""
    if not text.strip():
        return Range(text)
    alternatives = []
    for part in text.split("||"):
        # Comparators and bounds, which must all hold.
        comparators: list[tuple[str, Version]] = []
        position = 0
        while position < len(part) and part[position:].strip(" ,\t"):
            match = _COMPARATOR.match(part, position)
            if match is None:
                raise RangeError(f"{text!r} is not a range of versions; write it as '>=5.0.0 <5.2.0'")
            try:
                bound = Version(f"{match[2]}.0" if _SHORT.fullmatch(match[2]) else match[2])
            except VersionError as error:
                raise RangeError(f"{text!r} is not a range of versions: {error}") from error
            comparators.append((match[1] or "=", bound))
            position = match.end()
        if not comparators:
            raise RangeError(f"{text!r} has an empty alternative")
        alternatives.append(tuple(comparators))
    return Range(text, tuple(alternatives))
