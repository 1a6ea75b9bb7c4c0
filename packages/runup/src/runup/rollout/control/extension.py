"""The runtime extension of Cluster API: answers its hooks from memory, by the update runs of one cluster.

Started by `cluster-version-operator update-extension`. Any number of replicas may run: each watches the runs, and none
writes. An answer needs no request, so it takes milliseconds also while the API server does not answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec
import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.watch import Reflector
from runup import __version__
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.process.endpoint import Endpoint
from runup.process.leader_election import cancel, restart_on_error
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done
from runup.rollout.decide.hooks import API, HOOKS, KnownRuns, answer, discovery, read_request

log = structlog.get_logger("extension")
# A Cluster of Cluster API is at most as large as an object of etcd, 1.5 MiB.
LONGEST_BODY = 2 * 1024 * 1024
_BY_PATH = {hook.lower(): hook for hook in HOOKS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The settings from the flags. `cluster`: namespace and name of the Cluster whose runs are watched."""

    cluster: tuple[str, str]


class Metrics:
    """The metrics of one extension."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.answers = Counter(
            "runup_update_extension_answers_total",
            "Answers to hooks of Cluster API, by hook and whether the gates were open.",
            ["hook", "open"],
            registry=self.registry,
        )
        for hook in HOOKS:
            for opened in ("true", "false"):
                self.answers.labels(hook, opened)


class Process(LeaderProcess):
    """The extension with its cache of runs."""

    _options: Options

    def __init__(self, config: ClusterConfig, options: Options, *, clock: Clock | None = None) -> None:
        super().__init__(config, options, clock)
        self.metrics = Metrics()
        self.cache: Cache[UpdateRun] = Cache(UpdateRun)
        self.endpoint = Endpoint(
            self.metrics,
            self._clock,
            webhooks=(
                web.post(f"/{API}/discovery", self._discover),
                web.post(f"/{API}/{{hook}}/{{handler}}", self._answer),
            ),
        )

    async def run(self) -> None:
        """Serves until stopped; raises KubeError (configuration) or ValueError (flags)."""
        cluster = "/".join(self._options.cluster)
        log.info("starting", version=__version__, cluster=cluster)
        async with (
            Client(self._config, clock=self._clock, user_agent=f"UpdateExtension/{__version__}") as client,
            serve_until_done(
                self.endpoint, self._options, client, self._clock, lacking=self.not_ready, caches=(self.cache,)
            ),
        ):
            reflector = Reflector(client, UpdateRun, self.cache, clock=self._clock)
            watching = asyncio.create_task(restart_on_error(reflector.run, self._clock))
            try:
                await self.stopping.wait()
            finally:
                await cancel([watching])

    def not_ready(self) -> str:
        """Returns why the runs were never read; empty if they were."""
        return "" if self.cache.synced else self.cache.error or "UpdateRuns are not read yet"

    @property
    def known(self) -> KnownRuns:
        """The runs in memory, and why they may be out of date."""
        runs = sorted(self.cache.all(), key=lambda run: (str(run.metadata.creation_timestamp or ""), run.metadata.name))
        problem = "; ".join(filter(None, (self.not_ready() or self.cache.error or "", *self.cache.incomplete)))
        # A run that cannot be decoded may have a gate that this version does not know.
        undecoded = [f"UpdateRun {each.name} cannot be read" for each in self.cache.undecoded]
        return KnownRuns(runs=tuple(runs), problem="; ".join([*filter(None, [problem]), *undecoded]))

    async def _discover(self, request: web.Request) -> web.Response:
        await _body_of(request)
        return _json(discovery())

    async def _answer(self, request: web.Request) -> web.Response:
        """Answers one hook. A request that cannot be read is an error, which stops the update."""
        hook = _BY_PATH.get(request.match_info["hook"], "")
        try:
            question = read_request(hook, msgspec.json.decode(await _body_of(request)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            question = f"give JSON: {error}"
        if isinstance(question, str):
            return web.Response(text=f"{question}\n", status=400)
        given = answer(question, self.known, self._options.cluster, self._clock.now())
        opened = given["retryAfterSeconds"] == 0
        self.metrics.answers.labels(hook, str(opened).lower()).inc()
        log.info("answered", hook=hook, version=question.version, open=opened, message=given["message"])
        return _json(given)


async def _body_of(request: web.Request) -> bytes:
    """Returns the body. Raises HTTPRequestEntityTooLarge before more than `LONGEST_BODY` bytes are read."""
    body = bytearray()
    async for chunk in request.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > LONGEST_BODY:
            raise web.HTTPRequestEntityTooLarge(max_size=LONGEST_BODY, actual_size=len(body))
    return bytes(body)


def _json(data: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(data), content_type="application/json")


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs a `Process`: the first TERM or INT signal ends it in order, a second one at once."""
    await Process(config, options).run_until_told()
