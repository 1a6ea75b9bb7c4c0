"""Wires client, caches, sources and controller; starts and stops them in order.

Started by `cluster-version-operator start`. Runs the controller while it is the leader, else waits for the lease.
Caches run from the start, so that a new leader decides at once; only the leader writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
from msgspec import structs

from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.watch import Reflector
from kubekit.kube.workqueue import WorkQueue
from kubekit.oci.signatures import Verifier
from runup import __version__
from runup.advice.control.prometheus import Prometheus
from runup.advice.control.update_service import UpdateService
from runup.api.config_v1 import Release, SignatureStore
from runup.applying.control.loading import OwnRelease, ReleaseLoader, ReleaseLoads, read_folder
from runup.applying.control.release_source import Source, fetching
from runup.applying.control.worker import Worker
from runup.applying.decide import retrieval_pod
from runup.clusterversion.control.clusterversion import KEY, Caches, ClusterVersionController, reflectors
from runup.clusterversion.control.metrics import Metrics
from runup.clusterversion.control.release_verification import ReleaseChecks
from runup.clusterversion.decide.observed import OperatorFacts
from runup.clusterversion.decide.reconcile import NAME
from runup.preflight.control.report_reader import ReportReader
from runup.preflight.decide.preflight_deployment import PodSettings
from runup.process.ca_file import Authorities
from runup.process.cluster_egress import EgressWatch
from runup.process.endpoint import Endpoint
from runup.process.installer import Installer
from runup.process.leader_election import cancel, restart_on_error
from runup.process.names import OPERATOR_LEASE
from runup.process.plan_executor import Executor
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done
from runup.release.control.release_images import ReleaseImages
from runup.release.decide import payload as payloads
from runup.release.decide.inclusion import DEFAULT_PROFILE

log = structlog.get_logger("manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The values of the flags of `start`."""

    release_image: str
    # Where and how the Pod of a preflight runs.
    pod_settings: PodSettings
    payload: Path = Path("/")
    update_service: str = ""
    update_service_ca: str = ""
    # Prometheus or Thanos, which evaluates PromQL and knows the alerts; empty disables queries.
    prometheus_url: str = ""
    prometheus_ca: str = ""
    # Whether the control plane is hosted: several share a management cluster and its Prometheus.
    hypershift: bool = False
    architecture: str = "amd64"
    profile: str = DEFAULT_PROFILE
    # Manifests with an `exclude.release.openshift.io/<this>` annotation are left out; None filters nothing.
    exclude: str | None = None
    # Registries, as host:port, that are contacted by plain HTTP besides loopback.
    plain_http_registries: frozenset[str] = frozenset()
    # The report folder of this process, if not the path that the Deployment mounts.
    report_folder: Path | None = None
    # Whether releases are applied; if not, an accepted update is only recorded.
    applies: bool = True
    always_enabled: tuple[str, ...] = ()
    # Feature gates that are open for this process whatever the FeatureGate says.
    open_gates: frozenset[str] = frozenset()
    # How other releases are fetched, and the path, for this process, of the folder that a Pod copies them into.
    release_source: Source = "pod"
    payload_folder: Path = Path(retrieval_pod.PAYLOADS)


def load_own_release(options: Options) -> tuple[Release, OwnRelease]:
    """Returns the operator's own release. Raises Terminal if it is unusable, Unverified if its keys are."""
    files = read_folder(options.payload)
    payload = payloads.load_payload(
        files, source=str(options.payload), release_image=options.release_image, profile=options.profile
    )
    metadata = payload.metadata
    release = Release(
        version=metadata.version,
        image=options.release_image,
        url=metadata.url,
        architecture=metadata.architecture,
        channels=metadata.channels,
    )
    own_release = OwnRelease(payload, options.profile, options.exclude)
    verifier = own_release.verifier(None)
    for warning in verifier.warnings if verifier is not None else ():
        log.warning("the verification ConfigMap of this release cannot be used", what=warning)
    return release, own_release


def _log_unremovable(folder: Path, why: str) -> None:
    log.warning("the folder of an earlier preflight could not be removed", folder=str(folder), why=why)


class Manager(LeaderProcess):
    """The managing operator."""

    _options: Options

    def __init__(
        self,
        config: ClusterConfig,
        options: Options,
        *,
        clock: Clock | None = None,
        payloads: ReleaseLoader | None = None,
    ) -> None:
        super().__init__(config, options, clock)
        self._payloads = payloads
        self.metrics = Metrics()
        self.caches = Caches.new()
        self.endpoint = Endpoint(self.metrics, self._clock)

    async def run(self) -> None:
        """Serves until stopped. Raises Terminal (payload), KubeError (configuration), ValueError (flags), LeaseLost."""
        release, own_release = await asyncio.to_thread(load_own_release, self._options)
        options = self._options
        facts = OperatorFacts(
            release=release,
            place=options.pod_settings,
            architecture=options.architecture,
            update_service=options.update_service,
            gates=options.open_gates,
            documentation_base=own_release.payload.metadata.documentation_base,
            profile=options.profile,
            exclude=options.exclude,
            always_enabled=options.always_enabled,
        )
        self.metrics.cluster.created = own_release.payload.image_references.created
        log.info("starting", version=release.version, image=release.image, namespace=facts.place.namespace)
        agent = f"ClusterVersionOperator/{__version__}"
        async with (
            Client(self._config, clock=self._clock, user_agent=agent) as client,
            serve_until_done(
                self.endpoint, options, client, self._clock, lacking=self.lacking, caches=self.caches.all()
            ),
        ):
            await self._serve_cluster(client, facts, own_release)

    async def _serve_cluster(self, client: Client, facts: OperatorFacts, own_release: OwnRelease) -> None:
        """Wires up all controllers and sources, and runs them until the process is asked to stop."""
        queue: WorkQueue[str] = WorkQueue(self._clock)
        # Sources call this when their state changes: the next pass observes it.
        wake: Callable[[], None] = lambda: queue.add(KEY)  # noqa: E731

        def on_egress_change() -> None:
            service.ask_again()
            wake()

        egress = EgressWatch(client, self._clock, on_egress_change)
        service = UpdateService(self._clock, wake, ca_file=self._options.update_service_ca, egress=egress.current)
        prometheus = Prometheus(
            self._options.prometheus_url,
            self._config.auth,
            self._clock,
            wake,
            ca_file=self._options.prometheus_ca,
            hosted=self._options.hypershift,
            egress=egress.current,
        )
        images = ReleaseImages(
            client,
            architecture=self._options.architecture,
            plain_http=self._options.plain_http_registries,
            egress=egress.current,
        )
        verifier: Callable[[], Verifier | None] = lambda: own_release.verifier(self.caches.feature_gate())  # noqa: E731
        checks = ReleaseChecks(
            client,
            verifier,
            self._clock,
            wake,
            images=images,
            custom_stores=self.custom_stores,
            egress=egress.current,
        )
        reports = self._options.report_folder or Path(facts.place.report_dir)
        reader = ReportReader(reports, self._clock, wake, on_unremovable=_log_unremovable)
        following = reflectors(client, self.caches, facts.place.namespace, self._clock)
        fetched = self._payloads or fetching(
            self._options.release_source,
            client,
            self._clock,
            images=images,
            settings=facts.place,
            folder=self._options.payload_folder,
            profile=self._options.profile,
        )
        loads = ReleaseLoads(fetched, self._clock, wake, image=facts.release.image, own_payload=own_release.payload)
        worker = self.applier(client, facts, wake, following) if self._options.applies else None
        controller = ClusterVersionController(
            caches=self.caches,
            facts=facts,
            own_release=own_release,
            executor=Executor(client, self._clock),
            service=service,
            prometheus=prometheus,
            checks=checks,
            reader=reader,
            queue=queue,
            loads=loads,
            worker=worker,
            authorities=Authorities(self._options.prometheus_ca),
            metrics=self.metrics,
            clock=self._clock,
        )
        # Reflectors run without leading, too: a new leader then has filled caches.
        tasks = [asyncio.create_task(restart_on_error(reflector.run, self._clock)) for reflector in following]
        tasks += [asyncio.create_task(restart_on_error(run, self._clock)) for run in (reader.run, egress.run)]
        installer = Installer(client, self._clock, self.metrics.cluster.installed_by)
        tasks.append(asyncio.create_task(restart_on_error(installer.run, self._clock)))

        async def work() -> None:
            """Runs the controller, and next to it the worker that applies the release."""
            applying = [asyncio.create_task(restart_on_error(worker.run, self._clock))] if worker is not None else []
            try:
                await controller.run()
            finally:
                await cancel(applying)

        try:
            await self.lead(client, work, namespace=facts.place.namespace, lease=OPERATOR_LEASE)
        finally:
            await cancel(tasks)
            await loads.close()
            await service.close()
            await prometheus.close()
            await checks.close()

    def not_ready(self) -> str:
        """Returns why nothing is decided: an input is missing, or there is no ClusterVersion; empty if neither."""
        return self.caches.idle()

    def applier(
        self, client: Client, facts: OperatorFacts, wake: Callable[[], None], following: Sequence[Reflector[Any]]
    ) -> Worker:
        """Returns the worker that applies releases."""
        kinds = {(follower.resource.group, follower.resource.kind): follower for follower in following}

        def hurry_kind(group: str, kind: str) -> None:
            # A missing kind may exist once an object was applied: its reflector need not wait for a back-off.
            if (group, kind) in kinds:
                kinds[(group, kind)].hurry()

        worker = Worker(
            client,
            self._clock,
            operators=self.caches.operators,
            operator=(facts.place.namespace, facts.place.operator_service_account),
            image=facts.release.image,
            wake=wake,
            hurry=hurry_kind,
        )
        self.metrics.cluster.failed_attempts = worker.failed_attempts
        return worker

    def custom_stores(self) -> tuple[SignatureStore, ...] | None:
        """Returns the signature stores that ClusterVersion names, None if it names none or is not known."""
        version = self.caches.versions.get(NAME)
        return version.spec.signature_stores if version is not None else None


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs the manager in a process: TERM or INT ends it in order, a second one at once. Raises what `run` raises."""
    await Manager(config, options).run_until_told()


def options_from_environment(options: Options, environ: Mapping[str, str]) -> Options:
    """Returns `options` with the values of environment variables.

    PAYLOAD_OVERRIDE is the folder of the release image's files; CLUSTER_PROFILE and EXCLUDE_MANIFESTS choose among
    them. A preflight's target chooses by the same profile.
    """
    profile = environ.get("CLUSTER_PROFILE")
    return replace(
        options,
        payload=Path(environ.get("PAYLOAD_OVERRIDE") or options.payload),
        profile=profile or options.profile,
        pod_settings=structs.replace(options.pod_settings, profile=profile or options.pod_settings.profile),
        exclude=environ.get("EXCLUDE_MANIFESTS") or options.exclude,
    )
