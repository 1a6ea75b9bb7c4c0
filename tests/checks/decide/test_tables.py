"""The tables of what Kubernetes removes: no gap, nothing twice, and what is removed by nothing is said."""

from __future__ import annotations

import re

import pytest

from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.apis.shared import written_versions
from runup.checks.catalogue.nodes.runtime_version import CHECK as RUNTIME
from runup.checks.decide import removal_tables
from runup.checks.decide.check_page import messages
from tools import tables_page

NAMES = ("removed-apis", "removed-gates", "locked-gates", "removed-flags", "removed-volumes")


@pytest.mark.parametrize("name", NAMES)
def test_every_minor_version_has_a_row(name: str) -> None:
    """Also one that removes nothing: an empty row says so, a missing one would only imply it."""
    table = removal_tables.table(name)
    assert sorted(table.removed) == list(range(table.first, table.last + 1))
    assert re.fullmatch(r"20\d\d-\d\d", table.date)
    assert len(table.source) > 20
    assert not table.knows(table.last + 1)
    assert table.knows(table.last)


def test_nothing_is_removed_in_some_minor_versions() -> None:
    """1.28 and 1.30 remove no API; 1.29 removes the second beta of flow control."""
    assert [dict(removal_tables.removed_versions(minor - 1, minor)) for minor in (28, 30)] == [{}, {}]
    assert removal_tables.removed_versions(28, 29)["flowcontrol.apiserver.k8s.io", "v1beta2", "FlowSchema"] == 29


def test_no_api_is_removed_twice() -> None:
    """pluto lists flow control's first beta under 1.26 and 1.29; it went with 1.26."""
    seen = [
        (entry["group"], entry["version"], kind)
        for _, row in removal_tables.table("removed-apis").between(0, 99)
        for entry in row
        for kind in entry["kinds"]
    ]
    assert len(set(seen)) == len(seen)
    assert removal_tables.removed_versions(0, 99)["flowcontrol.apiserver.k8s.io", "v1beta1", "FlowSchema"] == 26


# Kind, group, version, and the minor version that goes without it, as the Kubernetes project says it: the deprecation
# guide, https://kubernetes.io/blog of the releases, and the methods APILifecycleRemoved of k8s.io/api.
REMOVED = (
    ("ValidatingAdmissionPolicy", "admissionregistration.k8s.io", "v1alpha1", 32),
    ("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io", "v1beta1", 34),
    ("PriorityClass", "scheduling.k8s.io", "v1alpha1", 23),
    ("IPAddress", "networking.k8s.io", "v1beta1", 37),
    ("ServiceCIDR", "networking.k8s.io", "v1beta1", 37),
    ("VolumeAttributesClass", "storage.k8s.io", "v1beta1", 37),
    ("ResourceClaim", "resource.k8s.io", "v1alpha3", 34),
    ("ResourceClaim", "resource.k8s.io", "v1beta1", 38),
    ("CronJob", "batch", "v2alpha1", 21),
    ("RuntimeClass", "node.k8s.io", "v1alpha1", 24),
    ("FlowSchema", "flowcontrol.apiserver.k8s.io", "v1beta3", 32),
    ("CustomResourceDefinition", "apiextensions.k8s.io", "v1beta1", 22),
)


@pytest.mark.parametrize(("kind", "group", "version", "minor"), REMOVED)
def test_when_a_version_goes(kind: str, group: str, version: str, minor: int) -> None:
    """Also what is only planned, and is not removed before."""
    assert removal_tables.removed_versions(minor - 1, minor)[group, version, kind] == minor
    assert (group, version, kind) not in removal_tables.removed_versions(0, minor - 1)


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        ("validatingadmissionpolicies", ("admissionregistration.k8s.io", "v1beta1", "ValidatingAdmissionPolicy")),
        ("ipaddresses", ("networking.k8s.io", "v1beta1", "IPAddress")),
        ("csistoragecapacities", ("storage.k8s.io", "v1beta1", "CSIStorageCapacity")),
        ("flowschemas", ("flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema")),
    ],
)
def test_removed_resources_are_found_by_their_plural(resource: str, kind: tuple[str, str, str]) -> None:
    """As the names of APIRequestCounts have them."""
    group, version, _ = kind
    assert removal_tables.removed_resource(resource, version, group) == removal_tables.removed_versions(0, 99)[kind]
    assert removal_tables.removed_resource(resource, "v1", group) is None


# Requests that are not stored, and what nobody but the control plane writes.
NOT_READ = frozenset(
    {"Eviction", "LeaseCandidate", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectReview"}
    | {"SelfSubjectRulesReview", "SubjectAccessReview", "TokenReview"}
)


def test_every_kind_with_a_version_that_goes_is_read() -> None:
    """Of 1.22 and later; an Ingress of the group extensions is read by its new group, an Event by the core."""
    read = {(versions[0].group, versions[0].kind) for versions in written_versions.KINDS}
    removed = {(group, kind) for (group, _, kind) in removal_tables.removed_versions(21, 99)}
    assert {kind for _, kind in removed - read} == {*NOT_READ, "Event", "Ingress"}
    assert {("", "Event"), ("networking.k8s.io", "Ingress")} <= read


def test_no_gate_is_removed_twice() -> None:
    """A gate goes once."""
    gates = [gate for _, row in removal_tables.table("removed-gates").between(0, 99) for gate in row]
    assert len(set(gates)) == len(gates)


@pytest.mark.parametrize(
    ("gate", "minor"),
    [
        ("CPUManager", 33),
        ("ElasticIndexedJob", 34),
        ("UserNamespacesPodSecurityStandards", 35),
        ("MemoryManager", 36),
        ("SidecarContainers", 37),
        ("UserNamespacesHostNetworkSupport", None),
        ("CustomCPUCFSQuotaPeriod", None),
        ("CPUCFSQuotaPeriod", None),
        ("ValidatingAdmissionPolicy", 32),
        ("EndpointSlice", 25),
    ],
)
def test_when_a_gate_goes(gate: str, minor: int | None) -> None:
    """By the changelogs of Kubernetes; those without a number are known to 1.37, or are no gate's name."""
    rows = removal_tables.table("removed-gates").removed
    assert next((number for number, row in rows.items() if gate in row), None) == minor


@pytest.mark.parametrize(
    ("gate", "minor", "value"),
    [
        ("NodeSwap", 34, "true"),
        ("GitRepoVolumeDriver", 36, "false"),
        ("MemoryManager", 32, "true"),
        ("TopologyManagerPolicyOptions", 36, "true"),
        ("APIPriorityAndFairness", 29, "true"),
        ("KMSv2", 29, "true"),
        ("ValidatingAdmissionPolicy", 30, "true"),
    ],
)
def test_when_a_gate_is_locked(gate: str, minor: int, value: str) -> None:
    """By pkg/features/kube_features.go of k8s.io/kubernetes: the first version with LockToDefault, and its default."""
    rows = removal_tables.table("locked-gates").removed
    assert [(number, of) for number, row in rows.items() for of, gates in row.items() if gate in gates] == [
        (minor, value)
    ]


@pytest.mark.parametrize(
    ("component", "flag", "minor"),
    [
        ("kubelet", "network-plugin", 24),  # CHANGELOG-1.24: dockershim
        ("kube-apiserver", "insecure-port", 24),  # CHANGELOG-1.24, #96216
        ("kube-scheduler", "policy-config-file", 23),  # CHANGELOG-1.23, #105424
        ("kube-proxy", "log-dir", 26),  # CHANGELOG-1.26, #112120
        ("cloud-controller-manager", "logtostderr", 26),
        ("kubelet", "container-runtime", 27),  # CHANGELOG-1.27, #114017
        ("kube-controller-manager", "pod-eviction-timeout", 27),  # CHANGELOG-1.27, #113710
        ("admission", "SecurityContextDeny", 30),
        ("admission", "PersistentVolumeLabel", 31),
        ("providers", "openstack", 26),  # CHANGELOG-1.26, #67782
        ("providers", "aws", 27),  # CHANGELOG-1.27, #115838
        ("controllers", "service", 37),
        ("controllers", "daemonset", None),
        ("kubelet", "v", None),
    ],
)
def test_when_a_flag_goes(component: str, flag: str, minor: int | None) -> None:
    """By the changelogs of Kubernetes."""
    rows = removal_tables.table("removed-flags").removed
    assert next((number for number, row in rows.items() if flag in row.get(component, ())), None) == minor


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_reach_the_newest_version(name: str) -> None:
    """All of them the same: what one does not know is Unknown."""
    assert removal_tables.table(name).last == 37


def test_the_tables_are_where_checks_find_them() -> None:
    """The rows of minimums and of scanners have what the checks ask of them."""
    assert messages(RUNTIME)
    assert {"get", "list", "watch"} == set(removal_tables.document("read-only-clients")["verbs"])
    assert all(row.get("user") or row.get("agent") for row in removal_tables.document("read-only-clients")["clients"])
    assert {check.name for check in CHECKS} >= {"RemovedAPIStored", "RemovedFeatureGate", "RemovedFlag"}


def test_the_page_of_the_tables_is_current() -> None:
    """It has the coverage and the age of each table: `python tools/tables_page.py`."""
    assert tables_page.PAGE.read_text() == tables_page.page()
    assert {file.stem for file in tables_page.DATA.glob("*.yaml")} == {*tables_page.CONTENT, "addons"}
