"""A change of the cluster's network was begun and is not finished.

Applies when the network's configuration asks for another type than the one in force, when a migration is recorded in
`status.migration` or in the network operator's `spec.migration`, or when NetworkTypeMigrationInProgress is True.

Why it matters: half of the nodes may have one network and half the other. An update restarts them all, and the operator
of the target may not know the old one.

Remedy: finish or revert the migration, then empty `spec.migration` (`oc patch network.operator.openshift.io
cluster --type=merge -p '{"spec":{"migration":null}}'`); `oc get network.config cluster -o yaml` shows one type and no
migration.

Accepting it is not supported.

Source of the rule: openshift/api, `config/v1` (NetworkStatus) and `operator/v1` (NetworkMigration);
cluster-network-operator, `pkg/names` (NetworkTypeMigrationInProgress).
"""

from __future__ import annotations

from kubekit.api.meta_v1 import Object
from runup.api.cluster_settings_v1 import Network
from runup.api.operator_v1 import OperatorNetwork
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, risk

NAME = "NetworkMigrationUnfinished"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
spec: {networkType: OVNKubernetes}
status: {networkType: OpenShiftSDN, migration: {networkType: OVNKubernetes}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names every sign of a network migration that is not finished."""
    signs: list[tuple[Object, str]] = []
    for network in snapshot.all_or_none(Network):
        spec, status = network.spec, network.status
        if spec.network_type and status.network_type and spec.network_type != status.network_type:
            signs.append((network, f"{spec.network_type} is asked for, and {status.network_type} is in force"))
        if status.migration:
            signs.append((network, f"status.migration has {names(sorted(status.migration))}"))
        if any(
            condition.type == "NetworkTypeMigrationInProgress" and condition.status == "True"
            for condition in status.conditions
        ):
            signs.append((network, "NetworkTypeMigrationInProgress is True"))
    for operator in snapshot.all_or_none(OperatorNetwork):
        if operator.spec.migration:
            migration_fields = names(sorted(operator.spec.migration))
            signs.append((operator, f"spec.migration of the network operator has {migration_fields}"))
    if signs:
        yield risk(
            NAME,
            f"A change of the cluster's network is not finished: {'; '.join(sign for _, sign in signs)}.",
            list({type(obj): obj for obj, _ in signs}.values()),
            severity="critical",
            fix="Finish it or take it back, then empty spec.migration of "
            "`oc edit network.operator.openshift.io cluster`.",
        )


CHECK = declared(
    run, NAME, "cluster-network-operator", reads=(Network, OperatorNetwork, DEFINITIONS), rank=372, severity="critical"
)
