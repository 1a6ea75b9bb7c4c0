"""Operators must be updated before the cluster, and in this order.

Applies when an operator's installed version does not allow the target's minor version, and its Subscription knows a
newer one that is not installed yet. The order follows their dependencies: an operator that owns a kind comes before one
that requires the kind. If the plan that brings the newer version says up to which minor version that version runs, so
does the finding. For an operator whose Subscription knows nothing newer it says what the other channels of its catalog
have, as the catalogs on the cluster are now; only the newest version of a channel is looked at.

Why it matters: the update of the cluster is refused until these are done, and the other order may fail.

What to do: approve the plans in this order, wait for phase Succeeded of each (`oc get csv -A`), and check again: the
next version may need another. Where nothing newer is known, change the Subscription's channel to one that is named, or
plan without the operator. An operator whose CatalogSource is gone has no update at all: bring that back first.

Accepting it means that these operators may fail on the target.

Source of the rule: operator-lifecycle-manager: Subscription `status.installedCSV` and `currentCSV`, InstallPlan
`status.bundleLookups[].properties`, `olm.maxOpenShiftVersion`; PackageManifest `status.channels[].currentCSV` and its
annotation `olm.properties`.
"""

from __future__ import annotations

from collections.abc import Sequence

from runup.api.olm_v1alpha1 import (
    CatalogSource,
    ClusterServiceVersion,
    InstallPlan,
    PackageChannel,
    PackageManifest,
    Subscription,
)
from runup.checks.catalogue.olm.shared.installed_operators import (
    PACKAGES,
    PROPERTIES,
    READS,
    BadMaximum,
    head_maximum,
    installed,
    installed_csv_of,
    max_openshift_version,
    maximum_allows,
    packages_of,
    properties_in_plans,
    target_name,
)
from runup.checks.decide.model import Context, Snapshot, Unreadable
from runup.checks.decide.wording import count, names
from runup.checks.writing import MINOR, Findings, declared, full_name, names_of, resource_of, risk, unknown

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
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: tracing, namespace: openshift-tracing}
spec: {name: tracing, channel: stable-3, source: redhat-operators}
status: {state: AtLatestKnown, installedCSV: tracing.v3.4.0, currentCSV: tracing.v3.4.0}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: tracing.v3.4.0
  namespace: openshift-tracing
  annotations: {operatorframework.io/properties: '{"properties":[{"type":"olm.maxOpenShiftVersion","value":"5.1"}]}'}
status: {phase: Succeeded}
---
apiVersion: packages.operators.coreos.com/v1
kind: PackageManifest
metadata: {name: tracing, namespace: openshift-tracing}
status:
  catalogSource: redhat-operators
  channels:
  - {name: stable-3, currentCSV: tracing.v3.4.0}
  - name: stable-4
    currentCSV: tracing.v4.0.1
    currentCSVDesc: {annotations: {olm.properties: '[{"type":"olm.maxOpenShiftVersion","value":"5.3"}]'}}
"""
Step = tuple[Subscription, ClusterServiceVersion]


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields the findings of operators that exclude the target and have an update that allows it."""
    csvs = installed(snapshot)
    subs = sorted(snapshot.all_or_none(Subscription), key=full_name)
    old = [(sub, csv) for sub in subs if (csv := installed_csv_of(csvs, sub)) and _excludes_target(csv, context)]
    # OLM names in currentCSV what it is about to install: such an update is on its way.
    steps = [(sub, csv) for sub, csv in old if sub.status.current_csv not in ("", sub.status.installed_csv)]
    if steps:
        plans = snapshot.all_or_none(InstallPlan)
        descriptions = [
            f"{number}. {_step_text(sub, csv, plans)}" for number, (sub, csv) in enumerate(_owners_first(steps), 1)
        ]
        yield risk(
            NAME,
            f"Before {target_name(context)} these operators must be updated, in this order: {'; '.join(descriptions)}.",
            [sub for sub, _ in _owners_first(steps)],
            fix="Approve these updates one after the other, each when the one before is Succeeded in `oc get csv -A`.",
        )
    yield from _catalog_findings([sub for sub, csv in old if (sub, csv) not in steps], snapshot, context)


def _catalog_findings(subs: Sequence[Subscription], snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding about operators to which nothing newer is on its way, with where they could go."""
    if not subs:
        return
    try:
        packages = snapshot.listed(PACKAGES)
        snapshot.require_all(PACKAGES)
    except Unreadable as lacking:
        subscription_names = names_of(subs)
        why = f"what the catalogs have for {subscription_names} is not known: {str(lacking).rstrip('.')}"
        yield unknown(NAME, why, subs, fix="Look there: `oc get packagemanifests -n NAMESPACE`.")
        return
    # Those whose CatalogSource is gone, so that no newer version is known.
    orphans = [sub for sub in subs if not packages_of(packages, sub)]
    try:
        if orphans:
            catalogs = {(each.metadata.namespace, each.metadata.name) for each in snapshot.all_or_none(CatalogSource)}
            snapshot.require_all(resource_of(CatalogSource))
            orphans = [
                sub
                for sub in orphans
                if not any(
                    name == sub.spec.source and sub.spec.source_namespace in ("", namespace)
                    for namespace, name in catalogs
                )
            ]
    except Unreadable as lacking:
        why = f"which catalogs there are is not known: {str(lacking).rstrip('.')}"
        yield unknown(NAME, why, subs, fix="Look there: `oc get catalogsources -A`.")
        return
    listing = "; ".join(
        f"{full_name(sub)}: "
        + (f"its catalog {sub.spec.source} is not there" if sub in orphans else _channel_choice(sub, packages, context))
        for sub in subs
    )
    is_single = len(subs) == 1
    change = (
        "Change the Subscription's channel to one that has a version for the target, and let it update first; "
        "where there is none, plan without the operator."
    )
    orphan_names = names_of(orphans)
    restore = f"Bring the CatalogSource of {orphan_names} back first: `oc get catalogsources -A`."
    yield risk(
        NAME,
        f"{count(len(subs), 'operator')} {'does' if is_single else 'do'} not run on {target_name(context)}, and "
        "no update of "
        f"{'it' if is_single else 'them'} is on its way: {listing}.",
        subs,
        fix=" ".join([restore] * bool(orphans) + [change] * (len(orphans) < len(subs))),
    )


def _channel_choice(sub: Subscription, packages: Sequence[PackageManifest], context: Context) -> str:
    """Returns which channels of the catalog lead to a version that runs on the target, in words."""
    manifests = packages_of(packages, sub)
    if not manifests:
        return f"its catalog {sub.spec.source} has no package {sub.spec.name}"
    heads = sorted(manifests[0].status.channels, key=lambda channel: (channel.name != sub.spec.channel, channel.name))
    ways = [
        way
        for head in heads
        if head.current_csv != sub.status.installed_csv and (way := _newest_in_channel(head, context))
    ]
    if not ways:
        return f"no channel of its catalog {sub.spec.source} ends with a version that runs there"
    return f"its catalog {sub.spec.source} has {names(ways)}"


def _newest_in_channel(head: PackageChannel, context: Context) -> str:
    """Returns the newest version in a channel, in words, if it may run on the target, else an empty string."""
    try:
        highest = head_maximum(head)
    except BadMaximum as bad:
        return f"{head.current_csv} in channel {head.name}, with {bad}"
    if not maximum_allows(highest, context.target):
        return ""
    until = f" (runs up to {highest[0]}.{highest[1]})" if highest else " (names no highest version)"
    return f"{head.current_csv} in channel {head.name}{until}"


def _excludes_target(csv: ClusterServiceVersion, context: Context) -> bool:
    """Returns whether the operator's own maximum excludes the target."""
    try:
        return not maximum_allows(max_openshift_version(csv.metadata.annotations.get(PROPERTIES, "")), context.target)
    except BadMaximum:
        return False  # the check OperatorMaxOpenShiftVersion reports it


def _step_text(sub: Subscription, csv: ClusterServiceVersion, plans: Sequence[InstallPlan]) -> str:
    """Returns one step in words: from which version to which, and up to which OpenShift that one runs."""
    properties = properties_in_plans(plans, sub.metadata.namespace, sub.status.current_csv)
    until = ""
    try:
        highest = max_openshift_version(properties) if properties is not None else None
        until = f", which runs up to {highest[0]}.{highest[1]}" if highest else ""
    except BadMaximum as bad:
        until = f", which has {bad}"
    return f"{full_name(sub)} from {csv.metadata.name} to {sub.status.current_csv}{until}"


def _owners_first(steps: Sequence[Step]) -> list[Step]:
    """Returns the steps, the owner of a kind before those that require it; cycles are broken by name."""
    remaining, ordered = list(steps), []
    while remaining:
        owned = {kind.name: sub for sub, csv in remaining for kind in csv.spec.customresourcedefinitions.owned}
        ready = (
            (sub, csv)
            for sub, csv in remaining
            if all(owned.get(kind.name, sub) is sub for kind in csv.spec.customresourcedefinitions.required)
        )
        step = next(ready, remaining[0])
        remaining.remove(step)
        ordered.append(step)
    return ordered


CHECK = declared(
    run,
    NAME,
    "operator-lifecycle-manager",
    reads=(*READS, Subscription, InstallPlan, CatalogSource, PACKAGES),
    rank=410,
    updates=MINOR,
)
