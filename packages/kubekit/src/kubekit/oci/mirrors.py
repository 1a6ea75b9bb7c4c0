"""Mirrors of repositories, which are asked before the repository itself.

A mirror cannot serve another image for a digest, but it can for a tag. So mirrors of tags are separate ones, which an
administrator configures as such. Rules: ImageDigestMirrorSet of config.openshift.io/v1, its predecessor
ImageContentSourcePolicy, ImageTagMirrorSet; containers-registries.conf(5) for wildcards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubekit.lang import yaml as kyaml
from kubekit.oci.reference import Reference, parse
from kubekit.oci.registry_errors import BadMirrors, OciError

# Kind -> the field of its spec with the entries.
KINDS = {
    "ImageDigestMirrorSet": "imageDigestMirrors",
    "ImageContentSourcePolicy": "repositoryDigestMirrors",
    "ImageTagMirrorSet": "imageTagMirrors",
}
OF_TAGS = "ImageTagMirrorSet"
NEVER_CONTACT = "NeverContactSource"


class Mirror(msgspec.Struct, frozen=True):
    """The mirrors of `source`: a registry, a repository or part of its path, or `*.domain` for subdomains.

    `of_tags`: for images by tag, else for those by digest.
    """

    source: str
    mirrors: tuple[str, ...]
    never_source: bool = False
    of_tags: bool = False

    def path_below_source(self, name: str) -> str | None:
        """Returns the part of `name` (`registry/repository`) after the source, None if it is not below the source."""
        if self.source.startswith("*."):
            host, slash, path = name.partition("/")
            return slash + path if host.endswith(self.source[1:]) else None
        return name.removeprefix(self.source) if name == self.source or name.startswith(f"{self.source}/") else None


def references_to_try(reference: Reference, mirrors: Iterable[Mirror]) -> tuple[Reference, ...]:
    """Returns the references to try for `reference`, in order. Raises BadMirrors if there are none."""
    name = f"{reference.host}/{reference.path}"
    of_kind = [mirror for mirror in mirrors if mirror.of_tags is not bool(reference.digest)]
    fitting = [(mirror, rest) for mirror in of_kind if (rest := mirror.path_below_source(name)) is not None]
    # The most specific source wins, as in containers-registries.conf(5).
    longest = max((len(mirror.source) for mirror, _ in fitting), default=0)
    best = [(mirror, rest) for mirror, rest in fitting if len(mirror.source) == longest]
    candidates = [
        _reference_in_mirror(location + rest, reference) for mirror, rest in best for location in mirror.mirrors
    ]
    if not any(mirror.never_source for mirror, _ in best):
        candidates.append(reference)
    if not candidates:
        raise BadMirrors(f"{reference}: {NEVER_CONTACT} is set for {best[0][0].source}, which has no mirrors")
    return tuple(dict.fromkeys(candidates))


def read_mirrors(data: bytes, name: str) -> tuple[Mirror, ...]:
    """Returns the mirrors in a file of mirror sets. Raises BadMirrors, which names `name`."""
    try:
        documents = [document for document in kyaml.load_all(data, name=name) if document is not None]
    except kyaml.YamlError as error:
        raise BadMirrors(str(error)) from error
    if not documents:
        raise BadMirrors(f"{name}: holds no {' or '.join(KINDS)}")
    return tuple(mirror for document in documents for mirror in mirrors_of_object(document, name))


def mirrors_of_object(document: Any, name: str) -> tuple[Mirror, ...]:
    """Returns the mirrors of one object. Raises BadMirrors, which names `name`."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in KINDS:
        raise BadMirrors(f"{name}: expected {' or '.join(KINDS)}, found {kind or 'no object'}")
    spec = document.get("spec")
    entries = spec.get(KINDS[kind]) if isinstance(spec, dict) else None
    if entries is not None and not isinstance(entries, list):
        raise BadMirrors(f"{name}: spec.{KINDS[kind]} is not a list")
    return tuple(
        _parse_mirror(entry, f"{name}: spec.{KINDS[kind]}[{at}]", of_tags=kind == OF_TAGS)
        for at, entry in enumerate(entries or ())
    )


def _parse_mirror(entry: Any, place: str, *, of_tags: bool) -> Mirror:
    """Returns one entry of a mirror set; `of_tags` if it is for references by tag. Raises BadMirrors."""
    source = entry.get("source") if isinstance(entry, dict) else None
    if not isinstance(source, str) or not source:
        raise BadMirrors(f"{place} has no source")
    mirrors = entry.get("mirrors") or []
    if not isinstance(mirrors, list) or not all(isinstance(item, str) and item for item in mirrors):
        raise BadMirrors(f"{place}: mirrors is not a list of repositories")
    never = entry.get("mirrorSourcePolicy") == NEVER_CONTACT
    return Mirror(source.rstrip("/"), _without_trailing_slash(mirrors), never, of_tags)


def _without_trailing_slash(mirrors: Sequence[str]) -> tuple[str, ...]:
    return tuple(mirror.rstrip("/") for mirror in mirrors)


def _reference_in_mirror(location: str, reference: Reference) -> Reference:
    """Returns `reference` in the mirror at `location`. Raises BadMirrors if that is not a repository."""
    try:
        return parse(
            f"{location}@{reference.digest}" if reference.digest else f"{location}:{reference.tag or 'latest'}"
        )
    except OciError as error:
        raise BadMirrors(f"{reference}: its mirror {location} is not a repository") from error
