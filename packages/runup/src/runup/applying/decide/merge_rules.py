"""The merge rules of each kind: which fields of other writers stay, and which are removed.

The rules are those of the Go operator (docs/reference/upstream.md 5.2), except for the differences that
docs/decisions/0078 lists. Objects of kinds without rules are applied, and the fields that other writers add to them
stay.
"""

from __future__ import annotations

import copy
import hashlib

from kubekit.api import codec
from runup.api.owned_v1 import ManagedFields, OwnedMeta, applied_by
from runup.applying.decide import merging, rendering

Kind = tuple[str, str]
MERGER = "cluster-version-operator-merge"
"""The field manager of the writes that take away what others added."""

_KEEP, _EXACT = merging.Keep(), merging.Exact()


def _exact_rules(*names: str) -> dict[str, merging.Rule]:
    return dict.fromkeys(names, _EXACT)


_CONTAINER = merging.Struct(
    {
        **_exact_rules("command", "args", "env", "envFrom", "livenessProbe", "readinessProbe"),
        "resources": merging.Struct(_exact_rules("limits", "requests")),
        "ports": merging.Items(("containerPort", "protocol"), _EXACT, {"protocol": "TCP"}),
        "volumeMounts": merging.Items(("mountPath",), _EXACT),
        "securityContext": merging.GoesWhole(
            merging.Struct(
                _exact_rules(
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
_POD = merging.Struct(
    {
        **_exact_rules(
            "automountServiceAccountToken",
            "hostNetwork",
            "hostUsers",
            "shareProcessNamespace",
            "dnsPolicy",
            "terminationGracePeriodSeconds",
            "priority",
        ),
        "affinity": merging.IfGiven(_EXACT),
        "containers": merging.Items(("name",), _CONTAINER),
        "initContainers": merging.Items(("name",), _CONTAINER),
        "volumes": merging.Items(("name",), _EXACT),
        "securityContext": merging.GoesWhole(
            merging.Struct(
                _exact_rules("runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "seLinuxOptions", "seccompProfile")
            )
        ),
    }
)
_TEMPLATE = merging.Struct({"spec": _POD})
_JOB_MEMBERS = _exact_rules(
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "manualSelector",
    "ttlSecondsAfterFinished",
    "suspend",
    "completionMode",
    "podFailurePolicy",
)
_JOB = merging.Struct({**_JOB_MEMBERS, **dict.fromkeys(("selector", "template"), merging.Fixed())})
_JOB_OF_CRONJOB = merging.Struct({**_JOB_MEMBERS, "template": _TEMPLATE})
_NODE_PORTS = ("NodePort", "LoadBalancer")


def _with_live_node_port(port: merging.JSON, live: merging.JSON | None) -> merging.JSON:
    """Returns a port with the node port that the server chose, where the manifest names none."""
    node_port = (live or {}).get("nodePort")
    return {"nodePort": node_port, **port} if node_port else port


def _without_needless_node_ports(spec: merging.JSON, _live: merging.JSON | None) -> merging.JSON:
    if spec.get("type") in _NODE_PORTS:
        return spec
    ports = [{k: v for k, v in port.items() if k != "nodePort"} for port in spec.get("ports") or ()]
    return {**spec, "ports": ports} if ports else spec


def _with_aggregated_rules(role: merging.JSON, live: merging.JSON | None) -> merging.JSON:
    """Returns a ClusterRole; the rules of an aggregated one are left to the controller that makes them."""
    return {**role, "rules": live.get("rules")} if role.get("aggregationRule") and live else role


def _with_injected_bundles(obj: merging.JSON, live: merging.JSON | None) -> merging.JSON:
    """Returns a definition or webhooks' configuration, with its CA bundles where it asks for them."""
    if not live or (obj["metadata"].get("annotations") or {}).get(rendering.INJECT_CA) != "true":
        return obj
    bundles = {name: config["caBundle"] for name, config in rendering.client_configs(live) if "caBundle" in config}
    obj = copy.deepcopy(obj)  # its parts are the manifest's own
    for name, config in rendering.client_configs(obj):
        if name in bundles:
            config["caBundle"] = bundles[name]
    return obj


_SERVICE = merging.Struct(
    {
        **_exact_rules("type", "selector"),
        "ports": merging.Items(("port", "protocol"), merging.Then(_EXACT, _with_live_node_port), {"protocol": "TCP"}),
    }
)
_WEBHOOKS = merging.Then(merging.Struct({"webhooks": merging.Items(("name",), _EXACT)}), _with_injected_bundles)
_RULES: dict[Kind, merging.Rule] = {
    ("", "Service"): merging.Struct({"spec": merging.Then(_SERVICE, _without_needless_node_ports)}),
    ("", "ServiceAccount"): merging.Struct(_exact_rules("automountServiceAccountToken")),
    ("", "ConfigMap"): merging.Struct({}),
    ("", "Namespace"): merging.Struct({}),
    ("apps", "Deployment"): merging.Struct(
        {
            "spec": merging.Struct(
                {**_exact_rules("replicas", "paused", "minReadySeconds", "strategy"), "template": _TEMPLATE}
            )
        }
    ),
    ("apps", "DaemonSet"): merging.Struct({"spec": merging.Struct({"template": _TEMPLATE})}),
    ("batch", "Job"): merging.Struct({"spec": _JOB}),
    ("batch", "CronJob"): merging.Struct(
        {
            "spec": merging.Struct(
                {
                    **_exact_rules(
                        "startingDeadlineSeconds",
                        "suspend",
                        "successfulJobsHistoryLimit",
                        "failedJobsHistoryLimit",
                        "timeZone",
                        "concurrencyPolicy",
                    ),
                    "jobTemplate": merging.Struct({"spec": _JOB_OF_CRONJOB}),
                }
            )
        }
    ),
    ("rbac.authorization.k8s.io", "Role"): merging.Struct(_exact_rules("rules")),
    rendering.CLUSTER_ROLE: merging.Then(
        merging.Struct(_exact_rules("rules", "aggregationRule")), _with_aggregated_rules
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): merging.Struct(_exact_rules("subjects", "roleRef")),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): merging.Struct(_exact_rules("subjects", "roleRef")),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): merging.Then(
        merging.Struct({"spec": _EXACT}), _with_injected_bundles
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("image.openshift.io", "ImageStream"): merging.Struct({"spec": merging.Struct(_exact_rules("lookupPolicy"))}),
    ("operators.coreos.com", "OperatorGroup"): merging.Struct(
        {"spec": merging.Struct(_exact_rules("selector", "targetNamespaces", "staticProvidedAPIs", "upgradeStrategy"))}
    ),
    ("security.openshift.io", "SecurityContextConstraints"): merging.Struct(
        {"metadata": _KEEP, "apiVersion": _KEEP, "kind": _KEEP}, _EXACT
    ),
}
_OTHER_KINDS = merging.Struct({})


def merge_objects(kind: Kind, manifest: merging.JSON, live: merging.JSON) -> merging.JSON:
    """Returns the updated object: the fields of the manifest, and the fields of `live` that the kind's rules keep."""
    result: merging.JSON = _RULES.get(kind, _OTHER_KINDS).merge(manifest, live)
    return result


def writes_of_others(kind: Kind, metadata: OwnedMeta) -> bytes:
    """Returns a value that changes with each write by others that might have to be taken back.

    It is empty if no other manager owns a field that the kind's rules take away. It is made of the entries of
    managedFields and the generation; of the resourceVersion for kinds that have no generation. An object that we have
    not applied (`merged` was written instead) may be changed anywhere.
    """
    version = str(metadata.generation or metadata.resource_version)
    our_entry = applied_by(metadata, merging.MANAGER)
    if our_entry is None:
        return _digest([version])
    # Only these, because a controller may write its annotation after each of our writes.
    foreign_entries = [manager_entry for manager_entry in metadata.managed_fields if is_foreign(manager_entry)]
    relevant_entries = [
        manager_entry
        for manager_entry in foreign_entries
        if concerns_rule(kind, merging.only_others(manager_entry.fields_v1, our_entry.fields_v1))
    ]
    if not relevant_entries:
        return b""
    return _digest(
        [
            version,
            *(
                f"{manager_entry.manager} {manager_entry.operation} {manager_entry.time}"
                for manager_entry in relevant_entries
            ),
        ]
    )


def concerns_rule(kind: Kind, fields: merging.JSON) -> bool:
    """Returns whether a rule of that kind takes away one of `fields` (fieldsV1)."""
    return kind in _RULES and _RULES[kind].concerns(fields)


def is_foreign(entry: ManagedFields) -> bool:
    """Returns whether that entry is of another writer than the operator, and not of a status."""
    return entry.manager not in (merging.MANAGER, MERGER) and entry.subresource != "status"


def _digest(parts: list[str]) -> bytes:
    return hashlib.sha256(codec.encode(parts)).digest()[:16]
