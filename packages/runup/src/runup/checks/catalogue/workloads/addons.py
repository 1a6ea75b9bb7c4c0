"""An add-on runs in a version that its project does not support on the target's Kubernetes.

Applies when pods run an image of cert-manager, Istio, Cilium, Calico, Argo CD, Karpenter, metrics-server, Kyverno,
KEDA, Gatekeeper, Strimzi or cluster-autoscaler in a version that, by the project's own table, does not support the
target, while another version does. Images in other registries and mirrors count, too. A version between two that the
table has counts as the older one, and a version older than all of them supports no later Kubernetes than the oldest
one. Each finding names the table and its date. An add-on that is merely not the newest gets no finding; a combination
that its project calls untested is reported as untested. A version that is newer than the table, and a target that is
newer than all its ranges, are Unknown. Each add-on is a separate risk.

Why it matters: a controller that uses removed API versions, or does not know new ones, stops. Depending on the add-on,
there are then no certificates, routes, nodes or pods.

Remedy: update the add-on first, to a version that has both Kubernetes versions in its range.

Accepting it is right where that version was tried with the target.

Source of the rule: the tables that the projects publish, as `data/addons.yaml` has them.
"""

from __future__ import annotations

from msgspec.structs import replace

from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.addon_images import Running, running_addons, version_number
from runup.checks.decide.removal_tables import document
from runup.checks.writing import Context, Finding, Findings, Snapshot, declared, full_name, names, risk, unknown

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


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding for each add-on whose version its project does not support on the target."""
    table = document("addons")
    addons = running_addons(snapshot.listed(PODS), table["addons"], but_from=tuple(table["managed"]))
    target = target_minor(context)
    if target is None and addons:
        yield target_unknown(NAME)
        return
    unlisted: list[str] = []
    findings_by_name: dict[str, Finding] = {}
    for addon in addons:
        finding = _evaluate_addon(addon, target or 0, unlisted)
        if finding is None:
            continue
        # An add-on may run in several versions at once, as meshes do; it is one risk.
        if first := findings_by_name.get(finding.name):
            finding = replace(
                first,
                message=f"{first.message} {finding.message}",
                severity="warning" if "warning" in (first.severity, finding.severity) else first.severity,
                resources=(*first.resources, *finding.resources),
            )
        findings_by_name[finding.name] = finding
    yield from findings_by_name.values()
    if unlisted:
        yield unknown(
            NAME,
            f"no table has it for Kubernetes 1.{target}: {'; '.join(unlisted)}",
            fix="See the project's own table of today, which may be newer.",
        )


def _evaluate_addon(addon: Running, target: int, unlisted: list[str]) -> Finding | None:
    """Returns the finding of one add-on on Kubernetes 1.`target`; adds it to `unlisted` if no table has its version."""
    row, number = addon.row, addon.number
    source = f"{row['source']}, as of {row['date']}"
    if not number:
        unlisted.append(f"{row['name']} {addon.tag or 'by digest'} (its image's tag shows no version)")
        return None
    if row.get("sameMinor"):
        if number[1] < target:
            return _addon_finding(addon, f"is meant for Kubernetes 1.{number[1]} ({source})", untested=True)
        return None
    if "least" in row:
        # A version that is too old for one Kubernetes is too old for the next ones, whose row may be missing.
        minors = {int(minor.partition(".")[2]): least for minor, least in row["least"].items()}
        at = max((minor for minor in minors if minor <= target), default=None)
        if at is not None and number < version_number(minors[at]):
            return _addon_finding(addon, f"is older than {minors[at]}, the first for Kubernetes 1.{at} ({source})")
        if at != target:
            unlisted.append(f"{row['name']} {addon.tag} ({source})")
        return None
    ranges = {
        version_number(version): (first, (*last, _NO_UPPER_BOUND)[0])
        for version, (first, *last) in row["ranges"].items()
    }
    # Releases have an order: one between two that are listed counts as the older, and one before all of them is for
    # no later Kubernetes than the first of them.
    listed = max((version for version in ranges if version <= number[:2]), default=min(ranges))
    is_newer, is_older = number[:2] > max(ranges), number[:2] < min(ranges)
    first, last = ranges[listed]
    fits = first <= target <= last
    # Beyond the table's last Kubernetes, a version that is too old for that one is too old.
    covered = min(target, max(last for _, last in ranges.values()))
    fitting_versions = sorted(version for version, (low, high) in ranges.items() if low <= covered <= high)
    if fits and not is_newer and not is_older:
        return None
    is_bad = last < covered or (target < first and not is_older)
    if is_newer or not is_bad or not fitting_versions:
        unlisted.append(f"{row['name']} {addon.tag} ({source})")
        return None
    untested = row.get("advice") == "untested"
    until = "later" if last == _NO_UPPER_BOUND else f"1.{last}"
    versions_text = names([".".join(map(str, version)) for version in fitting_versions])
    versions_text += " is" if len(fitting_versions) == 1 else " are"
    as_listed = ".".join(map(str, listed))
    counts = (
        f"is older than {as_listed}, which is" if is_older else f"is not listed and counts as {as_listed}, which is"
    )
    return _addon_finding(
        addon,
        f"{'is' if listed == number[:2] else counts} {'tested with' if untested else 'for'} Kubernetes 1.{first} to "
        f"{until}, and {versions_text} for 1.{covered} ({source})",
        untested=untested,
    )


def _addon_finding(addon: Running, relation: str, *, untested: bool = False) -> Finding:
    """Returns the finding that the add-on's version `relation`, such as "is older than v1.2"."""
    name = addon.row["name"]
    # One pod represents all of its version: an agent has one on each node.
    return risk(
        f"{NAME}-{name.replace(' ', '')}",
        f"{name} {addon.tag} {relation}.",
        [min(addon.pods, key=full_name)],
        severity="info" if untested else "warning",
        fix=f"Update {name}: {addon.row['update']}.",
        kind=PODS,
    )


CHECK = declared(run, NAME, "addons", reads=(PODS,), rank=117, clusters="Kubernetes")
