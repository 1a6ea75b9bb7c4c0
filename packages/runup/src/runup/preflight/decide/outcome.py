"""The state of an attempt, decided from its pods, its report and the clock by ordered rules: the first match wins.

A failure is either final (`final`: the Deployment is deleted, and only a new request starts another attempt) or may
recover, for example when a registry is reachable again or a report is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kubekit.api.core_v1 import ContainerStatus, Event, Pod
from kubekit.api.workloads_v1 import Deployment
from kubekit.lang.text import count, last_words
from runup.advice.decide.preflight_reasons import STALE
from runup.preflight.decide import preflight_deployment, start_failures
from runup.preflight.decide.attempt import Attempt
from runup.report.report import Report

# Three times the longest interval in which a target rewrites its report (control.target, Timing.latest_s).
STALE_AFTER_S = 90.0
MAX_OOM_KILLS = 3
MAX_CRASHES = 3
_PULL_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_BAD_CONFIG_REASONS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "ContainerCannotRun")
_MAX_QUOTED_CHARACTERS = 300


class AttemptState(Enum):
    """The phase of an attempt."""

    STARTING = "starting"
    CHECKING = "checking"
    COMPLETED = "completed"
    FAILED = "failed"


class BadReportSeen(msgspec.Struct, frozen=True):
    """A report that cannot be used, with the reason."""

    reason: str
    message: str


class ReportSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The report in the attempt's folder, or why it cannot be used. `read_at` is the time at which it was read.

    `unchanged_s`: seconds since the report last changed, measured with the reader's own monotonic clock. `changed_at`:
    the time of that change, None if it is that of the reading.
    """

    preflight_id: str
    content: Report | BadReportSeen
    read_at: datetime
    unchanged_s: float = 0.0
    changed_at: datetime | None = None


class AttemptOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an attempt. `reason` is a condition's reason, `final` excludes recovery, `way_out` is the remedy."""

    state: AttemptState
    reason: str
    message: str
    final: bool = False
    way_out: str = ""

    @property
    def message_with_remedy(self) -> str:
        """The message followed by the remedy."""
        return f"{self.message}; {self.way_out}" if self.way_out else self.message


class Tally(NamedTuple):
    """The number of an update's risks that apply, are unknown, and are accepted (of those that apply or are unknown).

    It includes the risks that no preflight found. `informing` describe the failure that the update may repair; they
    are counted nowhere else.
    """

    applying: int
    unknown: int
    accepted: int = 0
    informing: int = 0


class Observations(msgspec.Struct, frozen=True, kw_only=True):
    """The observations that the outcome depends on.

    `report` and `bad` are this attempt's own. `completed_before`: a complete report of it was read once. `events`
    are the namespace's warnings. `unchanged_s`: seconds since the report last changed, at `changed_at`. `tally`
    counts the risks of the whole update, as they will be published; None: the report's own risks count.
    """

    attempt: Attempt
    deployment: Deployment | None
    pods: tuple[Pod, ...]
    report: Report | None
    bad: BadReportSeen | None
    completed_before: bool
    timeout_s: float
    now: datetime
    events: tuple[Event, ...] = ()
    unchanged_s: float = 0.0
    changed_at: datetime | None = None
    tally: Tally | None = None

    @property
    def stale(self) -> bool:
        """Reports whether the report's heartbeat has stopped (docs/decisions/0072 D24)."""
        return self.unchanged_s >= STALE_AFTER_S

    @property
    def restart_due(self) -> bool:
        """Reports whether the heartbeat stopped so long ago that the pod must be restarted."""
        return self.unchanged_s >= max(self.timeout_s, STALE_AFTER_S)

    @property
    def until_stale_s(self) -> float:
        """Seconds until `stale` or `restart_due` changes, or until newly started pods have used up their time limit."""
        limit = max(self.timeout_s, STALE_AFTER_S)
        steps = (STALE_AFTER_S - self.unchanged_s, limit - self.unchanged_s)
        return max(next((step for step in steps if step > 0), limit), 1.0)

    @property
    def update_waits_until(self) -> datetime | None:
        """The time until which an update waits for a report, be it the first one or that of a silent target.

        None if no report is outstanding, or if the time is over.
        """
        if not self.stale:
            return self.deadline if not self.completed and not self.restart_due else None
        changed_at = self.changed_at or self.now - timedelta(seconds=self.unchanged_s)
        return None if self.restart_due else changed_at + timedelta(seconds=max(self.timeout_s, STALE_AFTER_S))

    @property
    def hung(self) -> tuple[Pod, ...]:
        """The pods that have existed for the whole time limit without writing a report."""
        if not self.restart_due:
            return ()
        latest = self.now - timedelta(seconds=max(self.timeout_s, STALE_AFTER_S))
        return tuple(
            pod
            for pod in self.pods
            if pod.metadata.deletion_timestamp is None
            and pod.metadata.creation_timestamp is not None
            and pod.metadata.creation_timestamp <= latest
        )

    @property
    def container(self) -> ContainerStatus | None:
        """The target's container in the newest pod."""
        # Several pods exist while one is replaced; only the newest tells about the current state.
        newest = sorted(self.pods, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.metadata.name))
        for pod in reversed(newest):
            for container in pod.status.container_statuses:
                if container.name in (preflight_deployment.NAME, ""):
                    return container
        return None

    @property
    def completed(self) -> bool:
        """Reports whether the attempt's report is complete now."""
        return self.report is not None and self.report.execution_status == "completed"

    @property
    def deadline(self) -> datetime | None:
        """The time at which a complete report is due; None before the Deployment exists, or if none is outstanding.

        It counts from the Deployment's creation, and after a first complete report from a restart of the target.
        """
        created = self.deployment.metadata.creation_timestamp if self.deployment else None
        started = self.attempt.unfinished_since if self.completed_before else created
        return started + timedelta(seconds=self.timeout_s) if started else None


Rule = Callable[[Observations], AttemptOutcome | None]


def outcome(scene: Observations) -> AttemptOutcome:
    """Returns the outcome of the first rule that matches, else what the report states."""
    if scene.attempt.failed:
        return _failure(scene.attempt.failed, scene.attempt.failure, final=True)
    for rule in RULES:
        matched = rule(scene)
        if matched is not None:
            return matched
    state, reason, message = AttemptState.STARTING, "TargetStarting", "waiting for the target's first report"
    if scene.report is not None:
        message = counts_text(scene.report, scene.tally)
        state, reason = AttemptState.CHECKING, "ChecksRunning"
    if scene.report is not None and scene.completed:
        # All risks of the update count, also those that the operator found: users would take "no risks" for leave to
        # update.
        has_risks = bool(scene.report.risks) or any(scene.tally or ())
        state, reason = AttemptState.COMPLETED, "RisksFound" if has_risks else "NoRisksFound"
    return AttemptOutcome(state=state, reason=reason, message=message)


def _failure(reason: str, message: str, way_out: str = "", *, final: bool = False) -> AttemptOutcome:
    return AttemptOutcome(state=AttemptState.FAILED, reason=reason, message=message, final=final, way_out=way_out)


def rejected_object(problem: str) -> AttemptOutcome:
    """Returns the failure for an object that the API server rejects. `problem` name the object and quote the server."""
    way_out = "it is tried again: change what refuses it (a quota, an admission rule, a right, a setting, a flag)"
    text = f"the API server does not take {start_failures.cut(problem)}"
    return _failure(start_failures.FAILED_CREATE, text, way_out)


def unfinished_since(scene: Observations, result: AttemptOutcome) -> datetime | None:
    """Returns since when a target that had completed is unfinished again; None if it is not.

    While it fails it does not count as unfinished: such a failure blocks no update, and what heals gets the whole time
    limit again. Silence is no such failure.
    """
    is_failing = result.state is AttemptState.FAILED and result.reason != STALE
    if not scene.completed_before or scene.completed or is_failing:
        return None
    # The clock may have been set back since the time was recorded.
    return min(scene.attempt.unfinished_since or scene.now, scene.now)


def usable_report(attempt: Attempt, report_seen: ReportSeen | None) -> tuple[Report | None, BadReportSeen | None]:
    """Returns the report if it belongs to this attempt, else the reason why it cannot be used."""
    if report_seen is None or report_seen.preflight_id != attempt.id:
        return None, None
    content = report_seen.content
    if isinstance(content, BadReportSeen):
        return None, content
    # The request supplies what a report with only the proposal's fields lacks.
    content = replace(
        content,
        source_version=content.source_version or attempt.source_version,
        target_version=content.target_version or attempt.target_version,
        target_image=content.target_image or attempt.target_image,
    )
    # The target itself writes these fields, so they may be wrong, or those of an earlier attempt.
    expected = (attempt.id, attempt.source_version, attempt.target_version)
    actual = (content.preflight_id, content.source_version, content.target_version)
    if actual == expected:
        return _with_operators_times(content, attempt.started_time, report_seen.read_at), None
    names = ("preflightID", "sourceVersion", "targetVersion")
    wrong = ", ".join(
        f"{name} {found_value!r} instead of {expected_value!r}"
        for name, found_value, expected_value in zip(names, actual, expected, strict=True)
        if found_value != expected_value
    )
    return None, BadReportSeen("ReportMismatch", f"the report belongs to another preflight: {wrong}")


def _with_operators_times(report: Report, started: datetime | None, read_at: datetime) -> Report:
    """Returns `report` with times between the start of the attempt and the time at which the operator read it.

    The target's clock may differ from the operator's, and the target is not trusted. A report without the time of its
    findings gets the time at which it was read.
    """

    def within(time: datetime | None, earliest: datetime | None, latest: datetime) -> datetime | None:
        return time if time is not None and time <= latest and (earliest is None or time >= earliest) else None

    observed = within(report.observed_time, started, read_at) or read_at
    completed = report.completion_time and (within(report.completion_time, started, observed) or observed)
    return replace(
        report,
        started_time=report.started_time and (within(report.started_time, started, completed or observed) or started),
        completion_time=completed,
        observed_time=observed,
        heartbeat_time=report.heartbeat_time and (within(report.heartbeat_time, observed, read_at) or read_at),
    )


def _unsupported(scene: Observations) -> AttemptOutcome | None:
    """Returns TargetUnsupported if the target's output says that it has no `preflight` command."""
    container = scene.container
    ends = [state.terminated for state in (container.state, container.last_state)] if container else []
    texts = [ended.message for ended in ends if ended is not None and ended.exit_code != 0]
    is_unknown = any("unknown command" in text and preflight_deployment.COMMAND in text for text in texts)
    if scene.report is not None or not is_unknown:
        return None
    message = (
        f"release {scene.attempt.target_version} has no `preflight` command; nothing was checked. "
        "Upgradeable and the risks of the update service still count"
    )
    return _failure("TargetUnsupported", message, "choose a newer target or update without", final=True)


def _killed_for_memory(scene: Observations) -> AttemptOutcome | None:
    """Returns the failure of a target that ended `MAX_OOM_KILLS` times, the last time killed for memory."""
    container = scene.container
    if container is None:
        return None
    ended = container.state.terminated or container.last_state.terminated
    # `restartCount` does not yet count a container that has just terminated.
    ends = container.restart_count + (container.state.terminated is not None)
    # A single kill may be caused by the node's own lack of memory; repeated ones mean that the limit is too low.
    if ended is None or ended.reason != "OOMKilled" or ends < MAX_OOM_KILLS:
        return None
    # A status shows why a container ended the last time only, so the earlier ends may have had another reason.
    message = f"the target ended {ends} times, the last time killed for memory"
    way_out = f"raise memoryLimit in ConfigMap {preflight_deployment.SETTINGS_MAP} and ask again"
    return _failure("OOMKilled", message, way_out, final=True)


def _too_late(scene: Observations) -> AttemptOutcome | None:
    """Returns DeadlineExceeded if there is no complete report in time.

    For a first report it names the cause that other rules know; these come first for a target that was restarted.
    """
    if scene.completed or scene.deadline is None or scene.now < scene.deadline:
        return None
    restarted = " of the target's restart" if scene.completed_before else ""
    texts = [f"no complete report within {scene.timeout_s:.0f} s{restarted}"]
    texts += [counts_text(scene.report, scene.tally)] if scene.report else []
    if not scene.completed_before:
        texts += [cause.message for rule in _RECOVERABLE if (cause := rule(scene)) is not None][:1]
    way_out = f"ask again, or raise timeout in ConfigMap {preflight_deployment.SETTINGS_MAP}"
    return _failure("DeadlineExceeded", "; ".join(filter(None, texts)), way_out, final=True)


def _bad_report(scene: Observations) -> AttemptOutcome | None:
    """Returns the failure of an attempt whose report is not valid, None if the report is."""
    if scene.bad is None:
        return None
    # The report is written by the target's image, so only another release can write a valid one.
    way_out = f"release {scene.attempt.target_version} has to fix that: choose another target, or clear the request"
    return _failure(scene.bad.reason, scene.bad.message, way_out)


def _waiting_in_vain(scene: Observations) -> AttemptOutcome | None:
    """Returns the failure of a container whose image cannot be pulled, or that cannot be started."""
    waiting = scene.container.state.waiting if scene.container else None
    if waiting is not None and waiting.reason in _PULL_REASONS:
        reason, text = "ImagePullFailed", "the target's image could not be pulled"
        way_out = "make its registry or a mirror reachable for the nodes, or correct the pull secret"
    elif waiting is not None and waiting.reason in _BAD_CONFIG_REASONS:
        reason, text = "ContainerNotStarted", "the target's container could not be started"
        way_out = f"see the events of Deployment {preflight_deployment.NAME}"
    else:
        return None
    message = f"{text} ({waiting.reason}): {last_words(waiting.message, _MAX_QUOTED_CHARACTERS)}"
    return _failure(reason, message, f"it is tried again: {way_out}")


def _not_starting(scene: Observations) -> AttemptOutcome | None:
    """Returns why no container runs: a rejected, unscheduled or failed pod, or one that takes long."""
    trouble = start_failures.find_trouble(
        scene.deployment, scene.pods, scene.events, name=preflight_deployment.NAME, now=scene.now
    )
    if trouble is None:
        return None
    # Slowness is reported only until the first report; a rejection is reported at any time.
    if not trouble.failed and (scene.report is not None or scene.completed_before):
        return None
    state = AttemptState.FAILED if trouble.failed else AttemptState.STARTING
    return AttemptOutcome(state=state, reason=trouble.reason, message=trouble.message, way_out=trouble.way_out)


def _crash_outcome(scene: Observations) -> AttemptOutcome | None:
    """Returns the failure of a target that ended `MAX_CRASHES` times and does not run now."""
    container = scene.container
    ended = (container.state.terminated or container.last_state.terminated) if container else None
    if container is None or ended is None or container.restart_count < MAX_CRASHES or container.state.running:
        return None
    message = f"the target ended {container.restart_count} times, last with exit code {ended.exit_code}"
    way_out = f"it is started again: see the log of Deployment {preflight_deployment.NAME}, or choose another target"
    output = last_words(ended.message or ended.reason, _MAX_QUOTED_CHARACTERS)
    return _failure("TargetCrashed", f"{message}: {output}", way_out)


def _reported_failure(scene: Observations) -> AttemptOutcome | None:
    """Returns the failure that the report itself states, None if it states none."""
    if scene.report is None or scene.report.execution_status != "failed":
        return None
    message = scene.report.message.rstrip(".") or "the target says that its checks failed"
    way_out = f"see the log of Deployment {preflight_deployment.NAME}, or choose another target"
    return _failure("TargetFailed", message, way_out)


def _stale_outcome(scene: Observations) -> AttemptOutcome | None:
    """Returns the failure of a target that no longer writes its report, or None."""
    if not scene.stale:
        return None
    restart_s = max(scene.timeout_s, STALE_AFTER_S)
    way_out = f"its pod is restarted after {restart_s:.0f} s; see the log of the pod, or end it"
    return _failure(STALE, f"the target has not written its report for {STALE_AFTER_S:.0f} s or longer", way_out)


# Rules whose failures may recover; `_too_late` quotes their message when the time limit is over.
_RECOVERABLE: tuple[Rule, ...] = (_bad_report, _waiting_in_vain, _crash_outcome, _not_starting, _reported_failure)
# The order matters: final failures, then those that may recover, then the limit of a restarted target (which ends no
# preflight whose image, for example, cannot be pulled for a while), then a stopped heartbeat.
RULES: tuple[Rule, ...] = (
    _unsupported,
    _killed_for_memory,
    lambda scene: None if scene.completed_before else _too_late(scene),
    *_RECOVERABLE,
    _too_late,
    _stale_outcome,
)


def counts_text(report: Report, tally: Tally | None = None) -> str:
    """Returns a text with the progress of the checks and the number of risks, from `tally` or else from the report."""
    skipped = sum(1 for check in report.checks if check.result == "Skipped")
    texts = [progress(report)]
    if skipped:
        texts.append(f"{skipped} not for this update")
    reported = sum(1 for risk in report.risks if risk.applies == "True")
    applying, unknown, accepted, informing = tally or Tally(reported, len(report.risks) - reported)
    if report.execution_status == "running" and not report.checks:
        # Before any check was evaluated, a number would be read as a result.
        return texts[0]
    texts.append(f"{count(applying, 'risk')} {'applies' if applying == 1 else 'apply'}")
    if unknown:
        texts.append(f"{unknown} unknown")
    if accepted:
        texts.append(f"{accepted} accepted")
    if informing:
        texts.append(f"{informing} {'describes' if informing == 1 else 'describe'} the failure that this may repair")
    return ", ".join(texts)


def progress(report: Report) -> str:
    """Returns the progress, for example `4 of 7 checks done`.

    While the target runs, this is the target's own message, since only the target knows how many checks there are.
    """
    if report.execution_status == "running" and report.message:
        return report.message
    return f"{count(len(report.checks), 'check')} done"
