"""token, binding, eviction, scale and log."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.clocks import Leaping

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, BadRequest, Conflict, Invalid, NotFound, TooManyRequests
from kubekit.kube.client import Client
from kubesandbox.apiserver.server import ApiServer

JSON = dict[str, Any]
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
BUDGETS = Resource(
    group="policy", version="v1", kind="PodDisruptionBudget", plural="poddisruptionbudgets", namespaced=True
)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
META = {"name": "web", "namespace": "default", "labels": {"app": "web"}}
POD: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_a_token_proves_its_account(client: Client) -> None:
    """TokenRequest answers a token and when it ends; less than ten minutes is refused."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}
    await client.send(calls.create(ACCOUNTS, account))
    body: JSON = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": "default"},
    }
    asked = calls.create(ACCOUNTS, {**body, "spec": {}}, name="robot", subresource="token")
    answer = await client.send(asked)
    assert answer["status"]["token"].count(".") == 2
    short = calls.create(ACCOUNTS, {**body, "spec": {"expirationSeconds": 60}}, name="robot", subresource="token")
    with pytest.raises(Invalid, match="may not specify a duration less than 10 minutes"):
        await client.send(short)


async def test_a_pod_is_bound_once(client: Client) -> None:
    """Binding sets the node and the condition PodScheduled; a second one is a conflict."""
    await client.send(calls.create(PODS, POD))
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": META, "target": target}
    await client.send(calls.create(PODS, binding, name="web", subresource="binding"))
    pod = await client.send(calls.get_raw(PODS, "web", "default"))
    assert pod["spec"]["nodeName"] == "n1"
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]} == {"PodScheduled": "True"}
    with pytest.raises(Conflict):
        await client.send(calls.create(PODS, binding, name="web", subresource="binding"))


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {"app": "web"}}, id="by labels"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, id="by expressions"),
        pytest.param({}, id="everything"),
    ],
)
async def test_a_budget_stops_an_eviction(client: Client, selector: JSON) -> None:
    """429 with the budget's arithmetic; the pod stays."""
    await guarded_pod(client, selector, allowed=0)
    refused = await evicted(client)
    assert isinstance(refused, TooManyRequests)
    (cause,) = refused.status.details.causes
    assert cause.message == "The disruption budget web needs 1 healthy pods and has 1 currently"
    assert (await client.send(calls.get_raw(PODS, "web", "default")))["metadata"]["name"] == "web"


async def guarded_pod(client: Client, selector: JSON, *, allowed: int, ready: bool = True, observed: int = 1) -> None:
    """A running pod with a budget that allows so many disruptions."""
    await client.send(calls.create(PODS, POD))
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    running = {"status": {"phase": "Running", "conditions": conditions}}
    await client.send(calls.merge_patch(PODS, "web", running, "default", subresource="status"))
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": copy.deepcopy(META)}
    await client.send(calls.create(BUDGETS, {**budget, "spec": {"minAvailable": 1, "selector": selector}}))
    counts = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    status = {"status": {**counts, "observedGeneration": observed}}
    await client.send(calls.merge_patch(BUDGETS, "web", status, "default", subresource="status"))


async def evicted(client: Client) -> ApiError | None:
    """Evict the pod; the refusal if there is one."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": META}
    try:
        await client.send(calls.create(PODS, eviction, name="web", subresource="eviction"))
    except ApiError as error:
        return error
    return None


async def test_an_eviction_uses_up_a_disruption(client: Client) -> None:
    """It is counted in the budget at once, with the pod's name; the pod goes."""
    await guarded_pod(client, {}, allowed=1)
    assert await evicted(client) is None
    status = (await client.send(calls.get_raw(BUDGETS, "web", "default")))["status"]
    assert (status["disruptionsAllowed"], [*status["disruptedPods"]]) == (0, ["web"])
    with pytest.raises(NotFound):
        await client.send(calls.get_raw(PODS, "web", "default"))


async def test_an_unready_pod_goes_while_the_rest_is_healthy(client: Client) -> None:
    """It counts for nobody, so no disruption is used up."""
    await guarded_pod(client, {}, allowed=0, ready=False)
    assert await evicted(client) is None


async def test_a_budget_that_nobody_looked_at_yet(client: Client) -> None:
    """It is asked again in ten seconds, each time that the client follows Retry-After."""
    await guarded_pod(client, {}, allowed=1, observed=0)
    clock = Leaping()
    async with Client(client.config, clock=clock) as patient:
        refused = await evicted(patient)
    assert {*clock.slept} == {10}
    assert isinstance(refused, TooManyRequests)
    assert refused.retry_after_s == 10
    (cause,) = refused.status.details.causes
    assert cause.message == "The disruption budget web is still being processed by the server."


async def test_a_pending_pod_is_evicted_whatever_its_budget(client: Client) -> None:
    """It runs nowhere yet."""
    await guarded_pod(client, {}, allowed=0)
    pending = {"status": {"phase": "Pending"}}
    await client.send(calls.merge_patch(PODS, "web", pending, "default", subresource="status"))
    assert await evicted(client) is None


async def test_scale_is_read_and_written(client: Client) -> None:
    """The form of autoscaling/v1."""
    template = {"metadata": {"labels": META["labels"]}, "spec": POD["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": META["labels"]}, "template": template}
    await client.send(
        calls.create(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": META, "spec": spec})
    )
    patch = {"spec": {"replicas": 5}}
    answer = await client.send(calls.merge_patch(DEPLOYMENTS, "web", patch, "default", subresource="scale"))
    assert (answer["kind"], answer["spec"], answer["status"]["selector"]) == ("Scale", {"replicas": 5}, "app=web")
    found = await client.send(calls.get_raw(DEPLOYMENTS, "web", "default"))
    assert found["spec"]["replicas"] == 5


async def test_a_log_is_read_from_its_end(client: Client, server: ApiServer) -> None:
    """`tailLines` counts lines; a container that the pod does not have is refused."""
    pod = await client.send(calls.create(PODS, POD))
    folder = server.data / "pods" / f"default_web_{pod['metadata']['uid']}"
    folder.mkdir(parents=True)
    (folder / "c.log").write_bytes(b"one\ntwo\nthree\n")
    path = "/api/v1/namespaces/default/pods/web/log"
    assert await client.send(calls.get_path(path, (("tailLines", "2"),))) == b"two\nthree\n"
    with pytest.raises(BadRequest, match="container other is not valid for pod web"):
        await client.send(calls.get_path(path, (("container", "other"),)))
