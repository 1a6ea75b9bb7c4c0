"""The clusterversion controller: watches what bears on ClusterVersion, observes caches, decides, executes.

One key in the queue, however many events came. `observe` awaits nothing; long work runs in the sources, whose state is
observed like anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from runup.api.config_v1 import ClusterOperator, ClusterVersion, FeatureGate
from runup.api.core_v1 import ConfigMap, Pod
from runup.api.meta_v1 import NamespacedName
from runup.api.workloads_v1 import Deployment
from runup.controllers.execute import Executor, StatusRefused
from runup.controllers.metrics import Metrics
from runup.controllers.sources import reports
from runup.controllers.sources.reports import ReportReader
from runup.controllers.sources.signatures import ReleaseChecks
from runup.controllers.sources.update_service import UpdateService
from runup.domain.clusterversion.observed import Facts, Observed
from runup.domain.clusterversion.preflights import CHECK_RELEASE, READ_RELEASE
from runup.domain.clusterversion.reconcile import NAME, RETRIEVE_UPDATES, reconcile
from runup.domain.clusterversion.refusal import Refused
from runup.domain.plan import Plan
from runup.domain.preflight import history, workloads
from runup.domain.preflight.outcome import ReportSeen
from runup.kube.cache import Cache
from runup.kube.client import Client
from runup.kube.clock import Clock
from runup.kube.errors import Conflict, KubeError
from runup.kube.watch import Reflector
from runup.kube.workqueue import QueueShutDown, WorkQueue

log = structlog.get_logger("clusterversion")
KEY = "version"


@dataclass(frozen=True, slots=True)
class Caches:
    """What is watched."""

    versions: Cache[ClusterVersion]
    operators: Cache[ClusterOperator]
    gates: Cache[FeatureGate]
    deployments: Cache[Deployment]
    pods: Cache[Pod]
    config_maps: Cache[ConfigMap]

    @classmethod
    def new(cls) -> Caches:
        """Empty caches."""
        return cls(
            Cache(ClusterVersion),
            Cache(ClusterOperator),
            Cache(FeatureGate),
            Cache(Deployment),
            Cache(Pod),
            Cache(ConfigMap),
        )

    def all(self) -> tuple[Cache[Any], ...]:
        """Every cache."""
        return (self.versions, self.operators, self.gates, self.deployments, self.pods, self.config_maps)

    def not_ready(self) -> str:
        """Which cache has neither a list nor a reason for having none, in words; empty when all do.

        Without our own workload's true state nothing may be decided; operators and gates may be unreadable, which the
        domain treats as "could not tell" and "closed".
        """
        needed: tuple[Cache[Any], ...] = (self.versions, self.deployments, self.pods, self.config_maps)
        for cache in needed:
            if not cache.synced:
                return f"{cache.kind.__name__} is not listed yet{f': {cache.error}' if cache.error else ''}"
        told: tuple[Cache[Any], ...] = (self.operators, self.gates)
        for cache in told:
            if not cache.synced and cache.error is None:
                return f"{cache.kind.__name__} is not listed yet"
        return ""


def reflectors(client: Client, caches: Caches, namespace: str, clock: Clock) -> tuple[Reflector[Any], ...]:
    """What fills the caches: of the namespace only what is ours."""
    return (
        Reflector(client, ClusterVersion, caches.versions, field_selector="metadata.name=version", clock=clock),
        Reflector(client, ClusterOperator, caches.operators, clock=clock),
        Reflector(client, FeatureGate, caches.gates, field_selector="metadata.name=cluster", clock=clock),
        Reflector(
            client,
            Deployment,
            caches.deployments,
            namespace=namespace,
            label_selector=workloads.SELECTOR,
            clock=clock,
        ),
        Reflector(client, Pod, caches.pods, namespace=namespace, label_selector=workloads.SELECTOR, clock=clock),
        Reflector(
            client, ConfigMap, caches.config_maps, namespace=namespace, label_selector=workloads.SELECTOR, clock=clock
        ),
    )


class ClusterVersionController:
    """See the module. `run` works until cancelled."""

    def __init__(
        self,
        *,
        caches: Caches,
        facts: Facts,
        executor: Executor,
        service: UpdateService,
        checks: ReleaseChecks,
        reader: ReportReader,
        queue: WorkQueue[str],
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._caches = caches
        self._facts = facts
        self._executor = executor
        self._service = service
        self._checks = checks
        self._reader = reader
        self._queue = queue
        self._metrics = metrics
        self._clock = clock
        self._refused = Refused()
        self._workers: Mapping[str, Callable[[Any], None]] = {
            RETRIEVE_UPDATES: service.ask,
            CHECK_RELEASE: checks.check,
            READ_RELEASE: checks.read,
        }
        for cache in caches.all():
            cache.add_listener(lambda _change, _old, _new: queue.add(KEY))
            cache.add_state_listener(lambda: queue.add(KEY))

    async def run(self) -> None:
        """Take keys until cancelled or the queue shuts down."""
        self._queue.add(KEY)
        while True:
            try:
                key = await self._queue.get()
            except QueueShutDown:
                return
            try:
                await self._handle(key)
            finally:
                self._queue.done(key)

    async def _handle(self, key: str) -> None:
        """One pass; the error's type says what happens next. A bug of ours must not end the operator."""
        try:
            await self._pass(key)
        except Conflict as error:
            log.debug("decided on an old version", error=str(error))
            self._queue.add_rate_limited(key)
        except StatusRefused as error:
            self._refused = self._refused.and_also(error.action.fields, error.causes, error.message)
            self._metrics.status_refused()
            log.warning("the API server refuses the status", error=error.message, fields=sorted(error.action.fields))
            self._queue.add_rate_limited(key)
        except KubeError as error:
            log.warning("a write failed", error=str(error), failures=self._queue.failures(key))
            self._queue.add_rate_limited(key)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("reconcile failed")
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)

    async def _pass(self, key: str) -> None:
        observed = self.observe()
        if observed is None:
            return
        now = self._clock.now()
        plan = reconcile(observed, now=now)
        await self._executor.execute(plan)
        for name, argument in plan.work:
            self._workers[name](argument)
        self._metrics.count(observed, plan, now)
        if plan.actions:
            log.info("reconciled", actions=_summary(plan))
        if plan.requeue_after_s is not None:
            self._queue.add_after(key, plan.requeue_after_s)

    def observe(self) -> Observed | None:
        """One look at caches and sources; None while there is too little to decide on."""
        caches, place = self._caches, self._facts.place
        version = caches.versions.get(NAME)
        if caches.not_ready() or version is None:
            return None
        deployment = caches.deployments.get(NamespacedName(place.namespace, workloads.NAME))
        preflight_id = deployment.metadata.annotations.get(workloads.ID_ANNOTATION, "") if deployment else ""
        return Observed(
            cluster_version=version,
            facts=self._facts,
            feature_gate=caches.gates.get(NamespacedName("", "cluster")) if caches.gates.synced else None,
            operators=_sorted(caches.operators),
            operators_error=caches.operators.error or "",
            deployment=deployment,
            pods=tuple(caches.pods.all()),
            history=caches.config_maps.get(NamespacedName(place.namespace, history.NAME)),
            report=self._report(preflight_id),
            report_maps=tuple(sorted(reports.names_of(caches.config_maps.all()))),
            service=self._service.state,
            releases=dict(self._checks.states),
            refused=self._refused,
        )

    def _report(self, preflight_id: str) -> ReportSeen | None:
        if self._facts.place.report_sink == "configmap":
            key = NamespacedName(self._facts.place.namespace, workloads.report_map(preflight_id))
            return reports.from_config_map(self._caches.config_maps.get(key), preflight_id, self._clock)
        self._reader.follow(preflight_id)
        return self._reader.seen


def _sorted(cache: Cache[ClusterOperator]) -> tuple[ClusterOperator, ...] | None:
    if not cache.synced:
        return None
    return tuple(sorted(cache.all(), key=lambda operator: operator.metadata.name))


def _summary(plan: Plan) -> list[str]:
    return [f"{type(action).__name__} {getattr(action, 'resource', '')}" for action in plan.actions]
