"""What the update service advises for this cluster now, whatever state the asking is in.

A service that is away takes nothing back: until it answers again, what ClusterVersion says stays, so that a restart
of the operator does not make updates vanish and come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kubekit.api.meta_v1 import Condition
from kubekit.lang.version import Version, parse
from runup.advice.decide import graph as graphs
from runup.advice.decide import origin, risks, service
from runup.advice.decide.candidates import Candidate, from_advice
from runup.advice.decide.graph import MULTI, Advice, BadGraph, Graph
from runup.advice.decide.promql import NOTHING, Known
from runup.advice.decide.service import Failure, Query, ServiceState
from runup.api.config_v1 import ClusterVersionSpec, ClusterVersionStatus, ConditionalUpdate, Release

_KEEPS = ("RemoteFailed", "ResponseFailed", "ResponseInvalid")


@dataclass(frozen=True, slots=True)
class Advised:
    """The candidates, every release reachable by whatever walk, RetrievedUpdates, and the question that is due.

    `settled` is False while the first answer is still to come; `condition` is None then: what was found stays.
    """

    candidates: tuple[Candidate, ...] = ()
    reachable: tuple[Release, ...] = ()
    nodes: tuple[Release, ...] = ()
    condition: Condition | None = None
    due: Query | None = None
    settled: bool = True


@dataclass(frozen=True, slots=True)
class _Pass:
    """What every reading of advice needs."""

    current: Release
    due: Query | None
    known: Known
    now: datetime


def advise(
    spec: ClusterVersionSpec,
    status: ClusterVersionStatus,
    state: ServiceState,
    *,
    current: Release,
    configured_url: str,
    architecture: str,
    now: datetime,
    known: Known = NOTHING,
) -> Advised:
    """See the module. `configured_url` is the operator's flag, empty for none; `architecture` the operator's own.

    `known` is what Prometheus said.
    """
    try:
        query = service.query_for(
            spec, current, configured_url=configured_url, architecture=current.architecture or architecture
        )
    except service.NotAsked as error:
        return Advised(condition=service.retrieved(Failure(error.reason, error.message)))
    due = query if service.is_due(state, query, now=now) else None
    graph = service.usable_graph(state, query, now=now)
    if graph is not None:
        return _from_graph(graph, spec, status, state.failure, _Pass(current, due, known, now))
    failure = state.failure if state.query == query else None
    if failure is None:
        return Advised(candidates=_kept(status, _Pass(current, due, known, now)), due=due, settled=False)
    keep = failure.reason in _KEEPS
    return Advised(
        candidates=_kept(status, _Pass(current, due, known, now)) if keep else (),
        condition=service.retrieved(failure),
        due=due,
    )


def _from_graph(
    graph: Graph,
    spec: ClusterVersionSpec,
    status: ClusterVersionStatus,
    failure: Failure | None,
    on: _Pass,
) -> Advised:
    current, due = on.current, on.due
    wanted = spec.desired_update.architecture if spec.desired_update else ""
    here = Version(current.version)
    try:
        found = graphs.advice(
            graph, current=here, channel=spec.channel, migrating=wanted == MULTI and current.architecture != MULTI
        )
    except BadGraph as error:
        kept = () if error.reason == "VersionNotFound" else _kept(status, on)
        failure = Failure(error.reason, service.unable(error.message))
        return Advised(kept, nodes=graph.releases, condition=service.retrieved(failure), due=due)
    return Advised(
        from_advice(found, on.known, on.now),
        graphs.reachable(graph, here),
        graph.releases,
        service.retrieved(failure),
        due,
    )


def _kept(status: ClusterVersionStatus, on: _Pass) -> tuple[Candidate, ...]:
    """The service's earlier advice as ClusterVersion has it, with what we added ourselves taken off again."""
    conditional = tuple(update for update in map(_service_part, status.conditional_updates) if update is not None)
    guarded = {update.release.image for update in status.conditional_updates}
    plain = [release for release in status.available_updates or () if release.image not in guarded]
    plain.extend(update.release for update in conditional if not update.risks)
    advice = Advice(tuple(plain), tuple(update for update in conditional if update.risks))
    return tuple(c for c in from_advice(advice, on.known, on.now) if _is_newer(c.release, on.current))


def _service_part(update: ConditionalUpdate) -> ConditionalUpdate | None:
    """`update` with the service's risks only; None where the service never offered it."""
    if any(risk.name == origin.NOT_OFFERED for risk in update.risks):
        return None
    theirs = tuple(
        graphs.known_rules(risk) for risk in update.risks if not origin.is_preflights(risk) and not risks.owns(risk)
    )
    return ConditionalUpdate(release=update.release, risks=theirs)


def _is_newer(release: Release, current: Release) -> bool:
    there, here = parse(release.version), parse(current.version)
    return there is None or here is None or there > here or (there == here and release.image != current.image)
