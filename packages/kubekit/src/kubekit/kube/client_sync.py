"""The blocking transport for the command line: sockets and ssl, no modules that are slow to import.

It uses one kept-alive connection, for one thread. `send` returns what the call decodes, or raises one of
`kubekit.kube.api_errors`; no exception of ssl or socket gets out.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

import kubekit
from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.http.http_connection import Answer, Connection
from kubekit.kube import calls, transport
from kubekit.kube.api_errors import ConfigError, Gone
from kubekit.kube.auth import Credential
from kubekit.kube.clock import Clock, SystemClock
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Call, Request

if TYPE_CHECKING:
    from kubekit.kube.calls import JSON
    from kubekit.kube.list_pages import Listing, Page, WatchEvent

P = TypeVar("P")
T = TypeVar("T")
K = TypeVar("K", bound=Object)

# A server may end a watch a little after its timeout.
_WATCH_GRACE_S = 15.0


class SyncClient:
    """Sends calls to the cluster of `config`. Close it, or use it as a context manager."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        user_agent: str = "",
        timeouts: transport.Timeouts = transport.DEFAULT_TIMEOUTS,
        clock: Clock | None = None,
    ) -> None:
        self.config = config
        self._user_agent = user_agent or kubekit.product
        self._timeouts = timeouts
        self._clock = clock or SystemClock()
        self._connection: Connection | None = None
        self._tls: tuple[Credential, ssl.SSLContext | None] | None = None
        self._server_time = transport.ServerTime(self._clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next `send` opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def now(self) -> datetime:
        """Returns the cluster's time according to the last answer, whatever this machine's clock says."""
        return self._server_time.now()

    def send(self, call: Call[T]) -> T:
        """Sends `call` and returns its decoded answer. Raises ApiError, Transient, ConfigError or codec.DecodeError."""
        return self._send_with_warnings(call)[0]

    def _send_with_warnings(self, call: Call[T]) -> tuple[T, list[str]]:
        """Returns the decoded answer and its Warning headers."""
        response = self._successful_answer(call.request)
        warnings = response.headers.get_all("Warning")
        return call.decode(self._read_body(response)), warnings

    def list_all(self, kind: type[K], namespace: str = "", **selection: Unpack[calls.Selection]) -> tuple[list[K], str]:
        """Returns all objects and the list's resourceVersion. Raises DecodeError if one cannot be decoded."""
        listing = self.listing(kind, namespace, **selection)
        return listing.complete((selection.get("resource") or resource_of(kind)).kind), listing.resource_version

    def listing(self, kind: type[K], namespace: str = "", **selection: Unpack[calls.Selection]) -> Listing[K]:
        """Returns all objects, read page by page, and again if the list expired in between."""
        return self._list_all_pages(
            lambda limit, token: calls.list_page(kind, namespace, limit=limit, continue_=token, **selection)
        )

    def listing_raw(self, resource: Resource, namespace: str = "", *, label_selector: str = "") -> Listing[JSON]:
        """Returns all objects of `resource` as dicts, and why there may be others; page by page, as `listing` does."""
        return self._list_all_pages(
            lambda limit, token: calls.list_raw(
                resource, namespace, label_selector=label_selector, limit=limit, continue_=token
            )
        )

    def _list_all_pages(self, page_of: Callable[[int, str], Call[Page[P]]]) -> Listing[P]:
        """Returns all pages of a list as one; `page_of` makes the call for a page, from its size and token."""
        # Imported here because most commands read single objects only.
        from kubekit.kube.list_pages import JoinedPages, reasons_incomplete

        pages: JoinedPages[P] = JoinedPages()
        warnings: list[str] = []
        token, limit = "", 500
        while True:
            try:
                page, warned = self._send_with_warnings(page_of(limit, token))
            except Gone:
                if not token:
                    raise
                # The next attempt has no pages, so that it cannot expire again.
                pages, token, limit = JoinedPages(), "", 0
                continue
            warnings.extend(warned)
            pages.add(page)
            token = page.continue_
            if not token:
                return pages.listing(reasons_incomplete(warnings))

    def watch(
        self,
        kind: type[K],
        namespace: str = "",
        *,
        resource_version: str,
        timeout_seconds: int = 300,
        **selection: Unpack[calls.Selection],
    ) -> Iterator[WatchEvent[K]]:
        """Yields changes after `resource_version`, bookmarks included, until the server ends the watch.

        The server does so after `timeout_seconds`. Raises Gone if the version is too old (list again), Unreachable if
        the connection breaks, and DecodeError, with its name, for an object that cannot be decoded.
        """
        from kubekit.kube.list_pages import UndecodedEvent

        call = calls.watch(
            kind, namespace, resource_version=resource_version, timeout_seconds=timeout_seconds, **selection
        )
        for event in self._stream_lines(call, timeout_seconds + _WATCH_GRACE_S):
            if isinstance(event, UndecodedEvent):
                raise DecodeError(f"{resource_of(kind).kind} {event.object}")
            yield event

    def _stream_lines(self, call: Call[T], timeout_s: float) -> Iterator[T]:
        """Yields the decoded lines of a watch; a silence of more than `timeout_s` seconds ends it with Unreachable."""
        from kubekit.kube.list_pages import Lines

        # A separate connection: the kept-alive one stays free for other calls while the watch runs.
        watching = SyncClient(
            self.config,
            user_agent=self._user_agent,
            timeouts=transport.Timeouts(self._timeouts.connect_s, timeout_s),
            clock=self._clock,
        )
        # A command looks again every few seconds: another context takes longer than the connection.
        watching._tls = self._tls
        with watching:
            response, lines = watching._successful_answer(call.request), Lines()
            try:
                while chunk := response.read1():
                    for line in lines.feed(chunk):
                        yield call.decode(line)
            except OSError as error:
                raise transport.unreachable_error(self.config, error) from error
            finally:
                response.close()

    def _successful_answer(self, request: Request) -> Answer:
        """Sends the request, repeating it as `Attempts` decides, and returns the successful answer."""
        attempts = transport.Attempts(request)
        while True:
            response = self._send_with_credential(request, attempts)
            self._server_time.note_date(response.headers.get("Date"))
            if response.status < 300:
                return response
            body = self._read_body(response)
            again = attempts.refused(response.status, dict(response.headers.items()), body)
            if again.refresh:
                self.config.auth.refresh()
            self._clock.pause(again.wait_s)

    def _send_with_credential(self, request: Request, attempts: transport.Attempts) -> Answer:
        """Sends the request; once more if the server had closed the idle connection. Raises Unreachable."""
        credential = self.config.auth.credential(self._clock.now())
        while True:
            reused = self._connection is not None
            try:
                return self._send_on_connection(request, credential)
            except OSError as error:
                self.close()
                # A request that timed out is not repeated: the server may still be processing it.
                if isinstance(error, TimeoutError) or not attempts.dropped(reused=reused):
                    raise transport.unreachable_error(self.config, error) from error

    def _send_on_connection(self, request: Request, credential: Credential) -> Answer:
        """Sends the request once on the open connection, or on a new one. Raises OSError."""
        headers = transport.headers_of(request, self.config, credential, self._user_agent)
        try:
            connection = self._connection_for(credential)
            return connection.send(request.method, self.config.url.path + request.target, headers, request.body)
        except OSError:
            raise  # a certificate that is not trusted is a ValueError too
        except ValueError as error:
            raise ConfigError(f"{self.config.server} cannot be asked: {error}") from error

    def _read_body(self, response: Answer) -> bytes:
        """Returns the whole body, and closes the connection if the server will. Raises Unreachable."""
        try:
            body = response.read()
        except OSError as error:
            self.close()
            raise transport.unreachable_error(self.config, error) from error
        if response.will_close:
            self.close()
        return body

    def _connection_for(self, credential: Credential) -> Connection:
        """Returns the connection, a new one if it was closed or the client certificate has changed."""
        if self._tls is None or self._tls[0].client_cert != credential.client_cert:
            self.close()
            self._tls = (credential, transport.context_for(self.config, credential))
        if self._connection is None:
            url, context = self.config.url, self._tls[1]
            host = url.hostname or ""
            connection = Connection(host, url.port, context, self.config.tls_server_name or host)
            connection.connect(self._timeouts.connect_s, self._timeouts.answer_s)
            self._connection = connection
        return self._connection
