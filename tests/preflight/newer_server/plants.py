"""Risks and lookalikes of a cluster without a ClusterVersion that a newer kube-apiserver alone can bring about.

A plant has the objects that the older server stores, and one request that the newer one is asked then. A risk has the
name that the preflight gives it, and a text of the answer in which it has come true; a lookalike has neither, and its
request succeeds.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.controlplane.backends import PORT
from tests.factories import obj

JSON = dict[str, Any]
SERVICES = ("guard.policies.svc",)
RBAC, ADMISSION, EXTENSIONS = "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"
STORAGE, NETWORKING = "storage.k8s.io", "networking.k8s.io"
# The kinds that are in no namespace.
_CLUSTER = {"Node", "Namespace", "StorageClass", "CSIDriver", "PriorityClass", "RuntimeClass", "ClusterRole"}
_CLUSTER |= {"ClusterRoleBinding", "CustomResourceDefinition", "APIService", "ServiceCIDR", "VolumeAttributesClass"}
_CLUSTER |= {"DeviceClass", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
_CLUSTER |= {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "IPAddress"}


@dataclass(frozen=True)
class Request:
    """What a server is asked; a write is a dry run unless it is planted."""

    method: str
    path: str
    body: JSON | None = None
    manager: str = ""


@dataclass(frozen=True)
class Plant:
    """`about` are texts of which the risk names one each, as `Kind namespace/name`; `before` is asked of the older."""

    id: str
    request: Request
    planted: tuple[Request, ...] = ()
    risk: str = ""
    about: tuple[str, ...] = ()
    comes_true: str = ""
    before: tuple[Request, ...] = field(default=())


def path_of(obj: JSON, name: str = "") -> str:
    """Where objects of that kind are, in the namespace of `obj`; with `name`, that object."""
    version, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
    plural = re.sub("ys$", "ies", f"{kind.lower()}{'es' if kind.endswith('s') else 's'}")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = "" if kind in _CLUSTER else f"/namespaces/{metadata['namespace']}"
    return f"{root}{where}/{plural}{f'/{name}' if name else ''}"


def made(*objects: JSON, manager: str = "planted") -> tuple[Request, ...]:
    """Each is created, and its status, if it has one, written after it."""
    requests: list[Request] = []
    for each in objects:
        requests.append(Request("POST", path_of(each), each, manager))
        if "status" in each:
            status = f"{path_of(each, each['metadata']['name'])}/status"
            requests.append(Request("PATCH", status, {"status": each["status"]}, manager))
    return tuple(requests)


def gone(each: JSON) -> Request:
    return Request("DELETE", path_of(each, each["metadata"]["name"]))


def created(each: JSON) -> Request:
    return Request("POST", path_of(each), each)


def namespace(name: str, **labels: str) -> tuple[JSON, JSON]:
    """A namespace, and the account that its pods have."""
    labels = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
    return (
        obj("v1", "Namespace", name, metadata={"labels": labels}),
        obj("v1", "ServiceAccount", "default", name),
    )


def planted_pod(
    name: str, where: str, app: str = "web", *, ready: bool = True, phase: str = "Running", **spec: Any
) -> JSON:
    """A pod of a Deployment `app`, on a node."""
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5f7", "uid": app, "controller": True}
    waiting = {"name": "web", "ready": False, "restartCount": 9, "image": "i", "imageID": ""}
    waiting |= {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    status: JSON = {"phase": phase, "conditions": conditions}
    if phase == "Running" and not ready:
        status["containerStatuses"] = [waiting]
    container = {"name": "web", "image": "registry.example/web:1", **spec.pop("container", {})}
    return obj(
        "v1",
        "Pod",
        name,
        where,
        metadata={"labels": {"app": app}, "ownerReferences": [owner]},
        spec={"nodeName": "worker-0", "containers": [container], **spec},
        status=status,
    )


def another(each: JSON) -> Request:
    """The pod that would take its place."""
    spec = {key: value for key, value in each["spec"].items() if key != "nodeName"}
    fresh = {key: value for key, value in each.items() if key != "status"}
    return created({**fresh, "metadata": {**each["metadata"], "name": "another"}, "spec": spec})


def evicted(each: JSON) -> Request:
    metadata = {key: each["metadata"][key] for key in ("name", "namespace")}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    return Request("POST", f"{path_of(each, metadata['name'])}/eviction", body)


# Webhooks

POLICIES = (
    *namespace("policies"),
    obj("v1", "Service", "guard", "policies", spec={"selector": {"app": "guard"}, "ports": [{"port": PORT}]}),
    obj(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "guard-1",
        "policies",
        metadata={"labels": {"kubernetes.io/service-name": "guard"}},
        addressType="IPv4",
        ports=[{"name": "", "port": PORT, "protocol": "TCP"}],
        endpoints=[{"addresses": ["10.1.0.5"], "conditions": {"ready": True}}],
    ),
    obj("v1", "Service", "nobody", "policies", spec={"selector": {"app": "nobody"}, "ports": [{"port": 443}]}),
    obj("v1", "Service", "unready", "policies", spec={"selector": {"app": "unready"}, "ports": [{"port": 443}]}),
    planted_pod("guard-1", "policies", "guard"),
    planted_pod("guard-2", "policies", "guard", nodeName="worker-1"),
    planted_pod("unready-1", "policies", "unready", ready=False),
)


def hook(name: str, service: str, group: str, resource: str, *, bundle: bytes = b"", **rest: Any) -> JSON:
    """A configuration with one webhook about what is created of the resource."""
    kind = rest.pop("kind", "ValidatingWebhookConfiguration")
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]}
    rule |= rest.pop("rule", {})
    port = rest.pop("port", PORT if service == "guard" else 443)
    config: JSON = {"service": {"namespace": "policies", "name": service, "port": port}}
    config |= {"caBundle": base64.b64encode(bundle).decode()} if bundle else {}
    webhook = {
        "name": f"{name}.example.com",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        "clientConfig": config,
        "rules": [rule],
        **rest,
    }
    return obj(f"{ADMISSION}/v1", kind, name, webhooks=[webhook])


def platform(*labels: str) -> JSON:
    """A namespaceSelector for kube-system."""
    names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(labels) or ["kube-system"]}
    return {"namespaceSelector": {"matchExpressions": [names]}}


def service(name: str) -> JSON:
    return obj("v1", "Service", name, "kube-system", spec={"ports": [{"port": 80}]})


def deployment(name: str, where: str, replicas: int = 1, **spec: Any) -> JSON:
    container = {"name": "web", "image": "registry.example/web:1", **spec.pop("container", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    selector = {"matchLabels": {"app": name}}
    return obj(
        "apps/v1", "Deployment", name, where, spec={"replicas": replicas, "selector": selector, "template": template}
    )


def policy(name: str, where: str, plural: str) -> JSON:
    return obj(f"{NETWORKING}/v1", "NetworkPolicy", name, where, spec={"podSelector": {}, "policyTypes": ["Ingress"]})


def budget(name: str, where: str, status: tuple[int, int, int, int], **spec: Any) -> JSON:
    """A budget whose status is what the disruption controller makes of it: expected, healthy, desired, allowed."""
    keys = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    if spec["selector"] is None:
        del spec["selector"]
    computed = {**dict(zip(keys, status, strict=True)), "observedGeneration": 1}
    return obj("policy/v1", "PodDisruptionBudget", name, where, spec=spec, status=computed)


NEW_NODE = obj("v1", "Node", "worker-9")
NEW_STORAGE = obj(f"{STORAGE}/v1", "StorageClass", "new", provisioner="csi.example.com")
NEW_DRIVER = obj(f"{STORAGE}/v1", "CSIDriver", "new.example.com", spec={"attachRequired": False})
NEW_PRIORITY = obj("scheduling.k8s.io/v1", "PriorityClass", "new", value=10)
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
ROLE_REF = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
ASKED = "failed calling webhook"


def crd(plural: str, kind: str, group: str, versions: tuple[str, ...] = ("v1",), **conversion: Any) -> JSON:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [{"name": each, "served": True, "storage": each == "v1", "schema": schema} for each in versions]
    names = {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec: JSON = {"group": group, "scope": "Cluster", "names": names, "versions": served}
    spec |= {"conversion": conversion} if conversion else {}
    return obj(f"{EXTENSIONS}/v1", "CustomResourceDefinition", f"{plural}.{group}", spec=spec)


def _of_webhooks(ca: bytes, ended: bytes) -> Iterator[Plant]:
    role = obj(f"{RBAC}/v1", "Role", "new", "kube-system", rules=RULES)
    hooked_pod = planted_pod("web-1", "hooked")
    evicted_pod = planted_pod("web-1", "hooked-drain")
    risks: list[tuple[str, JSON, Request, tuple[JSON, ...]]] = [
        ("a webhook on nodes whose Service is gone", hook("nodes", "gone", "", "nodes"), created(NEW_NODE), ()),
        (
            "a mutating webhook on storage classes without a pod",
            hook("storage-classes", "nobody", STORAGE, "storageclasses", kind="MutatingWebhookConfiguration"),
            created(NEW_STORAGE),
            (),
        ),
        (
            "a webhook on drivers whose pod is not ready",
            hook("drivers", "unready", STORAGE, "csidrivers"),
            created(NEW_DRIVER),
            (),
        ),
        (
            "a webhook on priorities at a port that its Service does not have",
            hook("priorities", "guard", "scheduling.k8s.io", "priorityclasses", port=8443),
            created(NEW_PRIORITY),
            (),
        ),
        (
            "a webhook on definitions whose authority is over",
            hook("definitions", "guard", EXTENSIONS, "customresourcedefinitions", bundle=ended),
            created(crd("news", "New", "new.example.com")),
            (),
        ),
        (
            "a webhook on Services of kube-system",
            hook("services", "nobody", "", "services", **platform()),
            created(service("new")),
            (),
        ),
        (
            "a webhook on Deployments of kube-system, by any group",
            hook("deployments", "gone", "*", "deployments", **platform()),
            created(deployment("new", "kube-system")),
            (),
        ),
        (
            "a webhook on all that NetworkPolicies' group has",
            hook(
                "network",
                "nobody",
                NETWORKING,
                "*",
                rule={"scope": "Namespaced"},
                **platform("kube-system", "kube-public"),
            ),
            created(policy("new", "kube-system", "networkpolicies")),
            (),
        ),
        (
            "a webhook on pods of a namespace that a label chooses",
            hook("pods", "gone", "", "pods", namespaceSelector={"matchLabels": {"team": "hooked"}}),
            another(hooked_pod),
            (*namespace("hooked", team="hooked"), hooked_pod),
        ),
        (
            "a webhook on evictions",
            hook("evictions", "nobody", "", "pods/eviction", namespaceSelector={"matchLabels": {"team": "drained"}}),
            evicted(evicted_pod),
            (*namespace("hooked-drain", team="drained"), evicted_pod),
        ),
    ]
    for id_, configuration, request, beside in risks:
        about = f"{configuration['kind']} {configuration['metadata']['name']}"
        yield Plant(id_, request, (*made(*beside), *made(configuration)), "WebhookBlocksUpdate", (about,), ASKED)
    lookalikes: list[tuple[str, JSON, Request]] = [
        (
            "a webhook that is not there and may be left out",
            hook("ignored", "gone", RBAC, "clusterroles", failurePolicy="Ignore"),
            created(obj(f"{RBAC}/v1", "ClusterRole", "new", rules=RULES)),
        ),
        (
            "a webhook that answers",
            hook("answers", "guard", RBAC, "clusterrolebindings", bundle=ca),
            created(obj(f"{RBAC}/v1", "ClusterRoleBinding", "new", roleRef=ROLE_REF)),
        ),
        (
            "a webhook on Secrets of a namespace that is none of the update's",
            hook("secrets", "gone", "", "secrets", **platform("shop")),
            created(obj("v1", "Secret", "new", "kube-system")),
        ),
        (
            "a webhook on accounts with a label",
            hook("accounts", "gone", "", "serviceaccounts", objectSelector={"matchLabels": {"inject": "yes"}}),
            created(obj("v1", "ServiceAccount", "new", "kube-system")),
        ),
        (
            "a webhook that narrows itself by a condition",
            hook("roles", "gone", RBAC, "roles", matchConditions=[{"name": "never", "expression": "false"}]),
            created(role),
        ),
        (
            "a webhook on what is in no namespace, of a kind that is in one",
            hook("bindings", "gone", RBAC, "rolebindings", rule={"scope": "Cluster"}),
            created(obj(f"{RBAC}/v1", "RoleBinding", "new", "kube-system", roleRef=ROLE_REF)),
        ),
        (
            "a webhook on a version of budgets that is gone long since",
            hook("budgets", "gone", "policy", "poddisruptionbudgets", rule={"apiVersions": ["v1beta1"]}),
            created(budget("new", "kube-system", (0, 0, 0, 0), maxUnavailable=1)),
        ),
        (
            "a webhook on a subresource that no update writes",
            hook("scales", "gone", "apps", "statefulsets/scale", rule={"operations": ["UPDATE"]}),
            created({**deployment("new", "kube-system"), "kind": "StatefulSet"}),
        ),
    ]
    for id_, configuration, request in lookalikes:
        about = f"{configuration['kind']} {configuration['metadata']['name']}"
        yield Plant(id_, request, made(configuration), about=(about,))


def _of_removed_versions(ca: bytes) -> Iterator[Plant]:
    new = obj(
        f"{STORAGE}/v1", "VolumeAttributesClass", "unguarded", driverName="csi.example.com", parameters={"a": "b"}
    )
    rule = {"apiVersions": ["v1beta1"]}
    for policy_ in ("Exact", "Equivalent"):
        name = f"classes-{policy_.lower()}"
        configuration = hook(name, "nobody", NETWORKING, "servicecidrs", matchPolicy=policy_, rule=rule)
        cidr = obj(f"{NETWORKING}/v1", "ServiceCIDR", name, spec={"cidrs": ["10.9.0.0/24"]})
        yield Plant(
            f"a webhook that is asked about a version that goes, by {policy_}",
            created(cidr),
            made(configuration),
            "WebhookRemovedVersion",
            (f"ValidatingWebhookConfiguration {name}",),
            # It is not asked, so that nobody refuses.
            "^$",
            before=(created({**cidr, "apiVersion": f"{NETWORKING}/v1beta1"}),),
        )
    both = hook(
        "classes-both", "guard", STORAGE, "volumeattributesclasses", bundle=ca, rule={"apiVersions": ["v1", "v1beta1"]}
    )
    yield Plant(
        "a webhook about the version that stays, too",
        created(new),
        made(both),
        about=("ValidatingWebhookConfiguration classes-both",),
    )


# APIs

# Group, version, resource, and whether the newer server has it.
REQUESTED = (
    (NETWORKING, "v1beta1", "servicecidrs", False),
    (NETWORKING, "v1beta1", "ipaddresses", False),
    (STORAGE, "v1beta1", "volumeattributesclasses", False),
    (STORAGE, "v1alpha1", "volumeattributesclasses", False),
    ("certificates.k8s.io", "v1alpha1", "clustertrustbundles", False),
    ("storagemigration.k8s.io", "v1alpha1", "storageversionmigrations", False),
    (NETWORKING, "v1", "servicecidrs", True),
    (STORAGE, "v1", "volumeattributesclasses", True),
    ("certificates.k8s.io", "v1beta1", "clustertrustbundles", True),
    ("coordination.k8s.io", "v1beta1", "leasecandidates", True),
    ("resource.k8s.io", "v1beta1", "deviceclasses", True),
    ("resource.k8s.io", "v1beta2", "deviceclasses", True),
    ("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicies", True),
    ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", True),
)


def _of_apis() -> Iterator[Plant]:
    for group, version, resource, stays in REQUESTED:
        asked = Request("GET", f"/apis/{group}/{version}/{resource}")
        name = f"{resource}.{version}.{group}"
        if stays:
            yield Plant(f"{name} is asked for", asked, before=(asked,), about=(name,))
        else:
            risk = f"RemovedAPIRequested-{name}"
            yield Plant(f"{name} is asked for", asked, risk=risk, comes_true="could not find", before=(asked,))
    for group, kind, body in (
        (STORAGE, "VolumeAttributesClass", {"driverName": "csi.example.com", "parameters": {"tier": "gold"}}),
        (NETWORKING, "ServiceCIDR", {"spec": {"cidrs": ["10.8.0.0/24"]}}),
    ):
        old = obj(f"{group}/v1beta1", kind, "old", **body)
        applied = Request("PATCH", path_of(old, "old"), old, "pipeline")
        yield Plant(
            f"a {kind} that a pipeline applies in a version that goes",
            applied,
            made(old, manager="pipeline"),
            f"RemovedAPIStored-{kind}",
            (f"{kind} old",),
            "could not find",
            before=(applied,),
        )
        last = {
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"apiVersion":"{group}/v1beta1"}}'}
        }
        body = body if kind != "ServiceCIDR" else {"spec": {"cidrs": ["10.7.0.0/24"]}}
        new = obj(f"{group}/v1", kind, "new", metadata=last, **body)
        yield Plant(
            f"a {kind} of which an annotation says a version that goes",
            Request("PATCH", path_of(new, "new"), new, "kubectl"),
            made(new, manager="kubectl"),
            about=(f"{kind} new",),
        )


# Evictions


def _of_budgets() -> Iterator[Plant]:
    blocked, unready, spent = (
        "PodDisruptionBudgetBlocksDrain",
        "PodDisruptionBudgetPodsUnready",
        "PodDisruptionBudgetSpent",
    )
    by_budget = "violate the pod's disruption budget"
    two = (planted_pod("web-1", "NS"), planted_pod("web-2", "NS"))
    one_bad = (*two, planted_pod("web-3", "NS", ready=False))
    both = "more than one PodDisruptionBudget"
    rows: tuple[tuple[str, str, str, tuple[JSON, ...], tuple[JSON, ...]], ...] = (
        ("maxUnavailable 0", blocked, by_budget, two, (budget("web", "NS", (2, 2, 2, 0), maxUnavailable=0),)),
        ("minAvailable 2 of 2", blocked, by_budget, two, (budget("web", "NS", (2, 2, 2, 0), minAvailable=2),)),
        ("minAvailable 100%", blocked, by_budget, two, (budget("web", "NS", (2, 2, 2, 0), minAvailable="100%"),)),
        (
            "over all of a namespace",
            blocked,
            by_budget,
            two,
            (budget("web", "NS", (2, 2, 2, 0), maxUnavailable=0, selector={}),),
        ),
        (
            "two of one pod",
            "PodDisruptionBudgetsOverlap",
            both,
            two,
            (
                budget("web", "NS", (2, 2, 1, 1), maxUnavailable=1),
                budget("all", "NS", (2, 2, 1, 1), maxUnavailable=1, selector={}),
            ),
        ),
        (
            "no pod of it ready",
            unready,
            by_budget,
            (planted_pod("web-1", "NS", ready=False),),
            (budget("web", "NS", (1, 0, 1, 0), minAvailable=1),),
        ),
        (
            "used up by a pod that does not run",
            spent,
            by_budget,
            one_bad,
            (budget("web", "NS", (3, 2, 2, 0), maxUnavailable=1),),
        ),
        ("one at a time", "", "", two, (budget("web", "NS", (2, 2, 1, 1), maxUnavailable=1),)),
        (
            "that selects nobody",
            "",
            "",
            two,
            (budget("web", "NS", (0, 0, 0, 0), maxUnavailable=0, selector={"matchLabels": {"app": "db"}}),),
        ),
        ("without a selector", "", "", two, (budget("web", "NS", (0, 0, 0, 0), maxUnavailable=0, selector=None),)),
        (
            "no pod of it ready, which may go",
            "",
            "",
            (planted_pod("web-1", "NS", ready=False),),
            (budget("web", "NS", (1, 0, 1, 0), minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"),),
        ),
        (
            "two of two pods",
            "",
            "",
            (*two, planted_pod("db-1", "NS", "db")),
            (
                budget("web", "NS", (2, 2, 1, 1), maxUnavailable=1),
                budget("db", "NS", (1, 1, 0, 1), maxUnavailable=1, selector={"matchLabels": {"app": "db"}}),
            ),
        ),
        (
            "over a pod that has ended",
            "",
            "",
            (planted_pod("web-1", "NS", phase="Succeeded"),),
            (budget("web", "NS", (0, 0, 0, 0), maxUnavailable=0),),
        ),
        (
            "over a pod that has not started",
            "",
            "",
            (planted_pod("web-1", "NS", phase="Pending", ready=False),),
            (budget("web", "NS", (1, 0, 1, 0), minAvailable=1),),
        ),
    )
    for number, (what, risk, text, pods, budgets) in enumerate(rows):
        where = f"budget-{number}"
        pods, budgets = (_moved(each, where) for each in (pods, budgets))
        about = tuple(f"PodDisruptionBudget {where}/{each['metadata']['name']}" for each in budgets)
        yield Plant(f"a budget {what}", evicted(pods[0]), made(*namespace(where), *pods, *budgets), risk, about, text)


def _moved(objects: tuple[JSON, ...], where: str) -> tuple[JSON, ...]:
    return tuple({**each, "metadata": {**each["metadata"], "namespace": where}} for each in objects)


# Pods that are recreated

STRICT = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "container": {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
}
ENFORCE = "pod-security.kubernetes.io/enforce"


def _of_pod_security() -> Iterator[Plant]:
    privileged = {"container": {"securityContext": {"privileged": True}}}
    rows: tuple[tuple[str, dict[str, str], JSON, str], ...] = (
        ("that is privileged in a restricted namespace", {ENFORCE: "restricted"}, privileged, "restricted"),
        ("of the host's network in a baseline namespace", {ENFORCE: "baseline"}, {"hostNetwork": True}, "baseline"),
        ("that keeps to a restricted namespace", {ENFORCE: "restricted"}, STRICT, ""),
        (
            "that is privileged where that is only warned of",
            {ENFORCE.replace("enforce", "warn"): "restricted"},
            privileged,
            "",
        ),
        ("that is not restricted in a baseline namespace", {ENFORCE: "baseline"}, {}, ""),
    )
    for number, (what, labels, spec, level) in enumerate(rows):
        where = f"security-{number}"
        its, account = namespace(where)
        here = planted_pod("web-1", where, **spec)
        labelled = Request("PATCH", f"/api/v1/namespaces/{where}", {"metadata": {"labels": labels}})
        risk, text = ("PodSecurityViolated", f'violates PodSecurity "{level}') if level else ("", "")
        yield Plant(
            f"a pod {what}", another(here), (*made(its, account, here), labelled), risk, (f"Pod {where}/web-1",), text
        )


def _of_references() -> Iterator[Plant]:
    risk = "PodReferencesMissing"
    priority = obj("scheduling.k8s.io/v1", "PriorityClass", "gone", value=10)
    runtime = obj("node.k8s.io/v1", "RuntimeClass", "gone", handler="runsc")
    big = {"container": {"resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "8Gi"}}}}
    rows: tuple[tuple[str, JSON, JSON | None, bool, str], ...] = (
        ("a priority that is gone", {"priorityClassName": "gone"}, priority, True, "no PriorityClass with name gone"),
        ("a runtime that is gone", {"runtimeClassName": "gone"}, runtime, True, 'RuntimeClass "gone" not found'),
        (
            "an account that is gone",
            {"serviceAccountName": "gone"},
            obj("v1", "ServiceAccount", "gone", "NS"),
            True,
            "gone",
        ),
        ("more than its namespace's limit", big, _limit("4Gi"), False, "maximum memory usage per Container is 4Gi"),
        ("a priority", {"priorityClassName": "here"}, {**priority, "metadata": {"name": "here"}}, False, ""),
        ("a runtime", {"runtimeClassName": "here"}, {**runtime, "metadata": {"name": "here"}}, False, ""),
        ("an account", {"serviceAccountName": "here"}, obj("v1", "ServiceAccount", "here", "NS"), False, ""),
        ("less than its namespace's limit", big, _limit("16Gi"), False, ""),
    )
    for number, (what, spec, needed, is_gone, text) in enumerate(rows):
        where = f"references-{number}"
        (needed,) = _moved((needed,), where) if needed["kind"] not in _CLUSTER else (needed,)
        here = planted_pod("web-5f7-1", where, **spec)
        own = deployment("web", where, **spec)
        if needed["kind"] == "LimitRange":
            planted = (*made(*namespace(where), own, here), *made(needed))
        else:
            planted = made(*namespace(where), needed, own, here) + ((gone(needed),) if is_gone else ())
        yield Plant(
            f"a Deployment that asks for {what}",
            another(here),
            planted,
            risk if text else "",
            (f"Deployment {where}/web",),
            text,
        )


def _limit(most: str) -> JSON:
    limits = [{"type": "Container", "max": {"memory": most}}]
    return obj("v1", "LimitRange", "limits", "NS", spec={"limits": limits})


def _of_quotas() -> Iterator[Plant]:
    rows = (
        ("pods beyond it", {"pods": "1"}, {"pods": "2"}, {}, "exceeded quota"),
        ("CPUs beyond it", {"requests.cpu": "1"}, {"requests.cpu": "1500m"}, {}, "exceeded quota"),
        ("room for pods", {"pods": "9"}, {"pods": "2"}, {}, ""),
        ("a scope that is of other pods", {"pods": "1"}, {"pods": "2"}, {"scopes": ["BestEffort"]}, ""),
    )
    asking = {"container": {"resources": {"requests": {"cpu": "100m"}}}}
    for number, (what, hard, used, spec, text) in enumerate(rows):
        where = f"quota-{number}"
        here = planted_pod("web-1", where, **asking)
        quota = obj(
            "v1", "ResourceQuota", "all", where, spec={"hard": hard, **spec}, status={"hard": hard, "used": used}
        )
        risk = "QuotaFull" if text else ""
        yield Plant(
            f"a quota with {what}",
            another(here),
            made(*namespace(where), here, quota),
            risk,
            (f"ResourceQuota {where}/all",),
            text,
        )


# Definitions, aggregated APIs, policies


def _of_definitions(ca: bytes, ended: bytes) -> Iterator[Plant]:
    def webhook(service_: str, bundle: bytes = b"") -> JSON:
        at = {
            "namespace": "policies",
            "name": service_,
            "port": PORT if service_ == "guard" else 443,
            "path": "/convert",
        }
        config: JSON = {"service": at} | ({"caBundle": base64.b64encode(bundle).decode()} if bundle else {})
        return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}

    rows: tuple[tuple[str, str, JSON, bool], ...] = (
        ("whose Service is gone", "lost", webhook("gone"), True),
        ("without a pod", "silent", webhook("nobody"), True),
        ("whose authority is over", "ended", webhook("guard", ended), True),
        ("that answers", "kept", webhook("guard", ca), False),
    )
    for what, name, conversion, fails in rows:
        group, kind = f"{name}.example.com", name.capitalize()
        definition = crd(f"{name}s", kind, group, ("v1", "v1beta1"), **conversion)
        stored = Request(
            "POST",
            f"/apis/{group}/v1/{name}s",
            {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}},
            "planted",
        )
        yield Plant(
            f"a conversion {what}",
            Request("GET", f"/apis/{group}/v1beta1/{name}s"),
            (*made(definition), stored),
            "CRDConversionWebhookDown" if fails else "",
            (f"CustomResourceDefinition {name}s.{group}",),
            "conversion webhook for" if fails else "",
        )
    one = crd("singles", "Single", "single.example.com", ("v1",), **webhook("gone"))
    yield Plant(
        "a conversion of a definition with one version",
        Request("GET", "/apis/single.example.com/v1/singles"),
        made(one),
        about=("CustomResourceDefinition singles.single.example.com",),
    )
    without = crd("nones", "None", "none.example.com", ("v1", "v1beta1"))
    yield Plant(
        "versions without a webhook",
        Request("GET", "/apis/none.example.com/v1beta1/nones"),
        made(without),
        about=("CustomResourceDefinition nones.none.example.com",),
    )
    first, second = crd("widgets", "Widget", "shop.example.com"), crd("gadgets", "Widget", "shop.example.com")
    yield Plant(
        "a definition whose names another has",
        Request("GET", "/apis/shop.example.com/v1/gadgets"),
        made(first, second),
        "CRDNotInForce",
        ("CustomResourceDefinition gadgets.shop.example.com",),
        "could not find",
    )
    yield Plant(
        "a definition that came first",
        Request("GET", "/apis/shop.example.com/v1/widgets"),
        about=("CustomResourceDefinition widgets.shop.example.com",),
    )


def _of_aggregation(ca: bytes) -> Iterator[Plant]:
    for service_, what in (("gone", "that nobody serves"), ("guard", "that is served")):
        group = f"{service_}.metrics.example.com"
        at = {"namespace": "policies", "name": service_, "port": PORT if service_ == "guard" else 443}
        spec = {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 15, "service": at}
        spec |= {"caBundle": base64.b64encode(ca).decode()}
        risk = service_ == "gone"
        yield Plant(
            f"an aggregated API {what}",
            Request("GET", f"/apis/{group}/v1"),
            made(obj("apiregistration.k8s.io/v1", "APIService", f"v1.{group}", spec=spec)),
            "APIServiceUnavailable" if risk else "",
            (f"APIService v1.{group}",),
            "service unavailable|ServiceUnavailable" if risk else "",
        )


def _of_policies() -> Iterator[Plant]:
    nobodys = {"apiVersion": "rules.example.com/v1", "kind": "Limits"}
    rows: tuple[tuple[str, JSON, JSON, JSON, bool], ...] = (
        ("by parameters that nobody defines", nobodys, {}, {}, True),
        (
            "by a version of parameters that nobody defines",
            {"apiVersion": "shop.example.com/v9", "kind": "Widget"},
            {},
            {},
            True,
        ),
        ("by parameters that nobody defines, which may be left out", nobodys, {"failurePolicy": "Ignore"}, {}, False),
        ("by parameters that nobody defines, to be noted", nobodys, {}, {"validationActions": ["Audit"]}, True),
        ("that nothing binds, by parameters that nobody defines", nobodys, {}, {"policyName": "another"}, False),
        ("by a ConfigMap", {"apiVersion": "v1", "kind": "ConfigMap"}, {}, {}, False),
    )
    for number, (what, params, spec, bound, refuses) in enumerate(rows):
        where = f"policies-{number}"
        selector = {"matchLabels": {"kubernetes.io/metadata.name": where}}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        its: JSON = {"failurePolicy": "Fail", "paramKind": params, "validations": [{"expression": "true"}]}
        its |= {"matchConstraints": {"namespaceSelector": selector, "resourceRules": [rule]}, **spec}
        binding: JSON = {"policyName": where, "validationActions": ["Deny"], **bound}
        binding |= {"paramRef": {"name": "params", "namespace": where, "parameterNotFoundAction": "Allow"}}
        if params["kind"] != "ConfigMap":
            del binding["paramRef"]["namespace"]
        yield Plant(
            f"a policy {what}",
            created(obj("v1", "ConfigMap", "new", where)),
            made(
                *namespace(where),
                obj(f"{ADMISSION}/v1", "ValidatingAdmissionPolicy", where, spec=its),
                obj(f"{ADMISSION}/v1", "ValidatingAdmissionPolicyBinding", where, spec=binding),
            ),
            "AdmissionPolicyParamMissing" if refuses else "",
            (f"ValidatingAdmissionPolicy {where}",),
            "failed to (configure|find)" if refuses else "",
        )


def plants(ca: bytes, ended: bytes) -> tuple[Plant, ...]:
    """Every plant; webhooks come last, because what they refuse has to be planted before."""
    return (
        *_of_apis(),
        *_of_budgets(),
        *_of_pod_security(),
        *_of_references(),
        *_of_quotas(),
        *_of_definitions(ca, ended),
        *_of_aggregation(ca),
        *_of_policies(),
        *_of_removed_versions(ca),
        *_of_webhooks(ca, ended),
    )


NODES = tuple(
    obj(
        "v1",
        "Node",
        name,
        status={
            "nodeInfo": {
                **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "kubeProxyVersion"), ""),
                "kubeletVersion": "v1.34.4",
                "containerRuntimeVersion": "containerd://2.1.4",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "architecture": "amd64",
                "operatingSystem": "linux",
            },
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"},
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "250"},
        },
    )
    for name in ("worker-0", "worker-1")
)
