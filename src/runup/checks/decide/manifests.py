"""The target's own manifests, as far as checks judge a cluster by them: definitions, requests for accounts,
catalogs of operators, gates.

A payload has hundreds of files of several megabytes. Only those are parsed in which one of these kinds can be, and of a
definition only names and versions are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runup.release.decide.inclusion import Excluded, Filters, include
from runup.release.decide.manifest import Manifest, parse_manifests

KINDS = frozenset({"CatalogSource", "CustomResourceDefinition", "CredentialsRequest"})
GATES = "admin-gates"
JSON = Mapping[str, Any]


class BadManifests(ValueError):
    """A file that may hold one of them cannot be parsed; the message names it."""


def of_files(files: Iterable[tuple[str, str]]) -> tuple[Manifest, ...]:
    """The manifests of these kinds in `files` (path, text); raises BadManifests."""
    return tuple(manifest for path, text in files if _may_hold(text) for manifest in _of_file(path, text))


def for_cluster(manifests: Iterable[Manifest], filters: Filters) -> tuple[JSON, ...]:
    """Those that the cluster gets, as checks look at them."""
    return tuple(each.object for each in manifests if not isinstance(include(each, filters), Excluded))


def _may_hold(text: str) -> bool:
    return GATES in text or any(kind in text for kind in KINDS)


def _of_file(path: str, text: str) -> Iterator[Manifest]:
    found, errors = parse_manifests(path, text)
    if errors:
        raise BadManifests(str(errors[0]))
    for manifest in found:
        identity = manifest.identity
        if identity.kind in KINDS or (identity.kind, identity.name) == ("ConfigMap", GATES):
            yield Manifest.of(manifest.file, identity, _without_schemas(manifest.object))


def _without_schemas(obj: dict[str, Any]) -> dict[str, Any]:
    spec = obj.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(versions, list):
        return obj
    slim = [
        {key: each[key] for key in ("name", "served", "storage") if key in each}
        for each in versions
        if isinstance(each, dict)
    ]
    return {
        **obj,
        "spec": {key: value for key, value in spec.items() if key in ("group", "names")} | {"versions": slim},
    }
