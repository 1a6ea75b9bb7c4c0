"""Operators must be updated before the cluster, and in this order.

Applies when an operator's installed version does not allow the target's minor version, and its Subscription knows a
newer one that is not installed yet. The order is that of their needs: who owns a kind comes before who requires it.
Where the plan that brings the newer version says up to which minor version that one runs, it is said, too.

Why it matters the update of the cluster is refused until these are done, and the other order may fail.

What to do approve the plans in this order, wait for phase Succeeded of each (`oc get csv -A`), and check again: the
next version may need another.

Accepting it means that these operators may fail on the target.

Source of the rule operator-lifecycle-manager: Subscription `status.installedCSV` and `currentCSV`, InstallPlan
`status.bundleLookups[].properties`, `olm.maxOpenShiftVersion`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runup.api.olm_v1alpha1 import ClusterServiceVersion, InstallPlan, Subscription
from runup.domain.checks.catalogue.declaring import MINOR, declared, named, risk
from runup.domain.checks.catalogue.olm import (
    PROPERTIES,
    READS,
    BadMaximum,
    allows,
    brought,
    installed,
    maximum,
    of_subscription,
    target_name,
)
from runup.domain.checks.catalogue.presence import all_or_none
from runup.domain.checks.model import Context, Finding, Snapshot

NAME = "OperatorUpdateFirst"
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: logging, namespace: openshift-logging}
spec: {name: logging, channel: stable-5.9, source: redhat-operators, installPlanApproval: Manual}
status: {state: UpgradePending, installedCSV: logging.v5.8.1, currentCSV: logging.v5.9.0}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: logging.v5.8.1
  namespace: openshift-logging
  annotations: {operatorframework.io/properties: '{"properties":[{"type":"olm.maxOpenShiftVersion","value":"5.0"}]}'}
status: {phase: Succeeded}
"""
Step = tuple[Subscription, ClusterServiceVersion]


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    csvs = installed(snapshot)
    subs = sorted(all_or_none(snapshot, Subscription), key=named)
    steps = [
        (sub, csv)
        for sub in subs
        if sub.status.current_csv not in ("", sub.status.installed_csv)
        and (csv := of_subscription(csvs, sub))
        and _is_too_old(csv, context)
    ]
    if not steps:
        return
    plans = all_or_none(snapshot, InstallPlan)
    told = [f"{number}. {_step(sub, csv, plans)}" for number, (sub, csv) in enumerate(_ordered(steps), 1)]
    yield risk(
        NAME,
        f"Before {target_name(context)} these operators must be updated, in this order: {'; '.join(told)}.",
        [sub for sub, _ in _ordered(steps)],
        fix="Approve these updates one after the other, each when the one before is Succeeded in `oc get csv -A`.",
    )


def _is_too_old(csv: ClusterServiceVersion, context: Context) -> bool:
    try:
        return not allows(maximum(csv.metadata.annotations.get(PROPERTIES, "")), context.target)
    except BadMaximum:
        return False  # the check of the maximum says so


def _step(sub: Subscription, csv: ClusterServiceVersion, plans: Sequence[InstallPlan]) -> str:
    properties = brought(plans, sub.metadata.namespace, sub.status.current_csv)
    until = ""
    try:
        highest = maximum(properties) if properties is not None else None
        until = f", which runs up to {highest[0]}.{highest[1]}" if highest else ""
    except BadMaximum as bad:
        until = f", which has {bad}"
    return f"{named(sub)} from {csv.metadata.name} to {sub.status.current_csv}{until}"


def _ordered(steps: Sequence[Step]) -> list[Step]:
    """Who owns a kind before who requires it; a circle is broken by name."""
    left, done = list(steps), []
    while left:
        owned = {kind.name: sub for sub, csv in left for kind in csv.spec.customresourcedefinitions.owned}
        free = next((step for step in left if not _needs(step, owned)), left[0])
        left.remove(free)
        done.append(free)
    return done


def _needs(step: Step, owned: dict[str, Subscription]) -> bool:
    sub, csv = step
    required = (owned.get(kind.name) for kind in csv.spec.customresourcedefinitions.required)
    return any(owner is not None and owner is not sub for owner in required)


CHECK = declared(
    __doc__,
    NAME,
    "operator-lifecycle-manager",
    (*READS, Subscription, InstallPlan),
    _run,
    updates=MINOR,
    example=EXAMPLE,
)
