"""An add-on runs in a version that its project does not have for the target's Kubernetes.

Applies when pods run an image of cert-manager, Istio, Cilium, Calico, Argo CD, Karpenter, metrics-server or
cluster-autoscaler in a version that the project's own table ends before the target with, while it has another version
for the target. Each finding names the table and its date. An add-on that is merely not the newest is no finding; a
combination that its project calls untested is reported as untested. If the table has no version for the target at all,
or not the one that runs, it is Unknown. Each add-on is a risk of its own.

Why it matters: a controller that asks for versions of APIs that are gone, or does not know what is new, stands still:
no certificates, no routes, no nodes, and for a network no pods.

What to do: update the add-on first, to a version that has both Kubernetes versions in its range.

Accepting it is right where that version was tried with the target.

Source of the rule: the tables that the projects publish, as `data/addons.yaml` has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from runup.checks.catalogue.declaring import declared, namespaced_name, risk, unknown_finding
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.addon_images import Number, Running, running_addons, version_number
from runup.checks.decide.cluster_kinds import KUBERNETES
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.removal_tables import document
from runup.checks.decide.wording import names

NAME = "AddonIncompatible"
# An open end of a range.
_NO_UPPER_BOUND = 1000
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: metrics-server-6d94bc8694-x2b5k, namespace: kube-system}
spec:
  nodeName: worker-0
  containers: [{name: metrics-server, image: "registry.k8s.io/metrics-server/metrics-server:v0.3.7"}]
status: {phase: Running}
"""


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    """Yields a finding for each add-on whose version its project does not support on the target."""
    table = document("addons")
    addons = running_addons(snapshot.listed(PODS), table["addons"], but_from=tuple(table["managed"]))
    target = target_minor(context)
    if target is None and addons:
        fix = "Ask the publisher of the release."
        yield unknown_finding(NAME, "the target does not say which Kubernetes it ships", fix=fix)
        return
    unknown: list[str] = []
    findings_by_name: dict[str, Finding] = {}
    for addon in addons:
        for finding in _judge_addon(addon, target or 0, unknown):
            # An add-on may run in several versions at once, as meshes do; it is one risk.
            findings_by_name[finding.name] = (
                _merge_findings(findings_by_name[finding.name], finding)
                if finding.name in findings_by_name
                else finding
            )
    yield from findings_by_name.values()
    if unknown:
        yield unknown_finding(
            NAME,
            f"no table has it for Kubernetes 1.{target}: {'; '.join(unknown)}",
            fix="See the project's own table of today, which may be newer.",
        )


def _judge_addon(addon: Running, target: int, unknown: list[str]) -> Iterator[Finding]:
    """Yields the finding of one add-on; adds it to `unknown` if no table has its version."""
    row = addon.row
    if row.get("sameMinor"):
        yield from _same_minor_finding(addon, target)
    elif not addon.number:
        unknown.append(f"{row['name']} {addon.tag or 'by digest'} (its image's tag tells no version)")
    else:
        judge = _findings_by_minimum if "least" in row else _findings_by_range
        yield from judge(addon, target, unknown)


def _merge_findings(first: Finding, second: Finding) -> Finding:
    severity = "warning" if "warning" in (first.severity, second.severity) else first.severity
    message, resources = f"{first.message} {second.message}", (*first.resources, *second.resources)
    return replace(first, message=message, severity=severity, resources=resources)


def _source_text(row: Mapping[str, Any]) -> str:
    return f"{row['source']}, as of {row['date']}"


def _findings_by_minimum(addon: Running, target: int, unknown: list[str]) -> Iterator[Finding]:
    """Yields a finding if the add-on is older than the first version for Kubernetes 1.`target`.

    Adds it to `unknown` if the table has no row for that Kubernetes.
    """
    row = addon.row
    least = row["least"].get(f"1.{target}")
    if least is None:
        unknown.append(f"{row['name']} {addon.tag} ({_source_text(row)})")
    elif addon.number < version_number(least):
        yield _addon_finding(addon, f"is older than {least}, the first for Kubernetes 1.{target} ({_source_text(row)})")


def _findings_by_range(addon: Running, target: int, unknown: list[str]) -> Iterator[Finding]:
    """Yields a finding if Kubernetes 1.`target` is outside the range that the project states for the version.

    Adds it to `unknown` if the table has no row for its version, or no version for that Kubernetes.
    """
    row = addon.row
    ranges = {
        version_number(version): (first, (*last, _NO_UPPER_BOUND)[0])
        for version, (first, *last) in row["ranges"].items()
    }
    own_range = ranges.get(addon.number[:2])
    fitting_versions = sorted(version for version, (first, last) in ranges.items() if first <= target <= last)
    if own_range is not None and own_range[0] <= target <= own_range[1]:
        return
    if own_range is None or not fitting_versions:
        unknown.append(f"{row['name']} {addon.tag} ({_source_text(row)})")
        return
    is_untested = row.get("advice") == "untested"
    relation = "is tested with" if is_untested else "is for"
    last = "later" if own_range[1] == _NO_UPPER_BOUND else f"1.{own_range[1]}"
    yield _addon_finding(
        addon,
        (
            f"{relation} Kubernetes 1.{own_range[0]} to {last}, and "
            f"{_versions_text(fitting_versions)} for 1.{target} ({_source_text(row)})"
        ),
        untested=is_untested,
    )


def _versions_text(versions: list[Number]) -> str:
    return f"{names(['.'.join(map(str, version)) for version in versions])} {'is' if len(versions) == 1 else 'are'}"


def _same_minor_finding(addon: Running, target: int) -> Iterator[Finding]:
    """Yields that an add-on is to be of the minor version of Kubernetes itself, which is for after the update."""
    if addon.number and addon.number[1] < target:
        relation = f"is meant for Kubernetes 1.{addon.number[1]} ({_source_text(addon.row)})"
        yield _addon_finding(addon, relation, untested=True)


def _addon_finding(addon: Running, relation: str, *, untested: bool = False) -> Finding:
    """Returns the finding that the add-on's version `relation`, such as "is older than v1.2"."""
    name = addon.row["name"]
    # One pod stands for all of its version: an agent has one on each node.
    return risk(
        f"{NAME}-{name.replace(' ', '')}",
        f"{name} {addon.tag} {relation}.",
        [min(addon.pods, key=namespaced_name)],
        severity="info" if untested else "warning",
        fix=f"Update {name}: {addon.row['update']}.",
        kind=PODS,
    )


CHECK = declared(__doc__, NAME, "addons", (PODS,), _run, rank=117, example=EXAMPLE, clusters=KUBERNETES)
