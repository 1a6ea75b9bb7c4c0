"""Plans the steps of a cluster without a ClusterVersion to a minor version of Kubernetes, with the risks of each.

The control plane goes one minor version at a time; kubelets may stay behind, up to three minor versions, and are
updated when the next step of the control plane would leave them further behind, and at the end
(https://kubernetes.io/releases/version-skew-policy/). A rollback to the previous minor version starts with the nodes:
no kubelet is newer than its API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.core_v1 import Node
from kubekit.api.pod_parts import PlacedPod
from kubekit.error_types import Terminal
from kubekit.lang.version import Version
from kubekit.rules.owners import workload_of
from kubekit.rules.version_skew import allowed_skew, is_minor, version_of
from runup.checks.decide.addon_images import running_addons
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.model import Applies, Context, Snapshot, Unreadable
from runup.checks.decide.removal_tables import document
from runup.checks.decide.results import risks
from runup.report import causes
from runup.report.report import CONTROL_PLANE, MAX_LINES, NODES, Part, ReportedStep
from runup.rules.distributions import distribution_of
from runup.rules.node_groups import service_group

BACK_NODES = "replace the nodes with such of {minor}, before the control plane: a kubelet is never taken back in place"
_WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
# Names that the API server accepts. A dump may contain any text, and users type these names into a shell.
_GROUP = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def step_plans(
    snapshot: Snapshot, planned: Sequence[PlannedStep], *, is_back: bool = False
) -> tuple[ReportedStep, ...]:
    """Returns the steps without their risks. With `is_back` they lead back to the minor version before."""
    nodes = _known_nodes(snapshot)
    distribution = distribution_of(nodes)
    groups = sorted({group for node in nodes if _GROUP.fullmatch(group := service_group(node))}) or ["GROUP"]
    pauses = tuple(_addons_to_pause(snapshot))
    steps = []
    for number, (part, version) in enumerate(planned):
        of_nodes = part == NODES
        first, last = number == 0, number == len(planned) - 1
        # Distributions say how a control plane is taken back, but a kubelet never is: its node is replaced.
        text = BACK_NODES if of_nodes else distribution.back
        if not is_back:
            text = distribution.nodes if of_nodes else distribution.control_plane
        words = {"minor": f"{version.major}.{version.minor}", "patch": str(version)}
        # An add-on is paused during the whole update, or during each step of nodes.
        during_all_steps = [row["during"] == "all" for row in pauses]
        steps.append(
            ReportedStep(
                part=part,
                version=words["minor"],
                how=tuple(dict.fromkeys(text.format(group=group, **words) for group in groups))[:MAX_LINES],
                before=tuple(
                    f"Pause {row['name']}: {row['why']}. {row['before']} ({row['source']})"
                    for row, whole in zip(pauses, during_all_steps, strict=True)
                    if (first if whole else of_nodes)
                )[:MAX_LINES],
                after=tuple(
                    f"Resume {row['name']}: {row['after']}"
                    for row, whole in zip(pauses, during_all_steps, strict=True)
                    if (last if whole else of_nodes)
                )[:MAX_LINES],
                back="" if of_nodes or is_back else distribution.back,
            )
        )
    return tuple(steps)


def _known_nodes(snapshot: Snapshot) -> tuple[Node, ...]:
    try:
        return snapshot.all(Node)
    except Unreadable:
        return ()


def _addons_to_pause(snapshot: Snapshot) -> Iterator[Mapping[str, Any]]:
    """Yields the table's rows of the add-ons that run and work against an update, with their names in this cluster."""
    pods = [
        pod for objects in snapshot.objects.values() if objects and isinstance(objects[0], PlacedPod) for pod in objects
    ]
    seen_names: set[str] = set()
    for addon in running_addons(pods, document("addons")["pauses"]):
        if addon.row["name"] not in seen_names:
            seen_names.add(addon.row["name"])
            pod: PlacedPod = addon.pods[0]
            made_by = workload_of(pod.metadata.owner_references)
            name = made_by[1] if made_by and made_by[0] in _WORKLOADS else ""
            namespace = pod.metadata.namespace
            words = {
                "{namespace}": namespace if _NAME.fullmatch(namespace) else "NAMESPACE",
                "{workload}": name if _NAME.fullmatch(name) else "NAME",
                "{replicas}": str(len(addon.pods)),
            }
            filled = {key: addon.row[key] for key in ("before", "after")}
            # Not str.format: a patch in JSON has braces of its own.
            for placeholder, word in words.items():
                filled = {key: text.replace(placeholder, word) for key, text in filled.items()}
            yield {**addon.row, **filled}


# More minor versions at once than anybody goes; each is a separate evaluation.
MAX_MINORS = 20
# Risks about nodes and pods that are in the way of the control plane, not of the nodes themselves.
_BEFORE_NODES = frozenset({"AddonIncompatible", "KubeProxySkew", "KubeletSkew", "RemovedComponentSetting"})
# The reason of a finding about volumes that the control plane attaches: its attach/detach controller is
# kube-controller-manager's.
ATTACHED_BY_CONTROL_PLANE = "AttachedByControlPlane"
# Checks of the version in which the way ends, whatever the versions in between are.
_OF_THE_END = frozenset({"RollbackNotServed", "TargetSupportEnded"})
Outcomes = Sequence[CheckOutcome]
PlannedStep = tuple[Part, Version]


class UpdateOfKubernetes(msgspec.Struct, frozen=True):
    """Source and target of an update of Kubernetes."""

    source: Version
    target: Version


def update_of_kubernetes(running: str, typed_source: str, typed_target: str) -> UpdateOfKubernetes:
    """Returns the way from the version that runs, or a typed one, to the typed target, by default the next minor.

    The minor version before is a target, too: of a way back, which some services have for days.
    Raises Terminal for versions between which no update of Kubernetes leads.
    """
    source = _version(typed_source or running, "source", "--from")
    target = _version(typed_target, "target", "--to") if typed_target else Version(f"1.{source.minor + 1}.0")
    if target == source or (target.minor == source.minor and is_minor(typed_target)):
        raise Terminal(f"the cluster is at {source} already; choose a newer target with --to", reason="TargetIsCurrent")
    if target < source and source.minor - target.minor != 1:
        why = "the only way back is to the minor version before; choose that or a newer target with --to"
        raise Terminal(f"{target} is older than {source}, which the cluster runs: {why}", reason="Downgrade")
    if target.minor - source.minor > MAX_MINORS:
        far = f"{target} is more than {MAX_MINORS} minor versions away from {source}"
        raise Terminal(f"{far}; check a nearer one with --to", reason="TargetTooFar")
    return UpdateOfKubernetes(source, target)


def _version(text: str, role: str, option: str) -> Version:
    """Returns `text` as a version of Kubernetes. Raises Terminal, which names `option`, if it is not one."""
    version = version_of(text)
    if not text:
        text = f"the {role} version of Kubernetes is not known; give it with {option}, for example 1.36"
        raise Terminal(text, reason="InvalidVersion")
    if version is None:
        raise Terminal(
            f"the {role} version {text!r} is not one of Kubernetes such as 1.36; give it with {option}",
            reason="InvalidVersion",
        )
    if version.major != 1:
        raise Terminal(
            f"the {role} version {text} is not one of Kubernetes: the cluster has no ClusterVersion, so it is updated "
            f"from one minor version of Kubernetes to the next; give such a one with {option}, for example 1.36",
            reason="InvalidVersion",
        )
    return version


def hops(source: Version, target: Version) -> tuple[Version, ...]:
    """Returns the versions to which the control plane goes, one minor version after the other; the last is `target`."""
    between = [Version(f"1.{minor}.0") for minor in range(source.minor + 1, target.minor)]
    return (*between, target)


def contexts_on_the_way(context: Context) -> tuple[Context, ...]:
    """Returns the contexts of the updates to each minor version before the target's; none if it is the next one."""
    between = hops(context.source, context.target)[:-1]
    return tuple(replace(context, target=hop, target_kubernetes=str(hop)) for hop in between)


def with_findings_on_the_way(
    outcomes: Outcomes, earlier: Sequence[tuple[Context, Outcomes]]
) -> tuple[CheckOutcome, ...]:
    """Returns the outcomes of the whole way, with the findings that only a step in between has.

    A version in between may have an obstacle that the last one lacks, or of which nothing is known for the last one.
    """
    extended = []
    for outcome in outcomes:
        found = {finding.name: finding for finding in outcome.findings}
        if outcome.check.name not in _OF_THE_END:
            for _, outcomes_before in earlier:
                for before in outcomes_before:
                    if before.check.name == outcome.check.name:
                        found = {finding.name: finding for finding in before.findings} | found
        more = tuple(finding for finding in found.values() if finding.name not in _names_of(outcome))
        applies = any(finding.applies is Applies.YES for finding in more)
        result = "Applies" if applies else "Unknown" if more and outcome.result == "Clear" else outcome.result
        extended.append(replace(outcome, findings=(*outcome.findings, *more), result=result) if more else outcome)
    return tuple(extended)


def _names_of(outcome: CheckOutcome) -> frozenset[str]:
    return frozenset(finding.name for finding in outcome.findings)


def steps(
    snapshot: Snapshot, context: Context, outcomes: Outcomes, earlier: Sequence[tuple[Context, Outcomes]] = ()
) -> tuple[ReportedStep, ...]:
    """Returns the steps of the way, each with the names of the risks that it is the first to meet.

    `outcomes` are those of the whole way (`with_findings_on_the_way`), `earlier` those of each context
    `contexts_on_the_way`.
    """
    planned = tuple(_planned_steps(context, oldest_kubelet(snapshot)))
    first: dict[str, Version] = {}
    for on_way, outcomes_before in earlier:
        for risk in risks(outcomes_before):
            first.setdefault(risk.name, on_way.target)
    attached = {
        finding.name
        for outcome in outcomes
        for finding in outcome.findings
        if finding.reason == ATTACHED_BY_CONTROL_PLANE
    }
    names: dict[int, list[str]] = {number: [] for number in range(len(planned))}
    for risk in risks(outcomes):
        at_end = causes.family_of(risk.name) in _OF_THE_END
        met = context.target if at_end else first.get(risk.name, context.target)
        number = planned.index((CONTROL_PLANE, met))
        before_nodes = causes.family_of(risk.name) in _BEFORE_NODES or risk.name in attached
        if causes.stage_of(risk) == causes.NODES and not before_nodes:
            # What the first step has is there already, also for nodes that are updated before it.
            begin = 0 if all(part == NODES for part, _ in planned[:number]) else number
            number = next(at for at in range(begin, len(planned)) if planned[at][0] == NODES)
        names[number].append(risk.name)
    plans = step_plans(snapshot, planned, is_back=context.target < context.source)
    return tuple(replace(plan, risks=tuple(names[number])) for number, plan in enumerate(plans))


def oldest_kubelet(snapshot: Snapshot) -> Version | None:
    """Returns the version of the oldest kubelet, or None if no node reports one."""
    versions = [version_of(node.status.node_info.kubelet_version) for node in _known_nodes(snapshot)]
    return min((version for version in versions if version), default=None)


def _planned_steps(context: Context, kubelet: Version | None) -> Iterator[PlannedStep]:
    """Yields the steps: which part of the cluster goes to which version."""
    # On the way back the nodes go first: a kubelet must never be newer than the API server.
    if context.target < context.source:
        yield NODES, context.target
        yield CONTROL_PLANE, context.target
        return
    at = context.source
    for hop in hops(context.source, context.target):
        # The nodes are updated in between only where their kubelets would fall too far behind.
        if kubelet is not None and hop.minor - kubelet.minor > allowed_skew(kubelet.minor):
            yield NODES, at
            kubelet = at
        yield CONTROL_PLANE, hop
        at = hop
    yield NODES, context.target
