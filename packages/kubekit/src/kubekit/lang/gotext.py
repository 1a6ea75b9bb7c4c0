"""Writes and reads text as Go's standard library does: quoting (`%q`) and durations. Pure.

Durations are integers of nanoseconds here, as in Go: rounding and a quirk of `oc` depend on the last digit.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": SECOND, "m": MINUTE, "h": HOUR}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")

_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v",
}  # fmt: skip


def quote_go(text: str) -> str:
    """Returns `text` as Go's `%q` prints it."""
    quoted = []
    for char in text:
        number = ord(char)
        hexadecimal = f"x{number:02x}" if number < 0x80 else f"u{number:04x}" if number < 0x10000 else f"U{number:08x}"
        quoted.append(_ESCAPES.get(char) or (char if char.isprintable() else f"\\{hexadecimal}"))
    return f'"{"".join(quoted)}"'


def nanoseconds(span: timedelta) -> int:
    """Returns `span` in nanoseconds, as Go counts it."""
    return ((span.days * 86400 + span.seconds) * 1_000_000 + span.microseconds) * 1000


def to_ns(moment: datetime) -> int:
    """Returns `moment` in nanoseconds since the epoch."""
    return nanoseconds(moment - EPOCH)


def datetime_of_ns(now_ns: int) -> datetime:
    """Returns the datetime of `now_ns`, to the microsecond."""
    return EPOCH + timedelta(microseconds=now_ns // 1000)


def round_duration(duration: int, unit: int) -> int:
    """Returns the nearest multiple of `unit`, with halves rounded away from zero (Go's `Round`)."""
    whole = (abs(duration) + unit // 2) // unit * unit
    return whole if duration >= 0 else -whole


def truncate_duration(duration: int, unit: int) -> int:
    """Returns the multiple of `unit` towards zero (Go's `Truncate`)."""
    whole = abs(duration) // unit * unit
    return whole if duration >= 0 else -whole


def go_duration(duration: int) -> str:
    """Returns `duration` as Go prints it: `1h0m5s`, `368.975µs`, `0s`."""
    if duration == 0:
        return "0s"
    sign, remaining = ("-" if duration < 0 else ""), abs(duration)
    if remaining < SECOND:
        unit, size = next(
            (unit, size) for unit, size in (("ns", 1), ("µs", 1000), ("ms", 10**6)) if remaining < size * 1000
        )
        return f"{sign}{_decimal_text(remaining, size)}{unit}"
    hours, remaining = divmod(remaining, HOUR)
    minutes, remaining = divmod(remaining, MINUTE)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal_text(remaining, SECOND)}s"


def _decimal_text(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    return f"{whole}.{str(part).zfill(len(str(unit)) - 1).rstrip('0')}"


def parse_duration(text: str) -> int | None:
    """Returns the nanoseconds of a Go duration such as `10m0s`, or None if `text` is not one."""
    body = text[1:] if text.startswith(("-", "+")) else text
    total = position = 0
    # Part by part, so that only one pattern has to be compiled.
    while part_match := _PART.match(body, position):
        whole, _, part = part_match[1].partition(".")
        unit = _UNITS[part_match[2]]
        total += int(whole or "0") * unit + int(part or "0") * unit // 10 ** len(part)
        position = part_match.end()
    if body != "0" and (not body or position < len(body)):
        return None
    return -total if text.startswith("-") else total


def short_duration(duration: int) -> str:
    """Returns `duration` as the status command prints it: `now`, `5h`, `1h59m`, `6s`.

    A fraction is cut off with its unit and replaced by seconds, so that 368.975µs becomes 6m8s. oc does the same, as
    its published outputs show.
    """
    text = go_duration(duration)
    if text == "0s":
        return "now"
    if text.endswith("h0m0s"):
        return text[:-4]
    if text.endswith("m0s"):
        return text[:-2]
    if "." in text:
        again = parse_duration(text.partition(".")[0] + "s")
        return text if again is None else short_duration(again)
    return text
