"""What the status of a ResourceQuota says about its namespace, as objects come, change and go."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubesandbox.controllers.conftest import CONFIG_MAPS, JSON, SECRETS, Cluster

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden
from kubesandbox.controllers.budgets_and_quotas import QUOTAS
from kubesandbox.controllers.owned_pods import PODS

SERVICES = Resource(group="", version="v1", kind="Service", plural="services", namespaced=True)
CLAIMS = Resource(
    group="", version="v1", kind="PersistentVolumeClaim", plural="persistentvolumeclaims", namespaced=True
)
POD: JSON = {
    "spec": {
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "64Mi"}}}
        ]
    }
}


async def used(cluster: Cluster, name: str, **amounts: str) -> None:
    """Waits until a quota says so."""
    expected = {key.replace("_", "/"): amount for key, amount in amounts.items()}
    await cluster.until(lambda found: found and found.get("status", {}).get("used") == expected, name, QUOTAS)


@pytest.mark.slow
async def test_objects_come_and_go(cluster: Cluster) -> None:
    """Existing objects and charged ones count; deleted ones no longer do."""
    await cluster.create("before", resource=SECRETS)
    await cluster.create("quota", resource=QUOTAS, spec={"hard": {"count/secrets": "2"}})
    await used(cluster, "quota", count_secrets="1")
    await cluster.create("second", resource=SECRETS)
    await used(cluster, "quota", count_secrets="2")
    await _is_refused(cluster, "third", SECRETS)
    await cluster.delete("before", resource=SECRETS)
    await used(cluster, "quota", count_secrets="1")
    await cluster.create("third", resource=SECRETS)


async def test_another_limit_counts_at_once(cluster: Cluster) -> None:
    """The status has the limits of the spec, and what is used of those alone."""
    await cluster.create("kept", resource=CONFIG_MAPS)
    await cluster.create("quota", resource=QUOTAS, spec={"hard": {"count/secrets": "2", "pods": "1"}})
    await used(cluster, "quota", count_secrets="0", pods="0")
    patch = {"spec": {"hard": {"count/secrets": None, "pods": "3", "count/deployments.apps": "1"}}}
    await cluster.client.send(calls.merge_patch(QUOTAS, "quota", patch, cluster.namespace))
    expected = {"pods": "0", "count/deployments.apps": "0"}
    await cluster.until(lambda found: found and found["status"]["used"] == expected, "quota", QUOTAS)
    found = await cluster.find("quota", QUOTAS)
    assert found is not None
    assert found["status"]["hard"] == {"pods": "3", "count/deployments.apps": "1"}


@pytest.mark.slow
async def test_a_quota_without_limits_any_more_lets_all_in(cluster: Cluster) -> None:
    """Its status loses them with the spec: that is where the API server reads them."""
    await cluster.create("quota", resource=QUOTAS, spec={"hard": {"count/secrets": "0"}})
    await used(cluster, "quota", count_secrets="0")
    await _is_refused(cluster, "first", SECRETS)
    await cluster.client.send(calls.merge_patch(QUOTAS, "quota", {"spec": {"hard": None}}, cluster.namespace))
    await cluster.until(lambda found: found and not found["status"].get("hard"), "quota", QUOTAS)
    await cluster.create("first", resource=SECRETS)


async def test_a_pod_that_ends_uses_nothing(cluster: Cluster) -> None:
    """But for its place among the objects."""
    hard = {"requests.cpu": "1", "limits.memory": "1Gi", "pods": "5", "count/pods": "5"}
    await cluster.create("quota", resource=QUOTAS, spec={"hard": hard})
    await cluster.until(lambda found: found and found.get("status"), "quota", QUOTAS)
    await cluster.create("p", resource=PODS, **POD)
    found = await cluster.until(lambda found: found and found["status"]["used"]["pods"] == "1", "quota", QUOTAS)
    expected = {"requests.cpu": "500m", "limits.memory": "64Mi", "pods": "1", "count/pods": "1"}
    assert found["status"]["used"] == expected
    phase = {"status": {"phase": "Succeeded"}}
    await cluster.client.send(calls.merge_patch(PODS, "p", phase, cluster.namespace, subresource="status"))
    found = await cluster.until(lambda found: found and found["status"]["used"]["pods"] == "0", "quota", QUOTAS)
    assert found["status"]["used"] == {"requests.cpu": "0", "limits.memory": "0", "pods": "0", "count/pods": "1"}


async def test_services_and_claims_are_counted_by_what_they_are(cluster: Cluster) -> None:
    """A Service that is no load balancer any more gives it back."""
    hard = {"services.loadbalancers": "1", "services.nodeports": "1", "requests.storage": "2Gi"}
    await cluster.create("quota", resource=QUOTAS, spec={"hard": hard})
    await cluster.until(lambda found: found and found.get("status"), "quota", QUOTAS)
    balanced: dict[str, Any] = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    await cluster.create("s", resource=SERVICES, spec=balanced)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await cluster.create("c", resource=CLAIMS, spec=claim)
    after = {"services.loadbalancers": "1", "services.nodeports": "1", "requests.storage": "1Gi"}
    await cluster.until(lambda found: found and found["status"]["used"] == after, "quota", QUOTAS)
    await cluster.client.send(calls.merge_patch(SERVICES, "s", {"spec": {"type": "ClusterIP"}}, cluster.namespace))
    left = {**after, "services.loadbalancers": "0", "services.nodeports": "0"}
    await cluster.until(lambda found: found and found["status"]["used"] == left, "quota", QUOTAS)


async def _is_refused(cluster: Cluster, name: str, resource: Resource) -> None:
    try:
        await cluster.create(name, resource=resource)
    except Forbidden as error:
        assert "exceeded quota: quota" in error.message
    else:
        raise AssertionError(f"{resource} {name} was taken")
