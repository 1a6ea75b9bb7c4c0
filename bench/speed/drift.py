"""How long it takes until an object of the release that somebody changed or deleted is as it was.

Ten objects of as many kinds are changed and ten deleted, one after the other; a poll every 20 ms sees the repair.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from bench import release_payload
from bench.measure import spread
from bench.release_payload import FIRST
from bench.releases_world import World
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from kubekit.kube.client_sync import SyncClient

JSON = dict[str, Any]
MANAGER = "somebody"
DEADLINE_S = 240.0
_RBAC = ("rbac.authorization.k8s.io", "v1")
_MONITORS = ("monitoring.coreos.com", "v1")
_THEIRS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A kind of the release, and what somebody does to one of its objects; without a patch it is deleted."""

    resource: Resource
    patch: JSON | None = None

    @property
    def name(self) -> str:
        """In words."""
        return f"{'change' if self.patch else 'delete'} {self.resource.kind}"


def _kind(group: str, version: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group=group, version=version, kind=kind, plural=f"{kind.lower()}s", namespaced=namespaced)


CONFIG_MAP, SERVICE = _kind("", "v1", "ConfigMap"), _kind("", "v1", "Service")
NAMESPACE = _kind("", "v1", "Namespace", namespaced=False)
ACCOUNT, DEPLOYMENT = _kind("", "v1", "ServiceAccount"), _kind("apps", "v1", "Deployment")
ROLE, ROLE_BINDING = _kind(*_RBAC, "Role"), _kind(*_RBAC, "RoleBinding")
CLUSTER_ROLE = _kind(*_RBAC, "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDING = _kind(*_RBAC, "ClusterRoleBinding", namespaced=False)
MONITOR, RULES = _kind(*_MONITORS, "ServiceMonitor"), _kind(*_MONITORS, "PrometheusRule")
DEFINITION = _kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", namespaced=False)
_NO_PROFILE = {"metadata": {"annotations": {"include.release.openshift.io/single-node-developer": "false"}}}

CHANGES = (
    Trouble(CONFIG_MAP, {"data": {"config.yaml": "theirs"}}),
    Trouble(SERVICE, {"spec": {"selector": {"app": "theirs"}}}),
    Trouble(NAMESPACE, _NO_PROFILE),
    Trouble(ACCOUNT, _NO_PROFILE),
    Trouble(DEPLOYMENT, {"spec": {"replicas": 7}}),
    Trouble(ROLE, {"rules": _THEIRS}),
    Trouble(CLUSTER_ROLE, {"rules": _THEIRS}),
    Trouble(CLUSTER_ROLE_BINDING, {"subjects": []}),
    Trouble(MONITOR, {"spec": {"endpoints": []}}),
    Trouble(DEFINITION, _NO_PROFILE),
)
DELETIONS = tuple(
    Trouble(resource)
    for resource in (
        CONFIG_MAP,
        SERVICE,
        ACCOUNT,
        DEPLOYMENT,
        ROLE,
        ROLE_BINDING,
        CLUSTER_ROLE,
        CLUSTER_ROLE_BINDING,
        MONITOR,
        RULES,
    )
)


def measure(here: World, seed: int = 1) -> dict[str, Any]:
    """Ten changes and ten deletions of objects that `seed` chooses."""
    objects = _by_kind()
    found: dict[str, Any] = {}
    for what, troubles in (("changed", CHANGES), ("deleted", DELETIONS)):
        taken = {}
        for trouble in troubles:
            fitting = [obj for obj in objects[trouble.resource.kind] if _has(obj, trouble.patch or {})]
            obj = random.Random(f"{seed}/{trouble.name}").choice(fitting)
            taken[trouble.name] = repaired(here.client, trouble, obj)
        slowest = max(taken, key=lambda name: taken[name])
        found[what] = {**spread(list(taken.values())), "slowest": slowest}
    return found


def _has(obj: JSON, patch: JSON) -> bool:
    """Whether the release says anything of what is changed: what somebody adds beside it is his."""
    return all(key in obj and (not isinstance(value, dict) or _has(obj[key], value)) for key, value in patch.items())


def repaired(client: SyncClient, trouble: Trouble, obj: JSON) -> float:
    """Seconds from the answer to the trouble until the object is as the manifest says; raises RuntimeError."""
    place = (obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    before = client.send(calls.get_raw(trouble.resource, *place))
    if trouble.patch is None:
        client.send(calls.delete(trouble.resource, *place))
    else:
        client.send(calls.merge_patch(trouble.resource, place[0], trouble.patch, place[1], field_manager=MANAGER))
    began = time.perf_counter()
    while time.perf_counter() - began < DEADLINE_S:
        try:
            now = client.send(calls.get_raw(trouble.resource, *place))
        except NotFound:
            now = {}
        if _content(now, trouble) == _content(before, trouble):
            return time.perf_counter() - began
        time.sleep(0.02)
    raise RuntimeError(f"{trouble.name} {place}: not repaired in {DEADLINE_S:g} s")


def _content(obj: JSON, trouble: Trouble) -> JSON:
    """What the release says of an object, without what a server adds to a new one, and what it was changed to."""
    if not obj:
        return {}
    server = {"clusterIP", "clusterIPs", "template"} if trouble.patch is None else set()
    kept = {key: value for key, value in obj.items() if key not in ("metadata", "status", "spec", "secrets")}
    spec = {key: value for key, value in obj.get("spec", {}).items() if key not in server}
    named = {key: obj["metadata"].get(key) for key in ("annotations", "labels") if trouble.resource is not DEPLOYMENT}
    return kept | {"spec": spec, "metadata": named}


def _by_kind() -> dict[str, list[JSON]]:
    """The release's objects that a payload of ours has alone, by kind."""
    found: dict[str, list[JSON]] = {}
    for name, data in release_payload.payload(FIRST).items():
        if "/0000_" in name and "_00_cluster-version" not in name and name.startswith("release-manifests/"):
            for obj in release_payload.documents(data):
                if "Kind" in obj.get("spec", {}).get("names", {}).get("kind", "Kind"):
                    found.setdefault(obj["kind"], []).append(obj)
    return found
