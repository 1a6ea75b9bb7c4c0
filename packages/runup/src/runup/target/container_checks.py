"""Container checks from the target's side: requests Pods in the report, follows them, and reads what they wrote.

The managing operator creates the Pods (`runup.preflight.decide.container_check_pods`). A check is run again some time
after it ended, because only the container knows which objects it read. Its last outcome counts until a new one arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import Pod
from kubekit.api.meta_v1 import Wire
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound, Transient
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from kubekit.lang.text import count, last_words, printable
from runup.checks.decide.declarative import NOT_HERE
from runup.checks.decide.engine import CheckOutcome, could_not_tell, run_check
from runup.checks.decide.model import Applies, Check, Context, Finding, Snapshot
from runup.checks.decide.wording import names
from runup.preflight.decide.container_check_pods import CONTAINER, RUN_ANNOTATION, SELECTOR, is_pinned, run_of
from runup.report import report as reports
from runup.report.report import FORMAT, MAX_CONTAINERS, BadReport, Report, ReportedContainer

# Seconds: until a Pod must exist, the time beyond its own limit until it must end (its image is pulled first), and the
# time after its end until it is run again, which is shorter if its result was Unknown.
MADE_WITHIN_S = 90.0
GRACE_S = 60.0
AGAIN_S = 600.0
AFTER_UNKNOWN_S = 120.0


@dataclass(kw_only=True)
class _Run:
    """The requested run of a check. `said` is the last outcome that any run of the check had.

    `no_log` is the reason why this run's log could not be read at the last attempt.
    """

    number: int
    asked_at: float
    ended_at: float | None = None
    said: CheckOutcome | None = None
    no_log: str = ""


class Containers:
    """The container checks among `checks`. `images` are the target's image-references: name -> pull spec."""

    def __init__(
        self,
        client: Client,
        checks: Iterable[Check],
        *,
        preflight_id: str,
        namespace: str,
        images: Mapping[str, str],
        clock: Clock,
        changed: Callable[[], None],
    ) -> None:
        self._client = client
        self._checks = tuple(check for check in checks if check.container is not None)
        self._id = preflight_id
        self._namespace = namespace
        self._images = images
        self._clock = clock
        self.pods: Cache[Pod] = Cache(Pod)
        self.pods.add_listener(lambda _change, _old, _new: changed())
        self.pods.add_state_listener(changed)
        self._runs: dict[str, _Run] = {}

    @property
    def wanted(self) -> tuple[ReportedContainer, ...]:
        """The containers that the managing operator must run now, for the report."""
        return tuple(self._reported(check) for check in self._checks if check.name in self._runs)

    def _reported(self, check: Check) -> ReportedContainer:
        assert check.container is not None
        image, limit_s, run = check.container.image, check.container.timeout_s, self._runs[check.name].number
        return ReportedContainer(check=check.name, image=image, run=run, timeout_seconds=limit_s)

    async def run(self) -> None:
        """Follows the Pods until cancelled, if there are container checks."""
        if self._checks and self._id:
            pods = Reflector(
                self._client, Pod, self.pods, namespace=self._namespace, label_selector=SELECTOR, clock=self._clock
            )
            await pods.run()

    async def look(self, context: Context) -> dict[str, CheckOutcome]:
        """Returns the last outcome of each check, by name; a check without an outcome yet is missing."""
        outcomes: dict[str, CheckOutcome] = {}
        for check in self._checks:
            latest = self._outcome_without_run(check, context) or await self._last_outcome(check, context)
            if latest is not None:
                outcomes[check.name] = latest
        return outcomes

    def _outcome_without_run(self, check: Check, context: Context) -> CheckOutcome | None:
        """Returns the outcome that is known without a container: it is skipped, or its container cannot be run."""
        assert check.container is not None
        if not check.applies_to(context):
            return run_check(check, Snapshot(), context)
        if not self._id:
            return could_not_tell(check, NOT_HERE)
        image = check.container.image
        if not is_pinned(self._images.get(image, "")):
            return could_not_tell(check, f"the release's image-references name no image {image!r} by digest")
        if check.name not in self._runs and len(self._runs) >= MAX_CONTAINERS:
            return could_not_tell(check, f"it is one more than the {MAX_CONTAINERS} containers that are run for checks")
        return None

    async def _last_outcome(self, check: Check, context: Context) -> CheckOutcome | None:
        """Returns the check's last outcome.

        Requests another run when one is due, and reads the result of one that ended.
        """
        now = self._clock.monotonic()
        run = self._runs.setdefault(check.name, _Run(number=1, asked_at=now))
        if run.ended_at is not None:
            unknown = run.said is not None and run.said.result == "Unknown"
            if now - run.ended_at >= (AFTER_UNKNOWN_S if unknown else AGAIN_S):
                run.number, run.asked_at, run.ended_at, run.no_log = run.number + 1, now, None, ""
            return run.said
        wanted_run = run_of(self._id, self._reported(check))
        pods = (pod for pod in self.pods.all() if pod.metadata.annotations.get(RUN_ANNOTATION) == wanted_run)
        pod = next(pods, None)
        latest = await self._outcome_from_log(check, run, context, pod) if pod is not None and has_ended(pod) else None
        if latest is None:
            latest = self._outcome_if_overdue(check, run, pod, now)
        if latest is not None:
            run.said, run.ended_at = latest, now
        return run.said

    def _outcome_if_overdue(self, check: Check, run: _Run, pod: Pod | None, now: float) -> CheckOutcome | None:
        """Returns Unknown for a run that is past its time limit, or whose Pods may not be read; else None."""
        assert check.container is not None
        error = self.pods.error or ""
        if not self.pods.synced and error.startswith("not allowed to "):
            return could_not_tell(check, f"its Pod cannot be followed: {error}")
        # Without a Pod, the operator did not create one; with a Pod, its own time limit has to pass first.
        limit_s = MADE_WITHIN_S if pod is None else MADE_WITHIN_S + check.container.timeout_s + GRACE_S
        if now - run.asked_at < limit_s:
            return None
        if pod is not None and has_ended(pod):
            return without_log(check, pod, f"after {limit_s:.0f} s {run.no_log}")
        return could_not_tell(check, f"after {limit_s:.0f} s {why_it_waits(pod)}")

    async def _outcome_from_log(self, check: Check, run: _Run, context: Context, pod: Pod) -> CheckOutcome | None:
        """Returns the outcome that the container of `pod` wrote; None if its log must be requested again."""
        path = calls.path_of(resource_of(Pod), pod.metadata.namespace, pod.metadata.name, "log")
        query = (("container", CONTAINER), ("tailLines", str(TAIL_LINES)), ("limitBytes", str(TAIL_BYTES)))
        try:
            log = await self._client.send(calls.get_path(path, query))
        except (Transient, NotFound) as error:
            # The kubelet may be unreachable for a moment; the log can be read later.
            run.no_log = str(error)
            return None
        except KubeError as error:
            return without_log(check, pod, error.message)
        return outcome(check, pod, log=log, context=context, preflight_id=self._id)


def names_waiting(checks: Iterable[Check], outcomes_by_name: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the container checks that have no outcome yet."""
    return tuple(check.name for check in checks if check.container is not None and check.name not in outcomes_by_name)


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
    findings = tuple(
        Finding(
            name=risk.name,
            message=risk.message,
            applies=Applies(risk.applies),
            url=risk.url,
            reason=risk.reason,
            severity=risk.severity,
            resources=risk.resources,
            remediation=risk.remediation,
        )
        for risk in report.risks
    )
    why = _why_ended(check, pod) or next(_why_not(report, context, preflight_id), "")
    # Risks that the container did report are kept: a risk that was found does not go away.
    if why:
        return could_not_tell(check, why, findings)
    # By way of the engine, so that its rules for valid findings hold for a container's, too.
    return run_check(replace(check, run=lambda _snapshot, _context: findings), Snapshot(), context)


def without_log(check: Check, pod: Pod, why: str) -> CheckOutcome:
    """Returns the outcome of `check` if its container's log cannot be read, for example before it starts."""
    return could_not_tell(check, _why_ended(check, pod) or f"the log of Pod {pod.metadata.name} cannot be read: {why}")


def read(log: bytes) -> Report:
    """Returns the last report in `log`, which is one line of it. Raises BadReport.

    A container may run more than once, because a node that lost its state starts it again, and may log after its
    report. Lines that are not a report do not count. A report that is cut off does count, and cannot be read: an
    earlier report may have had fewer risks.
    """
    for line in reversed(log.splitlines()):
        if FORMAT.encode() not in line or not line.lstrip().startswith(b"{"):
            continue
        # A whole line of another format only quotes the name of ours. A line that is cut off is read, and fails.
        with suppress(codec.DecodeError):
            if codec.decode(_Head, line).format != FORMAT:
                continue
        return reports.read(line)
    raise BadReport(f"its container wrote no line of JSON of format {FORMAT}", reason="ReportInvalid")


class _Head(Wire, frozen=True):
    format: str = ""


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
        waits = [status.state.waiting for status in pod.status.container_statuses if status.state.waiting]
        waited = f": it waited ({waits[0].reason}): {_quote(waits[0].message)}".rstrip(": ") if waits else ""
        return f"its container did not end{limit}{waited}"
    own = (status.state.terminated for status in pod.status.container_statuses if status.name == CONTAINER)
    ended = next(filter(None, own), None)
    if ended is None:
        reason = pod.status.reason or pod.status.phase
        return f"its Pod came to {reason}: {_quote(pod.status.message)}".rstrip(": ")
    if ended.exit_code or ended.reason == "OOMKilled":
        last = _quote(ended.message)
        return f"its container ended with exit code {ended.exit_code} ({ended.reason}): {last}".rstrip(": ")
    return ""


def _why_not(report: Report, context: Context, preflight_id: str) -> Iterator[str]:
    """Yields the reasons why a report does not answer the request."""
    # A container need not repeat the id of the preflight.
    if report.target_version != str(context.target) or report.preflight_id not in ("", preflight_id):
        yield f"its container's report is of another preflight, for {report.target_version}"
    if report.execution_status != "completed":
        yield f"its container's checks are {report.execution_status}: {report.message or 'it does not say why'}"
    if not report.checks and not report.risks:
        yield "its container checked nothing: its report names no check and no risk"
    if report.risks_omitted:
        yield f"its container found {count(report.risks_omitted, 'more risk')} than its report has"
    for result, applies in (("Applies", "True"), ("Unknown", "Unknown")):
        unexplained = [check.name for check in report.checks if check.result == result]
        if unexplained and not any(risk.applies == applies for risk in report.risks):
            yield f"its container's report says {result} for {names(unexplained)}, and names no such risk"


def _quote(text: str) -> str:
    """Returns the end of a container's last message on one line."""
    return last_words(printable(text), _MAX_QUOTE)
