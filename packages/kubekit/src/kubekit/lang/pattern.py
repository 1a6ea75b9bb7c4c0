"""A regular expression that is compiled on first use.

Compiling takes from a tenth of a millisecond to several, and most commands use few of the patterns in the modules that
they import. After the first use, a method is that of the compiled pattern itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

Find = Callable[..., re.Match[str] | None]


class Pattern:
    """A lazy `re.compile(pattern, flags)`; an invalid pattern raises `re.error` on first use."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled_pattern(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    @cached_property
    def fullmatch(self) -> Find:
        """The compiled pattern's `re.Pattern.fullmatch`."""
        return self._compiled_pattern.fullmatch

    @cached_property
    def match(self) -> Find:
        """The compiled pattern's `re.Pattern.match`."""
        return self._compiled_pattern.match

    @cached_property
    def search(self) -> Find:
        """The compiled pattern's `re.Pattern.search`."""
        return self._compiled_pattern.search

    @cached_property
    def sub(self) -> Callable[..., str]:
        """The compiled pattern's `re.Pattern.sub`."""
        return self._compiled_pattern.sub

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:
        """The compiled pattern's `re.Pattern.findall`."""
        return self._compiled_pattern.findall

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        """The compiled pattern's `re.Pattern.finditer`."""
        return self._compiled_pattern.finditer

    @cached_property
    def split(self) -> Callable[..., list[Any]]:
        """The compiled pattern's `re.Pattern.split`."""
        return self._compiled_pattern.split
