"""The controller against an API server: what it writes, and what it leaves alone. Numbers are those of the cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.rollout.control.policy_world import CALENDARS, CORE, NEW, OPEN_GATES, OTHER, POLICIES, RUNS, World, world

from kubekit.kube import calls
from kubekit.kube.clock import SystemClock
from runup.process.plan_executor import EVENTS
from runup.report.report import ReportedRisk

ALWAYS: dict[str, Any] = {"calendars": ["Always"], "actuator": "ClusterVersion", "soak": "0s"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests."""
    with world(tmp_path_factory.mktemp("controller") / "data") as found:
        yield found


@pytest.mark.slow
def test_1_an_update_starts_by_itself(shared: World) -> None:
    """The controller requests a preflight, then the update: one release by digest, without force, once."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    assert shared.desired() == {"version": "5.1.0", "image": NEW, "mode": "Preflight"}
    assert shared.reason() == "PreflightMissing"
    shared.report()
    shared.passes(3)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    assert (shared.run().status.step, shared.run().status.gated) == ("ControlPlane", True)
    before = shared.server.cluster_version()["metadata"]["resourceVersion"]
    shared.passes(3)
    assert shared.server.cluster_version()["metadata"]["resourceVersion"] == before
    shared.update("Partial")
    shared.passes()
    shared.update("Completed")
    shared.passes(2)
    assert (shared.run().status.step, shared.reason("Done")) == ("Done", "Succeeded")
    reasons = ["AllOpen", "Started", "Completed", "Succeeded"]
    assert [each.reason for each in shared.run().status.decisions] == reasons
    events = shared.client.send(calls.list_raw(EVENTS, "default")).items
    ours = [each for each in events if each["involvedObject"].get("uid") == shared.run().metadata.uid]
    assert {(each["reason"], each["type"]) for each in ours} == {(each, "Normal") for each in ("Planned", *reasons)}


def test_a_run_that_waits_has_a_step(shared: World) -> None:
    """`kubectl get updateruns` has a column of it, and does not know our default."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    (run,) = shared.client.send(calls.list_raw(RUNS)).items
    assert run["status"]["step"] == "Waiting"


@pytest.mark.slow
def test_2_a_risk_keeps_the_update_from_starting(shared: World) -> None:
    """Only the preflight is requested."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report(ReportedRisk(name="NodeCordoned", message="Node a is cordoned."))
    shared.passes(4)
    assert shared.desired()["mode"] == "Preflight"
    assert shared.reason() == "PreflightRisks"
    [gate] = [gate for gate in shared.run().status.gates if gate.name == "preflight"]
    assert "NodeCordoned (warning)" in gate.message


@pytest.mark.slow
def test_16_no_calendar(shared: World) -> None:
    """A policy without a calendar says that nothing starts, and what to add."""
    shared.begin(actuator="ClusterVersion")
    shared.passes(2)
    shared.report()
    shared.passes(3)
    assert shared.desired()["mode"] == "Preflight"
    [ready] = [each for each in shared.policy().status.conditions if each.type == "Ready"]
    assert (ready.status, ready.reason) == ("False", "NoCalendar")
    assert "add the name of an UpdateCalendar to spec.calendars" in ready.message


def test_30_the_request_of_somebody_else_stays(shared: World) -> None:
    """A requested update to another release is not overwritten."""
    shared.begin(**ALWAYS)
    shared.server.patch_spec(desiredUpdate={"version": "5.2.0", "image": OTHER})
    shared.passes(3)
    shared.report()
    shared.passes(3)
    assert shared.desired() == {"version": "5.2.0", "image": OTHER}


def test_47_a_change_between_the_gates_and_the_commit(shared: World) -> None:
    """A risk that is published after the gates were evaluated makes the write a conflict."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()
    shared.passes()
    assert shared.run().status.step == "Committing"
    read = shared.observe

    def observe_then_change() -> Any:
        inputs = read()
        shared.report(ReportedRisk(name="NodeCordoned", message="Node a is cordoned."))
        return inputs

    shared.observe = observe_then_change  # type: ignore[method-assign]
    try:
        shared.passes()
    finally:
        del shared.observe
    assert shared.desired()["mode"] == "Preflight"
    shared.passes()
    assert (shared.run().status.step, shared.reason()) == ("Waiting", "PreflightRisks")


def test_49_two_leaders(shared: World) -> None:
    """Another process does not carry out an intent that is not its own, and one update starts."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()
    shared.passes(leader="a")
    assert shared.run().status.step == "Committing"
    shared.passes(leader="b")
    assert shared.desired()["mode"] == "Preflight"
    shared.passes(2, leader="b")
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    shared.passes(2, leader="a")
    assert shared.run().status.step == "ControlPlane"


def test_none_writes_no_request(shared: World) -> None:
    """Without an actuator only the condition says that a tool may start."""
    shared.begin(**{**ALWAYS, "actuator": "None"})
    shared.passes(2)
    assert shared.desired() == {}
    shared.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
    shared.report()
    shared.passes()
    assert shared.reason() == "AllOpen"
    shared.update("Partial")
    shared.passes()
    assert (shared.run().status.gated, shared.reason()) == (True, "Latched")


def test_shows_policy_and_run_as_metrics(shared: World) -> None:
    """After each pass (docs/reference/metrics.md); a policy that is gone has no value."""
    sample = shared.metrics.registry.get_sample_value
    shared.begin(**ALWAYS)
    shared.passes(2)
    assert sample("runup_update_policy_ready", {"reason": "AsExpected"}) == 1
    run = shared.run()
    assert sample("runup_update_run_step", {"run": run.metadata.name, "step": run.status.step}) == 1
    shared.client.send(calls.delete(POLICIES, "cluster"))
    shared.passes()
    assert sample("runup_update_policy_ready", {"reason": "AsExpected"}) is None


@pytest.mark.slow
def test_33_a_failure_pauses_the_policy(shared: World, run: Any) -> None:
    """No run follows a failed one before somebody acknowledges it."""
    shared.begin(**{**ALWAYS, "deadline": "1s"})
    shared.passes(2)
    shared.report()
    shared.passes(3)
    SystemClock().pause(1.1)
    shared.passes(2)
    assert (shared.run().status.step, shared.reason("Failed")) == ("Failed", "ControlPlaneDeadline")
    shared.passes(2)
    assert len(shared.client.send(calls.list_raw(RUNS)).items) == 1
    events = shared.client.send(calls.list_raw(EVENTS, "default")).items
    assert [each["type"] for each in events if each["reason"] == "ControlPlaneDeadline"] == ["Warning"]
    [paused] = [each for each in shared.policy().status.conditions if each.type == "Paused"]
    assert paused.reason == "ByFailure"
    kubeconfig = ("--kubeconfig", shared.server.kubeconfig)
    assert run("upgrade", "policy", "acknowledge", *kubeconfig).code == 0
    assert run("upgrade", "policy", "acknowledge", *kubeconfig).code == 1
    shared.passes()
    assert len(shared.client.send(calls.list_raw(RUNS)).items) == 2


@pytest.mark.slow
def test_61_a_deleted_run_ends_what_it_has_begun(shared: World) -> None:
    """Before the start a deleted run goes at once; after it, the update ends first."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    name = shared.run().metadata.name
    shared.client.send(calls.delete(RUNS, name))
    shared.passes(3)
    assert shared.desired() == {}
    assert name not in {run["metadata"]["name"] for run in shared.client.send(calls.list_raw(RUNS)).items}
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()
    shared.passes(3)
    shared.update("Partial")
    shared.client.send(calls.delete(RUNS, shared.run().metadata.name))
    shared.passes(2)
    assert shared.run().status.step == "ControlPlane"
    shared.update("Completed")
    shared.passes(2)
    assert not shared.client.send(calls.list_raw(RUNS)).items


@pytest.mark.slow
def test_61_a_deleted_policy_starts_nothing(shared: World) -> None:
    """Its run waits, and continues once the policy is there again; an update that has begun ends."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()
    policy = shared.client.send(calls.get_raw(POLICIES, "cluster"))
    shared.client.send(calls.delete(POLICIES, "cluster"))
    shared.passes(3)
    assert (shared.run().status.step, shared.reason()) == ("Waiting", "Held")
    assert shared.desired()["mode"] == "Preflight"
    shared.create(POLICIES, "cluster", spec=policy["spec"])
    shared.passes(3)
    assert shared.run().status.step == "ControlPlane"
    shared.client.send(calls.delete(POLICIES, "cluster"))
    shared.update("Completed")
    shared.passes(3)
    assert (shared.run().status.step, shared.reason("Done")) == ("Done", "Succeeded")


def test_58_a_run_of_a_hub_passes_the_policys_gates(shared: World) -> None:
    """Its own gates are open, and the policy's calendar keeps it from starting; Deny holds it."""
    shared.begin(actuator="ClusterVersion", remote="Only", calendars=["nights"])
    shared.create(CALENDARS, "nights", spec={"timeZone": "UTC", "windows": [{"opens": "0 0 29 2 *", "for": "15m"}]})
    spec = {"target": {"version": "5.1.0", "image": NEW}, "calendars": ["Always"], "actuator": "ClusterVersion"}
    shared.create(RUNS, "hub", spec={**spec, "gates": OPEN_GATES})
    shared.passes(2)
    assert shared.run().metadata.name == "hub"
    shared.report()
    shared.passes(3)
    assert (shared.run().status.step, shared.reason()) == ("Waiting", "OutsideWindow")
    shared.client.send(calls.merge_patch(POLICIES, "cluster", {"spec": {"remote": "Deny"}}))
    shared.passes()
    assert shared.reason() == "Held"
    changed = {"spec": {"remote": "Within", "calendars": ["Always"]}}
    shared.client.send(calls.merge_patch(POLICIES, "cluster", changed))
    shared.passes(3)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}


@pytest.mark.slow
def test_24_a_health_expression(shared: World) -> None:
    """An absent field is unknown and named; false closes the gate; a typo makes the policy not Ready."""
    reads = [{"name": "maps", "kind": "ConfigMap", "namespace": "backups", "fields": ["data.phase"]}]
    backup = {"name": "backup", "reads": reads, "for": "maps", "expression": "object.data.phase == 'Completed'"}
    gates = {**OPEN_GATES, "health": {"settle": "1s", "expressions": [backup]}}
    shared.begin(**ALWAYS, gates=gates)
    shared.create(CORE["Namespace"], "backups")
    shared.passes(2)
    shared.report()
    shared.passes()
    assert (shared.reason(), shared.desired()["mode"]) == ("HealthUnknown", "Preflight")
    shared.create(CORE["ConfigMap"], "last", "backups", data={"other": "x"})
    shared.passes()
    [gate] = [gate for gate in shared.run().status.gates if gate.name == "health"]
    assert (gate.state, "no such key: phase" in gate.message) == ("Unknown", True)
    shared.client.send(calls.merge_patch(CORE["ConfigMap"], "last", {"data": {"phase": "Failed"}}, "backups"))
    shared.passes()
    assert shared.reason() == "Unhealthy"
    shared.client.send(calls.merge_patch(CORE["ConfigMap"], "last", {"data": {"phase": "Completed"}}, "backups"))
    shared.passes(3)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    broken = {**gates, "health": {"expressions": [{**backup, "expression": "object.data.phase =="}]}}
    shared.begin(**ALWAYS, gates=broken)
    shared.passes()
    [ready] = [each for each in shared.policy().status.conditions if each.type == "Ready"]
    assert (ready.status, ready.reason) == ("False", "InvalidExpression")


def test_reads_what_a_health_expression_names(shared: World) -> None:
    """The objects of its `reads`, each kind once, and none for an expression that is invalid."""
    reads = [{"name": "maps", "kind": "ConfigMap", "namespace": "wares", "fields": ["data.phase"]}]
    valid = {"reads": reads, "for": "maps", "expression": "object.data.phase == 'Completed'"}
    broken = {**valid, "reads": [{**reads[0], "namespace": "others"}], "expression": "object.data.phase =="}
    expressions = [{**valid, "name": "one"}, {**valid, "name": "two"}, {**broken, "name": "three"}]
    shared.begin(**ALWAYS, gates={**OPEN_GATES, "health": {"expressions": expressions}})
    shared.create(CORE["Namespace"], "wares")
    shared.create(CORE["ConfigMap"], "crate", "wares", data={"phase": "Completed"})
    [listed] = shared.observe().objects.lists.values()
    names = [each["metadata"]["name"] for each in listed.objects]
    assert ("crate" in names, listed.problem, listed.absent) == (True, "", False)


def test_50_a_commit_over_the_preflight_of_another_client(shared: World) -> None:
    """It is written once: the server still names the other client as the writer of the image."""
    shared.begin(calendars=["Always"], actuator="ClusterVersion")
    shared.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
    shared.report()
    shared.passes(3)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    version = shared.server.cluster_version()["metadata"]["resourceVersion"]
    shared.passes(2)
    assert shared.run().status.step == "ControlPlane"
    assert shared.server.cluster_version()["metadata"]["resourceVersion"] == version


def test_32_an_abort_refuses_a_start_that_is_on_its_way(shared: World) -> None:
    """The run ends after ClusterVersion has changed, so that the conditional write of another process is refused."""
    shared.begin(**ALWAYS)
    shared.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
    shared.report()
    shared.passes(2)
    assert shared.run().status.step == "Committing"
    shared.client.send(calls.merge_patch(RUNS, shared.run().metadata.name, {"spec": {"control": "Abort"}}))
    evaluated = shared.server.cluster_version()
    shared.passes()
    assert shared.run().status.step == "Committing"
    assert shared.server.cluster_version()["metadata"]["resourceVersion"] != evaluated["metadata"]["resourceVersion"]
    shared.passes()
    assert shared.run().status.step == "Aborted"
    assert shared.server.cluster_version()["spec"] == evaluated["spec"]


def test_52_a_clock_that_jumps(shared: World) -> None:
    """Time gates close for a while when the cluster's time and the elapsed time differ."""
    shared.begin(**ALWAYS)
    shared.passes(2)
    shared.report()

    class Jumping(SystemClock):
        """A clock whose elapsed time is an hour more at each look."""

        looks = 0

        def monotonic(self) -> float:
            """See `Clock.monotonic`."""
            self.looks += 1
            return super().monotonic() + 3600 * self.looks

    shared.passes(2, clock=Jumping())
    assert shared.reason() == "ClockSkew"
    assert shared.desired()["mode"] == "Preflight"


def test_46_explain_writes_nothing(shared: World, run: Any) -> None:
    """The explanation names the first start, or what to change; no object is written."""
    shared.begin(**ALWAYS, gates=OPEN_GATES)
    before = shared.server.cluster_version()
    kubeconfig = ("--kubeconfig", shared.server.kubeconfig)
    ran = run("upgrade", "policy", "explain", *kubeconfig)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("The update to 5.1.0 starts at ")
    assert "\n  preflight  unknown  " in ran.out
    assert shared.server.cluster_version() == before
    assert not shared.client.send(calls.list_raw(RUNS)).items
    shared.begin()
    ran = run("upgrade", "policy", "explain", *kubeconfig)
    assert (ran.code, ran.out.partition("\n")[0]) == (
        2,
        "Nothing will start: spec.calendars is empty. Add the name of an UpdateCalendar, or Always.",
    )


@pytest.mark.slow
def test_1_an_update_waits_for_an_approval(shared: World) -> None:
    """57: without the admission policy no approval counts. With it, an approval of the digest starts the update."""
    gates = {**OPEN_GATES, "approvals": [{"name": "cab"}]}
    shared.begin(**ALWAYS, gates=gates)
    shared.passes(2)
    shared.report()
    shared.passes()
    assert shared.reason() == "ApproverUnverified"
    shared.verify_approvers()
    shared.passes()
    assert shared.reason() == "ApprovalMissing"
    shared.approve("other-digest", "sha256:" + "9" * 64)
    shared.passes()
    assert shared.reason() == "ApprovalMissing"
    shared.approve("approved", NEW.partition("@")[2])
    shared.passes(3)
    assert shared.desired() == {"version": "5.1.0", "image": NEW}
    [gate] = [gate for gate in shared.run().status.gates if gate.name == "approval cab"]
    assert gate.message.startswith("Approved by ")
