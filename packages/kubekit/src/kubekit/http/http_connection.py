"""A blocking HTTP/1.1 connection for one thread, used by the client of commands and by that of registries.

`send` writes a request and reads the answer's head; the `Answer` then returns its body, as a whole or in parts. HTTP is
parsed by llhttp (`httptools`), the parser of Node.js: `http.client` imports `email`, which takes half as long as a bare
interpreter (docs/decisions/0043-a-command-in-five-interpreters.md). Every failure is an OSError. Redirects, proxies and
retries are the caller's.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeVar, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

T = TypeVar("T")
# Maximum number of consecutive bytes outside a body: heads of answers, a trailer, a chunk's extensions.
MAX_HEAD = 128 * 1024
MAX_HEADERS = 256  # maximum number of headers of one answer, trailers included
_CHUNK = 256 * 1024  # a quarter of this takes half as much processor time again for a layer of gigabytes
_NO_BODY_YET = 200  # lower statuses are interim answers (1xx)
# Their answers have no body, whatever length the head says (RFC 9112, 6.3).
_WITHOUT_BODY = {"HEAD", "CONNECT"}


class Incomplete(ConnectionResetError):
    """The connection ended before the answer was complete."""


class Connection:
    """A connection to `host`; with a `context` over TLS, for which the server needs a certificate for `server_name`."""

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext | None, server_name: str) -> None:
        default = 80 if context is None else 443
        self._address = (host, port or default)
        self._context, self._server_name = context, server_name
        literal = f"[{host.partition('%')[0]}]" if ":" in host else host
        self._host = literal if self._address[1] == default else f"{literal}:{port}"
        self._open: tuple[socket.socket, Callable[[], float]] | None = None

    def connect(self, connect_s: float, answer_s: float) -> None:
        """Connects within `connect_s` seconds; reads then wait up to `answer_s` seconds each. Raises OSError."""
        host, port = self._address
        # The type stubs allow only str, but bytes are passed to getaddrinfo unchanged.
        self.begin(socket.create_connection((_as_sent(host), port), connect_s), lambda: answer_s)  # type: ignore[arg-type]

    def begin(self, plain: socket.socket, wait_s: Callable[[], float]) -> None:
        """Uses a socket that leads to the server, perhaps through a proxy; closes it if the TLS handshake fails.

        The handshake has the socket's own time limit; every wait after it has `wait_s()` seconds. Raises OSError.
        """
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            name = _as_sent(self._server_name)
            secure = _handshake(plain, self._context, name) if self._context else plain
        except BaseException:
            plain.close()
            raise
        self._open = secure, wait_s

    def send(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | Iterable[bytes] | None
    ) -> Answer:
        """Sends a request and returns the answer with its head read.

        A body in pieces needs its Content-Length among the headers. Raises OSError, or ValueError for a request that
        is not valid.
        """
        if self._open is None:
            raise ConnectionResetError
        sock, wait_s = self._open
        lines = [("Host", self._host if self._host.isascii() else self._host.encode("idna").decode()), *headers]
        whole, pieces = (body, ()) if isinstance(body, bytes) else (b"", body or ())
        if isinstance(body, bytes):
            lines.append(("Content-Length", str(len(body))))
        if not all(" " < char <= "~" for char in target):
            raise ValueError(f"{target!r} is not the path of a URL")
        for name, value in lines:
            if any(char in value for char in "\r\n\0"):
                raise ValueError(f"the header {name} cannot be sent: its value has more than one line")
        head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines), "", ""]
        for data in chain(["\r\n".join(head).encode() + whole], pieces):
            sock.settimeout(wait_s())
            sock.sendall(data)
        return Answer(sock, wait_s, has_body=method not in _WITHOUT_BODY)

    def close(self) -> None:
        """Closes the connection; nothing can be sent afterwards."""
        if self._open is not None:
            self._open[0].close()
            self._open = None


class _NestedTls:
    """TLS to a server inside the TLS connection to a proxy, which the `ssl` module does not do for sockets.

    It has the methods of a socket that `Connection` and `Answer` call.
    """

    def __init__(self, outer: ssl.SSLSocket, context: ssl.SSLContext, server_name: str | bytes) -> None:
        self._outer = outer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._run(self._tls.do_handshake)

    def settimeout(self, seconds: float) -> None:
        """Limits each wait for the proxy."""
        self._outer.settimeout(seconds)

    def sendall(self, data: bytes) -> None:
        """Sends all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._run(self._tls.write, rest) :]

    def recv_into(self, buffer: bytearray) -> int:
        """Reads what has arrived into `buffer`, at least one byte; returns how many, 0 at the end."""
        try:
            return cast("int", self._run(self._tls.read, len(buffer), buffer))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0

    def close(self) -> None:
        """Closes the connection to the proxy."""
        self._outer.close()

    def _run(self, operation: Callable[..., T], *arguments: Any) -> T:
        """Returns the result of `operation`, after as many reads from the proxy as it needs."""
        while True:
            try:
                return operation(*arguments)
            except ssl.SSLWantReadError:
                self._flush()
                if data := self._outer.recv(_CHUNK):
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            finally:
                self._flush()

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self._outer.sendall(data)


def _handshake(plain: socket.socket, context: ssl.SSLContext, name: str | bytes) -> socket.socket:
    """Returns `plain` with TLS on it, after the handshake."""
    if isinstance(plain, ssl.SSLSocket):
        return cast("socket.socket", _NestedTls(plain, context, name))
    return context.wrap_socket(plain, server_hostname=name)


class Headers:
    """The headers of an answer, with case-insensitive names."""

    def __init__(self) -> None:
        self._all: list[tuple[str, str]] = []

    def __len__(self) -> int:
        """Returns the number of headers."""
        return len(self._all)

    def add(self, name: bytes, value: bytes) -> None:
        """Adds a header."""
        self._all.append((name.decode("latin-1"), value.decode("latin-1")))

    def items(self) -> list[tuple[str, str]]:
        """Returns all headers in their order."""
        return self._all

    def get_all(self, name: str) -> list[str]:
        """Returns the values of that name, in their order."""
        return [value for field, value in self._all if field.lower() == name.lower()]

    def get(self, name: str) -> str:
        """Returns the first value of that name, empty if it does not exist."""
        return next(iter(self.get_all(name)), "")


class Answer:
    """An answer whose head has been read. Callbacks of the parser fill it; their names are those of httptools.

    The parser is left when nothing more comes, since the two refer to each other: the buffer and the connection would
    otherwise stay until garbage is collected, which a command does not do for minutes.
    """

    def __init__(self, sock: socket.socket, wait_s: Callable[[], float], *, has_body: bool) -> None:
        self._sock, self._wait_s, self._has_body = sock, wait_s, has_body
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._buffer = bytearray(_CHUNK)  # one for all pieces: new memory for each takes as long as receiving it
        self._pieces: list[bytes] = []
        self._headed = self._complete = False
        self._lasts = False
        self._spent = 0  # bytes since the last part of a body
        self.status = 0
        # Host and port of the URL that answered, set by `send_once`: after redirects it may be another server's.
        self.origin = ""
        self.headers = Headers()
        while not self._headed:
            self._receive()

    @property
    def will_close(self) -> bool:
        """Reports whether the connection cannot be reused: the server closes it, or the answer is not complete."""
        return not (self._complete and self._lasts)

    def close(self) -> None:
        """Closes the connection that the answer came on."""
        self._parser = None
        self._sock.close()

    def read(self, limit: int | None = None) -> bytes:
        """Returns the rest of the body, at most `limit` bytes. Raises OSError, and Incomplete if it is cut off."""
        pieces, size = [], 0
        while (limit is None or size < limit) and (piece := self.read1()):
            pieces.append(piece)
            size += len(piece)
        body = b"".join(pieces)
        if limit is not None and size > limit:
            self._pieces.append(body[limit:])
            return body[:limit]
        return body

    def read1(self) -> bytes:
        """Returns the body's bytes that have arrived, at least one until the end. Raises OSError as `read` does."""
        while not self._pieces and not self._complete:
            self._receive()
        piece = b"".join(self._pieces)
        self._pieces.clear()
        return piece

    def _receive(self) -> None:
        """Reads once from the socket and feeds the parser. Raises OSError if the connection breaks or is not HTTP."""
        if self._parser is None:  # closed, or broken before
            raise Incomplete
        try:
            self._feed(self._parser)
        except BaseException:
            self._parser = None
            raise
        if self._complete:
            self._parser = None

    def _feed(self, parser: HttpResponseParser) -> None:
        self._sock.settimeout(self._wait_s())
        size = self._sock.recv_into(self._buffer)
        if not size:
            # The end of the connection completes a body of unknown length, and is an error for any other.
            bounded = self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding")
            if not self._headed or bounded:
                raise Incomplete
            self._complete, self._lasts = True, False
            return
        self._spent += size
        try:
            parser.feed_data(memoryview(self._buffer)[:size])
        except HttpParserUpgrade as error:
            raise OSError(errno.EPROTO, "the server speaks another protocol than HTTP now, unasked") from error
        except HttpParserError as error:
            if error.__context__ is not None and not isinstance(error.__context__, Exception):
                raise error.__context__ from None  # Ctrl-C while a callback ran
            if not self._complete:
                raise OSError(errno.EPROTO, f"the answer is not HTTP: {error.__context__ or error}") from error
            self._lasts = False  # bytes after a complete answer are ignored
        if self._spent > MAX_HEAD and not self._complete:
            raise OSError(errno.EPROTO, f"the answer has more than {MAX_HEAD} bytes of headers")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header or a trailer. Raises ValueError if there are more than MAX_HEADERS."""
        if len(self.headers) == MAX_HEADERS:
            raise ValueError(f"more than {MAX_HEADERS} headers")
        self.headers.add(name, value)

    def on_headers_complete(self) -> None:
        """Reads the status at the end of a head, which may be that of an interim answer (1xx)."""
        assert self._parser is not None
        self.status = self._parser.get_status_code()
        self._headed = self.status >= _NO_BODY_YET
        self._lasts = self._parser.should_keep_alive()
        self._complete = self._headed and not self._has_body

    def on_body(self, data: bytes) -> None:
        """Stores a part of the body. Raises ValueError for a body that must not be there."""
        if not self._has_body:
            raise ValueError("a body that no answer to this method has")
        self._spent = 0
        self._pieces.append(data)

    def on_message_begin(self) -> None:
        """Starts an answer: an interim one or the expected one. Raises ValueError for one after that."""
        if self._complete:
            raise ValueError("a second answer")
        self.headers = Headers()

    def on_message_complete(self) -> None:
        """Marks the answer as complete, unless it was an interim one."""
        self._complete = self._headed


def _as_sent(name: str) -> str | bytes:
    """Returns an ASCII name as bytes, so that Python need not load its tables for international names."""
    return name.encode() if name.isascii() else name
