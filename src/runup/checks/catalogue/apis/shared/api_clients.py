"""Counts the clients that requested an API, from an APIRequestCount, with known scanners apart from the others.

Argo CD, Kyverno, garbage collection and their like list and watch every version that a server offers. That is no use of
the version, and has blocked updates for nothing (data/read-only-clients.yaml names the complaints).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from runup.api.apiserver_v1 import APIRequestCount, PerUserAPIRequestCount
from runup.checks.decide.removal_tables import document


def clients(count: APIRequestCount) -> tuple[Counter[str], Counter[str]]:
    """Returns the requests of the last day by client, and those of known scanners; a client is `user (agent)`.

    Requests whose sender the server did not record are under the empty name.
    """
    used: Counter[str] = Counter()
    scanned: Counter[str] = Counter()
    for hour in count.status.last24h:
        for server in hour.by_node:
            for user in server.by_user:
                excused = _excused(user)
                if user.request_count > excused:
                    used[_named(user)] += user.request_count - excused
                if excused:
                    scanned[_scanner(user)] += excused
    # The server reports only the users with the most requests by name
    # (openshift/api, apiserver/v1: spec.numberOfUsersToReport).
    rest = count.status.request_count - used.total() - scanned.total()
    if rest > 0:
        used[""] += rest
    return used, scanned


def _excused(user: PerUserAPIRequestCount) -> int:
    """Returns how many of the requests are reads by a known scanner."""
    if not _scanner(user):
        return 0
    reading = frozenset(document("read-only-clients")["verbs"])
    return sum(verb.request_count for verb in user.by_verb if verb.verb in reading)


def _scanner(user: PerUserAPIRequestCount) -> str:
    """Returns the name of the known scanner that the client is, or an empty string."""
    return next((str(row["name"]) for row in _known() if _is(row, user)), "")


def _is(row: Mapping[str, Any], user: PerUserAPIRequestCount) -> bool:
    """Returns whether the client's user name and agent begin as the scanner's do, as far as the row gives them."""
    given = [(row.get("user"), user.username), (row.get("agent"), user.user_agent)]
    return all(text.startswith(start) for start, text in given if start)


@cache
def _known() -> tuple[Mapping[str, Any], ...]:
    return tuple(document("read-only-clients")["clients"])


def _named(user: PerUserAPIRequestCount) -> str:
    """Returns the client as `user (agent)`, or the user alone if it sent no agent."""
    agent = user.user_agent.partition(" ")[0]
    return f"{user.username} ({agent})" if agent else user.username
