"""The target release's process: watches what its checks read, evaluates them, and writes one report again and again.

In: a read-only client, the release's checks, the destination of the report. Out: the report that the managing operator
reads. The process never changes the cluster. Its order of steps prevents three mistakes. A first report is written
before the API server has answered, so that "not yet" differs from "not at all". The first changes after a calm
are evaluated at once, the next after a short quiet time, at most a second later. A report that cannot be written
leaves the last good one in place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import Resource
from kubekit.error_types import Terminal
from kubekit.kube import calls
from kubekit.kube.api_errors import Forbidden, NotFound, Transient
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Allowance, FirstReads
from kubekit.lang.version import Version, VersionError
from kubekit.oci.access import Access
from kubekit.rules.version_skew import is_kubernetes
from runup.advice.control.prometheus import Prometheus
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.kubernetes_path import contexts_on_the_way, update_of_kubernetes
from runup.checks.decide.model import Check
from runup.checks.decide.rehearsed_outcomes import CHECK as REHEARSAL
from runup.checks.decide.results import Header, failed, progress_text, running_report
from runup.evaluation.evaluate import evaluate
from runup.evaluation.request import Request, kubernetes_request, reads_of, release_request
from runup.facts.catalog_images import CatalogImages
from runup.facts.facts import Facts
from runup.facts.module_images import ModuleImages
from runup.facts.server_version import server_version
from runup.facts.target_release import TargetRelease
from runup.facts.watched_kinds import WatchedKinds
from runup.kernelmodules.control.registries import ClusterRegistries, Registries, with_registries_of
from runup.kernelmodules.decide.toolkit import TOOLKIT
from runup.preflight.decide.stored_reports import same_findings
from runup.process.log import WAIT_LOGGED_EVERY_S
from runup.process.steps import Step, step
from runup.report.report import Report, ReportedContainer, encode
from runup.target.check_runner import LIMIT_S, Runner
from runup.target.container_checks import Containers, names_waiting
from runup.target.rehearsal_process import RehearsalOrder, RehearsalProcess
from runup.target.report_sinks import Sink

# The number of kinds that the progress message names; the rest is counted.
_NAMED = 3


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals of the process, in seconds.

    A change is evaluated after `quiet_s` without another, `longest_s` at most. `soon` changes, and one more for each
    `longest_s`, wait only `first_s`, because a user may be watching for the effect of a fix; several, because what the
    operator writes of a report is a change, too. An unchanged report is evaluated and written again every
    `heartbeat_s`, to show that the process is alive.
    While an evaluation takes long, the last report is rewritten every `latest_s` (a reader waits three times as long).
    """

    first_s: float = 0.01
    soon: int = 3
    quiet_s: float = 0.1
    longest_s: float = 1.0
    heartbeat_s: float = 20.0
    latest_s: float = 30.0
    progress_s: float = 0.2
    check_limit_s: float = LIMIT_S
    retry_s: float = 1.0
    longest_retry_s: float = 10.0


class TargetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The preflight that was requested. An empty source version is read from the cluster."""

    target_version: str
    source_version: str = ""
    preflight_id: str = ""
    target_image: str = ""
    namespace: str = ""
    profile: str = "self-managed-high-availability"
    engine_version: str = ""
    # The URL of Prometheus without the path, empty to disable queries; a file with CA certificates, if it needs one.
    prometheus_url: str = ""
    prometheus_ca: str = ""
    # Whether many clusters share that Prometheus, so that queries must select this one.
    prometheus_hosted: bool = False
    # Whether operator catalogs are read from their registries, and the given images by CatalogSource.
    reads_catalogs: bool = True
    catalogs: Mapping[str, str] = msgspec.field(default_factory=dict)
    # Registries at inner addresses that objects of the cluster may name.
    inner_registries: frozenset[str] = frozenset()
    # Registries that are reached by plain HTTP.
    plain_http: frozenset[str] = frozenset()


@dataclass(kw_only=True)
class PreflightTarget:
    """A run of the process. `extra` are the checks from the image's Python packages.

    `registries` is the access to images of kernel modules, by default with the credentials of the cluster's nodes.
    """

    client: Client
    request: TargetRequest
    release: TargetRelease
    sink: Sink
    clock: Clock
    log: Any
    extra: Sequence[Check] = ()
    builtin: Sequence[Check] = CHECKS
    timing: Timing = field(default_factory=Timing)
    registries: Registries | None = None
    # What is rehearsed next to the checks, None for nothing, and the seconds that it may take.
    rehearsal: RehearsalOrder | None = None
    rehearsal_limit_s: float = 300.0

    def __post_init__(self) -> None:
        self.changed = asyncio.Event()
        # Outcomes are kept for less than a heartbeat, so that each heartbeat evaluates every check.
        self._runner = Runner(self.clock, self.timing.check_limit_s, self.timing.heartbeat_s * 0.9)
        self.soon = Allowance(self.timing.soon, self.timing.longest_s)
        self.once = False
        self.evaluated = False
        self.cluster_id = ""
        self.kind = ClusterKind.OPENSHIFT
        self._missing: set[type[Any]] = set()
        self._started = self.clock.now()
        self._last: Report | None = None
        self._writing = asyncio.Lock()
        self._written_at = float("-inf")
        self._rehearsal: RehearsalProcess | None = None
        registries = self.registries or ClusterRegistries(self.client, listed_registries(self.request))
        toolkit = self.release.images.get(TOOLKIT, "")
        self._images = ModuleImages(registries, toolkit, self.clock, self.changed.set)
        self._catalogs = CatalogImages(
            registries,
            self.clock,
            self.changed.set,
            named_images=self.request.catalogs,
            reads=self.request.reads_catalogs,
        )

    async def run(self, *, once: bool = False) -> None:
        """Evaluates the checks until cancelled, or once. Raises Terminal if the request cannot be evaluated at all."""
        _parse_version(self.request.target_version, "target")
        self.once = once
        beating = asyncio.create_task(self.beat())
        try:
            await self._evaluate_until_stopped()
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    async def _evaluate_until_stopped(self) -> None:
        """Prepares, then evaluates again whenever what the checks read has changed."""
        # A first report before any request, so that the operator sees that the process runs.
        await self.write(running_report(self._header(self.request.source_version), (), self.clock.now(), "starting"))
        try:
            request, checks = await self.prepare()
        except Terminal as error:
            header = self._header(self.request.source_version)
            await self.write(failed(header, (), self.clock.now(), error.message))
            raise
        first_reads = FirstReads(self.clock, self.client)
        reads = WatchedKinds(
            self.client,
            reads_of(request, checks),
            clock=self.clock,
            changed=self.changed.set,
            first_reads=first_reads,
        )
        containers = Containers(
            self.client,
            checks,
            # Nobody makes the pods of container checks for a process that ends after one evaluation.
            preflight_id="" if self.once else self.request.preflight_id,
            namespace=self.request.namespace,
            images=self.release.images,
            clock=self.clock,
            changed=self.changed.set,
        )
        prometheus = Prometheus(
            self.request.prometheus_url,
            self.client.config.auth,
            self.clock,
            self.changed.set,
            ca_file=self.request.prometheus_ca,
            hosted=self.request.prometheus_hosted,
            alerts=False,
        )

        async def follow() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(reads.run())
                tasks.create_task(containers.run())

        following = asyncio.create_task(follow())
        rehearsing = self._begin_rehearsal()
        # The task ends only by a bug, which must not look like a cluster in which nothing changes.
        following.add_done_callback(lambda _: self.changed.set())
        try:
            await self._until_read(reads, request, following)
            while True:
                raise_if_over(following)
                self.changed.clear()
                outcomes = await self._evaluate(
                    request, checks, reads=reads, containers=containers, prometheus=prometheus
                )
                if self.once and self._last is not None:
                    return
                # What changed since the lists comes with the first events; a fix is soon of what has a risk.
                first_reads.begin_watches(kinds_with_risks(outcomes))
                await self.until_changed()
        finally:
            await self._images.close()
            await self._catalogs.close()
            following.cancel()
            if rehearsing is not None:
                rehearsing.cancel()
                # Its process ends first, and what it has written goes.
                await asyncio.wait([rehearsing])
            await prometheus.close()
            with suppress(asyncio.CancelledError):
                await following

    def _begin_rehearsal(self) -> asyncio.Task[None] | None:
        """Begins the rehearsal, if one is asked for and releases update the cluster."""
        if self.rehearsal is None or self.kind is ClusterKind.KUBERNETES:
            return None
        self._rehearsal = RehearsalProcess(self.rehearsal, self.rehearsal_limit_s, self.changed.set)
        return asyncio.create_task(self._rehearsal.run())

    async def prepare(self) -> tuple[Request, tuple[Check, ...]]:
        """Returns the resolved request and the checks for this cluster; waits while the server is away."""
        wait_s, lines = self.timing.retry_s, Allowance(1, WAIT_LOGGED_EVERY_S)
        while True:
            try:
                return await self._prepare_once()
            except Transient as error:
                if self.once:
                    raise
                if lines.take(self.clock.monotonic()):
                    text = "the API server did not answer; check its address and certificate"
                    self.log.warning(text, error=str(error), retry_in_seconds=wait_s)
                header = self._header(self.request.source_version)
                await self.write(running_report(header, (), self.clock.now(), f"waiting for the API server: {error}"))
                await self.clock.sleep(wait_s)
                wait_s = min(wait_s * 2, self.timing.longest_retry_s)

    async def _prepare_once(self) -> tuple[Request, tuple[Check, ...]]:
        """Returns what `prepare` does. Raises Transient if the API server cannot be reached."""
        self._missing.clear()
        request = self.request
        cluster, gate = await self._read(ClusterVersion, "version"), await self._read(FeatureGate, "cluster")
        if cluster is None and ClusterVersion in self._missing and is_kubernetes(request.target_version):
            server = request.source_version or await server_version(self.client)
            resolved, checks = kubernetes_request(
                update_of_kubernetes(server, request.source_version, request.target_version),
                builtin=self.builtin,
                extra=self.extra,
                namespace=request.namespace,
            )
        else:
            self.cluster_id = cluster.spec.cluster_id if cluster else ""
            resolved, checks = release_request(
                self.release,
                cluster,
                gate,
                source=_parse_version(request.source_version or running_version(cluster), "source"),
                target=_parse_version(request.target_version, "target"),
                target_version=request.target_version,
                builtin=self.builtin,
                extra=self.extra,
                profile=request.profile,
                namespace=request.namespace,
            )
        self.kind = resolved.kind
        resolved = replace(
            resolved,
            # What every report of this process echoes, as it was requested.
            target_version=request.target_version,
            image=request.target_image,
            preflight_id=request.preflight_id,
            engine_version=request.engine_version,
            documentation_base=self.release.documentation_base,
            started=self._started,
        )
        return resolved, checks

    async def _read(self, kind: type[Any], name: str) -> Any:
        """Returns one object, or None if it does not exist or may not be read: the checks that need it report that."""
        try:
            return await self.client.send(calls.get(kind, name))
        except (NotFound, Forbidden, DecodeError) as error:
            self._missing |= {kind} if isinstance(error, NotFound) else set()
            self.log.warning(f"{kind.__name__} {name} cannot be read", error=str(error))
            return None

    async def _until_read(self, reads: WatchedKinds, request: Request, following: asyncio.Task[None]) -> None:
        """Waits until every read has an answer or a final refusal, and reports which kinds are still missing."""
        with step("Listing kinds", len(reads.caches)) as listing:
            while not await self._all_read_within(self.timing.progress_s, reads, following, listing):
                missing = {str(resource) for resource in reads.waiting}
                waiting_text = reads.trouble or reading_text(reads.kinds, missing)
                now = self.clock.now()
                await self.write(running_report(request.header(now), (), now, waiting_text))

    async def _all_read_within(
        self, seconds: float, reads: WatchedKinds, following: asyncio.Task[None], listing: Step
    ) -> bool:
        """Returns whether every read has an answer within that many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while waiting := reads.waiting:
                    listing.done, listing.detail = len(reads.caches) - len(waiting), waiting[0].name
                    raise_if_over(following)
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True

    async def until_changed(self) -> None:
        """Waits for a change and then for a quiet moment, or until the next heartbeat."""
        if not await self._changes_within(self.timing.heartbeat_s):
            return
        now = self.clock.monotonic()
        quiet_s = min(self.timing.first_s, self.timing.quiet_s) if self.soon.take(now) else self.timing.quiet_s
        deadline = now + self.timing.longest_s
        while (remaining_s := deadline - self.clock.monotonic()) > 0:
            self.changed.clear()
            if not await self._changes_within(min(quiet_s, remaining_s)):
                return

    async def _changes_within(self, seconds: float) -> bool:
        """Returns whether something changed within that many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        except TimeoutError:
            return False
        return True

    async def _evaluate(
        self,
        request: Request,
        checks: Sequence[Check],
        *,
        reads: WatchedKinds,
        containers: Containers,
        prometheus: Prometheus,
    ) -> list[CheckOutcome]:
        """Runs the checks on the current state of the cluster, writes the report, and returns the outcomes.

        A check that waits for a container, a query or a catalog is left out; the report then stays `running`.
        """
        news, now = reads.news, self.clock.now()
        snapshot = request.visible(reads.snapshot(), checks)
        modules, catalogs = self._images, self._catalogs
        facts = Facts(
            snapshot=snapshot,
            prometheus=prometheus.state,
            kernel_modules=await modules.settled(snapshot) if self.once else modules.seen(snapshot),
        )
        context = request.context(facts, now)
        target_catalogs = await catalogs.settled(snapshot, context) if self.once else catalogs.seen(snapshot, context)
        facts = replace(facts, catalogs=target_catalogs)
        context = request.context(facts, now)
        queries = [check.query for check in checks if check.query and check.applies_to(context)]
        prometheus.want(list(dict.fromkeys(queries)), self.cluster_id)
        unanswered = {query for query in queries if prometheus.state.configured} - set(prometheus.state.answers)
        undecided = {check.name for check in checks if check.query in unanswered or catalogs.awaited(check.name)}
        outcomes: dict[tuple[str, Version], CheckOutcome] = {}
        of_containers = await containers.look(context)
        for check in checks:
            if self.shows_progress():
                progress = progress_text(len(outcomes), len(checks))
                running = running_report(request.header(now), list(outcomes.values()), now, progress)
                await self.write(running, containers.wanted)
            if check.container is None and check.name not in undecided:
                outcomes[check.name, context.target] = await self._runner.outcome_of(check, snapshot, context, news)
            elif check.name in of_containers:
                outcomes[check.name, context.target] = of_containers[check.name]
        others = (self._rehearsal.outcomes or ()) if self._rehearsal is not None else ()
        self.evaluated = True
        decided = list(outcomes.values())
        if request.kind is ClusterKind.KUBERNETES:
            for step in contexts_on_the_way(context):
                for check in checks:
                    if check.container is None:
                        outcomes[check.name, step.target] = await self._runner.run(check, snapshot, step)
        awaited = (*names_waiting(checks, of_containers), *(check.name for check in checks if check.name in undecided))
        if self._rehearsal is not None and self._rehearsal.outcomes is None:
            awaited = (*awaited, REHEARSAL)
        report = evaluate(
            facts,
            request,
            checks,
            now,
            outcome_of=lambda check, _snapshot, step: outcomes.get((check.name, step.target)),
            others=others,
            awaited=awaited,
            finished=self.clock.now(),
        )
        await self.write(report, containers.wanted)
        return [*decided, *others]

    def shows_progress(self) -> bool:
        """Returns whether to report progress of the first evaluation: a reader needs only a few reports a second."""
        return (
            not self.once and not self.evaluated and self.clock.monotonic() - self._written_at >= self.timing.progress_s
        )

    def _header(self, source_version: str) -> Header:
        """Returns what every report of this process begins with."""
        request = self.request
        return Header(
            source_version=source_version,
            target_version=request.target_version,
            started_time=self._started,
            preflight_id=request.preflight_id,
            target_image=request.target_image,
            engine_version=request.engine_version,
            documentation_base=self.release.documentation_base,
            cluster_kind=self.kind.value,
        )

    async def write(self, report: Report, wanted_containers: tuple[ReportedContainer, ...] = ()) -> None:
        """Writes a changed report, or the same again as a heartbeat; retries until a complete report is stored."""
        if self.once and report.execution_status == "running":
            return
        report = replace(report, containers=wanted_containers)
        if self._last is not None and same_findings(report, self._last):
            if self.clock.monotonic() - self._written_at < self.timing.heartbeat_s:
                return
            # Nothing changed: the times of the last report are kept, apart from that of the evaluation.
            report = replace(self._last, observed_time=report.observed_time)
        async with self._writing:
            if not await self._store_report(report):
                return
        self.log.info(
            "report written",
            status=report.execution_status,
            message=report.message,
            risks=[risk.name for risk in report.risks],
        )

    async def beat(self) -> None:
        """Writes the last report again if nothing else was written for `latest_s`.

        A slow check or an API server that does not answer must not make the process look dead.
        """
        while True:
            left_s = self._written_at + self.timing.latest_s - self.clock.monotonic()
            if self._last is None or self.once or left_s > 0:
                await self.clock.sleep(max(min(left_s, self.timing.latest_s), self.timing.progress_s))
                continue
            async with self._writing:
                is_written = await self._store_report(replace(self._last, heartbeat_time=self.clock.now()), retry=False)
            if not is_written:
                await self.clock.sleep(self.timing.retry_s)

    async def _store_report(self, report: Report, *, retry: bool = True) -> bool:
        """Stores the report and returns whether that succeeded.

        With `retry`, a report of a finished evaluation is retried until it is stored. Raises OSError if only one
        evaluation was requested and the report cannot be stored.
        """
        wait_s = self.timing.retry_s
        while True:
            try:
                # In a thread, because a slow disk or API server must not block the event loop.
                await asyncio.to_thread(self.sink.write, encode(report))
                break
            except OSError as error:
                if self.once:
                    raise
                self.log.error("the report could not be written; the last one stays", error=str(error))
                if report.execution_status == "running" or not retry:
                    return False
                await self.clock.sleep(wait_s)
                wait_s = min(wait_s * 2, self.timing.longest_retry_s)
        # Only after the write succeeded: a report that was not stored is not the last one.
        self._last, self._written_at = report, self.clock.monotonic()
        return True


def reading_text(kinds: set[str], missing: set[str]) -> str:
    """Returns the progress of reading, for example `reading the cluster: 5 of 8 kinds, not yet nodes`."""
    names = sorted(name.partition(".")[0] for name in missing)
    omitted = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    first_names = ", ".join(names[:_NAMED])
    return f"reading the cluster: {len(kinds - missing)} of {len(kinds)} kinds, not yet {first_names}{omitted}"


def kinds_with_risks(outcomes: Iterable[CheckOutcome]) -> frozenset[Resource]:
    """Returns what the checks read that found a risk."""
    return frozenset(resource for outcome in outcomes if outcome.findings for resource in outcome.check.reads)


def raise_if_over(following: asyncio.Task[None]) -> None:
    """Raises the error of a task that has ended by one."""
    if following.done():
        following.result()


def listed_registries(request: TargetRequest) -> Access:
    """Returns the access for images that objects of the cluster name, with the registry of the target itself."""
    access = Access(inner=request.inner_registries, plain_http=request.plain_http)
    return with_registries_of(access, request.target_image, *request.catalogs.values())


def _parse_version(text: str, version_role: str) -> Version:
    """Returns the version. Raises Terminal that names the option to give it with."""
    try:
        return Version(text)
    except VersionError as error:
        option = "--to" if version_role == "target" else "--from"
        raise Terminal(f"the {version_role} version {error}; give it with {option}", reason="InvalidVersion") from error


def running_version(cluster: ClusterVersion | None) -> str:
    """Returns `status.desired`, which the managing operator treats as current even while an update to it is running."""
    return cluster.status.desired.version if cluster else ""
