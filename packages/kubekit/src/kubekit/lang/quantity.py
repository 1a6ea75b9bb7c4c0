"""Kubernetes quantities such as `500m`, `10Gi`, `1e3`: read and written as apimachinery's resource.Quantity is.

Numbers have bounds, so that arithmetic on them neither raises nor takes long: `parse_quantity` says which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal

_FORM = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,19})")

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
# The exponent of the smallest amount, and the largest amount with a binary suffix (maxAllowed of math.go).
_NANO, _MAX_INT64 = -9, 2**63 - 1
# Go's int64 holds every number of so many digits (maxInt64Factors of math.go).
_SHORT = 18
# A larger number counts as this one. Upstream computes with all digits of 1e2147483647, and hangs.
_MAX = Decimal(10) ** 1000
_EXACT = Context(prec=2100, Emax=MAX_EMAX, Emin=MIN_EMIN)


class QuantityError(ValueError):
    """The text is not a quantity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """A quantity as it was parsed: `digits` times ten to the power of `exponent`, without trailing zeros."""

    negative: bool
    digits: str
    exponent: int
    suffix: str
    # Whether the server writes back the text itself.
    canonical: bool

    @property
    def number(self) -> Decimal:
        """The quantity as a number, at most `_MAX`."""
        large = len(self.digits) + self.exponent > _MAX.adjusted()
        value = _MAX if large and self.digits else Decimal(self.digits or 0).scaleb(self.exponent, _EXACT)
        return -value if self.negative else value


def parse_quantity(text: str) -> Decimal:
    """Returns the number that `text` means, in units (bytes, cores). Raises QuantityError.

    As upstream: rounded up to multiples of a nano, and at most 2^63-1 with a binary suffix. Others are at most 10^1000.
    """
    return _parse(text).number


def whole_units(text: str, per_unit: int = 1) -> int:
    """Returns a quantity in parts of a unit, `per_unit` of them in each, rounded up. Raises QuantityError.

    The result fits an int64, as that of Quantity.ScaledValue.
    """
    whole = int((parse_quantity(text) * per_unit).to_integral_value(ROUND_CEILING))
    return max(-_MAX_INT64, min(whole, _MAX_INT64))


def plain_text(value: Decimal) -> str:
    """Returns `value` as one canonical text: equal quantities have equal texts, whatever their suffixes were."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def canonical_quantity(text: str, scale: int = _NANO) -> str:
    """Returns `text` as an API server writes it back (`1000m` is `1`, `1024Mi` is `1Gi`). Raises QuantityError.

    The form (binary, decimal, exponent) is kept, factors of 1024 or 1000 go into the suffix, and values are rounded up
    to multiples of ten to the power of `scale`: apimachinery's pkg/api/resource/quantity.go.
    """
    quantity = _parse(text)
    digits, exponent = _rounded_up(quantity.digits, quantity.exponent, scale)
    if quantity.canonical and (digits, exponent) == (quantity.digits, quantity.exponent):
        return text
    return _written(digits, exponent, quantity.suffix, negative=quantity.negative)


def add_quantities(first: str, other: str) -> str:
    """Returns the sum of two quantities, in the form of the first that is not zero. Raises QuantityError."""
    one, two = _parse(first), _parse(other)
    sign, parts, power = _EXACT.add(one.number, two.number).as_tuple()
    digits, exponent = _rounded_up("".join(map(str, parts)).lstrip("0"), int(power), _NANO)
    return _written(digits, exponent, (one if one.digits else two).suffix, negative=sign == 1)


def _written(digits: str, exponent: int, suffix: str, *, negative: bool) -> str:
    """Returns a number without trailing zeros in the form (binary, decimal, exponent) of a suffix."""
    if not digits:
        return "0"
    sign = "-" if negative else ""
    # Binary suffixes are kept only for whole numbers of at least 1024, as in Quantity.CanonicalizeBytes.
    if suffix in _BINARY and exponent >= 0 and (whole := int(digits) * 10**exponent) >= 1024:
        power = 0
        while whole % 1024 == 0 and power < len(_BINARY):
            whole, power = whole // 1024, power + 1
        return f"{sign}{whole}{['', *_BINARY][power]}"
    is_exponent = suffix not in _DECIMAL and suffix not in _BINARY
    power = exponent - exponent % 3 if is_exponent else min(exponent - exponent % 3, _DECIMAL["E"])
    digits += "0" * (exponent - power)
    return f"{sign}{digits}{f'e{power}' * bool(power) if is_exponent else _SUFFIX_OF_POWER[power]}"


def _parse(text: str) -> _Quantity:
    """Parses a quantity as ParseQuantity does. Raises QuantityError."""
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, fraction, suffix = (part or "" for part in match.groups())
    is_binary, negative = suffix in _BINARY, sign == "-"
    shown = (whole or "0") + fraction
    exponent = (0 if is_binary else _power_of(suffix)) - len(fraction)
    # The server writes back a short number as it was, unless zeros at its end could go into the suffix.
    if is_binary:
        bits = 10 * _BINARY[suffix]
        is_short = not fraction and len(shown) <= 14 - bits * 3 // 10
        canonical = is_short and int(shown) % 8 != 0
        digits = shown.lstrip("0")
        if len(digits) + exponent > len(str(_MAX_INT64)):
            digits, exponent = str(_MAX_INT64), 0
        elif digits:
            value = _EXACT.multiply(Decimal(digits).scaleb(exponent, _EXACT), Decimal(1 << bits))
            _, parts, power = min(value, Decimal(_MAX_INT64)).as_tuple()
            digits, exponent = "".join(map(str, parts)), int(power)
    else:
        is_short = len(shown) <= _SHORT and exponent >= _NANO
        canonical = is_short and exponent % 3 == 0 and not shown.endswith("000") and shown[0] != "0"
        digits = shown.lstrip("0")
    digits, exponent = _rounded_up(digits, exponent, _NANO)
    return _Quantity(negative=negative, digits=digits, exponent=exponent, suffix=suffix, canonical=canonical)


def _power_of(suffix: str) -> int:
    """Returns the power of ten that a decimal suffix or an exponent means: an int32, as Go cuts it."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None or not -(2**63) <= (power := int(match.group(1))) < 2**63:
        raise QuantityError("unable to parse quantity's suffix")
    return (power + 2**31) % 2**32 - 2**31


def _rounded_up(digits: str, exponent: int, scale: int) -> tuple[str, int]:
    """Returns a number without trailing zeros, rounded away from zero to a multiple of ten to the power of `scale`."""
    short = digits.rstrip("0")
    exponent += len(digits) - len(short)
    if short and exponent < scale:
        # The rest is more than zero, since the last digit is.
        kept = short[: max(len(short) - (scale - exponent), 0)]
        digit = kept.rstrip("9")
        exponent = scale + len(kept) - len(digit)
        short = f"{digit[:-1]}{int(digit[-1:] or 0) + 1}"
    return (short, exponent) if short else ("", 0)
