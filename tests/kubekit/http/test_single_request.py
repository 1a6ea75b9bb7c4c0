"""One request on a separate connection: what is sent, by which way, and where it does not go."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.kubekit.oci.registries import self_signed

from kubekit.http.addresses import AddressPolicy, Deadline, ForbiddenAddress
from kubekit.http.proxies import Proxy
from kubekit.http.single_request import send_once

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
Serve = Callable[[socket.socket, list[bytes]], None]


@contextmanager
def listening(serve: Serve) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server that serves one caller, and what it was reported."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def run() -> None:
            with suppress(OSError):
                caller, _ = server.accept()
                with caller:
                    caller.settimeout(60)
                    serve(caller, got)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield server.getsockname()[1], got
        finally:
            with suppress(OSError):
                socket.create_connection(server.getsockname(), 1).close()
            thread.join(60)


def answers(caller: socket.socket, got: list[bytes]) -> None:
    """Takes a request with all of its body and answers it."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += caller.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
    while len(body) < length:
        body += caller.recv(65536)
    got.extend((head, body))
    caller.sendall(OK)


def within() -> Deadline:
    """A minute from now."""
    return Deadline.after(60, 60)


def test_a_request_is_sent_as_it_is_asked() -> None:
    """Whatever encoding a server wrote a link in, it goes out in bytes that a head may have."""
    with listening(answers) as (port, got):
        url = urlsplit(f"http://127.0.0.1:{port}/a b/%20\xe4?c=d|e\xff#part")
        answer = send_once("GET", url, {"Accept": "x"}, context=None, deadline=within())
        assert (answer.status, answer.read()) == (200, b"hi")
        answer.close()
    assert got[0].split(b"\r\n") == [
        b"GET /a%20b/%20%E4?c=d|e%FF HTTP/1.1",
        b"Host: 127.0.0.1:%d" % port,
        b"Accept-Encoding: identity",
        b"Connection: close",
        b"Accept: x",
    ]


def test_a_body_goes_out_in_pieces() -> None:
    """Of the length that the caller says."""
    with listening(answers) as (port, got):
        url = urlsplit(f"http://127.0.0.1:{port}")
        pieces = iter([b"ab", b"c" * 100_000, b"d"])
        send_once("PUT", url, {"Content-Length": "100003"}, pieces, context=None, deadline=within()).close()
    assert got[0].startswith(b"PUT / HTTP/1.1\r\n")
    assert got[1] == b"ab" + b"c" * 100_000 + b"d"


def test_an_answer_may_be_read_up_to_a_limit() -> None:
    """Bytes beyond the answer stay for the next reader."""
    with listening(answers) as (port, _):
        answer = send_once("GET", urlsplit(f"http://127.0.0.1:{port}/"), {}, context=None, deadline=within())
        assert [answer.read(1), answer.read(5), answer.read(5)] == [b"h", b"i", b""]
        answer.close()


def test_an_answer_to_head_has_no_body() -> None:
    """However long the head says that it would be: nobody waits for it."""
    with listening(lambda caller, _: (caller.recv(9999), caller.sendall(OK[:-2]), caller.recv(1))) as (port, _):  # type: ignore[arg-type, return-value]
        answer = send_once("HEAD", urlsplit(f"http://127.0.0.1:{port}/"), {}, context=None, deadline=within())
        assert (answer.status, answer.headers.get("Content-Length"), answer.read()) == (200, "2", b"")
        answer.close()


def test_the_time_of_a_request_is_that_of_its_body_too() -> None:
    """A piece that must be sent after the end of it is not sent."""
    now = [0.0]

    def pieces() -> Iterator[bytes]:
        yield b"a"
        now[0] = 60.0
        yield b"b"

    with listening(lambda caller, got: got.append(caller.recv(9999))) as (port, _):
        url, deadline = urlsplit(f"http://127.0.0.1:{port}/"), Deadline.after(60, 60, lambda: now[0])
        with pytest.raises(TimeoutError, match="the request's time is over"):
            send_once("PUT", url, {"Content-Length": "2"}, pieces(), context=None, deadline=deadline)


def test_an_address_that_must_not_be_reached_is_not_connected_to() -> None:
    """Not even for a proxy to do it."""
    nobody = Proxy("http", "127.0.0.1", 1)
    for proxy in (None, nobody):
        with pytest.raises(ForbiddenAddress):
            send_once(
                "GET",
                urlsplit("http://169.254.169.254/"),
                {},
                context=None,
                deadline=within(),
                reach=AddressPolicy(own=False),
                proxy=proxy,
            )


def test_a_proxy_is_asked_for_the_whole_url() -> None:
    """With its password, which is not the server's; names are its own matter, and no password of the URL goes there."""
    with listening(answers) as (port, got):
        proxy = Proxy.parse(f"http://ann:a%20word@127.0.0.1:{port}")
        url = urlsplit("http://u@registry.invalid:81/v2/?a=b")
        answer = send_once("GET", url, {}, context=None, deadline=within(), reach=AddressPolicy(own=False), proxy=proxy)
        assert answer.read() == b"hi"
        answer.close()
    lines = got[0].split(b"\r\n")
    assert lines[:2] == [b"GET http://registry.invalid:81/v2/?a=b HTTP/1.1", b"Host: registry.invalid:81"]
    assert lines[-1] == b"Proxy-Authorization: Basic " + base64.b64encode(b"ann:a word")


def test_tls_goes_through_a_proxy_to_the_server(tmp_path: Path) -> None:
    """The proxy learns the server's name and its own password; the certificate is the server's."""
    certificate, key = self_signed("127.0.0.9", tmp_path)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)

    def serve(caller: socket.socket, got: list[bytes]) -> None:
        got.append(caller.recv(65536))
        caller.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with server_side.wrap_socket(caller, server_side=True) as secure:
            answers(secure, got)

    with listening(serve) as (port, got):
        answer = send_once(
            "GET",
            urlsplit("https://127.0.0.9/x"),
            {},
            context=ssl.create_default_context(cafile=str(certificate)),
            deadline=within(),
            proxy=Proxy.parse(f"ann:word@127.0.0.1:{port}"),
        )
        assert answer.read() == b"hi"
        answer.close()
    password = base64.b64encode(b"ann:word")
    assert got[0] == (
        b"CONNECT 127.0.0.9:443 HTTP/1.1\r\nHost: 127.0.0.9:443\r\nProxy-Authorization: Basic " + password + b"\r\n\r\n"
    )
    assert got[1].startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.9\r\n")
    assert password not in got[1]


def test_a_proxy_may_be_asked_by_tls(tmp_path: Path) -> None:
    """For a plain URL, if it says so."""
    certificate, key = self_signed("127.0.0.1", tmp_path)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)

    def serve(caller: socket.socket, got: list[bytes]) -> None:
        with server_side.wrap_socket(caller, server_side=True) as secure:
            answers(secure, got)

    with listening(serve) as (port, got):
        context = ssl.create_default_context(cafile=str(certificate))
        proxy = Proxy.parse(f"https://127.0.0.1:{port}")
        send_once("GET", urlsplit("http://h.invalid/x"), {}, context=context, deadline=within(), proxy=proxy).close()
    assert got[0].startswith(b"GET http://h.invalid/x HTTP/1.1\r\nHost: h.invalid\r\n")


@pytest.mark.parametrize("login", ["", "ann:word@"], ids=["nobody", "with a password"])
def test_tls_goes_through_a_proxy_that_speaks_tls(tmp_path: Path, login: str) -> None:
    """Each is verified by its own context; the proxy sees no request and the server no password of the proxy."""
    certificates, sides = {}, {}
    for name in ("127.0.0.1", "127.0.0.9"):
        (tmp_path / name).mkdir()
        certificates[name] = files = self_signed(name, tmp_path / name)
        sides[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        sides[name].load_cert_chain(*files)
    big = b"x" * 300_000

    def relay(source: ssl.SSLSocket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve(caller: socket.socket, got: list[bytes]) -> None:
        with sides["127.0.0.1"].wrap_socket(caller, server_side=True) as outer:
            got.append(outer.recv(65536))
            outer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            near, far = socket.socketpair()
            threading.Thread(target=relay, args=(outer, near), daemon=True).start()

            def back() -> None:
                with suppress(OSError):
                    while data := near.recv(65536):
                        outer.sendall(data)

            backward = threading.Thread(target=back)
            backward.start()
            with sides["127.0.0.9"].wrap_socket(far, server_side=True) as secure:
                got.append(secure.recv(65536))
                secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + big)
            backward.join(60)

    with listening(serve) as (port, got):
        answer = send_once(
            "GET",
            urlsplit("https://127.0.0.9/x"),
            {},
            context=ssl.create_default_context(cafile=str(certificates["127.0.0.9"][0])),
            deadline=within(),
            proxy=Proxy.parse(f"https://{login}127.0.0.1:{port}"),
            proxy_context=ssl.create_default_context(cafile=str(certificates["127.0.0.1"][0])),
        )
        assert answer.read() == big
        answer.close()
    assert got[0].startswith(b"CONNECT 127.0.0.9:443 HTTP/1.1\r\n")
    assert (b"Proxy-Authorization: Basic " + base64.b64encode(b"ann:word") in got[0]) is bool(login)
    assert got[1].startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.9\r\n")
    assert b"Proxy-Authorization" not in got[1]


def test_a_proxy_whose_certificate_is_not_trusted_gets_no_password(tmp_path: Path) -> None:
    """The server's own authorities do not count for the proxy."""
    certificate, key = self_signed("127.0.0.1", tmp_path)
    side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    side.load_cert_chain(certificate, key)

    def serve(caller: socket.socket, got: list[bytes]) -> None:
        with suppress(OSError), side.wrap_socket(caller, server_side=True) as outer:
            got.append(outer.recv(65536))

    with listening(serve) as (port, got), pytest.raises(ssl.SSLCertVerificationError):
        send_once(
            "GET",
            urlsplit("https://127.0.0.9/x"),
            {},
            context=ssl.create_default_context(cafile=str(certificate)),
            deadline=within(),
            proxy=Proxy.parse(f"https://ann:word@127.0.0.1:{port}"),
            proxy_context=ssl.create_default_context(),
        )
    assert got == []


def test_a_proxy_that_asks_for_a_password_is_named() -> None:
    """With what its URL must have."""
    with (
        listening(lambda caller, _: (caller.recv(9999), caller.sendall(b"HTTP/1.1 407 no\r\n\r\n"))) as (port, _),  # type: ignore[arg-type, return-value]
        pytest.raises(OSError, match=r"407 from the proxy .*; the proxy's URL must have a user and a password"),
    ):
        send_once(
            "GET",
            urlsplit("https://h.invalid/"),
            {},
            context=ssl.create_default_context(),
            deadline=within(),
            proxy=Proxy.parse(f"127.0.0.1:{port}"),
        )
