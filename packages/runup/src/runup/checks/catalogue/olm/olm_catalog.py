"""A catalog of operators cannot be reached, so available updates are unknown.

Applies when a CatalogSource's connection is not READY (and not CONNECTING or IDLE, which pass). If all are, it applies
when Subscriptions have had the condition CatalogSourcesUnhealthy for ten minutes or more. A CatalogSource that does not
report its connection is Unknown.

Why it matters: OLM resolves all Subscriptions of a namespace at once: one catalog that does not answer blocks all
updates, including those of other catalogs.

Remedy: see the catalog's pod: `oc get pods -n openshift-marketplace`; a disconnected cluster needs its mirror's.

Accepting it means that operators are not updated until the catalog answers.

Source of the rule: operator-lifecycle-manager, CatalogSource `status.connectionState` (gRPC connectivity
states); operator-framework/api, `operators/v1alpha1` (SubscriptionCatalogSourcesUnhealthy).
"""

from __future__ import annotations

from kubekit.api.conditions import find
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.writing import (
    DEFINITIONS,
    DOWN_PATIENCE,
    LONGEST_CAUSE,
    Context,
    Findings,
    Snapshot,
    count,
    declared,
    full_name,
    names,
    names_of,
    risk,
    unknown,
)

NAME = "OperatorCatalogUnreachable"
HEALTHY_STATES = ("READY", "CONNECTING", "IDLE")
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: redhat-operators, namespace: openshift-marketplace}
status: {connectionState: {lastObservedState: TRANSIENT_FAILURE}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the CatalogSources that cannot be reached, or else the Subscriptions that say so."""
    states = [
        (catalog, _connection_state(catalog)) for catalog in sorted(snapshot.all_or_none(CatalogSource), key=full_name)
    ]
    unreachable = [catalog for catalog, state in states if state and state not in HEALTHY_STATES]
    silent = [catalog for catalog, state in states if not state]
    if unreachable:
        listing = names([f"{full_name(catalog)} ({_connection_state(catalog)})" for catalog in unreachable])
        yield risk(
            NAME,
            f"{count(len(unreachable), 'catalog')} of operators cannot be reached: {listing}.",
            unreachable,
            fix="See its pod with `oc get pods -n openshift-marketplace`; `oc get catalogsources -A -o yaml` "
            "shows READY.",
        )
    else:
        yield from _reported_by_subscriptions(snapshot, context)
    if silent:
        why = f"{count(len(silent), 'catalog')} of operators ({names_of(silent)}) report no connection"
        yield unknown(NAME, why, silent, fix="See the pod catalog-operator, and `oc describe catalogsource NAME`.")


def _reported_by_subscriptions(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the Subscriptions whose catalogs are unhealthy by their condition."""
    found = []
    for sub in sorted(snapshot.all_or_none(Subscription), key=full_name):
        unhealthy = find(sub.status.conditions, "CatalogSourcesUnhealthy")
        since = unhealthy.last_transition_time if unhealthy else None
        if unhealthy and unhealthy.status == "True" and (since is None or context.now - since >= DOWN_PATIENCE):
            found.append((sub, " ".join(unhealthy.message.split())[:LONGEST_CAUSE].rstrip(".")))
    if found:
        listing = names([f"{full_name(sub)}{f' ({why})' if why else ''}" for sub, why in found])
        yield risk(
            NAME,
            f"{count(len(found), 'Subscription')} {'reports' if len(found) == 1 else 'report'} unhealthy catalogs, so "
            f"that OLM finds no update: {listing}.",
            [sub for sub, _ in found],
            fix="See the catalog that is named: `oc get catalogsources -A`, and its pod.",
        )


def _connection_state(catalog: CatalogSource) -> str:
    connection = catalog.status.connection_state
    return connection.last_observed_state if connection else ""


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=(CatalogSource, Subscription, DEFINITIONS), rank=450)
