"""Writes the pages of the built-in checks: `python tools/check_pages.py`. A test compares them with the checks.

A check with a docstring for users has a page of its own. All risks of checks without a result share one page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.model import Check

FOLDER = Path(__file__).parents[1] / "docs" / "reference" / "checks"
UNKNOWN = "unknown.md"
GENERAL = """# Checks without a result

The check has no result, so the problem that it looks for may exist. runup never reports such a check as passed.

**Applies when** the check cannot read what it needs: an API is missing, a permission is missing, an object is
incomplete or cannot be decoded, or the check failed or took too long. The message of the risk names the cause. The
status of the risk is always Unknown.

**Why it matters** an update that starts without this result can run into the problem that the check looks for.

**Remedy** grant the access, or fix the object, that the message names. Then rerun the preflight; the operator
reruns it without a request.

**Accepting it** lets the update start without this result.

## The risks

A report names the check that has no result by one of these risks.
"""
# What helps with one check in particular. Risks that no check of the catalogue has are listed with their whole text.
HINTS = {
    "ClusterVersionHealthUnknown": "Check with `oc get clusterversion version -o yaml` that the cluster-version "
    "operator runs and updates the status.",
    "EtcdMembersUnhealthyUnknown": "To query etcd directly, run "
    "`oc -n openshift-etcd rsh -c etcdctl POD etcdctl endpoint health`.",
    "KubeletSkewUnknown": "Check with `oc get node NAME -o yaml` which version the kubelet reports, and that it runs. "
    "If the release does not declare its Kubernetes version, ask its publisher.",
    "NodeHealthUnknown": "A node that never reported whether it is ready is also unknown.",
    "PodDisruptionBudgetBlocksDrainUnknown": "Check with `oc describe pdb` why the disruption controller cannot "
    "compute the status. `maxUnavailable` and `minAvailable` must be numbers or percentages such as 50%.",
    "TargetSupportEndedUnknown": "The cluster's distribution is unknown without nodes. If the support calendar in "
    "runup is older than the target, look at the page that the finding names.",
}
OTHERS = {
    "AlertsUnknown": "The operator could not determine which alerts fire: the Prometheus or Thanos of its flag "
    "`--prometheus-url` has not answered for a minute. Alerts that fired in the last answer remain risks under their "
    "own names, also with status Unknown.\n\nThe message contains the address and the error. Start with "
    "`kubectl get clusteroperator monitoring` and `kubectl -n openshift-monitoring get pods`. If the cluster has no "
    "monitoring, remove `--prometheus-url` from the operator's Deployment.\n\n"
    "A preflight of a must-gather has this risk if `monitoring/prometheus/alerts.json` is missing or cannot be "
    "parsed. Otherwise alerts that fire there are risks under their own names.",
    "PreflightCheckUnknown": "A check has no result and its name cannot be used as the name of a risk. The message "
    "names the check.",
    "RemovedAPIInHelmReleaseUnknown": "Check: [RemovedAPIInHelmRelease](RemovedAPIInHelmRelease.md). Secrets or "
    "ConfigMaps cannot be listed, or the record of a release cannot be unpacked. Grant the access, or omit "
    "`--helm-releases`.",
    "RemovedAPIInManifestUnknown": "Check: [RemovedAPIInManifest](RemovedAPIInManifest.md). A file cannot be read or "
    "is an unrendered template, or the table of removed versions ends before the target and a version is alpha or "
    "beta. Render templates first (`helm template`, `kustomize build`).",
}


def pages() -> dict[str, str]:
    """Returns the text of each page by the name of its file."""
    made = {f"{check.name}.md": check_page.page(check) for check in CHECKS if check.about}
    return made | {UNKNOWN: unknown_page()}


def unknown_page() -> str:
    """Returns the page of all risks of checks without a result."""
    sections = {check.unknown_risk: _section(check) for check in CHECKS if check.unknown_risk} | OTHERS
    return GENERAL + "".join(f"\n### {name}\n\n{text}\n" for name, text in sorted(sections.items()))


def _section(check: Check) -> str:
    """Returns the text about the risk of one check."""
    reads = check_page.reads_in_words(check.reads)
    return " ".join(
        filter(None, [f"Check: [{check.name}]({check.name}.md). Reads: {reads}.", HINTS.get(check.unknown_risk)])
    )


def main() -> int:
    """Writes and names the pages that differ; names what a check lacks to become a page, which is an error."""
    for name, text in pages().items():
        path = FOLDER / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(FOLDER.parents[2]))
    lacking = [f"{check.name}: {what}" for check in CHECKS if check.about for what in check_page.problems(check)]
    print(*lacking, sep="\n", end="\n" if lacking else "")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
