"""`runup preflight schedule`: makes, shows and removes the CronJob by which a cluster checks itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import CronJob, Job
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, NotFound
from kubekit.lang.text import count
from kubekit.lang.version import Version, VersionError
from kubekit.rules.version_skew import is_kubernetes, version_of
from runup.checks.catalogue.own_rights import own_rights, rights_without_clusterversion
from runup.cli.errors import CommandError
from runup.cli.output import write
from runup.cli.render.text import Output, err, machine, out
from runup.preflight.control import cluster_runs, kept_reports
from runup.preflight.decide import channel_target, cluster_run, schedule
from runup.preflight.decide.cluster_run import NAMESPACE, Checking, namespace_object
from runup.preflight.decide.kept_history import LastScheduled, last_scheduled
from runup.preflight.decide.schedule import Schedule
from runup.target.in_cluster import cluster_version, image_for_job

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.config import ClusterConfig
    from runup.process.connection import Connection

EXIT_OK, EXIT_FAILED, EXIT_NEWS = 0, 1, 2
_NOT_SCHEDULED = "no preflight is scheduled; schedule one: runup preflight schedule --every 24h"
_MAX_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options as typed."""

    every: str
    to: str
    to_channel: str
    image: str
    remove: bool
    output: str | None
    inner_registries: tuple[str, ...] = ()


def run(connection: Connection, flags: Flags) -> int:
    """Makes, removes or shows the schedule, and returns the exit code: 2 if the last run found something new."""
    with connection.client("preflight") as client:
        if flags.remove:
            kinds, monitored = (schedule.CRON_JOB, *cluster_run.KINDS), cluster_runs.has_monitoring(client)
            labelled, refused = _labelled_objects(client, kinds, monitored=monitored)
            remaining = (*refused, *cluster_runs.delete_all(client, schedule.deletions(labelled)))
            write(_not_removed_lines(remaining))
            removed = f"the schedule was removed; the reports stay in namespace {NAMESPACE}"
            write([] if remaining else [out(f"{removed if labelled else 'no preflight is scheduled'}\n")])
            return EXIT_FAILED if remaining else EXIT_OK
        if flags.every:
            return _make_schedule(client, connection.config(), flags)
        cron_job = _cron_job(client)
        if cron_job is None:
            raise CommandError(_NOT_SCHEDULED)
        last_run = last_scheduled(kept_reports.read_kept(client))
        jobs = client.list_all(Job, NAMESPACE, label_selector=f"{schedule.SCHEDULED_LABEL}=true")[0]
    # The newest Job may have failed and left no report: a pod that never ran, a process that was killed.
    newest = max(jobs, key=lambda job: str(job.metadata.creation_timestamp), default=None)
    end = find(newest.status.conditions, "Failed") if newest is not None else None
    failed = ""
    if newest is not None and end is not None and end.status == "True":
        has_report = last_run is not None and last_run.id.startswith(f"{newest.metadata.name}-")
        failed = "" if has_report else f"Job {newest.metadata.name} failed ({end.reason}): {end.message}"
    if failed or (last_run is not None and last_run.error):
        code = EXIT_FAILED
    else:
        code = EXIT_NEWS if last_run is not None and last_run.news else EXIT_OK
    if not flags.output:
        write([out(_schedule_text(cron_job, last_run, failed))])
        return code
    annotations = cron_job.metadata.annotations
    last = last_run and {
        "id": last_run.id,
        "time": _time_text(last_run.time),
        "target": last_run.target_version,
        "risks": last_run.risks,
        "new": list(last_run.new),
        **({"grown": codec.to_dict(last_run.grown)} if last_run.grown else {}),
        "error": last_run.error,
    }
    data = {
        "every": annotations.get(schedule.EVERY_ANNOTATION, ""),
        "schedule": cron_job.spec.schedule,
        "target": annotations.get(schedule.TARGET_ANNOTATION, ""),
        "suspended": cron_job.spec.suspend,
        "last": last,
        "failed": failed,
        "exitCode": code,
    }
    write([out(machine(data, flags.output))])
    return code


def _make_schedule(client: SyncClient, config: ClusterConfig, flags: Flags) -> int:
    """Creates or changes the CronJob with its account, and returns the exit code."""
    cron_job = _cron_job(client)
    try:
        cron = schedule.kept_cron(cron_job, flags.every) or schedule.cron_of(flags.every, client.now())
    except ValueError as error:
        raise CommandError(f"--every {error}") from error
    new_schedule = Schedule(
        every=flags.every,
        cron=cron,
        checking=_checking_of(client, flags),
        rights=rights_without_clusterversion() if cluster_version(client) is None else own_rights(),
        # Reports are kept under the name of the context, as elsewhere.
        cluster=config.context or config.address,
    )
    monitored = cluster_runs.has_monitoring(client)
    cluster_runs.apply_all(client, (namespace_object(),))
    # Before the CronJob: its account may change the ConfigMaps, and not create one.
    kept_reports.ensure(client)
    kept_reports.ensure_series(client)
    objects = schedule.objects(new_schedule, monitored=monitored)
    cluster_runs.apply_all(client, objects)
    # Without the Jobs: the CronJob's have the label too, and one of them may run.
    kinds = (schedule.CRON_JOB, *(kind for kind in cluster_run.KINDS if kind != cluster_run.JOB))
    labelled, refused = _labelled_objects(client, kinds, monitored=monitored)
    remaining = (*refused, *cluster_runs.delete_all(client, schedule.deletions_of_unused(labelled, objects)))
    text = f"a preflight of {new_schedule.target} runs every {flags.every} ({cron} UTC), first within minutes\n"
    if not monitored:
        text += "no alert is made: the cluster serves no PrometheusRule (docs/how-to/preflight-in-cluster.md has it)\n"
    write([out(text), *_not_removed_lines(remaining)])
    return EXIT_FAILED if remaining else EXIT_OK


def _checking_of(client: SyncClient, flags: Flags) -> Checking:
    """Returns what the CronJob's process does. Raises CommandError or Terminal for a target that cannot be checked."""
    to, cluster = flags.to, cluster_version(client)
    channel = "" if to else flags.to_channel or channel_target.LATEST
    if not to:
        # Chosen again at each run; asked here too, so that a channel without releases is reported at once.
        channel_target.newest(cluster, channel)
    elif cluster is None and is_kubernetes(to):
        to = str(version_of(to))
    else:
        try:
            Version(to)
        except VersionError as error:
            raise CommandError(f"--to: {error}") from error
    return Checking(
        image=image_for_job(flags.image),
        target_version=to,
        target_channel=channel,
        user=cluster_runs.user_of(client),
        inner_registries=flags.inner_registries,
    )


def _labelled_objects(
    client: SyncClient, kinds: tuple[Resource, ...], *, monitored: bool
) -> tuple[list[tuple[Resource, dict[str, Any]]], list[str]]:
    """Returns the schedule's objects (kind and metadata), and which kinds may not be listed, with why."""
    labelled, refused = list[tuple[Resource, dict[str, Any]]](), list[str]()
    for kind in (*((schedule.PROMETHEUS_RULE,) if monitored else ()), *kinds):
        try:
            labelled += [
                (kind, metadata)
                for metadata in cluster_runs.labelled_metadata(client, kind, f"{schedule.SCHEDULED_LABEL}=true")
            ]
        except Forbidden as error:
            refused.append(f"any {kind.kind} labelled {schedule.SCHEDULED_LABEL}=true: {error}")
    return labelled, refused


def _not_removed_lines(remaining: Iterable[str]) -> list[Output]:
    return [err(f"could not be removed: {problem}\n") for problem in remaining]


def _cron_job(client: SyncClient) -> CronJob | None:
    try:
        return client.send(calls.get(CronJob, schedule.NAME, NAMESPACE))
    except NotFound:
        return None


def _schedule_text(cron_job: CronJob, last_run: LastScheduled | None, failed: str) -> str:
    """Returns a text about the schedule, the last run, and its new risks."""
    annotations = cron_job.metadata.annotations
    every, target = annotations.get(schedule.EVERY_ANNOTATION, "?"), annotations.get(schedule.TARGET_ANNOTATION, "?")
    lines = [f"Scheduled: every {every} ({cron_job.spec.schedule} UTC), target {target}"]
    if cron_job.spec.suspend:
        lines.append("Suspended: nothing is started until spec.suspend of the CronJob is false")
    if last_run is None:
        last_text = "none has ended yet"
    else:
        grown = [
            f"{risk.name} ({_few([*risk.objects, *[f'{risk.more} more'] * bool(risk.more)])})"
            for risk in last_run.grown
        ]
        news = [f"{label}: {_few(risks)}" for label, risks in (("new", last_run.new), ("grown", grown)) if risks]
        found = ", ".join([count(last_run.risks, "risk"), *(news or ["nothing new"])])
        last_text = f"{_time_text(last_run.time)}, {last_run.target_version}: {last_run.error or found}"
    lines.append(f"Last run:  {last_text}")
    if failed:
        lines.append(f"Failed:    {failed}; see its log: kubectl -n {NAMESPACE} logs job/...")
    return "".join(f"{line}\n" for line in lines)


def _few(names: Sequence[str]) -> str:
    omitted = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {omitted} more" if omitted > 0 else "")


def _time_text(time: datetime | None) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if time else "at an unknown time"
