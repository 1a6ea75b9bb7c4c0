"""Parses and orders semantic versions as `oc`'s library does, with its error texts (blang/semver 4, strict).

There is no library behind it, to keep the start fast: every command that lists updates orders some hundred of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

_ALPHANUMERIC = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-")
_DIGITS = frozenset("0123456789")


def check_version(text: str) -> None:
    """Raises ValueError with blang/semver's text if `text` is not a semantic version."""
    if not text:
        raise ValueError("Version string empty")
    # The checks, their order and their texts are those of blang/semver's Parse, which oc prints.
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    _check_number(parts[0], "Major", "major")
    _check_number(parts[1], "Minor", "minor")
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    _check_number(patch, "Patch", "patch")
    for piece in prerelease.split(".") if dash else ():
        _check_prerelease(piece)
    for piece in build.split(".") if plus else ():
        if not piece:
            raise ValueError("Build meta data is empty")
        if not _ALPHANUMERIC.issuperset(piece):
            raise ValueError(f"Invalid character(s) found in build meta data {_quote(piece)}")


def _check_number(text: str, upper: str, lower: str) -> None:
    """Raises ValueError with the text of Go's semver if `text` is not the number of a version."""
    if not _DIGITS.issuperset(text):
        raise ValueError(f"Invalid character(s) found in {lower} number {_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{upper} number must not contain leading zeroes {_quote(text)}")
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')


def _check_prerelease(piece: str) -> None:
    """Raises ValueError with the text of Go's semver if `piece` may not stand in a prerelease."""
    if not piece:
        raise ValueError("Prerelease is empty")
    if _DIGITS.issuperset(piece):
        if len(piece) > 1 and piece[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {_quote(piece)}")
    elif not _ALPHANUMERIC.issuperset(piece):
        raise ValueError(f"Invalid character(s) found in prerelease {_quote(piece)}")


def numbers(text: str) -> tuple[int, int, int]:
    """Returns major, minor and patch of a version that `check_version` accepts."""
    major, minor, patch_part = text.split(".", 2)
    return int(major), int(minor), int(patch_part.partition("+")[0].partition("-")[0])


def newest_first(items: Iterable[T], version: Callable[[T], str]) -> list[T]:
    """Returns `items` by version, descending; those that do not parse come last, in descending order of their text."""
    return sorted(items, key=lambda item: order(version(item)), reverse=True)


def order(text: str) -> tuple[Any, ...]:
    """Returns a key that sorts versions ascending by SemVer 2.0.0 section 11; texts that are no versions come first."""
    try:
        check_version(text)
    except ValueError:
        return (False, text)
    prerelease = text.partition("+")[0].partition("-")[2]
    # SemVer section 11: numeric identifiers come before others; a version without a prerelease comes after those with.
    pieces = tuple((0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in prerelease.split("."))
    return (True, *numbers(text), not prerelease, pieces)


def _quote(text: str) -> str:
    from kubekit.lang.gotext import quote_go  # compiles what only an error needs

    return quote_go(text)
