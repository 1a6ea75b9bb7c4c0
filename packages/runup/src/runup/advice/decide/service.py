"""The query to the update service, the time at which it is due, and the condition RetrievedUpdates about the answer.

The slow request itself is made by `runup.advice.control.update_service`, whose `ServiceState` is observed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import Terminal
from kubekit.lang.formats import URLError, parse_url, parse_uuid
from kubekit.lang.gotext import quote_go
from kubekit.lang.version import parse
from runup.advice.decide.graph import MULTI, Graph
from runup.api.config_v1 import ClusterVersionSpec, Release

DEFAULT_URL = "https://api.openshift.com/api/upgrades_info/v1/graph"
# The time between two attempts; upstream waits two to four minutes.
INTERVAL = timedelta(minutes=3)
# The time after a first failure, doubled after each further one: who starts with the cluster may be asked too early.
FIRST_RETRY = timedelta(seconds=5)
_MOST_DOUBLINGS = 10
# The time for which an answer counts if the service does not answer again.
MAX_AGE = timedelta(hours=24)


class NotAsked(Terminal):
    """The service cannot be queried with this configuration; the reason is that of RetrievedUpdates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query to the update service. An answer to another query does not count for it."""

    url: str
    channel: str
    architecture: str
    cluster_id: str
    version: str

    @property
    def uri(self) -> str:
        """The address to GET; query parameters that the URL has already are kept."""
        parts = urlsplit(self.url)
        own_parameters = {
            "arch": self.architecture,
            "channel": self.channel,
            "id": self.cluster_id,
            "version": self.version,
        }
        other_parameters = [
            (key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key not in own_parameters
        ]
        return urlunsplit(parts._replace(query=urlencode(sorted([*other_parameters, *own_parameters.items()]))))


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why the last attempt brought no graph; `reason` is that of RetrievedUpdates."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """The state of the update service: the query, whether it is in progress, the last answer and failure.

    Times are UTC. `failures` counts the attempts since the last answer that was a graph. `changed` is True once this
    process has sent another query before: advice stored in ClusterVersion may be an answer to that one.
    """

    query: Query | None = None
    changed: bool = False
    asking: bool = False
    graph: Graph | None = None
    failure: Failure | None = None
    failures: int = 0
    attempted_at: datetime | None = None
    succeeded_at: datetime | None = None


def query_for(spec: ClusterVersionSpec, current: Release, *, configured_url: str, architecture: str) -> Query:
    """Returns the query for `spec`. `configured_url` (a flag) takes precedence over `spec.upstream`.

    Raises NotAsked if the configuration does not allow a query.
    """
    url = configured_url or spec.upstream or DEFAULT_URL
    requested_architecture = (
        spec.desired_update.architecture if spec.desired_update and spec.desired_update.architecture else ""
    )
    architecture = requested_architecture or architecture
    url_error, id_error, cluster_id = _url_error(url), "", ""
    try:
        cluster_id = str(parse_uuid(spec.cluster_id))
    except ValueError as error:
        id_error = str(error)
    checks = (
        (not url_error, "InvalidURI", f"failed to parse update service URL: {url_error}"),
        (not id_error, "InvalidID", f"invalid cluster ID: {id_error}"),
        (bool(architecture), "NoArchitecture", "Architecture has not been configured."),
        (
            bool(current.version),
            "NoCurrentVersion",
            "The cluster version does not have a semantic version assigned and cannot calculate valid upgrades.",
        ),
        (bool(spec.channel), "NoChannel", "The update channel has not been configured."),
        (
            parse(current.version) is not None,
            "InvalidCurrentVersion",
            "The current cluster version is not a valid semantic version and cannot be used to calculate upgrades.",
        ),
    )
    for valid, reason, message in checks:
        if not valid:
            raise NotAsked(message, reason=reason)
    # The update service knows the multi-architecture payload by its lower-case name.
    query_architecture = "multi" if architecture == MULTI else architecture
    return Query(
        url=url,
        channel=spec.channel,
        architecture=query_architecture,
        cluster_id=cluster_id,
        version=current.version,
    )


def _url_error(url: str) -> str:
    """Returns why no query can be sent to `url`; empty if one can."""
    try:
        parts = parse_url(url)
    except URLError as error:
        return f"parse {quote_go(url)}: {error}"
    return "" if parts.scheme in ("http", "https") and parts.host else f"{url!r} is not an http or https address"


def is_due(state: ServiceState, query: Query, *, now: datetime) -> bool:
    """Returns whether the service should be sent `query` now."""
    if state.asking and state.query == query:
        return False
    if state.query != query or state.attempted_at is None:
        return True
    # An attempt in the future was made before the clock was set back.
    return not timedelta() <= now - state.attempted_at < pause(state)


def pause(state: ServiceState) -> timedelta:
    """Returns the time between the last attempt and the next."""
    if not state.failures:
        return INTERVAL
    return min(FIRST_RETRY * (1 << min(state.failures - 1, _MOST_DOUBLINGS)), INTERVAL)


def usable_graph(state: ServiceState, query: Query, *, now: datetime) -> Graph | None:
    """Returns the last answer to `query`, or None if it is too old to act on."""
    if state.query != query or state.graph is None or state.succeeded_at is None:
        return None
    return state.graph if now - state.succeeded_at < MAX_AGE else None


NOT_ANSWERED = Condition(
    type="RetrievedUpdates",
    status="Unknown",
    reason="NotAnsweredYet",
    message="The update service has not answered yet for this address, channel, architecture and version.",
)


def retrieved_updates(failure: Failure | None) -> Condition:
    """Returns the condition RetrievedUpdates after an attempt."""
    if failure is None:
        return Condition(type="RetrievedUpdates", status="True")
    return Condition(type="RetrievedUpdates", status="False", reason=failure.reason, message=failure.message)


def unable_message(detail: str) -> str:
    """Returns RetrievedUpdates' message for a failure between the operator and the service."""
    return f"Unable to retrieve available updates: {detail}"
