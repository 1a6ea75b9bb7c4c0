"""Constraints that would admit the next pods of the platform before those of the pods that run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.catalogue.asking import JSON, messages_of
from tests.factories import pod_json

NAME = "SecurityContextConstraintsPreferred"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-dns"}}


def constraints(name: str, **fields: Any) -> JSON:
    """SecurityContextConstraints that permit what restricted-v2 permits, except for `fields`."""
    return {
        "apiVersion": "security.openshift.io/v1",
        "kind": "SecurityContextConstraints",
        "metadata": {"name": name},
        "allowPrivilegeEscalation": False,
        "requiredDropCapabilities": ["ALL"],
        "volumes": ["configMap", "emptyDir", "projected", "secret"],
        "runAsUser": {"type": "MustRunAsRange"},
        "seLinuxContext": {"type": "MustRunAs"},
        **fields,
    }


def workload(annotations: JSON | None = None, container: JSON | None = None, **spec: Any) -> JSON:
    """A Deployment of the platform."""
    only = {"name": "c", "image": "i", "securityContext": container or {}}
    template = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [only], **spec}}
    meta = {"name": "dns", "namespace": "openshift-dns"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"template": template}}


def pod(scc: str = "restricted-v2") -> JSON:
    """The pod of the Deployment that runs."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "dns-5b9", "uid": "u", "controller": True}
    meta = {"annotations": {"openshift.io/scc": scc}, "ownerReferences": [owner]}
    return pod_json("dns-5b9-x", namespace="openshift-dns", metadata=meta)


OPEN = {"groups": ["system:authenticated"]}
RESTRICTED = constraints("restricted-v2", **OPEN)
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "b"},
    "roleRef": {"kind": "ClusterRole", "name": "system:openshift:scc:vendor"},
    "subjects": [{"kind": "ServiceAccount", "namespace": "openshift-dns", "name": "dns"}],
}
VENDOR = constraints("vendor", priority=20, **OPEN)


@pytest.mark.parametrize(
    ("objects", "is_told"),
    [
        pytest.param((VENDOR, workload(), pod()), True, id="a priority, and open"),
        pytest.param((constraints("vendor", priority=20), workload(), pod()), False, id="a priority, for nobody"),
        pytest.param((constraints("vendor", **OPEN), workload(), pod()), False, id="without a priority, by name"),
        pytest.param((constraints("a-vendor", **OPEN), workload(), pod()), True, id="without one, first by name"),
        pytest.param(
            (constraints("vendor", volumes=["secret"], seLinuxContext={}, **OPEN), workload(), pod()),
            False,
            id="less restrictive",
        ),
        pytest.param(
            (
                constraints("vendor", allowedCapabilities=["X"], runAsUser={"type": "MustRunAs"}, **OPEN),
                workload(),
                pod(),
            ),
            True,
            id="more restrictive",
        ),
        pytest.param((VENDOR, workload(container={"privileged": True}), pod("privileged")), False, id="not admitted"),
        pytest.param((VENDOR, workload({"openshift.io/required-scc": "x"}), pod()), False, id="others are required"),
        pytest.param((VENDOR, workload()), True, id="without pods"),
        pytest.param((constraints("a-vendor", **OPEN), workload()), False, id="without pods, and without a priority"),
        pytest.param(
            (constraints("vendor", priority=1), workload(serviceAccountName="dns"), pod(), BINDING),
            True,
            id="bound to the account",
        ),
        pytest.param(
            (constraints("vendor", priority=1), workload(serviceAccountName="others"), pod(), BINDING),
            False,
            id="bound to another account",
        ),
        pytest.param(
            (constraints("vendor", priority=1, groups=["system:serviceaccounts:openshift-dns"]), workload(), pod()),
            True,
            id="for accounts of the namespace",
        ),
        pytest.param(
            (
                constraints("vendor", priority=1, users=["system:serviceaccount:openshift-dns:default"]),
                workload(),
                pod(),
            ),
            True,
            id="for the default account",
        ),
    ],
)
def test_constraints_that_take_the_next_pods(objects: tuple[JSON, ...], is_told: bool) -> None:
    found = messages_of(NAME, RESTRICTED, NAMESPACE, *objects)
    assert ["would admit the next pods of 1 workload of the platform: openshift-dns/dns" in it for it in found] == [
        True
    ] * is_told


def test_pods_name_their_present_constraints() -> None:
    (found,) = messages_of(NAME, RESTRICTED, NAMESPACE, VENDOR, workload(), pod())
    assert "openshift-dns/dns (now restricted-v2)" in found
