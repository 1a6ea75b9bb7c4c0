"""Renders a manifest into the object that is applied: with owner, a label that holds its digest, and cluster values.

The cluster's values (proxy, TLS profile, internal load balancer) are `ClusterValues`; annotations of a manifest ask for
them (docs/reference/upstream.md 5.2). The rendered object is what server-side apply sends, so its fields are those that
we own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from kubekit.error_types import Terminal
from runup.applying.decide.task import Task
from runup.process import tls_profile as tls
from runup.process.tls_profile import TlsProfile

JSON = dict[str, Any]
LABEL = "release.openshift.io/manifest"
"""The label of every object of a release; its value is the digest of the applied content."""

INJECT_PROXY = "config.openshift.io/inject-proxy"
INJECT_TLS = "config.openshift.io/inject-tls"
INJECT_CA = "service.beta.openshift.io/inject-cabundle"
INVALID = "UpdatePayloadResourceInvalid"
CLUSTER_ROLE = ("rbac.authorization.k8s.io", "ClusterRole")
# The status belongs to the object's controller, and these metadata to the API server: we must not own them.
_NOT_APPLIED = ("status",)
_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


@dataclass(frozen=True, slots=True)
class Proxy:
    """The status of the Proxy named `cluster`."""

    http: str = ""
    https: str = ""
    no_proxy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterValues:
    """The values of a cluster that are put into the objects applied to it.

    `operator` is namespace and name of the operator's own Deployment, `internal_host` and `internal_port` the API
    server's address for it, empty for the usual one. `tls` is None if no profile could be read.
    """

    owner_uid: str = ""
    proxy: Proxy = Proxy()
    operator: tuple[str, str] = ("", "")
    internal_host: str = ""
    internal_port: str = ""
    tls: TlsProfile | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered manifest: the `object` that is sent, and its `digest`, which is also the label's value."""

    object: JSON
    digest: str


def render(task: Task, cluster: ClusterValues) -> Rendered:
    """Returns the object of `task` for `cluster`; raises Terminal if it cannot be rendered."""
    obj = {key: value for key, value in task.manifest.object.items() if key not in _NOT_APPLIED}
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS}
    metadata["ownerReferences"] = _owners(task, metadata, cluster.owner_uid)
    if not metadata["ownerReferences"]:
        del metadata["ownerReferences"]
    obj["metadata"] = metadata
    if task.kind == CLUSTER_ROLE and obj.get("aggregationRule"):
        # A controller of the cluster makes them, and applying an empty list would undo its work each time.
        obj.pop("rules", None)
    annotations = task.manifest.annotations or {}
    if INJECT_PROXY in annotations:
        containers = {container.get("name"): container for container in _containers(obj)}
        pairs = (
            ("HTTP_PROXY", cluster.proxy.http),
            ("HTTPS_PROXY", cluster.proxy.https),
            ("NO_PROXY", cluster.proxy.no_proxy),
        )
        for name in annotations[INJECT_PROXY].split(","):
            if name not in containers:
                text = f"{task}: {INJECT_PROXY} names container {name!r}, which it does not have"
                raise Terminal(text, reason=INVALID)
            _set_env(containers[name], {key: value for key, value in pairs if value})
    if annotations.get(INJECT_TLS) == "true" and task.kind == ("", "ConfigMap"):
        obj["data"] = tls.inject_profile(obj.get("data") or {}, cluster.tls)
    if annotations.get(INJECT_CA) == "true":
        # The service CA operator injects `caBundle` and owns it: applying ours would undo its own.
        for _, config in client_configs(obj):
            config.pop("caBundle", None)
        if obj.get("kind") == "APIService":
            _spec(obj).pop("caBundle", None)
    if (task.identity.namespace, task.identity.name) == cluster.operator and cluster.internal_host:
        _with_internal_address(obj, cluster)
    # Sorted keys, so that the digest does not depend on the order in the file; 24 digits are unlikely to collide.
    digest = hashlib.sha256(msgspec.json.encode(obj, order="sorted")).hexdigest()[:24]
    labels = metadata.get("labels")
    metadata["labels"] = {**(labels if isinstance(labels, dict) else {}), LABEL: digest}
    return Rendered(obj, digest)


def _owners(task: Task, metadata: JSON, uid: str) -> list[JSON]:
    """Returns the manifest's own owners if it names any besides ClusterVersion, else ClusterVersion if `uid` is set."""
    owner_references = [
        owner
        for owner in metadata.get("ownerReferences") or ()
        if isinstance(owner, dict) and owner.get("kind") != "ClusterVersion"
    ]
    if owner_references or not uid:
        return owner_references
    owner: JSON = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "name": "version",
        "uid": uid,
    }
    # As in the Go operator, ClusterVersion is an owner but not the controller of create-only objects.
    return [owner if task.create_only else {**owner, "controller": True}]


def _containers(obj: JSON) -> list[JSON]:
    pod = obj.get("spec", {}).get("template", {}).get("spec", {})
    containers = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    return [container for container in containers if isinstance(container, dict)]


def _set_env(container: JSON, values: dict[str, str]) -> None:
    """Sets environment variables of a container in place."""
    # The cluster's value replaces one in the manifest.
    kept_variables = [variable for variable in container.get("env") or () if variable.get("name") not in values]
    new = [{"name": name, "value": value} for name, value in values.items()]
    if kept_variables or new:
        container["env"] = [*kept_variables, *new]


def _with_internal_address(obj: JSON, cluster: ClusterValues) -> None:
    values = {"KUBERNETES_SERVICE_HOST": cluster.internal_host, "KUBERNETES_SERVICE_PORT": cluster.internal_port}
    for container in _containers(obj):
        if container.get("name") == cluster.operator[1]:
            _set_env(container, values)


def client_configs(obj: JSON) -> list[tuple[str, JSON]]:
    """Returns the clientConfigs of an object by their webhooks' names; "" is that of a definition's conversion."""
    webhooks = [(webhook.get("name", ""), webhook.get("clientConfig")) for webhook in obj.get("webhooks") or ()]
    conversion = (_spec(obj).get("conversion") or {}).get("webhook") or {}
    return [(name, config) for name, config in (*webhooks, ("", conversion.get("clientConfig"))) if config]


def _spec(obj: JSON) -> JSON:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}
