"""The clusterversion controller: watches what bears on ClusterVersion, observes caches, decides, executes.

The queue holds one key, however many events arrive. `observe` awaits nothing: long work runs in the sources, whose
state is observed like anything else.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, assert_never

import structlog
from msgspec import structs

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap, Event, Pod
from kubekit.api.meta_v1 import NamespacedName
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube.api_errors import Conflict, KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import NO_API, Reflector
from kubekit.kube.workqueue import WorkQueue
from runup.advice.control.prometheus import Prometheus
from runup.advice.control.update_service import UpdateService
from runup.advice.decide import acceptance, promql
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterOperator, ClusterVersion, Release
from runup.applying.control.loading import OwnRelease, ReleaseLoads
from runup.applying.control.worker import Work as ReleaseWork
from runup.applying.control.worker import Worker
from runup.clusterversion.control import preflight_log, release_verification
from runup.clusterversion.control.metrics import Metrics
from runup.clusterversion.decide import sync_failure
from runup.clusterversion.decide import work as works
from runup.clusterversion.decide.observed import Observed, OperatorFacts
from runup.clusterversion.decide.reconcile import NAME, reconcile
from runup.preflight.control import report_reader
from runup.preflight.decide import container_check_pods, outcome, preflight_deployment, stored_reports
from runup.preflight.decide import preflight_settings as settings
from runup.process.ca_file import Authorities
from runup.process.plan_executor import Executor, NotApplied, StatusRefused
from runup.rules import admin_acks

log = structlog.get_logger("clusterversion")
KEY = "version"
WATCH_S = 1800
POD_SELECTOR = f"{preflight_deployment.APP_LABEL} in ({preflight_deployment.NAME},{container_check_pods.NAME})"
# Consecutive failures of a write, for a reason that may pass, before they are reported.
PATIENCE = 3
_NO_VERSION = "there is no ClusterVersion version: nothing is checked or applied until it is created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """The caches of watched objects."""

    versions: Cache[ClusterVersion]
    operators: Cache[ClusterOperator]
    gates: Cache[FeatureGate]
    deployments: Cache[Deployment]
    pods: Cache[Pod]
    config_maps: Cache[ConfigMap]
    settings: Cache[ConfigMap]
    warnings: Cache[Event]
    admin_gates: Cache[ConfigMap]
    admin_acks: Cache[ConfigMap]

    @classmethod
    def new(cls) -> Caches:
        """Returns empty caches."""
        return cls(
            versions=Cache(ClusterVersion),
            operators=Cache(ClusterOperator),
            gates=Cache(FeatureGate),
            deployments=Cache(Deployment),
            pods=Cache(Pod),
            config_maps=Cache(ConfigMap),
            settings=Cache(ConfigMap),
            warnings=Cache(Event),
            admin_gates=Cache(ConfigMap),
            admin_acks=Cache(ConfigMap),
        )

    def all(self) -> tuple[Cache[Any], ...]:
        """Returns every cache."""
        own_caches = (self.deployments, self.pods, self.config_maps, self.settings, self.warnings)
        return (self.versions, self.operators, self.gates, self.admin_gates, self.admin_acks, *own_caches)

    def feature_gate(self) -> FeatureGate | None:
        """Returns FeatureGate `cluster`, None if it does not exist or none can be read."""
        return self.gates.get(NamespacedName("", "cluster")) if self.gates.synced else None

    def feature_gate_error(self) -> str:
        """Returns why FeatureGate `cluster` is not known; empty also for a cluster that does not have the kind."""
        error = _why_unreadable(self.gates)
        return "" if error.startswith(NO_API) else error

    def not_ready(self) -> str:
        """Returns which cache has neither a list nor an error that explains its absence; empty if all do.

        Nothing may be decided without the true state of this project workload, so an undecodable ClusterVersion or
        Deployment stops every pass. Operators and gates may be unreadable, which the decisions treat as "could not
        tell" and "closed".
        """
        # Settings, too: with default settings instead, a running preflight would be restarted for no reason.
        needed: tuple[Cache[Any], ...] = (self.versions, self.deployments, self.pods, self.config_maps, self.settings)
        for cache in needed:
            if not cache.synced:
                return f"{cache.kind.__name__} is not listed yet{f': {cache.error}' if cache.error else ''}"
        vital: tuple[Cache[Any], ...] = (self.versions, self.deployments)
        for cache in vital:
            for bad in cache.undecoded:
                return f"{cache.kind.__name__} {bad}"
        optional: tuple[Cache[Any], ...] = (self.operators, self.gates, self.admin_gates, self.admin_acks)
        for cache in optional:
            if not cache.synced and cache.error is None:
                return f"{cache.kind.__name__} is not listed yet"
        return ""

    def idle(self) -> str:
        """Returns why nothing is done for the cluster: what `not_ready` says, or that there is no ClusterVersion."""
        return self.not_ready() or (_NO_VERSION if self.versions.get(NAME) is None else "")


def reflectors(client: Client, caches: Caches, namespace: str, clock: Clock) -> tuple[Reflector[Any], ...]:
    """Returns the reflectors that fill the caches. Their watches last long, since each end of one costs a request."""
    settings = f"metadata.name={preflight_deployment.SETTINGS_MAP}"
    own_objects: dict[str, Any] = {"namespace": namespace, "label_selector": preflight_deployment.SELECTOR}
    selections: tuple[tuple[Cache[Any], dict[str, Any]], ...] = (
        (caches.settings, {"namespace": namespace, "field_selector": settings}),
        (caches.warnings, {"namespace": namespace, "field_selector": "type=Warning"}),
        (caches.versions, {"field_selector": "metadata.name=version"}),
        (caches.operators, {}),
        (caches.gates, {"field_selector": "metadata.name=cluster"}),
        (caches.deployments, own_objects),
        (caches.pods, {"namespace": namespace, "label_selector": POD_SELECTOR}),
        (caches.config_maps, own_objects),
        (caches.admin_gates, _single_object(admin_acks.GATES_NAMESPACE, admin_acks.GATES)),
        (caches.admin_acks, _single_object(admin_acks.ACKS_NAMESPACE, admin_acks.ACKS)),
    )
    return tuple(
        Reflector(client, cache.kind, cache, clock=clock, watch_s=WATCH_S, **selectors)
        for cache, selectors in selections
    )


def _single_object(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "field_selector": f"metadata.name={name}"}


class ClusterVersionController:
    """The controller of ClusterVersion; `run` works until cancelled."""

    def __init__(
        self,
        *,
        caches: Caches,
        facts: OperatorFacts,
        own_release: OwnRelease,
        executor: Executor,
        service: UpdateService,
        prometheus: Prometheus | None = None,
        checks: release_verification.ReleaseChecks,
        reader: report_reader.ReportReader,
        queue: WorkQueue[str],
        loads: ReleaseLoads | None = None,
        worker: Worker | None = None,
        authorities: Authorities,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._caches = caches
        self._facts = facts
        self._own = own_release
        self._executor = executor
        self._service = service
        self._prometheus = prometheus
        self._checks = checks
        self._reader = reader
        self._queue = queue
        self._loads = loads
        self._worker = worker
        self._authorities = authorities
        self._metrics = metrics
        self._clock = clock
        self._odd: set[str] = set()
        self._story = preflight_log.PreflightLogger()
        self._age = WorkloadAge(clock)
        self._refused = sync_failure.RejectedFields()
        self._failure: sync_failure.Failure | None = None
        self._unwritten = ""
        for cache in caches.all():
            cache.add_listener(lambda _change, _old, _new: queue.add(KEY))
            cache.add_state_listener(lambda: queue.add(KEY))

    async def run(self) -> None:
        """Processes keys until cancelled."""
        # The first pass does not wait for an event.
        self._queue.add(KEY)
        while True:
            key = await self._queue.get()
            try:
                await self.handle(key)
            finally:
                self._queue.done(key)

    async def handle(self, key: str) -> None:
        """Runs one pass; the error's type says what happens next. A bug of ours must not end the operator."""
        try:
            await self._pass(key)
        except Conflict as error:
            # Somebody wrote in between: the watch brings the newer object, and the next pass decides on that.
            log.debug("decided on an old version", error=str(error))
            if self._queue.failures(key) >= PATIENCE:
                await self._read_again()
            self._queue.add_rate_limited(key)
        except StatusRefused as error:
            self._refused = self._refused.and_also(error.action.fields, error.causes, error.message)
            self._metrics.status_refused()
            log.warning("the API server refuses the status", error=error.message, fields=sorted(error.action.fields))
            self._queue.add_rate_limited(key)
        except NotApplied as error:
            # A webhook that is away, or a server that is restarted, is worth a word when it stays so.
            if error.lasting or self._queue.failures(key) >= PATIENCE:
                self._unwritten = error.what
            failures = self._queue.failures(key)
            log.warning("an object is not taken", error=error.what, reason=error.reason, failures=failures)
            if self._is_preflight_requested():  # whose condition tells it; the cluster is none the worse
                self._queue.add_rate_limited(key)
            else:
                await self._failed(key, sync_failure.Failure(error.what, error.reason))
        except (KubeError, DecodeError) as error:
            log.warning(
                "a write failed", error=str(error), reason=_failing_reason(error), failures=self._queue.failures(key)
            )
            await self._failed(key, sync_failure.Failure(str(error), _failing_reason(error)))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("reconcile failed")
            await self._failed(key, sync_failure.Failure(f"{type(error).__name__}: {error}", decided=False))
        else:
            self._queue.forget(key)
            if self._failure is not None:
                self._failure = None
                self._queue.add(key)

    def _is_preflight_requested(self) -> bool:
        version = self._caches.versions.get(NAME)
        desired = version.spec.desired_update if version is not None else None
        return desired is not None and bool(desired.mode)

    async def _read_again(self) -> None:
        """Reads ClusterVersion, for a watch whose connection is dead: it brings nothing until it is given up."""
        try:
            self._caches.versions.put(await self._executor.newest(ClusterVersion, NAME.name))
        except (KubeError, DecodeError) as error:
            log.debug("the newest version could not be read", error=str(error))

    async def _failed(self, key: str, failure: sync_failure.Failure) -> None:
        """Retries later with back-off; reports the failure after `sync_failure.REPORT_AFTER_FAILURES` in a row."""
        self._queue.add_rate_limited(key)
        version = self._caches.versions.get(NAME)
        # An operator that only records leaves these conditions to the one that applies releases.
        if self._queue.failures(key) < sync_failure.REPORT_AFTER_FAILURES or version is None or self._worker is None:
            return
        if self._failure is None or self._failure.reason != failure.reason:
            self._failure = failure  # a message that changes each time would cause a write each time
        try:
            await self._executor.execute(sync_failure.plan(version, self._failure, self._clock.now()))
        except (KubeError, DecodeError) as error:
            log.warning("the failure of passes was not published", error=str(error))

    async def _pass(self, key: str) -> None:
        """Runs one pass: observes, decides, carries the plan out, and begins the work that it asks for."""
        self._report_undecodable()
        observed = self.observe()
        if observed is None:
            self._report_missing_version()
            return
        now = self._clock.now()
        self._metrics.look(observed)
        plan = reconcile(observed, now=now)
        try:
            await self._executor.execute(plan)
        except NotApplied:
            # Reading is harmless and may begin; applying depends on what was to be written first.
            for work in plan.work:
                if not isinstance(work, works.ApplyRelease):
                    self._begin_work(work)
            raise
        self._unwritten = ""
        for work in plan.work:
            self._begin_work(work)
        self._metrics.count(observed, plan, now)
        self._story.log(observed, plan)
        # A report that is left over must not be taken for one of a later preflight.
        if preflight_log.has_no_report_writer(observed, plan):
            self._reader.clear()
        if plan.actions:
            log.info(
                "reconciled",
                actions=[f"{type(action).__name__} {getattr(action, 'resource', '')}" for action in plan.actions],
            )
        if plan.requeue_after_s is not None:
            self._queue.add_after(key, plan.requeue_after_s)

    def _begin_work(self, work: works.Work) -> None:
        """Hands one piece of work to anybody who does it in the background."""
        match work:
            case works.RetrieveUpdates(query):
                self._service.ask(query)
            case works.EvaluateRules(queries):
                self.evaluate(queries)
            case works.VerifyRelease(image):
                self._checks.check(image)
            case works.ReadRelease(image):
                self._checks.read(image)
            case works.ReadRights(image):
                self._checks.read_rights(image)
            case works.ReadImages(image):
                self._checks.read_images(image)
            case works.LoadRelease(release):
                self.load(release)
            case works.ApplyRelease():
                self.apply(work)
            case _:
                assert_never(work)

    def _report_undecodable(self) -> None:
        """Logs one line for each object that could not be decoded, when it appears and when its error changes."""
        odd = {f"{cache.kind.__name__} {bad}" for cache in self._caches.all() for bad in cache.undecoded}
        for words in sorted(odd - self._odd):
            log.error("an object is not as its kind should be; correct it, or what writes it", error=words)
        self._odd = odd

    def _report_missing_version(self) -> None:
        """Reports a missing ClusterVersion as a metric: otherwise idling would look healthy."""
        if not self._caches.not_ready():
            self._metrics.cluster.look_without_version(_sorted_operators(self._caches.operators) or ())

    def observe(self) -> Observed | None:
        """Returns a snapshot of caches and sources; None while there is too little to decide on."""
        caches = self._caches
        place = structs.replace(self._facts.place, prometheus_ca=self._authorities.pem())
        version = caches.versions.get(NAME)
        if caches.not_ready() or version is None:
            return None
        deployment = caches.deployments.get(NamespacedName(place.namespace, preflight_deployment.NAME))
        preflight_id = deployment.metadata.annotations.get(preflight_deployment.ID_ANNOTATION, "") if deployment else ""
        preflight_settings = settings.read(
            caches.settings.get(NamespacedName(place.namespace, preflight_deployment.SETTINGS_MAP)), place
        )
        return Observed(
            cluster_version=version,
            facts=replace(self._facts, place=preflight_settings.pods, version_hash=self._release_hash()),
            feature_gate=caches.feature_gate(),
            feature_gate_error=caches.feature_gate_error(),
            operators=_sorted_operators(caches.operators),
            operators_error=caches.operators.error or "",
            unread_operators=caches.operators.undecoded,
            deployment=deployment,
            deployment_age_s=self._age.of(deployment),
            pods=_pods_of_app(caches.pods, preflight_deployment.NAME),
            check_pods=_pods_of_app(caches.pods, container_check_pods.NAME),
            warnings=tuple(caches.warnings.all()),
            history=caches.config_maps.get(NamespacedName(place.namespace, stored_reports.NAME)),
            report=self._report_seen(preflight_id, preflight_settings.pods),
            report_maps=tuple(sorted(report_reader.names_of(caches.config_maps.all()))),
            unusable=preflight_settings.unusable,
            service=self._service.state,
            releases=dict(self._checks.states),
            refused=self._refused,
            unwritten=self._unwritten,
            loads=dict(self._loads.states) if self._loads is not None else {},
            progress=self._worker.progress if self._worker is not None else None,
            steady_now=self._worker.steady_clock.now() if self._worker is not None else None,
            prometheus=self._prometheus.state if self._prometheus is not None else promql.NOTHING,
            admin_gates=caches.admin_gates.get(NamespacedName(admin_acks.GATES_NAMESPACE, admin_acks.GATES)),
            admin_acks=caches.admin_acks.get(NamespacedName(admin_acks.ACKS_NAMESPACE, admin_acks.ACKS)),
            admin_unreadable=_why_unreadable(caches.admin_gates, caches.admin_acks),
            acceptances=caches.config_maps.get(NamespacedName(place.namespace, acceptance.NAME)),
            failure=self._failure,
        )

    def evaluate(self, queries: tuple[str, ...]) -> None:
        """Keeps the answers to queries of Prometheus fresh, if there is one."""
        if self._prometheus is not None:
            version = self._caches.versions.get(NAME)
            self._prometheus.want(queries, version.spec.cluster_id if version is not None else "")

    def _release_hash(self) -> str:
        """Returns the release's hash, empty if a worker applies releases and reports their hash itself."""
        return self._own.version_hash(self._caches.feature_gate()) if self._worker is None else ""

    def load(self, release: Release) -> None:
        """Loads a release, if this operator applies releases."""
        if self._loads is not None:
            wanted = self._worker.progress.wanted if self._worker is not None else None
            self._loads.load(release, applied=wanted.image if wanted is not None else "")

    def apply(self, request: works.ApplyRelease) -> None:
        """Hands the release over to the worker, whose progress shows the request from then on."""
        payload = self._loads.payload(request.wanted.image) if self._loads is not None else None
        is_own_release = request.wanted.image == self._facts.release.image or payload is self._own.payload
        if self._worker is not None and payload is not None:
            self._worker.want(ReleaseWork(request.wanted, request.state, payload, own=is_own_release))

    def _report_seen(self, preflight_id: str, settings: preflight_deployment.PodSettings) -> outcome.ReportSeen | None:
        """Returns the attempt's report from its ConfigMap or folder, or None while there is no report."""
        if settings.report_sink == "configmap":
            key = NamespacedName(settings.namespace, preflight_deployment.report_map(preflight_id))
            self._reader.follow_map(preflight_id, self._caches.config_maps.get(key))
        else:
            self._reader.follow(preflight_id)
        return self._reader.seen


def _why_unreadable(*caches: Cache[Any]) -> str:
    """Returns why one of the caches could not be listed, or holds an undecodable object; empty if neither."""
    for cache in caches:
        if not cache.synced:
            return cache.error or "it is not listed yet"
        for bad in cache.undecoded:
            return str(bad)
    return ""


def _pods_of_app(cache: Cache[Pod], app: str) -> tuple[Pod, ...]:
    return tuple(pod for pod in cache.all() if pod.metadata.labels.get(preflight_deployment.APP_LABEL) == app)


def _sorted_operators(cache: Cache[ClusterOperator]) -> tuple[ClusterOperator, ...] | None:
    if not cache.synced:
        return None
    return tuple(sorted(cache.all(), key=lambda operator: operator.metadata.name))


def _failing_reason(error: KubeError | DecodeError) -> str:
    return error.reason if isinstance(error, KubeError) else "UnreadableAnswer"


class WorkloadAge:
    """The age of the current workload by a monotonic clock, asked at every observation.

    A machine's wall clock may be set by a day at any moment, and that must not end a preflight. So seconds are counted
    from when this process saw the workload appear; one that existed before is as old as its creation time says.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uid: str | None = None
        self._born = 0.0

    def of(self, deployment: Deployment | None) -> float:
        """Returns the seconds that `deployment` has existed; 0 if it does not exist."""
        # From now on a workload that appears is new, whatever its creation time says.
        if deployment is None:
            self._uid = ""
            return 0.0
        if deployment.metadata.uid != self._uid:
            earlier_s = self._stored_s(deployment) if self._uid is None else 0.0
            self._uid, self._born = deployment.metadata.uid, self._clock.monotonic() - earlier_s
        return self._clock.monotonic() - self._born

    def _stored_s(self, deployment: Deployment) -> float:
        created = deployment.metadata.creation_timestamp
        return max((self._clock.now() - created).total_seconds(), 0.0) if created is not None else 0.0
