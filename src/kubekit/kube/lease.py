"""Leader election on a Lease, with client-go's semantics: one process leads, the others wait until it is gone.

A holder is believed to be alive for `lease_duration_s` after *we* last saw its record change; the times in the record
are never compared with our clock, so clocks that differ between machines do no harm. A leader that cannot renew within
`renew_deadline_s`, which is shorter, stops by itself before another one may start.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from kubekit.api import codec
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease, LeaseSpec
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, within
from kubekit.kube.errors import AlreadyExists, Conflict, KubeError, NotFound

_LEASES = resource_of(Lease)

# Part of the retry period after which an attempt that got no answer is repeated: four attempts in a renew deadline, as
# client-go has them, are too few where a third of all requests fail.
AFTER_TROUBLE = 0.1
# Nobody waits longer for a process that ends; its lease then lasts as long as it was promised.
LONGEST_RELEASE_S = 2.0


class LeaderElector:
    """Competes for the Lease `namespace/name` as `identity`; all durations in seconds.

    `on_started` is called when leading begins, `on_stopped` when it has ended for any reason, before the lease is let
    go: the next leader must not find us at work. `rand` gives numbers from 0 to 1 for the jitter of the waiting.
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
        rand: Callable[[], float] = random.random,
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
        self._rand = rand
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        self._trouble = ""
        self.leading = False
        # Why leading ended, where it was not cancelled.
        self.lost = ""

    async def run(self) -> None:
        """Wait for the lease, lead while it can be renewed, then return. Cancelled while leading, it lets go first."""
        await self._acquire()
        self.leading = True
        self._on_started()
        try:
            self.lost = await self._renew()
        finally:
            self.leading = False
            self._on_stopped()
            await self._release()

    async def _acquire(self) -> None:
        while not await self._try(self._renew_deadline_s):
            # client-go's jitter of 1.2: those who wait for one lease do not ask in step.
            await self._clock.sleep(self._pause_s() * (1 + 1.2 * self._rand()))

    async def _renew(self) -> str:
        """Renew until that is over; why it is."""
        deadline = self._clock.monotonic() + self._renew_deadline_s
        while (left_s := deadline - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(self._pause_s(), left_s))
            # Counted from before the attempt: others count from the moment when they see its result.
            asked = self._clock.monotonic()
            if asked >= deadline:
                break  # what the attempt before it ran into says more than that there was no time for another
            if await self._try(deadline - asked):
                deadline = asked + self._renew_deadline_s
            elif self._seen is not None and self._seen.holder_identity not in {"", self._identity}:
                # Every further second would be two leaders.
                return f"{self._seen.holder_identity} holds it"
        return f"not renewed within {self._renew_deadline_s:g} s: {self._trouble or 'there was no time for an attempt'}"

    def _pause_s(self) -> float:
        """Until the next attempt: soon after one that got no answer, or a few of those in a row are a lost lease."""
        return self._retry_period_s * (AFTER_TROUBLE if self._trouble else 1)

    async def _try(self, within_s: float) -> bool:
        """Take or renew the lease if it is free, ours or expired; False where that is not possible in `within_s`."""
        self._trouble = ""
        try:
            return await within(self._clock, within_s, self._take_or_renew())
        except (KubeError, codec.DecodeError, TimeoutError) as error:
            self._trouble = str(error)
            return False

    async def _take_or_renew(self) -> bool:
        try:
            lease = await self._client.send(calls.get(Lease, self._name, self._namespace))
        except NotFound:
            return await self._create()
        self._observe(lease.spec)
        holder = lease.spec.holder_identity
        if holder not in {"", self._identity} and not self._expired(lease.spec):
            return False
        now = self._clock.now()
        ours = holder == self._identity
        spec = self._spec(
            now,
            acquired=lease.spec.acquire_time or now if ours else now,
            transitions=lease.spec.lease_transitions + (0 if ours else 1),
        )
        return await self._write(lease, spec)

    async def _create(self) -> bool:
        now = self._clock.now()
        body = {
            "apiVersion": _LEASES.api_version,
            "kind": _LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(now, acquired=now, transitions=0),
        }
        try:
            await self._client.send(calls.create(_LEASES, body))
        except AlreadyExists:
            return False
        return True

    async def _write(self, lease: Lease, spec: dict[str, Any]) -> bool:
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        try:
            await self._client.send(calls.merge_patch(_LEASES, self._name, body, self._namespace))
        except Conflict:
            return False
        return True

    def _observe(self, spec: LeaseSpec) -> None:
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()

    def _expired(self, spec: LeaseSpec) -> bool:
        promised = float(spec.lease_duration_seconds or self._lease_duration_s)
        return self._clock.monotonic() - self._seen_at >= promised

    def _spec(self, now: datetime, *, acquired: datetime, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._lease_duration_s),
            "acquireTime": _micro(acquired),
            "renewTime": _micro(now),
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Empty the holder, so that the next one need not wait; best effort, for we may be shut off."""
        with suppress(KubeError, codec.DecodeError, TimeoutError):
            await within(self._clock, min(self._retry_period_s, LONGEST_RELEASE_S), self._let_go())

    async def _let_go(self) -> None:
        lease = await self._client.send(calls.get(Lease, self._name, self._namespace))
        if lease.spec.holder_identity == self._identity:
            await self._write(lease, {"holderIdentity": "", "leaseDurationSeconds": 1})


def _micro(when: datetime) -> str:
    """A MicroTime as the API writes it."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
