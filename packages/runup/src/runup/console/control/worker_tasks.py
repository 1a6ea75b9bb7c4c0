"""The work of the console on each cluster: its preflight with the objects that it names, its status and its policy.

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
from msgspec.structs import replace

from kubekit.error_types import InputError, Terminal
from kubekit.kube.clock import SystemClock
from runup.console.decide.board import Evaluation, Evidence, Offered, failed_findings, unknown_evaluation
from runup.console.decide.outlook import Outlook
from runup.console.decide.shown_objects import evidence_of, is_secret, objects_to_show
from runup.evaluation.evaluate import EvaluatedCluster
from runup.evaluation.request import RequestedUpdate
from runup.evaluation.results import findings_of
from runup.fleet.control.cluster_sources import connection_to
from runup.fleet.control.fleet_members import problem_of
from runup.fleet.control.member_status import read_status
from runup.fleet.control.readings import evaluate_dump
from runup.fleet.decide.members import Member
from runup.fleet.decide.trend import steps_of_reports
from runup.preflight.control import stores
from runup.preflight.decide.findings import Findings
from runup.report.report import Report, ReportedResource

if TYPE_CHECKING:
    from kubekit.api.scheme import Resource
    from kubekit.kube.client_sync import SyncClient
    from runup.process.connection import Connection
    from runup.rollout.control.policy_reading import PolicyReading
    from runup.updatestatus.control.status_reading import StatusReading

JSON = dict[str, Any]
# Reports of one cluster whose changes are reported; the newest.
_MOST_STEPS = 500


def evaluate(member: Member, *, connection: Connection, requested_update: RequestedUpdate) -> Evaluation:
    """Returns the preflight of a dump or a live cluster, with the objects that its risks name."""
    evidence: list[Evidence] = []
    try:
        if member.dump:
            evaluated = evaluate_dump(member, requested_update, SystemClock().now())
            findings = findings_of(evaluated)
            if items := objects_to_show(findings) if findings.completed else ():
                objects = _objects_in_dump(Path(member.dump), items)
                missing = "The dump does not have this object."
                evidence = [evidence_of(item, findings, objects.get(_identity(item)), missing) for item in items]
        else:
            to = connection_to(member, connection)
            from runup.target.live import evaluate_cluster

            evaluated = evaluate_cluster(to.config(), requested_update)
            findings = findings_of(evaluated)
            if findings.observed is not None:
                # The report has the cluster's time, but the console counts the age of findings by its own clock.
                findings = replace(findings, observed=SystemClock().now())
            if items := objects_to_show(findings) if findings.completed else ():
                with to.client("serve") as client:
                    evidence = [_live_evidence(client, item, findings) for item in items]
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return Evaluation(findings=failed_findings(problem))
    offered = None
    if (cluster := evaluated.cluster) is not None:
        status = cluster.status
        available, conditional = tuple(status.available_updates or ()), tuple(status.conditional_updates or ())
        offered = Offered(
            origin=status.desired.version,
            channel=cluster.spec.channel,
            available=available,
            conditional=conditional,
            channels=status.desired.channels,
            upstream=cluster.spec.upstream,
        )
    return Evaluation(
        findings=findings,
        notes=evaluated.notes,
        collect=evaluated.collect if evaluated.lacking else "",
        offered=offered,
        evidence=tuple(evidence),
    )


Identity = tuple[str, str, str, str]


def _objects_in_dump(path: Path, items: Sequence[ReportedResource]) -> dict[Identity, JSON]:
    """Returns those of the objects that are in the dump, which is read once more for them; without secrets."""
    from runup.dump.documents import identity
    from runup.dump.load import read as read_dump

    resources = [_resource_of(item) for item in items if not is_secret(item)]
    plurals = {resource.plural for resource in resources if resource is not None}
    if not plurals:
        return {}
    dump = read_dump(path, only=tuple(plurals | {"clusterversions"}), any_kubernetes=True)
    identities = {_identity(item) for item in items}
    return {key: obj for obj in dump.objects if (key := identity(obj)) in identities}


def _identity(item: ReportedResource) -> Identity:
    return item.group, item.kind, item.namespace, item.name


def unevaluated_member(_member: Member, problem: str) -> Evaluation:
    """Returns the evaluation of a cluster whose dump could not be fetched."""
    return unknown_evaluation(problem)


def status_error(_member: Member, problem: str) -> str:
    """Returns the status of a cluster whose dump could not be fetched: the reason."""
    return problem


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
    """Returns the resource of a kind that runup or some check reads, None for another."""
    return _known_resources().get((item.group, item.kind))


@cache
def _known_resources() -> dict[tuple[str, str], Resource]:
    from runup.api.kinds import resources_by_type
    from runup.checks.catalogue import CHECKS

    resources = [*resources_by_type().values(), *(read for check in CHECKS for read in check.reads)]
    # Of several of one kind the first counts.
    return {(resource.group, resource.kind): resource for resource in reversed(resources)}


def evaluate_kept(member: Member, *, connection: Connection, store: str, days: int) -> Evaluation:
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
            newest = replace(newest, observed=newest.observed or stored_report.observed)
    except Terminal as error:
        return unknown_evaluation(error.message)
    report_steps = steps_of_reports(reports)
    lost = [*notes, *opened_store.notes()]
    if len(report_steps) > _MOST_STEPS:
        lost.append(f"only the newest {_MOST_STEPS} of {len(report_steps)} reports are shown")
    findings = newest or failed_findings("the store has no report of it")
    return Evaluation(
        findings=findings, notes=tuple(notes), steps=report_steps[-_MOST_STEPS:], history_notes=tuple(lost)
    )


def evaluate_with_history(
    member: Member, *, connection: Connection, requested_update: RequestedUpdate, store: str, days: int
) -> Evaluation:
    """Returns the preflight of a cluster, with the changes between its kept reports."""
    evaluated = evaluate(member, connection=connection, requested_update=requested_update)
    from_store = evaluate_kept(member, connection=connection, store=store, days=days)
    return replace(evaluated, steps=from_store.steps, history_notes=from_store.history_notes)


def outlook_of(member: Member, *, connection: Connection) -> Outlook | str:
    """Returns the forecast of a cluster's update and the recorded steps of its nodes, or why they are not known."""
    from runup.dump.dump_files import BadDump
    from runup.rehearse.control import drain_source
    from runup.rehearse.decide import update_forecast

    try:
        if member.dump:
            source = drain_source.read_dump_objects(Path(member.dump), with_status=True)
        else:
            with connection_to(member, connection).client("serve") as client:
                source = drain_source.read_cluster_objects(client, with_status=True, with_events=True)
        now = source.now or SystemClock().now()
        result, cluster, slow = drain_source.forecast_of(source, now, None)
    except (BadDump, InputError) as error:
        return error.message
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return problem
    history = source.cluster_version.status.history if source.cluster_version is not None else ()
    under_way = update_forecast.nodes_under_way(
        cluster.pools, cluster.nodes, slow, now, history=history, openshift=source.openshift
    )
    return Outlook(
        now=now,
        forecast=result,
        slow=slow,
        under_way=under_way,
        events=source.node_events,
        why_no_events=source.why_no_events,
        notes=source.notes,
    )


def status_of(member: Member, *, connection: Connection) -> StatusReading | str:
    """Returns the update status of a cluster, or why it could not be read."""
    try:
        return replace(read_status(member, connection), read=None)
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return problem


def policy_of(member: Member, *, connection: Connection) -> PolicyReading | str:
    """Returns the update policy of a cluster with its runs, or why they are not known."""
    from runup.rollout.control.policy_reading import read_policy

    if member.dump:
        return "an update policy is read from a live cluster"
    try:
        with connection_to(member, connection).client("serve") as client:
            return read_policy(client)
    except InputError as error:
        return error.message
    except Exception as error:
        problem = problem_of(member, error)
        if problem is None:
            raise
        return problem
