"""Serves metrics and health of an operator's process while it runs, with the options common to all of them.

In: `ProcessOptions`, a client, the caches. Out: metrics and health, for as long as the context manager lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.process.endpoint import Endpoint
from runup.process.leader_election import Election, cancel, restart_on_error
from runup.process.metrics_authorization import MetricsAuthorizer
from runup.process.readiness import Readiness
from runup.process.serving_tls import profile_reflector
from runup.process.tls_profile import TlsProfile


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
    following: list[asyncio.Task[None]] = []
    try:
        if options.health_listen:
            await endpoint.start_health(options.health_listen)
        if options.listen:
            await endpoint.start(
                options.listen,
                ready=Readiness(client, clock, lacking, caches).why_not,
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
