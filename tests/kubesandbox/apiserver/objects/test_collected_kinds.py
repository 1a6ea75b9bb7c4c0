"""Kinds that a cluster's records do not have: their lists are refused, or warned of; nothing else changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.access.collected import (
    COMPLETE_NAMESPACES,
    CONTROLLERS,
    EXEMPT_USERS,
    NAMESPACE,
    NOT_COLLECTED,
    OWN_NAMESPACES,
    PARTLY_COLLECTED,
)
from kubesandbox.apiserver.server import ApiServer

MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
BUDGETS = Resource(
    group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
RBAC = "rbac.authorization.k8s.io"
BINDINGS = Resource(group=RBAC, version="v1", kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False)
INCOMPLETE = "incomplete: "
WHY = "the dump has no poddisruptionbudgets: whether there were any is not known"
SOME = "the dump has only a part of the configmaps: whether there were others is not known"
PATH = "/apis/policy/v1/poddisruptionbudgets"
THERE = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
OURS = "/apis/policy/v1/namespaces/ours/poddisruptionbudgets"
CONFIG_MAPS = "/api/v1/configmaps"
REPORTED = '{"reporter": ["poddisruptionbudgets.policy", "configmaps"]}'
KNOWN = '{"configmaps": ["kube-public"]}'
MASTERS = ("system:masters",)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """It does not have the budgets, and has a part of the ConfigMaps; the namespace `ours` is known in full."""
    async with ApiServer(data=tmp_path / "data") as made, Client(load(str(made.kubeconfig))) as client:
        await client.send(calls.create(NAMESPACES, {"metadata": {"name": "ours"}}))
        subject = {"kind": "User", "name": "target", "apiGroup": RBAC}
        role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": RBAC}
        await client.send(
            calls.create(BINDINGS, {"metadata": {"name": "target"}, "subjects": [subject], "roleRef": role})
        )
        for name, data in (
            (NOT_COLLECTED, {"poddisruptionbudgets.policy": WHY}),
            (PARTLY_COLLECTED, {"configmaps": SOME}),
        ):
            metadata = {
                "name": name,
                "namespace": NAMESPACE,
                "annotations": {OWN_NAMESPACES: "ours", EXEMPT_USERS: REPORTED, COMPLETE_NAMESPACES: KNOWN},
            }
            await client.send(calls.create(MAPS, {"metadata": metadata, "data": data}))
        yield made


async def asked(
    server: ApiServer, path: str, user: str, groups: tuple[str, ...], tmp_path: Path
) -> tuple[int, str, str]:
    """Status, the Status's message and the warning of a GET."""
    file = tmp_path / "user.kubeconfig"
    file.write_bytes(server.kubeconfig_for(user, groups))
    config = load(str(file))
    from kubekit.kube.transport import context_for

    context = context_for(config, config.auth.credential(server.clock.now()))
    assert context is not None
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(server.url + path) as answer,
    ):
        body = await answer.json()
        return answer.status, body.get("message", ""), answer.headers.get("Warning", "")


REFUSED = f"poddisruptionbudgets.policy is forbidden: {WHY}"
ROWS: dict[str, tuple[str, str, tuple[str, ...], int, str, str]] = {
    "a list of what is not known": (PATH, "target", (), 403, REFUSED, ""),
    "a watch of it": (f"{PATH}?watch=true", "target", (), 403, REFUSED, ""),
    "a list in one namespace of the records": (THERE, "target", (), 403, REFUSED, ""),
    "a list in a namespace that is known": (OURS, "target", (), 200, "", ""),
    "an administrator's list of nothing": (PATH, "admin", MASTERS, 403, REFUSED, ""),
    "the controllers' list": (PATH, CONTROLLERS, MASTERS, 200, "", ""),
    "somebody who is shown anyway": (PATH, "reporter", MASTERS, 200, "", ""),
    "a kind that is known in part": (CONFIG_MAPS, "target", (), 200, "", INCOMPLETE + SOME),
    "a part of it that is known in full": ("/api/v1/namespaces/kube-public/configmaps", "target", (), 200, "", ""),
    "another part of it": ("/api/v1/namespaces/default/configmaps", "target", (), 200, "", INCOMPLETE + SOME),
    "somebody who is shown anyway, of a part": (CONFIG_MAPS, "reporter", MASTERS, 200, "", INCOMPLETE + SOME),
    "a kind that nothing is said of": ("/api/v1/pods", "target", (), 200, "", ""),
    "one object": (f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NOT_COLLECTED}", "target", (), 200, "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("path", "user", "groups", "status", "message", "warning"), ROWS.values(), ids=list(ROWS))
async def test_what_is_answered(
    path: str,
    user: str,
    groups: tuple[str, ...],
    status: int,
    message: str,
    warning: str,
    server: ApiServer,
    tmp_path: Path,
) -> None:
    """Status, words and warning."""
    shown = await asked(server, path, user=user, groups=groups, tmp_path=tmp_path)
    assert shown[:2] == (status, message)
    assert shown[2] == (f'299 - "{warning}"' if warning else "")


async def test_an_administrator_sees_what_there_is(server: ApiServer, tmp_path: Path) -> None:
    """With the warning; the target's account still cannot take it for everything."""
    body = {"metadata": {"name": "b", "namespace": "ours"}, "spec": {"minAvailable": 1, "selector": {}}}
    async with Client(load(str(server.kubeconfig))) as client:
        await client.send(calls.create(BUDGETS, body))
    assert await asked(server, PATH, user="admin", groups=MASTERS, tmp_path=tmp_path) == (
        200,
        "",
        f'299 - "{INCOMPLETE}{WHY}"',
    )
    assert (await asked(server, PATH, user="target", groups=(), tmp_path=tmp_path))[0] == 403


async def test_whoever_removes_the_key_has_the_kind_back(server: ApiServer, tmp_path: Path) -> None:
    """After adding what was missing, say."""
    async with Client(load(str(server.kubeconfig))) as client:
        patch = {"data": {"poddisruptionbudgets.policy": None}}
        await client.send(calls.merge_patch(MAPS, NOT_COLLECTED, patch, NAMESPACE))
    assert await asked(server, PATH, user="target", groups=(), tmp_path=tmp_path) == (200, "", "")
