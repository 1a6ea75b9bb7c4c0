"""The quality of service class of a pod, which the API server, quotas and the node agent share."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.rules.pod_requests import qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "BestEffort", id="no containers"),
        pytest.param({"containers": [{}]}, "BestEffort", id="no resources"),
        pytest.param(
            {"containers": [{"resources": {"limits": {"ephemeral-storage": "1Gi"}}}]}, "BestEffort", id="only storage"
        ),
        pytest.param({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "Burstable", id="a request"),
        pytest.param({"containers": [{"resources": {"limits": {"cpu": "1"}}}]}, "Burstable", id="one of the limits"),
        pytest.param({"containers": [{"resources": {"limits": BOTH}}]}, "Guaranteed", id="both limits"),
        pytest.param(
            {"containers": [{"resources": {"limits": BOTH, "requests": {"cpu": "500m"}}}]}, "Burstable", id="a range"
        ),
        pytest.param({"containers": [{"resources": {"limits": BOTH}}, {}]}, "Burstable", id="one without limits"),
        pytest.param(
            {"containers": [{"resources": {"limits": BOTH}}], "initContainers": [{}]},
            "Burstable",
            id="an init container without limits",
        ),
    ],
)
def test_computes_the_class(spec: dict[str, Any], expected: str) -> None:
    """As k8s.io/kubernetes/pkg/apis/core/v1/helper/qos does."""
    assert qos_class(spec) == expected
