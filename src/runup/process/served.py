"""What the flags of every operator's process say besides its own, and what it serves of itself while it runs.

In: `ProcessOptions`, a client, the caches. Out: metrics and health, for as long as the block around the work lasts.
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
from runup.process.leading import Election, cancel, keep_running
from runup.process.readers import Readers
from runup.process.readiness import Readiness
from runup.process.serving_tls import profile_reflector
from runup.process.tls import TlsProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Where metrics and health are served, nowhere where `listen` is empty; and whether the lease is waited for."""

    listen: str = ""
    serving_cert_file: str = ""
    serving_key_file: str = ""
    # The least version and the ciphers of what is served, above what the cluster asks for.
    serving_tls: TlsProfile = field(default_factory=TlsProfile)
    # Whether metrics need a token that the API server lets read them.
    metrics_auth: bool = True
    leader_elect: bool = True
    # None: as the cluster's topology wants it.
    election: Election | None = None


@asynccontextmanager
async def served(
    endpoint: Endpoint,
    options: ProcessOptions,
    client: Client,
    clock: Clock,
    *,
    lacking: Callable[[], str],
    caches: Iterable[Cache[Any]],
) -> AsyncIterator[None]:
    """Serve until the block ends; `lacking` and `caches` are those of `Readiness`. Raises Terminal for a bad flag.

    With a certificate the cluster's TLS profile is followed.
    """
    following: list[asyncio.Task[None]] = []
    try:
        if options.listen:
            await endpoint.start(
                options.listen,
                ready=Readiness(client, clock, lacking, caches).why_not,
                refused=Readers(client, clock).refusal if options.metrics_auth else None,
                cert_file=options.serving_cert_file,
                key_file=options.serving_key_file,
                tls=options.serving_tls,
            )
            if options.serving_cert_file:
                profile = profile_reflector(client, clock, endpoint.follow)
                following.append(asyncio.create_task(keep_running(profile.run, clock)))
        yield
    finally:
        await cancel(following)
        await endpoint.stop()
