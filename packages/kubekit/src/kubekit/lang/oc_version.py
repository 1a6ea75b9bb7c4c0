"""Parses and orders semantic versions, with the error texts of `oc`'s library (blang/semver 4, strict)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kubekit.lang.gotext import quote_go
from kubekit.lang.version import Version, parse

T = TypeVar("T")

_ALPHANUMERIC = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-")
_DIGITS = frozenset("0123456789")


def parse_as_oc(text: str) -> Version:
    """Returns the version in `text`. Raises ValueError with blang/semver's text if it is not a semantic version."""
    version = parse(text)
    if version is None:
        _check_version(text)
        # Valid for oc, and longer than what `Version` accepts.
        return Version(text)
    return version


def newest_first(items: Iterable[T], version: Callable[[T], str]) -> list[T]:
    """Returns `items` by version, descending; those that do not parse come last, in descending order of their text."""

    def key(item: T) -> tuple[bool, Version | str]:
        parsed = parse(version(item))
        return (False, version(item)) if parsed is None else (True, parsed)

    return sorted(items, key=key, reverse=True)


def _check_version(text: str) -> None:
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
        if not piece:
            raise ValueError("Prerelease is empty")
        if _DIGITS.issuperset(piece):
            if len(piece) > 1 and piece[0] == "0":
                raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quote_go(piece)}")
        elif not _ALPHANUMERIC.issuperset(piece):
            raise ValueError(f"Invalid character(s) found in prerelease {quote_go(piece)}")
    for piece in build.split(".") if plus else ():
        if not piece:
            raise ValueError("Build meta data is empty")
        if not _ALPHANUMERIC.issuperset(piece):
            raise ValueError(f"Invalid character(s) found in build meta data {quote_go(piece)}")


def _check_number(text: str, upper: str, lower: str) -> None:
    """Raises ValueError with the text of Go's semver if `text` is not the number of a version."""
    if not _DIGITS.issuperset(text):
        raise ValueError(f"Invalid character(s) found in {lower} number {quote_go(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{upper} number must not contain leading zeroes {quote_go(text)}")
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
