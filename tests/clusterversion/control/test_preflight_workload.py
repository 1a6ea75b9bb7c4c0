"""The preflight's workload on the sandbox's API server: words of others, settings, rights, and what is left behind.

The test writes what Kubernetes' controllers, scheduler and kubelet would.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from msgspec.structs import replace
from tests.operator.operator_world import NAMESPACE, Cluster, cluster, running
from tests.release.control.test_images_without_graph import Scene, scene

from kubekit.api.conditions import find
from kubekit.api.core_v1 import ConfigMap, ServiceAccount
from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.reviews import token_request
from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide import rights
from runup.preflight.decide import preflight_deployment, preflight_settings, service_account
from runup.release.control.image_build import build_release

MANIFESTS = Path(__file__).parents[3] / "deploy" / "manifests"
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
EVENTS = Resource(group="", version="v1", kind="Event", plural="events", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
CONFIG_MAPS = resource_of(ConfigMap)
DEPLOYMENTS = resource_of(Deployment)
POD = f"{preflight_deployment.NAME}-6f9d8c5b7-x2x7k"
QUOTA = (
    f'pods "{POD}" is forbidden: exceeded quota: small, requested: memory=512Mi, used: memory=0, limited: memory=1Mi'
)
NO_NODE = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 71344Ki."
JSON = dict[str, Any]


async def with_pod(world: Cluster, status: JSON) -> None:
    """A pod of the preflight, as its ReplicaSet and its node leave it."""
    container = {"name": preflight_deployment.NAME, "image": "x"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE, "labels": {"app": preflight_deployment.NAME}},
        "spec": {"containers": [container]},
    }
    await world.client.send(calls.create(PODS, pod))
    await world.client.send(calls.merge_patch(PODS, POD, {"status": status}, NAMESPACE, subresource="status"))


async def quota_on_the_deployment(world: Cluster) -> None:
    """As the deployment controller repeats its ReplicaSet's condition."""
    said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
    patch = {"status": {"conditions": [said]}}
    call = calls.merge_patch(DEPLOYMENTS, preflight_deployment.NAME, patch, NAMESPACE, subresource="status")
    await world.client.send(call)


async def quota_in_an_event(world: Cluster) -> None:
    """The quota's message as the ReplicaSet controller writes it."""
    name = f"{preflight_deployment.NAME}-6f9d8c5b7"
    found = await world.deployment()
    assert found is not None and found.metadata.creation_timestamp is not None
    when = f"{found.metadata.creation_timestamp:%Y-%m-%dT%H:%M:%SZ}"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": NAMESPACE},
        "involvedObject": {"kind": "ReplicaSet", "namespace": NAMESPACE, "name": name, "apiVersion": "apps/v1"},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": f"Error creating: {QUOTA}",
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 3,
    }
    await world.client.send(calls.create(EVENTS, event))


async def no_node(world: Cluster) -> None:
    """As the scheduler marks a pod."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE}
    await with_pod(world, {"phase": "Pending", "conditions": [said]})


async def evicted(world: Cluster) -> None:
    """As the kubelet ends a pod."""
    await with_pod(world, {"phase": "Failed", "reason": "Evicted", "message": EVICTED})


WORDS: list[Any] = [
    pytest.param(quota_on_the_deployment, "FailedCreate", QUOTA, id="a quota"),
    pytest.param(quota_in_an_event, "FailedCreate", QUOTA, id="a quota, in an event alone"),
    pytest.param(no_node, "Unschedulable", NO_NODE, id="a full node"),
    pytest.param(evicted, "Evicted", EVICTED, id="an eviction"),
]


@pytest.mark.parametrize(("happens", "reason", "words"), WORDS)
async def test_within_ten_seconds_the_condition_has_the_words_of(
    tmp_path: Path, happens: Callable[[Cluster], Any], reason: str, words: str
) -> None:
    """The whole way: watched, decided, written."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await world.started("5.2.0")
        await happens(world)
        async with asyncio.timeout(90):
            version = await world.condition("PreflightFailed", "True", reason)
        found = find(version.status.conditions, "PreflightFailed")
        assert found is not None and words.rstrip(".") in found.message


async def set_to(world: Cluster, **data: str) -> None:
    """Write the administrator's ConfigMap."""
    metadata = {"name": preflight_deployment.SETTINGS_MAP, "namespace": NAMESPACE}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    await world.client.send(calls.apply(CONFIG_MAPS, obj, field_manager="admin"))


async def until(holds: Callable[[], Any]) -> None:
    """Wait until `holds()` does."""
    async with asyncio.timeout(90):
        while not await holds():  # noqa: ASYNC110 -- asked of the API server, as a person would
            await asyncio.sleep(0.02)


async def test_an_edited_setting_reaches_a_running_preflight(tmp_path: Path) -> None:
    """Without a command; a bad one is named until it is fixed, and a deleted ConfigMap leaves the defaults."""
    async with cluster(tmp_path) as (world, manager), running(manager()):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        before = await world.started("5.2.0")

        async def account() -> str:
            found = await world.deployment()
            return found.spec.template.spec.service_account_name if found else ""

        async def dedicated() -> bool:
            return await account() == preflight_deployment.NAME

        await set_to(world, serviceAccount="dedicated", cpuLimit="lots")
        await until(dedicated)
        version = await world.condition(preflight_settings.CONDITION, "True", preflight_settings.REASON)
        said = find(version.status.conditions, preflight_settings.CONDITION)
        assert said is not None and "cpuLimit 'lots' is not a quantity" in said.message
        assert await world.started("5.2.0") == before
        await world.client.send(calls.delete(CONFIG_MAPS, preflight_deployment.SETTINGS_MAP, NAMESPACE))

        async def back() -> bool:
            return await account() == "cluster-version-operator"

        await until(back)
        await world.until(lambda v: find(v.status.conditions, preflight_settings.CONDITION) is None)


async def test_the_folder_of_a_report_is_removed_when_nobody_writes_to_it(tmp_path: Path) -> None:
    """With the request the target goes, and then what it wrote; what an operator before this one left, too."""
    left = tmp_path / "reports" / "preflight-1-0123456789"
    async with cluster(tmp_path) as (world, manager):
        left.mkdir()
        async with running(manager()):
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            world.report(preflight_id, "PoolPaused")
            await world.condition("PreflightCompleted", "True")
            assert (world.reports / preflight_id).is_dir()
            await world.ask(None)
            await world.gone()

            async def empty() -> bool:
                return not list(world.reports.iterdir())

            await until(empty)


def release(at: Scene, *reads: JSON) -> str:
    """A signed release that declares those reads; without any it has no such file."""
    files = {"release-manifests/a.yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"}
    if reads:
        files[READS_FILE] = json.dumps({"format": rights.FORMAT, "reads": reads}).encode()
    return at.signed(build_release(at.layout, version="5.3.7", files=files).digest)


async def role(world: Cluster, resource: Resource, namespace: str = "") -> list[JSON]:
    """The rules of the dedicated account's role there."""
    found = await world.client.send(calls.get_raw(resource, preflight_deployment.NAME, namespace))
    rules: list[JSON] = found["rules"]
    return rules


READ = ["get", "list", "watch"]


async def test_a_dedicated_account_gets_what_the_image_declares(tmp_path: Path) -> None:
    """And no Secret; a namespace that is not there keeps nobody from starting, and all of it goes again."""
    async with scene(tmp_path) as at:
        await at.world.client.send(calls.create(NAMESPACES, {"metadata": {"name": "openshift-etcd"}}))
        await set_to(at.world, serviceAccount="dedicated")
        image = release(
            at,
            {"group": "apiserver.openshift.io", "resource": "apirequestcounts"},
            {"group": "", "resource": "pods", "namespace": "openshift-etcd"},
            {"group": "", "resource": "pods", "namespace": "nowhere"},
            {"group": "", "resource": "secrets"},
        )
        await at.world.ask({"mode": "Preflight", "image": image})
        await at.world.started("5.3.7")
        rules = await role(at.world, service_account.CLUSTER_ROLE)
        assert {"apiGroups": ["apiserver.openshift.io"], "resources": ["apirequestcounts"], "verbs": READ} in rules
        assert "secrets" not in {name for rule in rules for name in rule["resources"]}
        assert await role(at.world, service_account.ROLE, "openshift-etcd") == [
            {"apiGroups": [""], "resources": ["pods"], "verbs": READ}
        ]
        await at.world.ask(None)
        await at.world.gone()
        for resource, namespace in ((service_account.CLUSTER_ROLE, ""), (service_account.ROLE, "openshift-etcd")):
            with pytest.raises(NotFound):
                await role(at.world, resource, namespace)


async def test_an_image_that_declares_nothing_gets_what_our_own_checks_read(tmp_path: Path) -> None:
    """Releases before this one, and those that other tools made."""
    async with scene(tmp_path) as at:
        await set_to(at.world, serviceAccount="dedicated")
        await at.world.ask({"mode": "Preflight", "image": release(at)})
        await at.world.started("5.3.7")
        assert await role(at.world, service_account.CLUSTER_ROLE) == service_account.read_rules(own_rights())


async def _grant(world: Cluster) -> set[tuple[str, str, str]]:
    """Create the roles of the manifests; what they give beyond reading."""
    rbac = "rbac.authorization.k8s.io"
    plurals = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles"}
    plurals |= {"RoleBinding": "rolebindings"}
    granted = set()
    for body in yaml.safe_load_all((MANIFESTS / "0000_00_cluster-version-operator_02_roles.yaml").read_text()):
        kind = body["kind"]
        resource = Resource(
            group=rbac, version="v1", kind=kind, plural=plurals[kind], namespaced=not kind.startswith("Cluster")
        )
        await world.client.send(calls.create(resource, body))
        for rule in body.get("rules", ()):
            granted |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
    return {right for right in granted if right[2] not in READ}


async def _scraped(world: Cluster, address: str) -> int:
    """The status for Prometheus, with the rights of the manifests."""
    bodies = yaml.safe_load_all((MANIFESTS / "0000_90_cluster-version-operator_01_metrics.yaml").read_text())
    reader = resource_of(ServiceAccount)
    await world.client.send(calls.create(NAMESPACES, {"metadata": {"name": "openshift-monitoring"}}))
    account = {"metadata": {"name": "prometheus-k8s", "namespace": "openshift-monitoring"}}
    await world.client.send(calls.create(reader, account))
    token = (await world.client.send(token_request("prometheus-k8s", "openshift-monitoring"))).token
    for body in bodies:
        if body["kind"] in ("ClusterRole", "ClusterRoleBinding"):
            plural = f"{body['kind'].lower()}s"
            await world.client.send(
                calls.create(
                    Resource(
                        group="rbac.authorization.k8s.io",
                        version="v1",
                        kind=body["kind"],
                        plural=plural,
                        namespaced=False,
                    ),
                    body,
                )
            )
    header = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=header) as session, session.get(f"{address}/metrics") as response:
        return response.status


# A target that hangs; an admission that only OpenShift has; the Pod that fetches a release, a Job of a release;
# container checks' Pods.
ELSEWHERE = {
    ("", "pods", "patch"),
    ("", "pods", "create"),
    ("batch", "jobs", "delete"),
    ("", "pods", "delete"),
    ("security.openshift.io", "securitycontextconstraints", "use"),
}


@dataclass(frozen=True)
class _Asked:
    """What the operator asked the API server for."""

    rights: frozenset[tuple[str, str, str]]
    refused: tuple[str, ...]


def _asked(path: Path, account: str) -> _Asked:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    ours = [event for event in events if (event.get("impersonatedUser") or {}).get("username") == account]
    refused = tuple(event["requestURI"] for event in ours if event["responseStatus"]["code"] == 403)
    return _Asked(
        frozenset(_right(event["objectRef"], event["verb"]) for event in ours if "objectRef" in event), refused
    )


def _right(ref: JSON, verb: str) -> tuple[str, str, str]:
    name = f"{ref['resource']}/{ref['subresource']}" if ref.get("subresource") else ref["resource"]
    return ref.get("apiGroup", ""), name, verb


@pytest.mark.slow
async def test_the_operators_rights_are_enough_and_none_is_idle(tmp_path: Path) -> None:
    """With the account of the manifests a preflight runs from its request to its end, in every way that is offered."""
    account = f"system:serviceaccount:{NAMESPACE}:cluster-version-operator"
    async with cluster(tmp_path) as (world, manager):
        granted = await _grant(world)
        await set_to(world, serviceAccount="dedicated", reportSink="configmap")
        loaded = replace(config.load(str(world.kubeconfig)), headers=(("Impersonate-User", account),))
        async with running(manager(through=loaded, listen="127.0.0.1:0")) as operator:
            await world.ask({"mode": "Preflight", "version": "5.2.0"})
            preflight_id = await world.started("5.2.0")
            assert await _scraped(world, operator.endpoint.address) == 200
            metadata = {
                "name": preflight_deployment.report_map(preflight_id),
                "labels": {"app": preflight_deployment.NAME},
            }
            obj = {"metadata": {**metadata, "namespace": NAMESPACE}, "data": {"report.json": "{"}}
            await world.client.send(calls.create(CONFIG_MAPS, obj))
            await world.condition("PreflightFailed", "True", "ReportInvalid")
            await world.ask(None)
            await world.gone()

            async def empty() -> bool:
                found, _ = await world.client.list_all(ConfigMap, NAMESPACE)
                return metadata["name"] not in {each.metadata.name for each in found}

            await until(empty)
    asked = _asked(tmp_path / "apiserver" / "audit.log", account)
    assert asked.refused == ()
    # A create by apply is a patch to the audit log, and a create to the authorizer.
    applied = {(group, name, "create") for group, name, verb in asked.rights if verb == "patch"}
    assert granted - asked.rights - applied - ELSEWHERE == set()
