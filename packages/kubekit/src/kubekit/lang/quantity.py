"""Kubernetes quantities such as `500m`, `10Gi`, `1e3`: exact, as apimachinery's resource.Quantity is."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal

_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO = Decimal(10) ** -9
_EXACT = Context(prec=80)
_UNITS = {suffix: Decimal(1024) ** power for suffix, power in _BINARY.items()} | {
    suffix: Decimal(10) ** power for suffix, power in _DECIMAL.items()
}


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse_quantity(text: str) -> Decimal:
    """Returns the number that `text` stands for, in units (bytes, cores). Raises QuantityError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, number, suffix = match.groups()
    factor = _UNITS.get(suffix)
    try:
        if factor is None:
            exponent = _EXPONENT.fullmatch(suffix)
            if exponent is None:
                raise QuantityError("unable to parse quantity's suffix")
            factor = Decimal(10) ** int(exponent.group(1))
        value = Decimal(number) * factor
    except (ArithmeticError, ValueError) as error:
        # The exponent exceeds what Decimal can represent.
        raise QuantityError(str(error) or "unable to parse quantity's suffix") from error
    return -value if sign == "-" else value


def plain_text(value: Decimal) -> str:
    """Returns `value` as one canonical text: equal quantities have equal texts, whatever their suffixes were."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def canonical_quantity(text: str) -> str:
    """Returns `text` as an API server writes it back (`1000m` is `1`, `1024Mi` is `1Gi`). Raises QuantityError.

    The form (binary, decimal, exponent) is kept, factors of 1024 or 1000 go into the suffix, and values are rounded up
    to multiples of a nano: apimachinery's pkg/api/resource/quantity.go.
    """
    value = parse_quantity(text).quantize(_NANO, rounding=ROUND_UP, context=_EXACT)
    if not value:
        return "0"
    # Binary suffixes are kept only for whole numbers of at least 1024, as in Quantity.CanonicalizeBytes.
    if text[-1:] == "i" and abs(value) >= 1024 and value == value.to_integral_value():
        return _with_largest_suffix(value, Decimal(1024), dict(enumerate(["", *_BINARY])))
    powers = {power // 3: f"e{power}" for power in range(-9, 100, 3)} | {0: ""}
    if not _is_exponent(text):
        powers = {power // 3: suffix for suffix, power in _DECIMAL.items()}
    return _with_largest_suffix(value, Decimal(1000), powers)


def add_quantities(first: str, other: str) -> str:
    """Returns the sum of two quantities, in the form of the first that is not zero. Raises QuantityError."""
    value = parse_quantity(first) + parse_quantity(other)
    like = first if parse_quantity(first) else other
    if like[-1:] == "i" and abs(value) >= 1024:
        return canonical_quantity(f"{plain_text(value / 1024)}Ki")
    return canonical_quantity(f"{plain_text(value)}e0" if _is_exponent(like) else plain_text(value))


def _is_exponent(text: str) -> bool:
    match = _FORM.fullmatch(text)
    return match is not None and _EXPONENT.fullmatch(match.group(3)) is not None


def _with_largest_suffix(value: Decimal, base: Decimal, suffixes: dict[int, str]) -> str:
    """Returns `value` with the largest suffix that leaves a whole number."""
    for power in sorted(suffixes, reverse=True):
        number = value / base**power if power >= 0 else value * base**-power
        if number == number.to_integral_value():
            return f"{number.to_integral_value():f}{suffixes[power]}"
    return plain_text(value)
