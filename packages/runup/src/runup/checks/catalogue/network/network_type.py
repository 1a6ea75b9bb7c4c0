"""The target no longer has the network plug-in of the cluster.

Applies when the Network's status says OpenShiftSDN (or Kuryr) and the target is 4.17 (4.15) or later.

Why it matters: the network operator refuses the update; forced, the pods have no network.

Remedy: migrate to OVN-Kubernetes first (`oc patch network.operator.openshift.io cluster ...`, live migration); `oc get
network cluster -o jsonpath='{.status.networkType}'` says OVNKubernetes then.

Accepting it is not supported.

Source of the rule: the release notes of OpenShift 4.17 (OpenShiftSDN) and 4.15 (Kuryr); CVO's readiness checks.
"""

from __future__ import annotations

from runup.api.cluster_settings_v1 import Network
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk, unknown

NAME = "NetworkTypeRemoved"
GONE_IN = {"OpenShiftSDN": (4, 17), "Kuryr": (4, 15)}
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
status: {networkType: OpenShiftSDN}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk if the target has no such network type, and Unknown if the type is not reported."""
    for network in snapshot.all_or_none(Network):
        type_ = network.status.network_type or network.spec.network_type
        if not type_:
            fix = "See `oc get network cluster -o yaml`: the network operator writes its status."
            yield unknown(NAME, "the Network does not state its type", [network], fix=fix)
        elif type_ in GONE_IN and context.target.minor_version >= GONE_IN[type_]:
            yield risk(
                NAME,
                f"The cluster's network is {type_}, which {context.target} does not have.",
                [network],
                severity="critical",
                fix="Migrate to OVN-Kubernetes first; `oc get network cluster -o yaml` shows its networkType.",
            )


CHECK = declared(run, NAME, "cluster-network-operator", reads=(Network, DEFINITIONS), rank=370, severity="critical")
