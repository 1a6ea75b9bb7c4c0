"""One HTTP/1.1 connection, blocking, for one thread: what `client_sync` sends by.

`send` writes a request and reads the answer's head; the `Answer` then has its body, whole or piece by piece. HTTP is
read by llhttp (`httptools`), the parser of Node.js: `http.client` imports `email`, which takes half as long as a bare
interpreter (docs/decisions/0043-a-command-in-five-interpreters.md). Whatever goes wrong is an OSError.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterable

from httptools import HttpParserError, HttpResponseParser

MAX_HEAD = 128 * 1024
"""Bytes in a row that are no body: a head with all that comes before it, a trailer, a chunk's extensions."""
MAX_HEADERS = 256
"""Headers of one answer, trailers included."""
_CHUNK = 64 * 1024
_NO_BODY_YET = 200  # below are answers that announce another one


class Connection:
    """A connection to `host`; with a `context` by TLS, which expects the certificate of `server_name`."""

    def __init__(self, host: str, port: int | None, context: ssl.SSLContext | None, server_name: str) -> None:
        default = 80 if context is None else 443
        self._address = (host, port or default)
        self._context, self._server_name = context, server_name
        literal = f"[{host.partition('%')[0]}]" if ":" in host else host
        self._host = literal if self._address[1] == default else f"{literal}:{port}"
        self._socket: socket.socket | None = None

    def connect(self, connect_s: float, answer_s: float) -> None:
        """Connect within so many seconds, and wait for what is read as long; raises OSError."""
        host, port = self._address
        # Typed for str alone; as bytes it is passed on to getaddrinfo as it is.
        plain = socket.create_connection((_as_sent(host), port), connect_s)  # type: ignore[arg-type]
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            name = _as_sent(self._server_name)
            secure = self._context.wrap_socket(plain, server_hostname=name) if self._context else plain
            secure.settimeout(answer_s)
        except BaseException:
            plain.close()
            raise
        self._socket = secure

    def send(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> Answer:
        """The answer to a request, its head read. Raises OSError, ValueError for what cannot be sent."""
        if self._socket is None:
            raise ConnectionResetError
        lines = [("Host", self._host if self._host.isascii() else self._host.encode("idna").decode()), *headers]
        if body is not None:
            lines.append(("Content-Length", str(len(body))))
        self._socket.sendall(_head(method, target, lines) + (body or b""))
        return Answer(self._socket)

    def close(self) -> None:
        """Close it; nothing can be sent afterwards."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    if not all(" " < each <= "~" for each in target):
        raise ValueError(f"{target!r} is not the path of a URL")
    for name, value in headers:
        if any(each in value for each in "\r\n\0"):
            raise ValueError(f"the header {name} cannot be sent: its value has more than one line")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode()


class Headers:
    """The headers of an answer; their names in any case."""

    def __init__(self) -> None:
        self._all: list[tuple[str, str]] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def add(self, name: bytes, value: bytes) -> None:
        """One more."""
        self._all.append((name.decode("latin-1"), value.decode("latin-1")))

    def items(self) -> list[tuple[str, str]]:
        """All of them, as they came."""
        return self._all

    def get_all(self, name: str) -> list[str]:
        """The values of that name, in their order."""
        return [value for each, value in self._all if each.lower() == name.lower()]

    def get(self, name: str) -> str:
        """The first value of that name, empty where there is none."""
        return next(iter(self.get_all(name)), "")


class Answer:
    """An answer whose head has been read. Callbacks of the parser fill it; their names are httptools'."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._parser = HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._headed = self._complete = False
        self._lasts = False
        self._spent = 0  # bytes since the last that were body
        self.status = 0
        self.headers = Headers()
        while not self._headed:
            self._feed()

    @property
    def will_close(self) -> bool:
        """Whether the connection cannot be used again: by the server's word, or because the answer is not over."""
        return not (self._complete and self._lasts)

    def read(self) -> bytes:
        """The rest of the body; raises OSError where the connection ends before it does."""
        pieces = []
        while piece := self.read1():
            pieces.append(piece)
        return b"".join(pieces)

    def read1(self) -> bytes:
        """What is there of the body, and at least a byte until it is over; raises OSError as `read`."""
        while not self._pieces and not self._complete:
            self._feed()
        piece = b"".join(self._pieces)
        self._pieces.clear()
        return piece

    def _feed(self) -> None:
        data = self._sock.recv(_CHUNK)
        if not data:
            self._ended()
            return
        self._spent += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if error.__context__ is not None and not isinstance(error.__context__, Exception):
                raise error.__context__ from None  # Ctrl-C while a callback ran
            if not self._complete:
                raise OSError(errno.EPROTO, f"the answer is not HTTP: {error.__context__ or error}") from error
            self._lasts = False  # what comes after a whole answer is nobody's
        if self._spent > MAX_HEAD and not self._complete:
            raise OSError(errno.EPROTO, f"the answer has more than {MAX_HEAD} bytes of headers")

    def _ended(self) -> None:
        """The server has closed the connection: which ends a body that has no other end, and breaks any other."""
        bounded = self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding")
        if not self._headed or bounded:
            raise ConnectionResetError
        self._complete, self._lasts = True, False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        if len(self.headers) == MAX_HEADERS:
            raise ValueError(f"more than {MAX_HEADERS} headers")
        self.headers.add(name, value)

    def on_headers_complete(self) -> None:
        """The head of an answer, perhaps of one that only announces another."""
        self.status = self._parser.get_status_code()
        self._headed = self.status >= _NO_BODY_YET
        self._lasts = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        self._spent = 0
        self._pieces.append(data)

    def on_message_begin(self) -> None:
        """An answer begins: the one that is waited for, one that announces it, or one that nobody asked for."""
        if self._complete:
            raise ValueError("a second answer")
        self.headers = Headers()

    def on_message_complete(self) -> None:
        """The answer is over, if it is the one that was waited for."""
        self._complete = self._headed


def _as_sent(name: str) -> str | bytes:
    """`name`, spared the tables of international names where it is none."""
    return name.encode() if name.isascii() else name
