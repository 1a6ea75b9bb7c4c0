"""The controller of fleet updates with the rights of its manifests, and no others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from tests.fleet.control.hub_world import FOLDER, NAMESPACE, hub_world
from tests.fleet.decide.fleet_updates import stage
from tests.rollout.control.test_rights import KINDS, right_of

from kubekit.kube import calls
from kubekit.kube.auth import Credential, Static
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.reviews import token_request
from runup.fleet.control.hub_process import Options, Process

ACCOUNT = "system:serviceaccount:runup-fleet:fleet-controller"
# Rights that need another kind of hub: OpenShift, metrics over TLS, and stages with approvals.
ELSEWHERE = {"infrastructures", "apiservers", "tokenreviews", "subjectaccessreviews"} | {
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
}


@pytest.mark.slow
def test_the_rights_suffice_and_none_is_idle(tmp_path: Path) -> None:
    """The process leads, hands out a round, takes it back, and no request of its account is refused."""
    folder = tmp_path / "data"
    with hub_world(folder) as hub:
        hub.begin("a", stages=[stage()])
        granted = set()
        for body in yaml.safe_load_all((FOLDER / "02_roles.yaml").read_text(encoding="utf-8")):
            hub.client.send(calls.apply(KINDS[body["kind"]], body, field_manager="tests"))
            for rule in body.get("rules", ()):
                granted |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
        token = hub.client.send(token_request("fleet-controller", NAMESPACE)).token
        account = replace(hub.client.config, auth=Static(Credential(authorization=f"Bearer {token}")))

        async def lead() -> None:
            process = Process(account, Options())
            task = asyncio.create_task(process.run())
            async with asyncio.timeout(60):
                while not hub.fleet().status.stages:  # noqa: ASYNC110 (a server answers)
                    await asyncio.sleep(0.2)
            process.stop()
            await task

        asyncio.run(lead())
        with SyncClient(account) as reader:
            hub.client, admin = reader, hub.client
            hub.passes(3)
            hub.client = admin
            hub.run("a", "Done", "Succeeded", gates="Succeeded")
            hub.report("a", "t1", {"Progressing": "False"}, done="Succeeded")
            hub.client = reader
            hub.passes(3)
            hub.client = admin
            assert (hub.condition("Done"), sorted(hub.sets())) == (("True", "Succeeded"), ["runs"])
        lines = (folder / "audit.log").read_text(encoding="utf-8").splitlines()
    ours = [each for each in map(json.loads, lines) if each["user"]["username"] == ACCOUNT]
    assert [each["requestURI"] for each in ours if each["responseStatus"]["code"] == 403] == []
    idle = granted - {right_of(each) for each in ours if "objectRef" in each}
    # An apply that creates is a patch in the audit log, and needs both rights.
    assert {each for each in idle if each[1] not in ELSEWHERE and each[2] != "create"} == set()
