"""Checks beside what their examples show: what only looks like it, one of several, and what cannot be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.factories import NOW, context

from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Context
from runup.checks.decide.objects import snapshot_of

BY_NAME = {check.name: check for check in CHECKS}
JSON = dict[str, Any]


def told(name: str, *objects: JSON, to: Context | None = None) -> list[str]:
    """What a check says of a cluster of these objects, in its words."""
    check = BY_NAME[name]
    return [found.message for found in run_check(check, snapshot_of(check.reads, objects), to or context()).findings]


def config_map(name: str, namespace: str, **data: str) -> JSON:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


MANAGED, CONFIG = "openshift-config-managed", "openshift-config"
GATE, OTHER, LAST = "ack-5.0-a-in-5.1", "ack-5.0-b-in-5.1", "ack-5.1-c-in-5.2"


def gates(name: str = "admin-gates", **found: str) -> JSON:
    """The gates of a cluster."""
    return config_map(name, MANAGED, **{key.replace("_", "-"): text for key, text in found.items()})


def asks(gate: str) -> str:
    """What is said of a gate that nobody acknowledged."""
    return f"Gate {gate} is not acknowledged: Do it."


ACKS: dict[str, tuple[list[JSON], list[str]]] = {
    "one gate": ([gates(**{GATE: "Do it."})], [asks(GATE)]),
    "two gates, by name": ([gates(**{LAST: "Do it.", GATE: " Do\n it. "})], [asks(GATE), asks(LAST)]),
    "acknowledged, and one that is not": (
        [gates(**{GATE: "Do it.", OTHER: "Do it."}), config_map("admin-acks", CONFIG, **{GATE: "true"})],
        [asks(OTHER)],
    ),
    "acknowledged in another map": (
        [gates(**{GATE: "Do it."}), config_map("zz", CONFIG, **{GATE: "true"}), config_map("aa", CONFIG)],
        [asks(GATE)],
    ),
    "of a minor version that is behind, and one that is not": (
        [gates(**{"ack-4.9-a-in-5.0": "Do it.", GATE: "Do it."})],
        [asks(GATE)],
    ),
    "gates under the name of what acknowledges them": ([gates("admin-acks", **{GATE: "Do it."})], []),
    "a bundle of another map": ([gates("zz", **{"ca-bundle.crt": "x"})], []),
    "a long gate that names no version": (
        [gates(**{"x" * 81: "Do it."})],
        [f"Whether AdminAck applies could not be told: admin-gates has the gate '{'x' * 80}', which names no version."],
    ),
}


@pytest.mark.parametrize(("objects", "said"), ACKS.values(), ids=ACKS.keys())
def test_gates(objects: list[JSON], said: list[str]) -> None:
    """Those of that very map, each by itself."""
    assert told("AdminAck", *objects) == said


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        pytest.param("ConfigMap", "admin-gates", [asks(GATE)], id="the target's own gates"),
        pytest.param("ConfigMap", "admin-acks", [], id="another map"),
        pytest.param("ConfigMap", "zz", [], id="a map that sorts behind"),
        pytest.param("Secret", "admin-gates", [], id="another kind"),
        pytest.param("Alert", "admin-gates", [], id="a kind that sorts before"),
    ],
)
def test_gates_of_the_target(kind: str, name: str, said: list[str]) -> None:
    """As its manifests have them."""
    manifest = {"kind": kind, "metadata": {"name": name}, "data": {GATE: "Do it."}}
    assert told("AdminAck", to=replace(context(), manifests=(manifest,))) == said


def policy(name: str, failure: str = "Fail", group: str = "b.example") -> JSON:
    """An admission policy with parameters of kind `Limit`."""
    spec = {"failurePolicy": failure, "paramKind": {"apiVersion": f"{group}/v1", "kind": "Limit"}}
    meta = {"name": name}
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": meta, "spec": spec}


def binding(name: str, action: str = "Deny") -> JSON:
    """What puts it into force."""
    spec = {"policyName": name, "validationActions": [action]}
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec}


def definition(group: str, kind: str = "Limit", *, version: str = "v1", served: bool = True) -> JSON:
    """A definition of a kind."""
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    versions = [{"name": version, "served": served, "storage": True}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "names": names, "versions": versions},
        "status": {"storedVersions": [version]},
    }


IN_FORCE = [policy("p"), binding("p")]
POLICIES: dict[str, tuple[list[JSON], bool]] = {
    "no definition": (IN_FORCE, True),
    "its definition": ([*IN_FORCE, definition("b.example")], False),
    "a definition of a group before it": ([*IN_FORCE, definition("a.example")], True),
    "a definition of a group behind it": ([*IN_FORCE, definition("c.example")], True),
    "a definition of another kind": ([*IN_FORCE, definition("b.example", "Kind")], True),
    "a version that is not served": ([*IN_FORCE, definition("b.example", served=False)], True),
    "another version": ([*IN_FORCE, definition("b.example", version="v2")], True),
    "not in force": ([policy("p")], False),
    "another's in force": ([policy("p"), binding("q")], False),
    "in force to warn": ([policy("p"), binding("p", "Warn")], False),
    "it does not refuse": ([policy("p", "Ignore"), binding("p")], False),
    "a kind of the core": ([policy("p", group="apps"), binding("p")], False),
    "a kind that is built in": ([policy("p", group="x.k8s.io"), binding("p")], False),
}


@pytest.mark.parametrize(("objects", "applies"), POLICIES.values(), ids=POLICIES.keys())
def test_policies_whose_parameters_nobody_can_write(objects: list[JSON], applies: bool) -> None:
    """In force, refusing, and of a kind that the cluster does not serve."""
    assert len(told("AdmissionPolicyParamMissing", *objects)) == applies


CGROUPS: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Node",
    "metadata": {"name": "cluster"},
    "spec": {"cgroupMode": "v1"},
}


@pytest.mark.parametrize(
    ("target", "kubernetes", "applies"),
    [
        ("4.18.9", "1.31.9", False),
        ("4.19.0", "1.32.0", True),
        ("5.0.0", "", True),
        ("4.18.0", "1.34.9", False),
        ("4.18.0", "1.35.0", True),
        ("4.18.0", "", False),
    ],
)
def test_since_when_nodes_need_cgroup_v2(target: str, kubernetes: str, applies: bool) -> None:
    """By the release, or by its Kubernetes (data/minimums.yaml)."""
    assert bool(told("CgroupV1", CGROUPS, to=context("4.17.0", target, kubernetes))) is applies


STORED = definition("a.example", version="v1alpha1")
NEWER = definition("a.example", version="v1beta1")
NAME = STORED["metadata"]["name"]
DROPPED = f"Objects of {NAME} may be stored in v1alpha1, which the definition of 5.2.0 does not have (it has v1beta1)."
BROUGHT: dict[str, tuple[tuple[Any, ...] | None, list[str]]] = {
    "nothing could be read": (
        None,
        ["Whether CRDStoredVersionDropped applies could not be told: the target's manifests could not be read."],
    ),
    "nothing": ((), []),
    "without it": ((NEWER,), [DROPPED]),
    "with it": ((STORED,), []),
    "another definition": ((definition("z.example", version="v2"),), []),
    "another kind of that name": (({**NEWER, "kind": "Alpha"},), []),
    "another kind of that name, behind": (({**NEWER, "kind": "X"},), []),
    "what is no object": (("x",), []),
    "no name": (({**NEWER, "metadata": {}},), []),
    "no versions": (({**NEWER, "spec": {"versions": "v1"}},), []),
    "one that cannot be told, and one without it": (({**NEWER, "metadata": None}, NEWER), [DROPPED]),
}


@pytest.mark.parametrize(("manifests", "said"), BROUGHT.values(), ids=BROUGHT.keys())
def test_versions_that_a_target_drops(manifests: tuple[Any, ...] | None, said: list[str]) -> None:
    """Of what the cluster has, by the definition of the same name."""
    assert told("CRDStoredVersionDropped", STORED, to=replace(context(), manifests=manifests)) == said


def test_a_cluster_without_definitions_needs_no_manifests() -> None:
    """Nothing of it could be stored."""
    assert told("CRDStoredVersionDropped", to=replace(context(), manifests=None)) == []


def pod(name: str, *, on: str = "worker-0", owner: str = "StatefulSet", grace_s: int = 30, **changes: Any) -> JSON:
    """A pod of the shop."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1"}] if owner else []
    metadata = {"name": name, "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": owners}
    spec = {"nodeName": on, "terminationGracePeriodSeconds": grace_s}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | changes.pop("metadata", {}),
        "spec": spec,
        "status": {"phase": "Running", **changes},
    }


GOING = {"metadata": {"deletionTimestamp": "2026-01-14T09:59:59Z"}}
TOGETHER: dict[str, tuple[list[JSON], bool]] = {
    "two on one node": ([pod("a"), pod("b")], True),
    "two on two nodes": ([pod("a"), pod("b", on="worker-1")], False),
    "one": ([pod("a")], False),
    "a third that ended elsewhere": ([pod("a"), pod("b"), pod("c", on="worker-1", phase="Failed")], True),
    "a third that succeeded elsewhere": ([pod("a"), pod("b"), pod("c", on="worker-1", phase="Succeeded")], True),
    "a third that ends elsewhere": ([pod("a"), pod("b"), pod("c", on="worker-1", **GOING)], True),
    "a third that has no node yet": ([pod("c", on=""), pod("a"), pod("b")], False),
    "of a DaemonSet": ([pod("a", owner="DaemonSet"), pod("b", owner="DaemonSet")], False),
    "of nobody, and two on one node": ([pod("0", owner=""), pod("a"), pod("b")], True),
    "of a DaemonSet, and two on one node": ([pod("0", owner="DaemonSet"), pod("a"), pod("b")], True),
}


@pytest.mark.parametrize(("pods", "applies"), TOGETHER.values(), ids=TOGETHER.keys())
def test_workloads_on_one_node(pods: list[JSON], applies: bool) -> None:
    """By the pods that run, or will; where they are all on one, a drain takes all."""
    assert len(told("SpreadOnOneNode", *pods)) == applies


ONE_NODE: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Infrastructure",
    "metadata": {"name": "cluster"},
    "status": {"controlPlaneTopology": "SingleReplica", "infrastructureTopology": "SingleReplica"},
}
DRAINS: dict[str, list[JSON]] = {
    "SpreadOnOneNode": [pod("a"), pod("b")],
    "LongTerminationGrace": [pod("a", grace_s=3601)],
    "UnmanagedPods": [pod("a", owner="")],
}


@pytest.mark.parametrize("name", DRAINS)
def test_one_node_alone_is_not_drained(name: str) -> None:
    """So nothing that a drain would do is told."""
    assert len(told(name, *DRAINS[name])) == 1
    assert told(name, ONE_NODE, *DRAINS[name]) == []


@pytest.mark.parametrize(("grace_s", "applies"), [(3600, False), (3601, True)])
def test_how_long_a_pod_may_take_to_end(grace_s: int, applies: bool) -> None:
    """As long as a drain waits."""
    assert bool(told("LongTerminationGrace", pod("a", grace_s=grace_s))) is applies


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(pod("a", owner="", on=""), id="it has no node"),
        pytest.param(pod("a", owner="", phase="Succeeded"), id="it has ended"),
        pytest.param(pod("a", owner="", **GOING), id="it ends"),
        pytest.param(pod("a"), id="it has an owner"),
        pytest.param(pod("a", owner="", metadata={"namespace": "openshift-etcd"}), id="it is the platform's"),
    ],
)
def test_a_pod_that_nobody_loses(one: JSON) -> None:
    """No drain takes it, or somebody brings it back."""
    assert told("UnmanagedPods", one) == []


CERTIFICATE = BY_NAME["CertificateAuthorityExpires"].example.partition("ca-bundle.crt: |\n")[2].replace("    ", "")
PROXY: JSON = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Proxy",
    "metadata": {"name": "cluster"},
    "spec": {"trustedCA": {"name": "trust"}},
}
TRUST = "The cluster trusts its proxy by ConfigMap openshift-config/trust, which "


def bundle(text: str, name: str = "trust") -> JSON:
    """The ConfigMap that the proxy names."""
    return config_map(name, CONFIG, **{"ca-bundle.crt": text})


# The certificate of the example ends with 2026-01-15.
AT_ITS_END = NOW.replace(day=16, hour=0)
BUNDLES: dict[str, tuple[list[JSON], Context, list[str]]] = {
    "it is not there": ([PROXY], context(), [f"{TRUST}is not there."]),
    "others are there": (
        [PROXY, bundle(CERTIFICATE, "a"), bundle(CERTIFICATE, "z")],
        context(),
        [f"{TRUST}is not there."],
    ),
    "it is valid": ([PROXY, bundle(CERTIFICATE)], context(), []),
    "it has no certificate": ([PROXY, bundle("")], context(), [f"{TRUST}has no certificate in ca-bundle.crt."]),
    "it ends now": (
        [PROXY, bundle(CERTIFICATE)],
        replace(context(), now=AT_ITS_END),
        [f"{TRUST}has no certificate that is valid: the last ended at 2026-01-16T00:00:00Z."],
    ),
    "it is valid for a moment": (
        [PROXY, bundle(CERTIFICATE)],
        replace(context(), now=AT_ITS_END.replace(day=15, hour=23)),
        [],
    ),
    "no authority is named": ([{**PROXY, "spec": {}}], context(), []),
    "no authority is named, and another": (
        [{**PROXY, "spec": {}, "metadata": {"name": "a"}}, PROXY],
        context(),
        [f"{TRUST}is not there."],
    ),
}


@pytest.mark.parametrize(("objects", "to", "said"), BUNDLES.values(), ids=BUNDLES.keys())
def test_authorities_of_a_proxy(objects: list[JSON], to: Context, said: list[str]) -> None:
    """At least one certificate, and at least one that is valid."""
    assert told("ProxyTrustBroken", *objects, to=to) == said


def test_a_bundle_that_cannot_be_read_is_told() -> None:
    """And one that may only not be in the list is not taken for missing."""
    (broken,) = told("ProxyTrustBroken", PROXY, bundle("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"))
    assert broken.startswith(f"{TRUST}has a ca-bundle.crt that cannot be read: ")
    check: Check = BY_NAME["ProxyTrustBroken"]
    seen = snapshot_of(check.reads, [PROXY])
    cut = {read: ("the rest was cut off",) for read in check.reads if read.kind == "ConfigMap"}
    outcome = run_check(check, replace(seen, incomplete=cut), context())
    assert outcome.result == "Unknown"
    assert "the rest was cut off" in outcome.findings[-1].message


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
    (found,) = told("RemovedAPIRequested", count)
    assert found.endswith(said)
