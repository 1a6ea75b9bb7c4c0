"""Quantities as an API server writes them back; expected values from apimachinery's quantity_test.go and a server."""

from __future__ import annotations

import pytest

from kubekit.lang.quantity import QuantityError, add_quantities, canonical_quantity


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
    ],
)
def test_sums(one: str, other: str, total: str) -> None:
    """Exact, in the form of the first that is not zero (Quantity.Add of apimachinery)."""
    assert add_quantities(one, other) == total


@pytest.mark.parametrize("text", ["", "much", "1.5.2", "1GiB", "1 Gi"])
def test_what_is_no_quantity(text: str) -> None:
    """Is refused."""
    with pytest.raises(QuantityError):
        canonical_quantity(text)
