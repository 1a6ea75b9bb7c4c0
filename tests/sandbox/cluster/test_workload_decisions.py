"""What the controllers decide, from caches that tests fill: roll-outs, jobs, binding, budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runup.api import codec
from runup.api.meta_v1 import NamespacedName
from runup.api.whole_v1 import WholeDeployment, WholeJob, WholeNode, WholePod, WholeReplicaSet
from runup.api.workloads_v1 import PodDisruptionBudget
from runup.kube.cache import Cache
from runup.kube.clock import ManualClock
from runup.sandbox.controllers import upkeep, workloads

JSON = dict[str, Any]
KEY = NamespacedName("ns", "web")
TEMPLATE: JSON = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:2"}]}}
OLD: JSON = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
READY: JSON = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def cache(kind: Any, *objects: JSON) -> Any:
    """A cache of these objects."""
    made = Cache(kind)
    made.replace([codec.convert(kind, obj) for obj in objects], "1")
    return made


def meta(name: str, owner: str = "", **more: Any) -> JSON:
    """Metadata whose uid is the name, owned by the object of that name."""
    owners = [{"apiVersion": "v1", "kind": "x", "name": owner, "uid": owner, "controller": True}] if owner else []
    return {"name": name, "namespace": "ns", "uid": name, "ownerReferences": owners, **more}


def sent(calls: Any) -> list[tuple[str, str, JSON]]:
    """Method, last part of the path and body of each call."""
    return [(c.request.method, c.request.path.split("/ns/")[-1], json.loads(c.request.body or b"{}")) for c in calls]


def replica_set(name: str, template: JSON, replicas: int, ready: int) -> JSON:
    """A ReplicaSet of the Deployment `web`."""
    labels = {workloads.HASH_LABEL: workloads.template_hash(template)}
    status = {"replicas": ready, "readyReplicas": ready, "observedGeneration": 1}
    spec = {"replicas": replicas, "selector": {}, "template": template}
    return {"metadata": meta(name, "web", labels=labels, generation=1), "spec": spec, "status": status}


def rolled(strategy: str, sets: list[JSON], pods: list[JSON]) -> list[tuple[str, str, JSON]]:
    """What is done about ReplicaSets for a Deployment of two pods."""
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
        "strategy": {"type": strategy},
    }
    deployments = cache(WholeDeployment, {"metadata": meta("web", generation=1), "spec": spec})
    controller = workloads.Deployments(
        deployments, cache(WholeReplicaSet, *sets), cache(WholePod, *pods), ManualClock()
    )
    return [call for call in sent(controller.calls(KEY)) if call[1].startswith("replicasets")]


def test_a_new_deployment_gets_a_replica_set() -> None:
    """Of its size."""
    ((method, path, body),) = rolled("RollingUpdate", [], [])
    assert (method, path, body["spec"]["replicas"]) == ("POST", "replicasets", 2)


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    """First the old set goes to nothing; nothing new while one of its pods is left."""
    pods = [{"metadata": meta("p", "old"), "status": READY}]
    assert rolled("Recreate", [replica_set("old", OLD, 2, 1)], pods) == [
        ("PATCH", "replicasets/old", {"spec": {"replicas": 0}})
    ]
    assert rolled("Recreate", [replica_set("old", OLD, 0, 0)], pods) == []
    assert [call[0] for call in rolled("Recreate", [replica_set("old", OLD, 0, 0)], [])] == ["POST"]


@pytest.mark.parametrize(("ready", "calls"), [(1, []), (2, [("PATCH", "replicasets/old", {"spec": {"replicas": 0}})])])
def test_a_rolling_update_keeps_the_old_until_the_new_is_ready(ready: int, calls: list[Any]) -> None:
    """Old pods serve until then."""
    sets = [replica_set("old", OLD, 2, 2), replica_set("new", TEMPLATE, 2, ready)]
    assert rolled("RollingUpdate", sets, []) == calls


@pytest.mark.parametrize(
    ("phases", "limit", "condition"),
    [
        pytest.param(["Succeeded"], 6, "Complete", id="one success"),
        pytest.param(["Failed", "Failed"], 1, "Failed", id="too many failures"),
        pytest.param(["Failed"], 1, "", id="it tries again"),
    ],
)
def test_jobs_end(phases: list[str], limit: int, condition: str) -> None:
    """By success, or by the back-off limit; before that another pod is made."""
    spec = {"completions": 1, "parallelism": 1, "backoffLimit": limit, "template": TEMPLATE}
    pods = [{"metadata": meta(f"p{n}", "web"), "status": {"phase": phase}} for n, phase in enumerate(phases)]
    controller = workloads.Jobs(
        cache(WholeJob, {"metadata": meta("web"), "spec": spec}), cache(WholePod, *pods), ManualClock()
    )
    calls = sent(controller.calls(KEY))
    told = [c["type"] for *_, body in calls for c in body.get("status", {}).get("conditions") or ()]
    assert told == ([condition] if condition else [])
    assert any(method == "POST" for method, *_ in calls) is not bool(condition)


@pytest.mark.parametrize(
    ("pod", "node", "fits"),
    [
        pytest.param({}, {}, True, id="anything fits anywhere"),
        pytest.param({"nodeSelector": {"zone": "a"}}, {"labels": {"zone": "b"}}, False, id="another label"),
        pytest.param({}, {"unschedulable": True}, False, id="a cordoned node"),
        pytest.param({}, {"taints": [{"key": "k", "effect": "NoSchedule"}]}, False, id="a taint"),
        pytest.param({}, {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}, True, id="a taint that only asks"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, {"taints": [{"key": "k", "effect": "NoExecute"}]}, True,
            id="everything is tolerated",
        ),
    ],
)  # fmt: skip
def test_where_a_pod_fits(pod: JSON, node: JSON, *, fits: bool) -> None:
    """Selector, taints and cordon count."""
    labels = node.pop("labels", {}) if "labels" in node else {}
    made = codec.convert(WholeNode, {"metadata": {"name": "n", "labels": labels}, "spec": node})
    assert upkeep.fits(codec.convert(WholePod, {"metadata": meta("p"), "spec": pod}), made) is fits


def test_a_budget_counts_its_ready_pods() -> None:
    """Two of three are ready and two must be: nothing may go."""
    budget = codec.convert(
        PodDisruptionBudget,
        {"metadata": meta("b"), "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}},
    )
    labels = {"app": "web"}
    pods = [
        {"metadata": meta(f"p{n}", labels=labels), "status": READY if n else {"phase": "Running"}} for n in range(3)
    ]
    status = upkeep.budget_status(budget, [codec.convert(WholePod, pod) for pod in pods])
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (3, 2, 0)
