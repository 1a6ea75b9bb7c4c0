"""Determines what an update would change on a cluster: sends each manifest of the target as a dry run.

Manifests are sent as the operator would send them. Nothing is written: every patch says `dryRun=All`, and everything
else is a GET. An object that the caller may not read or patch has a row of its own and is never missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from kubekit.api import codec
from kubekit.api.core_v1 import Namespace
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls, discovery
from kubekit.kube.api_errors import ApiError, NotFound
from kubekit.kube.client_sync import SyncClient
from runup.applying.decide import task as tasks
from runup.applying.decide.rendering import LABEL, ClusterValues, render
from runup.applying.decide.task import Task
from runup.cli.errors import message_of
from runup.release.decide.difference import is_deletion
from runup.release.decide.inclusion_reasons import Explained
from runup.release.decide.manifest import Manifest
from runup.release.decide.object_diff import Change, changes

FIELD_MANAGER = "cluster-version-operator"
State = Literal["created", "changed", "deleted", "same", "refused", "unknown", "left"]
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
# Kinds whose existing objects are written by their own operators, not applied.
_NOTHING_TRIED = frozenset({("config.openshift.io", "ClusterOperator")})
JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of the update on one object. `why` says what the server refused, or why the effect is not known."""

    object: str
    file: str
    state: State
    changes: tuple[Change, ...] = ()
    why: str = ""


def effects(
    client: SyncClient, explained: Sequence[Explained], running: Iterable[Manifest], cluster: ClusterValues
) -> Iterator[Effect]:
    """Yields the effect of every manifest that the cluster gets, in order, then of those that only `running` has.

    Raises KubeError if the server does not answer.
    """
    cluster_dry_run = _Cluster(client, explained, cluster)
    for entry in explained:
        if entry.answer == "unknown":
            ruling = entry.decided_by
            why = f"{ruling.rule}: {ruling.why}" if ruling else ""
            yield Effect(str(entry.manifest.identity), entry.manifest.file, "unknown", why=why)
        elif entry.answer == "in":
            yield cluster_dry_run.effect(entry.manifest)
    target_identities = {entry.manifest.identity for entry in explained}
    for manifest in running:
        if manifest.identity not in target_identities and not is_deletion(manifest):
            yield cluster_dry_run.left(manifest)


class _Cluster:
    def __init__(self, client: SyncClient, explained: Sequence[Explained], cluster: ClusterValues) -> None:
        self._client = client
        self._cluster = cluster
        self._served: dict[str, tuple[Resource, ...]] = {}
        own_manifests = [entry.manifest for entry in explained if entry.answer != "out"]
        self._new_kinds = {kind for manifest in own_manifests for kind in _defined_kind(manifest)}
        self._new_namespaces = {
            manifest.identity.name
            for manifest in own_manifests
            if (manifest.identity.group, manifest.identity.kind) == ("", "Namespace") and not is_deletion(manifest)
        }

    def effect(self, manifest: Manifest) -> Effect:
        """Returns what applying `manifest` would do."""
        name, file = str(manifest.identity), manifest.file
        try:
            resource = self._resource(manifest)
            if resource is None:
                if is_deletion(manifest):
                    return Effect(name, file, "same", why="the cluster has no such kind")
                if (manifest.identity.group, manifest.identity.kind) in self._new_kinds:
                    return Effect(name, file, "created", why="its kind comes with the release")
                return Effect(name, file, "refused", why=f"the server knows no {_gvk(manifest)}")
            return self._compare_object(manifest, resource, self._live_object(manifest, resource))
        except (ApiError, codec.DecodeError) as error:
            return Effect(name, file, "unknown", why=message_of(error))

    def left(self, manifest: Manifest) -> Effect:
        """Returns the effect on an object that the release no longer has: an existing one stays."""
        name, file = str(manifest.identity), manifest.file
        try:
            resource = self._resource(manifest)
            live = self._live_object(manifest, resource) if resource is not None else None
        except (ApiError, codec.DecodeError) as error:
            return Effect(name, file, "unknown", why=message_of(error))
        if live is None:
            return Effect(name, file, "same", why="it is not there, and no part of the release")
        return Effect(name, file, "left", why="no part of the release any more, and nothing deletes it")

    def _compare_object(self, manifest: Manifest, resource: Resource, live: JSON | None) -> Effect:
        """Returns what the release would do to one object, by a dry run of the server where there is one to try."""
        name, file = str(manifest.identity), manifest.file
        if is_deletion(manifest):
            return Effect(name, file, "deleted" if live is not None else "same")
        annotations = manifest.annotations or {}
        if live is not None and annotations.get(tasks.CREATE_ONLY, "").lower() == "true":
            return Effect(name, file, "same", why="it is created where it is absent, and left alone otherwise")
        if (manifest.identity.group, manifest.identity.kind) in _NOTHING_TRIED and live is not None:
            return Effect(name, file, "same", why="its operator keeps it")
        if live is None and resource.namespaced and manifest.identity.namespace in self._missing_namespaces:
            return Effect(name, file, "created", why="its namespace comes with the release")
        try:
            obj = render(Task(manifest, 1, 1), self._cluster).object
        except Terminal as error:
            return Effect(name, file, "refused", why=error.message)
        try:
            answer = self._client.send(
                calls.apply(resource, obj, field_manager=FIELD_MANAGER, force=True, dry_run=True)
            )
        except ApiError as error:
            # With these codes the server did not try the request, so the effect is not known.
            state: State = "unknown" if error.code in (401, 403, 404, 405) else "refused"
            return Effect(name, file, state, why=message_of(error))
        if live is None:
            return Effect(name, file, "created")
        field_changes = changes(_without_hash_label(live), _without_hash_label(answer))
        return Effect(name, file, "changed" if field_changes else "same", field_changes)

    @cached_property
    def _missing_namespaces(self) -> frozenset[str]:
        """The namespaces that the release creates and the cluster lacks."""
        return frozenset(name for name in self._new_namespaces if self._is_absent(name))

    def _is_absent(self, namespace: str) -> bool:
        """Returns whether the namespace is known not to be there."""
        try:
            self._client.send(calls.get(Namespace, namespace))
        except NotFound:
            return True
        except (ApiError, codec.DecodeError):
            return False  # the dry run then reports what may not be read
        return False

    def _live_object(self, manifest: Manifest, resource: Resource) -> JSON | None:
        """Returns the manifest's object as the cluster has it, None if it has none. Raises KubeError."""
        try:
            namespace = manifest.identity.namespace if resource.namespaced else ""
            return self._client.send(calls.get_raw(resource, manifest.identity.name, namespace))
        except NotFound:
            return None

    def _resource(self, manifest: Manifest) -> Resource | None:
        """Returns the resource by which the server serves the manifest's kind, or None."""
        version = str(manifest.object.get("apiVersion") or "")
        if version not in self._served:
            try:
                self._served[version] = self._client.send(discovery.list_kinds(version))
            except NotFound:
                self._served[version] = ()
        resources = self._served[version]
        return next((resource for resource in resources if resource.kind == manifest.identity.kind), None)


def _without_hash_label(obj: JSON) -> JSON:
    """Returns the object without the label for the hash of its content, which changes with any shown change."""
    metadata = obj.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != LABEL}
    kept_metadata = {key: value for key, value in metadata.items() if key != "labels"} | (
        {"labels": labels} if labels else {}
    )
    return {**obj, "metadata": kept_metadata}


def _defined_kind(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yields group and kind that a CustomResourceDefinition of the release defines."""
    if (manifest.identity.group, manifest.identity.kind) != _CRD or is_deletion(manifest):
        return
    spec = manifest.object.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if isinstance(spec, dict) and isinstance(names, dict):
        yield str(spec.get("group", "")), str(names.get("kind", ""))


def _gvk(manifest: Manifest) -> str:
    return f"{manifest.identity.kind} of {manifest.object.get('apiVersion')}"
