"""Combines the update service's answer and the cluster's state into the current advice.

Advice is the answer to one query: to one service, for one channel, architecture and version. If that query fails,
its last answer counts for a day. A failed query without an answer leaves no update, as in the Go operator. After a
restart, the advice in ClusterVersion counts until the first answer, if it was stored for the same spec and version.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version
from runup.advice.decide import graph as graphs
from runup.advice.decide import preflight_reasons, promql, risks, service
from runup.advice.decide.candidates import Candidate, from_advice
from runup.advice.decide.graph import MULTI, Advice, BadGraph, Graph
from runup.api.config_v1 import ClusterVersionSpec, ClusterVersionStatus, ConditionalUpdate, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAdvice:
    """The candidates, all reachable releases, the condition RetrievedUpdates, and the query that is due.

    `settled` is False until the first answer. `condition` is None if the existing condition stays.
    """

    candidates: tuple[Candidate, ...] = ()
    reachable: tuple[Release, ...] = ()
    nodes: tuple[Release, ...] = ()
    condition: Condition | None = None
    due: service.Query | None = None
    settled: bool = True
    # The answer that all of these come from; None while it does not exist that can be used.
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class _Pass:
    """The values that every way of reading the advice needs."""

    current: Release
    due: service.Query | None
    known: promql.PrometheusState
    now: datetime


def advise(
    spec: ClusterVersionSpec,
    status: ClusterVersionStatus,
    state: service.ServiceState,
    *,
    current: Release,
    configured_url: str,
    architecture: str,
    now: datetime,
    prometheus: promql.PrometheusState = promql.NOTHING,
    spec_changed: bool = False,
) -> CurrentAdvice:
    """Returns the current advice. `configured_url` is the operator's flag, empty for none.

    `architecture` is the operator's own. `prometheus` are the answers of Prometheus. `spec_changed`: `status` was
    written for an earlier spec.
    """
    try:
        query = service.query_for(
            spec, current, configured_url=configured_url, architecture=current.architecture or architecture
        )
    except service.NotAsked as error:
        return CurrentAdvice(condition=service.retrieved_updates(service.Failure(error.reason, error.message)))
    due = query if service.is_due(state, query, now=now) else None
    graph = service.usable_graph(state, query, now=now)
    if graph is not None:
        return _from_graph(graph, spec, failure=state.failure, on=_Pass(current, due, prometheus, now))
    # A failure of a query for another channel or version says nothing about this one.
    failure = state.failure if state.query == query else None
    if failure is not None:
        return CurrentAdvice(condition=service.retrieved_updates(failure), due=due)
    of_another_query = state.changed or (state.query is not None and state.query != query)
    if of_another_query or spec_changed or status.desired.version not in ("", current.version):
        return CurrentAdvice(condition=service.NOT_ANSWERED, due=due, settled=False)
    return CurrentAdvice(
        candidates=_stored_candidates(status, _Pass(current, due, prometheus, now)), due=due, settled=False
    )


def _from_graph(
    graph: Graph,
    spec: ClusterVersionSpec,
    failure: service.Failure | None,
    on: _Pass,
) -> CurrentAdvice:
    """Returns the advice that `graph` gives for the current release, and why the last query failed, if it did."""
    current, due = on.current, on.due
    requested_architecture = spec.desired_update.architecture if spec.desired_update else ""
    current_version = Version(current.version)
    try:
        offered = graphs.advice(
            graph,
            current=current_version,
            channel=spec.channel,
            migrating=requested_architecture == MULTI and current.architecture != MULTI,
        )
    except BadGraph as error:
        failure = service.Failure(error.reason, service.unable_message(error.message))
        return CurrentAdvice(nodes=graph.releases, condition=service.retrieved_updates(failure), due=due)
    return CurrentAdvice(
        candidates=from_advice(offered, on.known, on.now),
        reachable=graphs.reachable(graph, current_version),
        nodes=graph.releases,
        condition=service.retrieved_updates(failure),
        due=due,
        graph=graph,
    )


def _stored_candidates(status: ClusterVersionStatus, on: _Pass) -> tuple[Candidate, ...]:
    """Returns the service's earlier advice as stored in ClusterVersion, without the risks that the operator added."""
    conditional = []
    for update in status.conditional_updates:
        # The service never offered such an update.
        if any(risk.name == preflight_reasons.NOT_OFFERED for risk in update.risks):
            continue
        service_risks = tuple(
            graphs.known_rules(risk)
            for risk in update.risks
            if not preflight_reasons.is_preflights(risk) and not risks.is_from_source(risk)
        )
        conditional.append(ConditionalUpdate(release=update.release, risks=service_risks))
    # The CVO lists a release either as available or as conditional, never as both.
    guarded = {update.release.image for update in status.conditional_updates}
    plain = [release for release in status.available_updates or () if release.image not in guarded]
    plain.extend(update.release for update in conditional if not update.risks)
    advice = Advice(tuple(plain), tuple(update for update in conditional if update.risks))
    return from_advice(advice, on.known, on.now)
