"""The cluster's nodes are configured to use cgroup v1, which the target does not support.

Applies when the nodes' configuration (nodes.config.openshift.io) says cgroupMode v1 and the target is OpenShift 4.19 or
later, or its Kubernetes is 1.35 or later. The mode is configured for the cluster; a node does not report which mode it
runs.

Why it matters: the machine-config operator of 4.18 refuses the update (Upgradeable is False). The kubelet of such a
node does not start any more.

Remedy: `oc patch nodes.config.openshift.io cluster --type=merge -p '{"spec":{"cgroupMode":"v2"}}'` and wait for the
pools (`oc get mcp`); old Java and Node.js runtimes may need an update first.

Accepting it is not supported: the nodes do not start again.

Source of the rule: openshift/enhancements, `machine-config/mco-cgroupsv2-support.md`; Kubernetes KEP-5573, as the table
`data/minimums.yaml` has them.
"""

from __future__ import annotations

from runup.api.cluster_settings_v1 import ConfigNode
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.decide.removal_tables import document
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk

NAME = "CgroupV1"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Node
metadata: {name: cluster}
spec: {cgroupMode: v1}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk if the nodes are configured for cgroup v1 and the target needs v2."""
    target = context.target
    old = [config for config in snapshot.all_or_none(ConfigNode) if config.spec.cgroup_mode == "v1"]
    for config in old:
        # The first minor versions of OpenShift and of Kubernetes that run on cgroup v2 alone.
        for row in document("minimums")["cgroupV2"]:
            major, _, minor = (row.get("openshift") or row["kubernetes"]).partition(".")
            if (
                target.minor_version >= (int(major), int(minor))
                if "openshift" in row
                else (target_minor(context) or 0) >= int(minor)
            ):
                yield risk(
                    NAME,
                    f"The cluster's nodes use cgroup v1 (cgroupMode), and {target} runs on cgroup v2 alone.",
                    [config],
                    severity="critical",
                    fix="Set spec.cgroupMode of nodes.config.openshift.io cluster to v2; `oc get mcp` shows when all "
                    "have it.",
                )
                break


CHECK = declared(run, NAME, "machine-config", reads=(ConfigNode, DEFINITIONS), rank=350, severity="critical")
