"""`runup fleet update ... --hub` as typed, on the sandbox as a hub whose engine is the test. Numbers are of cases."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Ran, Run
from tests.documents import document
from tests.fleet.control.hub_world import NAMESPACE, NAMESPACES, WORKS, HubWorld, hub_world
from tests.fleet.decide.fleet_updates import IMAGE, stage
from tests.rollout.control.test_rights import KINDS
from tests.servers import CRD

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import timestamp
from runup.api.fleet_update_v1alpha1 import FleetUpdate
from runup.api.update_policy_v1alpha1 import UpdateApproval
from runup.fleet.control.hub_fleets import FLEETS, LEASE, MANAGERS
from runup.fleet.decide.hub_update.engine_objects import PART, REPLICA_SET, TURNS
from runup.fleet.decide.hub_update.observation import GATE

pytestmark = pytest.mark.slow
POLICIES = Path(__file__).parents[3] / "deploy" / "update-policy"
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
NAME = "five-one"
Type = Callable[..., Ran]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubWorld]:
    """A hub that serves approvals, whose authors nobody verifies yet."""
    with hub_world(tmp_path_factory.mktemp("hub") / "data") as made:
        made.client.send(calls.create(CRD, document(POLICIES / "01_updateapprovals.crd.yaml")))
        yield made


@pytest.fixture
def type_(run: Run, hub: HubWorld) -> Type:
    """Types `runup fleet update WORDS` about this hub."""
    context = config.load(str(hub.kubeconfig)).context
    return lambda *words: run("fleet", "update", *words, "--hub", context, "--kubeconfig", str(hub.kubeconfig))


def lead(hub: HubWorld) -> None:
    """A controller has renewed its Lease just now."""
    renewed = hub.client.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    hub.put(LEASES, LEASE, NAMESPACE, spec={"holderIdentity": "a", "leaseDurationSeconds": 137, "renewTime": renewed})


def verify_approvers(hub: HubWorld) -> None:
    """The admission policy that verifies the authors of approvals is in place since more than a second."""
    for body in list(yaml.safe_load_all((POLICIES / "05_approvals.yaml").read_text(encoding="utf-8")))[:2]:
        plural = "validatingadmissionpolic" + ("ybindings" if "Binding" in body["kind"] else "ies")
        resource = Resource("admissionregistration.k8s.io", "v1", body["kind"], plural, namespaced=False)
        hub.client.send(calls.apply(resource, body, field_manager="tests"))
    SystemClock().pause(1.1)


def shown(ran: Ran) -> dict[str, Any]:
    """The data of a status."""
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_shows_what_the_controller_has_stored(hub: HubWorld, type_: Type) -> None:
    """Stages, turns, reasons and troubles of the status; each cluster only if asked for."""
    hub.begin("a", "b", "c", stages=[stage()], maxFailures=1)
    lead(hub)
    assert type_("status", NAME).out.splitlines()[-2:] == [
        "The controller has not read the FleetUpdate yet.",
        f"Each cluster, and why it is unknown: runup fleet update status {NAME} --hub "
        f"{config.load(str(hub.kubeconfig)).context} --clusters",
    ]
    hub.passes(3)
    hub.run("a", "ControlPlane", gates="Latched")
    hub.report("a", "t1", {"Progressing": "True"}, done="NotYet")
    hub.run("b", "Waiting", gates="PreflightRisks")
    hub.run("c", "Failed")
    hub.passes(2)
    ran = type_("status", NAME)
    assert ran.code == 2
    lines = [" ".join(each.split()) for each in ran.out.splitlines() if each]
    assert lines[:5] == [
        f"{NAME}: update of 3 clusters to 5.1.0: 1 running, 1 waiting, 1 failed",
        "STAGE PHASE ROUND TURNS DONE RUNNING READY WAITING UNKNOWN SKIPPED FAILED",
        "canary Running 1/3 1 . 1 . 1 . . 1",
        "canary waits: 1 PreflightRisks",
        "Failed: canary/c: x",
    ]
    assert lines[5] == "Updates run, or a cluster may start."
    until = hub.fleet().status.permit_until
    assert lines[6].startswith(f"Permits until {timestamp(until)}: if held now, no update starts later")
    assert "CLUSTER" not in ran.out
    listed = type_("status", NAME, "--clusters")
    rows = [each.split() for each in listed.out.splitlines() if each.startswith("  ")]
    assert [rows[-3], rows[-1]] == [["a", "canary", "running", "ControlPlane"], ["c", "canary", "failed", "x"]]
    assert rows[-2] == ["b", "canary", "waiting", "PreflightRisks"]


def test_46_only_reads_the_status(hub: HubWorld, type_: Type) -> None:
    """The status in every form, and every request of it is a read; a page of a list has at most 500 objects."""
    hub.begin("a", stages=[stage()])
    lead(hub)
    hub.passes(2)
    audit = hub.kubeconfig.parent / "audit.log"
    before = len(audit.read_text(encoding="utf-8").splitlines())
    data = shown(type_("status", NAME, "-o", "json"))
    assert (data["hub"]["namespace"], data["clusters"][0]["state"]) == (NAMESPACE, "unknown")
    assert data["clusters"][0]["message"] == "its agent has not reported the run"
    for form, word in (("junit", "<error"), ("markdown", "| a | canary | unknown |"), ("html", "<h1>")):
        assert word in type_("status", NAME, "-o", form).out, form
    events = [json.loads(each) for each in audit.read_text(encoding="utf-8").splitlines()[before:]]
    assert {each["verb"] for each in events} <= {"get", "list"}
    lists = [each["requestURI"] for each in events if each["verb"] == "list"]
    assert lists
    assert all("limit=500" in each for each in lists)


def test_53_says_when_nobody_keeps_the_status(hub: HubWorld, type_: Type) -> None:
    """Counts that nobody keeps are unknown, not the state of the fleet."""
    hub.begin("a", stages=[stage()])
    lead(hub)
    hub.passes(2)
    hub.run("a", "Waiting", gates="PreflightRisks")
    hub.passes()
    assert type_("status", NAME).code == 2
    hub.client.send(calls.delete(LEASES, LEASE, NAMESPACE))
    ran = type_("status", NAME)
    assert ran.code == 3
    assert "This may be out of date: Lease runup-fleet/fleet-controller does not exist" in ran.out


def test_watches_until_the_update_is_over(hub: HubWorld, type_: Type) -> None:
    """Each change of the counts is a line; the command ends with the code of the outcome."""
    hub.begin("a", stages=[stage()])
    lead(hub)
    hub.passes(3)
    hub.run("a", "ControlPlane", gates="Latched")
    hub.passes()

    def finish() -> None:
        hub.run("a", "Done", "Succeeded", gates="Succeeded")
        hub.passes(2)

    timer = threading.Timer(1, finish)
    timer.start()
    ran = type_("watch", NAME, "--interval", "1s")
    timer.join()
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0][10:] == f"{NAME}: update of 1 cluster to 5.1.0: 1 running (Running)"
    assert "Every cluster is updated" in ran.out


def test_41_holds_resumes_and_aborts(hub: HubWorld, type_: Type) -> None:
    """The status is unknown until the controller has read the change; an abort is final."""
    hub.begin("a", stages=[stage()])
    lead(hub)
    hub.passes(3)
    held = type_("hold", NAME, "--reason", "incident 12")
    assert (held.code, held.out.startswith(f"FleetUpdate {NAME} is held")) == (0, True)
    early = type_("status", NAME)
    assert (early.code, "has not read the newest change" in early.out) == (3, True)
    hub.passes(2)
    ran = type_("status", NAME)
    assert (ran.code, "Reason: incident 12" in ran.out) == (4, True)
    assert "runup fleet update resume five-one --hub" in ran.out
    assert type_("resume", NAME).code == 0
    hub.passes(2)
    assert hub.condition("Held") == ("False", "Running")
    assert "update.runup.dev/reason" not in hub.fleet().metadata.annotations
    assert type_("abort", NAME).code == 0
    hub.passes(2)
    assert type_("status", NAME).code == 1
    refused = type_("resume", NAME)
    assert (refused.code, "was aborted: create another one" in refused.err) == (1, True)


def test_40_resumes_a_blown_fuse_only_when_it_is_acknowledged(hub: HubWorld, type_: Type) -> None:
    """The error has the cause; --acknowledge continues, and the fuse blows again while the cause is still there."""
    hub.begin("a", "b", stages=[stage()])
    lead(hub)
    hub.passes(3)
    hub.run("a", "Failed")
    hub.passes(2)
    ran = type_("status", NAME)
    assert (ran.code, "1 cluster failed, and spec.maxFailures allows 0: canary/a." in ran.out) == (1, True)
    refused = type_("resume", NAME)
    assert refused.code == 1
    assert "1 cluster failed, and spec.maxFailures allows 0: canary/a. Fix the cause" in refused.err
    assert type_("resume", NAME, "--acknowledge").code == 0
    hub.passes(2)
    assert hub.condition("Failed") == ("True", "FuseBlown")
    hub.client.send(calls.merge_patch(FLEETS, NAME, {"spec": {"maxFailures": 1}}, NAMESPACE))
    assert type_("resume", NAME, "--acknowledge").code == 0
    hub.passes(2)
    assert hub.condition("Failed") == ("False", "AsExpected")


def test_43_opens_a_stage_again_for_a_late_cluster(hub: HubWorld, type_: Type) -> None:
    """The trouble has a command that removes it."""
    hub.begin("a", stages=[stage()])
    lead(hub)
    hub.passes(3)
    hub.run("a", "Done", "Succeeded", gates="Succeeded")
    hub.report("a", "t1", {"Progressing": "False"}, done="Succeeded")
    hub.passes(3)
    # The engine takes the turns back with their set.
    for work in hub.client.send(calls.list_raw(WORKS, "a", label_selector=f"{PART}={TURNS}")).items:
        hub.client.send(calls.delete(WORKS, work["metadata"]["name"], "a"))
    assert type_("status", NAME).code == 0
    assert "has no cluster that could get a turn" in type_("retry", NAME, "--stage", "canary").err
    hub.client.send(calls.apply(NAMESPACES, {"metadata": {"name": "b"}}, field_manager="tests"))
    hub.run("b", "Waiting")
    hub.passes()
    assert "LateCluster: canary/b" in type_("status", NAME).out
    assert "give --stage, and no clusters" in type_("retry", NAME, "b").err
    assert type_("retry", NAME, "--stage", "canary").code == 0
    hub.passes(2)
    assert hub.fleet().status.stages[0].phase == "Running"
    # The engine answers for the set of runs; one that does not answer for five minutes stops everything.
    answered = {**hub.sets()["runs"], "status": {"conditions": [{"type": "PlacementVerified", "status": "True"}]}}
    hub.client.send(calls.replace(REPLICA_SET, answered, subresource="status"))
    hub.passes(2, later=timedelta(minutes=6))
    assert sorted(hub.sets()) == ["runs", "t2"]


def test_57_approves_a_stage_in_the_users_name(hub: HubWorld, type_: Type) -> None:
    """An approval whose author nobody verifies is not given; a verified one opens the stage."""
    gates = [{"type": "Approval", "name": "go"}]
    hub.begin("a", stages=[stage(before=gates)])
    lead(hub)
    hub.passes(3)
    ran = type_("status", NAME)
    assert (ran.code, hub.fleet().status.stages[0].phase) == (4, "Checking")
    assert f"runup fleet update approve {NAME} --hub" in ran.out
    assert ran.out.rstrip().endswith("--stage canary --gate go --reason TEXT")
    words = ("approve", NAME, "--stage", "canary", "--gate", "go", "--reason", "change 4711")
    assert "no approval counts on this cluster" in type_(*words).err
    verify_approvers(hub)
    for changed, error in (
        (("--stage", "main"), "there is no stage main; give --stage canary"),
        (("--gate", "gone"), "stage canary has no approval gone: give --gate go"),
        (("--reason", " "), "--reason must not be empty"),
        (("--until", "2001-01-01T00:00:00Z"), "must be later than"),
    ):
        assert error in type_(*words, *changed).err
    given = type_(*words)
    assert given.code == 0, given.err
    [approval] = hub.client.list_all(UpdateApproval)[0]
    assert given.out.startswith(f"Approved go of stage canary for 5.1.0 as {approval.spec.approved_by} (UpdateApproval")
    assert approval.spec.image_digests == (IMAGE.partition("@")[2],)
    hub.passes(3)
    assert (hub.fleet().status.stages[0].phase, hub.fleet().status.closed) == ("Running", None)
    hub.client.send(calls.delete(resource_of(UpdateApproval), approval.metadata.name))


def test_refuses_options_that_do_not_go_together(hub: HubWorld, type_: Type, run: Run, tmp_path: Path) -> None:
    """An option of the journal on a hub and the reverse; a name that the hub lacks names those that it has."""
    hub.begin("a", stages=[stage()])
    wrong = type_("status", NAME, "--journal", str(tmp_path / "j"))
    assert (wrong.code, "--journal has no effect on a hub" in wrong.err) == (1, True)
    assert "--acknowledge needs --hub" in run("fleet", "update", "resume", NAME, "--acknowledge").err
    missing = type_("hold", "six")
    assert (missing.code, f"has no FleetUpdate six: it has {NAME}" in missing.err) == (1, True)
    elsewhere = type_("status", NAME, "-n", "default")
    assert "namespace default of the hub has no FleetUpdate" in elsewhere.err
    file = tmp_path / "update.yaml"
    body = {"apiVersion": FLEETS.api_version, "kind": "FleetUpdate", "metadata": {"name": NAME}}
    spec = {"target": {"version": "5.1.0", "image": IMAGE}, "stages": [stage()]}
    file.write_text(yaml.safe_dump({**body, "spec": spec}), encoding="utf-8")
    assert type_("hold", file).code == 0


def test_55_checks_whether_the_hub_can_carry_it_out(hub: HubWorld, type_: Type, tmp_path: Path) -> None:
    """A hub without the feature gate, or with an engine before 1.2.0, is refused by name before anything is stored."""
    file = tmp_path / "update.yaml"
    body = {"apiVersion": FLEETS.api_version, "kind": "FleetUpdate", "metadata": {"name": "next"}}
    spec = {"target": {"version": "5.1.0", "image": IMAGE}, "stages": [stage()]}
    file.write_text(yaml.safe_dump({**body, "spec": spec}), encoding="utf-8")
    hub.begin("a", "b", stages=[stage()])
    ran = type_("check", file)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "canary: 2 clusters")
    gates = [{"feature": GATE, "mode": "Enable"}]
    for changed, reason in (
        ({"workConfiguration": {"featureGates": []}}, "FeatureGateDisabled: Feature gate ManifestWorkReplicaSet"),
        (
            {"workConfiguration": {"featureGates": gates}, "workImagePullSpec": "example.com/work:v1.0.0"},
            "EngineTooOld: example.com/work:v1.0.0 is older than 1.2.0",
        ),
    ):
        hub.put(MANAGERS, "cluster-manager", spec=changed)
        refused = type_("check", file)
        assert (refused.code, reason in refused.out) == (1, True), refused.out
    hub.put(MANAGERS, "cluster-manager", spec={"workConfiguration": {"featureGates": gates}})
    spec["mutexes"] = [{"label": "rack"}]
    file.write_text(yaml.safe_dump({**body, "spec": spec}), encoding="utf-8")
    assert "MutexesOnHub" in type_("check", file).out
    assert "--contexts has no effect on a hub" in type_("check", file, "--contexts", "x").err
    assert [each.metadata.name for each in hub.client.list_all(FleetUpdate, NAMESPACE)[0]] == [NAME]


def test_the_roles_of_people_suffice(hub: HubWorld, type_: Type) -> None:
    """A viewer reads the status with its clusters and holds nothing; an operator holds."""
    for role in yaml.safe_load_all((POLICIES / "11_people.yaml").read_text(encoding="utf-8")):
        hub.client.send(calls.apply(KINDS["ClusterRole"], role, field_manager="tests"))
        name = role["metadata"]["name"]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        hub.client.send(calls.apply(KINDS["ClusterRoleBinding"], binding, field_manager="tests"))
    hub.begin("a", stages=[stage()])
    lead(hub)
    hub.passes(2)
    viewer, operator = ("--as", "runup-update-viewer"), ("--as", "runup-update-operator")
    for user in (viewer, operator):
        ran = type_("status", NAME, "--clusters", *user)
        assert (ran.code, ran.err, "out of date" in ran.out) == (3, "", False)
    assert "forbidden" in type_("hold", NAME, *viewer).err
    assert type_("hold", NAME, *operator).code == 0
    assert hub.fleet().spec.control == "Hold"
