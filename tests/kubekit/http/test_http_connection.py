"""HTTP as servers speak it, and as they should not: what an answer is, and where reading stops."""

from __future__ import annotations

import errno
import gc
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from kubekit.http import http_date
from kubekit.http.http_connection import MAX_HEAD, MAX_HEADERS, Answer, Connection, Headers, Incomplete

LIMIT_S = 90.0
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def answered(*pieces: bytes) -> Iterator[tuple[Connection, list[bytes]]]:
    """A connection to a server that takes a request, sends `pieces` and hangs up; and what it was sent."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LIMIT_S)

        def serve() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.settimeout(LIMIT_S)
                got.append(peer.recv(64 * 1024))
                try:
                    for piece in pieces:
                        peer.sendall(piece)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(64 * 1024):
                        pass
                except OSError:
                    return  # the client has left: it had seen enough

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        connection = Connection("127.0.0.1", listening.getsockname()[1], None, "")
        connection.connect(LIMIT_S, LIMIT_S)
        try:
            yield connection, got
        finally:
            connection.close()
            server.join(LIMIT_S)


def ask(connection: Connection) -> Answer:
    """The answer to a request without a body."""
    return connection.send("GET", "/a?b=c", [("Accept", "x")], None)


@pytest.mark.parametrize(
    ("sent", "status", "body", "closes"),
    [
        pytest.param([OK + b"Content-Length: 2\r\n\r\nhi"], 200, b"hi", False, id="with its length"),
        pytest.param(
            [OK[:7], OK[7:] + b"Content-Le", b"ngth: 2\r\n\r", b"\nh", b"i"], 200, b"hi", False, id="in pieces"
        ),
        pytest.param([CHUNKED + b"1\r\nh\r\n1;x=y\r\ni\r\n0\r\n\r\n"], 200, b"hi", False, id="in chunks"),
        pytest.param([CHUNKED + b"2\r\nhi\r\n0\r\nLater: 1\r\n\r\n"], 200, b"hi", False, id="with a trailer"),
        pytest.param([OK + b"\r\nhi"], 200, b"hi", True, id="until the connection is closed"),
        pytest.param([b"HTTP/1.0 400 no\r\n\r\nhi"], 400, b"hi", True, id="of HTTP/1.0"),
        pytest.param(
            [OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi"], 200, b"hi", True, id="the last of a connection"
        ),
        pytest.param([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b"", False, id="that has no body"),
        pytest.param([OK + b"Content-Length: 0\r\n\r\n"], 200, b"", False, id="with an empty body"),
        pytest.param(
            [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi"],
            200,
            b"hi",
            False,
            id="that is announced by another",
        ),
        pytest.param(
            [OK + b"Content-Length: 2\r\n\r\nhi" + OK + b"Content-Length: 3\r\n\r\nbad"],
            200,
            b"hi",
            True,
            id="and one that nobody asked for",
        ),
        pytest.param([OK + b"Content-Length: 2\r\n\r\nhi!"], 200, b"hi", True, id="and rubbish after it"),
    ],
)
def test_an_answer(sent: list[bytes], status: int, body: bytes, closes: bool) -> None:
    """Its status, its body, and whether the connection is used again."""
    with answered(*sent) as (connection, _):
        answer = ask(connection)
        assert (answer.status, answer.read(), answer.will_close) == (status, body, closes)
        assert "Link" not in dict(answer.headers.items())


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        pytest.param([], "^$", id="nothing"),
        pytest.param([OK], "^$", id="half a head"),
        pytest.param([OK + b"Content-Length: 3\r\n\r\nhi"], "^$", id="half a body"),
        pytest.param([CHUNKED + b"2\r\nhi\r\n"], "^$", id="no last chunk"),
        pytest.param([b"SSH-2.0-x\r\n"], "not HTTP", id="another protocol"),
        pytest.param(
            [b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"],
            "another protocol than HTTP",
            id="another protocol from now on",
        ),
        pytest.param([OK + b"no colon\r\n\r\n"], "not HTTP", id="a broken header"),
        pytest.param([CHUNKED + b"zz\r\n"], "not HTTP", id="a chunk without its size"),
        pytest.param(
            [OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], "not HTTP", id="two lengths"
        ),
        pytest.param([OK + b"A: " + b"x" * 2 * MAX_HEAD], f"more than {MAX_HEAD} bytes", id="an endless header"),
        pytest.param([OK + b"A: b\r\n" * (MAX_HEADERS + 2)], f"more than {MAX_HEADERS} headers", id="many headers"),
        pytest.param(
            [b"HTTP/1.1 102 Wait\r\n\r\n" * MAX_HEAD], f"more than {MAX_HEAD} bytes", id="endless announcements"
        ),
        pytest.param(
            [CHUNKED + b"2\r\nhi\r\n0\r\nA: " + b"x" * 2 * MAX_HEAD], f"more than {MAX_HEAD}", id="an endless trailer"
        ),
        pytest.param(
            [CHUNKED + b"2;a=" + b"x" * 2 * MAX_HEAD], f"more than {MAX_HEAD} bytes", id="an endless extension"
        ),
    ],
)
def test_no_answer(sent: list[bytes], says: str) -> None:
    """An OSError, after a bounded number of bytes."""
    with answered(*sent) as (connection, _), pytest.raises(OSError, match=says):
        ask(connection).read()


def test_a_long_body_has_no_such_bound() -> None:
    """Chunks of any number are read, piece by piece too."""
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    with answered(CHUNKED, *[chunk] * 100, b"0\r\n\r\n") as (connection, _):
        answer = ask(connection)
        assert sum(map(len, iter(answer.read1, b""))) == 100 * 0x4000


def test_headers_have_any_case_and_come_more_than_once() -> None:
    """In their order, bytes beyond ASCII too."""
    with answered(OK + b"WARNING: 1\r\nWarning: \xe4\r\nContent-Length: 0\r\n\r\n") as (connection, _):
        headers = ask(connection).headers
    assert (headers.get_all("warning"), headers.get("WarninG"), headers.get("Date")) == (["1", "ä"], "1", "")


def test_what_is_sent() -> None:
    """One head, the host with its port, the body's length."""
    with answered(OK + b"Content-Length: 0\r\n\r\n") as (connection, got):
        connection.send("PUT", "/x", [("Name", "žluť")], b"body")
        host = got[0].partition(b"Host: ")[2].partition(b"\r\n")[0]
    assert host.startswith(b"127.0.0.1:")
    assert got == [b"PUT /x HTTP/1.1\r\nHost: " + host + "\r\nName: žluť\r\nContent-Length: 4\r\n\r\nbody".encode()]


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        pytest.param("h", None, b"h", id="the default port"),
        pytest.param("h", 80, b"h", id="the default port, as a number"),
        pytest.param("h", 443, b"h:443", id="that of another scheme"),
        pytest.param("h", 8080, b"h:8080", id="another"),
        pytest.param("fe80::1%eth0", 8080, b"[fe80::1]:8080", id="an address with its zone"),
        pytest.param("::1", None, b"[::1]", id="an address"),
        pytest.param("žluť.example", 8080, "žluť.example:8080".encode("idna"), id="an international name"),
    ],
)
def test_the_host_that_is_named(host: str, port: int | None, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its port where that is not the scheme's; where it is connected to, and for how long."""
    ours, theirs = socket.socketpair()
    asked: list[object] = []

    def create(address: object, timeout_s: float) -> socket.socket:
        asked.extend((address, timeout_s))
        return ours

    monkeypatch.setattr(socket, "create_connection", create)
    # A pair of local sockets knows no such option.
    monkeypatch.setattr(socket, "IPPROTO_TCP", socket.SOL_SOCKET)
    monkeypatch.setattr(socket, "TCP_NODELAY", socket.SO_KEEPALIVE)
    connection = Connection(host, port, None, "")
    connection.connect(7, 9)
    theirs.sendall(OK + b"Content-Length: 0\r\n\r\n")
    assert ask(connection).status == 200
    assert theirs.recv(1000).startswith(b"GET /a?b=c HTTP/1.1\r\nHost: " + said + b"\r\nAccept: x\r\n\r\n")
    name = host.encode() if host.isascii() else host
    assert asked == [(name, port or 80), 7]
    assert (ours.gettimeout(), ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) == (9, 1)
    connection.close()
    connection.close()
    assert ours.fileno() == -1
    theirs.close()


def test_what_cannot_become_a_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here for want of a name that a certificate could have; nobody else would close it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        monkeypatch.setattr(socket, "create_connection", lambda *_: ours)
        with pytest.raises(ValueError, match="requires server_hostname"):
            Connection("h", 443, ssl.create_default_context(), "").connect(9, 9)
    assert ours.fileno() == -1


def test_nothing_is_sent_without_a_connection() -> None:
    """Before there is one, and after it was closed."""
    connection = Connection("h", 1, None, "")
    with pytest.raises(ConnectionResetError):
        ask(connection)
    with answered(OK + b"Content-Length: 0\r\n\r\n") as (opened, _):
        opened.close()
        with pytest.raises(ConnectionResetError):
            ask(opened)


def test_an_empty_body_has_a_length() -> None:
    """None at all has none."""
    with answered(OK + b"Content-Length: 0\r\n\r\n") as (connection, got):
        connection.send("POST", "/~!", [], b"")
    assert b"POST /~! HTTP/1.1\r\n" in got[0]
    assert got[0].endswith(b"\r\nContent-Length: 0\r\n\r\n")


def test_how_many_headers_an_answer_may_have() -> None:
    """256."""
    length = b"Content-Length: 0\r\n"
    with answered(OK + length + b"A: b\r\n" * 255 + b"\r\n") as (connection, _):
        assert len(ask(connection).headers) == 256
    with answered(OK + length + b"A: b\r\n" * 256 + b"\r\n") as (connection, _):
        with pytest.raises(OSError, match="more than 256 headers") as caught:
            ask(connection)
        assert caught.value.errno == errno.EPROTO


def test_how_long_a_head_may_be() -> None:
    """128 KiB; of what is longer not even the rest is waited for."""
    head = OK + b"Content-Length: 2\r\nA: "
    fits = head + b"x" * (131_072 - len(head) - 4) + b"\r\n\r\n"
    with answered(fits, b"hi") as (connection, _):
        assert ask(connection).read() == b"hi"
    with answered(head + b"x" * (131_073 - len(head))) as (connection, _):
        with pytest.raises(OSError, match="the answer has more than 131072 bytes of headers") as caught:
            ask(connection)
        assert caught.value.errno == errno.EPROTO


def test_a_piece_of_a_body_is_what_is_there() -> None:
    """All of it, at least a byte, and nothing once it is over."""
    with answered(CHUNKED + b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n") as (connection, _):
        answer = ask(connection)
        pieces = list(iter(answer.read1, b""))
        assert b"".join(pieces) == b"abc"
        assert all(pieces)
        assert (answer.read1(), answer.read()) == (b"", b"")


@pytest.mark.parametrize(
    ("target", "value", "says"),
    [
        pytest.param("/\x7f", "x", "is not the path", id="a character that does not print"),
        *(
            pytest.param("/", f"x{each}y", "the header Name cannot be sent: its value has more than one line", id=name)
            for name, each in (("a return", "\r"), ("a line's end", "\n"), ("a NUL", "\0"))
        ),
        pytest.param("/a b", "x", "'/a b' is not the path", id="a blank in the path"),
        pytest.param("/ä", "x", "is not the path", id="a path that is not encoded"),
        pytest.param("/", "x\r\nAnother: y", "the header Name cannot be sent", id="a value of two lines"),
    ],
)
def test_what_cannot_be_sent(target: str, value: str, says: str) -> None:
    """Not a byte goes out."""
    with answered() as (connection, got):
        with pytest.raises(ValueError, match=says):
            connection.send("GET", target, [("Name", value)], None)
        connection.close()
    assert got == [b""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # RFC 9110 5.6.7 writes one moment in three ways.
        pytest.param("Sun, 06 Nov 1994 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC), id="as today"),
        pytest.param("Sun Nov  6 08:49:37 1994", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC), id="asctime"),
        pytest.param("Fri, 30 Jun 2017 23:59:60 GMT", datetime(2017, 6, 30, 23, 59, 59, tzinfo=UTC), id="leap second"),
        pytest.param(
            "Sun, 06 Nov 1994 08:49:37 +0100", datetime(1994, 11, 6, 7, 49, 37, tzinfo=UTC), id="another zone"
        ),
    ],
)
def test_a_date(text: str, expected: datetime) -> None:
    """The moment, in UTC or with its offset."""
    assert http_date.parse_http_date(text) == expected


@pytest.mark.parametrize("month", range(12))
def test_every_month_has_its_name(month: int) -> None:
    """In English."""
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    assert http_date.parse_http_date(f"Sun, 06 {names[month]} 1994 08:49:37 GMT").month == month + 1


def test_how_long_a_date_may_be() -> None:
    """64 characters, with a comment as e-mail allows it."""
    date = "Sun, 06 Nov 1994 08:49:37 +0000 "
    assert http_date.parse_http_date(date + f"({'x' * (64 - 34)})").second == 37
    with pytest.raises(ValueError, match="too long for a date"):
        http_date.parse_http_date(date + f"({'x' * (65 - 34)})")


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "Sun, 31 Feb 2026 08:49:37 GMT", "Sun, 6 Nov 1994 8 GMT", "x" * 100_000),
        *(f"Sun, {'9' * 20} Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 +99999999999999"),
    ],
    ids=lambda text: text[:40] or "nothing",
)
def test_no_date(text: str) -> None:
    """A ValueError, whatever it is."""
    with pytest.raises(ValueError):
        http_date.parse_http_date(text)


def test_an_interrupt_in_the_middle_of_an_answer_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come while the parser calls back, and must not be reported as a server that speaks no HTTP."""

    def interrupted(_self: Headers, _name: bytes, _value: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Headers, "add", interrupted)
    with answered(OK + b"Content-Length: 0\r\n\r\n") as (connection, _), pytest.raises(KeyboardInterrupt):
        ask(connection)


def _read_what_breaks(answer: Answer) -> None:
    with pytest.raises(Incomplete):
        answer.read()


@pytest.mark.parametrize(
    ("sent", "use"),
    [
        pytest.param([OK + b"Content-Length: 2\r\n\r\nhi"], lambda answer: answer.read(), id="read to its end"),
        pytest.param(
            [CHUNKED + b"1\r\nh\r\n"], lambda answer: (answer.read1(), answer.close()), id="left in the middle"
        ),
        pytest.param([CHUNKED + b"1\r\nh\r\n"], _read_what_breaks, id="broken in the middle"),
    ],
)
def test_an_answer_is_gone_with_its_last_user(sent: list[bytes], use: Callable[[Answer], object]) -> None:
    """Without the garbage collector, which a command that waits hardly calls: an answer has half a megabyte."""
    gc.collect()
    gc.disable()
    try:
        with answered(*sent) as (connection, _):
            answer = ask(connection)
            gone = weakref.ref(answer)
            use(answer)
            del answer
            assert gone() is None
    finally:
        gc.enable()


def test_nothing_is_read_after_the_end() -> None:
    """An answer that was closed, or broke, has no further bytes."""
    with answered(CHUNKED + b"1\r\nh\r\n") as (connection, _):
        answer = ask(connection)
        answer.read1()
        answer.close()
        with pytest.raises(Incomplete):
            answer.read1()
