"""Asking the update service: what is asked, when it is due again, and what RetrievedUpdates says about the answer.

The asking itself is slow and happens in `runup.advice.control.update_service`; its `ServiceState` is observed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from kubekit.api.meta_v1 import Condition
from kubekit.errors import Terminal
from kubekit.lang.version import parse
from runup.advice.decide.graph import MULTI, Graph
from runup.api.config_v1 import ClusterVersionSpec, Release

DEFAULT_URL = "https://api.openshift.com/api/upgrades_info/v1/graph"
# Between two attempts; upstream waits two to four minutes.
INTERVAL = timedelta(minutes=3)
# How long an answer outlives the service.
MAX_AGE = timedelta(hours=24)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)


class NotAsked(Terminal):
    """The service cannot be asked with this configuration; the reason is RetrievedUpdates'."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question to the update service. An answer to another question is no answer to this one."""

    url: str
    channel: str
    architecture: str
    cluster_id: str
    version: str

    @property
    def uri(self) -> str:
        """The address to GET; query parameters that the URL has already are kept."""
        parts = urlsplit(self.url)
        ours = {
            "arch": self.architecture,
            "channel": self.channel,
            "id": self.cluster_id,
            "version": self.version,
        }
        kept = [(key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key not in ours]
        return urlunsplit(parts._replace(query=urlencode(sorted([*kept, *ours.items()]))))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the last attempt brought no graph; `reason` is RetrievedUpdates'."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What is known of the service: never asked, asking, the last answer, the last failure. Times are UTC."""

    query: Query | None = None
    asking: bool = False
    graph: Graph | None = None
    failure: Failure | None = None
    attempted_at: datetime | None = None
    succeeded_at: datetime | None = None


def query_for(spec: ClusterVersionSpec, current: Release, *, configured_url: str, architecture: str) -> Query:
    """The question that `spec` leads to; raises NotAsked. `configured_url` (a flag) wins over `spec.upstream`."""
    url = configured_url or spec.upstream or DEFAULT_URL
    wanted = spec.desired_update.architecture if spec.desired_update and spec.desired_update.architecture else ""
    architecture = wanted or architecture
    checks = (
        (_is_http(url), "InvalidURI", f"failed to parse update service URL: {url!r} is no http or https address"),
        (bool(_UUID.fullmatch(spec.cluster_id)), "InvalidID", f"invalid cluster ID: {spec.cluster_id!r} is no UUID"),
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
    for holds, reason, message in checks:
        if not holds:
            raise NotAsked(message, reason=reason)
    sent = "multi" if architecture == MULTI else architecture
    return Query(url, spec.channel, sent, spec.cluster_id, current.version)


def is_due(state: ServiceState, query: Query, *, now: datetime) -> bool:
    """Whether the service should be asked `query` now."""
    if state.asking and state.query == query:
        return False
    if state.query != query or state.attempted_at is None:
        return True
    # An attempt of tomorrow was made before the clock was set back.
    return not timedelta() <= now - state.attempted_at < INTERVAL


def usable_graph(state: ServiceState, query: Query, *, now: datetime) -> Graph | None:
    """The last answer to `query`, unless it is too old to act on."""
    if state.query != query or state.graph is None or state.succeeded_at is None:
        return None
    return state.graph if now - state.succeeded_at < MAX_AGE else None


def retrieved(failure: Failure | None) -> Condition:
    """RetrievedUpdates as it stands after an attempt."""
    if failure is None:
        return Condition(type="RetrievedUpdates", status="True")
    return Condition(type="RetrievedUpdates", status="False", reason=failure.reason, message=failure.message)


def unable(detail: str) -> str:
    """RetrievedUpdates' message for what went wrong between us and the service."""
    return f"Unable to retrieve available updates: {detail}"


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
