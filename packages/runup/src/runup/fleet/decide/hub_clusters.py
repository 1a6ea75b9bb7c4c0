"""The clusters of a hub of Open Cluster Management, with the reports that have travelled to it. Pure.

In: the hub's ManagedClusters, and the ManifestWorks of the add-on. Out: a member for each cluster, with its newest
report, else with why there is none; and with the reasons for which the report may no longer hold
(docs/decisions/0106). A cluster that is silent, or whose report is old, is never fine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kubekit.api.conditions import find
from kubekit.lang.text import cut, one_line
from runup.api.hub_v1 import CLUSTER_SET_LABEL, ManagedCluster, ManagedClusterSet, ManifestStatus, ManifestWork
from runup.fleet.decide.members import BadFleet, Doubt, Member
from runup.preflight.decide import newest_report, schedule
from runup.preflight.decide.cluster_run import NAMESPACE
from runup.report.report import BadReport, Report

AVAILABLE = "ManagedClusterConditionAvailable"
APPLIED = "Applied"
SILENT = "ClusterNotAvailable"
"""Risk of a cluster that its hub does not hear of: what is known of it may no longer hold."""
OLD = "PreflightReportOld"
"""Risk of a cluster whose newest report is older than three intervals of its schedule, or of no time that is known."""
INTERVALS = 3
# Clocks of two machines that nobody keeps together.
_AHEAD = timedelta(minutes=10)
_MAX_TEXT = 400


def members_with_reports(
    clusters: Iterable[ManagedCluster],
    works: Iterable[ManifestWork],
    now: datetime,
    *,
    unreadable: Mapping[str, str],
    target: str = "",
) -> tuple[Member, ...]:
    """Returns a member for each cluster.

    `unreadable` says of clusters why an object about them cannot be read. `target` is the version that the reports have
    to be about; those about another one say nothing of it.
    """
    return judge_each(clusters, works, unreadable, lambda cluster, its_works: _member(cluster, its_works, now, target))


def judge_each(
    clusters: Iterable[ManagedCluster],
    works: Iterable[ManifestWork],
    unreadable: Mapping[str, str],
    judge: Callable[[ManagedCluster, Sequence[ManifestWork]], Member],
) -> tuple[Member, ...]:
    """Returns the member that `judge` makes of each cluster and its works; an `unreadable` one is not judged."""
    by_cluster: dict[str, list[ManifestWork]] = defaultdict(list)
    for work in works:
        by_cluster[work.metadata.namespace].append(work)
    members = []
    for cluster in clusters:
        name = cluster.metadata.name
        if problem := unreadable.get(name):
            members.append(Member(name=name, labels=cluster.metadata.labels, problem=problem))
        else:
            members.append(judge(cluster, by_cluster[name]))
    return tuple(members)


def clusters_of_set(clusters: Sequence[ManagedCluster], found: ManagedClusterSet) -> tuple[ManagedCluster, ...]:
    """Returns the clusters of a set. Raises BadFleet if it has none, or chooses them in a way that is not known."""
    name, selector = found.metadata.name, found.spec.cluster_selector
    if selector.selector_type == "ExclusiveClusterSetLabel":
        chosen = tuple(each for each in clusters if each.metadata.labels.get(CLUSTER_SET_LABEL) == name)
    elif selector.selector_type == "LabelSelector":
        chosen = tuple(each for each in clusters if selector.label_selector.matches(each.metadata.labels))
    else:
        raise BadFleet(
            f"--clusterset {name}: chooses its clusters by {selector.selector_type}, which is not known; "
            "leave it out, and choose clusters by --selector"
        )
    if not chosen:
        raise BadFleet(
            f"--clusterset {name}: no cluster is in it; `kubectl get managedclusters --show-labels` has them"
        )
    return chosen


def _member(cluster: ManagedCluster, works: Sequence[ManifestWork], now: datetime, target: str) -> Member:
    name, labels = cluster.metadata.name, cluster.metadata.labels
    silent = silence(cluster)
    try:
        found = [(report, work) for work in works if (report := _report_in(work)) is not None]
    except BadReport as error:
        return Member(name=name, labels=labels, problem=f"its report cannot be used: {brief(error.message)}")
    if not found:
        problem = "; ".join(filter(None, (why_nothing_travelled(cluster, works) or "it has no report yet", silent)))
        return Member(name=name, labels=labels, problem=problem)
    report, work = max(found, key=lambda pair: pair[0].observed_time or datetime.min.replace(tzinfo=UTC))
    if target and report.target_version != target:
        problem = f"its newest report is about the update to {report.target_version}, not to {target}"
        return Member(name=name, labels=labels, problem=problem)
    interval = interval_of(work, schedule.NAME)
    age = age_problem(
        "report", report.observed_time, interval=interval, timeout=timedelta(seconds=schedule.TIMEOUT_S), now=now
    )
    doubts = [silence_doubt(silent)] if silent else []
    doubts += [Doubt(OLD, age)] if age else []
    return Member(name=name, labels=labels, report=report, doubts=tuple(doubts))


def silence_doubt(silent: str) -> Doubt:
    """Returns the doubt about a cluster that is silent, as `silence` says."""
    return Doubt(SILENT, f"The hub does not hear of the cluster: {silent}.")


def silence(cluster: ManagedCluster) -> str:
    """Returns why nobody knows whether the cluster is there, empty if its agent says that it is."""
    available = find(cluster.status.conditions, AVAILABLE)
    if available is None:
        return "its agent has not registered yet"
    if available.status == "True":
        return ""
    since = f" since {available.last_transition_time:%Y-%m-%dT%H:%M:%SZ}" if available.last_transition_time else ""
    return f"it is not available{since} ({brief(available.message or available.reason or 'no reason is given')})"


def why_nothing_travelled(cluster: ManagedCluster, works: Sequence[ManifestWork]) -> str:
    """Returns why nothing of the add-on can have travelled, empty if something could."""
    if not cluster.spec.hub_accepts_client:
        return "the hub has not accepted it (spec.hubAcceptsClient)"
    if not works:
        return "no preflight is scheduled there: the add-on is not in its namespace of the hub; a Placement chooses it"
    for work in works:
        applied = find(work.status.conditions, APPLIED)
        if applied is None or applied.status != "True":
            why = brief(applied.message) if applied is not None else "its agent has not said anything of it"
            return f"the schedule is not applied there: {why}"
    return ""


def _report_in(work: ManifestWork) -> Report | None:
    """Returns the report that the agent has read, None if there is none. Raises BadReport."""
    value = value_in(work, newest_report.NAME, newest_report.REPORT)
    return None if value is None else newest_report.unpack(value)


def value_in(work: ManifestWork, config_map: str, name: str) -> str | None:
    """Returns the value that the agent has read out of one of the add-on's ConfigMaps, None if there is none."""
    for manifest in manifests_of(work, config_map):
        for value in manifest.status_feedback.values:
            if value.name == name:
                return value.field_value.string
    return None


def manifests_of(work: ManifestWork, config_map: str) -> tuple[ManifestStatus, ...]:
    """Returns what the agent says of one of the add-on's ConfigMaps: one status, or none."""
    wanted = ("", "ConfigMap", NAMESPACE, config_map)
    return tuple(
        each
        for each in work.status.resource_status.manifests
        if (meta := each.resource_meta) and (meta.group, meta.kind, meta.namespace, meta.name) == wanted
    )


def interval_of(work: ManifestWork, cron_job: str) -> timedelta | None:
    """Returns how often a CronJob of the work starts, None if the work does not say so."""
    for manifest in work.spec.workload.manifests:
        metadata = manifest.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        every = annotations.get(schedule.EVERY_ANNOTATION) if isinstance(annotations, dict) else None
        is_wanted = isinstance(metadata, dict) and metadata.get("name") == cron_job
        if manifest.get("kind") == schedule.CRON_JOB.kind and is_wanted and isinstance(every, str):
            try:
                return timedelta(minutes=schedule.minutes_of(every))
            except ValueError:
                return None
    return None


def age_problem(
    noun: str, observed: datetime | None, interval: timedelta | None, timeout: timedelta, now: datetime
) -> str:
    """Returns why a report or status may not say how the cluster is now, empty if it does.

    `interval` is the time from one to the next, None if that is not known, and `timeout` how long one may take.
    """
    if observed is None:
        return f"The newest {noun} does not say of when it is."
    when = f"{observed:%Y-%m-%dT%H:%M:%SZ}"
    if observed - now > _AHEAD:
        return f"The newest {noun} is of {when}, which is yet to come: a clock is wrong."
    if interval is None:
        return f"The newest {noun} is of {when}, and it is not known how often there is one."
    if now - observed > INTERVALS * interval + timeout:
        hours = interval / timedelta(hours=1)
        interval_text = f"{hours:g} h" if hours >= 1 else f"{interval / timedelta(minutes=1):g} min"
        return f"The newest {noun} is of {when}, and there should be one every {interval_text}."
    return ""


def brief(text: str) -> str:
    """Returns somebody else's text on one line, and cut."""
    return cut(one_line(text), _MAX_TEXT)
