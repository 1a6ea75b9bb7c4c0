"""Kubernetes quantities: `500m`, `10Gi`, `1e3`. Exact, as apimachinery's resource.Quantity is."""

from __future__ import annotations

import re
from decimal import Decimal

_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_UNITS = {suffix: Decimal(1024) ** power for suffix, power in _BINARY.items()} | {
    suffix: Decimal(10) ** power for suffix, power in _DECIMAL.items()
}


class QuantityError(ValueError):
    """The text is no quantity."""


def parse_quantity(text: str) -> Decimal:
    """The number that `text` stands for, in units (bytes, cores); raises QuantityError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, number, suffix = match.groups()
    value = Decimal(number) * _unit(suffix)
    return -value if sign == "-" else value


def _unit(suffix: str) -> Decimal:
    if suffix in _UNITS:
        return _UNITS[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantityError("unable to parse quantity's suffix")
    return Decimal(10) ** int(exponent.group(1))


def plain(value: Decimal) -> str:
    """`value` as one canonical text: equal quantities have equal texts, whatever they were written in."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
