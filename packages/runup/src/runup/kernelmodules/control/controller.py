"""The controller of the kernel-module preflight: at every change it observes a name's objects and carries out one plan.

A name represents a PreflightValidationOCP and the PreflightValidation that it created, or either alone. A pass does not
wait for registries, which are read in the background. A run that the API server rejects is reported in its Module's
status, and the other Modules continue. The metrics count what it does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import NamespacedName
from kubekit.kube.api_errors import ApiError, Conflict, KubeError, Transient
from kubekit.kube.clock import Clock
from kubekit.kube.workqueue import WorkQueue
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.control.answer_cache import AnswerCache
from runup.kernelmodules.control.watches import Caches, Runners
from runup.kernelmodules.decide import build_jobs, builds, readiness, reconcile
from runup.kernelmodules.decide.module_state import AnswerValue, Observed, Question
from runup.kernelmodules.decide.runs import Run
from runup.process.plan import Action, Apply, Event, PatchStatus, Plan
from runup.process.plan_executor import Executor, NotApplied

_STATUS = ("preflight", "namespace", "name", "status")


class Metrics:
    """The metrics of one controller, in their own registry, because a process may have several controllers.

    Names with `kmm_` are those of Kernel Module Management.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leading = Gauge(
            "kernel_module_preflight_leading", "1 while this process holds the lease.", registry=self.registry
        )
        self.modules = Gauge("kmm_module_num", "Modules in the cluster.", registry=self.registry)
        self.builds = Gauge("kmm_in_cluster_build_num", "Modules with a build section.", registry=self.registry)
        self.signs = Gauge("kmm_in_cluster_sign_num", "Modules with a sign section.", registry=self.registry)
        self.preflights = Gauge("kmm_preflight_num", "Preflight validations in the cluster.", registry=self.registry)
        self.statuses = Gauge(
            "kmm_preflight_module_status",
            "1 for the state of a Module in a validation: its status, or Build or Sign while that runs.",
            _STATUS,
            registry=self.registry,
        )
        self.writes = Counter(
            "kernel_module_preflight_writes", "Writes to the cluster, by kind.", ("kind",), registry=self.registry
        )
        self.answers = Histogram(
            "kernel_module_preflight_answer_seconds",
            "Finding out about an image, a release, or what a build is made of.",
            ("question",),
            buckets=(0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
            registry=self.registry,
        )

    def timed(
        self, answer: Callable[[Question], Awaitable[AnswerValue]], clock: Clock
    ) -> Callable[[Question], Awaitable[AnswerValue]]:
        """Returns `answer` wrapped so that the duration of each call is recorded."""

        async def answer_timed(question: Question) -> AnswerValue:
            """Answers the question and records how many seconds that took."""
            started = clock.monotonic()
            try:
                return await answer(question)
            finally:
                kind = type(question).__name__.removesuffix("Question").lower()
                self.answers.labels(kind).observe(clock.monotonic() - started)

        return answer_timed

    def see(
        self,
        modules: Iterable[Module],
        validations: Iterable[PreflightValidation],
        ocps: Iterable[PreflightValidationOCP],
    ) -> None:
        """Sets the gauges from the current objects; series of deleted objects are removed."""
        modules, validations = tuple(modules), tuple(validations)
        self.modules.set(len(modules))
        self.builds.set(sum(_has_section(module, "build") for module in modules))
        self.signs.set(sum(_has_section(module, "sign") for module in modules))
        # A PreflightValidationOCP counts only while it has no PreflightValidation of its own.
        owned = {
            owner.name
            for validation in validations
            for owner in validation.metadata.owner_references
            if owner.controller
        }
        self.preflights.set(len(validations) + sum(ocp.metadata.name not in owned for ocp in ocps))
        self.statuses.clear()
        for validation in validations:
            for entry in validation.status.modules:
                status = entry.running_stage or entry.verification_status
                self.statuses.labels(validation.metadata.name, entry.namespace, entry.name, status).set(1)


def _has_section(module: Module, section: str) -> bool:
    """Reports whether the Module has `section` (build, sign) for any of its kernels."""
    loader = module.spec.module_loader
    if loader is None:
        return False
    parts = (loader.container, *loader.container.kernel_mappings)
    return any(getattr(part, section) is not None for part in parts)


log = structlog.get_logger("kernelmodules")
NAME = "kernel-module-preflight"
# Seconds by which a pass is delayed, so that changes at the same time cost one pass.
BATCH_DELAY_S = 0.1
_RUNS = (build_jobs.JOBS, builds.BUILDS)


class KernelModulesController:
    """The controller of preflight validations; `run` works until cancelled."""

    def __init__(
        self, *, caches: Caches, queue: WorkQueue[str], clock: Clock, metrics: Metrics, builder: build_jobs.Builder
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._builder = builder
        self._refused: dict[NamespacedName, tuple[str, float]] = {}
        self._requested = False
        self._edited: set[str] = set()
        caches.on_change(self.on_change, self.on_any_change, self.on_request, self._edited.add)

    def on_change(self, name: str) -> None:
        """Queues the validation of that name, which a change affects; ignores an empty name."""
        if name:
            self._queue.add_after(name, BATCH_DELAY_S)

    def on_request(self) -> None:
        """Makes the next pass drop all earlier answers, because a user created or edited a validation."""
        self._requested = True

    def on_any_change(self) -> None:
        """Queues every validation, after a change that affects all."""
        for name in self._caches.names():
            self.on_change(name)

    async def run(self, executor: Executor, asking: AnswerCache, runners: Runners) -> None:
        """Handles queued names until cancelled. Changes from before this process led were queued as they came."""
        while True:
            name = await self._queue.get()
            try:
                await self.handle(name, executor, asking, runners)
            finally:
                self._queue.done(name)

    async def handle(self, name: str, executor: Executor, asking: AnswerCache, runners: Runners) -> None:
        """Runs one pass, and queues the name again with back-off if it fails. No exception ends the controller."""
        try:
            await self._pass(name, executor, asking, runners)
        except Conflict as error:
            # Not a fault: the watch is about to deliver the newer version.
            log.debug("decided on an old version", preflight=name, error=str(error))
        except (KubeError, DecodeError) as error:
            log.warning(
                "it could not be written", preflight=name, error=str(error), failures=self._queue.failures(name)
            )
        except Exception:
            log.exception("the pass failed", preflight=name)
        else:
            self._queue.forget(name)
            return
        self._queue.add_rate_limited(name)

    async def _pass(self, name: str, executor: Executor, asking: AnswerCache, runners: Runners) -> None:
        """Runs one pass for the validation `name`: observes, decides, acts, and requests missing facts."""
        if self._is_too_early():
            return
        if self._requested:
            self._requested = False
            asking.forget()
        elif self._edited:
            asking.forget(self._edited)
        self._edited.clear()
        observed = self.observe(name, asking, runners)
        plan = reconcile.reconcile(observed, now=self._clock.now())
        asking.ask(plan.work)
        self.log_plan(observed, plan)
        self._metrics.see(self._caches.modules.all(), self._caches.validations.all(), self._caches.ocps.all())
        if plan.requeue_after_s is not None:
            self._queue.add_after(name, max(plan.requeue_after_s, BATCH_DELAY_S))
        await self.carry_out(plan, executor)

    def _is_too_early(self) -> bool:
        """Returns whether a cache is not filled yet: a Module that is not listed yet must not count as deleted."""
        return bool(self._caches.waiting())

    def observe(self, name: str, asking: AnswerCache, runners: Runners) -> Observed:
        """Returns all state that affects the validation of that name."""
        caches = self._caches
        key = NamespacedName("", name)
        modules = caches.modules
        return Observed(
            name=name,
            ocp=caches.ocps.get(key),
            validation=caches.validations.get(key),
            validations={validation.metadata.name: validation for validation in caches.validations.all()},
            parents={validation.metadata.name: validation for validation in caches.ocps.all()},
            modules=tuple(modules.all()) if modules.synced else None,
            unreadable=modules.undecoded,
            modules_problem=modules.error or "",
            incomplete="; ".join(modules.incomplete),
            nodes=tuple(caches.nodes.all()) if caches.nodes.synced else None,
            runs=self._observed_runs(),
            runner=runners.current,
            refused=self._refusals(),
            answers=asking.known,
            builder=self._builder,
        )

    def _observed_runs(self) -> tuple[Run, ...]:
        """Returns the build and sign runs of Jobs and Builds, sorted by key."""
        pods = self._caches.pods.all()
        runs = [
            *(build_jobs.run_of(job, pods) for job in self._caches.jobs.all()),
            *(builds.run_of(build) for build in self._caches.builds.all()),
        ]
        return tuple(sorted((run for run in runs if run is not None), key=lambda run: run.key))

    def _refusals(self) -> dict[NamespacedName, str]:
        """Returns the rejections of the last 180 s by run, and forgets older ones, so that those runs are tried again.

        A quota, an admission webhook or a permission may have changed by then.
        """
        oldest = self._clock.monotonic() - readiness.RECHECK_INTERVAL_S
        self._refused = {key: refusal for key, refusal in self._refused.items() if refusal[1] > oldest}
        return {key: message for key, (message, _) in self._refused.items()}

    async def carry_out(self, plan: Plan[Question], executor: Executor) -> None:
        """Executes every action, even after one that failed, because Modules are independent; raises the first error.

        A Conflict ends it, because the plan was decided on an old version.
        """
        failed: KubeError | None = None
        for action in plan.actions:
            try:
                await executor.execute(Plan((action,)))
            except (NotApplied, ApiError, Transient) as error:
                if self._is_refusal(action, error):
                    continue
                failed = failed or error
                if isinstance(error, Conflict):
                    break
            else:
                if not isinstance(action, Event):
                    self._metrics.writes.labels(action.resource.kind).inc()
        if failed is not None:
            raise failed

    def _is_refusal(self, action: Action, error: KubeError) -> bool:
        """Returns whether the server refused to create a run for good; the next pass then reports that."""
        if not isinstance(error, NotApplied) or not error.lasting:
            return False
        if not isinstance(action, Apply) or action.resource not in _RUNS:
            return False
        metadata = action.object["metadata"]
        key = NamespacedName(metadata["namespace"], metadata["name"])
        log.warning("a run was refused", kind=action.resource.kind, run=str(key), error=str(error))
        self._refused[key] = (f"{action.resource.kind} {key} was refused: {error}", self._clock.monotonic())
        # The status that this pass writes does not mention the rejection yet.
        self.on_any_change()
        return True

    def log_plan(self, observed: Observed, plan: Plan[Question]) -> None:
        """Logs one line for each transition, by preflight and module."""
        for action in plan.actions:
            if isinstance(action, Apply):
                metadata = action.object["metadata"]
                object_key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
                log.info("applying", preflight=observed.name, kind=action.resource.kind, object=str(object_key))
            elif isinstance(action, PatchStatus):
                self._tell_status(observed, action)

    def _tell_status(self, observed: Observed, action: PatchStatus) -> None:
        """Logs what changed in the status of each Module."""
        before = observed.validation if action.resource.kind == "PreflightValidation" else observed.ocp
        old_entries = {(entry.namespace, entry.name): entry for entry in before.status.modules} if before else {}
        for entry in action.fields.get("modules", ()):
            old = old_entries.get((entry["namespace"], entry["name"]))
            stage = entry.get("runningStage") or entry["verificationStage"]
            new = (entry["verificationStatus"], stage, entry.get("statusReason", ""))
            known_stage = (old.running_stage or old.verification_stage) if old else ""
            if old is None or new != (old.verification_status, known_stage, old.status_reason):
                log.info(
                    "module",
                    kind=action.resource.kind,
                    preflight=observed.name,
                    module=f"{entry['namespace']}/{entry['name']}",
                    status=new[0],
                    stage=new[1],
                    reason=new[2],
                )
