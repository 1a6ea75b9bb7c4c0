"""Lists the requests with which the operator applies the objects of the target release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubekit.api.scheme import guess_plural
from runup.api.clusterversion_json import mapping, texts
from runup.checks.decide.model import DEFINITIONS, CheckFailure, Context, Snapshot, Unreadable
from runup.checks.decide.target_manifests import BadManifests
from runup.checks.writing import Resource
from runup.release.decide.difference import DELETE

JSON = dict[str, Any]


class ReleaseWrite(NamedTuple):
    """An object of the release, its resource, and the operations with which the operator applies it."""

    resource: Resource
    operations: tuple[str, ...]
    obj: JSON

    @property
    def namespace(self) -> str:
        """The object's namespace, empty if it is in none."""
        return str(mapping(self.obj, "metadata").get("namespace") or "")

    @property
    def name(self) -> str:
        """The object's name, with its namespace."""
        name = str(mapping(self.obj, "metadata").get("name") or "")
        return f"{self.namespace}/{name}" if self.namespace else name

    @property
    def labels(self) -> dict[str, str]:
        """The object's labels."""
        return texts(mapping(self.obj, "metadata"), "labels")


def release_writes(snapshot: Snapshot, context: Context) -> Iterator[ReleaseWrite]:
    """Yields the requests for the release's objects; none if the release is not known.

    Raises CheckFailure if its manifests cannot be parsed.
    """
    if context.release is None:
        return
    try:
        objects = context.release.objects()
    except BadManifests as error:
        raise CheckFailure(f"the manifests of the target cannot be read: {error}") from error
    plurals = _plurals(snapshot, context)
    for obj in (*(context.manifests or ()), *objects):
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        kind, metadata = str(obj.get("kind", "")), mapping(obj, "metadata")
        plural = plurals.get((group, kind)) or guess_plural(kind)
        resource = Resource(group, version, kind, plural, namespaced=bool(metadata.get("namespace")))
        is_deleted = texts(metadata, "annotations").get(DELETE) == "true"
        yield ReleaseWrite(resource, ("DELETE",) if is_deleted else ("CREATE", "UPDATE"), dict(obj))


def _plurals(snapshot: Snapshot, context: Context) -> Mapping[tuple[str, str], str]:
    """Returns the plurals of kinds that definitions of the cluster or of the release name."""
    plurals: dict[tuple[str, str], str] = {}
    try:
        specs = [definition.spec for definition in snapshot.listed(DEFINITIONS)]
        plurals = {(spec.group, spec.names.kind): spec.names.plural for spec in specs}
    except Unreadable:
        # Most plurals can be guessed.
        plurals = {}
    for obj in context.manifests or ():
        if obj.get("kind") == "CustomResourceDefinition":
            spec = mapping(obj, "spec")
            names = texts(spec, "names")
            plurals[str(spec.get("group")), names.get("kind", "")] = names.get("plural", "")
    return plurals
