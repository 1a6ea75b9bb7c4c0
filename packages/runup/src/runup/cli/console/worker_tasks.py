"""The work of the console on each cluster: its preflight with the objects that it names, and its update status.

Everything here runs in a worker process and returns values that can be pickled. The reason why a cluster could not be
read is a result, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kubekit.error_types import Terminal
from kubekit.kube.clock import SystemClock
from runup.api.config_v1 import ClusterVersion
from runup.cli.fleet.fleet_members import problem_of
from runup.cli.fleet.preflight_command import evaluate_dump
from runup.console.decide.judgement import Evidence, Judgement, Offered, failed_findings, unknown_judgement
from runup.console.decide.shown_objects import evidence_of, is_secret, objects_to_show
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.request import RequestedUpdate
from runup.evaluation.results import findings_of
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.decide.members import Member
from runup.fleet.decide.trend import steps_of_reports
from runup.preflight.control import stores
from runup.preflight.decide.findings import Findings
from runup.report.report import Report, ReportedResource

if TYPE_CHECKING:
    from kubekit.api.scheme import Resource
    from kubekit.kube.client_sync import SyncClient
    from runup.process.connection import Connection
    from runup.updatestatus.control.status_reading import StatusReading

JSON = dict[str, Any]
# Reports of one cluster whose changes are told; the newest.
_MOST_STEPS = 500


def judge(member: Member, *, connection: Connection, requested_update: RequestedUpdate) -> Judgement:
    """Returns the preflight of a dump or a live cluster, with the objects that its risks name."""
    try:
        if member.dump:
            evaluated = evaluate_dump(member, requested_update, SystemClock().now())
            findings = findings_of(evaluated)
            items = objects_to_show(findings) if findings.completed else ()
            return _judgement_of(evaluated, findings, _evidence_in_dump(Path(member.dump), items, findings))
        return _judge_cluster(member, connection, requested_update)
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return Judgement(findings=failed_findings(problem))


def unjudged_member(_member: Member, problem: str) -> Judgement:
    """Returns the judgement of a cluster whose dump could not be fetched."""
    return unknown_judgement(problem)


def status_error(_member: Member, problem: str) -> str:
    """Returns the status of a cluster whose dump could not be fetched: the reason."""
    return problem


def _judge_cluster(member: Member, connection: Connection, requested_update: RequestedUpdate) -> Judgement:
    """Returns the preflight of a live cluster, with the objects that its risks name. Raises KubeError."""
    to = connection_to(member, connection)
    from runup.target.live import evaluate_cluster

    evaluated = evaluate_cluster(to.config(), requested_update)
    findings = findings_of(evaluated)
    if findings.observed is not None:
        # The report has the cluster's time, but the console counts the age of findings by its own clock.
        findings = msgspec.structs.replace(findings, observed=SystemClock().now())
    items = objects_to_show(findings) if findings.completed else ()
    if not items:
        return _judgement_of(evaluated, findings, ())
    with to.client("serve") as client:
        return _judgement_of(evaluated, findings, tuple(_live_evidence(client, item, findings) for item in items))


def _judgement_of(evaluated: EvaluatedCluster, findings: Findings, evidence: Sequence[Evidence]) -> Judgement:
    """Returns the judgement as it is sent to the web server's process."""
    return Judgement(
        findings=findings,
        notes=evaluated.notes,
        collect=evaluated.collect if evaluated.lacking else "",
        offered=_offered(evaluated.cluster),
        evidence=tuple(evidence),
    )


def _offered(cluster: ClusterVersion | None) -> Offered | None:
    """Returns the updates that the ClusterVersion offers, None for a cluster without one."""
    if cluster is None:
        return None
    status = cluster.status
    available, conditional = tuple(status.available_updates or ()), tuple(status.conditional_updates or ())
    return Offered(status.desired.version, cluster.spec.channel, available, conditional)


def _evidence_in_dump(path: Path, items: Sequence[ReportedResource], findings: Findings) -> tuple[Evidence, ...]:
    """Returns the objects as they are in the dump, which is read once more for them."""
    from runup.dump.documents import identity
    from runup.dump.load import read as read_dump

    if not items:
        return ()
    plurals = {
        resource.plural for item in items if (resource := _resource_of(item)) is not None and not is_secret(item)
    }
    objects: dict[tuple[str, str, str, str], JSON] = {}
    if plurals:
        identities = {_identity_of(item) for item in items}
        dump = read_dump(path, only=tuple(plurals | {"clusterversions"}), any_kubernetes=True)
        objects = {key: obj for obj in dump.objects if (key := identity(obj)) in identities}
    missing = "The dump does not have this object."
    return tuple(evidence_of(item, findings, objects.get(_identity_of(item)), missing) for item in items)


def _identity_of(item: ReportedResource) -> tuple[str, str, str, str]:
    return item.group, item.kind, item.namespace, item.name


def _live_evidence(client: SyncClient, item: ReportedResource, findings: Findings) -> Evidence:
    """Returns an object as the cluster has it now, or why it is not shown."""
    from kubekit.kube import calls
    from kubekit.kube.api_errors import KubeError, NotFound

    if is_secret(item):
        return evidence_of(item, findings, None)
    resource = _resource_of(item)
    if resource is None:
        return evidence_of(item, findings, None, "The console does not know this kind.")
    try:
        obj = client.send(calls.get_raw(resource, item.name, item.namespace if resource.namespaced else ""))
    except NotFound:
        return evidence_of(item, findings, None)
    except (KubeError, msgspec.DecodeError, ValueError) as error:
        return evidence_of(item, findings, None, f"It could not be read: {error}")
    return evidence_of(item, findings, obj)


def _resource_of(item: ReportedResource) -> Resource | None:
    """Returns the resource of a kind that some check reads, None for another."""
    return _resources().get((item.group, item.kind))


@cache
def _resources() -> dict[tuple[str, str], Resource]:
    """Returns each resource that runup reads, by (group, kind)."""
    from runup.api.kinds import resources_by_type
    from runup.checks.catalogue import CHECKS

    resources = [*resources_by_type().values(), *(read for check in CHECKS for read in check.reads)]
    # Of several of one kind the first counts.
    return {(resource.group, resource.kind): resource for resource in reversed(resources)}


def judge_kept(member: Member, *, connection: Connection, store: str, days: int) -> Judgement:
    """Returns the newest kept report of a cluster, and the changes between its reports of the last `days` (0: all)."""
    notes: list[str] = []
    since = SystemClock().now() - timedelta(days=days) if days else None
    reports: list[tuple[str, Any, Report]] = []
    newest: Findings | None = None
    try:
        opened_store = stores.open_store(store, connection.config)
        stored_reports = opened_store.reports_of(member.name)
        for stored_report in stored_reports:
            if since is not None and stored_report.observed < since and stored_report is not stored_reports[-1]:
                continue
            try:
                report = stored_report.report()
            except Terminal as error:
                notes.append(f"left out: {error.message}")
                # The newest report decides: if it cannot be read, no older one takes its place.
                newest = failed_findings(f"its newest report cannot be read: {error.message}")
                continue
            reports.append((member.name, stored_report.observed, report))
            newest = findings_of(EvaluatedCluster(where=member.name, report=report))
            newest = msgspec.structs.replace(newest, observed=newest.observed or stored_report.observed)
    except Terminal as error:
        return unknown_judgement(error.message)
    report_steps = steps_of_reports(reports)
    lost = [*notes, *opened_store.notes()]
    if len(report_steps) > _MOST_STEPS:
        lost.append(f"the newest {_MOST_STEPS} of {len(report_steps)} reports are told")
    findings = newest or failed_findings("the store has no report of it")
    return Judgement(
        findings=findings, notes=tuple(notes), steps=report_steps[-_MOST_STEPS:], history_notes=tuple(lost)
    )


def judge_with_history(
    member: Member, *, connection: Connection, requested_update: RequestedUpdate, store: str, days: int
) -> Judgement:
    """Returns the preflight of a cluster, with the changes between its kept reports."""
    judged = judge(member, connection=connection, requested_update=requested_update)
    from_store = judge_kept(member, connection=connection, store=store, days=days)
    return msgspec.structs.replace(judged, steps=from_store.steps, history_notes=from_store.history_notes)


def status_of(member: Member, *, connection: Connection) -> StatusReading | str:
    """Returns the update status of a cluster, or why it could not be read."""
    try:
        return msgspec.structs.replace(_read_status(member, connection), read=None)
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return problem


def _read_status(member: Member, connection: Connection) -> StatusReading:
    """Returns the update status of a dump or a live cluster. Raises KubeError or Terminal."""
    if member.dump:
        from runup.updatestatus.control import status_files

        return status_files.dump(member.dump, SystemClock().now(), None)
    from runup.updatestatus.control import live_status

    with connection_to(member, connection).client("upgrade-status") as client:
        return live_status.read(client, client.now, whole=False)
