"""Update policies on each server: their definitions, and what admission lets the controller change in ClusterVersion.

Numbers are those of the acceptance cases: 59 is a stolen token of the controller, 58 is a run with a tag.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contract.api import CRDS, JSON, Api
from tests.documents import document
from tests.servers import CRDS as DEFINITIONS

from runup.rollout.decide.approvals import POLICY, verified_since, why_unverified

FOLDER = Path(__file__).parents[2] / "deploy" / "update-policy"
CONTROLLER = "system:serviceaccount:runup-update:update-controller"
VERSION = "/apis/config.openshift.io/v1/clusterversions"
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
RUNS = "/apis/update.runup.dev/v1alpha1/updateruns"
NEW, OTHER = (f"example.com/release@sha256:{digit * 64}" for digit in "59")
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


def eventually(condition: Any) -> None:
    """Waits until the server serves or enforces what was created."""
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within 30 s")


@pytest.fixture(scope="module")
def installed(api: Api) -> Iterator[Api]:
    """The server with ClusterVersion, the definitions, the roles and the admission policy."""
    name = "0000_00_cluster-version-operator_01_clusterversions-CustomNoUpgrade.crd.yaml"
    pools = "0000_80_machine-config_01_machineconfigpools.crd.yaml"
    for file in [DEFINITIONS / name, DEFINITIONS / pools, *sorted(FOLDER.glob("01_*.crd.yaml"))]:
        assert api.post(CRDS, document(file)).code in (201, 409)
    for namespace in ("openshift-monitoring", "openshift-cluster-version-operator"):
        api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for file in (
        "00_namespace.yaml",
        "02_roles.yaml",
        "03_admission.yaml",
        "05_approvals.yaml",
        "09_pools.yaml",
        "11_people.yaml",
    ):
        for obj in yaml.safe_load_all((FOLDER / file).read_text(encoding="utf-8")):
            path = PATHS[obj["kind"]].format(namespace=obj["metadata"].get("namespace", ""))
            made = api.post(path, obj)
            assert made.code in (201, 409), made.body
    eventually(lambda: all(api.get(path).code == 200 for path in (VERSION, RUNS, POOLS)))
    cluster = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    spec = {"clusterID": "4f1a8d5e-7ff2-4ef1-8f4b-6f4c3c1ac5b7", "channel": "stable-5.1"}
    assert api.post(VERSION, {**cluster, "spec": spec}).code in (201, 409)
    controller = api.impersonating(CONTROLLER)
    forced = {"desiredUpdate": {"version": "5.1.0", "image": NEW, "force": True}}
    eventually(lambda: patch(controller, forced, dryRun="All").code == 422)
    yield api
    controller.close()


def patch(api: Api, spec: JSON, **query: Any) -> Any:
    """Changes the spec of ClusterVersion."""
    return api.merge(f"{VERSION}/version", {"spec": spec}, **query)


@pytest.mark.parametrize(
    "desired",
    [
        {"version": "5.1.0", "image": NEW},
        {"version": "5.1.0", "image": NEW, "force": False},
        {"version": "5.1.0", "image": NEW, "mode": "Preflight"},
        {"version": "5.1.0", "image": NEW, "acceptRisks": [{"name": "A"}]},
        None,
    ],
)
def test_the_controller_requests_an_update(installed: Api, desired: JSON | None) -> None:
    """A release by digest is accepted, for an update and for a preflight."""
    assert patch(installed.impersonating(CONTROLLER), {"desiredUpdate": desired}).code == 200


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"desiredUpdate": {"version": "5.1.0", "image": NEW, "force": True}}, "must not set spec.desiredUpdate.force"),
        ({"desiredUpdate": {"version": "5.1.0", "image": "example.com/release:5.1.0"}}, "must have a digest"),
        ({"desiredUpdate": {"version": "5.1.0", "image": f"{NEW} "}}, "must have a digest"),
        ({"desiredUpdate": {"version": "5.1.0"}}, "must have a digest"),
        ({"channel": "candidate-5.1"}, "may change spec.desiredUpdate only"),
        ({"channel": None}, "may change spec.desiredUpdate only"),
        ({"upstream": "https://example.com/graph"}, "may change spec.desiredUpdate only"),
        (
            {"overrides": [{"kind": "Deployment", "group": "apps", "namespace": "a", "name": "b", "unmanaged": True}]},
            "may change spec.desiredUpdate only",
        ),
    ],
)
def test_59_a_stolen_token_cannot_do_more(installed: Api, spec: JSON, message: str) -> None:
    """Force, an image without a digest, and every other field are refused by admission; a person may set them."""
    patch(installed, {"desiredUpdate": None}).ok()
    answer = patch(installed.impersonating(CONTROLLER), spec)
    assert answer.code == 422, answer.body
    assert message in answer.message
    assert patch(installed, spec, dryRun="All").code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/apis/update.runup.dev/v1alpha1/updatepolicies/cluster", {"spec": {"paused": False}}),
        ("DELETE", "/apis/update.runup.dev/v1alpha1/updatepolicies/cluster", None),
        ("POST", "/apis/update.runup.dev/v1alpha1/updateapprovals", {"metadata": {"name": "a"}}),
        ("PATCH", f"{VERSION}/version/status", {"status": {"history": []}}),
        ("GET", "/api/v1/namespaces/openshift-monitoring/secrets", None),
        ("GET", "/api/v1/namespaces/runup-update/secrets", None),
        ("DELETE", "/api/v1/namespaces/runup-update/pods/a", None),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "x"}}),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/runup-update-controller", None),
    ],
)
def test_59_rights_that_the_controller_lacks(installed: Api, method: str, path: str, body: JSON | None) -> None:
    """The controller cannot write a policy or a run's spec, read Secrets, or remove what limits it."""
    type_ = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = installed.impersonating(CONTROLLER).send(method, path, body, type_=type_)
    assert answer.code == 403, answer.body


def test_11_the_controller_pauses_worker_pools_only(installed: Api) -> None:
    """With the rights of `--with-pools` it changes the pause and annotations; no pool of the control plane."""
    identity = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool"}
    for name in ("master", "worker"):
        made = installed.post(POOLS, {**identity, "metadata": {"name": name}, "spec": {"paused": False}})
        assert made.code in (201, 409), made.body
    controller = installed.impersonating(CONTROLLER)
    pause = {"metadata": {"annotations": {"update.runup.dev/paused-by": "u"}}, "spec": {"paused": True}}
    eventually(lambda: controller.merge(f"{POOLS}/master", pause, dryRun="All").code == 422)
    assert controller.merge(f"{POOLS}/worker", pause).code == 200
    assert controller.merge(f"{POOLS}/worker", {"spec": {"paused": False}}).code == 200
    answer = controller.merge(f"{POOLS}/worker", {"spec": {"maxUnavailable": 9}})
    assert (answer.code, "may change spec.paused only" in answer.message) == (422, True)
    assert controller.send("DELETE", f"{POOLS}/worker", None).code == 403


def run_json(**spec: Any) -> JSON:
    """An UpdateRun."""
    identity = {"apiVersion": "update.runup.dev/v1alpha1", "kind": "UpdateRun", "metadata": {"generateName": "r-"}}
    return {**identity, "spec": {"target": {"version": "5.1.0", "image": NEW}, **spec}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"target": {"version": "5.1.0", "image": "example.com/release:5.1.0"}}, "spec.target.image"),
        ({"target": {"version": "5.1.0"}}, "spec.target.image"),
        ({"gates": {"preflight": {"failOn": "unknown"}}}, "spec.gates.preflight.failOn"),
        ({"blockVersions": ["5.1.0"] * 65}, "spec.blockVersions"),
        ({"calendars": ["Always", "nights"]}, "Always must be the only entry"),
        ({"maxHops": 5}, "spec.maxHops"),
        ({"acceptRisks": [{"name": "A", "reason": "r"}] * 65}, "spec.acceptRisks"),
        ({"acceptRisks": [{"name": "A"}]}, "spec.acceptRisks"),
        ({"pools": {"when": "NextWindow"}}, "pools.when other than Together needs actuator ClusterVersion"),
    ],
)
def test_58_runs_that_are_refused(installed: Api, spec: JSON, message: str) -> None:
    """A tag, an unknown severity and too many entries are refused by the schema."""
    answer = installed.post(RUNS, run_json(**spec))
    assert answer.code == 422
    assert message in answer.message


@pytest.mark.parametrize(
    ("before", "when", "message"),
    [
        (["pools"], "NextWindow", ""),
        (["start", "hop"], "Together", ""),
        (["pools"], "Together", "an approval before pools needs pools.when NextWindow"),
        (["start", "pools"], "Manual", "an approval before pools needs pools.when NextWindow"),
        ([], "NextWindow", "before"),
        (["soak"], "NextWindow", "before"),
    ],
)
def test_21_an_approval_that_would_never_be_required(
    installed: Api, before: list[str], when: str, message: str
) -> None:
    """It is refused: a gate that is never evaluated looks like one that is open."""
    identity = {"apiVersion": "update.runup.dev/v1alpha1", "kind": "UpdatePolicy", "metadata": {"name": "cluster"}}
    approvals = [{"name": "cab", "before": before}]
    spec = {"actuator": "ClusterVersion", "gates": {"approvals": approvals}, "pools": {"when": when}}
    policies = "/apis/update.runup.dev/v1alpha1/updatepolicies"
    answer = installed.post(policies, {**identity, "spec": spec}, dryRun="All")
    assert (answer.code == 201) is (not message), answer.body
    assert not message or message in answer.message


def test_58_a_run_has_no_force(installed: Api) -> None:
    """The field does not exist: strict validation refuses it, and otherwise it is dropped."""
    body = run_json(target={"version": "5.1.0", "image": NEW, "force": True})
    assert installed.post(RUNS, body, fieldValidation="Strict").code == 400
    assert "force" not in installed.post(RUNS, body).ok()["spec"]["target"]


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({"target": {"version": "5.2.0", "image": OTHER}}, "target is immutable"),
        ({"gates": {"forecast": "Ignore"}}, "gates is immutable"),
        ({"gates": None}, "gates is immutable"),
        ({"calendars": ["Always"]}, "calendars is immutable"),
        ({"actuator": "ClusterVersion"}, "actuator is immutable"),
        ({"soak": "1m"}, "soak is immutable"),
        ({"deadline": "9h"}, "deadline is immutable"),
        ({"pools": {"deadline": "9h"}}, "pools is immutable"),
        ({"skipPools": ["worker"]}, "skipPools is immutable"),
        ({"retryOf": "other"}, "retryOf is immutable"),
        ({"maxHops": 2}, "maxHops is immutable"),
        ({"acceptRisks": [{"name": "A", "reason": "r"}]}, "acceptRisks is immutable"),
        ({"blockVersions": ["5.0.x"]}, "blockVersions is immutable"),
        ({"control": "Hold"}, ""),
        ({"permitUntil": "2027-01-01T00:00:00Z"}, ""),
    ],
)
def test_what_may_change_in_a_run(installed: Api, spec: JSON, refused: str) -> None:
    """Only `control` and `permitUntil` may change."""
    made = installed.post(RUNS, run_json(gates={"forecast": "Fits"}, calendars=["nights"])).ok()
    answer = installed.merge(f"{RUNS}/{made['metadata']['name']}", {"spec": spec})
    assert (answer.code == 200) is (not refused), answer.body
    assert not refused or refused in answer.message


LABEL = {"update.runup.dev/policy": "cluster"}


def created_run(api: Api, labels: JSON | None = None, step: str = "", **spec: Any) -> str:
    """Creates a run as this user, and returns its name."""
    body = run_json(**spec)
    name = str(
        api.post(RUNS, {**body, "metadata": {**body["metadata"], "labels": labels or {}}}).ok()["metadata"]["name"]
    )
    if step:
        status = {"status": {"step": step, "gates": [], "decisions": [], "conditions": []}}
        api.merge(f"{RUNS}/{name}/status", status).ok()
    return name


@pytest.fixture(scope="module")
def controller(installed: Api) -> Iterator[Api]:
    """The controller, once the server enforces the admission policy on runs."""
    name = created_run(installed)
    controller = installed.impersonating(CONTROLLER)
    eventually(lambda: controller.send("DELETE", f"{RUNS}/{name}", None).code == 422)
    yield controller


def test_59_the_controller_changes_no_spec_of_a_run(installed: Api, controller: Api) -> None:
    """It may add its finalizer, but neither lift a hold nor change who requested the run."""
    name = created_run(installed, control="Hold")
    for spec in ({"control": "Run"}, {"permitUntil": "2099-01-01T00:00:00Z"}):
        answer = controller.merge(f"{RUNS}/{name}", {"spec": spec})
        assert answer.code == 422, answer.body
        assert "must not change the spec of a run" in answer.message
    assert controller.merge(f"{RUNS}/{name}", {"metadata": {"finalizers": ["update.runup.dev/run"]}}).code == 200
    assert controller.merge(f"{RUNS}/{name}", {"metadata": {"finalizers": []}}).code == 200


@pytest.mark.parametrize(
    ("step", "code"), [("", 422), ("Waiting", 422), ("ControlPlane", 422), ("Done", 200), ("Aborted", 200)]
)
def test_59_the_controller_deletes_finished_runs_only(installed: Api, controller: Api, step: str, code: int) -> None:
    """A stolen token cannot make a run that has begun disappear; a person may delete any run."""
    name = created_run(installed, step=step)
    answer = controller.send("DELETE", f"{RUNS}/{name}", None)
    assert answer.code == code, answer.body
    if code != 200:
        assert installed.send("DELETE", f"{RUNS}/{name}", None).code == 200


def test_58_only_the_controller_marks_runs_of_the_policy(installed: Api, controller: Api) -> None:
    """A run with the label has its own gates alone, so nobody else may set it."""
    body = run_json()
    labelled = {**body, "metadata": {**body["metadata"], "labels": LABEL}}
    assert "may set the label" in installed.post(RUNS, labelled).message
    name = created_run(controller, LABEL)
    assert installed.merge(f"{RUNS}/{name}", {"spec": {"control": "Hold"}}).code == 200
    other = created_run(installed)
    assert installed.merge(f"{RUNS}/{other}", {"metadata": {"labels": LABEL}}).code == 422


def test_57_a_forged_requester(installed: Api, controller: Api) -> None:
    """`requestedBy` is the user who creates the run; it does not change."""
    assert "must be the user who creates the run" in installed.post(RUNS, run_json(requestedBy="jane")).message
    name = created_run(controller, requestedBy=CONTROLLER)
    assert "requestedBy is immutable" in installed.merge(f"{RUNS}/{name}", {"spec": {"requestedBy": "jane"}}).message
    unnamed = created_run(installed)
    assert "requestedBy is immutable" in installed.merge(f"{RUNS}/{unnamed}", {"spec": {"requestedBy": "x"}}).message


def _bind(api: Api, user: str, role: str) -> None:
    """Gives a user a ClusterRole."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    body = {"metadata": {"name": f"{user}-{role}"}, "roleRef": reference, "subjects": [subject]}
    assert api.post(PATHS["ClusterRoleBinding"], body).code in (201, 409)


def test_57_only_an_agent_of_a_hub_leaves_the_requester_empty(installed: Api) -> None:
    """A person without a recorded name could approve this person's own run: four eyes would be two."""
    work = {
        "apiGroups": ["work.open-cluster-management.io"],
        "resources": ["appliedmanifestworks"],
        "verbs": ["update"],
    }
    installed.post(PATHS["ClusterRole"], {"metadata": {"name": "agent"}, "rules": [work]})
    for user, role in (
        ("olga", "runup-update-operator"),
        ("agent", "runup-update-operator"),
        ("agent", "agent"),
    ):
        _bind(installed, user, role)
    agent, olga = installed.impersonating("agent"), installed.impersonating("olga")
    eventually(lambda: agent.post(RUNS, run_json(), dryRun="All").code == 201)
    eventually(lambda: olga.post(RUNS, run_json(requestedBy="olga"), dryRun="All").code == 201)
    for spec in ({}, {"requestedBy": ""}):
        assert "only an agent of a hub may leave it empty" in olga.post(RUNS, run_json(**spec)).message


APPROVALS = "/apis/update.runup.dev/v1alpha1/updateapprovals"
DIGEST = NEW.partition("@")[2]


def approval_json(by: str, **spec: Any) -> JSON:
    """An UpdateApproval of run `r`."""
    identity = {"apiVersion": "update.runup.dev/v1alpha1", "kind": "UpdateApproval"}
    fields = {"run": "r", "gate": "cab", "approvedBy": by, "imageDigests": [DIGEST]}
    return {**identity, "metadata": {"generateName": "a-"}, "spec": {**fields, **spec}}


@pytest.fixture(scope="module")
def approvers(installed: Api) -> Iterator[Api]:
    """The server on which jane may approve, and bob may create approvals but not approve."""
    role = {"apiGroups": ["update.runup.dev"], "resources": ["updateapprovals"], "verbs": ["create", "update", "patch"]}
    installed.post(PATHS["ClusterRole"], {"metadata": {"name": "creates-approvals"}, "rules": [role]})
    for user, name in (("jane", "runup-update-approver"), ("jane", "creates-approvals"), ("bob", "creates-approvals")):
        _bind(installed, user, name)
    bob = installed.impersonating("bob")
    eventually(lambda: bob.post(APPROVALS, approval_json("jane"), dryRun="All").code == 422)
    jane = installed.impersonating("jane")
    eventually(lambda: jane.post(APPROVALS, approval_json("jane"), dryRun="All").code == 201)
    yield installed


@pytest.mark.parametrize(
    ("user", "by", "code", "message"),
    [
        ("jane", "jane", 201, ""),
        ("jane", "bob", 422, "spec.approvedBy must be the user who creates the approval"),
        ("bob", "bob", 422, "the user must have the verb approve on this UpdateRun"),
        ("eve", "eve", 403, "forbidden"),
        ("", "jane", 422, "spec.approvedBy must be the user who creates the approval"),
    ],
)
def test_57_a_forged_approver(approvers: Api, user: str, by: str, code: int, message: str) -> None:
    """Users approve in their own name only, with the right to approve; also an administrator cannot forge one."""
    answer = (approvers.impersonating(user) if user else approvers).post(APPROVALS, approval_json(by))
    assert answer.code == code, answer.body
    assert code == 201 or message in answer.message


GROUP = "update.runup.dev"
KINDS = ("updatepolicies", "updatecalendars", "updateruns", "updateapprovals", "updateturns", "fleetupdates")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "approve")
READING = {f"{verb} {kind}" for verb in ("get", "list", "watch") for kind in KINDS}
# Rights that would open a gate, remove what limits others, or read credentials.
FURTHER = (
    ("patch", "config.openshift.io", "clusterversions", "version"),
    ("patch", "machineconfiguration.openshift.io", "machineconfigpools", "worker"),
    ("list", "", "secrets", ""),
    ("delete", "admissionregistration.k8s.io", "validatingadmissionpolicies", POLICY),
    ("get", "admissionregistration.k8s.io", "validatingadmissionpolicies", "another"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
)


def _may(api: Api, user: str, verb: str, group: str, resource: str, name: str = "") -> bool:
    plural, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "name": name}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    spec = {"user": user, "resourceAttributes": asked}
    answer = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {**review, "spec": spec}).ok()
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("runup-update-viewer", READING),
        (
            "runup-update-operator",
            READING | {f"{verb} {kind}" for verb in ("create", "patch") for kind in ("updateruns", "fleetupdates")},
        ),
        (
            "runup-update-approver",
            {
                f"{verb} {kind}"
                for verb in ("get", "list", "watch")
                for kind in ("updateruns", "fleetupdates", "updateapprovals")
            }
            | {"approve updateruns", "approve fleetupdates", "create updateapprovals", "delete updateapprovals"},
        ),
    ],
)
def test_allows_people_exactly_this(installed: Api, role: str, allowed: set[str]) -> None:
    """Nobody but the approver approves, and no role writes a policy, a calendar or a status."""
    user = f"of-{role}"
    _bind(installed, user, role)
    eventually(lambda: _may(installed, user, "list", GROUP, "updateruns"))
    resources = [*KINDS, *(f"{kind}/status" for kind in KINDS)]
    found = {f"{verb} {each}" for each in resources for verb in VERBS if _may(installed, user, verb, GROUP, each)}
    assert found == allowed
    assert [right for right in FURTHER if _may(installed, user, *right)] == []
    assert _may(installed, user, "get", "admissionregistration.k8s.io", "validatingadmissionpolicies", POLICY)


def test_an_approval_is_immutable(approvers: Api) -> None:
    """Its run, gate, end and digests do not change."""
    jane = approvers.impersonating("jane")
    name = jane.post(APPROVALS, approval_json("jane")).ok()["metadata"]["name"]
    answer = jane.merge(f"{APPROVALS}/{name}", {"spec": {"run": "other"}})
    assert answer.code == 422
    assert "an approval is immutable" in answer.message


def test_57_what_the_server_stores_is_verified(approvers: Api) -> None:
    """The controller recognizes the policy and the binding with the server's defaults."""
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    policy, binding = (approvers.get(f"{PATHS[kind]}/{POLICY}").ok() for kind in kinds)
    assert why_unverified(policy, binding) == ""
    assert verified_since(policy, binding).year >= 2023
