"""Determines what an update would change on a cluster: sends each manifest of the target as a dry run.

The values that the operator injects (proxy, TLS profile, internal address) are read once, if a manifest needs them; a
value that may not be read is noted, because an object that needs it would differ from what the operator applies.
Manifests are sent as the operator would send them. Nothing is written: every patch says `dryRun=All`, and everything
else is a GET. An object that the caller may not read or patch has a separate row and is never missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

from kubekit.api import codec
from kubekit.api.core_v1 import Namespace
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound, message_of
from kubekit.kube.client_sync import SyncClient
from kubekit.oci.access import Access
from kubekit.oci.registry_errors import OciError
from runup.applying.decide import task as tasks
from runup.applying.decide.rendering import INJECT_PROXY, INJECT_TLS, LABEL, ClusterValues, Proxy, render
from runup.applying.decide.task import Task
from runup.process import clusterversion_client as clusters
from runup.process import tls_profile
from runup.process.served_kinds import ServedKinds
from runup.release.control import live_cluster, release_location
from runup.release.decide.difference import is_deletion
from runup.release.decide.inclusion_reasons import OPERATOR, Explained, describe, explain_manifest
from runup.release.decide.manifest import Manifest
from runup.release.decide.object_diff import Change, changes
from runup.release.decide.payload import Payload, PayloadError

FIELD_MANAGER = "cluster-version-operator"
State = Literal["created", "changed", "deleted", "same", "refused", "unknown", "left"]
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
# Kinds whose existing objects are written by their own operators, not applied.
_NOTHING_TRIED = frozenset({("config.openshift.io", "ClusterOperator")})
JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of the update on one object. `why` says what the server refused, or why the effect is not known."""

    object: str
    file: str
    state: State
    changes: tuple[Change, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The effects of a release on a cluster; `notes` say what could not be read."""

    release: Payload
    digest: str
    effects: tuple[Effect, ...]
    notes: tuple[str, ...]


def compare_with_cluster(client: SyncClient, images: Sequence[str], access: Access) -> Comparison:
    """Returns what the last of `images` would change on the cluster.

    The first of two images, or else the release that the cluster runs, says which objects would be left behind. Raises
    InputError, KubeError, OciError and PayloadError.
    """
    facts = live_cluster.read(client)
    profile = live_cluster.profile(facts)
    release, digest = release_location.load(images[-1], access, profile=profile)
    notes: list[str] = []
    running: tuple[Manifest, ...] = ()
    try:
        before = images[0] if len(images) == 2 else live_cluster.release_image_of(facts.cluster_version)
        running = release_location.load(before, access, profile=profile)[0].manifests
    except (OciError, PayloadError) as error:
        if len(images) == 2:
            raise
        notes.append(f"what the release would leave behind is not known, since the running one cannot be read: {error}")
    cluster = describe(facts, major=release.metadata.semver.major)
    explained = [explain_manifest(manifest, cluster.filters, cluster.unreadable) for manifest in release.manifests]
    own_manifests = [entry.manifest for entry in explained if entry.answer != "out"]
    values, unread = read_values(client, own_manifests, facts.cluster_version.metadata.uid)
    object_effects = tuple(effects(client, explained, running, values))
    notes += [*unread, *(f"{rule}: {why}" for rule, why in cluster.unreadable.items())]
    return Comparison(release=release, digest=digest, effects=object_effects, notes=tuple(notes))


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
            yield Effect(object=str(entry.manifest.identity), file=entry.manifest.file, state="unknown", why=why)
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
        self._served = ServedKinds(client)
        own_manifests = [entry.manifest for entry in explained if entry.answer != "out"]
        self._versions: dict[str, tuple[str, ...]] = {}
        # By group and kind, the apiVersions that the release's own definitions serve.
        self._defined: dict[tuple[str, str], tuple[str, ...]] = {}
        for manifest in own_manifests:
            for kind, api_versions in _defined_kind(manifest):
                self._defined[kind] = tuple(dict.fromkeys((*self._defined.get(kind, ()), *api_versions)))
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
                return self._effect_unserved(manifest)
            return self._compare_object(manifest, resource, self._live_object(manifest, resource))
        except Terminal as error:
            return Effect(object=name, file=file, state="refused", why=error.message)
        except (ApiError, codec.DecodeError) as error:
            return Effect(object=name, file=file, state="unknown", why=message_of(error))

    def left(self, manifest: Manifest) -> Effect:
        """Returns the effect on an object that the release no longer has: an existing one stays."""
        name, file = str(manifest.identity), manifest.file
        try:
            resource = self._resource(manifest) or self._in_other_version(manifest)
            live = self._live_object(manifest, resource) if resource is not None else None
        except Terminal:
            live = None  # no object has that name
        except (ApiError, codec.DecodeError) as error:
            return Effect(object=name, file=file, state="unknown", why=message_of(error))
        if live is None:
            return Effect(object=name, file=file, state="same", why="it is not there, and no part of the release")
        return Effect(
            object=name, file=file, state="left", why="no part of the release any more, and nothing deletes it"
        )

    def _effect_unserved(self, manifest: Manifest) -> Effect:
        """Returns the effect of a manifest in a version that the server does not serve.

        A dry run cannot be sent in it. Whether the object is there is asked in another version, if there is one.
        """
        name, file = str(manifest.identity), manifest.file
        defined = self._defined.get((manifest.identity.group, manifest.identity.kind))
        is_coming = defined is not None and str(manifest.object.get("apiVersion") or "") in defined
        if not is_coming and not is_deletion(manifest):
            own = "" if defined is None else f", and the release's definition serves {', '.join(defined) or 'none'}"
            return Effect(object=name, file=file, state="refused", why=f"the server knows no {_gvk(manifest)}{own}")
        other = self._in_other_version(manifest)
        if other is None and is_deletion(manifest):
            return Effect(object=name, file=file, state="same", why="the cluster has no such kind")
        if other is None:
            return Effect(object=name, file=file, state="created", why="its kind comes with the release")
        live = self._live_object(manifest, other)
        if live is not None and not is_coming:
            # The operator finds no kind to delete, and takes the object for gone.
            return Effect(
                object=name,
                file=file,
                state="left",
                why=f"the server knows no {_gvk(manifest)}, so that nothing deletes it",
            )
        if (effect := _effect_untried(manifest, live)) is not None:
            return effect
        if live is None:
            return Effect(object=name, file=file, state="created", why="the version of its kind comes with the release")
        why = f"it is there, and nothing can be tried before the release's definition serves {_gvk(manifest)}"
        return Effect(object=name, file=file, state="unknown", why=why)

    def _compare_object(self, manifest: Manifest, resource: Resource, live: JSON | None) -> Effect:
        """Returns what the release would do to one object, by a dry run of the server where there is one to try.

        Raises Terminal for an object that cannot be made of the manifest.
        """
        name, file = str(manifest.identity), manifest.file
        if (effect := _effect_untried(manifest, live)) is not None:
            return effect
        if live is None and resource.namespaced and manifest.identity.namespace in self._missing_namespaces:
            return Effect(object=name, file=file, state="created", why="its namespace comes with the release")
        obj = render(Task(manifest, 1, 1), self._cluster).object
        try:
            answer = self._client.send(
                calls.apply(resource, obj, field_manager=FIELD_MANAGER, force=True, dry_run=True)
            )
        except ApiError as error:
            # With these codes the server did not try the request, so the effect is not known.
            state: State = "unknown" if error.code in (401, 403, 404, 405) else "refused"
            return Effect(object=name, file=file, state=state, why=message_of(error))
        if live is None:
            return Effect(object=name, file=file, state="created")
        field_changes = changes(_without_hash_label(live), _without_hash_label(answer))
        return Effect(object=name, file=file, state="changed" if field_changes else "same", changes=field_changes)

    @cached_property
    def _missing_namespaces(self) -> frozenset[str]:
        """The namespaces that the release creates and the cluster lacks; one that may not be read is not among them."""
        missing = set()
        for name in self._new_namespaces:
            try:
                self._client.send(calls.get(Namespace, name))
            except NotFound:
                missing.add(name)
            except (ApiError, codec.DecodeError):
                pass  # the dry run then reports what may not be read
        return frozenset(missing)

    def _live_object(self, manifest: Manifest, resource: Resource) -> JSON | None:
        """Returns the manifest's object as the cluster has it, or None. Raises KubeError and Terminal."""
        namespace = manifest.identity.namespace if resource.namespaced else ""
        if resource.namespaced and not namespace:
            raise Terminal(f"{manifest.identity} names no namespace, which its kind needs", reason="NoNamespace")
        try:
            return self._client.send(calls.get_raw(resource, manifest.identity.name, namespace))
        except NotFound:
            return None

    def _resource(self, manifest: Manifest) -> Resource | None:
        """Returns the resource by which the server serves the manifest's kind, or None."""
        return self._served.resource(str(manifest.object.get("apiVersion") or ""), manifest.identity.kind)

    def _in_other_version(self, manifest: Manifest) -> Resource | None:
        """Returns the resource by which the server serves the manifest's kind in any version of its group, or None."""
        group = manifest.identity.group
        if not group:
            return None  # core has one version
        if group not in self._versions:
            try:
                self._versions[group] = self._client.send(calls.list_versions(group))
            except NotFound:
                self._versions[group] = ()
        found = (self._served.resource(api_version, manifest.identity.kind) for api_version in self._versions[group])
        return next((resource for resource in found if resource is not None), None)


def _effect_untried(manifest: Manifest, live: JSON | None) -> Effect | None:
    """Returns the effect on an object that the operator deletes or leaves as it is, None if it would apply it."""
    name, file = str(manifest.identity), manifest.file
    if is_deletion(manifest):
        return Effect(object=name, file=file, state="deleted" if live is not None else "same")
    annotations = manifest.annotations or {}
    if live is not None and annotations.get(tasks.CREATE_ONLY, "").lower() == "true":
        return Effect(
            object=name, file=file, state="same", why="it is created where it is absent, and left alone otherwise"
        )
    if (manifest.identity.group, manifest.identity.kind) in _NOTHING_TRIED and live is not None:
        return Effect(object=name, file=file, state="same", why="its operator keeps it")
    return None


def _without_hash_label(obj: JSON) -> JSON:
    """Returns the object without the label for the hash of its content, which changes with any shown change."""
    metadata = obj.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != LABEL}
    kept_metadata = {key: value for key, value in metadata.items() if key != "labels"} | (
        {"labels": labels} if labels else {}
    )
    return {**obj, "metadata": kept_metadata}


def _defined_kind(manifest: Manifest) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """Yields group and kind that a CustomResourceDefinition of the release defines, with the apiVersions it serves."""
    if (manifest.identity.group, manifest.identity.kind) != _CRD or is_deletion(manifest):
        return
    spec = manifest.object.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return
    group, versions = str(spec.get("group", "")), spec.get("versions")
    served = tuple(
        f"{group}/{version['name']}"
        for version in (versions if isinstance(versions, list) else ())
        if isinstance(version, dict) and version.get("served") and version.get("name")
    )
    yield (group, str(names.get("kind", ""))), served


def _gvk(manifest: Manifest) -> str:
    return f"{manifest.identity.kind} of {manifest.object.get('apiVersion')}"


_PORT = "443"


def read_values(client: SyncClient, manifests: Iterable[Manifest], owner_uid: str) -> tuple[ClusterValues, list[str]]:
    """Returns the values for `manifests`, and notes about those that could not be read."""
    annotations = [manifest.annotations or {} for manifest in manifests]
    notes: list[str] = []
    proxy: JSON = {}
    if any(INJECT_PROXY in manifest_annotations for manifest_annotations in annotations):
        proxy = _mapping_at(_object(client, "Proxy", "proxies", notes), "status")
    profile = None
    if any(manifest_annotations.get(INJECT_TLS) == "true" for manifest_annotations in annotations):
        api_server = _object(client, "APIServer", "apiservers", notes)
        profile = tls_profile.profile_of({"spec": _mapping_at(api_server, "spec")}) if api_server else None
    infrastructure = _mapping_at(_object(client, "Infrastructure", "infrastructures", notes), "status")
    host = port = ""
    try:
        url = urlsplit(str(infrastructure.get("apiServerInternalURI") or ""))
        host, port = (url.hostname, str(url.port or _PORT)) if url.hostname else ("", "")
    except ValueError:
        pass  # not a URL
    return (
        ClusterValues(
            owner_uid=owner_uid,
            proxy=Proxy(*(str(proxy.get(key) or "") for key in ("httpProxy", "httpsProxy", "noProxy"))),
            operator=(clusters.namespace(), OPERATOR),
            internal_host=host,
            internal_port=port,
            tls=profile,
        ),
        notes,
    )


def _object(client: SyncClient, kind: str, plural: str, notes: list[str]) -> JSON:
    """Returns the object `cluster` of a kind; empty with a note if it cannot be read."""
    resource = Resource(group="config.openshift.io", version="v1", kind=kind, plural=plural, namespaced=False)
    try:
        return client.send(calls.get_raw(resource, "cluster"))
    except NotFound:
        return {}
    except (ApiError, codec.DecodeError) as error:
        notes.append(f"{kind} cluster could not be read, so what it gives to objects is not shown: {message_of(error)}")
        return {}


def _mapping_at(live_object: JSON, key: str) -> JSON:
    value = live_object.get(key)
    return value if isinstance(value, dict) else {}
