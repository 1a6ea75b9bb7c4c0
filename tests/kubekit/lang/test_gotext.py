"""Go's durations and quoting. Expected values are those of Go's documentation and of oc's published outputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.lang.gotext import (
    HOUR,
    MINUTE,
    SECOND,
    go_duration,
    parse_duration,
    quote_go,
    round_duration,
    short_duration,
    truncate_duration,
)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0s"),
        (42, "42ns"),
        (368_975, "368.975µs"),
        (1_500_000, "1.5ms"),
        (SECOND, "1s"),
        (6 * SECOND, "6s"),
        (2 * MINUTE, "2m0s"),
        (2 * MINUTE + 368_975, "2m0.000368975s"),
        (HOUR + 5 * SECOND, "1h0m5s"),
        (100 * HOUR, "100h0m0s"),
        (-90 * SECOND, "-1m30s"),
        (-368_975, "-368.975µs"),
        (1_100_000_000, "1.1s"),
    ],
)
def test_go_writes_durations(duration: int, text: str) -> None:
    """Leading units that are zero are left out, and trailing zeros of a fraction."""
    assert go_duration(duration) == text
    assert parse_duration(text) == duration


@given(st.integers(-(10**18), 10**18))
def test_durations_survive_a_round_trip(duration: int) -> None:
    """A written text is read as the same value."""
    assert parse_duration(go_duration(duration)) == duration


@pytest.mark.parametrize("text", ["", "5", "s", "1h 2m", "1d", "-", "1.5.2s", "١s"])
def test_what_is_no_duration(text: str) -> None:
    """Numbers without units, other units, blanks."""
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "now"),
        (5 * HOUR, "5h"),
        (2 * MINUTE, "2m"),
        (HOUR + 59 * MINUTE, "1h59m"),
        (HOUR + 17 * SECOND, "1h0m17s"),
        (58 * MINUTE + 18 * SECOND, "58m18s"),
        (2 * MINUTE + 368_975, "2m"),
        (45 * SECOND + 368_975, "45s"),
        (368_975, "6m8s"),
        (5 * HOUR + 368_975, "5h"),
        (60 * MINUTE, "1h"),
        (20 * SECOND, "20s"),
        (10 * MINUTE, "10m"),
        (-5 * MINUTE, "-5m"),
        (42, "42ns"),
        (1_500_000, "1s"),
    ],
)
def test_the_status_command_shortens_durations(duration: int, text: str) -> None:
    """Zero parts at the end are dropped; a fraction of less than a second reads as seconds, as oc's outputs show."""
    assert short_duration(duration) == text


@pytest.mark.parametrize(
    ("duration", "nearest", "towards_zero"),
    [(90, 120, 60), (89, 60, 60), (-90, -120, -60), (-89, -60, -60), (0, 0, 0), (59, 60, 0)],
)
def test_rounding(duration: int, nearest: int, towards_zero: int) -> None:
    """Half of a unit goes away from zero."""
    assert (round_duration(duration, 60), truncate_duration(duration, 60)) == (nearest, towards_zero)


@pytest.mark.parametrize(
    ("text", "quotation"),
    [
        ("plain", '"plain"'),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        ("a\nb\tc\r", '"a\\nb\\tc\\r"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("é 漢", '"é 漢"'),
        ("\u200b", '"\\u200b"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_go_quotes(text: str, quotation: str) -> None:
    """Printable text stays; the rest is escaped."""
    assert quote_go(text) == quotation
