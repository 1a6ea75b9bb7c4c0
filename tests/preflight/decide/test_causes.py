"""Which risks have one cause, in which order causes stand, and what a missing kind of objects takes away."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runup.checks import risk_pages
from runup.evaluation import missing
from runup.evaluation import missing as unsupported
from runup.report import causes
from runup.report.causes import RULES, group_by_cause
from runup.report.report import ReportedResource, ReportedRisk

CONFIG = "config.openshift.io"
SINCE = "(since 2026-01-14T08:00:00Z)."
# What the operators of the control plane say while a control plane node is not ready
# (openshift/library-go, pkg/operator/staticpod/controller/node), as a kubelet's Ready condition reads.
NOT_READY = (
    'NodeController_MasterNodesReady: NodeControllerDegraded: The master nodes not ready: node "m-1.example" not ready '
    "since 2026-01-14 08:00:00 +0000 UTC because KubeletNotReady (container runtime network not ready: "
    "NetworkReady=false reason:NetworkPluginNotReady message:No CNI configuration file in /etc/cni. Started?)"
)
UNHEALTHY = "EtcdMembers_UnhealthyMembers: EtcdMembersDegraded: 2 of 3 members are available, m-1.example is unhealthy"
# openshift/cloud-credential-operator, pkg/operator/utils; openshift/cluster-ingress-operator, route-upgradeable.
CREDENTIALS = (
    "Upgradeable annotation cloudcredential.openshift.io/upgradeable-to on "
    "cloudcredential.operator.openshift.io/cluster object needs updating before upgrade. See Manually Creating IAM "
    "documentation for instructions on preparing a cluster for upgrade."
)
ROUTES = (
    "A route in this cluster contains a configuration that isn't supported in 4.16. Please review each route's "
    "UnservableInFutureVersions status condition for more information."
)


def risk(name: str, message: str = "It is so.", severity: str = "warning", **more: Any) -> ReportedRisk:
    """A risk of a report; objects by `Kind/name`."""
    objects = tuple(
        ReportedResource(kind=kind, name=name_) for each in more.pop("about", ()) for kind, name_ in [each.split("/")]
    )
    return ReportedRisk(name=name, message=message, severity=severity, resources=objects, **more)  # type: ignore[arg-type]


def operator(name: str, what: str, why: str = "", severity: str = "warning") -> ReportedRisk:
    """A risk about a ClusterOperator."""
    text = f"Cluster operator {name} is so{f': {why}' if why else ''} {SINCE}"
    return risk(f"ClusterOperator{what}-{name}", text, severity, about=(f"ClusterOperator/{name}",))


def version(what: str, why: str, **more: Any) -> ReportedRisk:
    """A risk about ClusterVersion."""
    return risk(f"ClusterVersion{what}", f"It is so: {why} {SINCE}", about=("ClusterVersion/version",), **more)


def names(*risks: ReportedRisk) -> list[list[str]]:
    """The risks of each cause, the leading one first."""
    return [[each.name for each in cause.risks] for cause in group_by_cause(risks)]


KAS, SCHEDULER = operator("kube-apiserver", "Degraded", NOT_READY), operator("kube-scheduler", "Degraded", NOT_READY)
ETCD = risk(
    "EtcdMembersUnhealthy",
    f"Not every member of etcd is healthy: {UNHEALTHY} {SINCE}",
    "critical",
    about=("Etcd/cluster",),
)
DOWN = risk("NodeNotReady", "1 node (m-1.example) is not ready.", about=("Node/m-1.example",))
DNS = operator("dns", "Degraded", "DNSDegraded: DNS default is degraded")
UPDATING = version("Updating", "ClusterOperatorUpdating: Working towards 5.0.1, waiting on machine-config")
POOL = risk(
    "MachineConfigPoolUpdating-worker", "Machine config pool worker is updated.", about=("MachineConfigPool/worker",)
)
MCO = operator("machine-config", "Upgradeable", "PoolUpdating: One or more machine config pools are updating")

TOGETHER = {
    "operators that wait for one node": ([KAS, SCHEDULER], [[KAS.name, SCHEDULER.name]]),
    "a member of etcd on that node": ([KAS, ETCD], [[ETCD.name, KAS.name]]),
    "a node that has a risk of its own": ([KAS, ETCD, DOWN], [[DOWN.name, ETCD.name, KAS.name]]),
    "a member that is unhealthy on a node that nobody calls not ready": (
        [DNS, ETCD],
        [[ETCD.name], [DNS.name]],
    ),
    "etcd's operator says the same as its members": (
        [operator("etcd", "Degraded", UNHEALTHY), ETCD],
        [[ETCD.name, "ClusterOperatorDegraded-etcd"]],
    ),
    "etcd's operator has another reason": (
        [operator("etcd", "Degraded", "BackupController_Error: no backup"), ETCD],
        [[ETCD.name], ["ClusterOperatorDegraded-etcd"]],
    ),
    "a failure that names its operators": (
        [version("Failing", "ClusterOperatorsDegraded: Cluster operators dns, kube-apiserver are degraded"), DNS, KAS],
        [["ClusterOperatorDegraded-dns", "ClusterVersionFailing"], [KAS.name]],
    ),
    "a failure that names an operator without a risk": (
        [version("Failing", "ClusterOperatorsDegraded: Cluster operators dns, network are degraded"), DNS],
        [["ClusterOperatorDegraded-dns"], ["ClusterVersionFailing"]],
    ),
    "an update that waits for an operator": (
        [version("Updating", "Unable to apply 5.0.1: wait has exceeded 40 minutes for these operators: dns"), DNS],
        [["ClusterOperatorDegraded-dns", "ClusterVersionUpdating"]],
    ),
    "an update that fails otherwise": (
        [
            version("Updating", "Working towards 5.0.1"),
            version("Failing", "UpdatePayloadFailed: no space", severity="critical"),
        ],
        [["ClusterVersionFailing", "ClusterVersionUpdating"]],
    ),
    "an update that updates its pools": ([UPDATING, POOL, MCO], [[UPDATING.name, MCO.name, POOL.name]]),
    "pools that are updated without an update": ([POOL, MCO], [[POOL.name, MCO.name]]),
    "a pool is updated, and another operator is not upgradeable": (
        [POOL, operator("etcd", "Upgradeable", "PoolUpdating: x")],
        [["ClusterOperatorUpgradeable-etcd"], [POOL.name]],
    ),
    "a target that is too far is not offered": (
        [risk("UpdatePathNotOffered", severity="critical"), version("GiantHop", "x", severity="critical")],
        [["ClusterVersionGiantHop", "UpdatePathNotOffered"]],
    ),
    "a target that is near and not offered": ([risk("UpdatePathNotOffered")], [["UpdatePathNotOffered"]]),
    "not upgradeable for one operator": (
        [
            version("Upgradeable", "Cluster operator dns should not be upgraded between minor versions: Why: x"),
            operator("dns", "Upgradeable", "Why: x"),
        ],
        [["ClusterOperatorUpgradeable-dns", "ClusterVersionUpgradeable"]],
    ),
    "credentials that are made by hand": (
        [
            risk("CloudCredentialsNotReady"),
            operator("cloud-credential", "Upgradeable", f"MissingUpgradeableAnnotation: {CREDENTIALS}"),
            version(
                "Upgradeable",
                "Cluster operator cloud-credential should not be upgraded between minor versions: "
                f"MissingUpgradeableAnnotation: {CREDENTIALS}",
            ),
        ],
        [["CloudCredentialsNotReady", "ClusterOperatorUpgradeable-cloud-credential", "ClusterVersionUpgradeable"]],
    ),
    "credentials that are ready, while the operator has not seen it": (
        [operator("cloud-credential", "Upgradeable", f"MissingUpgradeableAnnotation: {CREDENTIALS}")],
        [["ClusterOperatorUpgradeable-cloud-credential"]],
    ),
    "routes that the next version does not serve": (
        [risk("RoutesUnservable"), risk("AdminAck-ack-4.15-route-config-not-supported-in-4.16", ROUTES)],
        [["RoutesUnservable", "AdminAck-ack-4.15-route-config-not-supported-in-4.16"]],
    ),
    "not upgradeable for two reasons, one of them without a risk": (
        [
            version(
                "Upgradeable",
                "MultipleReasons: Cluster should not be upgraded between minor versions for multiple reasons: "
                "ClusterVersionOverridesSet,PoolUpdating * Disabling ownership. * Pools.",
            ),
            version("Overrides", "x"),
        ],
        [["ClusterVersionOverrides"], ["ClusterVersionUpgradeable"]],
    ),
    "not upgradeable for two operators": (
        [
            version(
                "Upgradeable",
                "ClusterOperatorsNotUpgradeable: Multiple cluster operators should not be upgraded between minor "
                "versions: "
                "* Cluster operator dns should not be upgraded between minor versions: Why: x "
                "* Cluster operator etcd should not be upgraded between minor versions: Why: y",
            ),
            operator("dns", "Upgradeable", "Why: x"),
            operator("etcd", "Upgradeable", "Why: y"),
        ],
        [["ClusterOperatorUpgradeable-dns", "ClusterVersionUpgradeable"], ["ClusterOperatorUpgradeable-etcd"]],
    ),
    "not upgradeable for an update and a gate": (
        [
            version(
                "Upgradeable",
                "MultipleReasons: Cluster should not be upgraded between minor or major versions for multiple reasons: "
                "* An update is already in progress and the details are in the Progressing condition. "
                "* Kubernetes 1.37 removes APIs: see https://example.com/removed",
            ),
            version("Updating", "Working towards 5.0.1"),
            risk(
                "AdminAck-a",
                "Gate a is not acknowledged: Kubernetes 1.37 removes APIs: see https://example.com/removed.",
            ),
        ],
        [["AdminAck-a", "ClusterVersionUpgradeable"], ["ClusterVersionUpdating"]],
    ),
    "not upgradeable for overrides": (
        [version("Upgradeable", "ClusterVersionOverridesSet: Disabling ownership."), version("Overrides", "x")],
        [["ClusterVersionOverrides", "ClusterVersionUpgradeable"]],
    ),
    "one operator, not available and degraded": (
        [DNS, operator("dns", "NotAvailable", "DNSUnavailable: no pods", "critical")],
        [["ClusterOperatorNotAvailable-dns", "ClusterOperatorDegraded-dns"]],
    ),
    "two operators": (
        [DNS, operator("network", "Degraded", "X: y")],
        [[DNS.name], ["ClusterOperatorDegraded-network"]],
    ),
    "two risks about one budget": (
        [
            risk(
                "PodDisruptionBudgetBlocksDrain",
                severity="critical",
                about=("PodDisruptionBudget/a", "PodDisruptionBudget/b"),
            ),
            risk("PodDisruptionBudgetPodsUnready", "Pods.", about=("PodDisruptionBudget/a",)),
        ],
        [["PodDisruptionBudgetBlocksDrain", "PodDisruptionBudgetPodsUnready"]],
    ),
    "two budgets": (
        [
            risk("PodDisruptionBudgetBlocksDrain", about=("PodDisruptionBudget/a",)),
            risk("PodDisruptionBudgetPodsUnready", about=("PodDisruptionBudget/b",)),
        ],
        [["PodDisruptionBudgetBlocksDrain"], ["PodDisruptionBudgetPodsUnready"]],
    ),
    "two settings of one object of its kind": (
        [
            risk("RemovedFlag", about=("KubeAPIServer/cluster",)),
            risk("UnsupportedConfigOverrides", about=("KubeAPIServer/cluster",)),
        ],
        [["RemovedFlag"], ["UnsupportedConfigOverrides"]],
    ),
    "an old kubelet on a node with little memory": (
        [risk("KubeletSkew", about=("Node/w-0",)), risk("NodePressure", about=("Node/w-0",))],
        [["KubeletSkew"], ["NodePressure"]],
    ),
    "a node that is not ready and cordoned": (
        [risk("NodeNotReady", about=("Node/w-0",)), risk("NodeCordoned", "Nothing.", about=("Node/w-0",))],
        [["NodeCordoned", "NodeNotReady"]],
    ),
    "a pool that cannot move, and its unavailable node": (
        [
            risk("MachineConfigPoolCannotMove-worker", about=("MachineConfigPool/worker", "Node/w-0")),
            risk("NodeCordoned", "Nothing.", about=("Node/w-0", "Node/w-1")),
        ],
        [["NodeCordoned", "MachineConfigPoolCannotMove-worker"]],
    ),
    "a pool that cannot move, and another node": (
        [
            risk("MachineConfigPoolCannotMove-worker", about=("MachineConfigPool/worker", "Node/w-0")),
            risk("NodeCordoned", "Nothing.", about=("Node/w-1",)),
        ],
        [["MachineConfigPoolCannotMove-worker"], ["NodeCordoned"]],
    ),
    "risks about nothing": ([risk("A"), risk("B")], [["A"], ["B"]]),
    "a cause that the target named": ([risk("A", cause="B"), risk("B")], [["B", "A"]]),
    "a cause that nobody found": ([risk("A", cause="Z")], [["A"]]),
    "causes in a circle": ([risk("A", cause="B"), risk("B", cause="A"), risk("C", cause="B")], [["A", "B", "C"]]),
}


@pytest.mark.parametrize(("risks", "shown"), TOGETHER.values(), ids=list(TOGETHER))
def test_what_stands_together(risks: list[ReportedRisk], shown: list[list[str]]) -> None:
    """Whatever order the risks come in."""
    assert names(*risks) == shown
    assert names(*reversed(risks)) == shown


def test_a_node_that_others_call_not_ready_is_the_cause() -> None:
    """By name and with its own words; without those of a kubelet's condition that say nothing more."""
    (cause,) = group_by_cause([KAS, ETCD])
    assert (cause.node, cause.name, cause.severity) == ("m-1.example", "EtcdMembersUnhealthy", "critical")
    assert cause.words == (
        "Node m-1.example is not ready: container runtime network not ready: No CNI configuration file in /etc/cni. "
        "Started?"
    )
    # What follows from a risk that names the node does not lead, as severe as it may be.
    update = version(
        "Updating", "wait has exceeded 40 minutes for these operators: kube-apiserver", severity="critical"
    )
    (cause,) = group_by_cause([KAS, update])
    assert (cause.node, cause.name) == ("m-1.example", KAS.name)
    unsaid = NOT_READY.partition(" not ready since")[0] + " not ready, no Ready condition found in status block"
    (cause,) = group_by_cause([operator("kube-apiserver", "Degraded", unsaid)])
    assert cause.words == "Node m-1.example is not ready."


def test_when_a_risk_first_named_an_object_does_not_matter() -> None:
    """The same node is in two risks, of which one has named it for longer."""
    since = (datetime(2026, 1, day, tzinfo=UTC) for day in (14, 15))
    down, pressed = (
        ReportedRisk(name=name, message="It is so.", resources=(ReportedResource(kind="Node", name="a", since=time),))
        for name, time in zip(("NodeNotReady", "NodePressure"), since, strict=True)
    )
    assert names(down, pressed) == [["NodeNotReady", "NodePressure"]]


@pytest.mark.parametrize(
    ("why", "related"),
    [
        pytest.param("", False, id="no reason of its own"),
        pytest.param("X: no pods", False, id="the same reason"),
        pytest.param("RecentBackup: no backup", True, id="a reason of its own"),
    ],
)
def test_what_has_a_remedy_of_its_own_is_told_in_full(why: str, related: bool) -> None:
    """A risk about the same operator that only repeats the other is reported by name."""
    (cause,) = group_by_cause([operator("etcd", "NotAvailable", "X: no pods"), operator("etcd", "Upgradeable", why)])
    assert [bool(cause.related), bool(cause.follows)] == [related, not related]


def test_causes_stand_in_the_order_in_which_they_stop_an_update() -> None:
    """The request, the control plane, the nodes, the rest; then by severity; information and unknowns last."""
    refused = risk("ClusterVersionOverrides", about=("ClusterVersion/version",))
    plane = risk("CRDNotInForce", about=("CustomResourceDefinition/a",))
    grave = risk("WebhookBlocksUpdate", severity="critical", about=("ValidatingWebhookConfiguration/a",))
    drains = risk("PodDisruptionBudgetBlocksDrain", severity="critical", about=("PodDisruptionBudget/a",))
    later = risk("OperatorFailed-a", severity="critical", about=("ClusterServiceVersion/a",))
    info = risk("DeprecatedAPIRequested", severity="info", about=("ClusterVersion/version",))
    unsure = risk("NodeHealthUnknown", severity="critical", applies="Unknown")
    ordered = [refused, grave, plane, drains, later, info, unsure]
    assert names(*reversed(ordered)) == [[each.name] for each in ordered]


NAMES = ("A", "B", "ClusterOperatorDegraded-a", "ClusterOperatorUpgradeable-a", "ClusterVersionFailing", "NodeNotReady")
RISKS = st.builds(
    risk,
    st.sampled_from(NAMES),
    st.sampled_from((NOT_READY, UNHEALTHY, "Cluster operator a is degraded", "x")),
    st.sampled_from(("critical", "warning", "info")),
    about=st.lists(st.sampled_from(("Node/m-1.example", "ClusterOperator/a", "ClusterVersion/version")), max_size=2),
    applies=st.sampled_from(("True", "Unknown")),
    cause=st.sampled_from(("", *NAMES)),
)


@given(st.lists(RISKS, max_size=6, unique_by=lambda each: each.name))
def test_no_risk_is_lost_and_none_is_told_twice(risks: list[ReportedRisk]) -> None:
    """Whatever a report says about causes."""
    found = [each.name for cause in group_by_cause(risks) for each in cause.risks]
    assert sorted(found) == sorted(each.name for each in risks)
    assert names(*risks) == names(*reversed(risks))


def test_rules_are_about_risks_that_there_are() -> None:
    """A family that no check reports any more would never match."""
    known = set(risk_pages.names())
    families = {name for rule in RULES for name in rule.families} | set(unsupported.WHY)
    assert families <= known
    assert all(rule.source for rule in RULES)


def test_what_is_missing_is_told_by_kinds() -> None:
    """The kind that most risks lack first; what could be read is not missing; subjects as an update meets them."""
    pods = risk("SystemPodsFailingUnknown", applies="Unknown", lacking=("pods",))
    budgets = risk("PodDisruptionBudgetPodsUnknown", applies="Unknown", lacking=("poddisruptionbudgets.policy", "pods"))
    hooks = risk(
        "WebhookBlocksUpdateUnknown", applies="Unknown",
        lacking=("services", "validatingwebhookconfigurations.admissionregistration.k8s.io"),
    )  # fmt: skip
    said = risk("KubeletSkewUnknown", applies="Unknown", about=("Node/a",))
    found = missing.missing_objects([hooks, said, pods, budgets, DNS])
    assert found.kinds == (
        "pods", "poddisruptionbudgets.policy", "services",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    )  # fmt: skip
    assert found.subjects == ("admission", "drains")
    assert found.risks == (hooks, pods, budgets)
    assert missing.missing_objects([said, DNS]) == missing.Missing()


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        ("pods", "drains"),
        ("machines.machine.openshift.io", "nodes"),
        ("cloudcredentials.operator.openshift.io", "credentials"),
        ("kubeapiservers.operator.openshift.io", "control plane"),
        ("flowschemas.flowcontrol.apiserver.k8s.io", "APIs"),
        ("horizontalpodautoscalers.autoscaling", "APIs"),
        ("widgets.example.com", "widgets"),
    ],
)
def test_what_a_kind_is_needed_for(kind: str, subject: str) -> None:
    """By its name, else by its group; what Kubernetes has besides is read for APIs that are removed."""
    assert missing.subject(kind) == subject


@pytest.mark.parametrize(("name", "why"), [("CgroupV1", True), ("KubeletSkewUnknown", False), ("NodeCordoned", False)])
def test_what_nobody_supports(name: str, why: bool) -> None:
    """Not a risk that is unknown, and not one that somebody may live with."""
    assert bool(unsupported.why_not_acceptable(name)) is why


def test_stages_are_those_of_the_gravest_object() -> None:
    """The earliest of its objects counts; without any it stops nothing before the end."""
    both = risk("X", about=("Pod/a", "ClusterOperator/b"))
    assert [causes.stage_of(both), causes.stage_of(risk("X"))] == [causes.CONTROL_PLANE, causes.LATER]
