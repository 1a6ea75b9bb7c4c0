"""Versions and pull specs as `oc`'s libraries read them, with their error texts.

Out comes a value, or ValueError whose text is what `oc` shows after its own prefix. Versions: blang/semver 4, strict.
Pull specs: distribution/reference and openshift/library-go's pkg/image/reference, quirks included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import TypeVar

import msgspec

from runup.domain.version import Version, parse
from runup.lang.gotext import quoted
from runup.lang.pattern import Pattern

T = TypeVar("T")

_ALPHANUMERIC = Pattern(r"[0-9A-Za-z-]*")
_DIGITS = Pattern(r"[0-9]*")


def check_version(text: str) -> None:
    """Raise ValueError with blang/semver's text where `text` is no semantic version."""
    if not text:
        raise ValueError("Version string empty")
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
        if not _ALPHANUMERIC.fullmatch(piece):
            raise ValueError(f"Invalid character(s) found in build meta data {quoted(piece)}")


def _check_number(text: str, upper: str, lower: str) -> None:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in {lower} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{upper} number must not contain leading zeroes {quoted(text)}")
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')


def _check_prerelease(piece: str) -> None:
    if not piece:
        raise ValueError("Prerelease is empty")
    if _DIGITS.fullmatch(piece):
        if len(piece) > 1 and piece[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quoted(piece)}")
    elif not _ALPHANUMERIC.fullmatch(piece):
        raise ValueError(f"Invalid character(s) found in prerelease {quoted(piece)}")


def newest_first(items: Iterable[T], version: Callable[[T], str]) -> list[T]:
    """`items` by version, descending; what does not parse comes last, in descending order of its text."""

    def compare(left: T, right: T) -> int:
        return _compare(version(right), version(left))

    return sorted(items, key=cmp_to_key(compare))


def _compare(left: str, right: str) -> int:
    parsed: tuple[Version | None, Version | None] = (parse(left), parse(right))
    if parsed[0] is not None and parsed[1] is not None:
        return (parsed[0] > parsed[1]) - (parsed[0] < parsed[1])
    if parsed[0] is None and parsed[1] is None:
        return (left > right) - (left < right)
    return -1 if parsed[0] is None else 1


class PullSpec(msgspec.Struct, frozen=True):
    """`[registry/][namespace/]name[:tag][@digest]`, taken apart; what is missing is empty."""

    registry: str
    namespace: str
    name: str
    tag: str
    digest: str


_LABEL = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-*)[a-z0-9]+)*"
_NAME = rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = Pattern(rf"(?P<name>{_NAME})(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?", re.ASCII)
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


def pull_spec(text: str) -> PullSpec:
    """`text` taken apart; raises ValueError with the Go library's words."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        if not text:
            raise ValueError("repository name must have at least one component")
        if _REFERENCE.fullmatch(text.lower()):
            raise ValueError("repository name must be lowercase")
        raise ValueError("invalid reference format")
    name, tag, digest = match["name"], match["tag"] or "", match["digest"] or ""
    if len(name) > 255:
        raise ValueError("repository name must not be more than 255 characters")
    _check_digest(digest)
    registry, namespace, name = _split(name)
    return PullSpec(registry, namespace, name, tag, digest)


def _check_digest(digest: str) -> None:
    algorithm, _, value = digest.partition(":")
    if not digest:
        return
    if algorithm not in _DIGEST_LENGTHS:
        raise ValueError("unsupported digest algorithm")
    if len(value) != _DIGEST_LENGTHS[algorithm]:
        raise ValueError("invalid checksum digest length")
    if not re.fullmatch(r"[0-9a-f]+", value):
        raise ValueError("invalid checksum digest format")


def _split(name: str) -> tuple[str, str, str]:
    """Registry, namespace and name. A bare word with a dot in it counts as a registry: `4.0.1` is one."""
    first, slash, rest = name.partition("/")
    if not slash:
        return (name, "", "") if "." in name or name.startswith("localhost") else ("", "", name)
    registry, path = (first, rest) if any(c in first for c in ":.") or first == "localhost" else ("", name)
    namespace, _, last = path.rpartition("/")
    return registry, namespace, last
