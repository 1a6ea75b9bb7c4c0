"""Creates the objects of a scenario's cluster once, in an order that a real server accepts.

First the CustomResourceDefinitions, from the current release's payload by the same inclusion rules that the operator
uses; then the scenario's objects with their status; the operator last. The objects of a cluster that was made from a
dump (docs/decisions/0030) are labelled, so that they are stored as they were and no controller touches them. The
sandbox's own workloads run on a separate node then, and the API server gets the kinds that the dump does not have.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import structlog

from kubekit.api import codec
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.scheme import Resource, guess_plural
from kubekit.api.whole_v1 import WholeNode
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, ApiError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.lang.text import count
from kubekit.lang.version import Version
from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from kubesandbox.apiserver.access import collected
from kubesandbox.apiserver.metadata import IMPORTED
from kubesandbox.controllers.owner_graph import discover_kinds
from runup.api.config_v1 import CapabilitiesSpec
from runup.applying.decide.task import CREATE_ONLY
from runup.dump.documents import JSON, identity, object_name
from runup.release.decide import capabilities
from runup.release.decide.inclusion import Filters
from runup.release.decide.payload import FOLDERS, MANIFESTS, included_in, load_payload
from runup.sandbox.component import component_process
from runup.sandbox.scenario import kernelmodules
from runup.sandbox.scenario.folder import ClusterSpec, Scenario
from runup.sandbox.scenario.scenario_releases import HOSTNAME, OWN_NODE, Release, operator_manifests

# API groups that are the sandbox's own, or that are not read from a dump.
_OURS = frozenset({"update.openshift.io", "coordination.k8s.io", "events.k8s.io"})
# What the sandbox's own programs must read of kinds that a dump lacks. The update report shows pods that block the
# update; oc's own examples have no pods, which must not be an error.
_REPORTS = {
    "system:serviceaccount:openshift-update-status-controller:update-status-controller": [
        "pods",
        "deployments.apps",
        "poddisruptionbudgets.policy",
        "certificatesigningrequests.certificates.k8s.io",
        "volumeattachments.storage.k8s.io",
        "machineconfignodes.machineconfiguration.openshift.io",
    ],
}
_NEVER = frozenset({"events", "secrets", "endpoints", "endpointslices", "controllerrevisions"})


def own_node() -> WholeNode:
    """Returns the node of the sandbox's own workloads: the scheduler knows it, the API does not have it.

    A dump's nodes may all be gone, cordoned or without a role; one more node in the API would be checked like them.
    """
    roles = {f"node-role.kubernetes.io/{role}": "" for role in ("control-plane", "master")}
    labels = {HOSTNAME: OWN_NODE, "kubernetes.io/os": "linux", **roles}
    return WholeNode(metadata=ObjectMeta(name=OWN_NODE, labels=labels))


def mark_imported(obj: JSON) -> JSON:
    """Returns the object with the label that says that it was imported."""
    metadata = obj["metadata"]
    labels = metadata.get("labels")
    return {**obj, "metadata": {**metadata, "labels": {**(labels if isinstance(labels, dict) else {}), IMPORTED: ""}}}


def reduced_objects(obj: JSON) -> Iterator[JSON]:
    """Yields what to try if a server refuses an imported object: it without status, without spec too, its name alone.

    Yields nothing for an object that was not imported.
    """
    labels = (obj.get("metadata") or {}).get("labels") or {}
    if IMPORTED not in labels:
        return
    yield {key: value for key, value in obj.items() if key != "status"}
    yield {key: value for key, value in obj.items() if key not in {"status", "spec"}}
    names = {key: value for key, value in obj["metadata"].items() if key in {"name", "namespace"}}
    yield {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**names, "labels": {IMPORTED: ""}}}


def own_namespaces(from_payload: Iterable[JSON]) -> frozenset[str]:
    """Returns the namespaces of the sandbox's own workloads."""
    return frozenset(identity(obj)[2] for obj in from_payload if obj["kind"] == "Deployment")


def known_state(
    scenario: Scenario,
    served: Iterable[Resource],
    objects: Sequence[JSON],
    refused: Sequence[str],
    from_payload: Iterable[JSON],
) -> list[JSON]:
    """Returns the two ConfigMaps that list, for the API server, the kinds that it does not hold in full."""
    kinds_in_dump = {identity(obj)[:2] for obj in objects}
    refused_kinds = {identity(obj)[:2] for obj, why in zip(objects, refused, strict=True) if why}
    absent: dict[str, str] = {}
    partly: dict[str, str] = {}
    within: dict[str, list[str]] = {}
    for resource in served:
        if resource.group in _OURS or resource.plural in _NEVER:
            continue
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        key, kind = (resource.group, resource.plural), (resource.group, resource.kind)
        if key in scenario.collected.whole and kind not in refused_kinds:
            continue
        if kind in kinds_in_dump or key in scenario.collected.partly:
            partly[name] = scenario.collected.why_partly(key)
            if kind not in refused_kinds:
                within[name] = sorted(scenario.collected.namespaces.get(key, ()))
        elif kind not in kinds_in_dump:
            absent[name] = f"the dump has no {resource.plural}: whether there were any is not known"
    annotations = {
        collected.OWN_NAMESPACES: " ".join(sorted(own_namespaces(from_payload))),
        collected.EXEMPT_USERS: json.dumps(_REPORTS),
        collected.COMPLETE_NAMESPACES: json.dumps(within),
    }
    return [_map(collected.NOT_COLLECTED, absent, annotations), _map(collected.PARTLY_COLLECTED, partly, annotations)]


def _map(name: str, data: dict[str, str], annotations: dict[str, str]) -> JSON:
    metadata = {"name": name, "namespace": collected.NAMESPACE, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
MANAGER = "runup-sandbox"
# Kinds that the operator itself creates in a cluster that it installs.
_OF_THE_RELEASE = frozenset({"ClusterOperator", "Deployment"})
# The order of creation: a real server refuses objects whose definition or namespace is missing.
_FIRST = {"CustomResourceDefinition": 0, "Namespace": 1, "PriorityClass": 1, "ServiceAccount": 2}
# They refuse writes of every user, also those of the setup, so that they come after everything else.
_ENFORCED = frozenset({"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"})
# A server refuses definitions in the groups of Kubernetes itself without it (apiextensions' API approval policy).
_UNAPPROVED = {"api-approved.kubernetes.io": "unapproved, for imported objects"}
_SERVED_TIMEOUT_S = 15.0
_POLL_INTERVAL_S = 0.05
log = structlog.get_logger("setup")


async def set_up(
    client: Client, scenario: Scenario, releases: Iterable[Release], clock: Clock, *, registry_auth: bytes = b""
) -> tuple[str, ...]:
    """Creates everything; returns the scenario's objects that could not be created, with the reason. Raises
    SandboxError.

    `registry_auth` is the credential file of the user who may push to the sandbox's registry.
    """
    running = next(release for release in releases if release.version == scenario.cluster.version)
    of_modules = kernelmodules.objects(scenario, clock.now())
    if of_modules:
        known_values = kernelmodules.values(running.image, registry_auth)
        module_objects = (obj for obj in of_modules if obj["kind"] != kernelmodules.DEFINITION)
        filled = (kernelmodules.filled(obj, known_values) for obj in (*scenario.objects, *module_objects))
        scenario = replace(scenario, objects=tuple(filled))
    from_payload = release_objects(scenario, running)
    definitions = [obj for obj in from_payload if obj["kind"] == "CustomResourceDefinition"]
    definitions += [obj for obj in of_modules if obj["kind"] == kernelmodules.DEFINITION]
    given = len(scenario.objects)
    scenario = own_first(scenario, from_payload)
    replaced = given - len(scenario.objects)
    served = {(resource.group, resource.kind) for resource in await discover_kinds(client)}
    definitions += missing_definitions(scenario.objects, definitions, served)
    for obj in definitions:
        await _create(client, CRDS, obj)
    # A scenario without components has replacements for some of their workloads.
    deployments_of_release = {identity(obj) for obj in from_payload if obj["kind"] == "Deployment"}
    objects = [obj for obj in with_defaults(scenario, running) if identity(obj) not in deployments_of_release]
    served_resources = await _await_served(
        client,
        clock,
        {(definition["spec"]["group"], definition["spec"]["names"]["kind"]) for definition in definitions}
        & {identity(obj)[:2] for obj in objects},
    )
    all_objects = [*objects, *from_payload]
    declared = {identity(obj)[3] for obj in all_objects if obj["kind"] == "Namespace"}
    for namespace in sorted({identity(obj)[2] for obj in all_objects} - declared - {""}):
        await _create(client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    enforced = [obj for obj in objects if obj["kind"] in _ENFORCED]
    refused = ["" if obj in enforced else await _create_known(client, served_resources, obj) for obj in objects]
    if scenario.cluster.imported:
        for obj in known_state(
            scenario, served_resources.values(), objects=objects, refused=refused, from_payload=from_payload
        ):
            await _create(client, CONFIG_MAPS, obj)
    # The operator comes last, so that it finds a complete cluster.
    for obj in sorted(from_payload, key=lambda obj: _FIRST.get(obj["kind"], 3)):
        if obj["kind"] != "CustomResourceDefinition":
            await _create_known(client, served_resources, obj)
    refused += [await _create_known(client, served_resources, obj) for obj in enforced]
    own = f"{count(replaced, 'object')} in the namespaces or with the names of the sandbox's own operator"
    return (*([own] if replaced else ()), *filter(None, refused))


async def set_up_kubernetes(client: Client, scenario: Scenario, clock: Clock) -> tuple[str, ...]:
    """Creates the objects of a scenario without a ClusterVersion; returns those that could not be created, with why."""
    objects = sorted(scenario.objects, key=lambda obj: _FIRST.get(obj["kind"], 3))
    served = {(resource.group, resource.kind) for resource in await discover_kinds(client)}
    definitions = missing_definitions(objects, [], served)
    for obj in definitions:
        await _create(client, CRDS, obj)
    wanted = {(each["spec"]["group"], each["spec"]["names"]["kind"]) for each in definitions}
    served_resources = await _await_served(client, clock, wanted)
    return tuple(filter(None, [await _create_known(client, served_resources, obj) for obj in objects]))


def release_objects(scenario: Scenario, running: Release) -> list[JSON]:
    """Returns the current release's objects: its CRDs and, unless the scenario has none, its operator and the rest.

    The update status controller is among them if the cluster has that capability. A cluster that must be installed
    gets only what an installer creates: the CRDs and the operator.
    """
    cluster = scenario.cluster
    image = open_image(Layout.open(running.built.layout), running.built.digest)
    loaded = load_payload(
        read_folders(image, FOLDERS), source=running.image, release_image=running.image, profile=cluster.profile
    )
    # None means all.
    cluster_version_object = next((obj for obj in scenario.objects if identity(obj)[1] == "ClusterVersion"), {})
    capabilities_object = (cluster_version_object.get("spec") or {}).get("capabilities")
    filters = Filters(
        feature_set=cluster.feature_set,
        gates=frozenset((*cluster.gates, *cluster.operator_gates)),
        major=Version(cluster.version).major,
        profile=cluster.profile,
        capabilities=capabilities.enabled_capabilities(
            codec.convert(CapabilitiesSpec, capabilities_object) if capabilities_object else None, cluster.gates
        ),
    )
    operator_files = {f"{MANIFESTS}/{file.name}" for file in operator_manifests()}
    objects = [
        copy.deepcopy(manifest.object)
        for manifest in included_in(loaded.manifests, filters)
        # What is only created where it does not exist must not replace a dump's object, or fill a gap of the dump.
        if not (cluster.imported and CREATE_ONLY in (manifest.object["metadata"].get("annotations") or {}))
        if cluster.installed or manifest.file in operator_files or manifest.object["kind"] == "CustomResourceDefinition"
    ]
    if cluster.operator == "none":
        return [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    return objects


def own_first(scenario: Scenario, from_payload: Iterable[JSON]) -> Scenario:
    """Returns the scenario without a dump's objects in our own workloads' namespaces, where they would conflict."""
    if not scenario.cluster.imported:
        return scenario
    release_namespaces = own_namespaces(from_payload)
    release_identities = {identity(obj) for obj in from_payload}
    kept_objects = tuple(
        obj
        for obj in scenario.objects
        if identity(obj)[2] not in release_namespaces and identity(obj) not in release_identities
    )
    return replace(scenario, objects=kept_objects)


def with_defaults(scenario: Scenario, running: Release) -> list[JSON]:
    """Returns the scenario's objects, plus the ClusterVersion and the FeatureGate that every cluster has."""
    cluster = scenario.cluster
    objects = [_with_image(obj, cluster.image, running.image) for obj in scenario.objects]
    if not cluster.installed:
        objects = [obj for obj in objects if obj["kind"] not in _OF_THE_RELEASE]
    if scenario.components:
        objects = [_with_feature_set(obj, cluster.feature_set) for obj in objects]
    if cluster.imported:
        objects = [mark_imported(obj) for obj in objects]
    kinds = {identity(obj)[:2] for obj in objects}
    # A dump without a FeatureGate does not say which feature set the cluster had, so none is invented.
    if ("config.openshift.io", "FeatureGate") not in kinds and not cluster.imported:
        objects.append(feature_gate(cluster, [release.version for release in scenario.releases]))
    if ("config.openshift.io", "ClusterVersion") not in kinds:
        objects.append(cluster_version(cluster, running))
    return sorted(objects, key=lambda obj: _FIRST.get(obj["kind"], 3))


def _with_feature_set(obj: JSON, feature_set: str) -> JSON:
    """Returns a ClusterOperator as its component leaves it in a cluster with this feature set; others as they are."""
    if obj["kind"] != "ClusterOperator" or not component_process.forbids_updates(obj["metadata"]["name"], feature_set):
        return obj
    status = obj["status"]
    restricted = component_process.restricted_upgradeable(feature_set)
    conditions = [
        {**condition, **restricted} if condition["type"] == restricted["type"] else condition
        for condition in status["conditions"]
    ]
    return {**obj, "status": {**status, "conditions": conditions}}


def _with_image(obj: Any, before: str, after: str) -> Any:
    """Replaces the running release's image in a ClusterVersion by the sandbox's pull spec, wherever it occurs.

    With the dump's image the operator would see a requested update, and write that into the history.
    """
    if not before or (isinstance(obj, dict) and obj.get("kind", "ClusterVersion") != "ClusterVersion"):
        return obj
    if isinstance(obj, dict):
        return {key: _with_image(value, before, after) for key, value in obj.items()}
    if isinstance(obj, list):
        return [_with_image(value, before, after) for value in obj]
    return after if obj == before else obj


def feature_gate(cluster: ClusterSpec, versions: Iterable[str]) -> JSON:
    """Returns the FeatureGate `cluster` of the scenario's cluster section, with an entry for each release.

    In a real cluster the config operator adds a version when it is updated; without its entry every gate is closed.
    """
    gates = {
        "enabled": [{"name": name} for name in cluster.gates],
        "disabled": [{"name": name} for name in cluster.disabled_gates],
    }
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": {"name": "cluster"},
        "spec": {"featureSet": cluster.feature_set} if cluster.feature_set else {},
        "status": {"featureGates": [{"version": version, **gates} for version in versions]},
    }


def cluster_version(cluster: ClusterSpec, running: Release) -> JSON:
    """Returns a ClusterVersion that completed its update, or one without status if the cluster is not installed."""
    since, completed = "2026-10-05T08:00:00Z", "2026-10-05T08:42:00Z"
    release = {
        "version": running.version,
        "image": running.image,
        "url": running.spec.url or f"https://docs.runup.example/releases/{running.version}",
        "channels": list(running.spec.channels),
    }
    entry = {"state": "Completed", "startedTime": since, "completionTime": completed, "verified": False}
    conditions = [
        {"type": "Available", "status": "True", "message": f"Done applying {running.version}"},
        {"type": "Failing", "status": "False"},
        {"type": "Progressing", "status": "False", "message": f"Cluster version is {running.version}"},
    ]
    empty = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad", "channel": cluster.channel},
    }
    if not cluster.installed:
        return empty
    return {
        **empty,
        "status": {
            "desired": {key: value for key, value in release.items() if value},
            "history": [{**entry, "version": running.version, "image": running.image}],
            "observedGeneration": 1,
            "versionHash": "",
            "availableUpdates": None,
            "conditions": [{**condition, "lastTransitionTime": completed} for condition in conditions],
        },
    }


def missing_definitions(
    objects: Iterable[JSON], definitions: list[JSON], served: AbstractSet[tuple[str, str]]
) -> list[JSON]:
    """Returns a CRD that preserves unknown fields for each kind of the objects that neither server nor release has."""
    defined = {(d["spec"]["group"], d["spec"]["names"]["kind"]) for d in definitions} | served
    crds: dict[tuple[str, str], JSON] = {}
    for obj in objects:
        group, kind, namespace, _ = identity(obj)
        if (group, kind) in defined or (group, kind) in crds or "." not in group:
            continue
        plural, version = guess_plural(kind), obj["apiVersion"].rpartition("/")[2]
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        crds[group, kind] = {
            "apiVersion": CRDS.api_version,
            "kind": CRDS.kind,
            "metadata": {"name": f"{plural}.{group}", "annotations": _UNAPPROVED},
            "spec": {
                "group": group,
                "scope": "Namespaced" if namespace else "Cluster",
                "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
                "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
            },
        }
    return list(crds.values())


async def _await_served(
    client: Client, clock: Clock, wanted_kinds: set[tuple[str, str]]
) -> dict[tuple[str, str], Resource]:
    """Returns the served resources once they include the wanted kinds, at most after `_SERVED_TIMEOUT_S` seconds.

    A real server takes a moment to serve a new definition.
    """
    deadline = clock.monotonic() + _SERVED_TIMEOUT_S
    while True:
        resources = {(r.group, r.kind): r for r in await discover_kinds(client)}
        if wanted_kinds <= resources.keys():
            # Discovery names a kind a moment before it can be listed.
            with contextlib.suppress(NotFound):
                for kind in wanted_kinds:
                    await client.send(calls.list_raw(resources[kind], limit=1))
                return resources
        if clock.monotonic() > deadline:
            return resources  # what is missing is reported object by object
        await clock.sleep(_POLL_INTERVAL_S)


async def _create_known(client: Client, served_resources: dict[tuple[str, str], Resource], obj: JSON) -> str:
    """Creates an object; returns why it could not be created in full, or an empty string.

    If the server refuses an imported object, the parts that it cannot read are left out first: the object's check then
    reports Unknown, instead of missing the object.
    """
    group, kind, _namespace, name = identity(obj)
    resource = served_resources.get((group, kind))
    if resource is None:
        log.warning("left out", kind=kind, name=name, why=f"the API server does not serve {kind} of group {group!r}")
        return f"{object_name(obj)}: the API server does not serve this kind"
    why = ""
    for attempt in (obj, *reduced_objects(obj)):
        try:
            await _create(client, resource, {**attempt, "apiVersion": resource.api_version})
        except ApiError as error:
            why = why or f"{object_name(obj)}: {error}"
            continue
        break
    if why:
        log.warning("left out, in part or whole", kind=kind, name=name, why=why)
    return why


async def _create(client: Client, resource: Resource, obj: JSON) -> None:
    """Creates an object and its status; an object that exists stays as it is."""
    status = obj.get("status")
    try:
        created = await client.send(calls.create(resource, obj, field_manager=MANAGER))
    except AlreadyExists:
        return
    if status is None or created.get("status") == status:
        return
    # Replaced, not patched: a merge patch cannot set null, which some fields need.
    await client.send(
        calls.replace(resource, {**created, "status": status}, subresource="status", field_manager=MANAGER)
    )
