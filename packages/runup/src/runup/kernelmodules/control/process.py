"""The process of the kernel-module preflight: builds its parts, starts and stops them in order, and elects a leader.

Started by `kernel-module-preflight`. Every replica fills its caches from the start, so that a new leader can write at
once; only the leader asks registries, starts runs and writes. Every replica also serves the conversion webhook
`/convert`, because its answer depends only on the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec
import structlog
from aiohttp import web

from kubekit.api.meta_v1 import NamespacedName
from kubekit.http.addresses import Network
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.workqueue import WorkQueue
from kubekit.oci.access import Access
from runup import __version__
from runup.kernelmodules.control.answer_cache import AnswerCache, read_build_inputs
from runup.kernelmodules.control.controller import NAME, KernelModulesController, Metrics
from runup.kernelmodules.control.image_stage import verify_image
from runup.kernelmodules.control.module_check import kernels_of
from runup.kernelmodules.control.registries import ClusterRegistries
from runup.kernelmodules.control.watches import Caches, InputWatches, Runners, reflectors
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.conversion import review
from runup.kernelmodules.decide.module_state import AnswerValue, ImageQuestion, Question, ReleaseQuestion
from runup.process.endpoint import Endpoint
from runup.process.leader_election import cancel, restart_on_error
from runup.process.plan_executor import Executor
from runup.process.process_server import LeaderProcess, ProcessOptions, serve_until_done

PATH = "/convert"
convert_log = structlog.get_logger("convert")


async def _convert(request: web.Request) -> web.Response:
    """Answers one ConversionReview; what cannot be converted is refused with a reason."""
    try:
        question = msgspec.json.decode(await request.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return web.Response(text=f"give a ConversionReview as JSON: {error}\n", status=400)
    if not isinstance(question, dict) or question.get("kind") != "ConversionReview":
        return web.Response(text="give a ConversionReview\n", status=400)
    answer = review(question)
    if message := answer["response"]["result"].get("message"):
        convert_log.warning("a conversion was refused", why=message)
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


ROUTES = (web.post(PATH, _convert),)
"""The routes for `Endpoint(..., webhooks=ROUTES)`."""


log = structlog.get_logger("kernelmodules")
NAMESPACE = "openshift-kernel-module-preflight"
LEASE = NAME
LONGEST_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ProcessOptions):
    """The settings from the flags. Without `builds`, Jobs are used even if the cluster serves OpenShift Builds."""

    namespace: str = NAMESPACE
    builder: Builder = field(default_factory=Builder)
    builds: bool = True
    plain_http: frozenset[str] = frozenset()
    # Registries at inner addresses that Modules and validations may name, and the networks of the cluster's Services,
    # if they are not to be found out.
    inner: frozenset[str] = frozenset()
    services: tuple[Network, ...] = ()
    # A file with certificate authorities for registries, besides the system's.
    certificate_authority: str = ""


class Process(LeaderProcess):
    """The process with its caches, metrics, endpoint and controller."""

    _options: Options

    def __init__(self, config: ClusterConfig, options: Options, *, clock: Clock | None = None) -> None:
        super().__init__(config, options, clock)
        self.metrics = Metrics()
        self.caches = Caches()
        self.endpoint = Endpoint(self.metrics, self._clock, webhooks=ROUTES)

    async def run(self) -> None:
        """Serves until stopped; raises KubeError (configuration), ValueError (flags), LeaseLost."""
        log.info("starting", version=__version__, namespace=self._options.namespace)
        options, clock = self._options, self._clock
        async with (
            Client(self._config, clock=clock, user_agent=f"{NAME}/{__version__}") as client,
            serve_until_done(self.endpoint, options, client, clock, lacking=self.lacking, caches=self.caches.all()),
        ):
            await self._serve_cluster(client)

    async def _serve_cluster(self, client: Client) -> None:
        """Runs the controller, its watches and workers on one cluster until the process is asked to stop."""
        options, clock = self._options, self._clock
        queue: WorkQueue[str] = WorkQueue(clock, longest_backoff_s=LONGEST_BACKOFF_S)
        controller = KernelModulesController(
            caches=self.caches, queue=queue, clock=clock, metrics=self.metrics, builder=options.builder
        )
        runners = Runners(client, self.caches, clock, controller.on_any_change, builds=options.builds)
        answer = self.metrics.timed(_answerer(client, options), clock)
        asking = AnswerCache(answer, clock, controller.on_any_change)
        watches = [reflector.run for reflector in reflectors(client, self.caches, clock)]
        tasks = [asyncio.create_task(restart_on_error(coroutine, clock)) for coroutine in (*watches, runners.run)]

        def input_changed(kind: str, object_key: NamespacedName) -> None:
            if asking.expire(kind, object_key):
                controller.on_any_change()

        async def run_while_leading() -> None:
            """Runs the controller and its watches; the watches end with it."""
            inputs = InputWatches(client, self.caches, clock, input_changed)
            watching = asyncio.create_task(restart_on_error(inputs.run, clock))
            try:
                with self.metrics.leading.track_inprogress():
                    await controller.run(Executor(client, clock, component=NAME), asking, runners)
            finally:
                await cancel([watching])

        try:
            await self.lead(client, run_while_leading, namespace=options.namespace, lease=LEASE)
        finally:
            await asking.close()
            await cancel(tasks)

    def not_ready(self) -> str:
        """Returns which kind is not listed yet, or why no validation can be read; empty if neither."""
        if waiting := self.caches.waiting():
            return f"{waiting} is not listed yet"
        is_either_read = self.caches.ocps.synced or self.caches.validations.synced
        return "" if is_either_read else f"no validation can be read: {self.caches.ocps.error}"


def _answerer(client: Client, options: Options) -> Callable[[Question], Awaitable[AnswerValue]]:
    """Returns a function that answers questions about `client`'s cluster, with the registries of `options`."""
    also = Access(
        ca_file=options.certificate_authority,
        plain_http=options.plain_http,
        inner=options.inner,
        services=options.services,
    )
    registries = ClusterRegistries(client, also)

    async def answer_question(question: Question) -> AnswerValue:
        """Returns the answer of a registry or, for build inputs, of the API server."""
        if isinstance(question, ImageQuestion):
            return (await verify_image(question, registries)).answer
        if isinstance(question, ReleaseQuestion):
            return await kernels_of(question, registries)
        return await read_build_inputs(client, question)

    return answer_question


async def serve(config: ClusterConfig, options: Options) -> None:
    """Runs a `Process` until a signal: the first SIGTERM or SIGINT ends it in order, a second one at once."""
    await Process(config, options).run_until_told()
