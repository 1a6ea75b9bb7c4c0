"""Parses pull specs as `oc`'s libraries do, with their error texts.

Returns a value, or raises ValueError whose text is what `oc` shows after its own prefix: distribution/reference and
openshift/library-go's pkg/image/reference, quirks included.
"""

from __future__ import annotations

import re

import msgspec


class PullSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of `[registry/][namespace/]name[:tag][@digest]`; missing parts are empty."""

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
_REFERENCE = re.compile(rf"(?P<name>{_NAME})(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?", re.ASCII)
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


def pull_spec(text: str) -> PullSpec:
    """Returns the parts of `text`. Raises ValueError with the Go library's words."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        if not text:
            raise ValueError("repository name must have at least one component")
        # distribution/reference distinguishes this error, and oc prints it.
        if _REFERENCE.fullmatch(text.lower()):
            raise ValueError("repository name must be lowercase")
        raise ValueError("invalid reference format")
    name, tag, digest = match["name"], match["tag"] or "", match["digest"] or ""
    if len(name) > 255:
        raise ValueError("repository name must not be more than 255 characters")
    _check_digest(digest)
    registry, namespace, name = _split(name)
    return PullSpec(registry=registry, namespace=namespace, name=name, tag=tag, digest=digest)


def _check_digest(digest: str) -> None:
    """Raises ValueError, worded as `oc` does, if `digest` is not empty and not algorithm:hex."""
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
    """Returns registry, namespace and name. A single word with a dot in it counts as a registry: `4.0.1` is one."""
    first, slash, after_registry = name.partition("/")
    if not slash:
        return (name, "", "") if "." in name or name.startswith("localhost") else ("", "", name)
    registry, path = (first, after_registry) if any(c in first for c in ":.") or first == "localhost" else ("", name)
    namespace, _, last = path.rpartition("/")
    return registry, namespace, last


def is_same_image(pullspec: str, other: str) -> bool:
    """Returns whether two pull specs are known to name one image: by digest, wherever it is kept, else literally.

    An empty pull spec names no image. A tag and a digest may name different images, so they never compare equal.
    """
    digest = pullspec.partition("@")[2]
    return bool(pullspec) and (pullspec == other or (bool(digest) and digest == other.partition("@")[2]))
