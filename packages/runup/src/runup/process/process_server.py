"""Serves metrics and health of an operator's process while it runs, with the options common to all of them.

In: `ProcessOptions`, a client, the caches. Out: metrics and health, for as long as the context manager lasts. The
process is ready if its caches follow the cluster, its Lease can be acquired, and the API server answers. The log says
why it is not ready: a process that waits must not look like one that has nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from kubekit.api.codec import DecodeError
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, SystemClock, run_within
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call, Request
from kubekit.kube.watch import Allowance
from runup.process.endpoint import Endpoint, MetricsAuthorizer
from runup.process.leader_election import Election, cancel, restart_on_error, run_while_leader
from runup.process.log import WAIT_LOGGED_EVERY_S
from runup.process.serving_tls import profile_reflector
from runup.process.shutdown import LeaseAlarm, run_until_told
from runup.process.tls_profile import TlsProfile

log = structlog.get_logger("process")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The common options: where metrics and health are served (nowhere if `listen` is empty), and leader election.

    At `health_listen` only `/healthz` is served: the kubelet has to get an answer before there is a certificate.
    """

    listen: str = ""
    health_listen: str = ""
    serving_cert_file: str = ""
    serving_key_file: str = ""
    # The minimum TLS version and ciphers from flags, which override the cluster's.
    serving_tls: TlsProfile = field(default_factory=TlsProfile)
    # Whether reading metrics needs a token that the API server authorizes for it.
    metrics_auth: bool = True
    leader_elect: bool = True
    # None: durations for the cluster's topology.
    election: Election | None = None


class LeaderProcess:
    """A process of the operator. `run`, which each has, serves until `stop` is called or the lease is lost.

    Both set `stopping`.
    """

    _options: ProcessOptions

    def __init__(self, config: ClusterConfig, options: ProcessOptions, clock: Clock | None = None) -> None:
        self._config = config
        self._options = options
        self._clock = clock or SystemClock()
        self.stopping = asyncio.Event()
        # Why the Lease cannot be acquired, with the way out; empty if it can, or another process holds it.
        self._lease_trouble = ""
        self._alarm: LeaseAlarm | None = None

    def stop(self) -> None:
        """Requests that `run` ends."""
        self.stopping.set()

    async def run(self) -> None:
        """Serves until stopped."""
        raise NotImplementedError

    def not_ready(self) -> str:
        """Returns which input of the cluster the process lacks; empty if none."""
        raise NotImplementedError

    def lacking(self) -> str:
        """Returns why nothing is done for the cluster; empty if something is, here or by the Lease's holder."""
        return self._lease_trouble or self.not_ready()

    def _note_lease_trouble(self, why: str) -> None:
        self._lease_trouble = why

    async def run_until_told(self) -> None:
        """Runs until a signal: the first TERM or INT ends `run` in order, a second one at once.

        The process also ends when its lease runs out, even if `run` hangs.
        """
        self._alarm = LeaseAlarm()
        await run_until_told(self.run(), self.stop, self.stopping, self._alarm)

    def _renew_alarm(self, lasts_s: float) -> None:
        if self._alarm is not None:  # None in a process that others share, such as a test
            self._alarm.renew(lasts_s)

    async def lead(
        self,
        client: Client,
        work: Callable[[], Coroutine[Any, Any, None]],
        *,
        namespace: str,
        lease: str,
        annotations: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Runs `work` while this replica holds the lease; see `run_while_leader`."""
        await run_while_leader(
            client,
            work,
            namespace=namespace,
            lease=lease,
            election=self._options.election,
            clock=self._clock,
            stopping=self.stopping,
            elect=self._options.leader_elect,
            annotations=annotations,
            on_trouble=self._note_lease_trouble,
            on_renewed=self._renew_alarm,
        )


@asynccontextmanager
async def serve_until_done(
    endpoint: Endpoint,
    options: ProcessOptions,
    client: Client,
    clock: Clock,
    *,
    lacking: Callable[[], str],
    caches: Iterable[Cache[Any]],
) -> AsyncIterator[None]:
    """Serves until the block ends; `lacking` and `caches` are those of `Readiness`. Raises Terminal for a bad flag.

    With a certificate the cluster's TLS profile is followed.
    """
    readiness = Readiness(client, clock, lacking, caches)
    following = [asyncio.create_task(restart_on_error(lambda: log_while_not_ready(readiness, clock), clock))]
    try:
        if options.health_listen:
            await endpoint.start_health(options.health_listen)
        if options.listen:
            await endpoint.start(
                options.listen,
                ready=readiness.why_not,
                refused=MetricsAuthorizer(client, clock).refusal if options.metrics_auth else None,
                cert_file=options.serving_cert_file,
                key_file=options.serving_key_file,
                tls=options.serving_tls,
            )
            if options.serving_cert_file:
                profile = profile_reflector(client, clock, endpoint.follow)
                following.append(asyncio.create_task(restart_on_error(profile.run, clock)))
        yield
    finally:
        await cancel(following)
        await endpoint.stop()


# A kubelet's probe gives up after a second, unless told otherwise.
ANSWER_S = 0.8
ASKED_EVERY_S = 5.0
_VERSION = Call(Request(method="GET", path="/version"), lambda _data: None)


class Readiness:
    """The readiness of a process: its caches, and a periodic request to the API server.

    `lacking()` names what is needed and was never read; a kind that a cluster does not have is not needed.
    """

    def __init__(self, client: Client, clock: Clock, lacking: Callable[[], str], caches: Iterable[Cache[Any]]) -> None:
        self._client = client
        self._clock = clock
        self._lacking = lacking
        self._caches = tuple(caches)
        self._asked_at = float("-inf")
        self._unanswered = ""

    async def why_not(self) -> str:
        """Returns a text for a probe about why the process is not ready; empty if it is ready."""
        return self.known() or await self._why_unanswered()

    def known(self) -> str:
        """Returns the missing parts that are known without a request; empty if there are none."""
        return self._lacking() or self._why_stale()

    def _why_stale(self) -> str:
        """Returns the first cache that is no longer followed, so that its content may be stale; empty if none is."""
        stale = (cache for cache in self._caches if cache.synced and cache.error is not None)
        return next((f"{cache.kind.__name__} is not followed any more: {cache.error}" for cache in stale), "")

    async def _why_unanswered(self) -> str:
        """Returns why the API server does not answer, empty if it does; it is asked every `ASKED_EVERY_S` seconds."""
        if self._clock.monotonic() - self._asked_at >= ASKED_EVERY_S:
            try:
                await run_within(self._clock, ANSWER_S, self._client.send(_VERSION))
            except (KubeError, DecodeError, TimeoutError) as error:
                self._unanswered = f"the API server does not answer: {error}"
            else:
                self._unanswered = ""
            self._asked_at = self._clock.monotonic()
        return self._unanswered


# A process needs less than this to read a small cluster; what it lacks then is worth a line.
LOOK_EVERY_S = 1.0


async def log_while_not_ready(readiness: Readiness, clock: Clock) -> None:
    """Logs why the process is not ready, at first and then once a minute, and when it has become ready."""
    lines, is_logged = Allowance(1, WAIT_LOGGED_EVERY_S), False
    while True:
        await clock.sleep(LOOK_EVERY_S)
        why = readiness.known()
        if why and lines.take(clock.monotonic()):
            log.warning("not ready", why=why)
            is_logged = True
        elif is_logged and not why:
            log.info("ready")
            is_logged = False
