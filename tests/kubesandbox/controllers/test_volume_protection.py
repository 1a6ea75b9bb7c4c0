"""Claims and volumes that are deleted: they go, unless somebody uses them."""

from __future__ import annotations

from tests.kubesandbox.controllers.conftest import JSON, Cluster

from kubekit.kube import calls
from kubesandbox.controllers.garbage import CLAIMS
from kubesandbox.controllers.owned_pods import PODS

CLAIM: JSON = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


async def test_a_claim_goes_once_no_pod_uses_it(cluster: Cluster) -> None:
    """At once where none does; else with the last pod."""
    await cluster.create("unused", resource=CLAIMS, **CLAIM)
    await cluster.delete("unused", resource=CLAIMS)
    await cluster.until_gone("unused", resource=CLAIMS)
    await cluster.create("used", resource=CLAIMS, **CLAIM)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "used"}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    await cluster.create("waiting", resource=PODS, spec={**spec, "schedulerName": "nobody"})
    await cluster.create("p", resource=PODS, spec={**spec, "nodeName": "n"})
    await cluster.delete("used", resource=CLAIMS)
    # What was asked for later is gone earlier, so the controller has been there.
    await cluster.create("other", resource=CLAIMS, **CLAIM)
    await cluster.delete("other", resource=CLAIMS)
    await cluster.until_gone("other", resource=CLAIMS)
    assert await cluster.find("used", CLAIMS) is not None
    await cluster.client.send(calls.delete(PODS, "p", cluster.namespace, grace_period_s=0))
    await cluster.until_gone("used", resource=CLAIMS)
