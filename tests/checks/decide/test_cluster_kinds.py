"""Which checks are for which kind of cluster, and that those for Kubernetes speak of nothing of OpenShift."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import Lease
from kubekit.lang.version import Version
from runup.checks import risk_pages
from runup.checks.catalogue import CHECKS
from runup.checks.decide import kubernetes_words
from runup.checks.decide.check_page import example
from runup.checks.decide.cluster_kinds import (
    BOTH,
    KUBERNETES,
    OPENSHIFT,
    ClusterKind,
    Clusters,
    checks_for_cluster,
    clusters_by_reads,
    clusters_of,
    is_openshifts,
    reads_for_cluster,
)
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Snapshot
from runup.checks.decide.reads import Slim
from runup.checks.decide.results import Header, completed_report

# What nobody should read who has no OpenShift.
FOREIGN = re.compile(
    r"open ?shift|`oc |\boc adm|cluster ?version|cluster ?operator|machine ?config|must-gather", re.IGNORECASE
)
# The API group of OLM's newer objects is not OpenShift's, though it ends like a word of its.
ALLOWED = re.compile(r"olm\.operatorframework\.io")
NODES = Resource(group="", version="v1", kind="Node", plural="nodes", namespaced=False)
POOLS = Resource(
    group="machineconfiguration.openshift.io",
    version="v1",
    kind="MachineConfigPool",
    plural="machineconfigpools",
    namespaced=False,
)
VERSIONS = Resource(group="operators.coreos.com", version="v1", kind="X", plural="xs", namespaced=True)
PLAIN = checks_for_cluster(CHECKS, ClusterKind.KUBERNETES)
OF_KUBERNETES = sorted(check.name for check in PLAIN)


def test_every_check_is_for_some_cluster() -> None:
    """And its declaration says for which."""
    assert [check.name for check in CHECKS if not check.clusters] == []


@pytest.mark.parametrize(
    ("reads", "clusters"),
    [
        pytest.param((NODES,), BOTH, id="what every cluster has"),
        pytest.param((), BOTH, id="nothing"),
        pytest.param((NODES, POOLS), OPENSHIFT, id="a kind of OpenShift, too"),
        pytest.param((VERSIONS,), OPENSHIFT, id="a kind of OLM"),
    ],
)
def test_the_default_is_what_it_reads(reads: tuple[Resource, ...], clusters: Clusters) -> None:
    """A check whose kinds do not exist on Kubernetes does not run there."""
    assert clusters_by_reads(reads) == clusters
    check = Check(name="Mine", component="mine", reads=reads, run=lambda _snapshot, _context: ())
    assert clusters_of(check) == clusters
    assert clusters_of(replace(check, clusters=KUBERNETES)) == KUBERNETES


def test_kinds_of_openshift_are_not_asked_for_elsewhere() -> None:
    """Requests for these kinds would return 404 and be reported as missing kinds."""
    assert reads_for_cluster((NODES, POOLS, NODES), ClusterKind.KUBERNETES) == (NODES,)
    assert reads_for_cluster((NODES, POOLS, NODES), ClusterKind.OPENSHIFT) == (NODES, POOLS)


def test_openshift_has_leases_but_no_settings_in_kube_system() -> None:
    """kube-controller-manager's lease is there on every cluster; kubeadm's ConfigMaps and static pods are not."""
    leases, settings = (
        Slim(group=group, version="v1", kind=kind, plural=plural, namespaced=True, type=kept, namespace="kube-system")
        for group, kind, plural, kept in (
            ("coordination.k8s.io", "Lease", "leases", Lease),
            ("", "ConfigMap", "configmaps", ConfigMap),
        )
    )
    assert reads_for_cluster((leases, settings), ClusterKind.OPENSHIFT) == (leases,)
    assert reads_for_cluster((leases, settings), ClusterKind.KUBERNETES) == (leases, settings)


def foreign(text: str) -> list[str]:
    """The lines of a text that speak of what only OpenShift has."""
    return [line for line in text.splitlines() if FOREIGN.search(ALLOWED.sub("", line))]


@pytest.mark.parametrize("name", [check.name for check in PLAIN if check.example])
def test_findings_and_remedies_are_in_kubernetes_words(name: str) -> None:
    """Also of what could not be read: there is no acceptance without a ClusterVersion."""
    check = next(check for check in CHECKS if check.name == name)
    snapshot, context = example(check)
    context = replace(context, cluster=ClusterKind.KUBERNETES, source=Version("1.36.0"), target=Version("1.38.1"))
    found = run_check(check, snapshot.without(filter(is_openshifts, check.reads)), context)
    nothing = run_check(check, Snapshot(), context)
    header = Header(
        source_version="1.36.0", target_version="1.38.1", started_time=context.now, cluster_kind="Kubernetes"
    )
    for outcome in (found, nothing):
        report = completed_report(header, (outcome,), context.now)
        seen = [risk.message for risk in report.risks] + [risk.remediation for risk in report.risks]
        seen += [each.message for each in report.checks if ".openshift.io" not in each.message]
        assert [line for text in seen if ".openshift.io could" not in text for line in foreign(text)] == []
        assert "accept the risk" not in " ".join(seen)


@pytest.mark.parametrize("name", OF_KUBERNETES)
def test_pages_are_in_kubernetes_words(name: str) -> None:
    """And still say when it applies and what to do."""
    check = next(check for check in CHECKS if check.name == name)
    for risk in {check.name, check.unknown_risk} - {""}:
        page = risk_pages.find(risk)
        shown = kubernetes_words.page_for_kubernetes(page)
        assert foreign(shown) == []
        for opening in ("**Applies when**", "**Why it matters**", "**Remedy**"):
            assert (opening in shown) == (opening in page), opening


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See `oc adm top nodes` and `oc describe node a`.", "See `kubectl top nodes` and `kubectl describe node a`."),
        ("`oc get x -o yaml | oc replace -f -`", "`kubectl get x -o yaml | kubectl replace -f -`"),
        ("An image of oc get.", "An image of oc get."),
        ("See it; or accept the risk by name.", "See it; or suppress the risk by name (--suppressions)."),
    ],
)
def test_commands(text: str, shown: str) -> None:
    """Only what is quoted as a command is one."""
    assert kubernetes_words.for_kubernetes(text) == shown


@pytest.mark.parametrize(
    ("paragraph", "shown"),
    [
        pytest.param("**Applies when** it is so.", "**Applies when** it is so.", id="nothing of OpenShift"),
        pytest.param("**Source** a; openshift/b.", "**Source** a.", id="one part"),
        pytest.param("**Source** openshift/b; that too.", "", id="what follows may be about it"),
        pytest.param(
            "**Reads** `nodes` and `clusteroperators.config.openshift.io`.", "**Reads** `nodes`.", id="a kind"
        ),
        pytest.param(
            "**Reads** `pods`, `nodes` and `x.config.openshift.io`.", "**Reads** `pods` and `nodes`.", id="of three"
        ),
        pytest.param("One. The ClusterVersion says. Two.", "One. Two.", id="a sentence"),
    ],
)
def test_paragraphs(paragraph: str, shown: str) -> None:
    """Text about OpenShift alone is left out, with paragraphs that contain nothing else."""
    assert kubernetes_words.page_for_kubernetes(f"# A\n\n{paragraph}\n").strip() == f"# A\n\n{shown}".strip()
