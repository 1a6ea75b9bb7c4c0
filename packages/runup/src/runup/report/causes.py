"""Groups risks by what causes them, in the order in which causes stop an update (docs/decisions/0072 D38).

A risk belongs to the cause of another risk if it follows from it, or is about the same object. `RULES` has the rules
for both, each with its source. Where a target's report names the cause of a risk, that counts. Other components' words
are read only here, and only to group what is shown: no risk is dropped, renamed, accepted or evaluated by its group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from runup.report.report import ReportedResource, severity_rank

# When a cause stops an update: at the request, while the control plane is updated, when nodes are drained, or later.
REFUSED, CONTROL_PLANE, NODES, LATER = range(4)


class Groupable(Protocol):
    """A risk, as it is reported or as ClusterVersion carries it."""

    @property
    def name(self) -> str: ...
    @property
    def applies(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def resources(self) -> tuple[ReportedResource, ...]: ...
    @property
    def cause(self) -> str: ...
    @property
    def lacking(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=Groupable)


class Cause(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The risks that have one cause. `lead` is the cause's own risk, or the gravest where no risk is about the cause.

    `node` is the name of the node that is the cause without a separate risk, `message` what others say about it; both
    are empty otherwise. `related` are risks about the same object with a separate remedy, `follows` those that go
    away with the cause.
    """

    lead: R
    related: tuple[R, ...] = ()
    follows: tuple[R, ...] = ()
    node: str = ""
    message: str = ""

    @property
    def name(self) -> str:
        """The name of the cause: that of its leading risk."""
        return self.lead.name

    @property
    def risks(self) -> tuple[R, ...]:
        """The risks of the cause, the leading one first."""
        return (self.lead, *self.related, *self.follows)

    @property
    def words(self) -> str:
        """The message about the cause itself."""
        return self.message or self.lead.message

    @property
    def severity(self) -> str:
        """The highest severity of its risks."""
        return min((risk.severity for risk in self.risks), key=severity_rank)


class _Parent(NamedTuple):
    """The parent of a risk: another risk by its name, or a node that has no risk.

    `follows` is true if the risk goes away with it, false if it only is about the same object.
    """

    risk: str = ""
    node: str = ""
    follows: bool = True


_SortKey = tuple[bool, int, int, str]
# Without the time since when a risk names the object, which differs from risk to risk.
_ResourceKey = tuple[str, str, str, str]


class _AllRisks:
    """The risks to group, with the lookups that rules need.

    `broken_nodes` has the nodes that an operator's risk calls not ready, with the reason that it gives; `not_ready` the
    names of the nodes of risk NodeNotReady.
    """

    def __init__(self, risks: Sequence[Groupable]) -> None:
        self.risks = risks
        self.by_name = {risk.name: risk for risk in risks}
        # A risk may name every one of thousands of nodes: what needs a look at all of them is computed once.
        self.in_order = sorted(((_sort_key(risk), risk) for risk in risks), key=lambda keyed: keyed[0])
        self._sort_keys = {id(risk): key for key, risk in self.in_order}
        self._objects: dict[int, frozenset[_ResourceKey]] = {}
        self.broken_nodes: dict[str, str] = {}
        for risk in risks:
            if family_of(risk.name) in (*_OPERATOR_HEALTH, "EtcdMembersUnhealthy"):
                for match in _NODE.finditer(risk.message):
                    reason = _WHY.match(risk.message, match.end())
                    self.broken_nodes[match[1]] = (_RUNTIME.sub("", reason[2]) or reason[1]) if reason else ""
        self.not_ready = {
            item.name for risk in risks if risk.name == "NodeNotReady" and _does_apply(risk) for item in risk.resources
        }

    def of_family(self, *families: str) -> list[Groupable]:
        """Returns the applying risks of these families, the gravest first."""
        return [risk for _, risk in self.in_order if family_of(risk.name) in families and _does_apply(risk)]

    def sort_key(self, risk: Groupable) -> _SortKey:
        """Returns the sort key of one of the risks."""
        return self._sort_keys[id(risk)]

    def objects(self, risk: Groupable) -> frozenset[_ResourceKey]:
        """Returns the objects of one of the risks."""
        if id(risk) not in self._objects:
            keys = ((item.group, item.kind, item.namespace, item.name) for item in risk.resources)
            self._objects[id(risk)] = frozenset(keys)
        return self._objects[id(risk)]


ParentOf = Callable[[Groupable, _AllRisks], _Parent | None]


class Rule(NamedTuple):
    """A rule that finds the cause of risks of some families: `parent` returns the risk or node that one follows from.

    It returns None if the rule does not hold for the risk. `source` says why the rule is right.
    """

    families: tuple[str, ...]
    parent: ParentOf
    source: str


RULES: list[Rule] = []
"""The first rule that returns a cause counts."""


def _rule(*families: str, source: str) -> Callable[[ParentOf], ParentOf]:
    """Adds the decorated function to `RULES`."""

    def add(parent: ParentOf) -> ParentOf:
        RULES.append(Rule(families, parent, source))
        return parent

    return add


def group_by_cause(risks: Iterable[R]) -> tuple[Cause[R], ...]:
    """Returns the causes of the risks, in the order in which they stop an update; every risk belongs to one cause."""
    all_given = tuple(risks)
    all_risks = _AllRisks(all_given)
    parents = {risk.name: parent for risk in all_given if (parent := _find_parent(risk, all_risks))}
    members: dict[_Parent, list[R]] = {}
    for risk in all_given:
        members.setdefault(_find_root(risk.name, parents), []).append(risk)

    def order(cause: Cause[R]) -> tuple[bool, bool, int, int, int, str]:
        """Returns the sort key: what applies first, information last, then by when it stops the update."""
        applies, stage = any(map(_does_apply, cause.risks)), min(map(stage_of, cause.risks))
        grade = severity_rank(cause.severity)
        return not applies, cause.severity == "info", stage, grade, -len(cause.risks), cause.name

    return tuple(sorted((_build_cause(root, of, parents, all_risks) for root, of in members.items()), key=order))


def most_severe_first(causes: Iterable[Cause[R]]) -> tuple[Cause[R], ...]:
    """Returns the causes by severity; those of one severity stay in the order in which they stop an update."""
    return tuple(sorted(causes, key=lambda cause: severity_rank(cause.severity)))


def family_of(name: str) -> str:
    """Returns the name of a risk without the object: `ClusterOperatorDegraded` of `ClusterOperatorDegraded-etcd`."""
    return name.partition("-")[0]


def stage_of(risk: Groupable) -> int:
    """Returns when the risk stops an update."""
    if family_of(risk.name) in _REFUSED:
        return REFUSED
    return min((_STAGES.get(kind, LATER) for kind in {item.kind for item in risk.resources}), default=LATER)


# Risks for which the operator refuses the request itself (docs/reference/upstream.md 7.6 and 8.1).
_REFUSED = frozenset(
    {
        "AdminAck",
        "ClusterOperatorUpgradeable",
        "ClusterVersionGiantHop",
        "ClusterVersionOverrides",
        "ClusterVersionRollback",
        "ClusterVersionUpdating",
        "ClusterVersionUpgradeable",
        "FeatureSetForbidsUpdates",
        "ReleaseSignatureNotVerified",
        "UpdatePathNotOffered",
    }
)
# By the kind of object. A release's manifests are applied in the order of their run levels, the machine-config
# operator's late (level 80): nodes are drained when the control plane is updated (docs/reference/upstream.md 4).
_STAGES = {
    "APIService": CONTROL_PLANE,
    "ClusterOperator": CONTROL_PLANE,
    "ClusterVersion": CONTROL_PLANE,
    "ConfigMap": CONTROL_PLANE,
    "CustomResourceDefinition": CONTROL_PLANE,
    "Etcd": CONTROL_PLANE,
    "KubeAPIServer": CONTROL_PLANE,
    "KubeControllerManager": CONTROL_PLANE,
    "KubeScheduler": CONTROL_PLANE,
    "MutatingWebhookConfiguration": CONTROL_PLANE,
    "Network": CONTROL_PLANE,
    "Proxy": CONTROL_PLANE,
    "ValidatingAdmissionPolicy": CONTROL_PLANE,
    "ValidatingAdmissionPolicyBinding": CONTROL_PLANE,
    "ValidatingWebhookConfiguration": CONTROL_PLANE,
    "CSINode": NODES,
    "CertificateSigningRequest": NODES,
    "KubeletConfig": NODES,
    "Machine": NODES,
    "MachineConfigPool": NODES,
    "Module": NODES,
    "Namespace": NODES,
    "Node": NODES,
    "PersistentVolume": NODES,
    "Pod": NODES,
    "PodDisruptionBudget": NODES,
    "VirtualMachineInstance": NODES,
    "VolumeAttachment": NODES,
}

_NODE = re.compile(r'node "([^"]+)" not ready')
_WHY = re.compile(r" since [^()]*? because (\w+) \((.*?)\)(?=, node |[.] The master |[.]$| \(since | \w+: |$)")
# How a kubelet prints a condition of its runtime (pkg/kubelet/container, RuntimeCondition): the message says it all.
_RUNTIME = re.compile(r"\w+=false reason:\w+ message:")
_UNHEALTHY = re.compile(r"(\S+) is unhealthy")
_OPERATORS = re.compile(r"[Cc]luster operators? ([a-z0-9.-]+(?:, [a-z0-9.-]+)*) (?:is|are) ")
_WAITED_FOR = re.compile(
    r"(?:for these operators:|waiting on|waiting up to \d+ minutes on) ([a-z0-9.-]+(?:, [a-z0-9.-]+)*)"
)
_NOT_UPGRADEABLE = re.compile(r"Cluster operator (\S+) should not be upgraded")
_OWN_REASON = re.compile(r": [A-Z][A-Za-z0-9_:]+: ")
_SINCE = re.compile(r" \(since [^()]*\)\.?$")
_OPERATOR_HEALTH = ("ClusterOperatorNotAvailable", "ClusterOperatorDegraded")
# How Upgradeable=False begins where it has several reasons.
_SUMMARY = re.compile(r"for multiple reasons:|^(?:\w+: )?Multiple cluster operators should not be upgraded")
# Words of Upgradeable=False, and the risk that they are about.
_SUMMED_UP = {
    "Disabling ownership": "ClusterVersionOverrides",
    "An update is already in progress": "ClusterVersionUpdating",
    "while resource deletions are in progress": "ResourceDeletionInProgress",
}
_QUOTED = ("ClusterOperatorUpgradeable", "AdminAck")
# Why the machine-config operator is not upgradeable or degraded (pkg/operator/status.go, sync.go).
_POOL_REASONS = {
    "DegradedPool": "MachineConfigPoolDegraded",
    "RequiredPoolsFailed": "MachineConfigPoolDegraded",
    "PoolUpdating": "MachineConfigPoolUpdating",
}
# Risks about the health of a node. Others about nodes, such as an old kubelet, are problems of their own.
_NODE_HEALTH = ("NodeNotReady", "NodePressure", "NodeUninitialized", "NodeCordoned")
# There is one object of the name in any cluster, which has settings and conditions of all sorts.
_SINGLETONS = frozenset({"cluster", "version"})


@_rule(
    *_OPERATOR_HEALTH,
    "EtcdMembersUnhealthy",
    source="openshift/library-go, pkg/operator/staticpod/controller/node: the operators of the control plane are "
    "degraded while a control plane node is not ready, and quote it; cluster-etcd-operator, pkg/etcdcli: a member "
    "has its node's name",
)
def _parent_by_node(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns NodeNotReady, or a node without a separate risk, if the message names such a node."""
    node_names = [*_NODE.findall(risk.message), *_UNHEALTHY.findall(risk.message)]
    for node in node_names:
        if node in all_risks.not_ready:
            return _Parent("NodeNotReady")
    return next((_Parent(node=node) for node in node_names if node in all_risks.broken_nodes), None)


@_rule(
    *_OPERATOR_HEALTH,
    source="cluster-etcd-operator, pkg/operator/etcdmemberscontroller: EtcdMembersDegraded is part of the "
    "ClusterOperator",
)
def _parent_by_etcd_members(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the risk of unhealthy etcd members if ClusterOperator etcd is degraded because of them."""
    is_etcd = risk.name.endswith("-etcd") and "EtcdMembers" in risk.message
    return _Parent("EtcdMembersUnhealthy") if is_etcd and all_risks.of_family("EtcdMembersUnhealthy") else None


@_rule(
    "ClusterVersionFailing",
    "ClusterVersionUpdating",
    source="docs/reference/upstream.md 4.6 and 4.7: an update waits for the operators that Failing names",
)
def _parent_by_named_operators(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the gravest risk of the operators that the message names, if each of them has one."""
    lists = (*_OPERATORS.findall(risk.message), *_WAITED_FOR.findall(risk.message))
    first_risks: dict[str, Groupable] = {}
    for each in all_risks.of_family(*_OPERATOR_HEALTH):
        first_risks.setdefault(each.name.partition("-")[2], each)
    named = [first_risks.get(name) for names in lists for name in names.split(", ")]
    known = [each for each in named if each is not None]
    return _Parent(min(known, key=_sort_key).name) if known and len(known) == len(named) else None


def _parent_if_applying(family: str) -> ParentOf:
    """Returns the rule by which a risk follows from the risk of `family`, if that applies."""
    return lambda _risk, all_risks: _Parent(family) if all_risks.of_family(family) else None


_rule(
    "ClusterVersionUpdating",
    source="docs/reference/upstream.md 4.7: a failing update does not continue until the failure is over",
)(_parent_if_applying("ClusterVersionFailing"))
_rule(
    "UpdatePathNotOffered",
    source="docs/reference/upstream.md 8.1: an update across minor versions goes by way of each, so that none is "
    "offered",
)(_parent_if_applying("ClusterVersionGiantHop"))


@_rule(
    "ClusterVersionUpgradeable",
    source="docs/reference/upstream.md 6.1 and 7.6; cluster-version-operator, pkg/cvo/upgradeable.go: Upgradeable "
    "sums up operators, overrides, gates and the update in progress",
)
def _parent_by_upgradeable(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the gravest of the risks that Upgradeable=False sums up, if each of them is there."""
    summed_up: list[Groupable] = []
    for sentence in _text_after_colon(risk.message).split(" * "):
        if _SUMMARY.search(sentence):
            continue
        family = next((name for phrase, name in _SUMMED_UP.items() if phrase in sentence), "")
        # An operator's or a gate's own message is repeated as it is.
        text = sentence.partition(": ")[2] or sentence
        quoted = (each for each in all_risks.of_family(*_QUOTED) if text and text in each.message)
        if match := _NOT_UPGRADEABLE.search(sentence):
            reason = all_risks.by_name.get(f"ClusterOperatorUpgradeable-{match[1]}")
        else:
            reason = next(iter(all_risks.of_family(family)) if family else quoted, None)
        if reason is None:
            return None
        summed_up.append(reason)
    return _Parent(min(summed_up, key=_sort_key).name) if summed_up else None


# What an operator or a gate says about objects that a check finds by itself, and the risk of that check.
_OF_CHECKS = {
    "cloudcredential.openshift.io/upgradeable-to": "CloudCredentialsNotReady",
    "UnservableInFutureVersions": "RoutesUnservable",
}


@_rule(
    *_QUOTED,
    source="cloud-credential-operator, pkg/operator/status (MissingUpgradeableAnnotation); cluster-ingress-operator, "
    "pkg/operator/controller/route-upgradeable: the gate ack-4.15-route-config-not-supported-in-4.16",
)
def _parent_by_check(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the check's risk about the objects for which an operator or a gate forbids the update."""
    checks = (name for phrase, name in _OF_CHECKS.items() if phrase in risk.message)
    return next((_Parent(name) for name in checks if all_risks.of_family(name)), None)


@_rule(
    "ClusterOperatorUpgradeable",
    *_OPERATOR_HEALTH,
    source="machine-config-operator, pkg/operator/status.go and sync.go: reasons PoolUpdating, DegradedPool, "
    "RequiredPoolsFailed",
)
def _parent_by_pool_reason(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the gravest risk of the pools that ClusterOperator machine-config names as its reason."""
    wanted_pools = next((pools for phrase, pools in _POOL_REASONS.items() if phrase in risk.message), "")
    pools = all_risks.of_family(wanted_pools) if wanted_pools and risk.name.endswith("-machine-config") else []
    return _Parent(pools[0].name) if pools else None


@_rule(
    "MachineConfigPoolUpdating",
    source="docs/reference/upstream.md 4.7: the operator waits for machine-config, which updates its pools to the "
    "release",
)
def _parent_by_unfinished_update(_risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the unfinished update if it waits for the machine-config operator, which then updates its pools."""
    for update in all_risks.of_family("ClusterVersionUpdating"):
        if any("machine-config" in names.split(", ") for names in _WAITED_FOR.findall(update.message)):
            return _Parent(update.name)
    return None


@_rule(
    "ClusterOperatorUpgradeable",
    *_OPERATOR_HEALTH,
    source="openshift/api, config/v1: the conditions of a ClusterOperator are about one operator",
)
def _parent_by_same_operator(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the worse risk about the same operator: not available, then degraded, then not upgradeable."""
    name = risk.name.partition("-")[2]
    for worse in _OPERATOR_HEALTH:
        if worse == family_of(risk.name):
            break
        if (worse_risk := all_risks.by_name.get(f"{worse}-{name}")) is not None and _does_apply(worse_risk):
            return _Parent(worse_risk.name, follows=_adds_no_reason(risk, worse_risk))
    return None


@_rule(
    "MachineConfigPoolCannotMove",
    source="machine-config-operator, pkg/controller/node: nodes that are cordoned or not ready are unavailable",
)
def _parent_by_unavailable_nodes(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the gravest risk about the health of one of the nodes that use up the pool's maxUnavailable."""
    nodes = {item for item in risk.resources if item.kind == "Node"}
    about = (each for each in all_risks.of_family(*_NODE_HEALTH) if nodes.intersection(each.resources))
    return next((_Parent(each.name) for each in about), None)


@_rule(
    "NodeCordoned",
    source="machine-config-operator, pkg/controller/drain: it cordons the nodes of a pool that it updates",
)
def _parent_by_pool_update(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the gravest risk of a pool that updates or is degraded, if its update cordoned the node."""
    pools = all_risks.of_family("MachineConfigPoolDegraded", "MachineConfigPoolUpdating")
    # The check's message says who cordoned the node; one that somebody cordoned by hand stays cordoned.
    by_hand = "nothing can be scheduled there" in risk.message
    return _Parent(pools[0].name) if pools and "machine config pool" in risk.message and not by_hand else None


@_rule(source="docs/decisions/0072 D38: risks about one object are grouped")
def _parent_by_same_objects(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the gravest risk about all objects of this one."""
    applies = _does_apply(risk)
    # Risks that apply to the only object of its kind have no common cause. Those of one ClusterOperator are ordered by
    # `_parent_by_same_operator`.
    ordered_elsewhere = any(item.name in _SINGLETONS or item.kind == "ClusterOperator" for item in risk.resources)
    if not risk.resources or (applies and ordered_elsewhere):
        return None
    of_nodes = applies and any(item.kind == "Node" for item in risk.resources)
    objects, sort_key = all_risks.objects(risk), all_risks.sort_key(risk)
    for other_key, other in all_risks.in_order:
        if other_key >= sort_key:
            return None
        # The number of objects is compared first, and rules out most.
        is_about_all = len(objects) <= len(other.resources) and objects <= all_risks.objects(other)
        if other.applies != risk.applies or not is_about_all:
            continue
        # Unknown risks have one cause, unless one of them is unknown because objects are missing. Risks about nodes
        # have one cause if both are about node health.
        lacks = not applies and (risk.lacking or other.lacking)
        if not lacks and (not of_nodes or (risk.name in _NODE_HEALTH and other.name in _NODE_HEALTH)):
            return _Parent(other.name, follows=_adds_no_reason(risk, other))
    return None


def _find_parent(risk: Groupable, all_risks: _AllRisks) -> _Parent | None:
    """Returns the risk or node that the risk follows from or stands next to, None if it is a cause itself."""
    if risk.cause in all_risks.by_name and risk.cause != risk.name:
        return _Parent(risk.cause)
    if not _does_apply(risk):
        return _parent_by_same_objects(risk, all_risks) if not risk.lacking else None
    for rule in RULES:
        if rule.families and family_of(risk.name) not in rule.families:
            continue
        parent = rule.parent(risk, all_risks)
        if parent is not None and parent.risk != risk.name:
            return parent
    return None


def _find_root(name: str, parents: Mapping[str, _Parent]) -> _Parent:
    """Returns the cause at the end of the chain; a circle, which a report may name, ends at its first name by order."""
    passed = [name]
    while (parent := parents.get(passed[-1])) is not None:
        if parent.node:
            return _Parent(node=parent.node)
        if parent.risk in passed:
            return _Parent(min(passed[passed.index(parent.risk) :]))
        passed.append(parent.risk)
    return _Parent(passed[-1])


def _build_cause(root: _Parent, members: Sequence[R], parents: Mapping[str, _Parent], all_risks: _AllRisks) -> Cause[R]:
    """Returns the cause of `members`: the leading risk, the risks next to it, and the risks that follow from it."""
    ordered = sorted(members, key=_sort_key)
    # Of a node without a risk, a risk that names the node leads, rather than one that follows from such a risk.
    leads = (risk for risk in ordered if (parents.get(risk.name) == root if root.node else risk.name == root.risk))
    lead = next(leads, ordered[0])
    following = [risk for risk in ordered if risk is not lead]
    related = tuple(risk for risk in following if risk.name in parents and not parents[risk.name].follows)
    follows = tuple(risk for risk in following if risk not in related)
    if not root.node:
        return Cause(lead=lead, related=related, follows=follows)
    reason = all_risks.broken_nodes[root.node]
    message = f"Node {root.node} is not ready{f': {reason}' if reason else ''}"
    message += "" if message.endswith(("?", "!", ".")) else "."
    return Cause(lead=lead, related=related, follows=follows, node=root.node, message=message)


def _adds_no_reason(risk: Groupable, other: Groupable) -> bool:
    """Returns whether the risk gives no reason of its own, or the same reason as `other`."""
    reason_match = _OWN_REASON.search(_SINCE.sub("", risk.message))
    of_operators = risk.name.startswith("ClusterOperator")
    same_message = _text_after_colon(risk.message) == _text_after_colon(other.message)
    return (of_operators and reason_match is None) or same_message or not _does_apply(risk)


def _text_after_colon(message: str) -> str:
    return _SINCE.sub("", message).partition(": ")[2]


def _does_apply(risk: Groupable) -> bool:
    return risk.applies == "True"


def _sort_key(risk: Groupable) -> _SortKey:
    return not _does_apply(risk), severity_rank(risk.severity), stage_of(risk), risk.name
