"""Determines the progress of a preflight's Job: it waits, it runs, it has a report, or it failed and why.

In: the Job, its pods, the events of the namespace and the report that was read. Out: `Progress`. Nothing is concluded
from what is not there yet: a Job without a pod waits until an event says why, or until its time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from kubekit.api.conditions import find, status_of
from kubekit.api.core_v1 import ContainerStatus, Event, Pod
from kubekit.api.workloads_v1 import Job
from runup.preflight.decide import start_failures
from runup.preflight.decide.cluster_run import DISRUPTED
from runup.preflight.decide.start_failures import FAILED_CREATE, PENDING, POD_FAILED, UNSCHEDULABLE, Trouble, cut
from runup.report.report import BadReport, Report

# Seconds after which a Job that cannot start, and will not by itself, is given up.
HOPELESS_AFTER_S = 10.0
PULL_REASONS = ("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable")
# Reasons why a container waits that only another Job can fix.
_BAD_NAME_REASONS = ("InvalidImageName", "ErrImageNeverPull")
_BAD_CONFIG_REASONS = ("CreateContainerConfigError", "CreateContainerError")
_WAY_OUT = {
    FAILED_CREATE: "change what refuses it (a quota, an admission rule, an account), and start it again",
    UNSCHEDULABLE: "make room on a node, or wait for one",
    POD_FAILED: "give the node room, and start it again",
}

# The output of another release's operator, or of an image with another entry point, if it is started with our command:
# the error messages of cobra, click and runc.
_OTHER_PROGRAM = ("unknown command", "No such command", "executable file not found", "no such file or directory")
_OWN_CHECKS = "give runup's own image with --image, whose checks are made instead, or choose another target"

State = Literal["waiting", "running", "reported", "failed"]


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a run that were read. `report` is the report in its ConfigMap, or why it cannot be used.

    `unreadable` says why its pods, or the events about them, could not be read; "" if they could.
    """

    id: str
    now: datetime
    job: Job | None = None
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()
    report: Report | BadReport | None = None
    # What the run was last seen to wait for.
    waited_for: str = ""
    unreadable: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the Job. `message` says why it waits or failed, `way_out` what helps.

    Messages with the same meaning have the same `reason`, whatever their wording.
    """

    state: State
    message: str = ""
    way_out: str = ""
    report: Report | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """Message and way out as one sentence."""
        return f"{self.message}; {self.way_out}" if self.way_out else self.message


def progress(observed: Observed) -> Progress:
    """Returns the progress of the Job of a run that was started."""
    if observed.report is not None:
        report = observed.report
        if isinstance(report, BadReport):
            return Progress(state="failed", message=report.message, way_out=_OWN_CHECKS)
        if report.preflight_id != observed.id:
            ids = f"preflightID {report.preflight_id!r} instead of {observed.id!r}"
            text = f"the report belongs to another preflight: {ids}"
            return Progress(state="failed", message=text, way_out=_OWN_CHECKS)
        # A target of another release may write its progress too.
        return Progress(state="running" if report.execution_status == "running" else "reported", report=report)
    job = observed.job
    if job is None:
        return Progress(state="failed", message="its Job was deleted by somebody else", way_out="start it again")
    # An evicted pod tells nothing about the run, because the Job replaces it. While such a pod does not end, the Job
    # creates no other.
    ending = tuple(pod for pod in observed.pods if _is_disrupted(pod) and pod.metadata.deletion_timestamp is not None)
    observed = replace(observed, pods=tuple(pod for pod in observed.pods if not _is_disrupted(pod)))
    container = _container(observed.pods)
    ended = container.state.terminated if container else None
    if ended is not None and ended.exit_code != 0:
        words = cut(ended.message) or ended.reason
        text = f"the preflight ended with exit code {ended.exit_code}{': ' + words if words else ''}"
        text = "the preflight was killed for memory" if ended.reason == "OOMKilled" else text
        is_other = any(phrase in ended.message for phrase in _OTHER_PROGRAM)
        way_out = f"the image has no command `preflight`: {_OWN_CHECKS}" if is_other else ""
        return Progress(state="failed", message=text, way_out=way_out)
    runs = container is not None and container.state.running is not None
    failed = find(job.status.conditions, "Failed")
    if failed is not None and failed.status == "True":
        if failed.reason == "DeadlineExceeded":
            # The controller has deleted the pod, which would have said why.
            return timed_out(None, observed.waited_for)
        trouble = start_failures.trouble_of_job(job, observed.pods, observed.events, now=observed.now)
        reason = trouble.message if trouble and trouble.failed else cut(failed.message)
        return Progress(state="failed", message=f"its Job failed ({failed.reason}): {reason}", way_out="start it again")
    if status_of(job.status.conditions, "Complete") == "True":
        text = "it ended without a report, so its image is not one of runup's"
        return Progress(state="failed", message=text, way_out=_OWN_CHECKS)
    not_starting = _not_starting(observed, job, ending)
    # Without the pods or events, that there is no pod, or no reason, is not known.
    if observed.unreadable and (not_starting is None or not_starting.reason == PENDING):
        return Progress(
            state="waiting", message=f"the state of its pod is unknown: {observed.unreadable}", reason="Unreadable"
        )
    return not_starting or Progress(state="running" if runs else "waiting")


def timed_out(limit_s: int | None, waited_for: str) -> Progress:
    """Returns the failure of a run that exceeded its time limit, with the reason why it was waiting."""
    limit = f" within {limit_s} s" if limit_s is not None else " in time"
    waited_text = f"; before that: {waited_for}" if waited_for else ""
    return Progress(
        state="failed", message=f"it was not done{limit}{waited_text}", way_out="raise --timeout, and start it again"
    )


def _not_starting(observed: Observed, job: Job, ending: Sequence[Pod]) -> Progress | None:
    """Returns the progress of a Job whose pod does not start; None if nothing keeps it from starting.

    `ending` are evicted pods that have not ended.
    """
    container = _container(observed.pods)
    waiting = container.state.waiting if container else None
    trouble: Trouble | None
    if waiting is not None and waiting.reason in (*PULL_REASONS, *_BAD_NAME_REASONS):
        text = f"its image could not be pulled ({waiting.reason}): {cut(waiting.message)}"
        way_out = "make its registry or a mirror reachable for the nodes, or name another"
        trouble = Trouble(waiting.reason, text, way_out)
    elif waiting is not None and waiting.reason in _BAD_CONFIG_REASONS:
        text = f"the container could not be started ({waiting.reason}): {cut(waiting.message)}"
        trouble = Trouble(waiting.reason, text, "see the events of its pod")
    else:
        pods = (*observed.pods, *ending)
        trouble = start_failures.trouble_of_job(job, pods, observed.events, now=observed.now)
    if trouble is None:
        return None
    created, reason = job.metadata.creation_timestamp, trouble.reason
    age_s = (observed.now - created).total_seconds() if created else 0.0
    is_hopeless = (reason == FAILED_CREATE or reason in _BAD_NAME_REASONS) and age_s >= HOPELESS_AFTER_S
    return Progress(
        state="failed" if is_hopeless else "waiting",
        message=trouble.message,
        way_out=_WAY_OUT.get(reason, trouble.way_out),
        reason="Pull" if reason in PULL_REASONS else reason,
    )


def _is_disrupted(pod: Pod) -> bool:
    """Returns whether the pod was evicted or preempted: the Job replaces it."""
    return status_of(pod.status.conditions, DISRUPTED) == "True"


def _container(pods: Sequence[Pod]) -> ContainerStatus | None:
    """Returns the state of the newest pod's container, or None while it does not exist."""
    newest = max(pods, key=lambda pod: (str(pod.metadata.creation_timestamp), pod.metadata.name), default=None)
    statuses = newest.status.container_statuses if newest is not None else ()
    return statuses[0] if statuses else None
