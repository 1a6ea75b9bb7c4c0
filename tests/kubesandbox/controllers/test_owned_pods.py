"""Deployments, ReplicaSets and Jobs on an API server: from the object to its pods and back to its status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.kubesandbox.controllers.conftest import CLASSES, Cluster

from kubekit.api import codec
from kubekit.api.meta_v1 import NamespacedName, Status, StatusCause, StatusDetails
from kubekit.api.whole_v1 import WholeJob, WholePod, WholeReplicaSet
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden
from kubekit.kube.cache import Cache
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.request import Call, Request
from kubesandbox.controllers import replica_sets_and_jobs as jobs
from kubesandbox.controllers.controller_loop import Attempt, Report, Requeue
from kubesandbox.controllers.owned_pods import DEPLOYMENTS, EVENTS, JOBS, JSON, PODS, REPLICA_SETS
from kubesandbox.controllers.replica_sets_and_jobs import ReplicaSets, deletion_rank, unavailable_for_s

NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
HOLD = "example.com/hold"


def template(image: str, **metadata: Any) -> JSON:
    """A pod's template."""
    spec = {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"labels": {"app": "web"}, **metadata}, "spec": spec}


def deployment(image: str = "example.com/web:1", *, strategy: str = "RollingUpdate", **metadata: Any) -> JSON:
    """The spec of a Deployment of two pods."""
    return {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": strategy},
        "template": template(image, **metadata),
    }


def rolled_out(found: JSON | None) -> bool:
    """As `kubectl rollout status` evaluates it."""
    if found is None:
        return False
    status, wanted = found.get("status") or {}, found["spec"]["replicas"]
    counts = (status.get("updatedReplicas"), status.get("replicas"), status.get("availableReplicas"))
    return status.get("observedGeneration") == found["metadata"]["generation"] and counts == (wanted,) * 3


def reason(found: JSON, type_: str) -> str:
    """Of a condition."""
    conditions = found["status"].get("conditions") or ()
    return next((each["reason"] for each in conditions if each["type"] == type_), "")


async def pods(cluster: Cluster) -> list[JSON]:
    """Every pod, by name."""
    page = await cluster.client.send(calls.list_raw(PODS, cluster.namespace))
    return sorted(page.items, key=lambda pod: str(pod["metadata"]["name"]))


async def patch(cluster: Cluster, name: str, spec: JSON) -> None:
    """Change a Deployment."""
    await cluster.client.send(calls.merge_patch(DEPLOYMENTS, name, {"spec": spec}, cluster.namespace))


async def until_pods(cluster: Cluster, holds: Callable[[list[JSON]], bool]) -> list[JSON]:
    """The pods once `holds` is true of them; the test's time limit is the deadline."""
    while not holds(found := await pods(cluster)):
        await SystemClock().sleep(0.02)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
async def test_a_roll_out(cluster_with_node: Cluster, strategy: str) -> None:
    """New pods of the new template, a new set of the next revision, the old one kept at nothing."""
    cluster = cluster_with_node
    await cluster.create("web", resource=DEPLOYMENTS, spec=deployment(strategy=strategy))
    first = await cluster.until(rolled_out, "web", DEPLOYMENTS)
    assert (reason(first, "Available"), reason(first, "Progressing")) == (
        "MinimumReplicasAvailable", "NewReplicaSetAvailable",
    )  # fmt: skip
    await patch(cluster, "web", {"template": template("example.com/web:2")})
    second = (await cluster.until(rolled_out, "web", DEPLOYMENTS))["metadata"]
    assert second["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert second["generation"] == 2, "the revision is no change of the Deployment"
    images = [pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)]
    assert images == ["example.com/web:2"] * 2
    page = await cluster.client.send(calls.list_raw(REPLICA_SETS, cluster.namespace))
    revisions = {each["metadata"]["annotations"]["deployment.kubernetes.io/revision"]: each for each in page.items}
    assert {number: each["spec"]["replicas"] for number, each in revisions.items()} == {"1": 0, "2": 2}


@pytest.mark.slow
async def test_recreate_starts_when_the_last_old_pod_is_gone(cluster: Cluster) -> None:
    """Its end is noticed, though no ReplicaSet changes with it. Without a node the pods have not ended before."""
    await cluster.create("web", resource=DEPLOYMENTS, spec=deployment(strategy="Recreate", finalizers=[HOLD]))
    await until_pods(cluster, lambda found: len(found) == 2)
    await patch(cluster, "web", {"template": template("example.com/web:2")})
    held = await until_pods(cluster, lambda found: all("deletionTimestamp" in pod["metadata"] for pod in found))
    assert len(held) == 2
    await cluster.settled()
    assert [pod["metadata"]["name"] for pod in await pods(cluster)] == [pod["metadata"]["name"] for pod in held]
    for pod in held:
        await cluster.release(pod["metadata"]["name"], resource=PODS)
    images = ["example.com/web:2"] * 2
    await until_pods(cluster, lambda found: [pod["spec"]["containers"][0]["image"] for pod in found] == images)


@pytest.mark.slow
async def test_scaling(cluster_with_node: Cluster) -> None:
    """Up and down, by the scale subresource as well."""
    cluster = cluster_with_node
    await cluster.create("web", resource=DEPLOYMENTS, spec=deployment())
    await cluster.until(rolled_out, "web", DEPLOYMENTS)
    for replicas in (4, 1, 0):
        scale = {"spec": {"replicas": replicas}}
        await cluster.client.send(calls.merge_patch(DEPLOYMENTS, "web", scale, cluster.namespace, subresource="scale"))
        await until_pods(cluster, lambda found, n=replicas: len(found) == n)


async def test_everything_goes_with_its_deployment(cluster_with_node: Cluster) -> None:
    """In the foreground: the Deployment last."""
    cluster = cluster_with_node
    await cluster.create("web", resource=DEPLOYMENTS, spec=deployment())
    await cluster.until(rolled_out, "web", DEPLOYMENTS)
    await cluster.delete("web", "Foreground", resource=DEPLOYMENTS)
    await cluster.until_gone("web", resource=DEPLOYMENTS)
    assert await pods(cluster) == []


@pytest.mark.slow
async def test_a_pod_that_is_deleted_is_replaced(cluster_with_node: Cluster) -> None:
    """By one of another name."""
    cluster = cluster_with_node
    await cluster.create("web", resource=DEPLOYMENTS, spec=deployment())
    await cluster.until(rolled_out, "web", DEPLOYMENTS)
    first = (await pods(cluster))[0]["metadata"]["name"]
    await cluster.delete(first, resource=PODS)
    found = await until_pods(
        cluster, lambda found: len(found) == 2 and first not in [pod["metadata"]["name"] for pod in found]
    )
    assert len(found) == 2


def failure(found: JSON | None) -> JSON:
    """Condition ReplicaFailure; empty where it does not exist."""
    conditions = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "ReplicaFailure"), {})


@pytest.mark.slow
async def test_a_pod_that_may_not_be_made_is_told_in_the_servers_words(cluster: Cluster) -> None:
    """By the ReplicaSet, and by its Deployment after it; both forget it once the pods are there."""
    spec = deployment()
    spec["template"]["spec"]["priorityClassName"] = "class"
    await cluster.create("web", resource=DEPLOYMENTS, spec=spec)
    above = failure(await cluster.until(failure, "web", DEPLOYMENTS))
    sets = (await cluster.client.send(calls.list_raw(REPLICA_SETS, cluster.namespace))).items
    shown = failure(sets[0])
    assert (shown["status"], shown["reason"]) == (above["status"], above["reason"]) == ("True", "FailedCreate")
    assert shown["message"] == above["message"]
    assert "is forbidden: no PriorityClass with name class was found" in shown["message"]
    assert above["lastTransitionTime"] == above["lastUpdateTime"] == shown["lastTransitionTime"]
    events = (await cluster.client.send(calls.list_raw(EVENTS, cluster.namespace))).items
    (event,) = [each for each in events if each["reason"] == "FailedCreate"][:1]
    assert event["message"].startswith("Error creating: pods ")
    assert (event["involvedObject"]["kind"], event["type"]) == ("ReplicaSet", "Warning")
    await cluster.create("class", resource=CLASSES)
    await until_pods(cluster, lambda found: len(found) == 2)
    await cluster.until(lambda found: found and not failure(found), "web", DEPLOYMENTS)
    assert failure(await cluster.find(sets[0]["metadata"]["name"], REPLICA_SETS)) == {}


async def ends(cluster: Cluster, pod: JSON, phase: str) -> None:
    """The node's part: the pod is over."""
    exit_code = 0 if phase == "Succeeded" else 1
    state = {"terminated": {"exitCode": exit_code, "finishedAt": "2026-01-14T10:00:00Z"}}
    container = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    status = {"status": {"phase": phase, "containerStatuses": [container]}}
    await cluster.client.send(
        calls.merge_patch(PODS, pod["metadata"]["name"], status, cluster.namespace, subresource="status")
    )


def job(**changes: Any) -> JSON:
    """The spec of a Job."""
    made = template("example.com/work:1")
    made["spec"]["restartPolicy"] = "Never"
    return {"template": made, **changes}


@pytest.mark.slow
async def test_a_job_tries_again_until_it_succeeds(cluster: Cluster) -> None:
    """A pod that failed is replaced, and the Job is complete after the first success."""
    await cluster.create("work", resource=JOBS, spec=job())
    (pod,) = await until_pods(cluster, lambda found: len(found) == 1)
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "work"
    await ends(cluster, pod, "Failed")
    both = await until_pods(cluster, lambda found: len(found) == 2)
    (second,) = [each for each in both if each["metadata"]["name"] != pod["metadata"]["name"]]
    await ends(cluster, second, "Succeeded")
    done = await cluster.until(lambda found: found and found["status"].get("completionTime"), "work", JOBS)
    assert (done["status"]["succeeded"], done["status"]["failed"]) == (1, 1)
    assert [reason(done, type_) for type_ in ("SuccessCriteriaMet", "Complete")] == ["CompletionsReached"] * 2


@pytest.mark.slow
async def test_a_job_whose_pod_may_not_be_made(cluster: Cluster) -> None:
    """It is reported once in the server's words; the Job has begun all the same, and its time ends."""
    spec = job(activeDeadlineSeconds=3)
    spec["template"]["spec"]["priorityClassName"] = "class"
    await cluster.create("work", resource=JOBS, spec=spec)
    failed = await cluster.until(lambda found: found and reason(found, "Failed"), "work", JOBS)
    assert reason(failed, "Failed") == "DeadlineExceeded"
    assert failed["status"]["startTime"]
    events = (await cluster.client.send(calls.list_raw(EVENTS, cluster.namespace))).items
    (event,) = [each for each in events if each["reason"] == "FailedCreate"]
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Job", "work")
    assert event["message"].startswith("Error creating: pods ")
    assert "no PriorityClass with name class was found" in event["message"]


async def test_a_job_that_failed_too_often(cluster: Cluster) -> None:
    """Pods that still run are ended."""
    await cluster.create("work", resource=JOBS, spec=job(backoffLimit=0, parallelism=2, completions=2))
    first, second = await until_pods(cluster, lambda found: len(found) == 2)
    await ends(cluster, first, "Failed")
    await cluster.until_gone(second["metadata"]["name"], resource=PODS)
    failed = await cluster.until(lambda found: found and reason(found, "Failed"), "work", JOBS)
    assert [reason(failed, type_) for type_ in ("FailureTarget", "Failed")] == ["BackoffLimitExceeded"] * 2
    assert "completionTime" not in failed["status"]


def job_pod(phase: str, **status: Any) -> WholePod:
    """A pod of a Job."""
    return codec.convert(WholePod, {"metadata": {"name": "p"}, "status": {"phase": phase, **status}})


def failed_at(moment: datetime) -> WholePod:
    """A pod whose container failed then."""
    ended = {"state": {"terminated": {"exitCode": 1, "finishedAt": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}}}
    return job_pod("Failed", containerStatuses=[ended])


def tally(phases: str) -> jobs.Tally:
    """S succeeded, F failed, R running."""
    names = {"S": "Succeeded", "F": "Failed", "R": "Running"}
    return jobs.Tally.of([job_pod(names[letter]) for letter in phases])


def made(started_ago_s: int | None = None, **spec: Any) -> WholeJob:
    """A Job that was started so many seconds ago."""
    start = {} if started_ago_s is None else {"startTime": (NOW - timedelta(seconds=started_ago_s)).isoformat()}
    return codec.convert(WholeJob, {"metadata": {"name": "j"}, "spec": spec, "status": start})


@pytest.mark.parametrize(
    ("found", "phases", "expected"),
    [
        pytest.param(made(completions=1), "", None, id="it has just begun"),
        pytest.param(made(completions=2), "S", None, id="one of two"),
        pytest.param(made(completions=2), "SS", "CompletionsReached", id="two of two"),
        pytest.param(made(), "SR", None, id="a queue of work that goes on"),
        pytest.param(made(), "SS", "CompletionsReached", id="a queue of work at its end"),
        pytest.param(made(completions=1, backoffLimit=1), "F", None, id="as many failures as it may have"),
        pytest.param(made(completions=1, backoffLimit=1), "FF", "BackoffLimitExceeded", id="one failure more"),
        pytest.param(made(9, completions=1, activeDeadlineSeconds=10), "R", None, id="still in time"),
        pytest.param(made(10, completions=1, activeDeadlineSeconds=10), "R", "DeadlineExceeded", id="too late"),
        pytest.param(
            made(99, completions=1, activeDeadlineSeconds=10, suspend=True), "", None, id="late, yet suspended"
        ),
    ],
)
def test_how_a_job_ends(found: WholeJob, phases: str, expected: str | None) -> None:
    """By success, by its back-off limit, or by its deadline."""
    outcome = jobs.final_condition(found, tally(phases), NOW)
    assert (outcome.reason if outcome else None) == expected


@pytest.mark.parametrize(
    ("found", "phases", "expected"),
    [
        pytest.param(made(completions=5, parallelism=2), "", 2, id="as many as may run at once"),
        pytest.param(made(completions=5, parallelism=2), "SSSS", 1, id="no more than are needed"),
        pytest.param(made(parallelism=3), "RR", 3, id="a queue of work"),
        pytest.param(made(parallelism=3), "SR", 1, id="a queue of work after its first success"),
        pytest.param(made(completions=5, suspend=True), "RR", 0, id="suspended"),
    ],
)
def test_how_many_pods_a_job_has(found: WholeJob, phases: str, expected: int) -> None:
    """At this moment."""
    assert jobs.pods_to_run(found, tally(phases)) == expected


@pytest.mark.parametrize(
    ("failures", "ago_s", "expected"), [(1, 0, 10), (1, 4, 6), (3, 0, 40), (9, 0, 600), (1, 11, 0)]
)
def test_how_long_a_job_waits_after_failures(failures: int, ago_s: int, expected: int) -> None:
    """10 s doubling to 10 minutes, since the last one."""
    seen = jobs.Tally.of([failed_at(NOW - timedelta(seconds=ago_s))] * failures)
    assert jobs.backoff_s(seen, NOW) == expected


def serving(
    name: str, *, ready_ago_s: int | None = 60, restarts: int = 0, cost: str = "0", node: str = "n"
) -> WholePod:
    """A pod of a ReplicaSet that is too large."""
    time = (NOW - timedelta(seconds=ready_ago_s or 0)).isoformat()
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": time}
    status = {
        "phase": "Running", "conditions": [ready] if ready_ago_s is not None else [],
        "containerStatuses": [{"restartCount": restarts}],
    }  # fmt: skip
    metadata = {"name": name, "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}
    return codec.convert(WholePod, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def test_which_pods_go_first() -> None:
    """Without a node, not started, not ready, cheap, new, often restarted; the rest stays."""
    pending = job_pod("Pending")
    dear_to_cheap = [
        serving("old"), serving("restarted", restarts=3), serving("new", ready_ago_s=5), serving("cheap", cost="-1"),
        serving("not-ready", ready_ago_s=None), serving("no-node", node=""), pending,
    ]  # fmt: skip
    mixed = dear_to_cheap[::2] + dear_to_cheap[1::2]
    assert sorted(mixed, key=deletion_rank, reverse=True) == dear_to_cheap


@pytest.mark.parametrize(("ready_ago_s", "expected"), [(5, 25), (30, 0), (None, 0)])
def test_availability_takes_its_time(ready_ago_s: int | None, expected: float) -> None:
    """minReadySeconds 30; a pod that is not ready waits for something else."""
    assert unavailable_for_s(serving("p", ready_ago_s=ready_ago_s), 30, NOW) == expected


@pytest.mark.parametrize(
    ("phases", "shown"),
    [
        pytest.param("SR", ["SuccessCriteriaMet"], id="certain, and one still runs"),
        pytest.param("SF", ["SuccessCriteriaMet", "Complete"], id="nothing runs any longer"),
    ],
)
def test_an_outcome_is_told_twice(phases: str, shown: list[str]) -> None:
    """When it is certain, and when all of it is over."""
    found = made(completions=1)
    seen = tally(phases)
    status = jobs.job_status(found, seen, jobs.final_condition(found, seen, NOW), NOW)
    assert [each["type"] for each in status["conditions"]] == shown
    assert bool(status["completionTime"]) is (len(shown) == 2)


ENDING = Forbidden(
    Status(code=403, details=StatusDetails(causes=(StatusCause(reason="NamespaceTerminating"),))),
    Request(method="POST", path="/"),
)
FULL = Forbidden(Status(code=403, message="full"), Request(method="POST", path="/"))
OF_A_NAMESPACE: JSON = {"metadata": {"name": "o", "namespace": "ns", "uid": "o"}}


def tried(controller: Any, refused: Forbidden) -> tuple[int, int, Forbidden | None]:
    """How many pods a controller asks for, how many Events it writes, and its error, if each pod is refused."""
    attempts = events = 0
    try:
        for step in controller.calls(NamespacedName("ns", "o")):
            events += isinstance(step, Report)
            if isinstance(step, Attempt):
                attempts, step.refused = attempts + 1, refused
    except Forbidden as error:
        return attempts, events, error
    return attempts, events, None


@pytest.mark.parametrize("kind", [WholeJob, WholeReplicaSet])
def test_in_a_namespace_that_ends_nobody_asks_again(kind: Any) -> None:
    """The owner ends with it: no Event, no error, as in Kubernetes. Any other refusal is reported and retried."""
    count = {"parallelism": 2, "completions": 2} if kind is WholeJob else {"replicas": 2}
    cache: Cache[Any] = Cache(kind)
    cache.replace([codec.convert(kind, {**OF_A_NAMESPACE, "spec": {"template": {}, **count}})], "1")
    make = jobs.Jobs if kind is WholeJob else ReplicaSets
    assert tried(make(cache, Cache(WholePod), ManualClock(NOW)), ENDING) == (1, 0, None)
    assert tried(make(cache, Cache(WholePod), ManualClock(NOW)), FULL) == (1, 1, FULL)


def test_a_job_goes_when_its_time_to_live_is_over() -> None:
    """Counted from its end."""
    over = {"type": "Complete", "status": "True", "lastTransitionTime": (NOW - timedelta(seconds=30)).isoformat()}
    for ttl, expected in ((60, 30.0), (30, None)):
        found = codec.convert(
            WholeJob,
            {
                "metadata": {"name": "j", "namespace": "ns"},
                "spec": {"completions": 1, "ttlSecondsAfterFinished": ttl},
                "status": {"conditions": [over]},
            },
        )
        cache: Cache[WholeJob] = Cache(WholeJob)
        cache.replace([found], "1")
        controller = jobs.Jobs(cache, Cache(WholePod), ManualClock(NOW))
        steps = list(controller.calls(NamespacedName("ns", "j")))
        waits = [step.after_s for step in steps if isinstance(step, Requeue)]
        deleted = [step for step in steps if isinstance(step, Call) and step.request.method == "DELETE"]
        assert (waits, len(deleted)) == (([expected], 0) if expected else ([], 1))


async def test_a_deleted_pod_ends_before_it_is_removed(cluster_with_node: Cluster) -> None:
    """A kubelet reports the end of the containers first; clients wait for Ready=False. The finalizer keeps the pod."""
    spec = {"containers": [{"name": "c", "image": "registry.example/c"}]}
    await cluster_with_node.create("p", resource=PODS, finalizers=["example.com/kept"], spec=spec)
    await cluster_with_node.until(lambda pod: pod and pod["status"]["phase"] == "Running", "p", PODS)
    await cluster_with_node.delete("p", resource=PODS)
    pod = await cluster_with_node.until(lambda pod: pod and pod["status"]["phase"] != "Running", "p", PODS)
    ready = next(each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    assert (pod["status"]["phase"], ready["status"], ready["reason"]) == ("Succeeded", "False", "PodCompleted")
    assert "terminated" in pod["status"]["containerStatuses"][0]["state"]
    await cluster_with_node.release("p", resource=PODS)
    await cluster_with_node.until_gone("p", resource=PODS)
