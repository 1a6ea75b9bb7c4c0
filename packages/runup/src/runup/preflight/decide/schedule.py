"""A preflight that the cluster starts by itself: the CronJob with its account, and the rule that alerts.

In: a `Schedule`. Out: objects to apply and to delete, all called `runup-preflight-scheduled`. The result becomes a
metric without a process of ours: the Job fails if the preflight could not be made, or found a risk that is new or has
grown, and kube-state-metrics counts failed Jobs (docs/decisions/0087).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.scheme import RESOURCES, Resource
from kubekit.api.workloads_v1 import CronJob
from runup.api.preflight_reads_v1 import Right
from runup.preflight.decide import kept_history, newest_report, packed_reports
from runup.preflight.decide.cluster_run import NAMESPACE, PART_OF, Checking, account_objects, deletions_of, job_spec
from runup.process.plan import Apply, Delete

NAME = "runup-preflight-scheduled"
CRON_JOB = RESOURCES["kubekit.api.workloads_v1.CronJob"]
PROMETHEUS_RULE = Resource(
    group="monitoring.coreos.com", version="v1", kind="PrometheusRule", plural="prometheusrules", namespaced=True
)
SCHEDULED_LABEL = "preflight.runup.dev/scheduled"
"""Label of every object of the schedule, whose value is `true`."""
EVERY_ANNOTATION = "preflight.runup.dev/every"
TARGET_ANNOTATION = "preflight.runup.dev/target"

# A Job that has not ended after this time is ended, and has failed.
TIMEOUT_S = 900
# A start that is missed by more, because the control plane was down, is left to the next one.
_START_DEADLINE_S = 1800
# Minutes from the command until the first run, enough for the account to be known everywhere.
_FIRST_AFTER_MIN = 2
_EVERY = re.compile(r"([1-9][0-9]{0,3})(m|h|d)")
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}
HOUR, DAY, WEEK = 60, 24 * 60, 7 * 24 * 60

JSON = dict[str, Any]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A preflight at the interval `every` (`24h`), whose cron line in UTC is `cron`; `rights` are those of its checks.

    `cluster` is the name under which all its reports are kept. `travels`: the newest report is also written to a
    ConfigMap of its own, which an agent copies to a hub.
    """

    every: str
    cron: str
    checking: Checking
    rights: tuple[Right, ...]
    cluster: str = ""
    travels: bool = False

    @property
    def target(self) -> str:
        """The target as people read it: a version, or a channel."""
        return self.checking.target_version or f"channel {self.checking.target_channel}"


def minutes_of(every: str) -> int:
    """Returns the minutes of an interval such as `30m`, `6h` or `1d`.

    Raises ValueError for one that no line of cron means: its starts would not be evenly apart.
    """
    matched = _EVERY.fullmatch(every)
    minutes = int(matched[1]) * _MINUTES[matched[2]] if matched else 0
    even = (0 < minutes < HOUR and HOUR % minutes == 0) or (minutes % HOUR == 0 and minutes > 0 and DAY % minutes == 0)
    if not even and minutes != WEEK:
        raise ValueError(
            f"{every!r} is not an interval that a CronJob can keep; expected a part of an hour (15m, 30m), "
            "a part of a day (1h, 6h, 12h), 24h or 7d"
        )
    return minutes


def cron_of(every: str, now: datetime) -> str:
    """Returns the cron line for an interval whose first start is soon after `now`. Raises ValueError."""
    minutes = minutes_of(every)
    at = now.hour * HOUR + now.minute + _FIRST_AFTER_MIN
    minute, hour, weekday = at % HOUR, at // HOUR % 24, (now.isoweekday() + at // DAY) % 7
    if minutes < HOUR:
        return f"{minute % minutes}-59/{minutes} * * * *"
    if minutes < DAY:
        step = minutes // HOUR
        return f"{minute} {'*' if step == 1 else f'{hour % step}-23/{step}'} * * *"
    return f"{minute} {hour} * * {'*' if minutes == DAY else weekday}"


def kept_cron(cron_job: CronJob | None, every: str) -> str:
    """Returns the cron line of a CronJob that runs as often already, so that its times stay; else an empty string."""
    if cron_job is None or cron_job.metadata.annotations.get(EVERY_ANNOTATION) != every:
        return ""
    return cron_job.spec.schedule


def objects(schedule: Schedule, *, monitored: bool) -> tuple[Apply, ...]:
    """Returns the account with its rights, the CronJob, and the alerts if `monitored` (PrometheusRule is served).

    The account may change the ConfigMaps of reports, and cannot create one: the command does.
    """
    marks: JSON = {"labels": PART_OF | {SCHEDULED_LABEL: "true"}}
    config_maps = (kept_history.NAME, packed_reports.SERIES, *((newest_report.NAME,) if schedule.travels else ()))
    access = account_objects(NAME, schedule.rights, config_maps=config_maps, verbs=("get", "patch"), marks=marks)
    rules = (Apply(resource=PROMETHEUS_RULE, object=_alerting_rules(schedule, marks)),) if monitored else ()
    env: list[JSON] = [
        {"name": "PREFLIGHT_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "PREFLIGHT_REPORT_SINK", "value": "history"},
    ]
    env += [{"name": "PREFLIGHT_CLUSTER", "value": schedule.cluster}] if schedule.cluster else []
    env += [{"name": "PREFLIGHT_NEWEST", "value": "true"}] if schedule.travels else []
    spec = job_spec(NAME, schedule.checking, env) | {"activeDeadlineSeconds": TIMEOUT_S}
    annotations = {EVERY_ANNOTATION: schedule.every, TARGET_ANNOTATION: schedule.target}
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": marks["labels"], "annotations": annotations}
    # A late run is skipped, not joined.
    cron_job = cron_job_object(metadata, schedule.cron, spec, start_deadline_s=_START_DEADLINE_S)
    return (*access, Apply(resource=CRON_JOB, object=cron_job), *rules)


def deletions(labelled: Iterable[tuple[Resource, JSON]]) -> tuple[Delete, ...]:
    """Returns the deletions of the schedule's objects (kind and metadata): what starts Jobs first, the account last."""
    return deletions_of(labelled, (PROMETHEUS_RULE, CRON_JOB))


def deletions_of_unused(labelled: Iterable[tuple[Resource, JSON]], applied: Iterable[Apply]) -> tuple[Delete, ...]:
    """Returns the deletions of objects that only an earlier version needed, such as a right without a check."""
    names = {(apply.resource, _key_of(apply.object["metadata"])) for apply in applied}
    return deletions(pair for pair in labelled if (pair[0], _key_of(pair[1])) not in names)


def _key_of(metadata: JSON) -> NamespacedName:
    return NamespacedName(metadata.get("namespace", ""), metadata["name"])


def cron_job_object(metadata: JSON, cron: str, spec: JSON, *, start_deadline_s: int) -> JSON:
    """Returns a CronJob that starts Jobs of that spec, with its own labels, as `cron` says in UTC."""
    return {
        "metadata": metadata,
        "spec": {
            "schedule": cron,
            "timeZone": "Etc/UTC",
            # A run that is late is not joined by the next one: both would read the whole cluster.
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": start_deadline_s,
            # One of each is enough to read the log of; what they found is kept elsewhere.
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "suspend": False,
            "jobTemplate": {"metadata": {"labels": metadata["labels"]}, "spec": spec},
        },
    }


def _alerting_rules(schedule: Schedule, marks: JSON) -> JSON:
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": marks["labels"]}
    jobs, cron = f'namespace="{NAMESPACE}",job_name=~"{NAME}-.*"', f'{{namespace="{NAMESPACE}",cronjob="{NAME}"}}'
    started, failed = f"kube_job_status_start_time{{{jobs}}}", f'kube_job_failed{{{jobs},condition="true"}}'
    failed_at = f"max({started} * on(namespace, job_name) {failed})"
    succeeded_at = f"max(kube_cronjob_status_last_successful_time{cron})"
    started_at = f"max(kube_cronjob_status_last_schedule_time{cron} or kube_cronjob_created{cron})"
    silent_s = 3 * minutes_of(schedule.every) * 60 + TIMEOUT_S
    rules = [
        {
            "alert": "PreflightFoundNews",
            # The failed Job is kept until another one fails, so it counts only while no later one succeeded.
            "expr": f"{failed_at} > ({succeeded_at} or vector(0))",
            "labels": {"severity": "warning"},
            "annotations": {
                "summary": "The scheduled preflight found a new or grown risk of the update, or could not be made.",
                "description": (
                    f"The newest Job of CronJob {NAME} in namespace {NAMESPACE} failed: a risk is new or has further "
                    "objects since the last report, or the checks did not run. `runup preflight schedule` names them, "
                    "`runup preflight show --in-cluster` shows the risks."
                ),
            },
        },
        {
            "alert": "PreflightNotRun",
            "expr": f"time() - {started_at} > {silent_s}",
            "for": "10m",
            "labels": {"severity": "warning"},
            "annotations": {
                "summary": "The scheduled preflight has not been started for three intervals.",
                "description": (
                    f"CronJob {NAME} in namespace {NAMESPACE} should start a preflight every {schedule.every}. It is "
                    "suspended, or the CronJob controller does not run: see `kubectl describe` of it."
                ),
            },
        },
    ]
    return {"metadata": metadata, "spec": {"groups": [{"name": "runup-preflight", "rules": rules}]}}
