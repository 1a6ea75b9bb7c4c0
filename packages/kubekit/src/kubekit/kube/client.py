"""The asynchronous transport for controllers: aiohttp, concurrent requests, streaming watches.

It has the calls, errors and retries of `kubekit.kube.client_sync`; no exception of aiohttp gets out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from types import SimpleNamespace, TracebackType
from typing import Generic, Self, TypeVar, Unpack

import aiohttp
from yarl import URL

import kubekit
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from kubekit.kube import calls, transport
from kubekit.kube.api_errors import AnswerTooLarge, Fenced, Gone, Unreachable
from kubekit.kube.auth import Credential
from kubekit.kube.clock import Clock, ShiftedClock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.list_pages import JoinedPages, Lines, Listing, Page, early_token, reasons_incomplete
from kubekit.kube.request import Call, Request

T = TypeVar("T")
K = TypeVar("K", bound=Object)
Warned = Callable[[Sequence[str]], None]

PAGE_SIZE = 500
# A server may end a watch a little after its timeout.
WATCH_GRACE_S = 15.0
READS = ("GET", "HEAD")


class Client:
    """Sends calls to the cluster of `config`; an async context manager."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        user_agent: str = "",
        timeouts: transport.Timeouts = transport.DEFAULT_TIMEOUTS,
        clock: Clock | None = None,
        max_answer_bytes: int | None = None,
    ) -> None:
        self.config = config
        self._max_answer_bytes = max_answer_bytes
        self._user_agent = user_agent or kubekit.product
        self._timeouts = timeouts
        self._clock = clock or SystemClock()
        self._server_time = transport.ServerTime(self._clock)
        self._session: aiohttp.ClientSession | None = None
        self._session_cert = b""
        # At most one credential plugin runs at a time, however many requests wait for it.
        self._credentials = asyncio.Lock()
        self._may_write: Callable[[Request], bool] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections; the next call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def now(self) -> datetime:
        """Returns the cluster's time according to the last answer, for commands that a user types."""
        return self._server_time.now()

    def cluster_clock(self) -> Clock:
        """Returns a clock that continues from the cluster's time according to the last answer.

        Later answers do not move it, so that an evaluation has one clock, however late a busy loop reads them.
        """
        return ShiftedClock(self._clock, self._server_time.ahead)

    def fence(self, may_write: Callable[[Request], bool]) -> None:
        """Asks `may_write` before each write is sent or repeated; if it returns False, the write raises Fenced."""
        self._may_write = may_write

    async def send(self, call: Call[T], *, warned: Warned | None = None) -> T:
        """Sends `call`; returns its decoded answer. Raises ApiError, Transient, ConfigError or codec.DecodeError."""
        response = await self._successful_answer(call.request, self._timeouts.answer_s)
        if warned is not None:
            warned(response.headers.getall("Warning", []))
        return call.decode(await self._read_body(response))

    async def list_all(
        self, kind: type[K], namespace: str = "", **selection: Unpack[calls.Selection]
    ) -> tuple[list[K], str]:
        """Returns all objects and the list's resourceVersion. Raises DecodeError if one cannot be decoded."""
        listing = await self.listing(kind, namespace, **selection)
        return listing.complete((selection.get("resource") or resource_of(kind)).kind), listing.resource_version

    async def listing(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        keep: Callable[[K], K] | None = None,
        **selection: Unpack[calls.Selection],
    ) -> Listing[K]:
        """Returns all objects, read in pages of 500, which of them could not be decoded, and why there may be others.

        If the list expires between two pages (410), it is read again as a whole, so that it cannot expire twice. `keep`
        reduces the objects of each page, so that at most two pages are in memory in full. The next page is requested as
        soon as its token is known, mostly before the objects of the current one are decoded.
        """

        def page_call(token: str, limit: int = PAGE_SIZE) -> _RequestedPage[K]:
            """Returns the request for the page after `token`, of at most `limit` objects."""
            call = calls.list_page(kind, namespace, limit=limit, continue_=token, **selection)
            return _RequestedPage(self, call, token, warnings.extend)

        pages = JoinedPages(keep)
        warnings: list[str] = []
        next_page = page_call("")
        try:
            while True:
                try:
                    body = await next_page.body
                except Gone:
                    if not next_page.token:
                        raise
                    pages, next_page = JoinedPages(keep), page_call("", 0)
                    continue
                decode = next_page.call.decode
                if token := early_token(body):
                    next_page = page_call(token)
                    # One turn of the event loop, so that the request is sent before decoding blocks.
                    await asyncio.sleep(0)
                page = decode(body)
                pages.add(page)
                if not page.continue_:
                    return pages.listing(reasons_incomplete(warnings))
                if not token:
                    next_page = page_call(page.continue_)
                del body, page
        finally:
            next_page.body.cancel()

    async def stream(
        self, call: Call[T], *, timeout_s: float = 300.0, opened: Warned | None = None
    ) -> AsyncGenerator[T, None]:
        """Yields the answer's lines, decoded one by one as they arrive; ends when the server ends it.

        `opened` is called with the Warning headers once the server has accepted. Wrap it in `contextlib.aclosing`. An
        incomplete last line is dropped. Raises what `send` raises, and Unreachable if the connection breaks, or is
        silent for longer than `timeout_s` (and a little).
        """
        response = await self._successful_answer(call.request, timeout_s + WATCH_GRACE_S)
        if opened is not None:
            opened(response.headers.getall("Warning", []))
        lines = Lines()
        try:
            async for chunk in response.content.iter_any():
                for line in lines.feed(chunk):
                    yield call.decode(line)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable_error(error) from error
        finally:
            response.close()

    async def _successful_answer(self, request: Request, silence_s: float) -> aiohttp.ClientResponse:
        """Sends the request, repeating it as `Attempts` decides, and returns the successful answer."""
        attempts = transport.Attempts(request)
        while True:
            response = await self._send_with_credential(request, attempts, silence_s)
            self._server_time.note_date(response.headers.get("Date"))
            if response.status < 300:
                return response
            body = await self._read_body(response)
            again = attempts.refused(response.status, response.headers, body)
            if again.refresh:
                self.config.auth.refresh()
            if again.wait_s > 0:
                await self._clock.sleep(again.wait_s)

    async def _send_with_credential(
        self, request: Request, attempts: transport.Attempts, silence_s: float
    ) -> aiohttp.ClientResponse:
        """Sends the request; after a broken connection once more, if `attempts` allows it. Raises Unreachable."""
        credential = await self._credential()
        while True:
            try:
                return await self._send_on_session(request, credential, silence_s)
            except (aiohttp.ClientError, OSError) as error:
                # Both mean that the server closed the connection before it answered, as it does with an idle one.
                # aiohttp repeats some methods once by itself, but no PATCH, which is most of what we write.
                hung_up = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError)
                if not attempts.dropped(reused=hung_up):
                    raise self._unreachable_error(error) from error

    async def _send_on_session(
        self, request: Request, credential: Credential, silence_s: float
    ) -> aiohttp.ClientResponse:
        """Sends the request once; `silence_s` is the longest wait, in seconds, for the next bytes of the answer."""
        session = await self._session_for(credential)
        return await session.request(
            request.method,
            URL(self.config.server + request.target, encoded=True),
            headers=transport.headers_of(request, self.config, credential, self._user_agent),
            data=request.body,
            # Not followed, because the credential must not be sent to another host.
            allow_redirects=False,
            server_hostname=self.config.tls_server_name or None,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._timeouts.connect_s, sock_read=silence_s),
            trace_request_ctx=request,
        )

    async def _before_sending(self, _: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        """Raises Fenced for a write that may not be sent any more.

        aiohttp calls this once there is a connection, which may take seconds, and for its own repetitions, too.
        """
        request: Request = context.trace_request_ctx
        if self._may_write is not None and request.method not in READS and not self._may_write(request):
            raise Fenced(str(request))

    async def _read_body(self, response: aiohttp.ClientResponse) -> bytes:
        """Returns the whole body. Raises Unreachable if the connection breaks, AnswerTooLarge beyond the limit."""
        try:
            async with response:
                if (limit := self._max_answer_bytes) is None:
                    return await response.read()
                body = bytearray()
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > limit:
                        response.close()
                        raise AnswerTooLarge(self.config.server, limit)
                return bytes(body)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable_error(error) from error

    async def _credential(self) -> Credential:
        async with self._credentials:
            now = self._clock.now()
            cached = self.config.auth.cached(now)
            return cached if cached is not None else await asyncio.to_thread(self.config.auth.credential, now)

    async def _session_for(self, credential: Credential) -> aiohttp.ClientSession:
        """Returns the session, a new one if the client certificate has changed."""
        if self._session is not None and self._session_cert != credential.client_cert:
            await self.close()
        if self._session is None:
            context = transport.context_for(self.config, credential)
            # No limit: every watch holds a connection for minutes, so that a limit could cause a deadlock.
            connector = aiohttp.TCPConnector(ssl=context if context is not None else True, limit=0)
            tracing = aiohttp.TraceConfig()
            # The signal is named for what follows it: the headers are written after its receivers have returned.
            tracing.on_request_headers_sent.append(self._before_sending)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trace_configs=[tracing]
            )
            self._session_cert = credential.client_cert
        return self._session

    def _unreachable_error(self, error: BaseException) -> Unreachable:
        cause = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error
        if isinstance(cause, aiohttp.ClientConnectorError):
            cause = cause.os_error
        return transport.unreachable_error(self.config, cause)


class _RequestedPage(Generic[K]):
    """A page that has been requested, with its bytes or the task that receives them."""

    def __init__(self, client: Client, call: Call[Page[K]], token: str, warned: Warned) -> None:
        self.call, self.token = call, token
        self.body = asyncio.ensure_future(client.send(Call(call.request, bytes), warned=warned))
        # A page that is no longer awaited may fail without a warning from asyncio.
        self.body.add_done_callback(lambda future: future.cancelled() or future.exception())
