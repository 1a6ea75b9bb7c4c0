"""Which resources of a quota count pods: pkg/quota/v1/evaluator/core/pods.go, MatchingResources."""

from __future__ import annotations

import pytest

from kubesandbox.apiserver.quotas.usage import PODS, resources_counting


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        pytest.param("requests.nvidia.com/gpu", True, id="an extended resource by its request"),
        pytest.param("nvidia.com/gpu", False, id="an extended resource without a side"),
        pytest.param("limits.nvidia.com/gpu", False, id="the limit of an extended resource"),
        pytest.param("requests.kubernetes.io/gpu", False, id="a resource of Kubernetes's own domain"),
        pytest.param("requests.gpu", False, id="a request without a domain"),
        pytest.param("requests.hugepages-2Mi", True, id="huge pages by their request"),
        pytest.param("hugepages-2Mi", True, id="huge pages"),
        pytest.param("requests.cpu", True, id="a native resource"),
        pytest.param("services", False, id="another kind"),
    ],
)
def test_finds_what_counts_pods(name: str, counts: bool) -> None:
    """Extended resources have a domain that is not Kubernetes' own, and are counted by their requests alone."""
    assert resources_counting(PODS, [name]) == ([name] if counts else [])
