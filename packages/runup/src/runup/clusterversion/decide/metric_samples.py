"""ClusterVersion and ClusterOperators as time series. Users' rules rely on upstream's names and labels.

In: one snapshot of the cluster. Out: samples (docs/reference/upstream.md 9). One difference from upstream is intended:
a request that names no update (accepted risks alone, a preflight) is not a `desired` version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ClusterOperator, Update
from runup.clusterversion.decide import gates
from runup.clusterversion.decide import update_request as requests
from runup.clusterversion.decide.observed import Observed

VERSION = "version"
"""The name of ClusterVersion in the series of ClusterOperators."""

_VALUES = {"True": 1.0, "False": 0.0, "Unknown": -1.0}


@dataclass(frozen=True, slots=True)
class Family:
    """The name, labels and help text of a series."""

    name: str
    labels: tuple[str, ...]
    text: str


RELEASE = Family(
    "cluster_version", ("type", "version", "image", "from_version"), "Versions of the cluster, by when they came about."
)
UPDATES = Family("cluster_version_available_updates", ("upstream", "channel"), "Updates that may be chosen.")
CAPABILITY = Family(
    "cluster_version_capability", ("name",), "1 for a capability that is enabled, 0 for one that is not."
)
UP = Family("cluster_operator_up", ("name", "version", "reason"), "1 for an operator that is available.")
CONDITION = Family("cluster_operator_conditions", ("name", "condition", "reason"), "1 for True, 0 for False.")
RISK = Family(
    "cluster_version_risk_conditions",
    ("condition", "risk", "reason"),
    "Risks of updates: 1 applies, 0 not, -1 unknown.",
)
CONDITIONAL = Family(
    "cluster_version_conditional_update_condition_seconds",
    ("version", "condition", "status", "reason"),
    "When a conditional update came to be recommended, or not.",
)
RETRIEVED = Family(
    "cluster_version_operator_update_retrieval_timestamp_seconds", ("name",), "When the update service last answered."
)
PAYLOAD = Family("cluster_version_payload", ("version", "type"), "Manifests of the release: applied, and pending.")
FAMILIES = (RELEASE, UPDATES, CAPABILITY, UP, CONDITION, RISK, CONDITIONAL, RETRIEVED, PAYLOAD)


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a series; `labels` are in the order of the family's."""

    family: Family
    labels: tuple[str, ...]
    value: float


def samples(observed: Observed, created: datetime | None) -> Iterator[Sample]:
    """Yields all samples of the cluster; `created` is when the operator's own release was made."""
    version = observed.cluster_version
    yield from _version_samples(observed, created)
    spec, updates = version.spec, version.status.available_updates or ()
    retrieved = find(version.status.conditions, "RetrievedUpdates")
    # Without any of these the number of updates is not known, which 0 would not say.
    if spec.upstream or updates or (retrieved is not None and retrieved.status == "True"):
        service = observed.facts.update_service or spec.upstream or "<default>"
        yield Sample(UPDATES, (service, spec.channel), len(updates))
    capabilities = version.status.capabilities
    for name in dict.fromkeys((*capabilities.known_capabilities, *capabilities.enabled_capabilities)):
        yield Sample(CAPABILITY, (name,), float(name in capabilities.enabled_capabilities))
    completed = next((entry.version for entry in version.status.history if entry.state == "Completed"), "")
    yield from _samples_of_operator(VERSION, completed, version.status.conditions)
    yield from _component_samples(observed.operators or ())
    # Only with this gate does ClusterVersion's status name each risk once, with its own conditions.
    if gates.ACCEPT_RISKS in _open_gates(observed):
        for risk in version.status.conditional_update_risks:
            for condition in risk.conditions:
                yield Sample(RISK, (condition.type, risk.name, condition.reason), _VALUES.get(condition.status, -1.0))
    for update in version.status.conditional_updates:
        for condition in update.conditions:
            labels = (update.release.version, condition.type, condition.status, condition.reason)
            yield Sample(CONDITIONAL, labels, _timestamp_s(condition.last_transition_time))
    if observed.service.succeeded_at is not None:
        yield Sample(RETRIEVED, ("",), observed.service.succeeded_at.timestamp())
    progress = observed.progress
    if progress is not None and progress.wanted is not None:
        yield Sample(PAYLOAD, (progress.wanted.version, "applied"), progress.done)
        yield Sample(PAYLOAD, (progress.wanted.version, "pending"), max(progress.total - progress.done, 0))


def without_version(operators: Iterable[ClusterOperator]) -> Iterator[Sample]:
    """Yields the samples of a cluster without a ClusterVersion: its absence, and its operators.

    Source: docs/reference/upstream.md 9.
    """
    yield Sample(UP, (VERSION, "", "ClusterVersionNotFound"), 0.0)
    yield Sample(CONDITION, (VERSION, "Available", "ClusterVersionNotFound"), 0.0)
    yield from _component_samples(operators)


def statuses(observed: Observed) -> dict[tuple[str, str], str]:
    """Returns the status of each condition, by object and type, from which the caller can count transitions."""
    by_condition = {(VERSION, c.type): str(c.status) for c in observed.cluster_version.status.conditions}
    for operator in observed.operators or ():
        by_condition |= {(operator.metadata.name, c.type): str(c.status) for c in operator.status.conditions}
    return by_condition


def _version_samples(observed: Observed, created: datetime | None) -> Iterator[Sample]:
    """Yields the samples of cluster_version, as the Cluster Version Operator has them."""
    version, release = observed.cluster_version, observed.facts.release
    history = version.status.history
    completed = [entry for entry in history if entry.state == "Completed"]
    last = completed[0].version if completed else ""
    installed = _timestamp_s(version.metadata.creation_timestamp)
    yield _version_sample("current", release.version, image=release.image, origin=last, value=_timestamp_s(created))
    if history:
        first = history[-1]
        yield _version_sample("initial", first.version, image=first.image, origin="", value=installed)
    # Upstream: the initial version, empty while the cluster is being installed.
    origin = history[-1].version if completed else ""
    yield _version_sample("cluster", release.version, image=release.image, origin=origin, value=installed)
    if completed:
        before, newest = completed[1].version if len(completed) > 1 else "", completed[0]
        yield _version_sample(
            "completed", newest.version, image=newest.image, origin=before, value=_timestamp_s(newest.completion_time)
        )
    if history and history[0].state == "Partial":
        entry = history[0]
        yield _version_sample(
            "updating", entry.version, image=entry.image, origin=last, value=_timestamp_s(entry.started_time)
        )
    requested = _requested_version(observed)
    if requested is not None:
        moments = [version.metadata.creation_timestamp, *(c.last_transition_time for c in version.status.conditions)]
        moments += [moment for entry in history[:1] for moment in (entry.started_time, entry.completion_time)]
        latest = max((moment for moment in moments if moment is not None), default=None)
        yield _version_sample(
            "desired", requested.version, image=requested.image, origin=last, value=_timestamp_s(latest)
        )
    failing = find(version.status.conditions, "Failing")
    if failing is not None and failing.status == "True":
        target = requested or version.status.desired
        at = _timestamp_s(failing.last_transition_time)
        yield _version_sample("failure", target.version, image=target.image, origin=last, value=at)


def _open_gates(observed: Observed) -> frozenset[str]:
    own_version = observed.facts.release.version
    return gates.open_gates(observed.feature_gate, own_version) | observed.facts.gates


def _requested_version(observed: Observed) -> Update | None:
    """Returns the requested update if it is not worked towards."""
    version = observed.cluster_version
    own_version = observed.facts.release.version
    request = requests.read(version.spec.desired_update, _open_gates(observed), observed.feature_gate, own_version)
    update = request.update if isinstance(request, requests.UpdateRequest) else None
    # Upstream reports accepted risks alone, and a preflight, as a desired version: an error that is not copied.
    if update is None or not (update.version or update.image):
        return None
    desired = version.status.desired
    if (update.image and update.image == desired.image) or (not update.image and update.version == desired.version):
        return None
    return update


def _component_samples(operators: Iterable[ClusterOperator]) -> Iterator[Sample]:
    for operator in operators:
        yield from _samples_of_operator(
            operator.metadata.name,
            next((operand.version for operand in operator.status.versions if operand.name == "operator"), ""),
            operator.status.conditions,
        )


def _samples_of_operator(name: str, version: str, conditions: tuple[Condition, ...]) -> Iterator[Sample]:
    """Yields whether an operator is available, and each of its conditions."""
    available = find(conditions, "Available")
    up = available is not None and available.status == "True"
    yield Sample(UP, (name, version, available.reason if available else "NoAvailableCondition"), float(up))
    for condition in conditions:
        # Upstream has no series for Unknown here, only for risks.
        if condition.status in ("True", "False"):
            yield Sample(CONDITION, (name, condition.type, condition.reason), _VALUES[condition.status])


def _version_sample(kind: str, version: str, image: str, origin: str, value: float) -> Sample:
    return Sample(RELEASE, (kind, version, image, origin), value)


def _timestamp_s(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def transitions(before: Mapping[tuple[str, str], str], now: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str]]:
    """Yields the keys of conditions whose status differs `now`, also new and removed ones of the same object.

    The conditions of an object that is new or gone have not changed.
    """
    in_both = {name for name, _ in before} & {name for name, _ in now}
    for key in sorted({*before, *now}):
        if key[0] in in_both and before.get(key) != now.get(key):
            yield key
