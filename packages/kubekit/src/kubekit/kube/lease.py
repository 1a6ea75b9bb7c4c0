"""Leader election on a Lease, with client-go's semantics: one process leads, the others wait until it is gone.

A holder counts as alive for `lease_duration_s` after *this process* last saw its record change. The times in the record
are never compared with the local clock, so that clocks may differ between machines. A leader that cannot renew within
the shorter `renew_deadline_s` stops by itself before another one may start. Its writes end then, too, even if it was
suspended and has not noticed yet: each write under the lease is checked by `may_write` first (`Client.fence`).

Two things differ from client-go. The duration in another holder's record counts up to a limit from our own settings:
2^31 seconds are no reason to wait for ever. And a leader watches its Lease, so that it stops as soon as somebody writes
another holder into it, not at its next attempt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease, LeaseSpec
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, Conflict, KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, run_within
from kubekit.kube.list_pages import WatchEvent
from kubekit.kube.request import Request

_LEASES = resource_of(Lease)

# Fraction of the retry period after which an attempt without an answer is repeated: the four attempts of client-go in
# a renew deadline are too few if a third of all requests fail.
AFTER_TROUBLE = 0.1
# Seconds to wait for the release at the end; without it the lease expires after its duration.
LONGEST_RELEASE_S = 2.0
# How many times our own duration a holder's may be: a single node's leader promises twice as long as others do.
LONGEST_PROMISE = 2
# The API's limit of `leaseTransitions` (int32): a write beyond it would be refused for ever.
MOST_TRANSITIONS = 2**31 - 1
WATCH_S = 300


class LeaderElector:
    """Competes for the Lease `namespace/name` as `identity`; all durations are seconds.

    `on_started` is called when leading begins, `on_stopped` when it has ended for any reason, before the lease is
    released, so that two leaders never run at the same time. `on_renewed` is called after each attempt that took or
    renewed the Lease with the seconds for which no other process may lead. `rand` returns numbers from 0 to 1 for
    jitter. `annotations` returns what each renewal and the release write into the annotations of the Lease.
    `on_attempt` is called with the error of each attempt before leading begins, with None if the server answered it.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_duration_s: float,
        renew_deadline_s: float,
        retry_period_s: float,
        clock: Clock,
        on_started: Callable[[], None],
        on_stopped: Callable[[], None],
        on_renewed: Callable[[float], None],
        rand: Callable[[], float] = random.random,  # noqa: S311 -- spreads requests, is no secret
        annotations: Callable[[], Mapping[str, str]] = dict,
        on_attempt: Callable[[Exception | None], None] = lambda _error: None,
    ) -> None:
        if not lease_duration_s > renew_deadline_s > retry_period_s > 0:
            raise ValueError("a lease must outlast the renew deadline, and that the retry period")
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._lease_duration_s = lease_duration_s
        self._renew_deadline_s = renew_deadline_s
        self._retry_period_s = retry_period_s
        self._clock = clock
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._on_renewed = on_renewed
        self._rand = rand
        self._annotations = annotations
        self._on_attempt = on_attempt
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        self._trouble: Exception | None = None
        self._was_slow = False
        # Until when nobody else may lead. It counts from before an attempt, because others count from when they see
        # its result.
        self._deadline = 0.0
        self._has_led = False
        self.leading = False
        # The reason why leading ended, if it was not cancelled.
        self.lost = ""

    async def run(self) -> None:
        """Leads, once it has the lease, until that cannot be renewed; releases the lease if cancelled while leading."""
        while not await self._try_to_acquire(self._renew_deadline_s):
            self._on_attempt(self._trouble)
            # client-go's jitter of 1.2, so that waiting processes do not ask at the same time.
            await self._clock.sleep(self._pause_s() * (1 + 1.2 * self._rand()))
        self.leading = self._has_led = True
        self._on_attempt(None)
        self._on_started()
        try:
            self.lost = await self._until_lost()
        finally:
            self.leading = False
            self._on_stopped()
            # So that the next leader need not wait; best effort, since the server may be gone.
            with suppress(KubeError, codec.DecodeError, TimeoutError):
                await run_within(self._clock, LONGEST_RELEASE_S, self._clear_holder())

    @property
    def holder(self) -> str:
        """The holder of the Lease as of the last attempt; empty without one."""
        return self._seen.holder_identity if self._seen is not None else ""

    def may_write(self, request: Request) -> bool:
        """Reports whether `request` may be sent now: for the Lease itself always, while no other process may lead."""
        if not self._has_led or self._is_of_own_lease(request):
            return True
        return self.leading and self._clock.monotonic() < self._deadline

    def _is_of_own_lease(self, request: Request) -> bool:
        # A creation names its object only in its body.
        name = "" if request.method == "POST" else self._name
        return request.path == calls.path_of(_LEASES, self._namespace, name)

    async def _until_lost(self) -> str:
        """Renews and watches the lease until either says that it is lost, and returns the reason."""
        tasks = [asyncio.create_task(self._keep_renewing()), asyncio.create_task(self._wait_until_overtaken())]
        try:
            finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(task for task in tasks if task in finished).result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_until_overtaken(self) -> str:
        """Returns the identity of another holder as soon as the watch sees one; never, without the right to watch."""
        call = calls.watch(
            Lease,
            self._namespace,
            # Without a version the server begins with what it has now.
            resource_version="",
            field_selector=f"metadata.name={self._name}",
            timeout_seconds=WATCH_S,
        )
        while True:
            with suppress(KubeError, codec.DecodeError):
                async with aclosing(self._client.stream(call, timeout_s=WATCH_S)) as events:
                    async for event in events:
                        if isinstance(event, WatchEvent) and event.type in ("ADDED", "MODIFIED"):
                            holder = event.object.spec.holder_identity
                            if holder not in {"", self._identity}:
                                return f"{holder} holds it"
            await self._clock.sleep(self._retry_period_s)

    async def _keep_renewing(self) -> str:
        """Renews the lease until that fails, and returns the reason."""
        while (remaining_s := self._deadline - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(self._pause_s(), remaining_s))
            remaining_s = self._deadline - self._clock.monotonic()
            if remaining_s <= 0:
                break  # what the attempt before it ran into says more than that there was no time for another
            if await self._try_to_acquire(remaining_s):
                continue
            if self.holder not in {"", self._identity}:
                # Stops at once: otherwise there would be two leaders.
                return f"{self.holder} holds it"
        return f"not renewed within {self._renew_deadline_s:g} s: {self._trouble or 'there was no time for an attempt'}"

    def _pause_s(self) -> float:
        """Returns the seconds until the next attempt.

        It is short after an attempt without an answer, because a few of those in a row would lose the lease, and after
        one whose answer took so long that little time is left.
        """
        return self._retry_period_s * (AFTER_TROUBLE if self._trouble or self._was_slow else 1)

    async def _try_to_acquire(self, within_s: float) -> bool:
        """Takes or renews the lease if it is free, its own or expired; returns False if it cannot within `within_s`."""
        self._trouble = None
        attempted_at = self._clock.monotonic()
        try:
            acquired = await run_within(self._clock, within_s, self._take_or_renew())
        except (KubeError, codec.DecodeError, TimeoutError) as error:
            self._trouble = error
            return False
        self._was_slow = self._clock.monotonic() - attempted_at >= self._retry_period_s
        if acquired:
            self._deadline = attempted_at + self._renew_deadline_s
            self._on_renewed(attempted_at + self._lease_duration_s - self._clock.monotonic())
        return acquired

    async def _take_or_renew(self) -> bool:
        """Takes or renews the lease; returns False while another process holds it, or has just written it."""
        try:
            lease = await self._client.send(calls.get(Lease, self._name, self._namespace))
        except NotFound:
            now = self._clock.now()
            body = {
                "apiVersion": _LEASES.api_version,
                "kind": _LEASES.kind,
                "metadata": {"name": self._name, "namespace": self._namespace, **self._annotation_fields()},
                "spec": self._lease_spec(now, acquired=now, transitions=0),
            }
            try:
                await self._client.send(calls.create(_LEASES, body))
            except AlreadyExists:
                return False
            return True
        if lease.spec != self._seen:
            self._seen, self._seen_at = lease.spec, self._clock.monotonic()
        holder = lease.spec.holder_identity
        if holder not in {"", self._identity} and not self._has_expired(lease.spec):
            return False
        now = self._clock.now()
        is_holder = holder == self._identity
        spec = self._lease_spec(
            now,
            acquired=lease.spec.acquire_time or now if is_holder else now,
            transitions=min(lease.spec.lease_transitions + (0 if is_holder else 1), MOST_TRANSITIONS),
        )
        return await self._write_lease(lease, spec)

    async def _write_lease(self, lease: Lease, spec: dict[str, Any]) -> bool:
        """Writes the spec over the version that was read; returns False if the lease has changed since."""
        body = {
            "metadata": {"resourceVersion": lease.metadata.resource_version, **self._annotation_fields()},
            "spec": spec,
        }
        try:
            await self._client.send(calls.merge_patch(_LEASES, self._name, body, self._namespace))
        except Conflict:
            return False
        return True

    def _annotation_fields(self) -> dict[str, Any]:
        annotations = dict(self._annotations())
        return {"annotations": annotations} if annotations else {}

    def _has_expired(self, spec: LeaseSpec) -> bool:
        promised = float(spec.lease_duration_seconds or self._lease_duration_s)
        return self._clock.monotonic() - self._seen_at >= min(promised, LONGEST_PROMISE * self._lease_duration_s)

    def _lease_spec(self, now: datetime, *, acquired: datetime, transitions: int) -> dict[str, Any]:
        """Returns the spec of the lease as this process holds it."""
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._lease_duration_s),
            "acquireTime": _micro_time(acquired),
            "renewTime": _micro_time(now),
            "leaseTransitions": transitions,
        }

    async def _clear_holder(self) -> None:
        """Clears the holder of the lease if it is still this process. Raises KubeError."""
        lease = await self._client.send(calls.get(Lease, self._name, self._namespace))
        if lease.spec.holder_identity == self._identity:
            # As client-go does it: readers see when the lease was given back.
            now = _micro_time(self._clock.now())
            await self._write_lease(lease, {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now})


def _micro_time(moment: datetime) -> str:
    """Returns a MicroTime as the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
