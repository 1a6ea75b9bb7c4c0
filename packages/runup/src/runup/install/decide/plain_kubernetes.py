"""Adapts the objects of a component to a cluster that has nothing of OpenShift.

References to things that such a cluster lacks are left out: namespaces, roles, priority classes, security context
constraints, the authority of Services. What OpenShift sets by default is set explicitly: a user, and ports of the API
server. Network policies allow name servers anywhere.
"""

from __future__ import annotations

from typing import Any

from runup.install.decide.component import (
    KERNEL_MODULES,
    OPERATOR,
    UPDATE_POLICY,
    UPDATE_STATUS,
    Component,
    Options,
)
from runup.install.decide.objects import (
    Objects,
    with_arguments,
    with_container,
    with_pod,
    without_arguments,
    without_volumes,
)
from runup.process.names import NOBODY

JSON = dict[str, Any]
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
# The operator grants its targets the use of an SCC wherever it runs. To grant a right it must have that right itself
# (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping).
_SCC_GRANTING_ROLE = ("ClusterRole", "cluster-version-operator")
# Alerts and queries go to OpenShift's Thanos, inner registries are OpenShift's own.
_DROPPED_ARGUMENTS = ("--alerts-", "--prometheus-", "--inner-registry=image-registry.openshift-image-registry")
_SERVING_ARGUMENTS = ("--listen=", "--serving-")
# Plain Kubernetes has no role `cluster-reader`. Every cluster has `view`, which does not read Secrets either.
_ROLES = {"cluster-reader": "view"}
_LACKING_ROLES = ("cluster-monitoring-view",)
_LACKING_PRIORITIES = ("openshift-user-critical",)
# A cluster without FeatureGates has nobody who could open these.
_GATES = "--open-gates=ClusterUpdatePreflight,ClusterUpdateAcceptRisks"


# What the status of a cluster without a ClusterVersion is computed from (updatestatus/control/kubernetes_objects.py).
_STATUS_RULES: tuple[JSON, ...] = (
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kubeadm-config"], "verbs": ["list"]},
    {"apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["kube-proxy"], "verbs": ["list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]},
    {"apiGroups": ["upgrade.cattle.io"], "resources": ["plans"], "verbs": ["list"]},
    {"apiGroups": ["cluster.x-k8s.io"], "resources": ["machinedeployments", "machines"], "verbs": ["list"]},
    {"apiGroups": ["karpenter.sh"], "resources": ["nodeclaims", "nodepools"], "verbs": ["list"]},
)


# A policy reads the reports of Jobs and the cluster's ID there (rollout/control/observe.py).
_POLICY_RULES: tuple[JSON, ...] = (
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["preflight-history"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
)


def adapt_to_plain_kubernetes(objects: Objects, component: Component, options: Options) -> Objects:
    """Returns the objects of `component` that a cluster without OpenShift takes."""
    serves = options.monitoring or component == KERNEL_MODULES
    kept_objects: list[JSON] = []
    for obj in objects:
        namespace = obj["metadata"].get("namespace", "")
        # The controller of update policies reads what the operator keeps there.
        own = (component.namespace, *((OPERATOR.namespace,) if component == UPDATE_POLICY else ()))
        is_openshifts = namespace.startswith("openshift-") and namespace not in own
        if is_openshifts and obj["kind"] == "ConfigMap":
            # The operator refuses minor updates while these do not exist (admin-gates and admin-acks).
            kept_objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            kept_objects.append(_without_marks(obj))
            continue
        # Such a cluster has neither that namespace nor that role.
        if is_openshifts or obj.get("roleRef", {}).get("name") in _LACKING_ROLES:
            continue
        if serves or obj["kind"] != "Service":
            kept_objects.append(_without_openshift(obj, component, options, serves=serves))
    empty = {(obj["kind"], obj["metadata"]["name"]) for obj in kept_objects if obj.get("rules") == []}
    # The role that an object is or binds.
    return tuple(
        obj
        for obj in kept_objects
        for role in (obj.get("roleRef") or {"kind": obj["kind"], "name": obj["metadata"]["name"]},)
        if (role["kind"], role["name"]) not in empty
    )


def _without_openshift(obj: JSON, component: Component, options: Options, *, serves: bool) -> JSON:
    """Returns one object without the annotations, roles and pod settings that only OpenShift has."""
    obj = _without_marks(obj)
    if obj["kind"] == "Deployment":
        template = obj["spec"]["template"]
        obj = {**obj, "spec": {**obj["spec"], "template": _without_marks(template)}}
    obj = with_pod(obj, lambda pod: _pod(pod, component, serves=serves))
    if (obj["kind"], obj["metadata"]["name"]) == _SCC_GRANTING_ROLE:
        return obj
    if (obj["kind"], component) == ("ClusterRole", UPDATE_STATUS):
        # Such a cluster may have a ClusterVersion, which the operator of runup keeps.
        return {**obj, "rules": [*obj["rules"], *_STATUS_RULES]}
    if (obj["kind"], obj["metadata"]["name"]) == ("ClusterRole", "runup-update-controller"):
        return {**obj, "rules": [*obj["rules"], *_POLICY_RULES]}
    if obj["kind"] in ("ClusterRole", "Role"):
        return {**obj, "rules": [rule for rule in obj["rules"] if rule.get("apiGroups") != ["security.openshift.io"]]}
    if "roleRef" in obj:
        name = obj["roleRef"]["name"]
        return {**obj, "roleRef": {**obj["roleRef"], "name": _ROLES.get(name, name)}}
    return _policy(obj, options, serves=serves) if obj["kind"] == "NetworkPolicy" else obj


def _without_marks(obj: JSON) -> JSON:
    """Returns `obj` without the annotations and labels that OpenShift alone reads."""
    metadata = {
        key: {name: mark for name, mark in value.items() if not name.partition("/")[0].endswith("openshift.io")}
        if key in ("annotations", "labels")
        else value
        for key, value in obj["metadata"].items()
    }
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value}}


def _pod(pod: JSON, component: Component, *, serves: bool) -> JSON:
    """Returns a pod's spec for a cluster without OpenShift: no service CA, and a separate user."""
    pod = without_volumes(without_arguments(pod, *_DROPPED_ARGUMENTS), "service-ca")
    if not serves:
        pod = without_volumes(without_arguments(pod, *_SERVING_ARGUMENTS), "serving-cert")
        pod = with_container(
            pod,
            lambda container: {**container, "ports": [port for port in container["ports"] if port["name"] == "health"]},
        )
    if component == OPERATOR:
        # It reads releases from registries, for which no pod needs a priority class.
        pod = without_arguments(without_volumes(pod, "update-payloads"), "--release-source=")
        pod = with_arguments(pod, "--release-source=registry", _GATES)
    pod = {key: value for key, value in pod.items() if value not in _LACKING_PRIORITIES}
    security = pod["securityContext"]
    if security.get("runAsNonRoot") and "runAsUser" not in security:
        # OpenShift gives each namespace a user; elsewhere the image would have to name one.
        pod = {**pod, "securityContext": {**security, "runAsUser": NOBODY}}
    if _CONTROL_PLANE not in pod.get("nodeSelector", {}):
        return pod
    # The nodes of the control plane are only preferred, because a managed cluster shows none.
    other_fields = {key: value for key, value in pod.items() if key != "nodeSelector"}
    terms = [{"key": _CONTROL_PLANE, "operator": "Exists"}]
    preferred = [{"weight": 100, "preference": {"matchExpressions": terms}}]
    affinity = {
        **pod.get("affinity", {}),
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
    }
    return {**other_fields, "affinity": affinity}


def _policy(obj: JSON, options: Options, *, serves: bool) -> JSON:
    """Returns the NetworkPolicy for a cluster without OpenShift's own services."""
    spec = obj["spec"]
    egress = []
    for rule in spec.get("egress", ()):
        ports = {port.get("port") for port in rule.get("ports", ())}
        if ports == {443, 6443}:
            api_ports = sorted({443, *options.api_ports})
            egress.append({"ports": [{"protocol": "TCP", "port": port} for port in api_ports]})
        elif 9091 not in ports:  # OpenShift's Thanos
            # Where name servers run, and under which labels, is the cluster's own matter.
            egress.append({key: value for key, value in rule.items() if key != "to"})
    ingress = list(spec.get("ingress", ())) if serves else []
    rules = {name: rules for name, rules in (("ingress", ingress), ("egress", egress)) if rules}
    return {**obj, "spec": {key: value for key, value in spec.items() if key not in ("ingress", "egress")} | rules}
