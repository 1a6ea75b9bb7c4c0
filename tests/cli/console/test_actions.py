"""The console does the same as the commands, with the rights of the user, and reports the result unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run, Server
from tests.cli.rights import LOOKER, let_looker
from tests.console.accounts import token_of
from tests.console.boards import ACTING, NOW

from kubekit.api.scheme import RESOURCES
from kubekit.kube import calls, config
from runup.advice.decide.acceptance import Acceptance, encode_record
from runup.cli.console.render.action_pages import command_of
from runup.console.control.cluster_actions import ClusterActions
from runup.console.decide.asked_actions import ACCEPT, START, ActionResult, RequestedAction, seal
from runup.fleet.decide.members import Member
from runup.process.connection import Connection
from runup.process.names import operator_namespace
from runup.report.report import FORMAT, Report, ReportedResource, ReportedRisk, encode

A, B, HERE = (f"quay.io/ocp/release@sha256:{letter * 64}" for letter in "ab0")
SINCE = "2026-01-14T09:30:00Z"
RISK = {"name": "DualStackIncompatible", "message": "m", "url": "https://x", "matchingRules": [{"type": "Always"}]}


def _condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": "Risky", "message": "One.", "lastTransitionTime": SINCE}


STATUS: dict[str, Any] = {
    "desired": {"version": "5.0.0", "image": HERE},
    "availableUpdates": [{"version": "5.1.0", "image": A}],
    "conditionalUpdates": [
        {
            "release": {"version": "5.2.0", "image": B},
            "risks": [RISK],
            "conditions": [_condition("Recommended", "False")],
        }
    ],
}
FAILING = {**STATUS, "conditions": [_condition("Failing", "True")]}
ACCEPTING = {"desiredUpdate": {"acceptRisks": [{"name": "Other"}]}}


def _member(server: Server) -> Member:
    return Member(name="harbour", kubeconfig=str(server.kubeconfig))


def _asked(server: Server, action: str, target: str, **more: str) -> RequestedAction:
    field = "risk" if action == ACCEPT else "version"
    return RequestedAction(action=action, member=_member(server), **{field: target, **more})


def _acted(actions: ClusterActions, asked: RequestedAction) -> ActionResult:
    """Returns the result of an action that is confirmed as shown."""
    looked = actions.look(asked)
    assert looked.truth is not None
    return actions.act(asked, seal(asked, looked.truth))


@pytest.mark.parametrize(
    ("asked", "state", "words"),
    [
        pytest.param((START, "5.1.0"), {}, ("--to", "5.1.0"), id="a recommended update"),
        pytest.param((START, "5.1.0"), {"spec": ACCEPTING}, ("--to", "5.1.0"), id="an update, risks accepted before"),
        pytest.param((START, "5.2.0"), {}, ("--to", "5.2.0"), id="an update with a risk that nobody accepted"),
        pytest.param((START, "5.1.0"), {"status": FAILING}, ("--to", "5.1.0"), id="an update of what is failing"),
        pytest.param((START, "5.3.0"), {}, ("--to", "5.3.0"), id="an update that is not offered"),
        pytest.param((START, "5.0.0"), {}, ("--to", "5.0.0"), id="where the cluster is"),
        pytest.param((START, "new"), {}, ("--to", "new"), id="no version"),
        pytest.param((ACCEPT, RISK["name"]), {}, ("accept", RISK["name"]), id="a risk"),
        pytest.param((ACCEPT, RISK["name"]), {"spec": ACCEPTING}, ("accept", RISK["name"]), id="one risk more"),
        pytest.param((ACCEPT, "Other"), {"spec": ACCEPTING}, ("accept", "Other"), id="what is accepted"),
        pytest.param((ACCEPT, "DualStack"), {}, ("accept", "DualStack"), id="a risk that no update has"),
        pytest.param((ACCEPT, "bad name!"), {}, ("accept", "bad name!"), id="what no risk is called"),
    ],
)
def test_the_same_as_the_command(
    asked: tuple[str, str], state: dict[str, Any], words: tuple[str, ...], run: Run, server: Server
) -> None:
    """The same words, the same refusal, and the same request in the cluster; the page is of what is there then."""
    server.set_cluster_version(**{"status": STATUS, **state})
    ran = run("upgrade", *words, "--kubeconfig", server.kubeconfig)
    typed = server.cluster_version()["spec"]
    server.set_cluster_version(**{"status": STATUS, **state})
    before = server.cluster_version()["spec"]
    looked = _acted(ClusterActions(Connection()), _asked(server, *asked))
    assert server.cluster_version()["spec"] == typed
    shown = "\n".join((*looked.said, looked.refused)).strip()
    assert shown == (ran.err + ran.out).removeprefix("error: ").strip()
    assert (looked.done, bool(looked.refused)) == (ran.code == 0, ran.code != 0)
    assert looked.truth is not None
    assert looked.truth.requested == (typed.get("desiredUpdate", {}).get("version") or "")
    assert set(looked.truth.accepted) == {
        risk["name"] for risk in typed.get("desiredUpdate", {}).get("acceptRisks", ())
    }
    assert (typed == before) or looked.done


def test_what_accepted_risks_cover_by_now(server: Server) -> None:
    """The page of an action names the objects that came since a risk was accepted, as the command's warning does."""
    server.set_cluster_version(status=STATUS)
    server.patch_spec(desiredUpdate={"mode": "Preflight", "version": "5.2.0", "acceptRisks": [{"name": RISK["name"]}]})
    resources = tuple(ReportedResource(kind="Node", name=name) for name in ("a", "b"))
    found = Report(
        format=FORMAT,
        preflight_id="one",
        source_version="5.0.0",
        target_version="5.2.0",
        execution_status="completed",
        risks=(ReportedRisk(name=RISK["name"], message="m", resources=resources),),
    )
    record = Acceptance(name=RISK["name"]).covering(["Node a"])
    namespace = {"metadata": {"name": operator_namespace()}}
    server.client.send(calls.create(RESOURCES["kubekit.api.core_v1.Namespace"], namespace))
    for name, data in (
        ("preflight-history", {"one.json": encode(found).decode()}),
        ("accepted-risks", {RISK["name"]: encode_record(record)}),
    ):
        body = {"metadata": {"name": name, "namespace": operator_namespace()}, "data": data}
        server.client.send(calls.create(RESOURCES["kubekit.api.core_v1.ConfigMap"], body))
    asked = _asked(server, START, "")
    looked = ClusterActions(Connection()).look(asked)
    assert looked.truth is not None
    assert looked.truth.grown == (f"{RISK['name']} was accepted for 1, and has grown: Node b",)
    assert looked.truth.grown[0] in ACTING.action(asked, looked, "key", NOW)


def test_looking_changes_nothing(server: Server) -> None:
    """A page that asks for confirmation has been made by reading alone, and says what the command would refuse."""
    server.set_cluster_version(status=STATUS)
    before = server.cluster_version()
    actions = ClusterActions(Connection())
    looked = actions.look(_asked(server, START, ""))
    assert looked.truth is not None
    assert (looked.truth.offered, looked.truth.risks) == (("5.1.0", "5.2.0"), (RISK["name"],))
    assert (looked.truth.release, looked.truth.requested, looked.truth.accepted) == ("5.0.0", "", ())
    assert actions.look(_asked(server, START, "5.1.0")).refused == ""
    assert "--allow-not-recommended" in actions.look(_asked(server, START, "5.2.0")).refused
    assert actions.look(_asked(server, ACCEPT, RISK["name"])).refused == ""
    assert server.cluster_version() == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"desiredUpdate": {"acceptRisks": [{"name": "Other"}]}}, id="another risk is accepted"),
        pytest.param({"desiredUpdate": {"version": "5.1.0", "image": A}}, id="another update is asked for"),
    ],
)
def test_what_has_changed_since_it_was_confirmed(change: dict[str, Any], server: Server) -> None:
    """Nothing is done: what was read on the page is not so any more."""
    server.set_cluster_version(status=STATUS)
    actions, asked = ClusterActions(Connection()), _asked(server, START, "5.1.0")
    truth = actions.look(asked).truth
    assert truth is not None
    server.patch_spec(**change)
    looked = actions.act(asked, seal(asked, truth))
    assert (looked.done, looked.status) == (False, 409)
    assert "the cluster has changed since this was confirmed, so nothing was done" in looked.refused
    assert server.cluster_version()["spec"]["desiredUpdate"] == change["desiredUpdate"]


@pytest.mark.parametrize("confirmed", ["", "0" * 64])
def test_what_was_not_confirmed(confirmed: str, server: Server) -> None:
    """Neither is it done without a confirmation, nor with that of something else."""
    server.set_cluster_version(status=STATUS)
    actions, asked = ClusterActions(Connection()), _asked(server, START, "5.1.0")
    assert actions.act(asked, confirmed).status == 409
    truth = actions.look(asked).truth
    assert truth is not None
    assert actions.act(replace(asked, version="5.2.0"), seal(asked, truth)).status == 409
    assert "desiredUpdate" not in server.cluster_version()["spec"]


@pytest.mark.parametrize("risk", ["A,B", "A-", "-A"])
def test_one_risk_at_a_time(risk: str, server: Server) -> None:
    """Flags for several names or a removal do not exist here."""
    server.set_cluster_version(status=STATUS)
    looked = _acted(ClusterActions(Connection()), _asked(server, ACCEPT, risk))
    assert "is not the name of one risk" in looked.refused
    assert "desiredUpdate" not in server.cluster_version()["spec"]


READS = {"clusterversions.config.openshift.io": ("get",)}
WRITES = {
    "clusterversions.config.openshift.io": ("get", "patch"),
    "configmaps": ("get", "create", "patch"),
}


@pytest.mark.parametrize(("action", "target"), [(START, "5.1.0"), (ACCEPT, RISK["name"])])
def test_who_may_not(action: str, target: str, server: Server) -> None:
    """The server's own words about the kubeconfig's user, and nothing is changed."""
    server.set_cluster_version(status=STATUS)
    let_looker(server.client, READS)
    connection = Connection()
    connection.as_user = LOOKER
    looked = _acted(ClusterActions(connection), _asked(server, action, target))
    assert (looked.done, looked.status) == (False, 403)
    assert 'User "looker" cannot patch resource "clusterversions"' in looked.refused
    assert looked.truth is not None
    assert looked.truth.user == LOOKER
    assert "desiredUpdate" not in server.cluster_version()["spec"]


def test_with_a_login_it_is_the_users_right(server: Server) -> None:
    """The console's own account may do everything, and a user who may not is refused; one who may is recorded."""
    server.set_cluster_version(status=STATUS)
    actions = ClusterActions(Connection(), config.load(str(server.kubeconfig)))
    reader = _asked(server, START, "5.1.0", token=token_of(server.client, "reader", READS))
    looked = _acted(actions, reader)
    assert (looked.done, looked.status) == (False, 403)
    assert 'User "system:serviceaccount:default:reader" cannot patch resource "clusterversions"' in looked.refused
    writer = token_of(server.client, "writer", WRITES)
    looked = _acted(actions, _asked(server, ACCEPT, RISK["name"], token=writer))
    assert (looked.done, looked.refused) == (True, "")
    assert looked.truth is not None
    assert (looked.truth.user, looked.truth.accepted) == ("system:serviceaccount:default:writer", (RISK["name"],))
    managers = {each["manager"] for each in server.cluster_version()["metadata"]["managedFields"]}
    assert "runup" in managers


@pytest.mark.parametrize("token", ["", "made-up"])
def test_a_login_without_a_right_token(token: str, server: Server) -> None:
    """The console's own account does not are in for it."""
    server.set_cluster_version(status=STATUS)
    actions = ClusterActions(Connection(), config.load(str(server.kubeconfig)))
    looked = actions.act(_asked(server, START, "5.1.0", token=token), "")
    assert (looked.truth, looked.done) == (None, False)
    assert "log in again" in looked.refused or "You must be logged in to the server" in looked.refused


def test_a_token_goes_to_the_cluster_of_the_login_alone(server: Server) -> None:
    """Another cluster of the fleet is not asked: its server would have the token."""
    login = replace(config.load(str(server.kubeconfig)), server="https://login.example:6443")
    looked = ClusterActions(Connection(), login).look(_asked(server, START, "5.1.0", token="t0k3n"))
    assert looked.truth is None
    assert "harbour is another cluster, to which your token is never sent" in looked.refused


@pytest.mark.slow
def test_a_server_that_does_not_know_acceptances(old_server: Server) -> None:
    """It is reported that nothing is accepted, and what is true there."""
    old_server.set_cluster_version(status={key: value for key, value in STATUS.items() if key != "conditionalUpdates"})
    looked = _acted(ClusterActions(Connection()), _asked(old_server, ACCEPT, RISK["name"]))
    assert (looked.done, looked.status) == (False, 409)
    assert "unable to accept risks" in looked.refused
    assert looked.truth is not None
    assert looked.truth.accepted == ()


def test_a_cluster_that_cannot_be_asked(server: Server) -> None:
    """No ClusterVersion, no server, no kubeconfig: each is one reason."""
    server.remove_cluster_version()
    asked = _asked(server, START, "5.1.0")
    actions = ClusterActions(Connection())
    assert "you must be connected to an OpenShift" in actions.look(asked).refused
    looked = actions.look(replace(asked, member=Member(name="gone", kubeconfig="/nowhere")))
    assert (looked.status, "/nowhere" in looked.refused) == (502, True)


def test_no_token_is_printed(server: Server) -> None:
    """A log line or a traceback with what was asked for does not have it."""
    assert "t0k3n" not in repr(_asked(server, START, "5.1.0", token="t0k3n"))


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        pytest.param({"action": START, "version": "5.1.0"}, "runup upgrade --to 5.1.0 --context 'a b'", id="a start"),
        pytest.param({"action": START}, "runup upgrade --to VERSION --context 'a b'", id="some start"),
        pytest.param({"action": ACCEPT}, "runup upgrade accept NAME --context 'a b'", id="some risk"),
        pytest.param(
            {"action": ACCEPT, "risk": "A", "reason": "it's fine", "until": "30d"},
            """runup upgrade accept A --reason 'it'"'"'s fine' --until 30d --context 'a b'""",
            id="a risk, with its reason",
        ),
    ],
)
def test_the_command_beside_it(asked: dict[str, str], command: str) -> None:
    """The shown command does the same when it is typed, with shell quoting."""
    assert command_of(RequestedAction(member=Member(name="a", context="a b"), **asked)) == command
