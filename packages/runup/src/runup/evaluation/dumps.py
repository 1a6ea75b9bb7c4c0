"""Evaluates dumps: each at its own time, and what a dump lacks is Unknown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.error_types import InputError, Terminal
from runup import __version__
from runup.advice.decide.acceptance import Accepted, accepted
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion, Infrastructure
from runup.checks.catalogue import CHECKS
from runup.checks.control.logged_checks import run_logged
from runup.checks.decide.alert_check import alert_check
from runup.checks.decide.engine import CheckOutcome, could_not_tell
from runup.checks.decide.model import Check, Context, Snapshot
from runup.checks.decide.stored_manifests import helm_checks
from runup.checks.decide.target_catalogs import SWITCHED_OFF, Catalogs
from runup.dump.dump_files import PACKED, BadDump, cluster_name
from runup.dump.load import Dump, time_of_dump, time_of_unusable
from runup.dump.load import read as read_dump
from runup.evaluation import missing as missing_kinds
from runup.evaluation import request as update_requests
from runup.evaluation.evaluate import EvaluatedCluster, OutcomeOf, evaluate
from runup.facts.facts import Facts
from runup.facts.manifest_texts import helm_manifests_of_dump
from runup.facts.of_dump import acceptance_records, plurals_to_read, snapshot_of_dump
from runup.facts.target_release import python_checks, with_kubernetes
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.process.names import operator_namespace
from runup.report.report import Report
from runup.rules.hosted_side import notes_on


def evaluate_dump(path: Path, requested: update_requests.RequestedUpdate, now: datetime) -> EvaluatedCluster:
    """Evaluates the dump at `path`, at the dump's own time; an error becomes the result's `problem`."""
    extra = python_checks()
    try:
        dump = read_dump(path, only=plurals_to_read((*CHECKS, *extra), requested.release), any_kubernetes=True)
        evaluate_one = _evaluate_openshift if dump.has_cluster_version else _evaluate_kubernetes
        moment = time_of_dump(dump)
        outcome_of = run_logged if moment else _outcome_without_time
        extra = (*extra, *helm_checks(helm_manifests_of_dump(dump.objects)))
        if dump.style == "inspect" and dump.has_cluster_version:
            extra = (*extra, alert_check(dump.alerts, dump.alerts_problem))
        evaluated = evaluate_one(dump, requested, moment or now, outcome_of, extra=extra)
        if dump.now is None:
            evaluated = replace(evaluated, notes=(*evaluated.notes, _time_note(moment)))
        collect = missing_kinds.command(path, evaluated.lacking)
        # The file names the cluster, and not the folder in its archive, which is often called the same in all.
        name = cluster_name(path) if path.is_file() and path.name.endswith(PACKED) else evaluated.where
        return replace(evaluated, where=name, collect=collect, of_dump=True).identified()
    except (Terminal, InputError, codec.DecodeError) as error:
        problem = str(error)
    return EvaluatedCluster(where=cluster_name(path), problem=problem, failed_at=time_of_unusable(path, now))


def _time_note(moment: datetime | None) -> str:
    if moment is None:
        return "The dump shows no time, so checks that depend on the time are unknown."
    return f"The dump does not record its time; the newest time in its objects counts: {moment:%Y-%m-%dT%H:%M:%SZ}."


_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def _outcome_without_time(check: Check, snapshot: Snapshot, context: Context) -> CheckOutcome:
    """Returns the outcome of a check if it is the same at every time, else that it is unknown."""
    early, late = (run_logged(check, snapshot, replace(context, now=time)) for time in (_EARLIEST, _LATEST))
    decisions = [
        (outcome.result, [(each.name, each.applies, each.severity, each.resources) for each in outcome.findings])
        for outcome in (early, late)
    ]
    return early if decisions[0] == decisions[1] else could_not_tell(check, "the dump shows no time")


def _evaluate_openshift(
    dump: Dump,
    requested: update_requests.RequestedUpdate,
    now: datetime,
    outcome_of: OutcomeOf,
    *,
    extra: Sequence[Check],
) -> EvaluatedCluster:
    """Evaluates a dump with a ClusterVersion; `extra` are added to the built-in checks.

    Raises InputError, Terminal and DecodeError if the update or the cluster's objects cannot be read.
    """
    cluster = dump.decoded_cluster_version()
    raw_gate = dump.one("config.openshift.io", "FeatureGate", "cluster")
    target = update_requests.target_version(
        requested.target, requested.source, release=requested.release, image=requested.image, cluster=cluster
    )
    request, checks = update_requests.release_request(
        with_kubernetes(requested.release, target),
        cluster,
        codec.convert(FeatureGate, raw_gate) if raw_gate else None,
        source=update_requests.parse_version(requested.source or cluster.status.desired.version, "source"),
        target=update_requests.parse_version(target, "target"),
        target_version=target,
        extra=extra,
        image=requested.image,
        namespace=operator_namespace(),
        engine_version=__version__,
    )
    facts = Facts(snapshot=snapshot_of_dump(dump, update_requests.reads_of(request, checks)))
    if requested.access is not None and (requested.catalogs or requested.reads_catalogs):
        # The only part of a dump's evaluation that talks to anyone, and loads what that takes.
        from runup.facts import catalog_images

        context, access, reads = request.context(facts, now), requested.access, requested.reads_catalogs
        catalogs = catalog_images.read(requested.catalogs, facts.snapshot, context, access, reads=reads)
        facts = replace(facts, catalogs=catalogs)
    elif requested.access is not None:
        facts = replace(facts, catalogs=Catalogs(why=SWITCHED_OFF))
    report = evaluate(facts, request, checks, now, outcome_of=outcome_of)
    hosted: tuple[str, ...] = ()
    # An object that cannot be decoded is reported by the checks that read it.
    with suppress(codec.DecodeError):
        found = dump.one("config.openshift.io", "Infrastructure", "cluster")
        hosted = notes_on(codec.convert(Infrastructure, found).status) if found else ()
    return EvaluatedCluster(
        where=dump.name,
        report=report,
        cluster=cluster,
        accepted=accepted(cluster, acceptance_records(dump), now),
        notes=(*dump.problems, *hosted),
        lacking=missing_kinds.kinds(report, dump.collected.absent),
    )


def _evaluate_kubernetes(
    dump: Dump,
    requested: update_requests.RequestedUpdate,
    now: datetime,
    outcome_of: OutcomeOf,
    *,
    extra: Sequence[Check],
) -> EvaluatedCluster:
    """Evaluates a dump without a ClusterVersion, for an update of Kubernetes.

    Raises InputError and Terminal if the update cannot be determined.
    """
    request, checks = update_requests.kubernetes_request(
        update_requests.requested_kubernetes_update(requested, dump.kubernetes.version),
        extra=extra,
        namespace=operator_namespace(),
        engine_version=__version__,
    )
    report = evaluate(
        Facts(snapshot=snapshot_of_dump(dump, update_requests.reads_of(request, checks))),
        request,
        checks,
        now,
        outcome_of=outcome_of,
    )
    system = dump.one("", "Namespace", "kube-system")
    return EvaluatedCluster(
        where=dump.name,
        report=report,
        known_id=codec.convert(Namespace, system).metadata.uid if system else "",
        notes=(*dump.problems, *([] if requested.source else dump.kubernetes.notes)),
        lacking=missing_kinds.kinds(report, dump.collected.absent),
    )


def evaluate_for_targets(
    path: Path, targets: Sequence[str], now: datetime
) -> tuple[ClusterVersion | None, History, Accepted]:
    """Evaluates a dump once for each target version. Raises InputError if it cannot be evaluated for one of them.

    Returns its ClusterVersion (None if it has none), the reports as an operator stores them, and the accepted names.
    """
    results = [evaluate_dump(path, update_requests.RequestedUpdate(target=target), now) for target in targets]
    reports: list[Report] = []
    for result in results:
        if result.report is None:
            raise InputError(result.problem)
        reports.append(result.report)
    return results[0].cluster, History(reports=tuple(reports)), results[0].accepted


def read_stored_reports(path: Path) -> tuple[ClusterVersion | None, History, Accepted]:
    """Returns a dump's ClusterVersion, the reports that its operator had stored, and the accepted names.

    ClusterVersion is None if the dump has none. Raises InputError if `path` is not a dump or cannot be decoded.
    """
    try:
        dump = read_dump(path, only=("clusterversions", "configmaps"), any_kubernetes=True)
        # By name only: the operator's namespace differs between installations.
        earlier_reports = [
            obj for obj in dump.objects if (obj["kind"], obj["metadata"]["name"]) == ("ConfigMap", stored_reports.NAME)
        ]
        reports = stored_reports.read(codec.convert(ConfigMap, earlier_reports[0]) if earlier_reports else None)
        if not dump.has_cluster_version:
            return None, reports, {}
        cluster = dump.decoded_cluster_version()
        return cluster, reports, accepted(cluster, acceptance_records(dump))
    except BadDump as error:
        raise InputError(error.message) from error
    except codec.DecodeError as error:
        raise InputError(f"{path}: {error}") from error
