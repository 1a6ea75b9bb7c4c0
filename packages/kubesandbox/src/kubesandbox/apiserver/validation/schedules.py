"""Validation of a CronJob's schedule, in the words of github.com/robfig/cron, by which kube-apiserver reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubekit.lang.gotext import parse_duration

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Bounds:
    least: int
    most: int
    names: Mapping[str, int] = field(default_factory=dict)


_FIELDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def schedule_fault(schedule: str) -> str:
    """Returns why a schedule cannot be read, or ""."""
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    try:
        if schedule.startswith("@"):
            _check_descriptor(schedule)
        else:
            _check_fields(schedule.split())
    except ValueError as error:
        return str(error)
    return ""


def _check_descriptor(text: str) -> None:
    """Raises ValueError unless a schedule that begins with @ is one that there is."""
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise ValueError(f"unrecognized descriptor: {text}")
    duration = text.removeprefix(_EVERY)
    if parse_duration(duration) is None:
        raise ValueError(f'failed to parse duration {text}: time: invalid duration "{duration}"')


def _check_fields(fields: list[str]) -> None:
    """Raises ValueError, worded as by robfig/cron, unless there are five valid fields."""
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, bounds in zip(fields, _FIELDS, strict=True):
        for part in filter(None, text.split(",")):
            _check_range(part, bounds)


def _check_range(text: str, bounds: _Bounds) -> None:
    """Raises ValueError unless `text` is a number, a range or `*`, with a step or without."""
    numbers, *steps = text.split("/")
    low, *high = numbers.split("-")
    if low in ("*", "?"):
        start, end = bounds.least, bounds.most
    else:
        start = end = _number(low, bounds.names)
        if len(high) > 1:
            raise ValueError(f"too many hyphens: {text}")
        if high:
            end = _number(high[0], bounds.names)
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not high:
        # A number with a step means from there to the end.
        end = bounds.most
    if start < bounds.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.least}): {text}")
    if end > bounds.most:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.most}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, names: Mapping[str, int]) -> int:
    """Returns the number that `text` is or names; raises ValueError in the words of Go's strconv."""
    if text.lower() in names:
        return names[text.lower()]
    digits = text[1:] if text.startswith(("+", "-")) else text
    failed = f'failed to parse int from {text}: strconv.Atoi: parsing "{text}"'
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{failed}: invalid syntax")
    # int refuses some thousands of digits with an error of its own.
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST:
        raise ValueError(f"{failed}: value out of range")
    if text.startswith("-") and digits != "0":
        raise ValueError(f"negative number (-{digits}) not allowed: {text}")
    return int(digits)
