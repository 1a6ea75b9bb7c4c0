"""Turns the result of a component's container into the outcome of a check. Pure.

In: the finished Pod and its log, which a component's own program wrote. Out: the outcome of that one check. If the
container, its report or its time limit fails, this check is Unknown, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import ContainerStateTerminated, Pod
from kubekit.api.meta_v1 import Wire
from kubekit.lang.text import printable
from runup.checks.decide.engine import CheckOutcome, could_not_tell, run_check
from runup.checks.decide.model import Applies, Check, Context, Finding, Snapshot
from runup.checks.decide.wording import names
from runup.preflight.decide.container_check_pods import CONTAINER
from runup.report import report as reports
from runup.report.report import FORMAT, BadReport, Report, ReportedRisk

# How much of the end of a log is read to find the report: some lines, and no more bytes than two reports have.
TAIL_LINES = 50
TAIL_BYTES = 2 * reports.MAX_BYTES
_MAX_QUOTE = 300


def has_ended(pod: Pod) -> bool:
    """Returns whether no container of the Pod runs any more or will run again."""
    return pod.status.phase in ("Succeeded", "Failed")


def outcome(check: Check, pod: Pod, log: bytes, context: Context, preflight_id: str) -> CheckOutcome:
    """Returns the outcome of `check`, whose container has ended and has written `log`."""
    try:
        report = read(log)
    except BadReport as error:
        return could_not_tell(check, _why_ended(check, pod) or error.message)
    findings = tuple(_finding(risk) for risk in report.risks)
    why = _why_ended(check, pod) or next(_why_not(report, context, preflight_id), "")
    # Risks that the container did report are kept: a risk that was found does not go away.
    if why:
        return could_not_tell(check, why, findings)
    # By way of the engine, so that its rules for valid findings hold for a container's, too.
    return run_check(replace(check, run=lambda _snapshot, _context: findings), Snapshot(), context)


def without_log(check: Check, pod: Pod, why: str) -> CheckOutcome:
    """Returns the outcome of `check` if its container's log cannot be read: one that never started has none."""
    return could_not_tell(check, _why_ended(check, pod) or f"the log of Pod {pod.metadata.name} cannot be read: {why}")


def read(log: bytes) -> Report:
    """Returns the last report in `log`, which is one line of it. Raises BadReport.

    A container may run more than once, because a node that lost its state starts it again, and may log after its
    report. Lines that are not a report do not count. A report that is cut off does count, and cannot be read: an
    earlier report may have had fewer risks.
    """
    for line in reversed(log.splitlines()):
        if FORMAT.encode() in line and line.lstrip().startswith(b"{") and _may_be_report(line):
            return reports.read(line)
    raise BadReport(f"its container wrote no line of JSON of format {FORMAT}", reason="ReportInvalid")


class _Head(Wire, frozen=True):
    format: str = ""


def _may_be_report(line: bytes) -> bool:
    """Returns whether a line is a report by its `format`, or is cut off so that this cannot be told.

    A report that is cut off counts (`read`). A whole line of another format only quotes the name of ours.
    """
    try:
        return codec.decode(_Head, line).format == FORMAT
    except codec.DecodeError:
        return True


def why_it_waits(pod: Pod | None) -> str:
    """Returns in words why a container has not ended."""
    if pod is None:
        return "the managing operator has made no Pod for it; its log says why, or it is of a release that makes none"
    for status in pod.status.container_statuses:
        if status.state.waiting is not None:
            waiting = status.state.waiting
            return f"its container waits ({waiting.reason}): {_quote(waiting.message)}".rstrip(": ")
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"its Pod {pod.metadata.name} is not scheduled: {_quote(condition.message)}".rstrip(": ")
    return f"its container in Pod {pod.metadata.name} has not ended"


def _why_ended(check: Check, pod: Pod) -> str:
    """Returns why an ended container does not count, or an empty string if it does."""
    if pod.status.reason == "DeadlineExceeded":
        limit = f" in {check.container.timeout_s} s" if check.container else ""
        return f"its container did not end{limit}{_waiting_clause(pod)}"
    ended = _terminated_state(pod)
    if ended is None:
        reason = pod.status.reason or pod.status.phase
        return f"its Pod came to {reason}: {_quote(pod.status.message)}".rstrip(": ")
    if ended.exit_code or ended.reason == "OOMKilled":
        last = _quote(ended.message)
        return f"its container ended with exit code {ended.exit_code} ({ended.reason}): {last}".rstrip(": ")
    return ""


def _waiting_clause(pod: Pod) -> str:
    """Returns a clause about the first container that waits, or an empty string."""
    waits = (status.state.waiting for status in pod.status.container_statuses)
    return next((f": it waited ({wait.reason}): {_quote(wait.message)}".rstrip(": ") for wait in waits if wait), "")


def _terminated_state(pod: Pod) -> ContainerStateTerminated | None:
    """Returns the terminated state of the check's container, or None if it has none."""
    for status in pod.status.container_statuses:
        if status.name == CONTAINER and status.state.terminated is not None:
            return status.state.terminated
    return None


def _why_not(container_report: Report, context: Context, preflight_id: str) -> Iterator[str]:
    """Yields the reasons why a report does not answer what was asked."""
    # A container need not repeat the id of the preflight.
    if container_report.target_version != str(context.target) or container_report.preflight_id not in (
        "",
        preflight_id,
    ):
        yield f"its container's report is of another preflight, for {container_report.target_version}"
    if container_report.execution_status != "completed":
        yield (
            f"its container's checks are {container_report.execution_status}: "
            f"{container_report.message or 'it does not say why'}"
        )
    if not container_report.checks and not container_report.risks:
        yield "its container checked nothing: its report names no check and no risk"
    if container_report.risks_omitted:
        yield f"its container found {container_report.risks_omitted} more risks than its report has"
    applies_by_result = {"Applies": "True", "Unknown": "Unknown"}
    for result, applies in applies_by_result.items():
        unexplained = [check.name for check in container_report.checks if check.result == result]
        if unexplained and not any(risk.applies == applies for risk in container_report.risks):
            yield f"its container's report says {result} for {names(unexplained)}, and names no such risk"


def _finding(risk: ReportedRisk) -> Finding:
    """Returns the finding for a risk that a check's container reported."""
    return Finding(
        risk.name,
        risk.message,
        applies=Applies(risk.applies),
        url=risk.url,
        reason=risk.reason,
        severity=risk.severity,
        resources=risk.resources,
        remediation=risk.remediation,
    )


def _quote(text: str) -> str:
    """Returns the end of a container's last message on one line."""
    text = " ".join(printable(text).split())
    return text if len(text) <= _MAX_QUOTE else f"...{text[-_MAX_QUOTE:]}"
