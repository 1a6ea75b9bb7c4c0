"""Why a target does not start, at its edges: seconds, lengths, and reasons that no condition may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.factories import NOW, iso_before

from kubekit.api import codec
from kubekit.api.core_v1 import Event, Pod
from kubekit.api.workloads_v1 import Deployment, Job
from runup.preflight.decide.start_failures import Trouble, active_pod, cut, find_trouble, look_again_s, trouble_of_job

NAME = "cvo-preflight"
# Its pod was available until a minute ago.
LOST_POD = {"type": "Available", "status": "False", "lastTransitionTime": iso_before(60)}
Found = Callable[[], Trouble | None]


def deployment(*conditions: dict[str, str], age_s: float = 60) -> Deployment:
    """The Deployment with what its controller says."""
    made = {"metadata": {"name": NAME, "creationTimestamp": iso_before(age_s)}}
    return codec.convert(Deployment, made | {"status": {"conditions": list(conditions)}})


def aged_pod(
    name: str = "one", *, age_s: float = 60, node: str = "", going: bool = False, going_s: float = 1, **status: Any
) -> Pod:
    """A pod of that name and age; `going`: its grace period ended `going_s` seconds ago."""
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": iso_before(age_s)}
    metadata |= {"deletionTimestamp": iso_before(going_s)} if going else {}
    return codec.convert(Pod, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def container(**status: Any) -> dict[str, Any]:
    """The state of a pod's container."""
    return {"containerStatuses": [{"name": "c", "restartCount": 0, **status}]}


def event(
    reason: str, message: str = "why", *, of: str = "uid-one", kind: str = "Pod", name: str = "one", age_s: float = 5
) -> Event:
    """A Warning about a pod, or another object."""
    about = {"kind": kind, "name": name, "uid": of}
    said = {
        "reason": reason,
        "message": message,
        "lastTimestamp": iso_before(age_s),
        "metadata": {"name": f"{name}.{reason}"},
    }
    return codec.convert(Event, {"involvedObject": about, **said})


def trouble_of(*pods: Pod, events: tuple[Event, ...] = (), of: Deployment | None = None) -> Found:
    """What is the matter, for anybody who asks."""
    return lambda: find_trouble(of or deployment(), pods, events, name=NAME, now=NOW)


def refused(type_: str, status: str, reason: str) -> Deployment:
    """A Deployment with one condition."""
    return deployment({"type": type_, "status": status, "reason": reason, "message": "quota"})


PENDING = "TargetPending"
REASONS: dict[str, tuple[Found, str]] = {
    "the ReplicaSet is refused": (trouble_of(of=refused("ReplicaFailure", "True", "FailedCreate")), "FailedCreate"),
    "it was refused once": (trouble_of(of=refused("ReplicaFailure", "False", "FailedCreate")), PENDING),
    "its reason is none that a condition may have": (
        trouble_of(of=refused("ReplicaFailure", "True", "not a reason")),
        "FailedCreate",
    ),
    "its reason is as long as one may be": (trouble_of(of=refused("ReplicaFailure", "True", "R" * 100)), "R" * 100),
    "its reason is a character longer": (trouble_of(of=refused("ReplicaFailure", "True", "R" * 101)), "FailedCreate"),
    "not even a ReplicaSet": (
        trouble_of(of=refused("Progressing", "False", "ReplicaSetCreateError")),
        "ReplicaSetCreateError",
    ),
    "a ReplicaSet could not be made once": (
        trouble_of(of=refused("Progressing", "True", "ReplicaSetCreateError")),
        PENDING,
    ),
    "it progresses no more for another reason": (
        trouble_of(of=refused("Progressing", "False", "ProgressDeadlineExceeded")),
        PENDING,
    ),
    "a pod was thrown out": (trouble_of(aged_pod(phase="Failed", reason="Evicted")), "Evicted"),
    "a pod was thrown out for no reason": (trouble_of(aged_pod(phase="Failed")), "PodFailed"),
    "no node is shown": (
        trouble_of(aged_pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])),
        "Unschedulable",
    ),
    "a node was found after all": (
        trouble_of(aged_pod(conditions=[{"type": "PodScheduled", "status": "True", "reason": "Unschedulable"}])),
        PENDING,
    ),
    "it is held back by a gate": (
        trouble_of(aged_pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}])),
        PENDING,
    ),
    "an event of it": (trouble_of(aged_pod(), events=(event("FailedMount"),)), "FailedMount"),
    "an event whose reason is none": (trouble_of(aged_pod(), events=(event("failed: mount"),)), "PodFailed"),
    "an event without a reason": (trouble_of(aged_pod(), events=(event(""),)), PENDING),
    "an event of another pod": (trouble_of(aged_pod(), events=(event("FailedMount", of="uid-two"),)), PENDING),
    "the same of an older pod": (trouble_of(aged_pod(), events=(event("FailedMount", of="uid-a"),)), PENDING),
    "what its state tells better": (trouble_of(aged_pod(), events=(event("FailedScheduling"),)), PENDING),
    "its container is being made": (
        trouble_of(aged_pod(**container(state={"waiting": {"reason": "ContainerCreating"}}))),
        PENDING,
    ),
    "its pod is being initialized": (
        trouble_of(aged_pod(**container(state={"waiting": {"reason": "PodInitializing"}}))),
        PENDING,
    ),
    "its container waits for nothing": (trouble_of(aged_pod(**container(state={"waiting": {}}))), PENDING),
    "a second container alone is being made": (
        trouble_of(
            aged_pod(
                containerStatuses=[
                    {"name": "c", "restartCount": 0, "state": {"running": {}}},
                    {"name": "d", "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}},
                ]
            )
        ),
        "",
    ),
    "its container has been restarted": (
        trouble_of(aged_pod(**container(restartCount=1, state={"waiting": {"reason": "ContainerCreating"}}))),
        "",
    ),
    "its container has ended before": (
        trouble_of(aged_pod(**container(lastState={"terminated": {"exitCode": 1}}, state={"waiting": {"reason": ""}}))),
        "",
    ),
    "its container has ended": (trouble_of(aged_pod(**container(state={"terminated": {"exitCode": 1}}))), ""),
    "its container waits for an image": (
        trouble_of(aged_pod(**container(state={"waiting": {"reason": "ErrImagePull"}}))),
        "",
    ),
    "its pod is being deleted": (trouble_of(aged_pod(going=True)), ""),
    "a pod that failed is being deleted": (trouble_of(aged_pod(going=True, phase="Failed", reason="Evicted")), ""),
    "its pod should have ended a minute ago": (trouble_of(aged_pod(going=True, going_s=60)), "PodTerminating"),
    "its pod should have ended a second less ago": (trouble_of(aged_pod(going=True, going_s=59)), ""),
    "its pod has ended and waits for a finalizer": (
        trouble_of(aged_pod(going=True, going_s=900, phase="Succeeded")),
        "",
    ),
    "one of two pods should have ended": (
        trouble_of(aged_pod(going=True, going_s=90), aged_pod("two", going=True, going_s=1)),
        "PodTerminating",
    ),
    "another pod was created beside one that does not end": (
        trouble_of(aged_pod(going=True, going_s=900), aged_pod("two", **container(state={"running": {}}))),
        "",
    ),
    "its pod ended well": (trouble_of(aged_pod(phase="Succeeded")), ""),
    "its pod is as old as nobody waits": (trouble_of(aged_pod(age_s=5)), PENDING),
    "its pod is a second younger": (trouble_of(aged_pod(age_s=4), events=(event("FailedMount"),)), ""),
    "no pod for as long as nobody waits": (trouble_of(of=deployment(age_s=5)), PENDING),
    "no pod a second sooner": (trouble_of(of=deployment(age_s=4)), ""),
    "the ReplicaSet's events before that": (
        trouble_of(of=deployment(age_s=5), events=(event("FailedCreate", kind="ReplicaSet", name=f"{NAME}-1"),)),
        "FailedCreate",
    ),
    "a refusal from before its last available pod": (
        trouble_of(
            of=deployment(LOST_POD, age_s=600),
            events=(event("FailedCreate", kind="ReplicaSet", name=f"{NAME}-1", age_s=300),),
        ),
        PENDING,
    ),
    "a refusal from after that": (
        trouble_of(
            of=deployment(LOST_POD, age_s=600),
            events=(event("FailedCreate", kind="ReplicaSet", name=f"{NAME}-1", age_s=59),),
        ),
        "FailedCreate",
    ),
    "a refusal that no retry has repeated": (
        trouble_of(
            of=deployment(age_s=3600), events=(event("FailedCreate", kind="ReplicaSet", name=f"{NAME}-1", age_s=1301),)
        ),
        PENDING,
    ),
}


@pytest.mark.parametrize(("asked", "reason"), REASONS.values(), ids=REASONS.keys())
def test_what_is_the_matter(asked: Found, reason: str) -> None:
    """The reason of whoever says one; nothing where a state of the container says it."""
    said = asked()
    assert (said.reason if said else "") == reason


TEXTS: dict[str, tuple[Found, str]] = {
    "refused": (
        trouble_of(of=refused("ReplicaFailure", "True", "FailedCreate")),
        "the target's pod could not be created: quota",
    ),
    "thrown out": (
        trouble_of(aged_pod(phase="Failed", reason="Evicted", message="low on memory. ", node="n")),
        "the target's pod failed on node n (Evicted): low on memory",
    ),
    "thrown out of nowhere": (
        trouble_of(aged_pod(phase="Failed", reason="Evicted", message="x")),
        "the target's pod failed (Evicted): x",
    ),
    "not set up on a node": (
        trouble_of(aged_pod(node="n"), events=(event("FailedMount", "no volume"),)),
        "the target's pod cannot be set up on node n (FailedMount): no volume",
    ),
    "not set up nowhere": (
        trouble_of(aged_pod(), events=(event("FailedMount", "no volume"),)),
        "the target's pod cannot be set up (FailedMount): no volume",
    ),
    "not ended on a node": (
        trouble_of(aged_pod(node="n", going=True, going_s=90)),
        f"its pod one on node n has been terminating since {iso_before(90)}; "
        "no other is created until the node confirms its end",
    ),
    "slow on a node": (
        trouble_of(aged_pod(node="n")),
        f"its pod is being set up on node n since {iso_before(60)}; the image may still be on its way",
    ),
    "slow to be scheduled": (
        trouble_of(aged_pod()),
        f"its pod waits for the scheduler since {iso_before(60)}; the image may still be on its way",
    ),
}


@pytest.mark.parametrize(("asked", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_what_is_told_of_it(asked: Found, text: str) -> None:
    """Where, and in whose words."""
    said = asked()
    assert said is not None
    assert said.message == text


@pytest.mark.parametrize(
    ("pods", "of", "expected"),
    [
        pytest.param((), deployment(age_s=0), 5.0, id="new"),
        pytest.param((), deployment(age_s=4), 1.0, id="in a second"),
        pytest.param((), deployment(age_s=5), None, id="it is worth a word"),
        pytest.param((aged_pod(age_s=2),), deployment(age_s=60), 3.0, id="a new pod of an old Deployment"),
        pytest.param(
            (aged_pod(age_s=2, **container(state={"running": {}})),), deployment(), None, id="a pod that runs"
        ),
        pytest.param((aged_pod(age_s=2, going=True),), deployment(age_s=3), 59.0, id="a pod that goes"),
        pytest.param((aged_pod(going=True, going_s=60),), deployment(), None, id="a pod that should be gone"),
        pytest.param(
            (aged_pod(age_s=2, going=True, phase="Failed"),),
            deployment(age_s=3),
            2.0,
            id="a pod that has failed is none",
        ),
        pytest.param((), None, None, id="no Deployment"),
        pytest.param((), codec.convert(Deployment, {}), 5.0, id="one of which nobody knows since when it is"),
    ],
)
def test_when_to_look_again(pods: tuple[Pod, ...], of: Deployment | None, expected: float | None) -> None:
    """Once waiting is worth a word; not where it is already, nor where nothing waits."""
    assert look_again_s(of, pods, NOW) == expected


def test_a_node_that_is_lost_has_a_way_out() -> None:
    """A Job shows the same as a Deployment, with a command for exactly that pod."""
    lost = aged_pod(node="n", going=True, going_s=90)
    job = codec.convert(Job, {"metadata": {"name": NAME, "creationTimestamp": iso_before(600)}})
    shown = trouble_of_job(job, [lost], (), now=NOW)
    assert shown == find_trouble(deployment(), [lost], (), name=NAME, now=NOW)
    assert shown is not None
    assert shown.failed
    assert "`kubectl -n ns delete pod one --force`" in shown.way_out


def test_the_pod_that_counts() -> None:
    """The newest that runs or will; of one second the last by name."""
    old, new, last = aged_pod("c", age_s=9), aged_pod("a", age_s=3), aged_pod("b", age_s=3)
    over = [
        aged_pod("d", age_s=1, phase="Failed"),
        aged_pod("e", age_s=1, phase="Succeeded"),
        aged_pod("f", age_s=1, going=True),
    ]
    assert active_pod([old, last, new, *over]) == last
    assert active_pod(over) is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("x" * 600, "x" * 600, id="as long as is shown"),
        pytest.param("x" * 601, "x" * 600 + "...", id="a character more"),
        pytest.param("a\n b..", "a b", id="one line, without its end"),
    ],
)
def test_others_words(words: str, expected: str) -> None:
    """The beginning of them: it says what they are about."""
    assert cut(words) == expected
