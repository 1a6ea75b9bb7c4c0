"""Cases 34 and 36: a cluster without a ClusterVersion whose updater waits for a field, or for an annotation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.documents import document
from tests.rollout.control.policy_world import CORE, FOLDER, OPEN_GATES, POLICIES, RUNS, conditions
from tests.servers import CRD, api_server, eventually

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import AlreadyExists, NotFound
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import timestamp
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.preflight.decide import stored_reports
from runup.preflight.decide.cluster_run import NAMESPACE
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report, ReportedRisk
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.observe import ClusterInputs, read_cluster
from runup.rollout.decide.updaters import ANNOTATION

OLD, NEW = "v1.34.0", "v1.35.1"
PLANS = Resource("upgrade.cattle.io", "v1", "Plan", "plans", namespaced=True)
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters", namespaced=True)
FIELD = {
    "apiVersion": "upgrade.cattle.io/v1",
    "kind": "Plan",
    "namespace": "system-upgrade",
    "name": "server",
    "path": ".spec.version",
}
GATES = {**OPEN_GATES, "alerts": {"severities": []}}
POLICY = {
    "target": {"follow": "Exact", "version": NEW},
    "calendars": ["Always"],
    "soak": "0s",
    "gates": GATES,
}
BY_FIELD = {**POLICY, "actuator": "Field", "field": FIELD}
BY_ANNOTATION = {
    **POLICY,
    "actuator": "RemoveAnnotation",
    "cluster": {"namespace": "clusters", "name": "harbour"},
}


def definition(resource: Resource) -> dict[str, Any]:
    """A definition that keeps every field; tests/updaters has the tools' own."""
    keeps = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": keeps, "status": keeps}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{resource.plural}.{resource.group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


class PlainWorld:
    """A cluster without a ClusterVersion; `server` and `ahead` replace its version and move its time."""

    def __init__(self, client: SyncClient, audit: Path) -> None:
        self.client = client
        self.audit = audit
        self.server = OLD
        self.ahead = timedelta()
        self.since = timestamp(SystemClock().now() - timedelta(hours=2))

    def create(self, resource: Resource, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
        """Creates an object, unless it exists."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}
        with suppress(AlreadyExists):
            created = self.client.send(calls.create(resource, body, field_manager="kubectl"))
            if "status" in fields and resource.kind == "Node":
                status = {**created, "status": fields["status"]}
                self.client.send(calls.replace(resource, status, subresource="status"))
        return body

    def begin(self, **policy: Any) -> None:
        """A healthy cluster with this policy, and nothing of earlier tests."""
        self.server, self.ahead = OLD, timedelta()
        for resource in (RUNS, POLICIES, PLANS, CLUSTERS):
            for each in self.client.send(calls.list_raw(resource)).items:
                name, namespace = each["metadata"]["name"], each["metadata"].get("namespace", "")
                self.client.send(calls.merge_patch(resource, name, {"metadata": {"finalizers": None}}, namespace))
                with suppress(NotFound):
                    self.client.send(calls.delete(resource, name, namespace))
        for name in ("kube-system", "system-upgrade", "clusters", NAMESPACE):
            self.create(CORE["Namespace"], name)
        with suppress(NotFound):
            self.client.send(calls.delete(CORE["ConfigMap"], stored_reports.NAME, NAMESPACE))
        status = {"conditions": conditions(self.since, Ready="True"), "nodeInfo": {"kubeletVersion": OLD}}
        with suppress(NotFound):
            self.client.send(calls.delete(CORE["Node"], "a"))
        self.create(CORE["Node"], "a", status=status)
        self.create(PLANS, "server", "system-upgrade", spec={"upgrade": {"image": "example.com/k3s-upgrade"}})
        self.create(
            CLUSTERS,
            "harbour",
            "clusters",
            metadata={"annotations": {ANNOTATION: ""}},
            spec={"topology": {"classRef": {"name": "c"}, "version": NEW}},
        )
        self.create(POLICIES, "cluster", spec=policy)

    def report(self, *risks: ReportedRisk) -> None:
        """A preflight of 1.35 has run as a Job of the cluster."""
        report = Report(
            format=FORMAT,
            preflight_id="p",
            source_version=OLD[1:],
            target_version="1.35.0",
            execution_status="completed",
            cluster_kind="Kubernetes",
            observed_time=SystemClock().now() + self.ahead,
            risks=risks,
        )
        body = stored_reports.config_map(History(reports=(report,)), NAMESPACE)
        self.client.send(calls.apply(CORE["ConfigMap"], body, field_manager="test", force=True))

    def kubelet(self, version: str) -> None:
        """The node has another kubelet."""
        patch = {"status": {"nodeInfo": {"kubeletVersion": version}}}
        self.client.send(calls.merge_patch(CORE["Node"], "a", patch, subresource="status"))

    def observe(self) -> ClusterInputs:
        """The observed state, with this version of the API server."""
        inputs = read_cluster(self.client, None, with_policy=True)
        assert inputs.objects.plain is not None
        plain = replace(inputs.objects.plain, server=self.server)
        described = replace(inputs.objects.cluster.status.desired, version=self.server[1:])
        cluster = replace(inputs.objects.cluster, status=replace(inputs.objects.cluster.status, desired=described))
        objects = replace(inputs.objects, plain=plain, cluster=cluster)
        return replace(inputs, objects=objects, now=inputs.now + self.ahead)

    def passes(self, number: int = 1) -> None:
        """Makes passes of a controller; each has the clock of the cluster."""

        async def make() -> None:
            async with Client(self.client.config) as client:
                controller = PolicyController(client, SystemClock(), self.observe, leader="a")
                for _ in range(number):
                    await controller.make_pass()

        asyncio.run(make())

    @property
    def runs(self) -> list[UpdateRun]:
        """All runs, the oldest first."""
        found = self.client.list_all(UpdateRun)[0]
        return sorted(found, key=lambda run: (run.status.step != "Superseded", run.metadata.name))

    def gate(self, name: str) -> tuple[str, str]:
        """State and reason of a gate of the newest run."""
        [gate] = [each for each in self.runs[-1].status.gates if each.name == name]
        return gate.state, gate.reason

    def plan(self) -> dict[str, Any]:
        """The Plan's spec."""
        spec: dict[str, Any] = self.client.send(calls.get_raw(PLANS, "server", "system-upgrade"))["spec"]
        return spec

    def annotations(self) -> dict[str, str]:
        """The annotations of the Cluster."""
        metadata = self.client.send(calls.get_raw(CLUSTERS, "harbour", "clusters"))["metadata"]
        return dict(metadata.get("annotations") or {})

    def writes(self, plural: str) -> int:
        """How many of the controller's writes of this kind succeeded so far, by the audit log."""
        events = [json.loads(line) for line in self.audit.read_text(encoding="utf-8").splitlines()]
        return sum(
            event["verb"] == "patch"
            and event["objectRef"]["resource"] == plural
            and "fieldManager=runup-update" in event["requestURI"]
            and event["responseStatus"]["code"] < 300
            for event in events
            if event.get("stage") == "ResponseComplete" and event.get("objectRef")
        )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainWorld]:
    """An API server with the kinds of update policies and of two updaters."""
    data = tmp_path_factory.mktemp("plain") / "data"
    with api_server(data) as kubeconfig, SyncClient(config.load(str(kubeconfig))) as client:
        for file in FOLDER.glob("01_*.crd.yaml"):
            client.send(calls.create(CRD, document(file)))
        for resource in (PLANS, CLUSTERS):
            client.send(calls.create(CRD, definition(resource)))
        for resource in (RUNS, POLICIES, PLANS, CLUSTERS):
            eventually(lambda resource=resource: serves(client, resource), f"{resource.kind} is served")
        yield PlainWorld(client, data / "audit.log")


def serves(client: SyncClient, resource: Resource) -> bool:
    try:
        return client.send(calls.list_raw(resource)) is not None
    except NotFound:
        return False


@pytest.mark.slow
def test_34_a_field_is_written_once(plain: PlainWorld) -> None:
    """The version is written when the gates open, stays latched, and the run ends when all components have it."""
    plain.begin(**BY_FIELD)
    before = plain.writes("plans")
    plain.passes(3)
    assert plain.gate("preflight") == ("Unknown", "PreflightMissing")
    assert "version" not in plain.plan()
    plain.report()
    plain.passes(3)
    assert plain.plan() == {"upgrade": {"image": "example.com/k3s-upgrade"}, "version": NEW}
    plain.report(ReportedRisk(name="NodeCordoned", message="m"))
    plain.passes(3)
    [gates] = [each for each in plain.runs[0].status.conditions if each.type == "GatesOpen"]
    assert (plain.runs[0].status.step, gates.reason) == ("ControlPlane", "Latched")
    plain.server = NEW
    plain.passes(2)
    assert plain.runs[0].status.step == "ControlPlane"
    plain.kubelet(NEW)
    plain.passes(3)
    assert (plain.runs[0].status.step, plain.runs[0].status.gated) == ("Done", True)
    assert len(plain.runs) == 1
    assert plain.writes("plans") == before + 1


def test_34_a_version_that_git_removes_is_not_written_again(plain: PlainWorld) -> None:
    """The run ends, the next one waits for an hour, and then writes once more."""
    plain.begin(**BY_FIELD)
    before = plain.writes("plans")
    plain.report()
    plain.passes(4)
    assert plain.plan()["version"] == NEW
    plain.client.send(
        calls.merge_patch(PLANS, "server", {"spec": {"version": None}}, "system-upgrade", field_manager="argocd")
    )
    plain.passes(12)
    assert [run.status.step for run in plain.runs] == ["Superseded", "Waiting"]
    assert plain.runs[0].status.decisions[-1].reason == "OtherUpdate"
    assert plain.gate("updater") == ("Closed", "OtherUpdate")
    assert plain.writes("plans") == before + 1
    plain.ahead = timedelta(minutes=61)
    plain.report()
    plain.passes(4)
    assert plain.plan()["version"] == NEW
    assert plain.writes("plans") == before + 2


def test_34_a_version_of_git_is_not_replaced(plain: PlainWorld) -> None:
    """A field of another manager closes the gate, and the reason names the manager."""
    plain.begin(**BY_FIELD)
    patch = {"spec": {"version": "v1.34.3"}}
    plain.client.send(calls.merge_patch(PLANS, "server", patch, "system-upgrade", field_manager="argocd"))
    before = plain.writes("plans")
    plain.report()
    plain.passes(5)
    assert plain.gate("updater") == ("Closed", "OtherUpdate")
    [gate] = [each for each in plain.runs[0].status.gates if each.name == "updater"]
    assert gate.message == "Plan system-upgrade/server: argocd manages .spec.version, which is v1.34.3."
    assert (plain.plan()["version"], plain.writes("plans")) == ("v1.34.3", before)


def test_34_a_conflict_is_not_forced(plain: PlainWorld) -> None:
    """A manager that takes the field between the evaluation and the write keeps it."""
    plain.begin(**BY_FIELD)
    plain.report()
    plain.passes(2)
    assert plain.runs[0].status.step == "Committing"
    read = plain.observe

    def observe_then_change() -> ClusterInputs:
        inputs = read()
        patch = {"spec": {"version": "v1.34.3"}}
        plain.client.send(calls.merge_patch(PLANS, "server", patch, "system-upgrade", field_manager="argocd"))
        return inputs

    plain.observe = observe_then_change  # type: ignore[method-assign]
    try:
        plain.passes()
    finally:
        del plain.observe
    assert plain.plan()["version"] == "v1.34.3"
    plain.passes(2)
    assert (plain.runs[0].status.step, plain.gate("updater")) == ("Waiting", ("Closed", "OtherUpdate"))


def test_36_the_annotation_is_removed_and_put_back(plain: PlainWorld) -> None:
    """The Cluster waits until the gates are open, and its next update waits again."""
    plain.begin(**BY_ANNOTATION)
    plain.passes(3)
    assert ANNOTATION in plain.annotations()
    plain.report()
    plain.passes(3)
    assert ANNOTATION not in plain.annotations()
    plain.passes(2)
    assert (plain.runs[0].status.step, ANNOTATION in plain.annotations()) == ("ControlPlane", False)
    plain.server = NEW
    plain.kubelet(NEW)
    plain.passes(5)
    assert (plain.runs[0].status.step, plain.runs[0].status.gated) == ("Done", True)
    assert plain.annotations()[ANNOTATION]
    plain.client.send(
        calls.merge_patch(CLUSTERS, "harbour", {"metadata": {"annotations": {ANNOTATION: None}}}, "clusters")
    )
    plain.passes(2)
    assert ANNOTATION not in plain.annotations()


def test_a_missing_kind_is_unknown(plain: PlainWorld) -> None:
    """A field of a kind that the cluster lacks closes the gate and says so."""
    plain.begin(**{**BY_FIELD, "field": {**FIELD, "kind": "Plann"}})
    plain.report()
    plain.passes(3)
    assert plain.gate("updater") == ("Unknown", "ActuatorMissing")
    [gate] = [each for each in plain.runs[0].status.gates if each.name == "updater"]
    assert "the cluster has no kind Plann of upgrade.cattle.io/v1" in gate.message


@pytest.mark.parametrize("missing", ["field", "cluster"])
def test_the_server_refuses_a_policy_without_its_object(plain: PlainWorld, missing: str) -> None:
    """The schema names the field that the actuator needs."""
    plain.begin(**POLICY)
    actuator = {"field": "Field", "cluster": "RemoveAnnotation"}[missing]
    patch = {"spec": {"actuator": actuator}}
    with pytest.raises(Exception, match=f"actuator {actuator} needs {missing}"):
        plain.client.send(calls.merge_patch(POLICIES, "cluster", patch))
    assert codec.to_dict(plain.client.send(calls.get_raw(POLICIES, "cluster"))["spec"]) == POLICY
