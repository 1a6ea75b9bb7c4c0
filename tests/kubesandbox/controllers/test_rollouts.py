"""How Deployments roll out: sizes, limits, conditions and the deadline, by the rules of the deployment controller."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition, NamespacedName
from kubekit.api.whole_v1 import WholeDeployment, WholeDeploymentSpec, WholePod, WholeReplicaSet
from kubekit.kube.cache import Cache
from kubekit.kube.clock import ManualClock
from kubekit.kube.request import Call
from kubesandbox.controllers import deployments
from kubesandbox.controllers.controller_loop import Attempt, Requeue
from kubesandbox.controllers.deployments import HASH_LABEL, Deployments, template_hash

JSON = dict[str, Any]
NOW = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
KEY = NamespacedName("ns", "web")
TEMPLATE: JSON = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:2"}]}}
OLD: JSON = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def spec(replicas: int, max_surge: int | str = "25%", max_unavailable: int | str = "25%") -> WholeDeploymentSpec:
    """A Deployment's spec that rolls within these limits."""
    limits = {"maxSurge": max_surge, "maxUnavailable": max_unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": limits}
    return codec.convert(WholeDeploymentSpec, {"replicas": replicas, "strategy": strategy})


def sized(name: str, wanted: int, available: int | None = None) -> WholeReplicaSet:
    """A ReplicaSet of this size; all of its pods are available unless told otherwise."""
    able = wanted if available is None else available
    status = {"replicas": wanted, "readyReplicas": able, "availableReplicas": able, "observedGeneration": 1}
    body = {"metadata": {"name": name, "generation": 1}, "spec": {"replicas": wanted}, "status": status}
    return codec.convert(WholeReplicaSet, body)


@pytest.mark.parametrize(
    ("replicas", "max_surge", "max_unavailable", "more", "less"),
    [
        pytest.param(1, "25%", "25%", 1, 0, id="one pod is never missed"),
        pytest.param(4, "25%", "25%", 1, 1, id="a quarter of four"),
        pytest.param(5, "25%", "25%", 2, 1, id="shares are rounded in favour of service"),
        pytest.param(3, 0, 0, 0, 1, id="both zero would never move"),
        pytest.param(3, 0, "10%", 0, 1, id="both zero by rounding as well"),
        pytest.param(2, 1, 5, 1, 2, id="no more are missing than there are"),
        pytest.param(0, "25%", "25%", 0, 0, id="nothing wanted"),
    ],
)
def test_limits(replicas: int, max_surge: int | str, max_unavailable: int | str, more: int, less: int) -> None:
    """maxSurge is rounded up, maxUnavailable down."""
    found = spec(replicas, max_surge, max_unavailable)
    assert (deployments.allowed_surge(found), deployments.allowed_unavailable(found)) == (more, less)


@pytest.mark.parametrize(
    ("replicas", "new", "old", "expected"),
    [
        pytest.param(10, 0, 10, 3, id="as many as the surge allows"),
        pytest.param(10, 5, 8, 5, id="no room"),
        pytest.param(10, 5, 6, 7, id="some room"),
        pytest.param(10, 9, 0, 10, id="never more than wanted"),
        pytest.param(4, 6, 0, 4, id="smaller"),
        pytest.param(10, 3, 20, 3, id="more old pods than there should be"),
    ],
)
def test_the_size_of_the_new_set(replicas: int, new: int, old: int, expected: int) -> None:
    """By NewRSNewReplicas, with 25 % more allowed."""
    assert deployments.new_size(spec(replicas), new, old) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(sized("new", 3, 0), [sized("old", 10)], {"old": 8}, id="what may be missed goes at once"),
        pytest.param(sized("new", 5, 0), [sized("old", 8)], {}, id="nothing goes until the new ones are available"),
        pytest.param(sized("new", 5, 2), [sized("old", 8)], {"old": 6}, id="one for one"),
        pytest.param(sized("new", 3, 0), [sized("old", 10, 4)], {"old": 8}, id="what does not serve goes first"),
        pytest.param(
            sized("new", 3, 3), [sized("older", 2, 0), sized("old", 8)], {"older": 0, "old": 5}, id="the oldest first"
        ),
        pytest.param(sized("new", 10, 10), [sized("old", 3)], {"old": 0}, id="the rest at the end"),
        pytest.param(sized("new", 10, 10), [sized("old", 0)], {}, id="nothing is left to do"),
    ],
)
def test_the_sizes_of_the_old_sets(new: WholeReplicaSet, old: list[WholeReplicaSet], expected: dict[str, int]) -> None:
    """Of ten wanted pods eight are always available."""
    assert deployments.old_sizes(spec(10), new, old) == expected


@given(
    replicas=st.integers(1, 12),
    max_surge=st.integers(0, 12),
    max_unavailable=st.integers(0, 12),
    start=st.integers(0, 12),
    chosen=st.data(),
)
def test_a_roll_out_keeps_its_limits_and_ends(
    replicas: int, max_surge: int, max_unavailable: int, start: int, chosen: st.DataObject
) -> None:
    """However many new pods become available at each step."""
    found = spec(replicas, max_surge, max_unavailable)
    new, old, up = 0, start, 0
    most, least = (
        max(start, replicas + deployments.allowed_surge(found)),
        min(start, replicas - deployments.allowed_unavailable(found)),
    )
    for step in range(200):
        size = deployments.new_size(found, new, old)
        if size == new:
            sets = sized("new", new, up), sized("old", old)
            old = deployments.old_sizes(found, sets[0], [sets[1]]).get("old", old)
        new = size
        assert new + old <= most
        assert up + old >= least
        if (new, up, old) == (replicas, replicas, 0):
            return
        # Patience has an end: from some step on all pods that can become available do.
        up = chosen.draw(st.integers(up, new)) if step < 20 else new
    raise AssertionError(f"it stopped at {new} new and {old} old pods")


def deployment(**changes: Any) -> WholeDeployment:
    """A Deployment of two pods, generation 3."""
    body = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **changes.pop("spec", {})}
    metadata = {"name": "web", "namespace": "ns", "uid": "web", "generation": 3}
    return codec.convert(WholeDeployment, {"metadata": metadata, "spec": body, "status": changes.get("status", {})})


def condition_of(status: JSON, type_: str = "Progressing") -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    (found,) = [each for each in status["conditions"] if each["type"] == type_]
    return found["status"], found["reason"], found["message"]


def progress(reason: str, *, status: str = "True", ago_s: int = 0) -> JSON:
    """A Deployment's status that says so since some seconds, with no pod up yet."""
    time = (NOW - timedelta(seconds=ago_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "Progressing", "status": status, "reason": reason, "message": "m",
        "lastUpdateTime": time, "lastTransitionTime": time,
    }  # fmt: skip
    return {"replicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2, "conditions": [condition]}


@pytest.mark.parametrize(
    ("before", "available", "expected"),
    [
        pytest.param({}, 0, ("True", "NewReplicaSetCreated", 'Created new replica set "new"'), id="it begins"),
        pytest.param(
            progress("NewReplicaSetCreated", ago_s=9), 1,
            ("True", "ReplicaSetUpdated", 'ReplicaSet "new" is progressing.'), id="a pod is up",
        ),
        pytest.param(
            progress("ReplicaSetUpdated", ago_s=9), 2,
            ("True", "NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.'), id="all are up",
        ),
        pytest.param(progress("ReplicaSetUpdated", ago_s=600), 0, ("True", "ReplicaSetUpdated", "m"), id="in time"),
        pytest.param(
            progress("ReplicaSetUpdated", ago_s=601), 0,
            ("False", "ProgressDeadlineExceeded", 'ReplicaSet "new" has timed out progressing.'), id="too late",
        ),
        pytest.param(
            progress("ProgressDeadlineExceeded", status="False", ago_s=9), 2,
            ("True", "NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.'), id="late, yet done",
        ),
        pytest.param(
            progress("NewReplicaSetAvailable", ago_s=9999), 1, ("True", "NewReplicaSetAvailable", "m"),
            id="a pod that fails later is no roll-out",
        ),
    ],
)  # fmt: skip
def test_progress(before: JSON, available: int, expected: tuple[str, str, str]) -> None:
    """Every progress starts the deadline of 600 s again."""
    new = sized("new", 2, available)
    assert condition_of(deployments.deployment_status(deployment(status=before), new, [new], NOW)) == expected


@pytest.mark.parametrize(
    ("paused", "before", "expected"),
    [
        pytest.param(True, {}, ("Unknown", "DeploymentPaused", "Deployment is paused"), id="paused"),
        pytest.param(
            False, progress("DeploymentPaused", status="Unknown"),
            ("Unknown", "DeploymentResumed", "Deployment is resumed"), id="resumed",
        ),
        pytest.param(
            True, progress("ProgressDeadlineExceeded", status="False"), ("False", "ProgressDeadlineExceeded", "m"),
            id="paused after it had failed",
        ),
    ],
)  # fmt: skip
def test_pauses(before: JSON, expected: tuple[str, str, str], *, paused: bool) -> None:
    """They do not run against the deadline."""
    new = sized("new", 2, 0)
    found = deployment(spec={"paused": paused}, status=before)
    assert condition_of(deployments.deployment_status(found, new, [new], NOW)) == expected


@pytest.mark.parametrize(("available", "expected"), [(3, "True"), (2, "False")])
def test_available(available: int, expected: str) -> None:
    """Four wanted, one may be missing."""
    new = sized("new", 4, available)
    assert (
        condition_of(deployments.deployment_status(deployment(spec={"replicas": 4}), new, [new], NOW), "Available")[0]
        == expected
    )


def test_a_second_look_changes_nothing() -> None:
    """A status decided again from itself stays, times included."""
    new = sized("new", 2, 1)
    first = deployments.deployment_status(deployment(status=progress("NewReplicaSetCreated", ago_s=9)), new, [new], NOW)
    later = deployments.deployment_status(deployment(status=first), new, [new], NOW + timedelta(seconds=30))
    assert later == first


def failing(found: WholeReplicaSet, words: str) -> WholeReplicaSet:
    """A set that may not make its pods since NOW."""
    condition = Condition(
        type="ReplicaFailure", status="True", reason="FailedCreate", message=words, last_transition_time=NOW
    )
    return replace(found, status=replace(found.status, conditions=(condition,)))


NEW, FULL = sized("new", 2, 0), failing(sized("new", 2, 0), "full")
OLD_SET, OLD_FULL = sized("old", 1, 0), failing(sized("old", 1, 0), "old full")


@pytest.mark.parametrize(
    ("sets", "before", "expected"),
    [
        pytest.param([NEW, OLD_SET], {}, "", id="nothing refused"),
        pytest.param([FULL, OLD_SET], {}, "full", id="the new set's pods"),
        pytest.param([NEW, OLD_FULL], {}, "old full", id="an old set's pods"),
        pytest.param([OLD_FULL, FULL], {}, "full", id="the new set's words come first"),
        pytest.param([NEW, OLD_SET], {"words": "full"}, "", id="over"),
        pytest.param([FULL, OLD_SET], {"words": "fuller"}, "fuller", id="the first words stay while the reason does"),
        pytest.param([FULL, OLD_SET], {"words": "m", "reason": "FailedDelete"}, "full", id="another reason"),
    ],
)
def test_what_keeps_sets_from_their_pods(sets: list[WholeReplicaSet], before: JSON, expected: str) -> None:
    """As pkg/controller/deployment copies it, with the set's own times."""
    said = {"type": "ReplicaFailure", "status": "True", "reason": before.get("reason", "FailedCreate")}
    status = {"conditions": [{**said, "message": before["words"]}]} if before else {}
    new = next(each for each in sets if each.metadata.name == "new")
    found = deployments.deployment_status(deployment(status=status), new, sets, NOW)
    words = [each["message"] for each in found["conditions"] if each["type"] == "ReplicaFailure"]
    assert words == ([expected] if expected else [])


def test_a_paused_deployment_keeps_what_it_said() -> None:
    """Nothing of its sets is looked at, as in Kubernetes."""
    found = deployments.deployment_status(deployment(spec={"paused": True}), FULL, [FULL], NOW)
    assert "ReplicaFailure" not in {each["type"] for each in found["conditions"]}


def test_a_set_that_may_not_be_made() -> None:
    """The roll-out says so, and begins once it may; without a deadline nothing is said."""
    refused = 'Failed to create new replica set "web-x": quota'
    first = deployments.deployment_status(deployment(), None, [], NOW, refused=refused)
    assert condition_of(first) == ("False", "ReplicaSetCreateError", refused)
    then = deployments.deployment_status(deployment(status=first), NEW, [NEW], NOW)
    assert condition_of(then) == ("True", "NewReplicaSetCreated", 'Created new replica set "new"')
    endless = deployment(spec={"progressDeadlineSeconds": deployments.NO_DEADLINE_S})
    found = deployments.deployment_status(endless, None, [], NOW, refused=refused)
    assert [each["type"] for each in found["conditions"]] == ["Available"]


def cache(kind: Any, *objects: JSON) -> Any:
    """A cache of these objects."""
    made = Cache(kind)
    made.replace([codec.convert(kind, obj) for obj in objects], "1")
    return made


def replica_set(name: str, template: JSON, replicas: int, revision: int, *, there: int | None = None) -> JSON:
    """A ReplicaSet of the Deployment `web`, all of its pods available."""
    pods = replicas if there is None else there
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": True}
    metadata = {
        "name": name, "namespace": "ns", "uid": name, "generation": 1, "ownerReferences": [owner],
        "labels": {HASH_LABEL: template_hash(template)},
        "annotations": {"deployment.kubernetes.io/revision": str(revision)},
    }  # fmt: skip
    status = {"replicas": pods, "readyReplicas": pods, "availableReplicas": pods, "observedGeneration": 1}
    return {
        "metadata": metadata,
        "spec": {"replicas": replicas, "selector": {}, "template": template},
        "status": status,
    }


def sent(sets: list[JSON], pods: list[JSON] | None = None, **changes: Any) -> list[tuple[str, str, JSON]]:
    """Returns the requests about ReplicaSets: method, name and body."""
    body = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **changes}
    found = {"metadata": {"name": "web", "namespace": "ns", "uid": "web", "generation": 1}, "spec": body}
    controller = Deployments(
        cache(WholeDeployment, found), cache(WholeReplicaSet, *sets), cache(WholePod, *(pods or [])), ManualClock(NOW)
    )
    steps = [step.call if isinstance(step, Attempt) else step for step in controller.calls(KEY)]
    requests = [step.request for step in steps if isinstance(step, Call)]
    return [
        (request.method, request.path.rpartition("/")[2], json.loads(request.body or b"{}"))
        for request in requests
        if "/replicasets" in request.path
    ]


def test_a_new_deployment_gets_a_replica_set() -> None:
    """Of its size, with the template's hash in labels and selector."""
    ((method, name, body),) = sent([], minReadySeconds=5)
    digest = template_hash(TEMPLATE)
    assert (method, name) == ("POST", "replicasets")
    assert body["metadata"]["name"] == f"web-{digest}"
    assert body["spec"]["selector"]["matchLabels"] == {"app": "web", HASH_LABEL: digest}
    assert body["spec"]["template"]["metadata"]["labels"] == {"app": "web", HASH_LABEL: digest}
    assert (body["spec"]["replicas"], body["spec"]["minReadySeconds"]) == (2, 5)
    assert body["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    """First the old set goes to nothing; nothing new while one of its pods runs, or still has to end."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "old", "uid": "old", "controller": True}
    pod = {"metadata": {"name": "p", "namespace": "ns", "ownerReferences": [owner]}, "status": {"phase": "Running"}}
    recreate = {"strategy": {"type": "Recreate"}}
    assert sent([replica_set("old", OLD, 2, 1)], [pod], **recreate) == [("PATCH", "old", {"spec": {"replicas": 0}})]
    shrunk = [replica_set("old", OLD, 0, 1)]
    assert sent(shrunk, [pod], **recreate) == []
    assert [method for method, *_ in sent(shrunk, [{**pod, "status": {"phase": "Failed"}}], **recreate)] == ["POST"]
    assert [method for method, *_ in sent(shrunk, [], **recreate)] == ["POST"]


def test_a_rolled_back_template_is_the_newest_revision() -> None:
    """Its set is found by its hash, and counted as new."""
    sets = [replica_set("back", TEMPLATE, 2, 1), replica_set("old", OLD, 0, 2)]
    assert sent(sets) == [("PATCH", "back", {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "3"}}})]


def test_old_sets_beyond_the_history_go() -> None:
    """The oldest first, and only after the roll-out."""
    other = {**TEMPLATE, "spec": {"containers": []}}
    sets = [replica_set("new", TEMPLATE, 2, 3), replica_set("a", OLD, 0, 2), replica_set("b", other, 0, 1)]
    assert [(method, name) for method, name, _ in sent(sets, revisionHistoryLimit=1)] == [("DELETE", "b")]
    sets[0] = replica_set("new", TEMPLATE, 2, 3, there=1)
    assert sent(sets, revisionHistoryLimit=1) == []


def test_a_paused_deployment_is_scaled_and_not_rolled_out() -> None:
    """The set that has pods takes the size, the new template waits."""
    assert sent([replica_set("old", OLD, 1, 1)], paused=True) == [("PATCH", "old", {"spec": {"replicas": 2}})]


def test_it_looks_again_when_the_deadline_is_over() -> None:
    """Nobody else would tell it."""
    found = {
        "metadata": {"name": "web", "namespace": "ns", "uid": "web", "generation": 1},
        "spec": {"replicas": 2, "template": TEMPLATE, "progressDeadlineSeconds": 60},
        "status": progress("ReplicaSetUpdated", ago_s=20),
    }
    sets = cache(WholeReplicaSet, replica_set("new", TEMPLATE, 2, 1, there=0))
    controller = Deployments(cache(WholeDeployment, found), sets, cache(WholePod), ManualClock(NOW))
    assert [step.after_s for step in controller.calls(KEY) if isinstance(step, Requeue)] == [41]
