"""Image references, `registry/repository:tag@digest`, as written and as a registry needs them.

The grammar is that of the container distribution project. `docker.io` is filled in only when a request is made, because
two pull specs count as the same update if their text is the same.
"""

from __future__ import annotations

import hashlib
import re

import msgspec
from msgspec.structs import replace

from kubekit.oci.registry_errors import InvalidReference

DOCKER_HUB = "docker.io"

# The form of a digest in a pull spec (docs/reference/upstream.md 8.2).
_DIGEST = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*\Z")
_HOST = re.compile(
    r"(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
    r"|\[[0-9a-fA-F:]+\])(?::[0-9]+)?\Z"
)
_HEX_LENGTH = {"sha256": 64, "sha512": 128}
_REPOSITORY_MAX = 255


class Reference(msgspec.Struct, frozen=True):
    """A pull spec in its parts; `registry` is empty if none is written."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        tag = f":{self.tag}" if self.tag else ""
        return f"{name}{tag}@{self.digest}" if self.digest else f"{name}{tag}"

    @property
    def host(self) -> str:
        """The registry to ask; Docker Hub if none is written."""
        return self.registry or DOCKER_HUB

    @property
    def path(self) -> str:
        """The repository as the registry knows it: Docker Hub's own images are below `library/`."""
        if self.host == DOCKER_HUB and "/" not in self.repository:
            return f"library/{self.repository}"
        return self.repository

    def at(self, digest: str) -> Reference:
        """Returns the same repository by digest, without a tag."""
        return replace(self, tag="", digest=digest)


def parse(text: str) -> Reference:
    """Returns the reference in `text`. Raises InvalidReference."""
    rest, at, digest = text.partition("@")
    if at and not is_digest(digest):
        raise InvalidReference(
            f"{text!r}: invalid reference format: {digest!r} is not a digest such as sha256:<64 hex>"
        )
    registry, slash, path = rest.partition("/")
    # As in Docker: the first part is a registry only if it looks like a host name.
    if not slash or not (
        any(char in registry for char in ".:") or registry == "localhost" or registry != registry.lower()
    ):
        registry, path = "", rest
    repository, colon, tag = path.partition(":")
    if colon and not _TAG.match(tag):
        raise InvalidReference(f"{text!r}: invalid reference format: {tag!r} is not a tag")
    is_repository = len(repository) <= _REPOSITORY_MAX and all(map(_COMPONENT.match, repository.split("/")))
    if not is_repository or (registry and not _HOST.match(registry)):
        raise InvalidReference(f"{text!r}: invalid reference format: expected registry/repository:tag or @digest")
    return Reference(registry, repository, tag, digest)


def digest_of(pullspec: str) -> str:
    """Returns the digest that `pullspec` pins, "" for a tag or two `@` (docs/reference/upstream.md 1.5)."""
    parts = pullspec.split("@")
    return parts[1] if len(parts) == 2 and is_digest(parts[1]) else ""


def is_digest(text: str) -> bool:
    """Returns whether `text` has a digest's form; for sha256 and sha512, also its length."""
    if _DIGEST.match(text) is None:
        return False
    algorithm, _, value = text.partition(":")
    length = _HEX_LENGTH.get(algorithm)
    return length is None or (len(value) == length and all(char in "0123456789abcdef" for char in value))


def is_tag(text: str) -> bool:
    """Returns whether `text` can name an image in a registry."""
    return _TAG.match(text) is not None


def sha256(data: bytes) -> str:
    """Returns the sha256 digest of `data`, as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
