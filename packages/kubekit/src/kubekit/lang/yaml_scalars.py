"""The values of YAML scalars in Kubernetes: the rules of the Go library behind sigs.k8s.io/yaml."""

from __future__ import annotations

import math
import re

import msgspec

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FIRST_OF_NUMBER = frozenset("+-.0123456789")
_OF_NUMBER = "+-._0123456789abcdefABCDEFxXoO"
_FIRST_OF_DECIMAL = "123456789"
_OF_DECIMAL = "+-._0123456789eE"
_SIGNS_OF_NUMBER = 2
_UNSIGNED_MAX = 2**64 - 1
_SURELY_FITS = 19
_SIGNED_MIN, _SIGNED_MAX = -(2**63), 2**63 - 1


_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")


_FLOATING = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")


class NotPlain(Exception):
    """The text does not have, or may not have, the layout that the quick readers read."""


def scalar(text: str) -> str | int | float | bool | None:
    """Returns the value that an unquoted scalar has in Kubernetes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_NUMBER or text.strip(_OF_NUMBER):
        return text
    if text.isdecimal() and (text[0] != "0" or text == "0") and len(text) < _SURELY_FITS:
        return int(text)
    # A version, a uid, a commit: no pattern is compiled for them.
    if text.count(".") > 1 or text.count("-") > _SIGNS_OF_NUMBER:
        return text
    if text[0] in _FIRST_OF_DECIMAL and text.strip(_OF_DECIMAL):
        return text
    number = _parse_number(text)
    return text if number is None else number


def _parse_number(text: str) -> int | float | None:
    """Returns the number that the Go library reads from an unquoted scalar, or None if it reads text."""
    # Underscores are dropped everywhere but in a number that begins with its decimal point, as in Go.
    plain = text if text[0] == "." else text.replace("_", "")
    whole = _INTEGER.match(plain)
    if whole is not None:
        value = _integer_of(whole)
        if _SIGNED_MIN <= value <= _SIGNED_MAX or (not whole[1] and value <= _UNSIGNED_MAX):
            return value
    if _FLOATING.match(plain) is None:
        return None
    number = float(plain)
    if math.isinf(number):
        return None
    # JSON knows one kind of number: what Go writes without a point, the API server reads as an integer.
    return int(number) if number.is_integer() and _SIGNED_MIN <= number <= _SIGNED_MAX else number


def _integer_of(match: re.Match[str]) -> int:
    """Returns the integer of a matched YAML scalar, in its base and with its sign."""
    sign, hexadecimal, binary, octal, decimal = match.groups()
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits is not None:
            return -int(digits, base) if sign == "-" else int(digits, base)
    raise AssertionError("the pattern has four alternatives")


def unescape_json(inner: str) -> str:
    """Returns the text with the escapes replaced that JSON has too. Raises NotPlain for others."""
    if "\\" not in inner:
        return inner
    if "\\ud" in inner.lower():  # halves of pairs, which YAML refuses
        raise NotPlain
    try:
        return str(msgspec.json.decode(f'"{inner}"'))
    except msgspec.DecodeError as error:
        raise NotPlain from error
