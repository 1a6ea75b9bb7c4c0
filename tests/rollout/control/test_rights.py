"""The controller with the rights of its manifests, and no others. The number is that of the case."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from tests.rollout.control.policy_world import FOLDER, NEW, OPEN_GATES, World, world

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import SystemClock
from runup.process.names import OPERATOR_NAMESPACE
from runup.rollout.control.controller import PolicyController
from runup.rollout.control.observe import ClusterInputs, read_cluster
from runup.rollout.decide.approvals import CONTROLLER

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


def grant(found: World) -> None:
    """Applies the namespace and the roles."""
    for namespace in ("openshift-monitoring", OPERATOR_NAMESPACE):
        found.create(KINDS["Namespace"], namespace)
    for name in ("00_namespace.yaml", "02_roles.yaml"):
        for body in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")):
            found.client.send(calls.apply(KINDS[body["kind"]], body, field_manager="test"))


@pytest.mark.slow
def test_59_the_rights_suffice(tmp_path: Path) -> None:
    """With its own account the controller reads everything, requests the preflight, and starts the update."""
    with world(tmp_path / "data") as found:
        grant(found)
        found.begin(calendars=["Always"], actuator="ClusterVersion", gates=OPEN_GATES)
        found.verify_approvers()
        headers = (("Impersonate-User", CONTROLLER), ("Impersonate-Group", "system:serviceaccounts"))
        config = replace(found.client.config, headers=(*found.client.config.headers, *headers))
        with SyncClient(config) as reader:
            first = read_cluster(reader, None, with_policy=True)
            assert (first.objects.unreadable, first.approvals.unverified) == ((), "")

            def observe() -> ClusterInputs:
                inputs = read_cluster(reader, None, with_policy=True)
                return replace(inputs, objects=replace(inputs.objects, alerts=()))

            async def make_passes() -> None:
                async with Client(config) as client:
                    controller = PolicyController(client, SystemClock(), observe, leader="a")
                    for _ in range(2):
                        await controller.make_pass()
                    found.report()
                    for _ in range(3):
                        await controller.make_pass()

            asyncio.run(make_passes())
        assert found.desired() == {"version": "5.1.0", "image": NEW}
        assert found.run().status.step == "ControlPlane"
