"""PodDisruptionBudgets that never let a node be drained, however healthy their pods are.

A budget that allows nothing at this moment is not one of them: a pod may just be starting. The check evaluates the
demands of the spec on the pods that the budget selects, by the arithmetic of Kubernetes' disruption controller (shares
are rounded up). A drain leaves the pods of DaemonSets and of the node itself where they are (kubectl, pkg/drain), so a
budget over these alone blocks nothing. Nor does one of a virtual machine, which moves when its pod must be evicted. One
that the disruption controller has failed to compute for ten minutes allows nothing, whatever it demands. On a
single-node control plane the machine-config daemon does not drain."""

from __future__ import annotations

from kubekit.api.workloads_v1 import PodDisruptionBudget
from kubekit.rules import eviction_rules
from kubekit.rules.eviction_rules import (
    cannot_be_computed,
    desired_healthy,
    is_of_virtual_machine,
    is_share,
    rule_of_budget,
    selects,
)
from runup.api.config_v1 import Infrastructure
from runup.checks.catalogue.shared.pods import PODS, is_drained
from runup.checks.catalogue.shared.topology import control_plane
from runup.checks.catalogue.workloads.shared import budgets as pdbs
from runup.checks.writing import DOWN_PATIENCE, Applies, Context, Findings, Snapshot, count, declared, names, risk

NAME = "PodDisruptionBudgetBlocksDrain"
UNKNOWN = f"{NAME}Unknown"
_FIX = (
    "Let each allow at least one disruption (maxUnavailable: 1), run more replicas than minAvailable, or delete it for "
    "the time of the update."
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for budgets that never allow an eviction, and Unknown for those whose status does not tell."""
    budgets = [pdb for pdb in pdbs.sorted_budgets(snapshot.all(PodDisruptionBudget)) if not is_of_virtual_machine(pdb)]
    # The machine-config daemon does not drain the node of a single-node control plane.
    if not budgets or control_plane(snapshot) == "SingleReplica":
        return
    suspect = [pdb for pdb in budgets if _unknown_reason(pdb) or never_allows(pdb)]
    # Pods are looked at only where a budget gives cause: there may be hundreds of thousands.
    pods = pdbs.readable_pods_by_namespace(snapshot) if suspect else {}
    suspect = [pdb for pdb in suspect if not pdbs.all_stay(pdb, pods)]
    # The disruption controller has failed to compute these for longer than a hiccup takes.
    failing = [
        pdb
        for pdb in suspect
        if (failed := cannot_be_computed(pdb))
        and failed.last_transition_time is not None
        and context.now - failed.last_transition_time >= DOWN_PATIENCE
        and not pdb.status.disruptions_allowed
        and any(
            is_drained(pod) and selects(pdb, pdb.metadata.namespace, pod.metadata.labels)
            for pod in pods.get(pdb.metadata.namespace, ())
        )
    ]
    blocking = [pdb for pdb in suspect if never_allows(pdb) or pdb in failing]
    if blocking:
        many = len(blocking) > 1
        # A budget with its rule, or with the reason why the rule's effect is not known.
        texts = [
            _unknown_reason(pdb) or f"{rule_of_budget(pdb)} of {count(pdb.status.expected_pods, 'pod')}"
            for pdb in blocking
        ]
        listing = names([f"{pdbs.budget_name(pdb)} ({text})" for pdb, text in zip(blocking, texts, strict=True)])
        yield risk(
            NAME,
            f"{count(len(blocking), 'PodDisruptionBudget')} never {'allow' if many else 'allows'} an eviction, so the "
            f"nodes of {'their' if many else 'its'} pods cannot be drained: {listing}.",
            blocking,
            reason="NoDisruptionsAllowed",
            severity="critical",
            fix=" ".join(
                [
                    *([_FIX] if len(failing) < len(blocking) else []),
                    *([eviction_rules.FIX_NOT_COMPUTED] if failing else []),
                ]
            ),
        )
    undecided = [(pdb, why) for pdb in suspect if pdb not in failing and (why := _unknown_reason(pdb))]
    if undecided:
        yield risk(
            UNKNOWN,
            f"Whether {count(len(undecided), 'PodDisruptionBudget')} ever allows an eviction is unknown: "
            f"{names([f'{pdbs.budget_name(pdb)} ({why})' for pdb, why in undecided])}.",
            [pdb for pdb, _ in undecided],
            applies=Applies.UNKNOWN,
            reason="BudgetStatusUnknown",
            fix="See with `oc describe pdb` what keeps the disruption controller from computing their status; "
            "maxUnavailable and minAvailable are numbers, or shares such as 50%.",
        )


def never_allows(pdb: PodDisruptionBudget) -> bool:
    status = pdb.status
    if _unknown_reason(pdb) or status.disruptions_allowed or not status.expected_pods or not status.current_healthy:
        return False
    spec = pdb.spec
    return desired_healthy(spec.min_available, spec.max_unavailable, status.expected_pods) >= status.expected_pods


def _unknown_reason(pdb: PodDisruptionBudget) -> str:
    """Returns why it is not known what the budget allows, or an empty string."""
    for name, value in (("maxUnavailable", pdb.spec.max_unavailable), ("minAvailable", pdb.spec.min_available)):
        if isinstance(value, str) and not is_share(value):
            return f"{name} {value!r} is neither a number nor a share"
    return pdbs.not_computed(pdb)


CHECK = declared(
    run,
    NAME,
    "machine-config",
    reads=(PodDisruptionBudget, PODS, Infrastructure),
    by_hand=True,
    rank=120,
    severity="critical",
    clusters="both",
)
