"""Finds webhooks, policies and quotas that refuse what the components of an update write.

The components quote the API server in their conditions, in the reason of a node, and in events about pods that are not
created (`runup.rules.refused_writes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from kubekit.api.conditions import find
from kubekit.api.core_v1 import Event
from kubekit.lang.text import count, shorten
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import ResourceRef
from runup.rules.platform_namespaces import is_system
from runup.rules.refused_writes import NOT_CREATED, Refusal, refusal_in
from runup.updatestatus.decide import finding as terms
from runup.updatestatus.decide.control_plane import OperatorState
from runup.updatestatus.decide.finding import Finding
from runup.updatestatus.decide.nodes import PoolState

WRITE_REFUSED = "UpdateWriteRefused"
# A component tries again at least every few minutes, so an older event may be over.
_RECENT = timedelta(minutes=30)
# A webhook whose pods are replaced during the update does not answer for less.
_PATIENCE = timedelta(minutes=10)
_NAMED = 12
_TEXT = 300


class _Quote(msgspec.Struct, frozen=True, kw_only=True):
    """A message that quotes a refusal: the object, the message, and the start time."""

    ref: ResourceRef
    about: str
    message: str
    since: datetime | None


def refused_findings(
    cluster: ClusterVersion,
    operators: Sequence[OperatorState],
    pools: Sequence[PoolState],
    *,
    events: Sequence[Event],
    now: datetime,
) -> Iterator[Finding]:
    """Yields a finding for each webhook, policy or quota that refuses writes of the update."""
    by_refusal: dict[Refusal, list[_Quote]] = {}
    for quote in (*_conditions(cluster, operators, pools), *_events(events, now)):
        if (refusal := refusal_in(quote.message)) is not None:
            by_refusal.setdefault(refusal, []).append(quote)
    for refusal, quotes in by_refusal.items():
        since = min((quote.since for quote in quotes if quote.since), default=None)
        long = since is None or now - since > _PATIENCE
        refs = list(dict.fromkeys(quote.ref for quote in quotes))
        about = list(dict.fromkeys(quote.about for quote in quotes))
        shown = about[0] if len(about) == 1 else f"{about[0]} and {count(len(about) - 1, 'other object')}"
        yield Finding(
            check=WRITE_REFUSED,
            level=terms.ERROR if long else terms.WARNING,
            impact=terms.UPDATE_STALLED if long else terms.UPDATE_SPEED,
            summary=f"Writes of the update are refused: {refusal.who} {refusal.does} ({shown})",
            description=f"{quotes[0].about}: {shorten(quotes[0].message, _TEXT)}. Exclude the platform's namespaces "
            "from it, repair it, or delete it for the time of the update. See "
            f"`oc get {refusal.resource}{' -A' if refusal.resource == 'resourcequotas' else ''}`.",
            reference=terms.DOCS + "updatewriterefused",
            since=since,
            resources=tuple(refs[:_NAMED]),
            identity=" ".join(refusal),
        )


def _conditions(
    cluster: ClusterVersion, operators: Sequence[OperatorState], pools: Sequence[PoolState]
) -> Iterator[_Quote]:
    name = cluster.metadata.name
    failing = find(cluster.status.conditions, "Failing")
    if failing is not None and failing.status != "False":
        yield _Quote(
            ref=terms.cluster_version_ref(name),
            about=f"ClusterVersion {name}",
            message=failing.message,
            since=failing.last_transition_time,
        )
    for operator in operators:
        states = (operator.degraded, "True"), (operator.progressing, "True"), (operator.available, "False")
        for condition, bad in states:
            if condition is not None and condition.status == bad:
                yield _Quote(
                    ref=terms.operator_ref(operator.name),
                    about=f"ClusterOperator {operator.name}",
                    message=condition.message,
                    since=condition.last_transition_time,
                )
    for pool in pools:
        for each in pool.degradations:
            yield _Quote(
                ref=terms.pool_ref(pool.name),
                about=f"MachineConfigPool {pool.name}",
                message=each.message,
                since=each.last_transition_time,
            )
        for node in pool.nodes:
            if node.reason and not node.updated:
                yield _Quote(
                    ref=terms.node_ref(node.name),
                    about=f"Node {node.name}",
                    message=node.reason,
                    since=node.drain_begun,
                )


def _events(events: Sequence[Event], now: datetime) -> Iterator[_Quote]:
    for event in sorted(events, key=lambda event: (event.metadata.namespace, event.metadata.name)):
        about = event.involved_object
        seen = event.seen_at
        is_recent = seen is not None and now - seen <= _RECENT
        if event.reason == NOT_CREATED and is_system(about.namespace) and is_recent:
            yield _Quote(
                ref=ResourceRef(resource=f"{about.kind.lower()}s", name=about.name, namespace=about.namespace),
                about=f"{about.kind} {terms.qualified(about.namespace, about.name)}",
                message=event.message,
                since=event.first_timestamp or event.metadata.creation_timestamp,
            )
