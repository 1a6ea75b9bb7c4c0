"""`runup upgrade gate RUN` and `approve RUN` against an API server. Numbers are those of the cases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from tests.cli.commands import Run
from tests.rollout.control.policy_world import NEW, OPEN_GATES, World, world

from kubekit.kube import calls
from kubekit.kube.clock import SystemClock
from runup.api.update_policy_v1alpha1 import UpdateApproval
from runup.cli.rollout import gate_command
from runup.rollout.control import observe

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests."""
    with world(tmp_path_factory.mktemp("run") / "data") as found:
        yield found


@pytest.fixture(autouse=True)
def without_thanos(monkeypatch: pytest.MonkeyPatch) -> None:
    """This server has no Thanos: no alerts fire."""
    monkeypatch.setattr(observe.thanos, "alerts", lambda *_: ())


def begin(shared: World) -> tuple[str, ...]:
    """A run whose gates are open except for its approval; returns the words of `gate`."""
    gates = {**OPEN_GATES, "approvals": [{"name": "cab"}]}
    shared.begin(calendars=["Always"], actuator="None", gates=gates)
    shared.passes()
    shared.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
    shared.report()
    return ("upgrade", "gate", shared.run().metadata.name, "--kubeconfig", str(shared.server.kubeconfig))


def test_37_the_exit_code_of_a_run(shared: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """3 unknown, 2 closed, 0 open and begun, 1 an error; --wait ends when the approval is given."""
    gate = begin(shared)
    name, connection = gate[2], gate[3:]
    approve = ("upgrade", "approve", name, "--gate", "cab", "--reason", "change 4711", *connection)
    refused = run(*approve)
    assert refused.code == 1
    assert "no approval counts on this cluster: ValidatingAdmissionPolicy runup-update-approvals" in refused.err
    unknown = run(*gate)
    assert (unknown.code, unknown.out.splitlines()[-1]) == (3, "The update does not start: ApproverUnverified.")
    shared.verify_approvers()
    assert run(*gate).code == 2
    monkeypatch.setattr(gate_command, "_INTERVAL_S", 0.2)
    codes: list[int] = []
    timer = threading.Timer(0.5, lambda: codes.append(_approve(shared, name)))
    timer.start()
    began = SystemClock().monotonic()
    waited = run(*gate, "--wait", "1m")
    timer.join()
    assert (waited.code, waited.out.splitlines()[-1]) == (0, "The update may start.")
    assert SystemClock().monotonic() - began < 30
    assert codes == [0]
    shared.passes()
    shared.update("Partial")
    shared.passes()
    begun = run(*gate, "-o", "json")
    assert (begun.code, json.loads(begun.out)["reason"]) == (0, "Latched")
    assert "so it needs no approval any more" in run(*approve).err
    assert run("upgrade", "gate", "missing", *connection).code == 1


def _approve(shared: World, name: str) -> int:
    """Another person approves, from another process' point of view."""
    shared.approve(f"of-{name}", NEW.partition("@")[2])
    return 0


def test_57_an_approval_in_the_users_name(shared: World, run: Run) -> None:
    """The approval has the user, the digest of the run and the reason; --until ends it."""
    shared.verify_approvers()
    name, connection = begin(shared)[2], begin(shared)[3:]
    for each in shared.client.list_all(UpdateApproval)[0]:
        shared.client.send(calls.delete(observe.policy_objects.resource_of(UpdateApproval), each.metadata.name))
    words = ("upgrade", "approve", name, "--gate", "cab", "--reason", "change 4711", *connection)
    ran = run(*words, "--until", "2999-01-01T00:00:00Z")
    assert ran.code == 0, ran.err
    [approval] = shared.client.list_all(UpdateApproval)[0]
    assert ran.out.startswith(f"Approved cab of run {name} for 5.1.0 as {approval.spec.approved_by} (UpdateApproval ")
    assert (approval.spec.image_digests, approval.spec.reason) == ((NEW.partition("@")[2],), "change 4711")
    assert approval.spec.not_after is not None
    shared.passes()
    assert shared.reason() == "AllOpen"
    for changed, error in (
        (("--gate", "cb"), "give --gate cab"),
        (("--until", "2001-01-01T00:00:00Z"), "must be later than"),
        (("--reason", " "), "--reason must not be empty"),
        (("--until", "soon"), "--until 'soon' must be a time with an offset"),
    ):
        refused = run(*words, *changed)
        assert (refused.code, refused.out) == (1, "")
        assert error in refused.err
    missing = run("upgrade", "approve", "missing", *words[3:])
    assert (missing.code, "`runup upgrade runs` lists the runs" in missing.err) == (1, True)


def test_31_runs_are_shown_and_controlled(shared: World, run: Run) -> None:
    """A held run and a paused policy start nothing; an ended run cannot be controlled."""
    shared.verify_approvers()
    name, connection = begin(shared)[2], begin(shared)[3:]
    shared.approve(f"held-{name}", NEW.partition("@")[2])
    assert run("upgrade", "run", "hold", name, *connection).out.startswith(f"Run {name} starts no further step")
    shared.passes(2)
    listed = run("upgrade", "runs", *connection)
    assert (listed.code, listed.out.splitlines()[0]) == (0, f"{name}  from 5.0.3 to 5.1.0  Waiting, control Hold")
    assert listed.out.splitlines()[1] == "  hold  closed   spec.control is Hold."
    assert run("upgrade", "run", "resume", name, *connection).code == 0
    pause = ("upgrade", "policy", "pause", "--reason", "year end", *connection)
    past = run(*pause, "--until", "2001-01-01T00:00:00Z")
    assert (past.code, "--until 2001-01-01T00:00:00Z must be later than" in past.err) == (1, True)
    assert run(*pause).code == 0
    shared.passes(2)
    assert shared.run().status.started is None
    assert "year end" in run("upgrade", "runs", name, *connection).out
    assert run("upgrade", "policy", "resume", *connection).code == 0
    shared.passes(2)
    record = json.loads(run("upgrade", "runs", name, "-o", "json", *connection).out)["runs"][0]
    assert (record["name"], record["spec"].get("control", "Run")) == (name, "Run")
    assert {gate["state"] for gate in record["status"]["gates"]} == {"Open"}
    assert run("upgrade", "run", "skip", name, *connection).code == 0
    shared.passes(2)
    assert shared.run().status.step == "Done"
    refused = run("upgrade", "run", "hold", name, *connection)
    assert (refused.code, "has ended (Done)" in refused.err) == (1, True)
    assert run("upgrade", "runs", "missing", *connection).code == 1
