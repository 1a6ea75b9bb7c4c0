"""Container checks from the target's side: requests Pods in the report, follows them, and reads what they wrote.

The managing operator creates the Pods (`runup.preflight.decide.container_check_pods`). A check is run again some time
after it ended, because only the container knows which objects it read. Its last outcome counts until a new one arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubekit.api.core_v1 import Pod
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound, Transient
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.checks.decide.declarative import NOT_HERE
from runup.checks.decide.engine import CheckOutcome, could_not_tell, run_check
from runup.checks.decide.model import Check, Context, Snapshot
from runup.preflight.decide.container_check_pods import CONTAINER, RUN_ANNOTATION, SELECTOR, is_pinned, run_of
from runup.report.report import MAX_CONTAINERS, ReportedContainer
from runup.target.container_outcome import TAIL_BYTES, TAIL_LINES, has_ended, outcome, why_it_waits, without_log

# Seconds: until a Pod must exist, the time beyond its own limit until it must end (its image is pulled first), and the
# time after its end until it is run again, which is shorter if its result was Unknown.
MADE_WITHIN_S = 90.0
GRACE_S = 60.0
AGAIN_S = 600.0
AFTER_UNKNOWN_S = 120.0


@dataclass
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
        """The containers that the managing operator is to run now, for the report."""
        due_checks = (check for check in self._checks if check.name in self._runs)
        return tuple(_container_of_report(check, self._runs[check.name]) for check in due_checks)

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
        run = self._runs.setdefault(check.name, _Run(1, now))
        if run.ended_at is not None:
            unknown = run.said is not None and run.said.result == "Unknown"
            if now - run.ended_at >= (AFTER_UNKNOWN_S if unknown else AGAIN_S):
                run.number, run.asked_at, run.ended_at, run.no_log = run.number + 1, now, None, ""
            return run.said
        pod = self._pod_of_run(check, run)
        latest = await self._outcome_from_log(check, run, context, pod) if pod is not None and has_ended(pod) else None
        if latest is None:
            latest = self._outcome_if_overdue(check, run, pod, now)
        if latest is not None:
            run.said, run.ended_at = latest, now
        return run.said

    def _pod_of_run(self, check: Check, run: _Run) -> Pod | None:
        wanted_run = run_of(self._id, _container_of_report(check, run))
        pods = (pod for pod in self.pods.all() if pod.metadata.annotations.get(RUN_ANNOTATION) == wanted_run)
        return next(pods, None)

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
        """Returns the outcome that the container of `pod` wrote; None if its log is to be requested again."""
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
        return outcome(check, pod, log, context, self._id)


def _container_of_report(check: Check, run: _Run) -> ReportedContainer:
    assert check.container is not None
    return ReportedContainer(
        check=check.name, image=check.container.image, run=run.number, timeout_seconds=check.container.timeout_s
    )


def names_waiting(checks: Iterable[Check], outcomes_by_name: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the container checks that have no outcome yet."""
    return tuple(check.name for check in checks if check.container is not None and check.name not in outcomes_by_name)
