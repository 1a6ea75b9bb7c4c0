"""The error messages of Go's decoders for text that is not JSON, YAML or a duration.

In: the text that could not be parsed. Out: the message of encoding/json's scanner, of go-yaml or of time.ParseDuration.
Except for durations, called only after another parser has rejected the text. Users search for these messages, so the
sandbox repeats them.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

import yaml

_END = "unexpected end of JSON input"
_WITHIN = (
    "in literal", "in numeric", "after decimal", "in exponent", "in string escape", "in \\u",
)  # fmt: skip
_SPACE = b" \t\r\n"
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPES = b'"\\/bfnrt'
_HEX = b"0123456789abcdefABCDEF"
_QUOTED = {39: r"\'", 92: r"\\", 7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r"}


# In nanoseconds.
_UNITS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_PART = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)")
_MOST_NS = (1 << 63) - 1
_MOST_DIGITS = 20


class _SyntaxError(Exception):
    pass


def duration_fault(text: str) -> str:
    """Returns time.ParseDuration's error about `text`, or "" if it is a duration."""
    quoted, remaining = json.dumps(text, ensure_ascii=False), text[text[:1] in {"+", "-"} :]
    if remaining == "0":
        return ""
    invalid, total_ns = f"time: invalid duration {quoted}", 0
    if not remaining:
        return invalid
    while remaining:
        part = _PART.match(remaining)
        digits = part[1].lstrip("0") if part is not None else ""
        if part is None or not (part[1] or (part[2] or "").strip(".")) or len(digits) > _MOST_DIGITS:
            return invalid
        if not part[3]:
            return f"time: missing unit in duration {quoted}"
        if part[3] not in _UNITS:
            return f"time: unknown unit {json.dumps(part[3], ensure_ascii=False)} in duration {quoted}"
        total_ns += int(digits or "0") * _UNITS[part[3]]
        if total_ns > _MOST_NS:
            return invalid
        remaining = remaining[part.end() :]
    return ""


def json_error(data: bytes) -> str:
    """Returns encoding/json's error about `data`, or "" if it is JSON."""
    scanner = _Scanner(data)
    try:
        scanner.scan_value("looking for beginning of value")
        scanner.skip_space()
        if scanner.at < len(data):
            scanner.refuse("after top-level value")
    except _SyntaxError as error:
        return str(error)
    except RecursionError:
        return f"invalid character '{chr(data[scanner.at - 1])}' exceeded max depth"
    return ""


def yaml_error(error: yaml.YAMLError) -> str:
    """Returns go-yaml's message for PyYAML's `error` (both derive from libyaml)."""
    problem = getattr(error, "problem", None)
    if not problem:
        return f"yaml: {error}"
    marks = (getattr(error, name, None) for name in ("context_mark", "problem_mark"))
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1  # go-yaml counts a scanner's lines from one and a parser's from zero
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def refuse(self, context: str) -> NoReturn:
        if self.at < len(self.data):
            # As Go's `quoteChar` shows a byte (encoding/json, scanner.go).
            byte = self.data[self.at]
            plain = chr(byte) if 0x20 <= byte < 0x7F or byte >= 0xA0 else f"\\x{byte:02x}"
            raise _SyntaxError(f"invalid character '{_QUOTED.get(byte, plain)}' {context}")
        # At the end of input Go's scanner reads one blank, which is only an error inside literals, numbers and escapes.
        raise _SyntaxError(f"invalid character ' ' {context}" if context.startswith(_WITHIN) else _END)

    def peek(self) -> int:
        """Returns the next byte, or 0 (which is never valid) at the end."""
        return self.data[self.at] if self.at < len(self.data) else 0

    def skip_space(self) -> int:
        while self.peek() in _SPACE:
            self.at += 1
        return self.peek()

    def expect(self, allowed: bytes, context: str) -> int:
        """Returns the next byte after blanks. Raises _SyntaxError unless it is one of `allowed`."""
        character = self.skip_space()
        if character not in allowed:
            self.refuse(context)
        self.at += 1
        return character

    def scan_value(self, context: str) -> None:
        """Scans one value; `context` is how errors describe its place. Raises _SyntaxError."""
        first = self.skip_space()
        if first == ord("{"):
            self._scan_object()
        elif first == ord("["):
            self._scan_array()
        elif first == ord('"'):
            self.at += 1
            self._scan_string()
        elif first in _LITERALS:
            word = _LITERALS[first]
            for character in word:
                if self.peek() != character:
                    self.refuse(f"in literal {word.decode()} (expecting '{chr(character)}')")
                self.at += 1
        elif first == ord("-") or ord("0") <= first <= ord("9"):
            self._scan_number()
        else:
            self.refuse(context)

    def _scan_object(self) -> None:
        self.at += 1
        if self.expect(b'"}', "looking for beginning of object key string") == ord("}"):
            return
        while True:
            self._scan_string()
            self.expect(b":", "after object key")
            self.scan_value("looking for beginning of value")
            if self.expect(b",}", "after object key:value pair") == ord("}"):
                return
            self.expect(b'"', "looking for beginning of object key string")

    def _scan_array(self) -> None:
        self.at += 1
        if self.skip_space() == ord("]"):
            self.at += 1
            return
        while True:
            self.scan_value("looking for beginning of value")
            if self.expect(b",]", "after array element") == ord("]"):
                return

    def _scan_string(self) -> None:
        while True:
            character = self.peek()
            if character == ord('"'):
                self.at += 1
                return
            if character < 0x20:
                self.refuse("in string literal")
            self.at += 1
            if character == ord("\\"):
                character = self.peek()
                if character == ord("u"):
                    self.at += 1
                    for _ in range(4):
                        if self.peek() not in _HEX:
                            self.refuse("in \\u hexadecimal character escape")
                        self.at += 1
                elif character not in _ESCAPES:
                    self.refuse("in string escape code")
                else:
                    self.at += 1

    def _scan_number(self) -> None:
        if self.peek() == ord("-"):
            self.at += 1
        if self.peek() == ord("0"):
            self.at += 1
        else:
            self._scan_digits("in numeric literal")
        if self.peek() == ord("."):
            self.at += 1
            self._scan_digits("after decimal point in numeric literal")
        if self.peek() in b"eE":
            self.at += 1
            if self.peek() in b"+-":
                self.at += 1
            self._scan_digits("in exponent of numeric literal")

    def _scan_digits(self, context: str) -> None:
        if not ord("0") <= self.peek() <= ord("9"):
            self.refuse(context)
        while ord("0") <= self.peek() <= ord("9"):
            self.at += 1
