"""Operators must be updated before the cluster, and in this order.

Applies when an operator's installed version does not allow the target's minor version, and its Subscription knows a
newer one that is not installed yet. The order follows their dependencies: an operator that owns a kind comes before one
that requires the kind. If the plan that brings the newer version says up to which minor version that version runs, so
does the finding. For an operator whose Subscription knows nothing newer it says what the other channels of its catalog
have, as the catalogs on the cluster are now; only the newest version of a channel is looked at.

Why it matters: the update of the cluster is refused until these are done, and the other order may fail.

Remedy: approve the plans in this order, wait for phase Succeeded of each (`oc get csv -A`), and check again: the next
version may need another. If no newer version is known, change the Subscription's channel to one that the finding names,
or plan without the operator. An operator whose CatalogSource is gone has no update at all: bring that back first.

Accepting it means that these operators may fail on the target.

Source of the rule: operator-lifecycle-manager: Subscription `status.installedCSV` and `currentCSV`, InstallPlan
`status.bundleLookups[].properties`, `olm.maxOpenShiftVersion`; PackageManifest `status.channels[].currentCSV` and its
annotation `olm.properties`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kubekit.lang.text import count
from runup.api.olm_v1alpha1 import CatalogSource, ClusterServiceVersion, InstallPlan, PackageManifest, Subscription
from runup.checks.catalogue.olm.shared import installed_operators as olm
from runup.checks.decide.model import Context, Snapshot, Unreadable
from runup.checks.decide.wording import names
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
    csvs = olm.installed(snapshot)
    old: list[Step] = []
    for sub in sorted(snapshot.all_or_none(Subscription), key=full_name):
        if csv := olm.installed_csv_of(csvs, sub):
            # The check OperatorMaxOpenShiftVersion reports a maximum that cannot be read.
            with suppress(olm.BadMaximum):
                highest = olm.max_openshift_version(csv.metadata.annotations.get(olm.PROPERTIES, ""))
                if not olm.maximum_allows(highest, context.target):
                    old.append((sub, csv))
    # OLM names in currentCSV what it is about to install: such an update is on its way.
    steps = [(sub, csv) for sub, csv in old if sub.status.current_csv not in ("", sub.status.installed_csv)]
    if steps:
        plans = snapshot.all_or_none(InstallPlan)
        in_order = _owners_first(steps)
        descriptions = []
        for number, (sub, csv) in enumerate(in_order, 1):
            until = ""
            try:
                properties = olm.properties_in_plans(plans, sub.metadata.namespace, sub.status.current_csv)
                if highest := olm.max_openshift_version(properties or ""):
                    until = f", which runs up to {highest[0]}.{highest[1]}"
            except olm.BadMaximum as bad:
                until = f", which has {bad}"
            step = f"{full_name(sub)} from {csv.metadata.name} to {sub.status.current_csv}{until}"
            descriptions.append(f"{number}. {step}")
        yield risk(
            NAME,
            f"Before {olm.target_name(context)} these operators must be updated, in this order: "
            f"{'; '.join(descriptions)}.",
            [sub for sub, _ in in_order],
            fix="Approve these updates one after the other, each when the one before is Succeeded in `oc get csv -A`.",
        )
    if waiting := [sub for sub, csv in old if (sub, csv) not in steps]:
        yield from _catalog_findings(waiting, snapshot, context)


def _catalog_findings(subs: Sequence[Subscription], snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding about operators to which nothing newer is on its way, with where they could go."""
    try:
        packages = snapshot.listed(olm.PACKAGES)
        snapshot.require_all(olm.PACKAGES)
    except Unreadable as lacking:
        why = f"what the catalogs have for {names_of(subs)} is not known: {str(lacking).rstrip('.')}"
        yield unknown(NAME, why, subs, fix="Look there: `oc get packagemanifests -n NAMESPACE`.")
        return
    # Those whose CatalogSource is gone, so that no newer version is known.
    orphans = [sub for sub in subs if not olm.packages_of(packages, sub)]
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
    does, them = ("does", "it") if len(subs) == 1 else ("do", "them")
    fixes = []
    if orphans:
        fixes.append(f"Bring the CatalogSource of {names_of(orphans)} back first: `oc get catalogsources -A`.")
    if len(orphans) < len(subs):
        fixes.append(
            "Change the Subscription's channel to one that has a version for the target, and let it update first; "
            "if there is no such channel, plan without the operator."
        )
    yield risk(
        NAME,
        f"{count(len(subs), 'operator')} {does} not run on {olm.target_name(context)}, and no update of {them} is on "
        f"its way: {listing}.",
        subs,
        fix=" ".join(fixes),
    )


def _channel_choice(sub: Subscription, packages: Sequence[PackageManifest], context: Context) -> str:
    """Returns which channels of the catalog lead to a version that runs on the target, in words."""
    manifests = olm.packages_of(packages, sub)
    if not manifests:
        return f"its catalog {sub.spec.source} has no package {sub.spec.name}"
    ways = []
    for head in sorted(
        manifests[0].status.channels, key=lambda channel: (channel.name != sub.spec.channel, channel.name)
    ):
        if head.current_csv == sub.status.installed_csv:
            continue
        way = f"{head.current_csv} in channel {head.name}"
        try:
            highest = olm.head_maximum(head)
        except olm.BadMaximum as bad:
            ways.append(f"{way}, with {bad}")
            continue
        if olm.maximum_allows(highest, context.target):
            until = f"runs up to {highest[0]}.{highest[1]}" if highest else "names no highest version"
            ways.append(f"{way} ({until})")
    if not ways:
        return f"no channel of its catalog {sub.spec.source} ends with a version that runs there"
    return f"its catalog {sub.spec.source} has {names(ways)}"


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
    reads=(*olm.READS, Subscription, InstallPlan, CatalogSource, olm.PACKAGES),
    rank=410,
    updates=MINOR,
)
