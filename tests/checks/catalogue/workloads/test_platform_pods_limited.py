"""LimitRanges in the platform's namespaces: which pods they refuse, and which containers they limit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, findings, messages_of

NAME = "PlatformPodsLimited"


def limit_range(namespace: str = "openshift-dns", **limits: Any) -> JSON:
    """A LimitRange with one item."""
    spec = {"limits": [{"type": "Container", **limits}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": namespace}, "spec": spec}


def workload(requests: JSON | None = None, limits: JSON | None = None, namespace: str = "openshift-dns") -> JSON:
    """A DaemonSet of one container with these resources."""
    resources = {"requests": requests or {}, "limits": limits or {}}
    spec = {"template": {"spec": {"containers": [{"name": "c", "resources": resources}]}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": namespace},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("limits", "pod", "expected"),
    [
        pytest.param({"max": {"memory": "1Gi"}}, workload({"memory": "2Gi"}), "above the default limit", id="default"),
        pytest.param({"max": {"cpu": "1"}}, workload({"cpu": "2"}, {"cpu": "2"}), "above the maximum", id="maximum"),
        pytest.param({"min": {"cpu": "1"}}, workload({"cpu": "10m"}), "below the minimum", id="minimum"),
        pytest.param({"type": "Pod", "max": {"cpu": "1"}}, workload({"cpu": "10m"}), "no limit of cpu", id="of pods"),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}}, workload({"cpu": "1"}, {"cpu": "3"}), "too high", id="ratio"
        ),
    ],
)
def test_pods_that_are_refused(limits: JSON, pod: JSON, expected: str) -> None:
    (found,) = findings(NAME, limit_range(**limits), pod)
    assert found[1] == "critical"
    (message,) = messages_of(NAME, limit_range(**limits), pod)
    assert expected in message


@pytest.mark.parametrize(
    ("limited", "pod", "expected"),
    [
        pytest.param(
            limit_range(default={"memory": "1Gi"}), workload({"memory": "1Mi"}), ["warning"], id="a new limit"
        ),
        pytest.param(limit_range(default={"memory": "1Gi"}), workload({}, {"memory": "1Mi"}), [], id="an own limit"),
        pytest.param(limit_range(defaultRequest={"cpu": "1m"}), workload(), [], id="a request alone"),
        pytest.param(limit_range(max={"cpu": "2"}), workload({}, {"cpu": "2"}), [], id="at the maximum"),
        pytest.param(limit_range(min={"cpu": "1"}), workload(), [], id="the minimum is the default"),
        pytest.param(limit_range(type="PersistentVolumeClaim", max={"storage": "1"}), workload(), [], id="of claims"),
        pytest.param(limit_range("shop", max={"cpu": "1m"}), workload(namespace="shop"), [], id="of users"),
        pytest.param(limit_range("openshift-etcd", max={"cpu": "1m"}), workload(), [], id="another namespace"),
    ],
)
def test_pods_that_are_not_refused(limited: JSON, pod: JSON, expected: list[str]) -> None:
    assert [found[1] for found in findings(NAME, limited, pod)] == expected
