"""ResourceQuotas on each server: what a write uses of them, what they refuse, and in which words.

No controller runs beside either server, so a test writes `status` itself. A real server's informers need a moment until
a quota is in force: next to each there is one that has room for no ConfigMap, and refuses it from then on.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.api import JSON, Answer, Api
from tests.servers import eventually

PRIORITY = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]}


def quota(
    api: Api, namespace: str, hard: JSON, used: JSON, *, name: str = "q", mark: str = "configmaps", **spec: Any
) -> str:
    """Makes a quota with this status, and waits until it is in force; returns its path."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    api.post(path, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}).ok()
    api.merge(f"{path}/{name}/status", {"status": {"hard": hard, "used": used}}).ok()
    # A quota with scopes counts pods alone, so another shows when the server has seen both.
    limit = {f"count/{mark}": "0"}
    api.post(path, {"metadata": {"name": f"{name}-mark"}, "spec": {"hard": limit}}).ok()
    api.merge(f"{path}/{name}-mark/status", {"status": {"hard": limit, "used": limit}}).ok()
    marks, probe = f"/api/v1/namespaces/{namespace}/{mark}", {"metadata": {"name": "probe"}}
    eventually(lambda: api.post(marks, probe, dryRun="All").code == 403, "the quota is in force", 60)
    return f"{path}/{name}"


def create(api: Api, namespace: str, kind: str, body: JSON, **query: Any) -> Answer:
    """Creates an object `x` of a kind, by default of the core group."""
    plural, _, group = kind.partition(".")
    prefix = f"/apis/{group}/v1" if group else "/api/v1"
    metadata = {"name": "x", **body.get("metadata", {})}
    return api.post(f"{prefix}/namespaces/{namespace}/{plural}", {**body, "metadata": metadata}, **query)


def pod_of(*resources: JSON, **spec: Any) -> JSON:
    """A pod with a container for each of `resources`."""
    each = resources or ({},)
    containers = [{"name": f"c{at}", "image": "i", "resources": one} for at, one in enumerate(each)]
    return {"spec": {"containers": containers, **spec}}


def compute(**amounts: str) -> JSON:
    """Requests and limits of a container: `cpu` and `memory` are both."""
    return {"requests": amounts, "limits": amounts}


SERVICE = {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}
CLAIM = {
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1536Mi"}},
    }
}
BIG = {"name": "big", "image": "i", "resources": {"requests": {"cpu": "3"}}}
SIDECAR = {"name": "side", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}}

# The kind and body of an object, a quota's limits and what is used of them, and what is used afterwards.
TAKEN: dict[str, tuple[str, JSON, JSON, JSON, JSON]] = {
    "an object is counted": ("secrets", {}, {"count/secrets": "2"}, {"count/secrets": "1"}, {"count/secrets": "2"}),
    "also by the kind's own name": ("secrets", {}, {"secrets": "2"}, {"secrets": "0"}, {"secrets": "1"}),
    "one of a group is counted with it": (
        "deployments.apps",
        {
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, **pod_of()},
            }
        },
        {"count/deployments.apps": "1"},
        {"count/deployments.apps": "0"},
        {"count/deployments.apps": "1"},
    ),
    "what a quota does not count leaves it alone": ("secrets", {}, {"pods": "0"}, {"pods": "0"}, {"pods": "0"}),
    "a pod is counted twice": (
        "pods",
        pod_of(),
        {"pods": "1", "count/pods": "1"},
        {"pods": "0", "count/pods": "0"},
        {"pods": "1", "count/pods": "1"},
    ),
    "requests and limits of all containers": (
        "pods",
        pod_of(compute(cpu="250m", memory="1Gi"), compute(cpu="1", memory="512Mi")),
        {"cpu": "2", "requests.memory": "2Gi", "limits.cpu": "4", "limits.memory": "2Gi"},
        {"cpu": "0", "requests.memory": "0", "limits.cpu": "1", "limits.memory": "0"},
        {"cpu": "1250m", "requests.memory": "1536Mi", "limits.cpu": "2250m", "limits.memory": "1536Mi"},
    ),
    "an init container that needs more than all others": (
        "pods",
        pod_of(compute(cpu="1"), initContainers=[BIG]),
        {"requests.cpu": "4"},
        {"requests.cpu": "500m"},
        {"requests.cpu": "3500m"},
    ),
    "a sidecar beside the containers": (
        "pods",
        pod_of(compute(cpu="1"), initContainers=[SIDECAR]),
        {"requests.cpu": "4"},
        {"requests.cpu": "0"},
        {"requests.cpu": "1250m"},
    ),
    "an extended resource": (
        "pods",
        pod_of(compute(**{"example.com/gpu": "2"})),
        {"requests.example.com/gpu": "2"},
        {"requests.example.com/gpu": "0"},
        {"requests.example.com/gpu": "2"},
    ),
    "a Service": ("services", SERVICE, {"services": "1"}, {"services": "0"}, {"services": "1"}),
    "node ports, by their number": (
        "services",
        {"spec": {**SERVICE["spec"], "type": "NodePort"}},
        {"services.nodeports": "2", "services.loadbalancers": "0"},
        {"services.nodeports": "0", "services.loadbalancers": "0"},
        {"services.nodeports": "2", "services.loadbalancers": "0"},
    ),
    "a load balancer has node ports, too": (
        "services",
        {"spec": {**SERVICE["spec"], "type": "LoadBalancer"}},
        {"services.nodeports": "2", "services.loadbalancers": "1"},
        {"services.nodeports": "0", "services.loadbalancers": "0"},
        {"services.nodeports": "2", "services.loadbalancers": "1"},
    ),
    "a claim and its storage, also by class": (
        "persistentvolumeclaims",
        CLAIM,
        {"requests.storage": "2Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
        {"requests.storage": "0", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "0"},
        {"requests.storage": "1536Mi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"},
    ),
}


@pytest.mark.parametrize(("kind", "body", "hard", "used", "after"), TAKEN.values(), ids=TAKEN.keys())
def test_what_a_write_uses(
    api: Api, namespace: str, kind: str, body: JSON, hard: JSON, used: JSON, after: JSON
) -> None:
    """The server charges a quota as it admits an object; a dry run charges nothing."""
    path = quota(api, namespace, hard, used)
    create(api, namespace, kind, body, dryRun="All").ok()
    assert api.get(path).ok()["status"]["used"] == used
    create(api, namespace, kind, body).ok()
    assert api.get(path).ok()["status"] == {"hard": hard, "used": after}


# The same, and why it is refused; what follows `pods "x" is forbidden: `.
REFUSED: dict[str, tuple[str, JSON, JSON, JSON, str]] = {
    "one object too many": (
        "secrets",
        {},
        {"count/secrets": "1", "secrets": "1"},
        {"count/secrets": "1", "secrets": "0"},
        "exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1",
    ),
    "several limits at once, in the order of their names": (
        "pods",
        pod_of(compute(cpu="1500m", memory="1Gi")),
        {"requests.cpu": "1", "limits.memory": "1500Mi", "pods": "5"},
        {"requests.cpu": "0", "limits.memory": "512Mi", "pods": "1"},
        "exceeded quota: q, requested: limits.memory=1Gi,requests.cpu=1500m, used: limits.memory=512Mi,requests.cpu=0, "
        "limited: limits.memory=1500Mi,requests.cpu=1",
    ),
    "a pod that does not say what it needs": (
        "pods",
        pod_of({"requests": {"cpu": "1"}}, {}),
        {"requests.cpu": "2", "limits.cpu": "2", "requests.memory": "1Gi", "pods": "5"},
        {"requests.cpu": "0", "limits.cpu": "0", "requests.memory": "0", "pods": "0"},
        "failed quota: q: must specify limits.cpu for: c0,c1; requests.cpu for: c1; requests.memory for: c0,c1",
    ),
    "what is used is not known yet": (
        "pods",
        pod_of(),
        {"pods": "5", "count/pods": "5"},
        {"pods": "0"},
        "status unknown for quota: q, resources: count/pods,pods",
    ),
    "more node ports than are left": (
        "services",
        {"spec": {**SERVICE["spec"], "type": "NodePort"}},
        {"services.nodeports": "3"},
        {"services.nodeports": "2"},
        "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3",
    ),
    "more storage than is left": (
        "persistentvolumeclaims",
        CLAIM,
        {"requests.storage": "2G"},
        {"requests.storage": "1G"},
        "exceeded quota: q, requested: requests.storage=1536Mi, used: requests.storage=1G, "
        "limited: requests.storage=2G",
    ),
}


@pytest.mark.parametrize(("kind", "body", "hard", "used", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(api: Api, namespace: str, kind: str, body: JSON, hard: JSON, used: JSON, why: str) -> None:
    """With 403, and nothing is charged."""
    path = quota(api, namespace, hard, used)
    refused = create(api, namespace, kind, body)
    assert refused.failure == (403, "Forbidden", f'{kind} "x" is forbidden: {why}')
    assert refused.body["details"] == {"name": "x", "kind": kind}
    assert api.get(path).ok()["status"]["used"] == used


# A pod, and in which scopes it is.
SCOPED: dict[str, tuple[JSON, set[str]]] = {
    "one without requests": (pod_of(), {"BestEffort", "NotTerminating"}),
    "one with requests": (pod_of(compute(cpu="1")), {"NotBestEffort", "NotTerminating"}),
    "one with a deadline": (pod_of(activeDeadlineSeconds=60), {"BestEffort", "Terminating"}),
    "one with a class": (
        pod_of(priorityClassName="system-node-critical"),
        {"BestEffort", "NotTerminating", "class", "In"},
    ),
}
SCOPES: dict[str, JSON] = {
    **{each: {"scopes": [each]} for each in ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating")},
    "class": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}},
    "In": {"scopeSelector": PRIORITY},
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(("body", "scopes"), SCOPED.values(), ids=SCOPED.keys())
def test_which_pods_a_scope_counts(api: Api, namespace: str, body: JSON, scopes: set[str], scope: str) -> None:
    """A quota with scopes is about the pods that are in all of them."""
    quota(api, namespace, {"pods": "0"}, {"pods": "0"}, **SCOPES[scope])
    assert create(api, namespace, "pods", body, dryRun="All").code == (403 if scope in scopes else 201)


def test_an_update_uses_what_it_adds(api: Api, namespace: str) -> None:
    """A Service that gets node ports, and one that gets more than there are."""
    limits = {"services": "1", "services.nodeports": "2"}
    path = quota(api, namespace, limits, {"services": "0", "services.nodeports": "0"})
    create(api, namespace, "services", SERVICE).ok()
    service = f"/api/v1/namespaces/{namespace}/services/x"
    api.merge(service, {"spec": {"type": "NodePort"}}).ok()
    assert api.get(path).ok()["status"]["used"] == {"services": "1", "services.nodeports": "2"}
    third = {"spec": {"ports": [*SERVICE["spec"]["ports"], {"port": 82, "name": "c"}]}}
    shown = (
        "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=2, limited: services.nodeports=2"
    )
    eventually(lambda: api.merge(service, third).code == 403, "the server has seen its own charge")
    assert api.merge(service, third).message == f'services "x" is forbidden: {shown}'


def test_every_quota_of_a_namespace_counts(api: Api, namespace: str) -> None:
    """A request that one quota refuses is charged to none."""
    roomy = quota(api, namespace, {"pods": "5"}, {"pods": "0"})
    quota(api, namespace, {"pods": "1"}, {"pods": "1"}, name="tight", mark="endpoints")
    refused = create(api, namespace, "pods", pod_of())
    assert "exceeded quota: tight" in refused.message
    assert api.get(roomy).ok()["status"]["used"] == {"pods": "0"}
