"""The merge rules of each kind: which fields of others stay, and which go.

They are those of the Go operator (docs/upstream-behaviour.md 5.2), but for what docs/decisions/0078 lists. Kinds that
are not here are applied, and whatever others add to them stays.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

from kubekit.api import codec
from runup.api.owned_v1 import OwnedMeta
from runup.applying.decide.merging import (
    JSON,
    Exact,
    Fixed,
    GoesWhole,
    IfGiven,
    Items,
    Keep,
    Rule,
    Struct,
    only_others,
    union,
)
from runup.applying.decide.ownership import MANAGER

Kind = tuple[str, str]
INJECT_CA = "service.beta.openshift.io/inject-cabundle"
MERGER = "cluster-version-operator-merge"
"""The field manager of the writes that take away what others added."""

_KEEP, _EXACT = Keep(), Exact()


def _exact(*names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, _EXACT)


_CONTAINER = Struct(
    {
        **_exact("command", "args", "env", "envFrom", "livenessProbe", "readinessProbe"),
        "resources": Struct(_exact("limits", "requests")),
        "ports": Items(("containerPort", "protocol"), _EXACT, {"protocol": "TCP"}),
        "volumeMounts": Items(("mountPath",), _EXACT),
        "securityContext": GoesWhole(
            Struct(
                _exact(
                    "privileged",
                    "runAsUser",
                    "runAsNonRoot",
                    "readOnlyRootFilesystem",
                    "allowPrivilegeEscalation",
                    "seLinuxOptions",
                    "seccompProfile",
                )
            )
        ),
    }
)
_POD = Struct(
    {
        **_exact(
            "automountServiceAccountToken",
            "hostNetwork",
            "hostUsers",
            "shareProcessNamespace",
            "dnsPolicy",
            "terminationGracePeriodSeconds",
            "priority",
        ),
        "affinity": IfGiven(_EXACT),
        "containers": Items(("name",), _CONTAINER),
        "initContainers": Items(("name",), _CONTAINER),
        "volumes": Items(("name",), _EXACT),
        "securityContext": GoesWhole(
            Struct(_exact("runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "seLinuxOptions", "seccompProfile"))
        ),
    }
)
_TEMPLATE = Struct({"spec": _POD})
_JOB_MEMBERS = _exact(
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "suspend",
    "completionMode",
    "podFailurePolicy",
)
_JOB = Struct({**_JOB_MEMBERS, **dict.fromkeys(("selector", "template"), Fixed())})
_JOB_OF_CRONJOB = Struct({**_JOB_MEMBERS, "template": _TEMPLATE})
_NODE_PORTS = ("NodePort", "LoadBalancer")


class _ServicePort:
    """One port of a Service. The node port that the server chose stays where the manifest names none."""

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the manifest's port with the live node port."""
        node_port = (live or {}).get("nodePort")
        return {"nodePort": node_port, **manifest} if node_port else manifest

    def concerns(self, others: Mapping[str, Any]) -> bool:
        """Returns whether others own anything of the port."""
        return bool(others)


class _ServiceSpec:
    """The spec of a Service: type, selector and ports are the manifest's."""

    _chosen = Struct(
        {**_exact("type", "selector"), "ports": Items(("port", "protocol"), _ServicePort(), {"protocol": "TCP"})}
    )

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the merged spec; a Service that needs no node ports has none."""
        spec = self._chosen.merge(manifest, live)
        if (manifest or {}).get("type") not in _NODE_PORTS:
            ports = [{k: v for k, v in port.items() if k != "nodePort"} for port in spec.get("ports") or ()]
            spec = {**spec, "ports": ports} if ports else spec
        return spec

    def concerns(self, others: Mapping[str, Any]) -> bool:
        """Returns whether others own the type, the selector or something of a port."""
        return self._chosen.concerns(others)


class _ClusterRole:
    """A ClusterRole: its rules are the manifest's, unless they are made by aggregation."""

    _members = Struct(_exact("rules", "aggregationRule"))

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the merged role; the rules of an aggregated one are left to the controller that makes them."""
        merged: JSON = self._members.merge(manifest, live)
        return {**merged, "rules": live.get("rules")} if merged.get("aggregationRule") and live else merged

    def concerns(self, others: Mapping[str, Any]) -> bool:
        """Returns whether others own the rules or the aggregation."""
        return self._members.concerns(others)


class _WithCABundles:
    """A definition or the configuration of webhooks, whose CA bundles somebody fills in where they are asked for."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def merge(self, manifest: Any, live: Any) -> Any:
        """Returns the merged object; an object with the annotation that asks for CA bundles keeps them."""
        merged: JSON = copy.deepcopy(self._rule.merge(manifest, live))
        if (merged["metadata"].get("annotations") or {}).get(INJECT_CA) != "true" or not live:
            return merged
        bundles = {name: config["caBundle"] for name, config in _client_configs(live) if "caBundle" in config}
        for name, config in _client_configs(merged):
            if name in bundles:
                config["caBundle"] = bundles[name]
        return merged

    def concerns(self, others: Mapping[str, Any]) -> bool:
        """Returns whether the rule is concerned."""
        return self._rule.concerns(others)


def _client_configs(obj: JSON) -> list[tuple[str, JSON]]:
    """Returns the clientConfigs of an object by their webhooks' names; "" is that of a definition's conversion."""
    webhooks = [(webhook.get("name", ""), webhook.get("clientConfig")) for webhook in obj.get("webhooks") or ()]
    conversion = ((obj.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    return [(name, config) for name, config in (*webhooks, ("", conversion.get("clientConfig"))) if config]


_WEBHOOKS = _WithCABundles(Struct({"webhooks": Items(("name",), _EXACT)}))
_RULES: dict[Kind, Rule] = {
    ("", "Service"): Struct({"spec": _ServiceSpec()}),
    ("", "ServiceAccount"): Struct(_exact("automountServiceAccountToken")),
    ("", "ConfigMap"): Struct({}),
    ("", "Namespace"): Struct({}),
    ("apps", "Deployment"): Struct(
        {"spec": Struct({**_exact("replicas", "paused", "minReadySeconds", "strategy"), "template": _TEMPLATE})}
    ),
    ("apps", "DaemonSet"): Struct({"spec": Struct({"template": _TEMPLATE})}),
    ("batch", "Job"): Struct({"spec": _JOB}),
    ("batch", "CronJob"): Struct(
        {
            "spec": Struct(
                {
                    **_exact(
                        "startingDeadlineSeconds",
                        "suspend",
                        "successfulJobsHistoryLimit",
                        "failedJobsHistoryLimit",
                        "timeZone",
                        "concurrencyPolicy",
                    ),
                    "jobTemplate": Struct({"spec": _JOB_OF_CRONJOB}),
                }
            )
        }
    ),
    ("rbac.authorization.k8s.io", "Role"): Struct(_exact("rules")),
    ("rbac.authorization.k8s.io", "ClusterRole"): _ClusterRole(),
    ("rbac.authorization.k8s.io", "RoleBinding"): Struct(_exact("subjects", "roleRef")),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Struct(_exact("subjects", "roleRef")),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _WithCABundles(Struct({"spec": _EXACT})),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("image.openshift.io", "ImageStream"): Struct({"spec": Struct(_exact("lookupPolicy"))}),
    ("operators.coreos.com", "OperatorGroup"): Struct(
        {"spec": Struct(_exact("selector", "targetNamespaces", "staticProvidedAPIs", "upgradeStrategy"))}
    ),
    ("security.openshift.io", "SecurityContextConstraints"): Struct(
        {"metadata": _KEEP, "apiVersion": _KEEP, "kind": _KEEP}, _EXACT
    ),
}
_OTHER_KINDS = Struct({})


def merged(kind: Kind, manifest: JSON, live: JSON) -> JSON:
    """Returns the object that an update makes of `live`: the manifest's fields, and what the kind's rules leave."""
    result: JSON = _RULES.get(kind, _OTHER_KINDS).merge(manifest, live)
    return result


def writes_of_others(kind: Kind, metadata: OwnedMeta) -> bytes:
    """Returns a value that changes with each write by others that might have to be taken back.

    It is empty if nobody else owns a field that the kind's rules take away. It is made of the entries of managedFields
    and the generation; of the resourceVersion for kinds that have no generation. An object that we have not applied
    (`merged` was written instead) may be changed anywhere.
    """
    version = str(metadata.generation or metadata.resource_version)
    entries = metadata.managed_fields
    ours = [each.fields_v1 for each in entries if each.manager == MANAGER and each.operation == "Apply"]
    if not ours:
        return _digest([version])
    others = [each for each in entries if each.manager not in (MANAGER, MERGER) and each.subresource != "status"]
    left: JSON = {}
    for each in others:
        left = union(left, only_others(each.fields_v1, ours[0]))
    if kind not in _RULES or not _RULES[kind].concerns(left):
        return b""
    return _digest([version, *(f"{each.manager} {each.operation} {each.time}" for each in others)])


def _digest(parts: list[str]) -> bytes:
    return hashlib.sha256(codec.encode(parts)).digest()[:16]
