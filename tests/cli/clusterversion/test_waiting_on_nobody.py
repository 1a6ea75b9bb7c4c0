"""`--wait` where no operator takes the request up: it says so, with what there is of one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.commands import Server

from kubekit.api.scheme import Resource
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.clock import ManualClock
from runup.cli.clusterversion import actions
from runup.cli.clusterversion.actions import UpgradeRequest
from runup.clusterversion.decide.upgrade_target import Flags
from runup.process import clusterversion_client as clusters

NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
WHY = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": WHY}


class Slow(ManualClock):
    """A clock on which every reading takes five seconds: each is behind a wait of the server's clock."""

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        self.jump(5)
        return super().monotonic()


ROWS: dict[str, tuple[list[Any], str]] = {
    "no operator at all": ([], "there is no pod of the cluster-version operator in namespace nobody-0"),
    "an operator that no node takes": ([UNSCHEDULED], f"operator is Pending (Unschedulable: {WHY})"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "conditions", "said"), [(n, *row) for n, row in enumerate(ROWS.values())], ids=ROWS)
def test_it_says_so(
    number: int, conditions: list[Any], said: str, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """Within ten seconds of the command's clock, and continues waiting."""
    server.set_cluster_version(spec={"desiredUpdate": {"version": "5.2.0", "mode": "Preflight"}})
    namespace = f"nobody-{number}"
    server.client.send(calls.create(NAMESPACES, {"metadata": {"name": namespace}}))
    if conditions:
        metadata = {"name": "operator", "namespace": namespace, "labels": {"k8s-app": "cluster-version-operator"}}
        spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = server.client.send(calls.create(PODS, body))
        status = {**made.get("status", {}), "phase": "Pending", "conditions": conditions}
        server.client.send(calls.replace(PODS, {**made, "status": status}, subresource="status"))
    asked = clusters.read(server.client)
    clock = Slow()
    with pytest.raises(InputError, match="timed out waiting"):
        actions.wait(
            server.client, asked, UpgradeRequest(flags=Flags()), timeout_s=20.0, namespace=namespace, clock=clock
        )
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "waiting for the cluster-version operator to take up the request"
    assert lines[1].startswith("still not taken up after 7 s: ")
    assert said in lines[1]
