"""The clusters of a hub with the statuses that have travelled to it. Pure.

In: the hub's ManagedClusters, and the ManifestWorks of the add-on. Out: a member for each cluster, with its newest
status, else with why there is none; and with the reasons for which it may no longer hold (docs/decisions/0111).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kubekit.api.conditions import find
from runup.api.hub_v1 import ADDON_LABEL, ManagedCluster, ManifestWork
from runup.fleet.decide import newest_status, status_schedule
from runup.fleet.decide.hub_addon import NAMES
from runup.fleet.decide.hub_clusters import (
    age_problem,
    brief,
    interval_of,
    judge_each,
    manifests_of,
    silence,
    silence_doubt,
    value_in,
    why_nothing_travelled,
)
from runup.fleet.decide.members import Doubt, Member
from runup.fleet.decide.newest_status import BadStatus, NewestStatus

OLD = "StatusOld"
"""Name of the doubt about a status that is older than three of its intervals."""


def members_with_status(
    clusters: Iterable[ManagedCluster],
    works: Iterable[ManifestWork],
    now: datetime,
    *,
    unreadable: Mapping[str, str],
) -> tuple[Member, ...]:
    """Returns a member for each cluster; `unreadable` says of clusters why an object about them cannot be read."""
    return judge_each(clusters, works, unreadable, lambda cluster, its_works: _member(cluster, its_works, now))


def _member(cluster: ManagedCluster, works: Sequence[ManifestWork], now: datetime) -> Member:
    name, labels = cluster.metadata.name, cluster.metadata.labels
    silent = silence(cluster)
    try:
        found = [(status, work) for work in works if (status := _status_in(work)) is not None]
    except BadStatus as error:
        return Member(name=name, labels=labels, problem=f"its status cannot be used: {brief(error.message)}")
    if not found:
        why = why_nothing_travelled(cluster, works) or _why_no_status(works)
        return Member(name=name, labels=labels, problem="; ".join(filter(None, (why, silent))))
    status, work = max(found, key=lambda pair: pair[0].observed_time)
    interval = interval_of(work, status_schedule.NAME)
    timeout = timedelta(seconds=status_schedule.TIMEOUT_S)
    age = age_problem("status", status.observed_time, interval=interval, timeout=timeout, now=now)
    doubts = [silence_doubt(silent)] if silent else []
    doubts += [Doubt(OLD, age)] if age else []
    return Member(name=name, labels=labels, status=status, doubts=tuple(doubts))


def _status_in(work: ManifestWork) -> NewestStatus | None:
    """Returns the status that the agent has read, None if there is none. Raises BadStatus."""
    value = value_in(work, newest_status.NAME, newest_status.STATUS)
    return None if value is None else newest_status.unpack(value)


def _why_no_status(works: Sequence[ManifestWork]) -> str:
    """Returns why nothing is known although the add-on is applied, in the agent's words where it has some."""
    read = [each for work in works for each in manifests_of(work, newest_status.NAME)]
    for manifest in read:
        for kind in ("Available", "StatusFeedbackSynced"):
            condition = find(manifest.conditions, kind)
            if condition is not None and condition.status != "True":
                return f"its agent cannot read ConfigMap {newest_status.NAME}: {brief(condition.message)}"
    if read:
        return "it has no status yet"
    if any(work.metadata.labels.get(ADDON_LABEL) == NAMES["kubernetes"] for work in works):
        return "it is not an OpenShift: without a ClusterVersion there is no update that it could tell of"
    return "its add-on takes no status: print it again with `runup fleet addon`, not with --status-every never"
