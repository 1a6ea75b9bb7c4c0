"""Events of controllers and of the node. Reasons and messages are those of Kubernetes 1.34 (see each row's source)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.clocks import ManualClock
from tests.kubesandbox.controllers.conftest import Cluster
from tests.kubesandbox.controllers.test_owned_pods import NOW

from kubekit.api import codec
from kubekit.api.whole_v1 import WholeJob
from kubekit.kube import calls
from kubesandbox.controllers.owned_pods import DEPLOYMENTS, EVENTS, JOBS, reporter
from kubesandbox.controllers.replica_sets_and_jobs import job_events

JSON = dict[str, Any]
CONTAINER = {"name": "c", "image": "example.com/web:1"}


def condition(type_: str, reason: str, message: str, status: str = "True") -> JSON:
    """Returns a condition of a Job."""
    return {"type": type_, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("current", "new", "expected"),
    [
        pytest.param([], [condition("Complete", "CompletionsReached", "m")], [("Completed", "Job completed")]),
        pytest.param([], [condition("Failed", "DeadlineExceeded", "m")], [("DeadlineExceeded", "m")]),
        pytest.param([], [condition("Suspended", "JobSuspended", "Job suspended")], [("Suspended", "Job suspended")]),
        pytest.param(
            [condition("Suspended", "JobSuspended", "Job suspended")],
            [condition("Suspended", "JobResumed", "Job resumed", "False")],
            [("Resumed", "Job resumed")],
        ),
        pytest.param([condition("Complete", "r", "m")], [condition("Complete", "r", "m")], []),
    ],
)
def test_a_job_reports_a_new_condition(current: list[JSON], new: list[JSON], expected: list[Any]) -> None:
    """Once (pkg/controller/job/job_controller.go, lines 1042, 1050, 1531 and 1534)."""
    job = codec.convert(WholeJob, {"metadata": {"name": "j"}, "status": {"conditions": current}})
    assert list(job_events(job, {"conditions": new})) == expected


@pytest.mark.parametrize(("reason", "type_"), [("Completed", "Normal"), ("BackoffLimitExceeded", "Warning")])
def test_an_event_names_its_controller(reason: str, type_: str) -> None:
    """As `source` and as `reportingComponent` (the recorder of client-go)."""
    job = codec.convert(WholeJob, {"metadata": {"name": "j", "namespace": "ns"}})
    body = codec.decode(
        dict, reporter(job, JOBS, "job-controller", ManualClock(NOW).now())(reason, "m").call.request.body
    )
    assert (body["type"], body["source"], body["reportingComponent"]) == (
        type_,
        {"component": "job-controller"},
        "job-controller",
    )


async def events(cluster: Cluster) -> set[tuple[str, str, str]]:
    """Returns component, reason and message of all Events; names of pods are replaced."""
    answer = await cluster.client.send(calls.list_raw(EVENTS, cluster.namespace, limit=0))
    found = set()
    for event in answer.items:
        name = event["involvedObject"]["name"] if event["involvedObject"]["kind"] == "Pod" else ""
        message = event["message"].replace(name, "POD") if name else event["message"].rpartition(":")[0]
        found.add((event["source"]["component"], event["reason"], message or event["message"]))
    return found


@pytest.mark.slow
async def test_a_deployment_and_its_pod_have_events(cluster_with_node: Cluster) -> None:
    """From the size of its set to the start of its container."""
    cluster, labels = cluster_with_node, {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await cluster.create("web", resource=DEPLOYMENTS, spec=spec)

    def is_available(found: JSON | None) -> bool:
        return ((found or {}).get("status") or {}).get("availableReplicas") == 1

    await cluster.until(is_available, "web", DEPLOYMENTS)
    expected = {
        ("replicaset-controller", "SuccessfulCreate", "Created pod"),
        ("default-scheduler", "Scheduled", f"Successfully assigned {cluster.namespace}/POD to node-0"),
        ("kubelet", "Pulled", 'Container image "example.com/web:1" already present on machine'),
        ("kubelet", "Created", "Created container: c"),
        ("kubelet", "Started", "Started container c"),
    }
    found = await events(cluster)
    assert expected <= found
    (scaled,) = [message for _, reason, message in found if reason == "ScalingReplicaSet"]
    assert scaled.startswith("Scaled up replica set web-") and scaled.endswith(" from 0 to 1")
