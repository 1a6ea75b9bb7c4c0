"""Regular expressions that others wrote, as Kubernetes reads them: Go's, which are RE2's.

Python's `re` is only for patterns in our source code. It may need exponential time for a match, blocks the
interpreter meanwhile, and differs in the meaning of `$`, `\\d` and `\\Z`. RE2's time grows with the text, its
memory has a limit, and a pattern that needs more is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

# Bytes that one expression may use for its automata. The library keeps up to 128 expressions.
_MEMORY = 1024 * 1024
# RE2's words for what is wrong with a pattern, and Go's, which users of Kubernetes know.
_GO_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
# Any one byte, which Go does not have: half of a character is no text.
_SINGLE_BYTE = re.compile(r"(?:\\Q.*?(?:\\E|\Z)|\\[^CQ]|[^\\])*?\\C", re.DOTALL)


class RegexpError(ValueError):
    """Error raised if a text is not a regular expression; the message is in Go's words."""


class Regexp:
    """A compiled expression. `pattern` is its text, `size` the number of its instructions."""

    __slots__ = ("_compiled", "pattern", "size")

    def __init__(self, pattern: str, compiled: Any) -> None:
        self.pattern = pattern
        self.size: int = compiled.programsize
        self._compiled = compiled

    def matches(self, text: str) -> bool:
        """Returns whether `text` has a match anywhere. Raises UnicodeEncodeError for half of a surrogate pair."""
        return self._compiled.search(text) is not None

    def find(self, text: str) -> str:
        """Returns the first match, or an empty string."""
        match = self._compiled.search(text)
        return match.group(0) if match else ""

    def find_all(self, text: str, before_each: Callable[[int], object] = lambda _: None) -> Iterator[str]:
        """Yields the matches as Go's FindAllString does: no empty one right behind another.

        `before_each` is called with the number of characters left before each search, and may raise.
        """
        before_each(len(text))
        end = -1
        for match in self._compiled.finditer(text):
            start, stop = match.span()
            if start != stop or start != end:
                yield text[start:stop]
            end = stop
            before_each(len(text) - stop)


@lru_cache(maxsize=128)
def compile_regexp(pattern: str) -> Regexp:
    """Returns the expression. Raises RegexpError."""
    # Imported on first use: most commands meet no pattern of others.
    import re2

    options = re2.Options()
    options.max_mem, options.log_errors = _MEMORY, False
    try:
        if _SINGLE_BYTE.match(pattern):
            raise RegexpError("error parsing regexp: invalid escape sequence: `\\C`")
        compile_pattern: Callable[..., Any] = re2.compile
        return Regexp(pattern, compile_pattern(pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        if text == "trailing \\":
            raise RegexpError("error parsing regexp: trailing backslash at end of expression: ``") from None
        complaint, _, detail = text.partition(": ")
        if detail == "(?<!":  # Go takes it for the beginning of a name
            complaint, detail = "invalid named capture group", pattern[pattern.index(detail) :]
        place = f": `{detail}`" if detail else ""
        raise RegexpError(f"error parsing regexp: {_GO_WORDS.get(complaint, complaint)}{place}") from None
    except UnicodeEncodeError as error:
        raise RegexpError("error parsing regexp: invalid UTF-8") from error
