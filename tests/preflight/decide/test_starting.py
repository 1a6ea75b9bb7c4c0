"""Why a target does not start: the objects as Kubernetes' controllers, scheduler and kubelet write them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.clusterversion.decide.test_preflight import started
from tests.clusterversion.decide.world import World, risk

from kubekit.api import codec
from kubekit.api.core_v1 import Event, Pod
from kubekit.api.meta_v1 import Condition
from kubekit.api.workloads_v1 import Deployment
from runup.preflight.decide import preflight_deployment
from runup.preflight.decide.start_failures import REPORT_AFTER_S

NAMESPACE = "openshift-cluster-version-operator"
NODE = "master-0"
QUOTA = (
    'pods "cluster-version-operator-preflight-6f9d8c5b7-x2x7k" is forbidden: exceeded quota: small, '
    "requested: limits.memory=512Mi, used: limits.memory=0, limited: limits.memory=256Mi"
)
NO_NODE = (
    "0/6 nodes are available: 1 Insufficient cpu, 5 node(s) didn't match Pod's node affinity/selector. "
    "preemption: 0/6 nodes are available: 1 No preemption victims found for incoming pod, "
    "5 Preemption is not helpful for scheduling."
)
OUT_OF_CPU = "Pod was rejected: Node didn't have enough resource: cpu, requested: 10, used: 3495, capacity: 3500"
EVICTED = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 71344Ki. Container "
    "cluster-version-operator-preflight was using 481Mi, request is 50Mi, has larger consumption of memory."
)
MOUNT = (
    'MountVolume.SetUp failed for volume "report" : hostPath type check failed: '
    "/etc/cvo/preflight/preflight-2-0123456789 is not a directory"
)
SANDBOX = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create pod network sandbox: "
    "no CNI configuration file in /etc/kubernetes/cni/net.d/. Has your network provider started?"
)


def pod_yaml(status: str, *, name: str = "cluster-version-operator-preflight-6f9d8c5b7-x2x7k", node: str = NODE) -> str:
    """A pod of the Deployment, as YAML; `status` as kubectl shows it."""
    return f"""
metadata: {{name: {name}, namespace: {NAMESPACE}, uid: uid-{name}, labels: {{app: cluster-version-operator-preflight}}}}
spec: {{nodeName: "{node}"}}
status:
{status}
"""


PENDING = pod_yaml("""
  phase: Pending
  conditions:
  - {type: PodReadyToStartContainers, status: "False"}
  - {type: Initialized, status: "True"}
  - {type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [x]"}
  - {type: PodScheduled, status: "True"}
  containerStatuses:
  - name: cluster-version-operator-preflight
    state: {waiting: {reason: ContainerCreating}}
""")
UNSCHEDULABLE = pod_yaml(
    f"""
  phase: Pending
  conditions:
  - type: PodScheduled
    status: "False"
    reason: Unschedulable
    message: "{NO_NODE}"
""",
    node="",
)
FAILED = {
    "OutOfcpu": pod_yaml(f'  phase: Failed\n  reason: OutOfcpu\n  message: "{OUT_OF_CPU}"'),
    "Evicted": pod_yaml(f'  phase: Failed\n  reason: Evicted\n  message: "{EVICTED}"'),
    "UnexpectedAdmissionError": pod_yaml(
        '  phase: Failed\n  reason: UnexpectedAdmissionError\n  message: "Pod was rejected: Allocate failed due to '
        'no healthy devices present; cannot allocate unhealthy devices x, which is unexpected"'
    ),
}
PULL = pod_yaml("""
  phase: Pending
  conditions: [{type: PodScheduled, status: "True"}]
  containerStatuses:
  - name: cluster-version-operator-preflight
    state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x@sha256:52"'}}
""")
RUNNING = pod_yaml("""
  phase: Running
  conditions: [{type: PodScheduled, status: "True"}]
  containerStatuses:
  - name: cluster-version-operator-preflight
    state: {running: {startedAt: "2026-01-14T10:00:02Z"}}
""")


def event(reason: str, message: str, *, kind: str = "Pod", name: str = "", after_s: float = 1) -> str:
    """A Warning event about the pod, or another object, as YAML."""
    name = name or "cluster-version-operator-preflight-6f9d8c5b7-x2x7k"
    return f"""
metadata: {{name: {name}.{reason}, namespace: {NAMESPACE}}}
involvedObject: {{kind: {kind}, namespace: {NAMESPACE}, name: {name}, uid: uid-{name}}}
type: Warning
reason: {reason}
message: {message!r}
count: 2
lastTimestamp: "2026-01-14T10:00:{int(after_s):02d}Z"
"""


def at(world: World, seconds: float, *objects: str) -> World:
    """The cluster `seconds` after the Deployment was made, with those pods and events."""
    parsed = [yaml.safe_load(text) for text in objects]
    for each in parsed:
        each["metadata"].setdefault("creationTimestamp", f"{world.now:%Y-%m-%dT%H:%M:%SZ}")
    pods = tuple(codec.convert(Pod, each) for each in parsed if "involvedObject" not in each)
    events = tuple(codec.convert(Event, each) for each in parsed if "involvedObject" in each)
    return world.change(pods=pods, warnings=events).pass_time(seconds).settle()


def refused(world: World, type_: str, reason: str, message: str) -> World:
    """The Deployment with a condition as its controller writes it."""
    found = world.observed.deployment
    assert found is not None
    status = "False" if type_ == "Progressing" else "True"
    said = (Condition(type=type_, status=status, reason=reason, message=message),)
    changed: Deployment = codec.convert(Deployment, codec.to_dict(found) | {"status": {"conditions": []}})
    from msgspec.structs import replace

    return world.change(deployment=replace(changed, status=replace(changed.status, conditions=said)))


WORDS: list[Any] = [
    pytest.param([UNSCHEDULABLE], "Unschedulable", NO_NODE, id="no node takes the pod"),
    pytest.param([FAILED["OutOfcpu"]], "OutOfcpu", OUT_OF_CPU, id="its node has no room when it arrives"),
    pytest.param([FAILED["Evicted"]], "Evicted", EVICTED, id="its node ran out of memory"),
    pytest.param(
        [FAILED["UnexpectedAdmissionError"]], "UnexpectedAdmissionError", "no healthy devices", id="its node refuses it"
    ),
    pytest.param([PENDING, event("FailedMount", MOUNT)], "FailedMount", MOUNT, id="a volume cannot be mounted"),
    pytest.param(
        [PENDING, event("FailedCreatePodSandBox", SANDBOX)],
        "FailedCreatePodSandBox",
        SANDBOX,
        id="the node has no network",
    ),
    pytest.param([PULL], "ImagePullFailed", "Back-off pulling image", id="the image cannot be pulled"),
    pytest.param(
        [
            event(
                "FailedCreate",
                f"Error creating: {QUOTA}",
                kind="ReplicaSet",
                name=f"{preflight_deployment.NAME}-6f9d8c5b7",
            )
        ],
        "FailedCreate",
        QUOTA,
        id="a quota, in the events of the ReplicaSet alone",
    ),
]


@pytest.mark.parametrize(("objects", "reason", "words"), WORDS)
def test_within_ten_seconds_it_says(objects: list[str], reason: str, words: str) -> None:
    """The reason, and the words of whoever refuses; it is tried again, so the Deployment stays."""
    world = at(started(), 9, *objects)
    assert world.condition("PreflightFailed") == ("True", reason)
    assert world.condition("PreflightRunning") == ("True", reason)
    assert words.rstrip(".") in world.message("PreflightFailed")
    assert world.observed.deployment is not None


def older(text: str) -> str:
    """The pod, made a minute before the others and of a name that sorts behind theirs."""
    return text.replace("x2x7k", "zzzzz").replace("labels:", 'creationTimestamp: "2026-01-14T09:59:00Z", labels:')


REPLICA_SET = f"{preflight_deployment.NAME}-6f9d8c5b7"
AT_WORK = 'pods "x" is forbidden: exceeded quota: large'
NEWEST: list[Any] = [
    pytest.param([FAILED["Evicted"], older(FAILED["OutOfcpu"])], "Evicted", EVICTED, id="of two pods that failed"),
    pytest.param(
        [PENDING, older(PENDING), event("FailedMount", MOUNT), event("FailedCreatePodSandBox", SANDBOX, after_s=3)],
        "FailedCreatePodSandBox",
        SANDBOX,
        id="of two events, and of two pods that wait",
    ),
    pytest.param(
        [
            event("FailedCreate", f"Error creating: {QUOTA}", kind="ReplicaSet", name=REPLICA_SET, after_s=4),
            event("FailedCreate", f"Error creating: {AT_WORK}", kind="ReplicaSet", name=REPLICA_SET, after_s=2),
        ],
        "FailedCreate",
        QUOTA,
        id="of two refusals",
    ),
    pytest.param(
        [PENDING, event("FailedMount", MOUNT), event("BackOff", "it waits", after_s=5)],
        "FailedMount",
        MOUNT,
        id="but for what the container's state tells better",
    ),
    pytest.param(
        [UNSCHEDULABLE, older(FAILED["OutOfcpu"])],
        "Unschedulable",
        NO_NODE,
        id="of a pod that failed and one that waits",
    ),
]


@pytest.mark.parametrize(("objects", "reason", "words"), NEWEST)
def test_the_newest_says_it(objects: list[str], reason: str, words: str) -> None:
    """What was the matter before is no news."""
    world = at(started(), 9, *objects)
    assert world.condition("PreflightFailed") == ("True", reason)
    assert words.rstrip(".") in world.message("PreflightFailed")


NOBODY: list[Any] = [
    pytest.param(event("FailedCreate", QUOTA, kind="ReplicaSet", name="another-6f9d8c5b7"), id="another Deployment's"),
    pytest.param(event("FailedCreate", QUOTA, kind="StatefulSet", name=REPLICA_SET), id="another kind's"),
    pytest.param(event("FailedDelete", QUOTA, kind="ReplicaSet", name=REPLICA_SET), id="another reason"),
    pytest.param(
        event("FailedCreate", QUOTA, kind="ReplicaSet", name=REPLICA_SET).replace("10:00:01Z", "09:59:59Z"),
        id="one of the preflight before",
    ),
]


@pytest.mark.parametrize("said", NOBODY)
def test_that_no_pod_is_made_is_not_explained_by(said: str) -> None:
    """It only takes long, and says so."""
    world = at(started(), 9, said)
    assert world.condition("PreflightFailed") == ("False", "AsExpected")
    assert "nobody says why" in world.message("PreflightRunning")


REFUSED: list[Any] = [
    pytest.param("ReplicaFailure", "FailedCreate", QUOTA, id="a quota"),
    pytest.param(
        "ReplicaFailure",
        "FailedCreate",
        'pods "x-" is forbidden: error looking up service account ns/x: serviceaccount "x" not found',
        id="no such account",
    ),
    pytest.param(
        "ReplicaFailure",
        "FailedCreate",
        'pods "x-" is forbidden: unable to validate against any security context constraint: [...]',
        id="security context constraints",
    ),
    pytest.param(
        "Progressing",
        "ReplicaSetCreateError",
        'Failed to create new replica set "x-1": replicasets.apps "x-1" is forbidden: exceeded quota: sets',
        id="not even a ReplicaSet",
    ),
]


@pytest.mark.parametrize(("type_", "reason", "words"), REFUSED)
def test_no_pod_is_made_because_of(type_: str, reason: str, words: str) -> None:
    """What the ReplicaSet was reported is on the Deployment, and is reported at once."""
    world = refused(started(), type_, reason, words).pass_time(1).settle()
    assert world.condition("PreflightFailed") == ("True", reason)
    assert words in world.message("PreflightFailed")


def test_what_heals_is_forgotten() -> None:
    """The node finds room: the pod starts, and the condition of before goes."""
    world = at(started(), 9, UNSCHEDULABLE)
    assert world.condition("PreflightFailed") == ("True", "Unschedulable")
    at(world, 1, RUNNING)
    assert world.condition("PreflightFailed") == ("False", "AsExpected")
    world.report(risk("Found")).settle()
    assert world.condition("PreflightCompleted") == ("True", "RisksFound")


QUIET: list[Any] = [
    pytest.param([RUNNING, event("FailedMount", MOUNT)], 9, id="a mount failed once, and the container runs"),
    pytest.param([PENDING, event("FailedMount", MOUNT)], 2, id="a mount that is tried again in a moment"),
    pytest.param(
        [PENDING, event("FailedMount", MOUNT, name="cluster-version-operator-abc")], 2, id="another pod's event"
    ),
    pytest.param(
        [PENDING, event("FailedMount", MOUNT, name="cluster-version-operator-abc")], 9, id="another pod's, for long"
    ),
    pytest.param([FAILED["Evicted"], RUNNING.replace("x2x7k", "new")], 9, id="another pod took its place"),
    pytest.param(
        [RUNNING, event("FailedCreate", QUOTA, kind="ReplicaSet", name=f"{preflight_deployment.NAME}-6f9d8c5b7")],
        9,
        id="a quota that had room later",
    ),
]


@pytest.mark.parametrize(("objects", "seconds"), QUIET)
def test_nothing_is_the_matter_where(objects: list[str], seconds: float) -> None:
    """What is over, of somebody else, or younger than a second try is no failure."""
    world = at(started(), seconds, *objects)
    assert world.condition("PreflightFailed") == ("False", "AsExpected")


SLOW: list[Any] = [
    pytest.param([PENDING], "is being set up on node master-0 since 2026-01-14T10:00:00Z", id="a large image"),
    pytest.param([], "no pod of it was made since 2026-01-14T10:00:00Z", id="nobody makes a pod"),
]


@pytest.mark.parametrize(("objects", "words"), SLOW)
def test_what_only_takes_long_says_since_when(objects: list[str], words: str) -> None:
    """It is no failure, is said once and not at every pass, and a pass comes in time to say it."""
    world = at(started(), 0, *objects)
    assert world.plans[-1].requeue_after_s == REPORT_AFTER_S
    assert world.condition("PreflightRunning") == ("True", "TargetStarting")
    at(world, 0, *objects)
    world.pass_time(REPORT_AFTER_S).settle()
    assert world.condition("PreflightRunning") == ("True", "TargetPending")
    assert world.condition("PreflightFailed") == ("False", "AsExpected")
    assert words in world.message("PreflightRunning")
    world.log.clear()
    world.pass_time(60).settle()
    assert "patch status" not in world.log


def test_the_time_limit_names_what_it_waited_for() -> None:
    """After ten minutes without room the condition still has the scheduler's words."""
    world = at(started(), 600, UNSCHEDULABLE)
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")
    assert "1 Insufficient cpu" in world.message("PreflightFailed")


def test_words_without_end_are_cut_at_their_end() -> None:
    """An admission webhook may say a megabyte; the beginning says what it is about."""
    world = refused(started(), "ReplicaFailure", "FailedCreate", "denied: " + "x" * 10**6).settle()
    assert "denied: xxx" in world.message("PreflightFailed")
    assert len(world.message("PreflightFailed")) < 1000
