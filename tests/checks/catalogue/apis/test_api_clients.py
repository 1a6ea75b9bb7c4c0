"""Who asked for an API that goes: as many clients as are noted."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import BY_NAME, JSON, messages_of
from tests.factories import context

from kubekit.api.scheme import Resource
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies
from runup.checks.decide.snapshots import snapshot_of


@pytest.mark.parametrize(
    ("counted", "noted", "said"),
    [
        pytest.param(3, 3, "Who asked: me, 3 times.", id="all of them were noted"),
        pytest.param(4, 3, "Who asked: me, 3 times and clients that the server did not note, 1 times.", id="but one"),
        pytest.param(2, 3, "Who asked: me, 3 times.", id="more than were counted"),
    ],
)
def test_who_asked_for_an_api(counted: int, noted: int, said: str) -> None:
    """Those that the server noted, and how many it did not."""
    user = {
        "username": "me",
        "userAgent": "",
        "requestCount": noted,
        "byVerb": [{"verb": "get", "requestCount": noted}],
    }
    status = {
        "removedInRelease": "1.38",
        "requestCount": counted,
        "last24h": [{"byNode": [{"nodeName": "n", "byUser": [user], "requestCount": noted}], "requestCount": noted}],
    }
    count = {
        "apiVersion": "apiserver.openshift.io/v1",
        "kind": "APIRequestCount",
        "metadata": {"name": "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"},
        "status": status,
    }
    (found,) = messages_of("RemovedAPIRequested", count)
    assert found.endswith(said)


def count(user: str, *, verb: str = "update", name: str = "", removed: str = "") -> JSON:
    """Requests of one client for an API."""
    sent = {"username": user, "userAgent": "", "requestCount": 1, "byVerb": [{"verb": verb, "requestCount": 1}]}
    return {
        "apiVersion": "apiserver.openshift.io/v1",
        "kind": "APIRequestCount",
        "metadata": {"name": name or "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"},
        "status": {"removedInRelease": removed, "requestCount": 1, "last24h": [{"byNode": [{"byUser": [sent]}]}]},
    }


NETWORK = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterOperator",
    "metadata": {"name": "network"},
    "status": {
        "relatedObjects": [
            {"group": "", "resource": "namespaces", "name": "openshift-multus"},
            {"group": "apps", "resource": "deployments", "namespace": "openshift-frr", "name": "openshift-frr"},
        ]
    },
}


@pytest.mark.parametrize(
    ("user", "named"),
    [
        pytest.param("system:cluster-policy-controller", False, id="the cluster policy controller"),
        pytest.param("system:kube-controller-manager", False, id="the controller manager"),
        pytest.param("system:apiserver", False, id="the API server itself"),
        pytest.param("system:node:worker-0", False, id="a kubelet"),
        pytest.param("system:serviceaccount:openshift-multus:multus", False, id="of a ClusterOperator's namespace"),
        pytest.param("system:serviceaccount:openshift-multus-extra:x", True, id="of a namespace that begins like it"),
        pytest.param("system:serviceaccount:openshift-frr:x", True, id="of a namespace in which it has an object"),
        pytest.param("system:serviceaccount:openshift-operators:db", True, id="an operator that OLM installed"),
        pytest.param("system:admin", True, id="an administrator"),
        pytest.param("system:serviceaccount:kube-system:cni", True, id="what somebody put into kube-system"),
    ],
)
def test_the_platform_does_not_ask_for_itself(user: str, named: bool) -> None:
    """The release brings its own clients along; whatever they do is no use of the version by somebody else."""
    for check, to in (("RemovedAPIRequested", "1.32.0"), ("DeprecatedAPIRequested", "1.31.0")):
        assert bool(messages_of(check, count(user), NETWORK, to=context(kubernetes=to))) is named


@pytest.mark.parametrize(
    ("name", "removed", "target", "goes"),
    [
        pytest.param("ipaddresses.v1beta1.networking.k8s.io", "", "1.37.0", True, id="the table says it"),
        pytest.param("ipaddresses.v1beta1.networking.k8s.io", "", "1.36.0", False, id="not yet"),
        pytest.param("ipaddresses.v1.networking.k8s.io", "", "1.37.0", False, id="a version that stays"),
        pytest.param("pods.v1", "", "1.37.0", False, id="of the core"),
        pytest.param(
            "validatingadmissionpolicies.v1beta1.admissionregistration.k8s.io",
            "1.33",
            "1.33.1",
            True,
            id="OpenShift's word",
        ),
        pytest.param("widgets.v1beta1.example.com", "1.33", "1.33.1", True, id="not in the table"),
    ],
)
def test_when_the_api_goes(name: str, removed: str, target: str, goes: bool) -> None:
    """As the count says, or else the table."""
    found = messages_of("RemovedAPIRequested", count("me", name=name, removed=removed), to=context(kubernetes=target))
    assert bool(found) is goes


def test_whose_namespaces_are_the_platforms_must_be_known() -> None:
    """An account could be the platform's: without ClusterOperators that is not known."""
    check = BY_NAME["RemovedAPIRequested"]
    snapshot = snapshot_of(check.reads, [count("system:serviceaccount:openshift-multus:multus")], lacking=_lacking)
    (finding,) = run_check(check, snapshot, context(kubernetes="1.32.0")).findings
    assert finding.applies is Applies.UNKNOWN


def _lacking(read: Resource) -> str:
    return "not collected" if read.kind in ("ClusterOperator", "CustomResourceDefinition") else ""
