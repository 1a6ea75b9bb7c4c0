"""A catalog of operators cannot be reached, so nobody knows which updates there are.

Applies when a CatalogSource's connection is not READY (and not CONNECTING or IDLE, which pass).

Why it matters: OLM resolves all Subscriptions of a namespace at once: one catalog that does not answer keeps every
update back, also those of other catalogs.

Remedy: see the catalog's pod: `oc get pods -n openshift-marketplace`; a disconnected cluster needs its mirror's.

Accepting it means that operators are not updated until it answers.

Source of the rule: operator-lifecycle-manager, CatalogSource `status.connectionState` (gRPC connectivity states).
"""

from __future__ import annotations

from runup.api.olm_v1alpha1 import CatalogSource
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, count, declared, full_name, names, risk

NAME = "OperatorCatalogUnreachable"
HEALTHY_STATES = ("READY", "CONNECTING", "IDLE", "")
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: redhat-operators, namespace: openshift-marketplace}
status: {connectionState: {lastObservedState: TRANSIENT_FAILURE}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the CatalogSources that cannot be reached."""
    unreachable = [
        catalog
        for catalog in sorted(snapshot.all_or_none(CatalogSource), key=full_name)
        if _connection_state(catalog) not in HEALTHY_STATES
    ]
    if unreachable:
        listing = names([f"{full_name(catalog)} ({_connection_state(catalog)})" for catalog in unreachable])
        yield risk(
            NAME,
            f"{count(len(unreachable), 'catalog')} of operators cannot be reached: {listing}.",
            unreachable,
            fix="See its pod with `oc get pods -n openshift-marketplace`; `oc get catalogsources -A -o yaml` "
            "shows READY.",
        )


def _connection_state(catalog: CatalogSource) -> str:
    connection = catalog.status.connection_state
    return connection.last_observed_state if connection else ""


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=(CatalogSource, DEFINITIONS), rank=450)
