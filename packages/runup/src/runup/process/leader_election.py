"""Runs a controller as leader: waits for the lease, works while it is held, ends when it is lost or when told to.

In: an elector's settings and the work. Out: nothing, until the work is over. The managing operator and the update
status controller share it, so that neither can write without leading.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any
from uuid import uuid4

import structlog

from kubekit.api.codec import DecodeError
from kubekit.error_types import InputError, RunupError
from kubekit.kube import calls
from kubekit.kube.api_errors import ConfigError, Fenced, Forbidden, KubeError, NotFound, Transient, Unauthorized
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.lease import LeaderElector
from runup.api.config_v1 import Infrastructure

log = structlog.get_logger("leading")


@dataclass(frozen=True, slots=True)
class Election:
    """Durations of the lease in seconds; longer for a single control plane node, for API outages.

    Source: docs/reference/upstream.md 9.
    """

    lease_duration_s: float = 137
    renew_deadline_s: float = 107
    retry_period_s: float = 26


RESTARTED_AFTER_S = 10.0
SINGLE_NODE = Election(270, 240, 60)


class LeaseLost(RunupError):
    """The error that the lease is lost: another process may lead now, so this one ends and must be restarted."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="LeaseLost")


def election_of(text: str) -> Election:
    """Parses three numbers of seconds, `duration,renew,retry`. Raises ValueError."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not inf > numbers[0] > numbers[1] > numbers[2] > 0:
        raise ValueError("three falling numbers of seconds are needed, such as 137,107,26")
    return Election(*numbers)


async def run_while_leader(
    client: Client,
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    namespace: str,
    lease: str,
    election: Election | None,
    clock: Clock,
    stopping: asyncio.Event,
    elect: bool = True,
    annotations: Callable[[], Mapping[str, str]] = dict,
    on_trouble: Callable[[str], None] = lambda _why: None,
    on_renewed: Callable[[float], None] = lambda _lasts_s: None,
) -> None:
    """Runs `work` while holding the lease `namespace/lease`; returns when `stopping` is set.

    Without `elect` there is no lease, and `work` runs at once. Without `election` the cluster's topology decides how
    long the lease lasts. `annotations` are written to the Lease with each renewal. `on_trouble` is called with why the
    lease cannot be acquired, with "" as soon as the server answers. `on_renewed` is called with the seconds that the
    lease lasts. Raises LeaseLost, with `stopping` set.
    """
    if not elect:
        await run_until_stopped(stopping, work())
        return
    chosen_election = election or await _election(client)
    leading = asyncio.Event()
    named_holder = ""

    def on_attempt(error: Exception | None) -> None:
        nonlocal named_holder
        on_trouble(why_not_acquired(namespace, lease, error) if error is not None else "")
        if error is None and not elector.leading and elector.holder != named_holder:
            named_holder = elector.holder
            log.info("waiting for the lease", lease=f"{namespace}/{lease}", holder=named_holder)

    elector = LeaderElector(
        client,
        namespace=namespace,
        name=lease,
        # Unique even if a replacement has the same host name.
        identity=f"{os.uname().nodename}_{uuid4()}",
        lease_duration_s=chosen_election.lease_duration_s,
        renew_deadline_s=chosen_election.renew_deadline_s,
        retry_period_s=chosen_election.retry_period_s,
        clock=clock,
        on_started=leading.set,
        on_stopped=stopping.set,
        on_renewed=on_renewed,
        annotations=annotations,
        on_attempt=on_attempt,
    )

    client.fence(elector.may_write)

    async def when_leading() -> None:
        await leading.wait()
        log.info("leading", lease=lease)
        await work()

    competing = asyncio.create_task(elector.run())
    # If the elector fails before it leads, nothing else would end the wait for leadership.
    competing.add_done_callback(lambda _: stopping.set())
    try:
        await run_until_stopped(stopping, when_leading())
    except Fenced as error:
        # The work ended by it before the elector had noticed.
        elector.lost = elector.lost or str(error)
    finally:
        await cancel([competing])
    if not competing.cancelled():
        competing.result()  # raises the elector's error, if it ended by a bug of ours
    if elector.lost:
        log.error("the lease was lost", lease=f"{namespace}/{lease}", why=elector.lost)
        raise LeaseLost(f"the lease {namespace}/{lease} was lost: {elector.lost}")


def why_not_acquired(namespace: str, name: str, error: Exception) -> str:
    """Returns why an attempt to acquire the Lease `namespace/name` failed, and the way out."""
    match error:
        # A Lease that does not exist is created, and only a missing namespace answers that with 404.
        case NotFound():
            way_out = "create the namespace, or name an existing one with --namespace"
        case Forbidden() if _is_terminating(error):
            way_out = "create the namespace again when its deletion has ended"
        case Forbidden():
            way_out = "grant get, watch, create and patch of leases.coordination.k8s.io in this namespace"
        case Unauthorized() | ConfigError():
            way_out = "correct the credentials of the kubeconfig or of the service account"
        case DecodeError():
            way_out = "correct or delete the Lease"
        case Transient() | TimeoutError():
            way_out = "check the server's address and the certificate authorities of the kubeconfig"
        case _:
            way_out = "correct --namespace and --kubeconfig"
    return f"Lease {namespace}/{name} cannot be acquired: {error}; {way_out}"


def _is_terminating(error: Forbidden) -> bool:
    details = error.status.details
    return details is not None and any(cause.reason == "NamespaceTerminating" for cause in details.causes)


async def run_until_stopped(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Runs `work` until it ends or `stopping` is set, and raises its error. Cancellation ends `work` first."""
    task = asyncio.create_task(work)
    stop = asyncio.create_task(_wait(stopping))
    try:
        completed, _ = await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel([task, stop])
    if task in completed:
        task.result()


async def restart_on_error(work: Callable[[], Coroutine[Any, Any, None]], clock: Clock) -> None:
    """Runs `work`, and restarts it after a bug of ours: an ended watch must not look like a quiet cluster."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("it ended, and is started again", work=work.__qualname__)
            await clock.sleep(RESTARTED_AFTER_S)
        else:
            return


async def repeat_passes(make_pass: Callable[[], Awaitable[float]], clock: Clock, *, retry_s: float) -> None:
    """Calls `make_pass` until cancelled, after the seconds that it returns, or `retry_s` after a pass that failed.

    Raises Fenced if the lease is lost.
    """
    while True:
        try:
            delay_s = await make_pass()
        except Fenced:
            raise
        except (KubeError, DecodeError, InputError) as error:
            log.warning("a pass failed", error=str(error))
            delay_s = retry_s
        await clock.sleep(delay_s)


async def cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancels the tasks and waits for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _election(client: Client) -> Election:
    """Returns the durations for the cluster's topology: longer for a single node, the default if it cannot be read."""
    try:
        infrastructure = await client.send(calls.get(Infrastructure, "cluster"))
    except (KubeError, DecodeError):
        return Election()
    return SINGLE_NODE if infrastructure.status.control_plane_topology == "SingleReplica" else Election()
