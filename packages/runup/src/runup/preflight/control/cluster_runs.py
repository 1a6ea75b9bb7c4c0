"""Starts a preflight as a Job in the cluster, follows it until it has a report, and removes it again.

Nothing but objects of the run and the namespace is written: never ClusterVersion. The caller of `start` calls `remove`
in any case; each object's annotation says when a later run may remove what a killed command left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap, Event, Pod
from kubekit.api.scheme import Resource
from kubekit.api.workloads_v1 import Job
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, KubeError, NotFound, Transient
from kubekit.kube.calls import list_kinds
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock
from runup.preflight.decide import cluster_run
from runup.preflight.decide.cluster_run import FIELD_MANAGER, KINDS, NAMESPACE, RUN_LABEL, Run
from runup.preflight.decide.job_progress import Observed, Progress, progress, timed_out
from runup.preflight.decide.preflight_deployment import report_map
from runup.preflight.decide.start_failures import PENDING
from runup.process.names import NOBODY
from runup.process.plan import Apply, Delete
from runup.report.report import FILE_NAME, BadReport, Report, read

# Seconds between two looks: often while a Job starts, so that what prevents it is reported at once.
FIRST_S, LATER_S, FIRST_FOR_S = 0.5, 2.0, 20.0
# Seconds beyond the Job's own limit until the command gives up by itself: the controller needs a moment to end it.
_GRACE_S = 15.0
_SCC = "security.openshift.io/v1"
_MONITORING = "monitoring.coreos.com/v1"

JSON = dict[str, Any]
Notify = Callable[[str], None]


class ClusterRun:
    """A run. `notify` is called with a line whenever what it waits for changes."""

    def __init__(self, client: SyncClient, run: Run, clock: Clock, notify: Notify) -> None:
        self._client = client
        self._run = run
        self._clock = clock
        self._notify = notify

    def start(self) -> None:
        """Applies the namespace and the run's objects, the Job last. Raises KubeError."""
        apply_all(self._client, (cluster_run.namespace_object(), *cluster_run.objects(self._run)))

    def follow(self) -> Progress:
        """Returns the report, or why it is missing. Raises KubeError if the server refuses the requests."""
        began, events_told = self._clock.monotonic(), set[str]()
        waited = Progress(state="waiting")
        while (passed_s := self._clock.monotonic() - began) < self._run.timeout_s + _GRACE_S:
            try:
                last_progress = progress(replace(self.observed(), waited_for=waited.message))
            except Transient as error:
                # The API server of a cluster may restart; the Job continues meanwhile.
                last_progress = Progress(
                    state="waiting", message=f"the API server does not answer: {error}", reason="Unreachable"
                )
            if last_progress.state in ("reported", "failed"):
                return last_progress
            # The first words for a reason are the best: later ones say that it is tried again. And that there is no
            # pod is no news next to what kept it from starting, for then the Job has just been ended.
            is_news = last_progress.reason not in ("", waited.reason) and not (
                waited.reason and last_progress.reason == PENDING
            )
            waited = last_progress if is_news else waited
            reason_text = last_progress.reason or last_progress.state
            if reason_text not in events_told and (is_news or not last_progress.reason):
                self._notify(
                    last_progress.text
                    or {"waiting": "its pod starts", "running": "the checks run"}[last_progress.state]
                )
                events_told.add(reason_text)
            self._clock.pause(FIRST_S if passed_s < FIRST_FOR_S else LATER_S)
        return timed_out(self._run.timeout_s, waited.message)

    def observed(self) -> Observed:
        """Returns what the cluster says about the run. Raises KubeError."""
        client, run = self._client, self._run
        try:
            job = client.send(calls.get(Job, run.name, NAMESPACE))
        except NotFound:
            job = None
        pods: Sequence[Pod] = ()
        events: Sequence[Event] = ()
        unreadable = ""
        try:
            pods = client.list_all(Pod, NAMESPACE, label_selector=f"job-name={run.name}")[0]
            # Events say why a pod does not start, so they are needed only while no container runs.
            if not any(status.state.running for pod in pods for status in pod.status.container_statuses):
                events = client.list_all(Event, NAMESPACE, field_selector="type=Warning")[0]
        except DecodeError as error:
            # Pods and events only explain: the Job continues, and its end and its report are read all the same.
            unreadable = str(error)
        # The report is read last: if the Job was seen ended, its process has already written the report.
        return Observed(
            id=run.id,
            now=client.now(),
            job=job,
            pods=tuple(pods),
            events=tuple(events),
            report=self._report(),
            unreadable=unreadable,
        )

    def _report(self) -> Report | BadReport | None:
        """Returns the run's report, or None yet; or why it cannot be read."""
        try:
            config_map = self._client.send(calls.get(ConfigMap, report_map(self._run.id), NAMESPACE))
            text = config_map.data.get(FILE_NAME)
            return None if text is None else read(text.encode("utf-8", "replace"))
        except NotFound:
            return None
        except (BadReport, DecodeError) as error:
            return error if isinstance(error, BadReport) else BadReport(str(error), reason="ReportInvalid")

    def remove(self) -> tuple[str, ...]:
        """Deletes the run's objects; returns those that are left, with why."""
        return delete_all(self._client, cluster_run.deletions(self._run))


def apply_all(client: SyncClient, applies: Iterable[Apply]) -> None:
    """Applies objects in order. Raises KubeError at the first that is refused."""
    for apply in applies:
        call = calls.apply(apply.resource, apply.object, field_manager=FIELD_MANAGER, force=apply.force)
        try:
            client.send(call)
        except NotFound:
            if not apply.where_namespace:
                raise


def delete_all(client: SyncClient, deletes: Iterable[Delete]) -> tuple[str, ...]:
    """Deletes objects in order, also after one that cannot be deleted; returns those that are left, with why."""
    not_removed = []
    for delete in deletes:
        key = delete.key
        try:
            client.send(calls.delete(delete.resource, key.name, key.namespace, propagation=delete.propagation))
        except NotFound:
            continue
        except KubeError as error:
            in_namespace = f" in namespace {key.namespace}" if key.namespace else ""
            not_removed.append(f"{delete.resource.kind} {key.name}{in_namespace}: {error}")
    return tuple(not_removed)


def sweep(client: SyncClient) -> tuple[str, ...]:
    """Deletes what commands that were killed left behind; returns the objects that stay, with why."""
    run_objects = list[tuple[Resource, JSON]]()
    for kind in KINDS:
        # What others left is no reason to refuse a run to somebody who may not look for it.
        with suppress(Forbidden):
            all_metadata = labelled_metadata(client, kind, RUN_LABEL)
            # By the cluster's time, as the objects were marked: this machine's clock may be ahead of it.
            now = client.now()
            run_objects += [(kind, metadata) for metadata in all_metadata if cluster_run.is_left_over(metadata, now)]
    return delete_all(client, cluster_run.deletions_of(cluster_run.with_reports(run_objects)))


def labelled_metadata(client: SyncClient, resource: Resource, label: str) -> list[JSON]:
    """Returns the metadata of all objects with `label`; none of a kind that is not served. Raises KubeError."""
    try:
        listing = client.listing_raw(resource, label_selector=label)
    except NotFound:
        return []
    return [item["metadata"] for item in listing.complete(resource.kind)]


def user_of(client: SyncClient) -> int | None:
    """Returns the user ID for pods; None on OpenShift, where the namespace has a separate range."""
    return None if is_served(client, _SCC) else NOBODY


def has_monitoring(client: SyncClient) -> bool:
    """Returns whether the cluster serves PrometheusRules."""
    return is_served(client, _MONITORING)


def is_served(client: SyncClient, api_version: str) -> bool:
    """Returns whether the server knows a group and version. Raises KubeError."""
    try:
        client.send(list_kinds(api_version))
    except NotFound:
        return False
    return True
