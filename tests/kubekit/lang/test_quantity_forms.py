"""Quantities as an API server writes them back; expected values from apimachinery's quantity_test.go and a server."""

from __future__ import annotations

import pytest

from kubekit.lang.quantity import QuantityError, add_quantities, canonical_quantity, parse_quantity, whole_units


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("100e2", "10e3"),
        ("0", "0"),
        ("0Mi", "0"),
        ("-5", "-5"),
        ("0.0000000001", "1n"),
        # As kube-apiserver 1.34 writes them.
        ("1e999998", "100e999996"),
        ("1e1000", "10e999"),
        ("1e4294967296", "1e4294967296"),
        ("-1e99", "-1e99"),
        ("8Ei", "9223372036854775807"),
        ("999999999999999999999Ei", "9223372036854775807"),
        ("9" * 5000, "9" * 5000),
        ("1E+3", "1E+3"),
        ("+1", "+1"),
        ("5.", "5."),
        (".", "0"),
        ("-", "0"),
        ("00012Ki", "00012Ki"),
        ("0.19999999999", "200m"),
    ],
)
def test_canonical_forms(given: str, written: str) -> None:
    """The suffix takes what it can, the form stays."""
    assert canonical_quantity(given) == written
    assert canonical_quantity(written) == written


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        ("500m", "500m", "1"),
        ("1Gi", "512Mi", "1536Mi"),
        ("1G", "1Gi", "2073741824"),
        ("0", "1Gi", "1Gi"),
        ("1Ki", "-512", "512"),
        ("1e3", "500", "1500"),
        ("2", "-2", "0"),
        ("1e99", "1e99", "2e99"),
        ("1e999999", "-1e999999", "0"),
        ("7Ei", "7Ei", "14Ei"),
    ],
)
def test_sums(one: str, other: str, total: str) -> None:
    """Exact, in the form of the first that is not zero (Quantity.Add of apimachinery)."""
    assert add_quantities(one, other) == total


@pytest.mark.parametrize(
    "text",
    [
        "",
        "much",
        "1.5.2",
        "1GiB",
        "1 Gi",
        "1e3Ki",
        "1e9223372036854775808",
        "1e" + "9" * 5000,
        "NaN",
        "0" * 99_999 + "x",
    ],
)
def test_what_is_no_quantity(text: str) -> None:
    """Is refused."""
    with pytest.raises(QuantityError):
        canonical_quantity(text)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("1e999998", 2**63 - 1),
        ("-1e999998", 1 - 2**63),
        ("1e2147483647", 2**63 - 1),
        ("1e-2147483648", 1),
        ("9" * 5000, 2**63 - 1),
        ("0e999999999", 0),
        ("1.5", 1500),
    ],
)
def test_whole_units_fit_an_int64(text: str, whole: int) -> None:
    """Sums and products of quantities do not raise, however large their exponents are."""
    assert whole_units(text, 1000) == whole
    assert parse_quantity(text) + parse_quantity("1e2147483647") * 1000 > 0
