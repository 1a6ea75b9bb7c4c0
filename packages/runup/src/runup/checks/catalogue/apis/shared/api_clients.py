"""Counts the clients that requested an API, from an APIRequestCount, without those that no removal concerns.

Argo CD, Kyverno, garbage collection and their like list and watch every version that a server offers. That is no use of
the version, and has blocked updates for nothing. The platform's own clients are updated with the platform, and ask for
what its API server serves: the control plane by its user names, operators by the namespaces that ClusterOperators name
as theirs. `data/read-only-clients.yaml` has the names, and where they are from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from runup.api.apiserver_v1 import APIRequestCount, PerUserAPIRequestCount
from runup.api.config_v1 import ClusterOperator
from runup.checks.decide.removal_tables import document, removed_resource
from runup.checks.writing import Snapshot
from runup.rules.platform_namespaces import is_system

_ACCOUNT = "system:serviceaccount:"


def removed_in(count: APIRequestCount) -> int | None:
    """Returns the minor version of Kubernetes that no longer serves the counted API, or None if it is not known.

    The server's own field comes first, because OpenShift may serve a version longer, or less long, than Kubernetes.
        Otherwise the table of removed versions decides; the server fills the field only of versions on a separate list
        (https://github.com/openshift/kubernetes, openshift-kube-apiserver/filters/apirequestcount).
    """
    major, _, minor = count.status.removed_in_release.partition(".")
    if major:
        return int(minor) if major == "1" and minor.isdigit() else None
    resource, _, version_and_group = count.metadata.name.partition(".")
    version, _, group = version_and_group.partition(".")
    return removed_resource(resource, version, group)


def requests_affected_by_removal(
    snapshot: Snapshot, counts: Iterable[APIRequestCount]
) -> list[tuple[APIRequestCount, Counter[str]]]:
    """Returns the counts with requests of clients that the removal affects, and these requests. Raises Unreadable."""
    requested_counts = [(count, requests) for count in counts if (requests := requests_by_client(count)[0])]
    # Whose namespaces the platform's are is asked only where an account of one like them would be named.
    if not any(is_system(_account_namespace(client)) for _, requests in requested_counts for client in requests):
        return requested_counts
    platform_namespaces = frozenset(
        related.name
        for operator in snapshot.all_or_none(ClusterOperator)
        for related in operator.status.related_objects
        if related.resource == "namespaces" and not related.group
    )
    return [
        (count, requests)
        for count, _ in requested_counts
        if (requests := requests_by_client(count, platform_namespaces)[0])
    ]


def requests_by_client(
    count: APIRequestCount, platform_namespaces: frozenset[str] = frozenset()
) -> tuple[Counter[str], Counter[str]]:
    """Returns the requests of the last day by client, and those of clients that do not count.

    A client is `user (agent)`; `platform_namespaces` are those of the platform. Requests of an unrecorded sender are
    under the empty name.
    """
    used: Counter[str] = Counter()
    excused_requests: Counter[str] = Counter()
    for hour in count.status.last24h:
        for server in hour.by_node:
            for user in server.by_user:
                platform = (
                    _account_namespace(user.username) in platform_namespaces
                    if user.username.startswith(_ACCOUNT)
                    else user.username.startswith(tuple(document("read-only-clients")["platform"]))
                )
                excused = user.request_count if platform else 0
                if not platform and _scanner_name(user):
                    reading = document("read-only-clients")["verbs"]
                    excused = sum(verb.request_count for verb in user.by_verb if verb.verb in reading)
                if user.request_count > excused:
                    agent = user.user_agent.partition(" ")[0]
                    client_text = f"{user.username} ({agent})" if agent else user.username
                    used[client_text] += user.request_count - excused
                if excused:
                    excused_requests["the platform" if platform else _scanner_name(user)] += excused
    # The server reports only the users with the most requests by name
    # (openshift/api, apiserver/v1: spec.numberOfUsersToReport).
    other_count = count.status.request_count - used.total() - excused_requests.total()
    if other_count > 0:
        used[""] += other_count
    return used, excused_requests


def _account_namespace(client: str) -> str:
    """Returns the namespace of a service account, or an empty string."""
    return client.removeprefix(_ACCOUNT).partition(":")[0] if client.startswith(_ACCOUNT) else ""


def _scanner_name(user: PerUserAPIRequestCount) -> str:
    """Returns the name of the known scanner whose user name and agent the client's begin with, or an empty string."""
    for row in document("read-only-clients")["clients"]:
        identities = [(row.get("user"), user.username), (row.get("agent"), user.user_agent)]
        if all(text.startswith(start) for start, text in identities if start):
            return str(row["name"])
    return ""
