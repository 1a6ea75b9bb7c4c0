"""The console's page of a policy and its actions on runs: as the commands, by the user's rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run
from tests.console.accounts import token_of
from tests.console.boards import NOW, PAGES, board, policy_status
from tests.rollout.control.policy_world import OPEN_GATES, World, world

from kubekit.kube import config
from runup.api.update_policy_v1alpha1 import UpdateApproval
from runup.cli.rollout.policy_command import start_sentence
from runup.console.control import worker_tasks
from runup.console.control.cluster_actions import ClusterActions
from runup.console.decide.asked_actions import APPROVE, HOLD, RESUME, ActionResult, RequestedAction, RunState, seal
from runup.fleet.decide.members import Member
from runup.process.connection import Connection
from runup.rollout.control.policy_reading import PolicyReading

pytestmark = pytest.mark.slow
READS = {"updateruns.update.runup.dev": ("get", "list")}
APPROVES = {
    "updateruns.update.runup.dev": ("get", "list", "approve"),
    "updateapprovals.update.runup.dev": ("create",),
    "validatingadmissionpolicies.admissionregistration.k8s.io": ("get",),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": ("get",),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests, with a run that waits for an approval."""
    with world(tmp_path_factory.mktemp("console") / "data") as found:
        found.begin(calendars=["Always"], actuator="None", gates={**OPEN_GATES, "approvals": [{"name": "cab"}]})
        found.verify_approvers()
        found.passes(2)
        yield found


def _asked(shared: World, action: str, token: str = "", **more: str) -> RequestedAction:
    member = Member(name="harbour", kubeconfig=str(shared.server.kubeconfig))
    return RequestedAction(action=action, member=member, token=token, **more)


def _acted(actions: ClusterActions, asked: RequestedAction) -> ActionResult:
    looked = actions.look(asked)
    assert looked.truth is not None, looked.refused
    return actions.act(asked, seal(asked, looked.truth))


def _run_of(looked: ActionResult) -> RunState:
    assert isinstance(looked.truth, RunState)
    return looked.truth


def test_a_run_is_held_and_resumed_as_by_the_command(shared: World, run: Run) -> None:
    """With the command's words; a run that has changed since it was confirmed is left as it is."""
    actions, name = ClusterActions(Connection()), shared.run().metadata.name
    assert _run_of(actions.look(_asked(shared, HOLD))).choices == ((name, ""),)
    hold, resume = _asked(shared, HOLD, run=name), _asked(shared, RESUME, run=name)
    before = actions.look(hold).truth
    assert before is not None
    looked = _acted(actions, hold)
    assert (looked.done, shared.run().spec.control) == (True, "Hold")
    typed = run("upgrade", "run", "hold", name, "--kubeconfig", shared.server.kubeconfig)
    assert "\n".join(looked.said) == typed.out.strip()
    stale = actions.act(hold, seal(hold, before))
    assert (stale.done, stale.status, "has changed" in stale.refused) == (False, 409, True)
    assert _acted(actions, resume).done
    assert shared.run().spec.control == "Run"
    missing = actions.look(_asked(shared, HOLD, run="missing"))
    assert "UpdateRun missing does not exist" in missing.refused


def test_57_who_approves_is_the_user_of_the_login(shared: World) -> None:
    """The console's own account may do everything; a user without the verb is refused in the server's words."""
    actions = ClusterActions(Connection(), config.load(str(shared.server.kubeconfig)))
    name = shared.run().metadata.name
    reader = token_of(shared.client, "reader", READS | {"updateapprovals.update.runup.dev": ("create",)})
    asked = _asked(shared, APPROVE, reader, run=name, gate="cab", reason="4711")
    looked = _acted(actions, asked)
    assert not looked.done
    assert "system:serviceaccount:default:reader may not approve run" in looked.refused
    assert shared.client.list_all(UpdateApproval)[0] == []
    writer = token_of(shared.client, "writer", APPROVES)
    asked = _asked(shared, APPROVE, writer, run=name, gate="cab")
    assert _run_of(actions.look(replace(asked, run=""))).choices == ((name, "cab"),)
    assert "--reason must not be empty" in _acted(actions, asked).refused
    assert "must be a time with an offset" in _acted(actions, replace(asked, reason="4711", until="soon")).refused
    looked = _acted(actions, replace(asked, reason="4711"))
    assert (looked.done, looked.refused) == (True, "")
    [approval] = shared.client.list_all(UpdateApproval)[0]
    assert (approval.spec.approved_by, approval.spec.run) == ("system:serviceaccount:default:writer", name)


def test_21_the_page_has_the_values_of_the_commands(shared: World, run: Run) -> None:
    """The sentence about the start, the gates, and who may approve are those that the commands print."""
    token_of(shared.client, "writer", APPROVES)
    member = Member(name="harbour", kubeconfig=str(shared.server.kubeconfig))
    reading = worker_tasks.policy_of(member, connection=Connection())
    assert isinstance(reading, PolicyReading)
    assert reading.shown is not None
    page = PAGES.policy(board(), "harbour", policy_status(reading), NOW)
    connection = ("--kubeconfig", shared.server.kubeconfig)
    explained = run("upgrade", "policy", "explain", *connection).out.splitlines()
    # With Always the opening begins at the time of the evaluation, which differs.
    assert start_sentence(reading.shown).partition(" at ")[0] == explained[0].partition(" at ")[0]
    assert start_sentence(reading.shown) in page
    runs = run("upgrade", "runs", shared.run().metadata.name, *connection).out
    assert "May approve: Group system:masters, ServiceAccount default/writer." in " ".join(runs.split())
    assert "ServiceAccount default/writer" in page
    for gate in shared.run().status.gates:
        assert gate.reason in page


def test_a_policy_that_cannot_be_read(shared: World) -> None:
    """A dump, and a cluster whose server does not answer, have a reason."""
    assert "live cluster" in str(worker_tasks.policy_of(Member(name="d", dump="d"), connection=Connection()))
    lost = worker_tasks.policy_of(Member(name="d", kubeconfig="/nowhere"), connection=Connection())
    assert "/nowhere" in str(lost)
