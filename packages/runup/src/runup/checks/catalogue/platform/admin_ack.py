"""The release requires an acknowledgement by an administrator before the next minor version, and it is missing.

Applies when the cluster's ConfigMap `admin-gates`, or the target's own, has a gate for the minor version that the
cluster runs or one that the update passes, and `admin-acks` does not acknowledge it. Each gate is a separate risk,
under the name that the cluster-version operator gives it. A gate without a text, or with an invalid name, applies. A
cluster without the ConfigMap `admin-gates` is Unknown, because the operator then refuses the update. Where the
target's manifests are not known, only the gates of the cluster are checked, as the operator does. A clear result then
does not cover gates of the target or of a release in between.

Why it matters: the update to the next minor version is refused, and the changes that the gate describes (usually
removed APIs) may break applications.

Remedy: follow the gate's text, then acknowledge it: `oc -n openshift-config patch cm admin-acks --type=merge -p
'{"data":{"GATE":"true"}}'`.

Accepting it does not acknowledge the gate: the operator refuses the update all the same.

Source of the rule: cluster-version-operator, `pkg/risk/adminack`.
"""

from __future__ import annotations

from runup.checks.catalogue.shared.certificate_bundles import CONFIG, MANAGED
from runup.checks.writing import MINOR, Context, Findings, Snapshot, declared, risk, unknown
from runup.rules.admin_acks import ACKS, GATES, GATES_NAMESPACE, open_gates

NAME = "AdminAck"
# Each patch of it has the ConfigMaps; of 4.8 only the later ones.
_FIRST_WITH_GATES = (4, 9)
EXAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: admin-gates, namespace: openshift-config-managed}
data: {ack-5.0-kube-1.37-api-removals-in-5.1: "Kubernetes 1.37 removes APIs: see https://example.com/removed."}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each gate of the target that no administrator has acknowledged."""
    gates: dict[str, str] = {}
    for manifest in context.manifests or ():
        if manifest.get("kind") == "ConfigMap" and str((manifest.get("metadata") or {}).get("name")) == GATES:
            gates |= {str(gate): str(text) for gate, text in (manifest.get("data") or {}).items()}
    for config_map in snapshot.listed(MANAGED):
        if config_map.metadata.name == GATES:
            # The cluster's own text counts if both have the gate.
            gates |= config_map.data
    is_missing = all(config_map.metadata.name != GATES for config_map in snapshot.listed(MANAGED))
    if is_missing and context.source.minor_version >= _FIRST_WITH_GATES:
        snapshot.require_all(MANAGED)
        why = f"{GATES_NAMESPACE} has no ConfigMap {GATES}, which the cluster-version operator reads"
        yield unknown(NAME, why, fix="See whether the operator recreates it: `oc get cm -n openshift-config-managed`.")
    if not gates:
        return
    acks = next((config_map.data for config_map in snapshot.listed(CONFIG) if config_map.metadata.name == ACKS), None)
    if acks is None:
        # The ConfigMap itself may be one that is not in the list.
        snapshot.require_all(CONFIG)
        acks = {}
    since, before = context.source.minor_version, context.target.minor_version
    for gate in open_gates(gates, acks, since=since, before=before):
        message = f"Gate {gate.key} is not acknowledged: {' '.join(gate.text.split()).rstrip('.')}."
        fix = f'Do what it asks for, then set {gate.key} to "true" in ConfigMap openshift-config/{ACKS}.'
        if gate.error:
            message, fix = f"{gate.error.rstrip('.')}.", "Ask who set it: acknowledging it has no effect."
        yield risk(f"{NAME}-{gate.key}", message, severity="critical", fix=fix)


CHECK = declared(
    run,
    NAME,
    "cluster-version-operator",
    reads=(MANAGED, CONFIG),
    rank=160,
    updates=MINOR,
    severity="critical",
    clusters="OpenShift",
)
