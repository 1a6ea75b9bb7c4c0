"""The clusters of a hub of Open Cluster Management, with the reports or statuses that have travelled to it. Pure.

In: the hub's ManagedClusters, and the ManifestWorks of the add-on. Out: a member for each cluster, with its newest
report or status, else with why it is missing; and with the reasons for which it may no longer hold
(docs/decisions/0106, 0111). A cluster that is silent, or whose report is old, is never fine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from kubekit.api.conditions import find
from kubekit.lang.text import count, cut, one_line
from runup.api import hub_v1
from runup.fleet.decide import newest_status, status_schedule
from runup.fleet.decide.hub_addon import NAMES
from runup.fleet.decide.members import BadFleet, Doubt, Member
from runup.preflight.decide import newest_report, schedule
from runup.preflight.decide.cluster_run import NAMESPACE
from runup.report.report import BadReport, Kind, Report

AVAILABLE = "ManagedClusterConditionAvailable"
APPLIED = "Applied"
SILENT = "ClusterNotAvailable"
"""Risk of a cluster that its hub does not hear of: what is known about it may no longer hold."""
OLD = "PreflightReportOld"
"""Risk of a cluster whose newest report is older than three intervals of its schedule, or of no time that is known."""
STATUS_OLD = "StatusOld"
"""Name of the doubt about a status that is older than three of its intervals."""
INCOMPLETE = "PreflightReportIncomplete"
"""Risk of a cluster whose report does not have the results that it must have."""
UNIDENTIFIED = "PreflightReportUnidentified"
"""Risk of a cluster whose report does not say about which cluster it is, where the hub could compare that."""
_NOT_ACCEPTED = "the hub has not accepted it (spec.hubAcceptsClient)"
_NO_ID = "The newest report does not identify its cluster: an older runup wrote it."
_KIND_OF_ADDON: Mapping[str, Kind] = {NAMES["openshift"]: "OpenShift", NAMES["kubernetes"]: "Kubernetes"}
# The claims that hold the ID: of ClusterVersion, and the UID of namespace kube-system (KEP-2149, ClusterProperty).
_ID_CLAIMS: Mapping[Kind, str] = {"OpenShift": "id.openshift.io", "Kubernetes": "id.k8s.io"}
INTERVALS = 3
# Clocks of two machines that nobody keeps together.
_AHEAD = timedelta(minutes=10)
_MAX_TEXT = 400


def members_with_reports(
    clusters: Iterable[hub_v1.ManagedCluster],
    works: Iterable[hub_v1.ManifestWork],
    now: datetime,
    *,
    unreadable: Mapping[str, str],
    target: str = "",
) -> tuple[Member, ...]:
    """Returns a member for each cluster.

    `unreadable` says of clusters why an object about them cannot be read. `target` is the version that the reports have
    to be about; those about another one say nothing of it.
    """

    def evaluate(cluster: hub_v1.ManagedCluster, its_works: Sequence[hub_v1.ManifestWork]) -> Member:
        member = partial(Member, name=cluster.metadata.name, labels=cluster.metadata.labels)
        if not cluster.spec.hub_accepts_client:
            return member(problem="; ".join(filter(None, (_NOT_ACCEPTED, silence(cluster)))))
        try:
            found = [
                (newest_report.unpack(value), work)
                for work in works_in_place(cluster, its_works)
                if (value := value_in(work, newest_report.NAME, newest_report.REPORT)) is not None
            ]
        except BadReport as error:
            return member(problem=f"its report cannot be used: {brief(error.message)}")
        if not found:
            why = why_nothing_travelled(cluster, its_works) or "it has no report yet"
            return member(problem="; ".join(filter(None, (why, silence(cluster)))))
        report, work = max(found, key=lambda pair: pair[0].observed_time or datetime.min.replace(tzinfo=UTC))
        if problem := foreign_problem(cluster, work, report):
            return member(problem=problem)
        if target and report.target_version != target:
            return member(problem=f"its newest report is about the update to {report.target_version}, not to {target}")
        interval, timeout = interval_of(work, schedule.NAME), timedelta(seconds=schedule.TIMEOUT_S)
        age = age_problem("report", report.observed_time, interval=interval, timeout=timeout, now=now)
        is_unidentified = not report.cluster_id and bool(claimed_id(cluster, report.cluster_kind))
        doubts = (
            *silence_doubts(cluster),
            *((Doubt(OLD, age),) if age else ()),
            *((Doubt(UNIDENTIFIED, _NO_ID),) if is_unidentified else ()),
            *((Doubt(INCOMPLETE, lacks),) if (lacks := _incompleteness(report)) else ()),
        )
        return member(report=report, doubts=doubts)

    return evaluate_each(clusters, works, unreadable, evaluate)


def members_with_status(
    clusters: Iterable[hub_v1.ManagedCluster],
    works: Iterable[hub_v1.ManifestWork],
    now: datetime,
    *,
    unreadable: Mapping[str, str],
) -> tuple[Member, ...]:
    """Returns a member for each cluster; `unreadable` says about clusters why an object about them cannot be read."""

    def evaluate(cluster: hub_v1.ManagedCluster, its_works: Sequence[hub_v1.ManifestWork]) -> Member:
        member = partial(Member, name=cluster.metadata.name, labels=cluster.metadata.labels)
        if not cluster.spec.hub_accepts_client:
            return member(problem="; ".join(filter(None, (_NOT_ACCEPTED, silence(cluster)))))
        try:
            found = [
                (newest_status.unpack(value), work)
                for work in works_in_place(cluster, its_works)
                if (value := value_in(work, newest_status.NAME, newest_status.STATUS)) is not None
            ]
        except newest_status.BadStatus as error:
            return member(problem=f"its status cannot be used: {brief(error.message)}")
        if not found:
            why = why_nothing_travelled(cluster, its_works) or _why_no_status(its_works)
            return member(problem="; ".join(filter(None, (why, silence(cluster)))))
        status, work = max(found, key=lambda pair: pair[0].observed_time)
        if problem := _other_id_problem(cluster, "OpenShift", status.cluster_id, "status"):
            return member(problem=problem)
        interval, timeout = interval_of(work, status_schedule.NAME), timedelta(seconds=status_schedule.TIMEOUT_S)
        age = age_problem("status", status.observed_time, interval=interval, timeout=timeout, now=now)
        doubts = (*silence_doubts(cluster), *((Doubt(STATUS_OLD, age),) if age else ()))
        return member(status=status, doubts=doubts)

    return evaluate_each(clusters, works, unreadable, evaluate)


def _why_no_status(works: Sequence[hub_v1.ManifestWork]) -> str:
    """Returns why nothing is known although the add-on is applied, in the agent's words where it has some."""
    read = [each for work in works for each in manifests_of(work, newest_status.NAME)]
    for manifest in read:
        for kind in ("Available", "StatusFeedbackSynced"):
            condition = find(manifest.conditions, kind)
            if condition is not None and condition.status != "True":
                return f"its agent cannot read ConfigMap {newest_status.NAME}: {brief(condition.message)}"
    if read:
        return "it has no status yet"
    if any(work.metadata.labels.get(hub_v1.ADDON_LABEL) == NAMES["kubernetes"] for work in works):
        return "it is not an OpenShift: the add-on reports no status of it; `runup fleet status --contexts` does"
    return "its add-on takes no status: print it again with `runup fleet addon`, not with --status-every never"


def evaluate_each(
    clusters: Iterable[hub_v1.ManagedCluster],
    works: Iterable[hub_v1.ManifestWork],
    unreadable: Mapping[str, str],
    evaluate: Callable[[hub_v1.ManagedCluster, Sequence[hub_v1.ManifestWork]], Member],
) -> tuple[Member, ...]:
    """Returns the member that `evaluate` makes of each cluster and its works; an `unreadable` one is not evaluated."""
    by_cluster: dict[str, list[hub_v1.ManifestWork]] = defaultdict(list)
    for work in works:
        by_cluster[work.metadata.namespace].append(work)
    members = []
    for cluster in clusters:
        name = cluster.metadata.name
        if problem := unreadable.get(name):
            members.append(Member(name=name, labels=cluster.metadata.labels, problem=problem))
        else:
            members.append(evaluate(cluster, by_cluster[name]))
    return tuple(members)


def clusters_of_set(
    clusters: Sequence[hub_v1.ManagedCluster], found: hub_v1.ManagedClusterSet
) -> tuple[hub_v1.ManagedCluster, ...]:
    """Returns the clusters of a set. Raises BadFleet if it has none, or chooses them in a way that is not known."""
    name, selector = found.metadata.name, found.spec.cluster_selector
    if selector.selector_type == "ExclusiveClusterSetLabel":
        chosen = tuple(each for each in clusters if each.metadata.labels.get(hub_v1.CLUSTER_SET_LABEL) == name)
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


def silence_doubts(cluster: hub_v1.ManagedCluster) -> tuple[Doubt, ...]:
    """Returns the doubt about a cluster that is silent, none about another one."""
    silent = silence(cluster)
    return (Doubt(SILENT, f"The hub does not hear of the cluster: {silent}."),) if silent else ()


def silence(cluster: hub_v1.ManagedCluster) -> str:
    """Returns why the availability of the cluster is unknown, empty if its agent reports it as available."""
    available = find(cluster.status.conditions, AVAILABLE)
    if available is None:
        return "its agent has not registered yet"
    if available.status == "True":
        return ""
    since = f" since {available.last_transition_time:%Y-%m-%dT%H:%M:%SZ}" if available.last_transition_time else ""
    return f"it is not available{since} ({brief(available.message or available.reason or 'no reason is given')})"


def why_nothing_travelled(cluster: hub_v1.ManagedCluster, works: Sequence[hub_v1.ManifestWork]) -> str:
    """Returns why nothing of the add-on can have travelled, empty if something could."""
    if not cluster.spec.hub_accepts_client:
        return _NOT_ACCEPTED
    if not works:
        return "no preflight is scheduled there: the add-on is not in its namespace of the hub; a Placement chooses it"
    for work in works:
        applied = find(work.status.conditions, APPLIED)
        if applied is None or applied.status != "True":
            why = brief(applied.message) if applied is not None else "its agent has not said anything of it"
            return f"the schedule is not applied there: {why}"
    return ""


def works_in_place(
    cluster: hub_v1.ManagedCluster, works: Sequence[hub_v1.ManifestWork]
) -> tuple[hub_v1.ManifestWork, ...]:
    """Returns the works without those that could not be applied: their values are from before.

    An agent applies its works again and again, and reports an API server that is gone as one more failure to apply. The
    works of a cluster that is not available therefore stay, and the doubt about the cluster qualifies their values.
    """
    if silence(cluster):
        return tuple(works)
    conditions = ((work, find(work.status.conditions, APPLIED)) for work in works)
    return tuple(work for work, applied in conditions if applied is None or applied.status == "True")


def foreign_problem(cluster: hub_v1.ManagedCluster, work: hub_v1.ManifestWork, report: Report) -> str:
    """Returns why a report is not of this cluster, empty if it may be: its kind and its ID must be the cluster's."""
    of_addon = _KIND_OF_ADDON.get(work.metadata.labels.get(hub_v1.ADDON_LABEL, ""))
    if of_addon is not None and report.cluster_kind != of_addon:
        return f"its report is about a cluster of {report.cluster_kind}, and its add-on is the one for {of_addon}"
    return _other_id_problem(cluster, report.cluster_kind, report.cluster_id, "report")


def _incompleteness(report: Report) -> str:
    """Returns why it is not known whether risks apply although the report has none; empty if it is known."""
    if report.execution_status != "completed" or report.risks:
        return ""
    if report.risks_omitted:
        return f"The newest report leaves out {count(report.risks_omitted, 'risk')}."
    return "" if report.checks else "The newest report has the result of no check."


def _other_id_problem(cluster: hub_v1.ManagedCluster, kind: Kind, cluster_id: str, noun: str) -> str:
    claimed = claimed_id(cluster, kind)
    if not claimed or not cluster_id or claimed == cluster_id:
        return ""
    ids = f"{brief(cluster_id)}, and ManagedCluster {cluster.metadata.name} claims {brief(claimed)}"
    return f"its {noun} is of another cluster: its ID is {ids}"


def claimed_id(cluster: hub_v1.ManagedCluster, kind: Kind) -> str:
    """Returns the ID that the ManagedCluster claims for a cluster of that kind, empty if it claims none."""
    return next((claim.value for claim in cluster.status.cluster_claims if claim.name == _ID_CLAIMS[kind]), "")


def value_in(work: hub_v1.ManifestWork, config_map: str, name: str) -> str | None:
    """Returns the value that the agent has read out of one of the add-on's ConfigMaps, or None."""
    for manifest in manifests_of(work, config_map):
        for value in manifest.status_feedback.values:
            if value.name == name:
                return value.field_value.string
    return None


def manifests_of(work: hub_v1.ManifestWork, config_map: str) -> tuple[hub_v1.ManifestStatus, ...]:
    """Returns what the agent says about one of the add-on's ConfigMaps: one status, or none."""
    wanted = ("", "ConfigMap", NAMESPACE, config_map)
    return tuple(
        each
        for each in work.status.resource_status.manifests
        if (meta := each.resource_meta) and (meta.group, meta.kind, meta.namespace, meta.name) == wanted
    )


def interval_of(work: hub_v1.ManifestWork, cron_job: str) -> timedelta | None:
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
        return f"The newest {noun} does not state its time."
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
    """Returns an external text on one line, shortened."""
    return cut(one_line(text), _MAX_TEXT)
