"""A check answers with its declared rights; without any one of them it, and no other check, reports the missing right.

The tests walk over all checks and all kinds that they read. Kinds that a check does not need are rows of `OPTIONAL`,
with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.checks.catalogue import examples
from tests.factories import context

from kubekit.api.scheme import Resource
from runup.api.preflight_reads_v1 import Right
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.own_rights import own_rights, rights_without_clusterversion
from runup.checks.decide import check_page, rights
from runup.checks.decide.cluster_kinds import OPENSHIFT
from runup.checks.decide.engine import CheckOutcome, run_check
from runup.checks.decide.model import DEFINITIONS, Applies, Check, Context, Snapshot
from runup.checks.decide.reads import crosses, namespace_of

MINE = {check.name: check for check in CHECKS}


def example_of(check: Check) -> tuple[Snapshot, Context]:
    """A cluster about which the check has something to say."""
    return check_page.example(check) if check.about else (examples.snapshot_for(check), context())


def lacking(resource: Resource) -> str:
    """Returns the error of a client about a kind that it may not list."""
    where = f' in namespace "{namespace_of(resource)}"' if namespace_of(resource) else ""
    return f'not allowed to list {resource.plural} in API group "{resource.group}"{where}: forbidden'


def without(snapshot: Snapshot, resource: Resource) -> Snapshot:
    """The cluster as seen by an account that has not that one right."""
    left = {read: objects for read, objects in snapshot.objects.items() if _right(read) != _right(resource)}
    lost = {read: lacking(read) for read in snapshot.objects if _right(read) == _right(resource)}
    return replace(snapshot, objects=left, unreadable={**snapshot.unreadable, **lost})


def _right(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.plural, namespace_of(resource)


def is_unknown_without(outcome: CheckOutcome, resource: Resource) -> bool:
    """Whether the outcome is that something is unknown, for want of that right."""
    return any(
        finding.applies is Applies.UNKNOWN and lacking(resource) in finding.message for finding in outcome.findings
    )


_GATE_ALONE = "a feature gate that is set there can only lift the finding"
# Of what a check reads: what it can do without on the cluster of its example, and why.
OPTIONAL: dict[tuple[str, str], str] = {
    ("EtcdMembersUnhealthy", "clusteroperators"): "asked only where the kind Etcd cannot be had",
    ("EtcdMembersUnhealthy", "etcds"): "its ClusterOperator speaks for the members then",
    ("OperatorCatalogUnreachable", "subscriptions"): "asked only where each catalog answers",
    ("PodsPinnedToNode", "poddisruptionbudgets"): "asked only about pods of which no node may run two",
    ("RemovedAPIStored", "clusteroperators"): "the newest kubelet says which Kubernetes runs",
    ("AdmissionPolicyRemovedVersion", "clusteroperators"): "the newest kubelet says which Kubernetes runs",
    ("AdmissionPolicyDeniesUpdate", "clusteroperators"): "the newest kubelet says which Kubernetes runs",
    ("AdmissionPolicyDeniesUpdate", "nodes"): "its example has no policy for nodes",
    ("AdmissionPolicyDeniesUpdate", "statefulsets"): "its example has no policy for StatefulSets",
    ("AdmissionPolicyDeniesUpdate", "pods"): "its example has no policy for pods",
    ("WebhookRemovedVersion", "clusteroperators"): "the newest kubelet says which Kubernetes runs",
    ("OperatorUpdateFirst", "catalogsources"): "asked only about an operator of which no catalog has the package",
    ("TargetRegistryRefused", "clusterversions"): "asked only about a registry that is blocked, as none in its example",
    ("TargetOnlyMirrored", "clusterversions"): "asked only where the target's image is not known",
    ("NodeHealth", "nodemaintenances"): "read only for a node that has the taint of its operator",
    ("VirtualMachineNotMigratable", "kubevirts"): "asked only about a machine that names no evictionStrategy",
    ("QuotaFull", "limitranges"): "asked only about a quota of amounts that a pod does not declare",
    ("RemovedVolumePlugin", "persistentvolumeclaims"): "asked only where a StorageClass is of a removed plug-in",
    ("RemovedVolumePlugin", "csinodes"): "asked only about a plug-in that a CSI driver replaces",
    ("NodeImageTooOld", "configmaps"): "a ConfigMap can only say that kubelets take cgroup v1",
    ("ExecNeedsCreate", "pods"): _GATE_ALONE,
    ("ExecNeedsCreate", "configmaps"): _GATE_ALONE,
    ("ExecNeedsCreate", "nodes"): _GATE_ALONE,
    ("RemovedVolumePlugin", "configmaps"): _GATE_ALONE,
    ("RemovedVolumePlugin", "nodes"): _GATE_ALONE,
    ("SELinuxMountConflict", "configmaps"): _GATE_ALONE,
    ("SELinuxMountConflict", "nodes"): _GATE_ALONE,
    ("VolumeOnNoNode", "nodes"): "asked only about a volume with a nodeAffinity",
    ("PodReferencesMissing", "network-attachment-definitions"): "asked only of templates that name one",
    ("PodReferencesMissing", "runtimeclasses"): "asked only of templates that name one",
    ("PodReferencesMissing", "serviceaccounts"): "asked only of templates that name one",
    ("PodDisruptionBudgetBlocksDrain", "pods"): "a budget is judged by its status where its pods cannot be read",
    ("RemovedAPIRequested", "clusteroperators"): "its example has no account in a namespace like the platform's",
    ("DeprecatedAPIRequested", "clusteroperators"): "its example has no account in a namespace like the platform's",
    ("AdmissionPolicyParamMissing", "namespaces"): "its example has no namespaceSelector that could spare some",
    ("AdmissionPolicyParamMissing", "pods"): "its example has no objectSelector that needs labels of pods",
    ("WebhookBlocksUpdate", "namespaces"): "its example has no namespaceSelector that could spare some",
    ("PlatformPodsCutOff", "pods"): "its example has no webhook that a Service answers",
    ("PlatformPodsCutOff", "services"): "its example has no webhook that a Service answers",
    ("WebhookBlocksUpdate", "pods"): "its example has no Service whose pods could be asked about",
    ("CRDConversionWebhookDown", "pods"): "its example has no Service whose pods could be asked about",
}


ALPHA = {"evictionrequests", "resourcepoolstatusrequests", "compositepodgroups", "podschedulingcontexts"}


def pairs() -> Iterator[tuple[str, Resource]]:
    """Every check with everything that it reads."""
    for check in CHECKS:
        for read in check.reads:
            yield check.name, read


def optional(name: str, resource: Resource) -> bool:
    """Whether the check answers without: definitions and the topology only say more, the rest is in the table."""
    if resource == DEFINITIONS:
        # Only where a kind is missing; a check that is about definitions needs them.
        return not name.startswith("CRD") and name not in ("AdmissionPolicyParamMissing", "GatewayAPIForeign")
    if name == "RollbackNotServed" and not resource.plural.startswith("mutatingadmission"):
        return True  # asked only about kinds of which a version came after the target of its example
    if name == "RemovedAPIStored" and (not crosses(resource, 31, 38) or resource.plural in ALPHA):
        return True  # asked only about kinds that may lose another than an alpha version in its example, 1.31 to 1.38
    return resource.plural == "infrastructures" or bool(OPTIONAL.get((name, resource.plural)))


@pytest.mark.parametrize("name", sorted(MINE))
def test_with_its_rights_it_answers(name: str) -> None:
    """Nothing is missing, and what it looks at is declared."""
    snapshot, given = example_of(MINE[name])
    outcome = run_check(MINE[name], snapshot, given)
    assert outcome.result in ("Applies", "Clear")
    assert "must name it" not in outcome.message


@pytest.mark.parametrize(("name", "resource"), list(pairs()), ids=lambda each: str(each))
def test_without_a_right_it_says_which(name: str, resource: Resource) -> None:
    """Unknown, with the rule that is missing; unless it can do without."""
    snapshot, given = example_of(MINE[name])
    outcome = run_check(MINE[name], without(snapshot, resource), given)
    assert is_unknown_without(outcome, resource) is not optional(name, resource)


@pytest.mark.slow
def test_a_right_that_a_check_does_not_declare_is_none_of_its_business() -> None:
    """Whatever else is taken away, it answers as before."""
    every = {read for check in CHECKS for read in check.reads}
    for check in CHECKS:
        snapshot, given = example_of(check)
        before = run_check(check, snapshot, given)
        declared = {_right(read) for read in check.reads}
        for resource in every:
            if _right(resource) not in declared:
                assert run_check(check, without(snapshot, resource), given) == before


def test_the_account_is_given_what_checks_read_and_no_more() -> None:
    """The rules are made of the reads: each is there, none is forbidden, and none comes from elsewhere."""
    given = rights_without_clusterversion()
    granted = {(right.group, right.resource, right.namespace) for right in given}
    wide = {(group, plural) for group, plural, namespace in granted if not namespace}
    for check in CHECKS:
        for read in check.reads:
            assert _right(read) in granted or (read.group, read.plural) in wide
    asked = {(read.group, read.plural) for check in CHECKS for read in check.reads}
    asked |= {("config.openshift.io", "clusterversions"), ("config.openshift.io", "featuregates")}
    asked |= {("config.openshift.io", f"image{what}mirrorsets") for what in ("digest", "tag")}
    asked |= {("operator.openshift.io", "imagecontentsourcepolicies")}
    assert {(group, plural) for group, plural, _ in granted} == asked
    assert [rights.why_not(right) for right in given if rights.why_not(right)] == []


def test_openshift_is_asked_for_no_rights_of_other_clusters() -> None:
    """ConfigMaps of kube-system are kubeadm's business; what both kinds of cluster need is the same."""
    here, anywhere = set(own_rights()), set(rights_without_clusterversion())
    assert Right("", "configmaps", "kube-system") in anywhere - here
    elsewhere = {_right(read) for check in CHECKS if OPENSHIFT.isdisjoint(check.clusters or ()) for read in check.reads}
    assert {(right.group, right.resource, right.namespace) for right in anywhere - here} <= elsewhere
    assert here <= anywhere
