"""The controller with the rights of its manifests, and no others. The number is that of the case."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession
from msgspec.structs import replace
from tests.documents import document
from tests.process.tls_world import certificate, define_api_servers
from tests.rollout.control.policy_world import FOLDER, NEW, OLD, OPEN_GATES, RUNS, World, world
from tests.rollout.control.test_updaters import serves
from tests.servers import CRD, eventually

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.auth import Credential, Static
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.reviews import token_request
from runup.api.update_policy_v1alpha1 import FINALIZER, UpdateRun, UpdateTurn
from runup.api.update_v1alpha1 import UpdateStatus
from runup.process.names import OPERATOR_NAMESPACE
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.observe import ClusterInputs, read_cluster
from runup.rollout.control.process import Options, Process
from runup.rollout.decide.approvals import CONTROLLER
from runup.rollout.decide.policy import POLICY_LABEL

UPDATE_STATUS = resource_of(UpdateStatus)
RBAC = "rbac.authorization.k8s.io"
KINDS = {
    kind: Resource(group=group, version="v1", kind=kind, plural=f"{kind.lower()}s", namespaced=namespaced)
    for kind, group, namespaced in (
        ("Namespace", "", False),
        ("ServiceAccount", "", True),
        ("ClusterRole", RBAC, False),
        ("ClusterRoleBinding", RBAC, False),
        ("Role", RBAC, True),
        ("RoleBinding", RBAC, True),
    )
}
Right = tuple[str, str, str]
NOTIFY = [{"url": "https://127.0.0.1:9/", "secretName": "update-notify"}]


def grant(found: World) -> set[Right]:
    """Applies the namespace and the roles, and returns each right that they give."""
    granted = set()
    for namespace in ("openshift-monitoring", OPERATOR_NAMESPACE):
        found.create(KINDS["Namespace"], namespace)
    for name in ("00_namespace.yaml", "02_roles.yaml"):
        for body in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")):
            found.client.send(calls.apply(KINDS[body["kind"]], body, field_manager="test"))
            for rule in body.get("rules", ()):
                granted |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
    return granted


def account_of(found: World) -> ClusterConfig:
    """The client configuration with a token of the controller's account."""
    token = found.client.send(token_request("update-controller", "runup-update")).token
    return replace(found.client.config, auth=Static(Credential(authorization=f"Bearer {token}")))


async def run_process(found: World, folder: Path) -> None:
    """Runs the process for some passes; it serves metrics with a certificate to a user without the right to them."""
    files, trusting = certificate(folder)
    async with Client(found.client.config) as admin:
        await define_api_servers(admin)
        config = account_of(found)
        process = Process(config, Options(listen="127.0.0.1:0", **files))
        task = asyncio.create_task(process.run())
        async with asyncio.timeout(60):
            while found.desired().get("mode") != "Preflight" or len(entries(found)) < 2:  # noqa: ASYNC110 (a server answers)
                await asyncio.sleep(0.1)
        authorization = config.auth.credential(SystemClock().now()).authorization
        async with (
            ClientSession(headers={"Authorization": authorization}) as session,
            session.get(f"{process.endpoint.address}/metrics", ssl=trusting) as response,
        ):
            assert response.status == 403
        process.stop()
        await task


@pytest.mark.slow
def test_59_the_rights_suffice_and_none_is_idle(tmp_path: Path) -> None:
    """With its own account the controller reads everything, requests the preflight, and starts the update.

    The audit log has no refused request, and a request for each right of the manifests.
    """
    with world(tmp_path / "data") as found:
        granted = grant(found)
        found.begin(calendars=["Always"], actuator="ClusterVersion", gates=OPEN_GATES, keepRuns=1, notify=NOTIFY)
        serve_update_status(found)
        for name in ("old-a", "old-b"):
            create_finished_run(found, name)
        # The hub's agent has given a turn, whose run is gone.
        found.create(resource_of(UpdateTurn), "gone-1", spec={"run": "gone"})
        found.verify_approvers()
        asyncio.run(run_process(found, tmp_path))
        assert entries(found) == ["update-status-controller", "update-controller"]
        config = account_of(found)
        with SyncClient(config) as reader:
            first = read_cluster(reader, None, with_policy=True)
            assert (first.objects.unreadable, first.approvals.unverified) == ((), "")

            def observe() -> ClusterInputs:
                inputs = read_cluster(reader, None, with_policy=True)
                return replace(inputs, objects=replace(inputs.objects, alerts=()))

            async def make_passes() -> None:
                async with Client(config) as client:
                    controller = PolicyController(client, SystemClock(), observe, leader="a")
                    found.report()
                    for _ in range(3):
                        await controller.make_pass()

            asyncio.run(make_passes())
        assert found.desired() == {"version": "5.1.0", "image": NEW}
        assert entries(found) == ["update-status-controller"]
        steps = [run.status.step for run in found.client.list_all(UpdateRun)[0]]
        assert sorted(steps) == ["ControlPlane", "Done"]
        lines = (tmp_path / "data" / "audit.log").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    ours = [each for each in events if each["user"]["username"] == CONTROLLER]
    assert [each["requestURI"] for each in ours if each["responseStatus"]["code"] == 403] == []
    assert granted - {right_of(each) for each in ours if "objectRef" in each} == set()


def serve_update_status(found: World) -> None:
    """Creates an UpdateStatus as its own controller writes it, in which this controller has an entry."""
    folder = FOLDER.parent / "update-status"
    found.client.send(
        calls.create(CRD, document(folder / "0000_00_update-status-controller_01_updatestatuses.crd.yaml"))
    )
    eventually(lambda: serves(found.client, UPDATE_STATUS), "UpdateStatus is served")
    resource = {"group": "config.openshift.io", "resource": "clusterversions", "name": "version"}
    conditions = [{"type": "Updating", "status": "False", "reason": "NotUpdating", "message": ""}]
    conditions = [{**each, "lastTransitionTime": "2026-01-01T00:00:00Z"} for each in conditions]
    informers = [{"name": "update-status-controller", "insights": []}]
    layer = {"resource": resource, "conditions": conditions, "informers": informers}
    found.create(UPDATE_STATUS, "cluster", spec={}, status={"controlPlane": layer})


def entries(found: World) -> list[str]:
    """The informers of the control plane."""
    status = found.client.send(calls.get_raw(UPDATE_STATUS, "cluster"))["status"]
    return [each["name"] for each in status["controlPlane"]["informers"]]


def create_finished_run(found: World, name: str) -> None:
    """Creates a run that the controller has to release, or to delete."""
    metadata = {"name": name, "labels": {POLICY_LABEL: "cluster"}, "finalizers": [FINALIZER]}
    spec = {"target": {"version": "5.0.3", "image": OLD}}
    body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": metadata, "spec": spec}
    created = found.client.send(calls.create(RUNS, body))
    found.client.send(calls.replace(RUNS, {**created, "status": {"step": "Done"}}, subresource="status"))


def right_of(event: dict[str, Any]) -> Right:
    """The right that a request needs."""
    reference = event["objectRef"]
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
    return reference.get("apiGroup", ""), resource, event["verb"]
