"""Selects the manifests of the target that checks compare a cluster with.

These are CustomResourceDefinitions, CredentialsRequests, CatalogSources and the admin gates. A payload has hundreds of
files of several megabytes. Only those that can contain such a kind are parsed, and of a definition only names and
versions are kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from runup.release.decide.inclusion import Excluded, Filters, include
from runup.release.decide.manifest import Manifest, parse_manifests
from runup.rules.admin_acks import GATES

KINDS = frozenset({"CatalogSource", "CustomResourceDefinition", "CredentialsRequest"})
JSON = Mapping[str, Any]


class BadManifests(ValueError):
    """Error raised if a file that may hold such a manifest cannot be parsed; the message names the file."""


def manifests_of_files(files: Iterable[tuple[str, str]]) -> tuple[Manifest, ...]:
    """Returns the manifests of these kinds in `files` (path, text). Raises BadManifests."""
    selected: list[Manifest] = []
    for path, text in files:
        # To search the text takes far less time than to parse megabytes of YAML.
        if GATES not in text and not any(kind in text for kind in KINDS):
            continue
        manifests, errors = parse_manifests(path, text)
        if errors:
            raise BadManifests(str(errors[0]))
        for manifest in manifests:
            identity = manifest.identity
            # The gates are a ConfigMap, of which a payload has many others.
            if identity.kind in KINDS or (identity.kind, identity.name) == ("ConfigMap", GATES):
                selected.append(Manifest.of(manifest.file, identity, _without_schemas(manifest.object)))
    return tuple(selected)


class ReleaseObjects:
    """All objects of a release for a cluster.

    They are parsed when a check asks for them: a release has thousands, and few clusters need them.
    """

    def __init__(self, files: Iterable[tuple[str, str]], filters: Filters | None = None) -> None:
        self._packed = [(path, zlib.compress(text.encode(), 1)) for path, text in files if _may_hold_others(text)]
        self._filters = filters
        self._objects: tuple[JSON, ...] | None = None

    def for_cluster(self, filters: Filters) -> ReleaseObjects:
        """Returns the objects that are included in a cluster with `filters`."""
        selected = ReleaseObjects((), filters)
        selected._packed = self._packed
        return selected

    def objects(self) -> tuple[JSON, ...]:
        """Returns the objects, except for those in files of one object that has one of KINDS. Raises BadManifests."""
        if self._objects is None:
            manifests: list[Manifest] = []
            for path, packed in self._packed:
                found, errors = parse_manifests(path, zlib.decompress(packed).decode())
                if errors:
                    raise BadManifests(str(errors[0]))
                manifests += found
            self._objects = objects_for_cluster(manifests, self._filters or Filters())
        return self._objects


def _may_hold_others(text: str) -> bool:
    """Returns whether the text of a file may have objects of other kinds than KINDS."""
    return not any(kind in text for kind in KINDS) or "\n---" in text.strip().removeprefix("---")


def objects_for_cluster(manifests: Iterable[Manifest], filters: Filters) -> tuple[JSON, ...]:
    """Returns the objects of the manifests that are included in a cluster with `filters`."""
    return tuple(manifest.object for manifest in manifests if not isinstance(include(manifest, filters), Excluded))


def _without_schemas(obj: dict[str, Any]) -> dict[str, Any]:
    """Returns the object without the schemas of its versions, which are most of a definition."""
    spec = obj.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(versions, list):
        return obj
    # The OpenAPI schemas are most of a definition, and no check looks at them.
    slim = [
        {key: version[key] for key in ("name", "served", "storage") if key in version}
        for version in versions
        if isinstance(version, dict)
    ]
    return {
        **obj,
        "spec": {key: value for key, value in spec.items() if key in ("group", "names")} | {"versions": slim},
    }
