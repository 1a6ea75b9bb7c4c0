"""Sends CloudEvents about runs. No step of a run waits for them; an event that cannot be sent is dropped and logged.

`process/http_fetch` limits which addresses a policy may name, and where redirects may lead. Only the status of an
answer is read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable

import aiohttp
import msgspec
import structlog

from kubekit.api.scheme import Resource
from kubekit.http.addresses import ForbiddenAddress
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from runup.api.update_policy_v1alpha1 import EventKind, Notification, UpdateRun
from runup.process import http_fetch
from runup.rollout.decide.notifications import (
    CONTENT_TYPE,
    MAX_BYTES,
    PREFIX,
    SIGNATURE_HEADER,
    Notice,
    event_of,
    signature_of,
)

log = structlog.get_logger("notify")
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
# The entry of the Secret with the key of signatures.
KEY = "key"
WITHIN_S = 10.0
# Seconds before each further try.
RETRIES_S = (5.0, 30.0)
# At most one event of a kind is sent to an address in this time.
INTERVAL_S = 60.0
MAX_WAITING = 100


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    """An event for one address."""

    target: Notification
    kind: EventKind
    body: bytes


class Notifier:
    """A queue of events and its sender. Secrets are read from `namespace` each time, so that a new key counts."""

    def __init__(self, client: Client, clock: Clock, *, namespace: str) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._queue: asyncio.Queue[_Item] = asyncio.Queue(MAX_WAITING)
        self._last: dict[tuple[str, EventKind], float] = {}

    def add(
        self, targets: Iterable[Notification], run: UpdateRun, notices: Iterable[Notice], *, cluster_id: str
    ) -> None:
        """Queues the notices for each address that wants their kinds; does not wait."""
        pairs = [(target, notice) for notice in notices for target in targets]
        for target, notice in pairs:
            if target.events and notice.kind not in target.events:
                continue
            key, now = (target.url, notice.kind), self._clock.monotonic()
            if now < self._last.get(key, float("-inf")) + INTERVAL_S:
                log.info("an event was dropped, because one of its kind was just sent", kind=notice.kind)
                continue
            body = event_of(notice, run, cluster_id)
            if len(body) > MAX_BYTES or self._queue.full():
                why = "it is too large" if len(body) > MAX_BYTES else "too many events wait"
                log.warning("an event was dropped", kind=notice.kind, why=why)
                continue
            self._last[key] = now
            self._queue.put_nowait(_Item(target=target, kind=notice.kind, body=body))

    async def run(self) -> None:
        """Sends queued events until cancelled."""
        while True:
            item = await self._queue.get()
            await self.send(item.target, item.kind, item.body)

    async def send(self, target: Notification, kind: EventKind, body: bytes) -> bool:
        """Sends one event with up to three tries; returns whether the server accepted it. Never raises."""
        why = ""
        for delay_s in (0.0, *RETRIES_S):
            if delay_s:
                await self._clock.sleep(delay_s)
            why = await self._try(target, body)
            if not why:
                return True
        log.warning("an event was not accepted", type=PREFIX + kind, url=target.url, why=why)
        return False

    async def _try(self, target: Notification, body: bytes) -> str:
        """Sends one event once; returns why it was not accepted, or ""."""
        headers = {"Content-Type": CONTENT_TYPE}
        try:
            if target.secret_name:
                headers[SIGNATURE_HEADER] = signature_of(body, await self._key(target.secret_name))
            page = await http_fetch.fetch(target.url, within_s=WITHIN_S, limit=0, headers=headers, document=body)
        except (KubeError, ValueError, OSError, TimeoutError, aiohttp.ClientError) as error:
            # aiohttp wraps what was raised while it connected.
            if isinstance(getattr(error, "os_error", error), ForbiddenAddress):
                return "the address is of this machine, of the link or of a cloud's metadata, which is not allowed"
            return str(error) or type(error).__name__
        return "" if 200 <= page.status < 300 else f"status {page.status}"

    async def _key(self, name: str) -> bytes:
        """Returns the key of signatures. Raises KubeError, or ValueError for a Secret without a key."""
        secret = await self._client.send(calls.get_raw(SECRETS, name, self._namespace))
        try:
            key = base64.b64decode((secret.get("data") or {}).get(KEY, ""), validate=True)
        except binascii.Error as error:
            raise ValueError(f"Secret {name}: {KEY} must be base64") from error
        if not key:
            raise ValueError(f"Secret {name} must have the entry {KEY}")
        return key
