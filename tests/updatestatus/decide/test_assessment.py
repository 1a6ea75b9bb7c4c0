"""The whole status: its conditions, what it remembers, what it cannot tell, and that the API accepts it."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.documents import document
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.test_waits import awaiting, busy, draining

import runup.sandbox.crds as crds
from kubekit.api import codec
from kubekit.api.conditions import find, with_condition
from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubesandbox.apiserver.schema.crd import compile_crd
from runup.api.config_v1 import ClusterOperator
from runup.api.update_v1alpha1 import Insight, UpdateStatusStatus
from runup.updatestatus.decide import finding as uids
from runup.updatestatus.decide.alerts import Alert, Unreadable
from runup.updatestatus.decide.assess import assess, next_change_s
from runup.updatestatus.decide.finding import Finding, node_ref
from runup.updatestatus.decide.read_status import report_of_status
from runup.updatestatus.decide.snapshot import Snapshot, sort_pools


def schema(plural: str = "updatestatuses") -> Any:
    """The definition of UpdateStatus, or of another kind, as the API server has it."""
    file = next(file for file in crds.files() if f"_{plural}" in file.name)
    errors, schemas = compile_crd(document(file))
    assert errors == []
    return schemas["v1alpha1"]


SCHEMA = schema()


def faults(status: UpdateStatusStatus) -> list[str]:
    """What the API server would say to an object with this status."""
    obj = {
        "apiVersion": "update.openshift.io/v1alpha1",
        "kind": "UpdateStatus",
        "metadata": {"name": "cluster"},
        "spec": {},
        "status": codec.decode(dict, codec.encode(status)),
    }
    pruned, unknown = SCHEMA.prune(obj)
    return [str(error) for error in SCHEMA.validate(pruned)] + [f"unknown: {path}" for path in unknown]


def insights(status: UpdateStatusStatus) -> dict[str, Insight]:
    """Every insight by uid."""
    layers = [status.control_plane, *status.worker_pools]
    return {i.uid: i for layer in layers if layer for informer in layer.informers for i in informer.insights}


def updating(conditions: tuple[Condition, ...]) -> tuple[str, str, str]:
    """Status, reason and message of condition Updating."""
    found = find(conditions, "Updating")
    assert found is not None
    return found.status, found.reason, found.message


UNREADABLE = Unreadable("forbidden")
FULL: dict[str, Snapshot] = {
    "an update has begun": b.snapshot(),
    "an installation": b.snapshot(cluster_version=b.version([b.entry(b.NEW, "Partial")])),
    "after an incomplete update": b.snapshot(cluster_version=b.version(b.update_history(b.entry(b.OLD, "Partial")))),
    "another architecture": b.snapshot(
        cluster_version=b.version([b.entry(b.NEW, "Partial"), b.entry(b.NEW, image="x")])
    ),
    "no history": b.snapshot(cluster_version=b.version([])),
    "a history without version": b.snapshot(cluster_version=b.version([b.entry("", "Partial"), b.entry("")])),
    "no conditions": b.snapshot(cluster_version=b.version(progressing=None, failing=None)),
    "done": b.snapshot(cluster_operators=(b.operator("etcd", b.NEW),)),
    "no operators": b.snapshot(cluster_operators=()),
    "no pools": b.snapshot(machine_config_pools=(), nodes=()),
    "nothing can be read": Snapshot(
        cluster_version=UNREADABLE,
        cluster_operators=UNREADABLE,
        machine_config_pools=UNREADABLE,
        nodes=UNREADABLE,
        machine_configs=UNREADABLE,
        machine_config_operator=UNREADABLE,
        alerts=UNREADABLE,
        pending_pods=UNREADABLE,
        draining_pods=UNREADABLE,
        pod_disruption_budgets=UNREADABLE,
    ),
    "a drain is held up": draining(),
    "an operator is waited for": awaiting(busy()),
    "alerts": b.snapshot(
        alerts=tuple(
            Alert(
                labels={"alertname": "Bad", "severity": "critical", "instance": str(i)},
                annotations={"runbook_url": "https://example.com/" + "x" * 3000},
                active_at=b.NOW,
            )
            for i in range(3)
        )
    ),
    "texts beyond all limits": b.snapshot(
        nodes=(b.node("x." * 100 + "x", state="Degraded", reason="why " * 20000),),
        cluster_operators=(b.operator(degraded=b.cond("Degraded", "True", "R", "m" * 50000)),),
    ),
}


@pytest.mark.parametrize("snapshot", FULL.values(), ids=FULL)
def test_the_api_accepts_the_status(snapshot: Snapshot) -> None:
    """As it is now, and an hour later on top of itself."""
    first = assess(snapshot, None, b.NOW)
    assert faults(first) == []
    assert faults(assess(snapshot, first, b.NOW + b.minutes(60))) == []


_ANY = st.text(max_size=60) | st.builds(
    lambda text, times: text * times, st.text(min_size=1, max_size=8), st.integers(1, 9000)
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(_ANY, _ANY, _ANY)
def test_the_api_accepts_the_status_whatever_texts_the_cluster_holds(reason: str, message: str, other: str) -> None:
    """Reasons, messages, annotations, versions and labels of alerts come from anywhere."""
    progressing = b.cond("Progressing", "True", reason, f"{message}, waiting on etcd")
    snapshot = b.snapshot(
        cluster_version=b.version(
            [b.entry(other, "Partial"), b.entry(message)],
            progressing=progressing,
            failing=b.cond("Failing", "True", reason, message),
            others=(b.cond("ReleaseAccepted", "False", reason, message),),
            desired=other,
        ),
        cluster_operators=(
            b.operator(progressing=progressing, degraded=b.cond("Degraded", "True", reason, message)),
            b.operator("dns", available=b.cond("Available", "False", reason, message)),
        ),
        nodes=(
            b.node(state="Degraded", reason=message),
            b.node("n", conditions=[b.cond("Ready", "False", reason, message)], desiredConfig=other),
        ),
        alerts=(
            Alert(
                labels={"alertname": reason, "namespace": other, "severity": "critical"},
                annotations={"summary": message, "description": other, "runbook_url": reason},
                active_at=b.NOW,
            ),
        ),
        pending_pods=(),
        machine_config_pools=Unreadable(message) if other else (b.pool("worker"),),
    )
    status = assess(snapshot, None, b.NOW + b.minutes(45))
    assert faults(status) == []
    assert assess(snapshot, status, b.NOW + b.minutes(45)) == status


@pytest.mark.parametrize("snapshot", FULL.values(), ids=FULL)
def test_the_same_again_is_equal_whatever_time_has_gone_by(snapshot: Snapshot) -> None:
    """A controller writes only what differs; seconds alone must not.

    The second look may differ once: only from then on it is known that somebody watches.
    """
    second = assess(snapshot, assess(snapshot, None, b.NOW), b.NOW)
    stored = codec.decode(UpdateStatusStatus, codec.encode(second))
    assert assess(snapshot, stored, b.NOW) == stored
    assert assess(snapshot, stored, b.NOW + timedelta(seconds=20)) == stored


@pytest.mark.parametrize(
    ("cluster", "insight", "layer"),
    [
        pytest.param(b.version(), "True", "True", id="updating"),
        pytest.param(b.version([b.entry(b.NEW)], progressing="False"), "False", "False", id="at rest"),
        pytest.param(b.version([b.entry(b.NEW)]), "Unknown", "True", id="progressing though completed"),
        pytest.param(b.version(progressing="False"), "Unknown", "False", id="not progressing though partial"),
        pytest.param(b.version(progressing="Unknown"), "Unknown", "Unknown", id="it does not know"),
        pytest.param(b.version(progressing=None), "Unknown", "Unknown", id="it does not say"),
        pytest.param(b.version([]), "Unknown", "True", id="no history"),
    ],
)
def test_condition_updating(cluster: Any, insight: str, layer: str) -> None:
    """The insight doubts a Progressing condition that its history contradicts; the layer takes it as it is."""
    status = assess(b.snapshot(cluster_version=cluster), None, b.NOW)
    assert status.control_plane is not None
    assert updating(status.control_plane.conditions)[0] == layer
    found = insights(status)["cv-version"].cluster_version
    assert found is not None
    assert updating(found.conditions)[0] == insight


def test_the_reasons_for_updating() -> None:
    """As upstream words them."""
    found = insights(assess(b.snapshot(), None, b.NOW))["cv-version"].cluster_version
    assert found is not None
    assert updating(found.conditions) == (
        "True",
        "ClusterVersionProgressing",
        "ClusterVersion has Progressing=True(Reason=) | Message=''",
    )
    found = insights(assess(b.snapshot(cluster_version=b.version(progressing=None)), None, b.NOW))["cv-version"]
    assert updating(found.cluster_version.conditions) == (  # type: ignore[union-attr]
        "Unknown",
        "CannotDetermineUpdating",
        "No Progressing condition in ClusterVersion",
    )


@pytest.mark.parametrize(
    ("history", "previous", "target"),
    [
        pytest.param([b.entry(b.NEW)], ("<none>", {"Installation": ""}), (b.NEW, {}), id="an installation"),
        pytest.param([b.entry(b.NEW), b.entry(b.OLD)], (b.OLD, {}), (b.NEW, {}), id="an update"),
        pytest.param(
            [b.entry(b.NEW), b.entry(b.OLD, "Partial")], (b.OLD, {"Partial": ""}), (b.NEW, {}), id="from incomplete"
        ),
        pytest.param(
            [b.entry(b.NEW), b.entry(b.NEW, image="x")],
            (b.NEW, {}),
            (b.NEW, {"Architecture": "Multi"}),
            id="another image of the same version",
        ),
        pytest.param([b.entry(b.NEW), b.entry(b.NEW)], (b.NEW, {}), (b.NEW, {}), id="the same once more"),
    ],
)
def test_versions(history: Any, previous: Any, target: Any) -> None:
    """From where to where, with what is remarkable about it."""
    found = insights(assess(b.snapshot(cluster_version=b.version(history)), None, b.NOW))["cv-version"].cluster_version
    assert found is not None
    assert found.versions is not None
    for version, (text, marks) in ((found.versions.previous, previous), (found.versions.target, target)):
        assert (version.version, {mark.key: mark.value for mark in version.metadata}) == (text, marks)


def test_a_transition_moves_its_time_and_no_other() -> None:
    """Of three conditions of a node one changes."""
    first = assess(b.snapshot(), None, b.NOW)
    later = b.NOW + b.minutes(5)
    going = b.node("worker-0000", desired="new", state="Working")
    second = assess(b.snapshot(nodes=(going, b.node("worker-0001"))), first, later)
    node = insights(second)["node-worker-0000"].node
    assert node is not None
    times = {each.type: each.last_transition_time for each in node.conditions}
    assert times == {"Updating": later, "Available": later, "Degraded": b.NOW}
    assert insights(second)["node-worker-0000"].acquired_at == later
    assert insights(second)["node-worker-0001"] == insights(first)["node-worker-0001"]


def test_an_update_that_history_does_not_end_yet_ended_when_it_was_first_seen_to_be_done() -> None:
    """And history's own end replaces that."""
    done = b.snapshot(cluster_operators=(b.operator("etcd", b.NEW),))
    first = assess(done, None, b.NOW)
    second = assess(done, first, b.NOW + b.minutes(9))
    for status in (first, second):
        found = insights(status)["cv-version"].cluster_version
        assert found is not None
        assert (found.assessment, found.completion, found.completed_at) == ("Completed", 100, b.NOW)
    ended = b.version([b.entry(b.NEW, took=b.minutes(7)), b.entry(b.OLD)], progressing="False")
    third = insights(assess(b.snapshot(cluster_version=ended), second, b.NOW + b.minutes(9)))["cv-version"]
    assert third.cluster_version is not None
    assert third.cluster_version.completed_at == b.STARTED + b.minutes(7)


def test_an_estimate_moves_in_steps_of_half_a_minute() -> None:
    """Otherwise it would be written in every pass."""
    first = assess(b.snapshot(), None, b.STARTED)
    seconds = [0, 29, 31, 120, 400]
    estimates = []
    status = first
    for each in seconds:
        status = assess(b.snapshot(), status, b.STARTED + timedelta(seconds=each))
        found = insights(status)["cv-version"].cluster_version
        assert found is not None
        assert found.estimated_completed_at is not None
        estimates.append((found.estimated_completed_at - b.STARTED).total_seconds())
    # 72 minutes at first; a fifth of what uses is saved by the estimate's own margin.
    assert estimates[:4] == [4320, 4320, 4320, 4320]
    assert all(later <= earlier for earlier, later in pairwise(estimates))
    assert estimates[-1] == pytest.approx(4320 - 80, abs=30)


def test_health_keeps_its_beginning() -> None:
    """Since when somebody knows it, and when it was first seen; both outlive changes of the text."""
    paused = b.snapshot(machine_config_pools=(b.pool("worker", paused=True),))
    [row] = report_of_status(assess(paused, None, b.NOW)).health
    assert (row.since, row.first_observed) == (None, b.NOW)
    silent = b.snapshot(cluster_version=b.version(failing=None))
    first = assess(silent, None, b.NOW)
    [row] = report_of_status(assess(silent, first, b.NOW + b.minutes(5))).health
    assert (row.since, row.first_observed) == (b.NOW, b.NOW)


def test_an_insight_that_is_gone_is_forgotten() -> None:
    """What is computed again from every snapshot needs no taking back."""
    first = assess(b.snapshot(), None, b.NOW)
    second = assess(b.snapshot(nodes=(), cluster_operators=(b.operator("etcd"),)), first, b.NOW)
    assert sorted(insights(second)) == ["co-etcd", "cv-version", "mcp-master", "mcp-worker"]


@pytest.mark.parametrize(
    "field",
    [
        "cluster_operators",
        "machine_config_pools",
        "nodes",
        "machine_configs",
        "machine_config_operator",
        "pending_pods",
    ],
)
def test_what_could_not_be_read_is_said(field: str) -> None:
    """As an insight of level Unknown and in condition Available; it is never the same as nothing."""
    status = assess(b.snapshot(**{field: Unreadable("nodes is forbidden")}), None, b.NOW)
    [row] = [row for row in report_of_status(status).health if row.check == "InputUnreadable"]
    assert (row.level, row.impact, row.description) == ("Unknown", "Unknown", "nodes is forbidden")
    available = find(status.conditions, "Available")
    assert available is not None
    assert (available.status, available.reason) == ("False", "CannotWatch")


PARTLY = "of pods the dump has only the namespace a"
_DRAINING = (b.node(desiredDrain="drain-new", lastAppliedDrain="uncordon-old"),)
_DONE = b.snapshot(cluster_version=b.version([b.entry(b.NEW)], progressing="False"), machine_config_pools=(), nodes=())


@pytest.mark.parametrize(
    ("snapshot", "field", "is_said"),
    [
        pytest.param(b.snapshot(), "nodes", True, id="nodes"),
        pytest.param(b.snapshot(), "pending_pods", True, id="pods, while something is updating"),
        pytest.param(_DONE, "pending_pods", False, id="pods, while nothing is"),
        pytest.param(b.snapshot(nodes=_DRAINING), "pod_disruption_budgets", True, id="budgets, while a node drains"),
        pytest.param(b.snapshot(), "pod_disruption_budgets", False, id="budgets, while none does"),
    ],
)
def test_what_is_known_in_part_is_said_where_it_matters(snapshot: Snapshot, field: str, is_said: bool) -> None:
    """As an insight of level Unknown with the server's reason; what is known counts as ever."""
    status = assess(replace(snapshot, incomplete={field: PARTLY}), None, b.NOW)
    rows = [
        (row.level, row.impact, row.description)
        for row in report_of_status(status).health
        if row.check == "InputIncomplete"
    ]
    assert rows == [("Unknown", "Unknown", PARTLY)] * is_said
    available = find(status.conditions, "Available")
    assert available is not None
    assert available.status == "True"


@pytest.mark.parametrize("field", ["machine_config_pools", "nodes", "machine_configs"])
def test_pools_are_not_guessed_from_half_of_what_makes_them(field: str) -> None:
    """Without configurations every node would look outdated, without nodes every pool would look done."""
    status = assess(b.snapshot(**{field: UNREADABLE}), None, b.NOW)
    assert status.worker_pools == ()
    assert not any(insight.node or insight.machine_config_pool for insight in insights(status).values())


def test_without_cluster_version_nothing_is_said_of_the_update() -> None:
    """Not even that there is none."""
    status = assess(b.snapshot(cluster_version=UNREADABLE), None, b.NOW)
    assert status.control_plane is not None
    assert updating(status.control_plane.conditions) == (
        "Unknown",
        "CannotDetermineUpdating",
        "ClusterVersion could not be read: forbidden",
    )
    assert [insight.type for insight in insights(status).values()] == ["Health"]


def test_of_several_that_cannot_be_read_each_has_its_own_reason() -> None:
    """The control plane's is ClusterVersion's."""
    several = {name: Unreadable(f"no {name}") for name in ("nodes", "cluster_operators", "cluster_version")}
    status = assess(b.snapshot(**several), None, b.NOW)
    assert status.control_plane is not None
    said = updating(status.control_plane.conditions)
    assert said == ("Unknown", "CannotDetermineUpdating", "ClusterVersion could not be read: no cluster_version")


@pytest.mark.parametrize(
    ("alerts", "expected"),
    [
        pytest.param((), ("True", "AsExpected"), id="none fires"),
        pytest.param(UNREADABLE, ("False", "CannotReadAlerts"), id="they cannot be read"),
        pytest.param(None, ("Unknown", "NotAsked"), id="nobody asked"),
    ],
)
def test_whether_alerts_are_known(alerts: Any, expected: tuple[str, str]) -> None:
    """Alerts are the one input that is no insight when it is missing, as in oc."""
    status = assess(b.snapshot(alerts=alerts), None, b.NOW)
    found = find(status.conditions, "AlertsReachable")
    assert found is not None
    assert (found.status, found.reason) == expected
    assert report_of_status(status).health == ()


def test_conditions_that_others_set_are_kept() -> None:
    """The controller has some of its own."""
    first = assess(b.snapshot(), None, b.NOW)
    other = Condition(type="Leading", status="True", reason="R", last_transition_time=b.NOW)
    first = replace(first, conditions=with_condition(first.conditions, other, now=b.NOW))
    second = assess(b.snapshot(), first, b.NOW)
    assert second == first


@pytest.mark.parametrize(
    ("kind", "name", "uid"),
    [
        ("co", "etcd", "co-etcd"),
        ("node", "worker-1", "node-worker-1"),
        ("mcp", "a" * 59, "mcp-" + "a" * 59),
    ],
)
def test_plain_uids(kind: str, name: str, uid: str) -> None:
    """Kind and name, where the API allows it."""
    assert uids.uid_of_object(kind, name) == uid


@pytest.mark.parametrize("name", ["ip-10-0-1-2.ec2.internal", "a" * 60, "Upper", "trailing-"])
def test_digests_as_uids(name: str) -> None:
    """Other names are replaced by 26 letters and digits."""
    uid = uids.uid_of_object("node", name)
    assert len(uid) == len("node-") + 26
    assert uid != uids.uid_of_object("node", name + "x")


def test_the_uid_of_a_finding_does_not_depend_on_its_text() -> None:
    """A reason that changes must not make it young again."""
    one = Finding(check="A", level="Error", impact="None", summary="x", resources=(node_ref("n"),))
    two = Finding(check="A", level="Warning", impact="None", summary="y", resources=(node_ref("n"),))
    other = Finding(check="A", level="Error", impact="None", summary="x", resources=(node_ref("m"),))
    assert uids.uid_of_finding(one) == uids.uid_of_finding(two) != uids.uid_of_finding(other)


def test_pools_of_a_live_cluster_are_reported_in_one_order() -> None:
    """The API server's order is that of names; oc's examples have worker before custom pools."""
    pools = [b.pool(name) for name in ("infra", "worker", "master", "arm")]
    assert [pool.metadata.name for pool in sort_pools(pools)] == ["master", "worker", "arm", "infra"]


def _at_rest(*operators: ClusterOperator, **changes: Any) -> Snapshot:
    return b.snapshot(
        **{
            "cluster_version": b.version([b.entry(b.OLD)], progressing="False"),
            "cluster_operators": operators,
            "nodes": (),
            **changes,
        }
    )


def _after(count: float) -> datetime:
    return b.STARTED + b.minutes(count)


def _pod_created(created: datetime | None) -> Pod:
    return Pod(metadata=ObjectMeta(name="pod", creation_timestamp=created))


@pytest.mark.parametrize(
    ("snapshot", "now", "seconds"),
    [
        pytest.param(b.snapshot(), b.NOW, 30, id="an estimate runs on"),
        pytest.param(b.snapshot(cluster_version=UNREADABLE), b.NOW, 30, id="nobody knows"),
        pytest.param(_at_rest(b.operator(available="False")), _after(4), 61, id="an operator becomes a warning"),
        pytest.param(
            _at_rest(b.operator(available="False")), _after(6), 14 * 60 + 1, id="an operator is down for long"
        ),
        pytest.param(_at_rest(b.operator(degraded="True")), _after(21), 19 * 60 + 1, id="an operator is bad for long"),
        pytest.param(_at_rest(b.operator(degraded="True")), _after(40), None, id="an age that is reached is over"),
        pytest.param(_at_rest(b.operator()), _after(4), None, id="a good operator does not age"),
        pytest.param(
            _at_rest(b.operator(available=b.cond("Available", "False", since=None))),
            _after(4),
            None,
            id="an operator that is down since nobody knows when",
        ),
        pytest.param(_at_rest(nodes=(b.node(),)), _after(0.5), 31, id="a node has no network for a minute"),
        pytest.param(_at_rest(nodes=(b.node(),)), _after(4), 61, id="a node is not ready for five minutes"),
        pytest.param(
            _at_rest(nodes=(b.node(conditions=[b.cond("Ready", "False", since=None)]),)),
            _after(4),
            None,
            id="a node that is bad since nobody knows when",
        ),
        pytest.param(
            _at_rest(pending_pods=(_pod_created(b.STARTED),)), _after(4), 6 * 60 + 1, id="a pod waits for ten minutes"
        ),
        pytest.param(_at_rest(pending_pods=(_pod_created(None),)), _after(4), None, id="a pod of no age"),
        pytest.param(
            _at_rest(b.operator(available="False"), nodes=(b.node(),), pending_pods=(_pod_created(b.STARTED),)),
            _after(6),
            4 * 60 + 1,
            id="the first of several",
        ),
        pytest.param(_at_rest(), _after(60), None, id="nothing"),
    ],
)
def test_when_time_alone_changes_the_assessment(snapshot: Snapshot, now: datetime, seconds: float | None) -> None:
    """A controller looks again then, and not before."""
    assert next_change_s(snapshot, now) == seconds
