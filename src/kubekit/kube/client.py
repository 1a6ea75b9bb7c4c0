"""The transport for controllers: aiohttp, many requests at a time, streaming watches.

Same calls, same errors and same retries as `kubekit.kube.client_sync`; no exception of aiohttp gets out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self, TypeVar

import aiohttp
from yarl import URL

import kubekit
from kubekit.api.codec import Undecodable
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.auth import Credential
from kubekit.kube.clock import Clock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.errors import Gone, Unreachable
from kubekit.kube.lines import Lines
from kubekit.kube.pages import Listing, Page, early_token
from kubekit.kube.policy import DEFAULT_TIMEOUTS, Attempts, Timeouts, headers_of, unreachable
from kubekit.kube.request import Call, Request
from kubekit.kube.tls import context_for
from kubekit.kube.warnings import incompleteness

T = TypeVar("T")
K = TypeVar("K", bound=Object)
Warned = Callable[[Sequence[str]], None]

PAGE_SIZE = 500
# A server may end a watch a little after the time that it was given.
WATCH_GRACE_S = 15.0


class Client:
    """Sends calls to the cluster of `config`; an async context manager."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        user_agent: str = "",
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        clock: Clock | None = None,
    ) -> None:
        self.config = config
        self._user_agent = user_agent or kubekit.product
        self._timeouts = timeouts
        self._clock = clock or SystemClock()
        self._session: aiohttp.ClientSession | None = None
        self._session_cert = b""
        # One plugin run at a time, however many requests wait for its credential.
        self._credentials = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; the next call opens others."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, call: Call[T], *, warned: Warned | None = None) -> T:
        """The answer to `call`; `warned` is given its Warning headers.

        Raises ApiError, Transient, ConfigError or codec.DecodeError.
        """
        response = await self._answer(call.request, self._timeouts.answer_s)
        if warned is not None:
            warned(response.headers.getall("Warning", []))
        return call.decode(await self._read(response))

    async def list_all(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource: Resource | None = None,
    ) -> tuple[list[K], str]:
        """All objects, and the list's resourceVersion, as `listing`; raises DecodeError where one cannot be read."""
        found = await self.listing(
            kind, namespace, label_selector=label_selector, field_selector=field_selector, resource=resource
        )
        return found.complete((resource or resource_of(kind)).kind), found.resource_version

    async def listing(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource: Resource | None = None,
        keep: Callable[[K], K] | None = None,
    ) -> Listing[K]:
        """All objects, in pages of 500, which of them could not be read, and why there may be others.

        When the list expires between two pages (410) it starts again, in one piece, so that it cannot expire twice.
        `keep` makes of an object what is kept of it, page by page: no more than two pages are ever there as a whole.
        The next is asked for as soon as its token is known, mostly before the objects of this one are decoded.
        """

        def asked(token: str, limit: int = PAGE_SIZE) -> _Asked[K]:
            call = calls.list_page(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_=token,
                resource=resource,
            )
            return _Asked(self, call, token, warnings.extend)

        items: list[K] = []
        undecoded: list[Undecodable] = []
        warnings: list[str] = []
        coming = asked("")
        try:
            while True:
                try:
                    body = await coming.body
                except Gone:
                    if not coming.token:
                        raise
                    items, undecoded, coming = [], [], asked("", 0)
                    continue
                decode = coming.call.decode
                if token := early_token(body):
                    coming = asked(token)
                    # Once around, and it is on its way.
                    await asyncio.sleep(0)
                page = decode(body)
                items.extend(map(keep, page.items) if keep else page.items)
                undecoded.extend(page.undecoded)
                if not page.continue_:
                    return Listing(items, page.resource_version, tuple(undecoded), incompleteness(warnings))
                if not token:
                    coming = asked(page.continue_)
                del body, page
        finally:
            coming.body.cancel()

    async def stream(
        self, call: Call[T], *, timeout_s: float = 300.0, opened: Warned | None = None
    ) -> AsyncGenerator[T, None]:
        """The answer's lines, decoded one by one as they come; ends when the server ends it.

        `opened` is given the Warning headers once the server has agreed. Wrap it in `contextlib.aclosing`. A last line
        without its end is dropped. Raises what `send` raises, and Unreachable when the connection breaks, or is silent
        for longer than `timeout_s` (and a little).
        """
        response = await self._answer(call.request, timeout_s + WATCH_GRACE_S)
        if opened is not None:
            opened(response.headers.getall("Warning", []))
        lines = Lines()
        try:
            async with aclosing(_chunks(response)) as chunks:
                async for chunk in chunks:
                    for line in lines.feed(chunk):
                        yield call.decode(line)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error
        finally:
            response.close()

    async def _answer(self, request: Request, silence_s: float) -> aiohttp.ClientResponse:
        attempts = Attempts(request)
        while True:
            response = await self._attempt(request, attempts, silence_s)
            if response.status < 300:
                return response
            body = await self._read(response)
            again = attempts.refused(response.status, response.headers, body)
            if again.refresh:
                self.config.auth.refresh()
            if again.wait_s > 0:
                await self._clock.sleep(again.wait_s)

    async def _attempt(self, request: Request, attempts: Attempts, silence_s: float) -> aiohttp.ClientResponse:
        credential = await self._credential()
        while True:
            try:
                return await self._send(request, credential, silence_s)
            except (aiohttp.ClientError, OSError) as error:
                # Both say that the server hung up before it answered, as it does with a connection that was idle.
                # aiohttp repeats some methods once by itself, but no PATCH, which is most of what we write.
                hung_up = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError)
                if not attempts.dropped(reused=hung_up):
                    raise self._unreachable(error) from error

    async def _send(self, request: Request, credential: Credential, silence_s: float) -> aiohttp.ClientResponse:
        session = await self._connected(credential)
        return await session.request(
            request.method,
            URL(self.config.server + request.target, encoded=True),
            headers=headers_of(request, self.config, credential, self._user_agent),
            data=request.body,
            allow_redirects=False,
            server_hostname=self.config.tls_server_name or None,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._timeouts.connect_s, sock_read=silence_s),
        )

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            async with response:
                return await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error

    async def _credential(self) -> Credential:
        async with self._credentials:
            now = self._clock.now()
            at_hand = self.config.auth.cached(now)
            return at_hand if at_hand is not None else await asyncio.to_thread(self.config.auth.credential, now)

    async def _connected(self, credential: Credential) -> aiohttp.ClientSession:
        if self._session is not None and self._session_cert != credential.client_cert:
            await self.close()
        if self._session is None:
            context = context_for(self.config, credential)
            # No limit: every watch holds a connection for minutes, and a limit would be a deadlock in waiting.
            connector = aiohttp.TCPConnector(ssl=context if context is not None else True, limit=0)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
            self._session_cert = credential.client_cert
        return self._session

    def _unreachable(self, error: BaseException) -> Unreachable:
        cause = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error
        if isinstance(cause, aiohttp.ClientConnectorError):
            cause = cause.os_error
        return unreachable(self.config, cause)


class _Asked(Generic[K]):
    """A page that was asked for: its bytes are there, or on their way."""

    def __init__(self, client: Client, call: Call[Page[K]], token: str, warned: Warned) -> None:
        self.call, self.token = call, token
        self.body = asyncio.ensure_future(client.send(Call(call.request, bytes), warned=warned))
        # One that nobody waits for any more may fail without a word.
        self.body.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    async for chunk in response.content.iter_any():
        yield chunk
