"""Tests answers of a registry: whose fault an error is, its words, the number of retries, and the bytes read."""

from __future__ import annotations

import errno
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kubekit.oci.layered import PLAIN, Made, layout_in, put_document, put_image, put_index
from tests.kubekit.oci.registries import Answer, Asked, basic, odd_registry, release, self_signed
from tests.kubekit.oci.test_registry_faults import FILE, Pauses, Rule, always, elsewhere, first, name, quick

from kubekit.http.http_connection import Incomplete
from kubekit.oci import images
from kubekit.oci.access import Access, Mirror
from kubekit.oci.credentials import AuthFile, Credentials, Login
from kubekit.oci.file_search import FileQuery
from kubekit.oci.layers import Pick, open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse, sha256
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import (
    BadImage,
    BeyondLimits,
    FileNotFound,
    ImageNotFound,
    OciError,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from kubekit.oci.transport import Interrupted, RegistryRequest, Transport, connection_error
from runup import __version__
from runup.release.control.image_build import BuiltImage

ANN = Login("ann", "word")
OK = b"HTTP/1.1 200 OK\r\n"
GIB = 1 << 30


@pytest.fixture
def made(tmp_path: Path) -> BuiltImage:
    """A release whose blobs the odd registry has."""
    return release(tmp_path / "made")


@contextmanager
def spoken(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """`host:port` of who says one of these to each caller in turn, the last one for ever, and hangs up; what it got."""
    got: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(60)
    ended = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller, _ = server.accept()
                if ended.is_set():
                    caller.close()
                    return
                with caller, suppress(OSError):
                    got.append(caller.recv(65536))
                    caller.sendall(answers[min(len(got), len(answers)) - 1])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}", got
    finally:
        ended.set()
        with suppress(OSError):
            socket.create_connection(server.getsockname(), 1).close()
        thread.join(60)
        server.close()


def known(host: str, login: Login = ANN, **changes: Any) -> Access:
    """An access with a login for that registry."""
    return quick(credentials=Credentials((AuthFile("test", {host: login}),)), **changes)


def refusal(access: Access, text: str, kind: type[OciError]) -> str:
    """Why a tag cannot be resolved."""
    with pytest.raises(kind) as caught:
        RegistryClient(access).resolve(parse(text))
    assert type(caught.value) is kind
    return caught.value.message


@pytest.mark.parametrize(
    ("status", "kind", "said", "asked"),
    [
        (300, BadImage, "registry HOST answered 300", 1),
        (400, BadImage, "registry HOST answered 400", 1),
        (404, ImageNotFound, "manifest unknown", 1),
        (403, Unauthorized, "registry HOST wants credentials, and none are known for HOST/a/b", 1),
        (429, Unreachable, "registry HOST answered 429", 4),
        (500, Unreachable, "registry HOST answered 500", 4),
        (501, BadImage, "registry HOST answered 501", 1),
        (502, Unreachable, "registry HOST answered 502", 4),
        (503, Unreachable, "registry HOST answered 503", 4),
        (504, Unreachable, "registry HOST answered 504", 4),
        (505, BadImage, "registry HOST answered 505", 1),
    ],
)
def test_a_refusal(status: int, kind: type[OciError], said: str, asked: int, made: BuiltImage) -> None:
    """Whether it is the image, the login or the registry; what may pass is asked for four times."""
    with odd_registry(Layout.open(made.layout), always("", Answer(status))) as odd:
        access = quick()
        shown = refusal(access, f"{odd.host}/a/b:1", kind)
        assert shown == f"reading manifest {odd.host}/a/b:1: {said.replace('HOST', odd.host)}"
        assert len(odd.asked) == asked
    assert isinstance(access.wait, Pauses)
    assert access.wait.seconds == [1.0, 2.0, 4.0][: asked - 1]


def test_a_blob_that_is_not_there(made: BuiltImage, tmp_path: Path) -> None:
    """It is called what it is."""
    layer = open_image(Layout.open(made.layout)).manifest.layers[0]
    with odd_registry(Layout.open(made.layout), always(layer.digest, Answer(404))) as odd:
        with pytest.raises(ImageNotFound) as caught:
            RegistryClient(quick()).pull(name(odd, made), Layout.create(tmp_path / "pulled"))
        assert caught.value.message == f"{name(odd, made)}: blob {layer.digest}: blob unknown"


SAYS = ' (the registry says: "%s")'


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        pytest.param([{"message": "a\n b"}], SAYS % "a b", id="in one line"),
        pytest.param([{"message": "a", "code": "A"}], SAYS % "a", id="the message"),
        pytest.param([{"message": "", "code": "A"}], SAYS % "A", id="the code where there is none"),
        pytest.param([{"message": c} for c in "abcd"], SAYS % "a; b; c", id="three at most"),
        pytest.param([{}, {"message": "b"}], SAYS % "b", id="nothing, and something"),
        pytest.param([{"message": "x" * 200}], SAYS % ("x" * 200), id="as long as it may be"),
        pytest.param([{"message": "x" * 9000}], SAYS % f"{'x' * 160} ... and 8840 more characters", id="cut"),
        pytest.param([{"message": 'a" b\x1b[31m\u202e'}], SAYS % "a  b [31m ", id="what would end the quotation"),
        pytest.param([], "", id="none"),
        pytest.param(None, "", id="null"),
        pytest.param("text", "", id="text"),
        pytest.param([7], "", id="a number"),
    ],
)
def test_a_registrys_own_words(errors: object, words: str, made: BuiltImage) -> None:
    """As the distribution specification has them, behind ours, and told to be the registry's."""
    body = json.dumps({"errors": errors}).encode()
    with odd_registry(Layout.open(made.layout), always("", Answer(400, body))) as odd:
        assert refusal(quick(), f"{odd.host}/a:1", BadImage).endswith(f"answered 400{words}")


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("words", "shown"), [(b"", ""), (b'{"errors":[{"message":"no"}]}', SAYS % "no")])
def test_a_login_that_is_refused(status: int, words: bytes, shown: str, made: BuiltImage) -> None:
    """Reading and writing are reported apart, and what the registry says about it is there."""
    answer = Answer(status, words, {"WWW-Authenticate": 'Basic realm="x"'})
    with odd_registry(Layout.open(made.layout), always("", answer)) as odd:
        access = known(odd.host)
        said = refusal(access, f"{odd.host}/a:1", Unauthorized)
        assert said == (
            f"reading manifest {odd.host}/a:1: registry {odd.host} refused reading a with the credentials given{shown}"
        )
        with pytest.raises(Unauthorized) as caught:
            RegistryClient(access).push(Layout.open(made.layout), made.digest, parse(f"{odd.host}/a:1"))
        assert f"pushing {odd.host}/a:1: registry {odd.host} refused pushing to a with" in caught.value.message


@pytest.mark.parametrize(
    ("challenges", "login", "said"),
    [
        pytest.param([], ANN, "asks for nothing known", id="nothing said"),
        pytest.param(["Negotiate"], ANN, "asks for Negotiate", id="another scheme"),
        pytest.param(['Bearer service="x"'], ANN, 'asks for Bearer service="x"', id="no place to ask for a token"),
        pytest.param([f"Negotiate {'x' * 60_000}"], ANN, f"asks for Negotiate {'x' * 90}...", id="a long one"),
        pytest.param(["Basic"], None, "wants credentials, and none are known for", id="nobody known"),
        pytest.param(
            ['Basic realm="x"'],
            Login(identity_token="t"),
            "wants credentials, and none are known for",
            id="a token alone",
        ),
    ],
)
def test_a_challenge_that_cannot_be_met(
    challenges: Sequence[str], login: Login | None, said: str, made: BuiltImage
) -> None:
    """Nothing is sent; the error says what is wanted."""
    answer = Answer(401, b"", {"WWW-Authenticate": challenges[0]} if challenges else {})
    with odd_registry(Layout.open(made.layout), always("", answer)) as odd:
        access = quick() if login is None else known(odd.host, login)
        assert said in refusal(access, f"{odd.host}/a:1", Unauthorized)
        assert len(odd.asked) == 1


@pytest.mark.parametrize("challenge", ["Basic", "basic", 'BASIC realm="x"', 'Negotiate, Basic realm="x"'])
def test_a_password_is_sent_where_it_is_asked_for(challenge: str, made: BuiltImage) -> None:
    """However the scheme is written."""

    def rule(asked: Asked) -> Answer | None:
        if asked.headers.get("Authorization") == basic("ann", "word"):
            return None
        return Answer(401, b"", {"WWW-Authenticate": challenge})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        assert RegistryClient(known(odd.host)).resolve(parse(f"{odd.host}/a:5.2.0")) == made.digest


@pytest.mark.parametrize(
    ("challenge", "asked"),
    [
        pytest.param('realm="REALM"', "/token?scope=repository%3Aa%3Apull", id="a realm alone"),
        pytest.param('realm="REALM",service="s"', "/token?service=s&scope=repository%3Aa%3Apull", id="a service"),
        pytest.param('service=s,realm="REALM?x=y"', "/token?x=y&service=s&scope=repository%3Aa%3Apull", id="a query"),
        pytest.param(
            'REALM="REALM" , Service=s', "/token?service=s&scope=repository%3Aa%3Apull", id="names in any case"
        ),
    ],
)
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_where_a_token_is_asked_for(scheme: str, challenge: str, asked: str, made: BuiltImage) -> None:
    """With the scope that is needed, whatever the challenge says about scopes."""

    def rule(question: Asked) -> Answer | None:
        if question.path.startswith("/token"):
            return Answer(200, b'{"token": "t", "access_token": "other"}')
        if question.headers.get("Authorization") == "Bearer t":
            return None
        said = challenge.replace('"REALM', f'"http://{odd.host}/token')
        return Answer(401, b"", {"WWW-Authenticate": f"{scheme} {said}"})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        client = RegistryClient(quick())
        for _ in range(2):
            assert client.resolve(parse(f"{odd.host}/a:5.2.0")) == made.digest
        assert [path for path in odd.paths() if path.startswith("/token")] == [asked]
        assert client.resolve(parse(f"{odd.host}/b:5.2.0")) == made.digest
        assert len([path for path in odd.paths() if path.startswith("/token")]) == 2


def test_a_token_to_push_with(made: BuiltImage) -> None:
    """It is asked for by another scope, and is not the one to read with."""

    def rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/token"):
            return Answer(200, b'{"token": "may-push"}' if "push" in asked.path else b'{"token": "may-read"}')
        if asked.headers.get("Authorization") == "Bearer may-push":
            return Answer(201)
        if asked.headers.get("Authorization") == "Bearer may-read" and asked.method == "GET":
            return None
        return Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{odd.host}/token"'})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        client = RegistryClient(quick())
        client.resolve(parse(f"{odd.host}/a:5.2.0"))
        client.push(Layout.open(made.layout), made.digest, parse(f"{odd.host}/a:5.2.0"))
        tokens = [path for path in odd.paths() if path.startswith("/token")]
    assert tokens == ["/token?scope=repository%3Aa%3Apull", "/token?scope=repository%3Aa%3Apull%2Cpush"]


def tokens(odd_host: Callable[[], str], answer: Answer) -> Rule:
    """A registry that wants a token, and what its service says."""

    def rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/token"):
            return answer
        if asked.headers.get("Authorization", "").startswith("Bearer "):
            return None
        return Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{odd_host()}/token"'})

    return rule


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        pytest.param(Answer(503), Unreachable, "the token service of HOST said 503", id="out of order"),
        pytest.param(Answer(400), Unauthorized, "registry HOST wants credentials, and none are known", id="refused"),
        pytest.param(Answer(200, b"{}"), Unauthorized, "the token service of HOST sent no token", id="no token"),
        pytest.param(
            Answer(200, b'{"token": 7}'), Unauthorized, "the token service of HOST sent no token", id="a number"
        ),
        pytest.param(Answer(200, b"7"), Unauthorized, "the token service of HOST sent no JSON", id="no object"),
        pytest.param(
            Answer(200, b" " * (1_048_577 - 14) + b'{"token": "t"}'),
            Unauthorized,
            "the token service of HOST sent no JSON",
            id="a byte more than a mebibyte",
        ),
    ],
)
def test_a_token_service_that_gives_none(answer: Answer, kind: type[OciError], said: str, made: BuiltImage) -> None:
    """Whether another time may help is distinguished from who one is."""
    with odd_registry(Layout.open(made.layout), tokens(lambda: odd.host, answer)) as odd:
        assert f"{odd.host}/a:5.2.0: {said.replace('HOST', odd.host)}" in refusal(quick(), f"{odd.host}/a:5.2.0", kind)


def test_how_long_a_token_services_answer_may_be(made: BuiltImage) -> None:
    """A mebibyte."""
    answer = Answer(200, b" " * (1_048_576 - 14) + b'{"token": "t"}')
    with odd_registry(Layout.open(made.layout), tokens(lambda: odd.host, answer)) as odd:
        assert RegistryClient(quick()).resolve(parse(f"{odd.host}/a:5.2.0")) == made.digest


def test_a_token_service_that_breaks_off(made: BuiltImage) -> None:
    """In the middle of its answer; that is not a login that is refused."""
    with spoken(OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{") as (host, _):
        challenge = Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{host}/token"'})
        with odd_registry(Layout.open(made.layout), always("", challenge)) as odd:
            assert "the token service broke off: " in refusal(quick(), f"{odd.host}/a:1", Unreachable)


def requests(got: list[bytes]) -> list[bytes]:
    """Returns the requests by plain HTTP; once includes the attempt whether a closing server uses TLS."""
    assert sum(each.startswith(b"\x16") for each in got) <= 1
    return [each for each in got if each.startswith(b"GET ")]


@pytest.mark.parametrize(("status", "looks"), [(400, 1), (399, 0), (401, 0), (404, 0)])
def test_after_which_answer_tls_is_tried(status: int, looks: int) -> None:
    """Go and nginx refuse a plain request to a server of TLS by 400; 0x16 begins a handshake (RFC 8446, 5.1)."""
    with spoken(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status) as (host, got):
        with pytest.raises(OciError):
            RegistryClient(quick()).resolve(parse(f"{host}/a:1"))
        assert sum(each.startswith(b"\x16") for each in got) == looks


def test_who_hangs_up_is_asked_again() -> None:
    """Without a word, or in the middle of one; four times in all, and longer and longer in between."""
    pauses = Pauses()
    with spoken(b"", b"HTTP/1.1 2") as (host, got):
        shown = refusal(Access(wait=pauses), f"{host}/a:1", Unreachable)
        assert shown.startswith(f"reading manifest {host}/a:1: {host} broke off: ")
        assert len(requests(got)) == 4
    assert pauses.seconds == [1.0, 2.0, 4.0]


def test_who_hangs_up_once_is_no_error() -> None:
    """The next answer counts."""
    with spoken(b"", OK + b"Content-Length: 2\r\n\r\n{}") as (host, got):
        assert RegistryClient(quick()).resolve(parse(f"{host}/a:1")) == sha256(b"{}")
        assert len(requests(got)) == 2
    head = got[-1].split(b"\r\n")
    assert head[0] == b"GET /v2/a/manifests/1 HTTP/1.1"
    assert f"User-Agent: runup/{__version__}".encode() in head
    assert sorted(line.partition(b": ")[2].decode() for line in head if line.startswith(b"Accept: ")) == [
        "application/vnd.docker.distribution.manifest.list.v2+json, "
        "application/vnd.docker.distribution.manifest.v2+json, "
        "application/vnd.oci.image.index.v1+json, "
        "application/vnd.oci.image.manifest.v1+json"
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [(Answer(503), "given up while HOST answered 503"), (None, "HOST broke off: ")],
    ids=["overloaded", "hanging up"],
)
def test_waiting_may_be_given_up(answer: Answer | None, said: str, made: BuiltImage) -> None:
    """At the first pause."""
    access = Access(wait=lambda seconds: seconds > 0)
    if answer is None:
        with spoken(b"") as (host, got):
            assert said.replace("HOST", host) in refusal(access, f"{host}/a:1", Unreachable)
            assert len(requests(got)) == 1
    else:
        with odd_registry(Layout.open(made.layout), always("", answer)) as odd:
            assert said.replace("HOST", odd.host) in refusal(access, f"{odd.host}/a:1", Unreachable)
            assert len(odd.asked) == 1


def test_one_attempt_is_one(made: BuiltImage) -> None:
    """Whoever wants no other gets the answer at once."""
    with odd_registry(Layout.open(made.layout), always("", Answer(503))) as odd:
        pauses = Pauses()
        assert "answered 503" in refusal(Access(wait=pauses, attempts=1), f"{odd.host}/a:1", Unreachable)
        assert (len(odd.asked), pauses.seconds) == (1, [])


def test_how_large_a_manifest_may_be() -> None:
    """A mebibyte; half of one is none."""
    body = b"{}".ljust(1_048_576)
    length = b"Content-Length: %d\r\n\r\n"
    with spoken(OK + length % len(body) + body) as (host, _):
        assert RegistryClient(quick()).resolve(parse(f"{host}/a:1")) == sha256(body)
    with spoken(OK + length % (len(body) + 1) + body + b" ") as (host, _):
        shown = refusal(quick(), f"{host}/a:1", BadImage)
        assert shown == f"reading manifest {host}/a:1: it is larger than 1048576 bytes"
    with spoken(OK + length % 100 + b"{}") as (host, _):
        shown = refusal(quick(), f"{host}/a:1", Unreachable)
        assert shown == f"reading manifest {host}/a:1: {host} broke off after 2 bytes"
    with spoken(OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{") as (host, _):
        shown = refusal(quick(), f"{host}/a:1", Unreachable)
        assert shown == f"reading manifest {host}/a:1: {host} broke off after 1 bytes"


def question() -> RegistryRequest:
    """Returns a question whose content does not matter."""
    return RegistryRequest(reference=parse("registry.example/a:1"), method="GET", path="manifests/1", what="it")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        pytest.param(TimeoutError("x"), "it: registry h did not answer in time", id="too late"),
        pytest.param(
            OSError(113, "No route to host"), "it: registry h cannot be reached: No route to host", id="no way"
        ),
        pytest.param("no host given", "it: registry h cannot be reached: no host given", id="in words"),
    ],
)
def test_why_nothing_came(reason: object, said: str) -> None:
    """Such as no other attempt would better."""
    error = connection_error(question(), "h", reason)
    assert isinstance(error, Unreachable)
    assert error.message.startswith(said)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (ConnectionResetError(104, "reset"), "[Errno 104] reset"),
        (ConnectionResetError(), "ConnectionResetError"),
        (BrokenPipeError(32, "pipe"), "[Errno 32] pipe"),
        (Incomplete(), "it hung up before its answer was complete"),
        (OSError(errno.EPROTO, "the answer is not HTTP: x"), "the answer is not HTTP: x"),
    ],
)
def test_what_may_pass(reason: Exception, said: str) -> None:
    """A connection that broke."""
    error = connection_error(question(), "h", reason)
    assert isinstance(error, Interrupted)
    assert str(error) == said


def test_docker_hub_is_asked_at_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no registry is named, and by which repository its own images are kept."""

    def resolve(host: str, *_: object, **__: object) -> None:
        raise socket.gaierror(-2, f"no address for {host}")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    shown = refusal(quick(), "busybox:1", Unreachable)
    assert shown == "reading manifest busybox:1: registry registry-1.docker.io cannot be reached: " + (
        "no address for registry-1.docker.io"
    )


def test_a_certificate_that_nobody_looks_at(made: BuiltImage, tmp_path: Path) -> None:
    """Of the hosts that were listed for it, and of no other."""
    certificate, key = self_signed("0.0.0.0", tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with odd_registry(Layout.open(made.layout), tls=tls) as odd:
        host = elsewhere(odd)
        assert RegistryClient(quick(unchecked=frozenset({host}))).resolve(parse(f"{host}/a:5.2.0")) == made.digest
        shown = refusal(quick(unchecked=frozenset({"other"})), f"{host}/a:5.2.0", Untrusted)
        assert f"the certificate of {host} is not trusted (" in shown


@pytest.mark.parametrize(
    ("address", "since", "until", "why"),
    [
        pytest.param("0.0.0.0", 3, -1, "has expired (certificate has expired); renew it", id="expired"),
        pytest.param(
            "0.0.0.0", -1, 3, "is not valid yet (certificate is not yet valid); set the clocks right", id="too early"
        ),
        pytest.param("192.0.2.1", 1, 1, "is for another host (IP address mismatch, ", id="of another host"),
    ],
)
def test_what_is_wrong_with_a_certificate(
    made: BuiltImage, tmp_path: Path, address: str, since: int, until: int, why: str
) -> None:
    """The registry's administrator must change it, although its authority is known."""
    certificate, key = self_signed(address, tmp_path, since, until)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with odd_registry(Layout.open(made.layout), tls=tls) as odd:
        host = elsewhere(odd)
        shown = refusal(quick(ca_file=str(certificate)), f"{host}/a:5.2.0", Untrusted)
    assert f"the certificate of {host} {why}" in shown


def test_a_registry_on_this_machine_that_speaks_tls(made: BuiltImage, tmp_path: Path) -> None:
    """It is asked by that, its certificate verified; where it is listed for plain HTTP, the list is named."""
    certificate, key = self_signed("127.0.0.1", tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with odd_registry(Layout.open(made.layout), tls=tls) as odd:
        access = quick(ca_file=str(certificate))
        assert RegistryClient(access).resolve(parse(f"{odd.host}/a:5.2.0")) == made.digest
        assert "is not trusted" in refusal(quick(), f"{odd.host}/a:5.2.0", Untrusted)
        listed = quick(plain_http=frozenset({odd.host}))
        shown = refusal(listed, f"{odd.host}/a:5.2.0", Unreachable)
        assert shown.endswith(f": {odd.host} speaks TLS, but is listed for plain HTTP: do not list it")


def test_a_proxy_is_asked_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """By TLS through it; hosts that were listed for plain HTTP are near, as this machine is."""

    def resolve(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "127.0.0.1":
            return system(host, *arguments, **options)
        raise socket.gaierror(-2, f"no address for {host}")

    system = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("no_proxy", "")
    with spoken(b"HTTP/1.1 403 Forbidden\r\n\r\n") as (proxy, got):
        for variable in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(variable, f"http://{proxy}")
        assert f"Tunnel connection failed: 403 from the proxy {proxy}" in refusal(
            quick(), "registry.example:5000/a:1", Unreachable
        )
        assert got[0].startswith(b"CONNECT registry.example:5000 HTTP/1.")
        near = quick(plain_http=frozenset({"registry.example:5000"}))
        assert "no address for registry.example" in refusal(near, "registry.example:5000/a:1", Unreachable)
        assert len(got) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(status: int, made: BuiltImage) -> None:
    """Of every kind, to wherever the registry says, seen from where it says so."""
    rule = first("GET", "/v2/a/", Answer(status, b"", {"Location": "/v2/b/manifests/5.2.0"}))
    with odd_registry(Layout.open(made.layout), rule) as odd:
        assert RegistryClient(quick()).resolve(parse(f"{odd.host}/a:5.2.0")) == made.digest
        assert odd.paths() == ["/v2/a/manifests/5.2.0", "/v2/b/manifests/5.2.0"]


@pytest.mark.parametrize("status", [401, 403, 500])
@pytest.mark.parametrize("challenge", ['Bearer realm="http://STORAGE/token",service="s"', 'Basic realm="storage"'])
@pytest.mark.parametrize("wants_token", [True, False], ids=["after a token", "without a token"])
def test_a_storage_host_gets_no_credentials(status: int, challenge: str, wants_token: bool, made: BuiltImage) -> None:
    """Its challenge is not the registry's, and the error names the host that answered."""

    def storage_rule(asked: Asked) -> Answer:
        if asked.path.startswith("/token"):
            return Answer(200, b'{"token": "t"}')
        return Answer(status, b"", {"WWW-Authenticate": challenge.replace("STORAGE", storage.host)})

    def registry_rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/token"):
            return Answer(200, b'{"token": "r"}')
        if wants_token and not asked.headers.get("Authorization"):
            return Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{odd.host}/token"'})
        return Answer(307, b"", {"Location": f"http://{storage.host}/blob"})

    layout = Layout.open(made.layout)
    with odd_registry(layout, storage_rule) as storage, odd_registry(layout, registry_rule) as odd:
        kind = Unauthorized if status != 500 else Unreachable
        shown = refusal(known(odd.host), f"{odd.host}/a:1", kind)
        assert shown.endswith(f"{storage.host}, to which registry {odd.host} redirects, answered {status}")
        assert {asked.path for asked in storage.asked} == {"/blob"}
        assert not any("Authorization" in asked.headers for asked in storage.asked)


def test_a_redirect_on_the_registry_itself_keeps_credentials(made: BuiltImage) -> None:
    """The challenge is the registry's, whichever of its paths answers."""

    def rule(asked: Asked) -> Answer | None:
        if asked.path.startswith("/v2/a/"):
            return Answer(307, b"", {"Location": "/v2/b/manifests/5.2.0"})
        if asked.headers.get("Authorization") == basic("ann", "word"):
            return None
        return Answer(401, b"", {"WWW-Authenticate": "Basic"})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        assert RegistryClient(known(odd.host)).resolve(parse(f"{odd.host}/a:5.2.0")) == made.digest


def test_a_storage_host_that_cannot_be_reached_is_named(made: BuiltImage) -> None:
    """Rather than the registry that redirects to it."""
    rule = always("", Answer(307, b"", {"Location": "http://127.0.0.1:1/blob"}))
    with odd_registry(Layout.open(made.layout), rule) as odd:
        assert "127.0.0.1:1 cannot be reached" in refusal(quick(), f"{odd.host}/a:1", Unreachable)


def test_a_redirect_to_nowhere(made: BuiltImage) -> None:
    """It is an answer like any other that helps nobody."""
    with odd_registry(Layout.open(made.layout), always("", Answer(302))) as odd:
        assert refusal(quick(), f"{odd.host}/a:1", BadImage).endswith(f"registry {odd.host} answered 302")


def test_redirects_without_end(made: BuiltImage) -> None:
    """Ten are followed."""
    with odd_registry(Layout.open(made.layout), always("", Answer(302, b"", {"Location": "/v2/again"}))) as odd:
        shown = refusal(quick(), f"{odd.host}/a:1", Unreachable)
        assert shown.endswith(f"more than 10 redirects, the last to {odd.host}")
        assert len(odd.asked) == 11


@pytest.mark.parametrize("location", ["https://h:99999/x", f"https://{'é' * 70}.example/x", "https://[::1/x"])
def test_a_redirect_to_what_is_no_url(location: str, made: BuiltImage) -> None:
    """It is the registry's fault, and no other attempt would help."""
    moved = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location.encode("latin-1") + b"\r\n\r\n"
    with spoken(moved) as (host, got):
        assert "which is not a URL" in refusal(quick(), f"{host}/a:1", BadImage)
        assert len(got) == 1


def test_a_redirect_to_a_name_that_none_can_be(made: BuiltImage) -> None:
    """No part of a name has more than 63 characters."""
    location = f"https://{'x' * 64}.example/"
    with odd_registry(Layout.open(made.layout), always("", Answer(302, b"", {"Location": location}))) as odd:
        assert "cannot be asked: " in refusal(quick(), f"{odd.host}/a:1", BadImage)


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_write_is_not_redirected(method: str, made: BuiltImage) -> None:
    """Otherwise a write would become a read."""
    away = first(method, "/v2/", Answer(307, b"", {"Location": "/elsewhere"}))

    def rule(asked: Asked) -> Answer | None:
        if asked.method == "HEAD":
            return Answer(404)
        return away(asked) or Answer(202, b"", {"Location": "/v2/a/upload"})

    with odd_registry(Layout.open(made.layout), rule) as odd:
        with pytest.raises(BadImage, match="answered 307"):
            RegistryClient(quick()).push(Layout.open(made.layout), made.digest, parse(f"{odd.host}/a:1"))
        assert not [asked for asked in odd.asked if "elsewhere" in asked.path]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        pytest.param("/up/1", "/up/1?digest=", id="a path"),
        pytest.param("1", "/v2/a/blobs/uploads/1?digest=", id="beside where it was asked for"),
        pytest.param("/up/1?state=x", "/up/1?state=x&digest=", id="with a query"),
        pytest.param("http://HOST/up/1", "/up/1?digest=", id="a whole URL"),
    ],
)
def test_where_a_blob_goes(location: str, path: str, made: BuiltImage) -> None:
    """As the answer says; the image comes last, as what it is, and by its tag or its digest."""
    layout = Layout.open(made.layout)
    manifest = open_image(layout).manifest

    def rule(asked: Asked) -> Answer | None:
        if asked.method == "HEAD":
            return Answer(404)
        if asked.method == "POST":
            return Answer(202, b"", {"Location": location.replace("HOST", odd.host)})
        return Answer(201)

    with odd_registry(layout, rule) as odd:
        for target in ("a:1", f"a@{made.digest}"):
            odd.asked.clear()
            RegistryClient(quick()).push(layout, made.digest, parse(f"{odd.host}/{target}"))
            puts = [asked for asked in odd.asked if asked.method == "PUT"]
            assert [asked.path for asked in puts] == [
                *(f"{path}{blob.digest.replace(':', '%3A')}" for blob in (manifest.config, *manifest.layers)),
                f"/v2/a/manifests/{target.lstrip('a').lstrip(':@')}",
            ]
            assert [sha256(asked.body) for asked in puts[:-1]] == [manifest.config.digest, manifest.layers[0].digest]
            assert (puts[-1].body, puts[-1].headers["Content-Type"]) == (layout.read(made.digest), images.MANIFEST)
            assert {asked.headers["Content-Type"] for asked in puts[:-1]} == {"application/octet-stream"}


def test_an_upload_that_leads_nowhere(made: BuiltImage) -> None:
    """The registry has to say where to."""
    with odd_registry(Layout.open(made.layout), lambda asked: Answer(404 if asked.method == "HEAD" else 202)) as odd:
        with pytest.raises(BadImage) as caught:
            RegistryClient(quick()).push(Layout.open(made.layout), made.digest, parse(f"{odd.host}/a:1"))
        assert caught.value.message == f"{odd.host}/a:1: the registry does not say where to upload to"


def test_a_blob_that_is_broken_here_does_not_go_out(made: BuiltImage) -> None:
    """A registry would keep it."""
    layout = Layout.open(made.layout)
    layout.blob(open_image(layout).manifest.layers[0].digest).write_bytes(b"x")

    def rule(asked: Asked) -> Answer | None:
        if asked.method == "HEAD":
            return Answer(200 if open_config in asked.path else 404)
        return Answer(202, b"", {"Location": "/up"})

    open_config = open_image(layout).manifest.config.digest
    with odd_registry(layout, rule) as odd:
        with pytest.raises(BadImage, match="other content than its digest says"):
            RegistryClient(quick()).push(layout, made.digest, parse(f"{odd.host}/a:1"))
        assert not [asked for asked in odd.asked if asked.method == "PUT"]


def test_an_index_is_not_pushed(tmp_path: Path) -> None:
    """Images are, one by one."""
    layout = layout_in(tmp_path)
    index = put_index(layout, put_image(layout, [Made("a")]))
    with odd_registry(layout) as odd:
        with pytest.raises(BadImage) as caught:
            RegistryClient(quick()).push(layout, index.digest, parse(f"{odd.host}/a:1"))
        assert caught.value.message == f"{index.digest} is a {images.INDEX}; images are pushed one by one"
        assert odd.asked == []


FILES = [
    pytest.param([[Made("f", b"1")], [Made("g")]], b"1", 2, id="the lower of two"),
    pytest.param([[Made("f", b"1")], [Made("f", b"2")]], b"2", 1, id="the upper of two"),
    pytest.param([[Made("f", b"1")], [Made("f", b"2")], [Made("g")]], b"2", 2, id="the middle of three"),
    pytest.param([[Made("f", b"1")], [Made(".wh.f")]], None, 1, id="hidden"),
    pytest.param([[Made("f", b"1")], [Made(".wh.f")], [Made("g")]], None, 2, id="hidden below the uppermost"),
    pytest.param([[Made("g")], [Made("h")]], None, 2, id="nowhere"),
]


@pytest.mark.parametrize(("layers", "content", "fetched"), FILES)
def test_in_which_layer_a_file_is(
    tmp_path: Path, layers: list[list[Made]], content: bytes | None, fetched: int
) -> None:
    """The uppermost that has or hides it; what is below that is not fetched."""
    layout = layout_in(tmp_path)
    made = put_image(layout, *layers)
    with odd_registry(layout) as odd:
        reference = parse(f"{odd.host}/a@{made.digest}")
        if content is None:
            with pytest.raises(FileNotFound) as caught:
                RegistryClient(quick()).read_file(reference, "f")
            assert caught.value.message == f"{reference}: the image has no file f"
        else:
            assert RegistryClient(quick()).read_file(reference, "f") == content
        assert len([path for path in odd.paths() if "/blobs/" in path]) == fetched


def test_how_large_a_file_may_be_that_is_read_out(tmp_path: Path) -> None:
    """A mebibyte."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("f", bytes(1_048_576)), Made("more", bytes(1_048_577))])
    with odd_registry(layout) as odd:
        reference = parse(f"{odd.host}/a@{made.digest}")
        assert RegistryClient(quick()).read_file(reference, "f") == bytes(1_048_576)
        with pytest.raises(BadImage, match="more is larger than 1048576 bytes"):
            RegistryClient(quick()).read_file(reference, "more")


def test_files_of_one_architecture(tmp_path: Path) -> None:
    """Every way to read takes the image of the one that is asked for."""
    layout = layout_in(tmp_path)
    machines = ("amd64", "arm64")
    index = put_index(
        layout, *(put_image(layout, [Made("d/f", each.encode())], architecture=each) for each in machines)
    )
    with odd_registry(layout) as odd:
        reference, client = parse(f"{odd.host}/a@{index.digest}"), RegistryClient(quick())
        assert client.read_file(reference, "d/f") == b"amd64"
        assert client.read_file(reference, "d/f", architecture="arm64") == b"arm64"
        assert client.read_folders(reference, ("d",)) == {"d/f": b"amd64"}
        assert client.read_folders(reference, ("d",), architecture="arm64") == {"d/f": b"arm64"}
        with pytest.raises(BadImage, match=f"{reference} has no image for linux/s390x; it has amd64, arm64"):
            client.read_file(reference, "d/f", architecture="s390x")


def test_folders_of_layers_that_arrive(tmp_path: Path) -> None:
    """Each is fetched once, upper ones hide; what is picked is picked."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("d/a", b"1"), Made("d/b"), Made("e/c")], [Made("d/.wh.b"), Made("d/a", b"2")])
    with odd_registry(layout) as odd:
        reference, client = parse(f"{odd.host}/a@{made.digest}"), RegistryClient(quick())
        assert client.read_folders(reference, ("d",)) == {"d/a": b"2"}
        assert len([path for path in odd.paths() if "/blobs/" in path]) == 3
        kept = client.read_folders(reference, ("e",), Pick(keeps=lambda path, _data: path.encode()))
        assert kept == {"e/c": b"e/c"}


def with_manifest(layout: Layout, made: images.Descriptor, **changes: Any) -> str:
    """The digest of that image with other members of its manifest."""
    manifest = msgspec.structs.replace(
        images.decode_document(images.Manifest, layout.read(made.digest), "it"), **changes
    )
    return put_document(layout, msgspec.json.encode(manifest), images.MANIFEST).digest


@pytest.mark.parametrize("size", [1_048_576, 1_048_577])
def test_how_large_a_config_may_be(tmp_path: Path, size: int) -> None:
    """A mebibyte; a larger one is not fetched."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("d/f", b"1")])
    config = images.decode_document(images.Manifest, layout.read(made.digest), "it").config
    padded = layout.blob(config.digest).read_bytes().ljust(size)
    described = msgspec.structs.replace(config, digest=layout.add_blob(padded), size=size)
    digest = with_manifest(layout, made, config=described)
    with odd_registry(layout) as odd:
        reference = parse(f"{odd.host}/a@{digest}")
        if size == 1_048_576:
            assert RegistryClient(quick()).read_folders(reference, ("d",)) == {"d/f": b"1"}
        else:
            with pytest.raises(BadImage) as caught:
                RegistryClient(quick()).read_folders(reference, ("d",))
            assert caught.value.message == f"{reference}: its config is larger than 1048576 bytes"
            assert len(odd.asked) == 1


@pytest.mark.parametrize(
    ("read", "limit"),
    [
        pytest.param(lambda c, r, p: c.pull(r, Layout.create(p / "pulled")), 4 * GIB, id="pulling"),
        pytest.param(lambda c, r, _: c.read_file(r, "f"), 4 * GIB, id="reading a file"),
        pytest.param(lambda c, r, _: c.read_folders(r, ("d",)), 4 * GIB, id="reading folders"),
        pytest.param(
            lambda c, r, _: c.search(r, FileQuery(folder="d", wanted=frozenset({"x"}), key=lambda each: each)),
            16 * GIB,
            id="searching",
        ),
    ],
)
def test_how_large_an_image_may_say_that_it_is(
    tmp_path: Path, read: Callable[[RegistryClient, Any, Path], object], limit: int
) -> None:
    """Config and layers together, to the byte: beyond, not a blob is asked for."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("d/f")])
    manifest = images.decode_document(images.Manifest, layout.read(made.digest), "it")

    def claiming(total: int) -> str:
        size = total - manifest.config.size
        return with_manifest(layout, made, layers=(msgspec.structs.replace(manifest.layers[0], size=size),))

    most, more = claiming(limit), claiming(limit + 1)
    with odd_registry(layout) as odd:
        client = RegistryClient(quick(attempts=1))
        with pytest.raises(Unreachable, match="broke off"):
            read(client, parse(f"{odd.host}/a@{most}"), tmp_path)
        odd.asked.clear()
        reference = parse(f"{odd.host}/a@{more}")
        with pytest.raises(BeyondLimits) as caught:
            read(client, reference, tmp_path)
        assert caught.value.message == f"{reference}: claims {limit + 1} bytes; the limit is {limit}"
        assert len(odd.asked) == 1


def test_as_many_layers_as_there_may_be(tmp_path: Path) -> None:
    """128, and one that is there more than once is fetched once."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("f")])
    layers = images.decode_document(images.Manifest, layout.read(made.digest), "it").layers
    digest = with_manifest(layout, made, layers=layers * 128)
    with odd_registry(layout) as odd:
        RegistryClient(quick()).pull(parse(f"{odd.host}/a@{digest}"), Layout.create(tmp_path / "pulled"))
        assert len([path for path in odd.paths() if "/blobs/" in path]) == 2


def test_what_arrives_is_counted(tmp_path: Path) -> None:
    """Every byte of blobs, and of what was asked for again as often as it came."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("f")], media_type=PLAIN)
    manifest = images.decode_document(images.Manifest, layout.read(made.digest), "it")
    (layer,) = manifest.layers
    broken_off = first("GET", layer.digest, Answer(200, layout.blob(layer.digest).read_bytes(), cut=100))
    with odd_registry(layout, broken_off) as odd:
        client, pauses = RegistryClient(access := quick()), Layout.create(tmp_path / "pulled")
        client.pull(parse(f"{odd.host}/a@{made.digest}"), pauses)
    assert client.received_bytes == manifest.config.size + layer.size
    assert isinstance(access.wait, Pauses)
    assert access.wait.seconds == [1.0]


def test_a_blob_that_never_comes_whole(tmp_path: Path) -> None:
    """How far it came is said, after as many attempts as there are."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("f")], media_type=PLAIN)
    (layer,) = images.decode_document(images.Manifest, layout.read(made.digest), "it").layers
    body = layout.blob(layer.digest).read_bytes()[:100]
    pauses = Pauses()
    with odd_registry(layout, always(layer.digest, Answer(200, body))) as odd:
        reference = parse(f"{odd.host}/a@{made.digest}")
        with pytest.raises(Unreachable) as caught:
            RegistryClient(Access(wait=pauses, attempts=3)).read_file(reference, "f")
        shown = f"{odd.host} broke off: it ended after 100 of {layer.size} bytes"
        assert caught.value.message == f"{reference}: blob {layer.digest}: {shown}"
        assert len([path for path in odd.paths() if layer.digest in path]) == 3
    assert pauses.seconds == [1.0, 2.0]


@pytest.mark.parametrize(
    ("size", "late_s", "in_time"), [(0, 490, True), (0, 500, False), (9, 940, True), (9, 950, False)]
)
def test_how_long_a_request_may_take(size: int, late_s: float, in_time: bool, made: BuiltImage) -> None:
    """As long as was said for any, and as much longer as its size needs where it is slowest."""
    times = iter([0.0])
    access = quick(request_s=500.0, slowest_bytes_s=0.02, monotonic=lambda: next(times, late_s))
    with odd_registry(Layout.open(made.layout)) as odd:
        asked = RegistryRequest(
            reference=parse(f"{odd.host}/a:5.2.0"), method="GET", path="manifests/5.2.0", what="it", size=size
        )
        if in_time:
            with Transport(access).ask(asked) as answer:
                assert answer.status == 200
        else:
            with pytest.raises(Unreachable) as caught, Transport(access).ask(asked):
                pass
            assert caught.value.message == f"it: registry {odd.host} did not answer in time"


@pytest.mark.parametrize("late_s", [1490, 1500])
@pytest.mark.parametrize("part", [1, 2], ids=["all of it", "the rest of it"])
def test_how_long_a_blob_may_take(tmp_path: Path, part: int, late_s: float) -> None:
    """By its size, or by the size of what is still to come; here a thousand seconds and five hundred."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("f", bytes(1_310_720 - 1024))], media_type=PLAIN)
    (layer,) = images.decode_document(images.Manifest, layout.read(made.digest), "it").layers
    data = layout.blob(layer.digest).read_bytes()
    size = layer.size // part
    now, coming = [0.0], [False]

    def rule(asked: Asked) -> Answer | None:
        if layer.digest not in asked.path:
            return None
        coming[0] = part == 1 or "Range" in asked.headers
        return Answer(206, data[-size:]) if coming[0] else Answer(200, data, cut=layer.size - size)

    def wait(_seconds: float) -> bool:
        # What has come already is taken; what is still on its way is late.
        now[0] = late_s if coming[0] else 0.0
        return False

    access = Access(request_s=500.0, slowest_bytes_s=size / 1000, monotonic=lambda: now[0], wait=wait, attempts=2)
    with odd_registry(layout, rule) as odd:
        client, reference = RegistryClient(access), parse(f"{odd.host}/a@{made.digest}")
        if late_s < 1500:
            client.pull(reference, Layout.create(tmp_path / "pulled"))
            assert now[0] == late_s
        else:
            with pytest.raises(Unreachable, match=f"registry {odd.host} did not answer in time"):
                client.pull(reference, Layout.create(tmp_path / "pulled"))


def test_how_long_an_upload_may_take(tmp_path: Path) -> None:
    """It has the time that its size needs, besides that of any request."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("f", bytes(1_000_000))], media_type=PLAIN)
    answers = {"HEAD": Answer(404), "POST": Answer(202, b"", {"Location": "/up"}), "PUT": Answer(201)}

    def push(slowest_bytes_s: float) -> None:
        # Every look at the clock takes a second: a small request has a few of them, a blob one for each piece.
        seconds = itertools.count(0.0)
        access = quick(request_s=20.0, slowest_bytes_s=slowest_bytes_s, monotonic=lambda: next(seconds), attempts=1)
        with odd_registry(layout, lambda asked: answers[asked.method]) as odd:
            RegistryClient(access).push(layout, made.digest, parse(f"{odd.host}/a:1"))

    push(1000.0)
    with pytest.raises(Unreachable, match="did not answer in time"):
        push(1e12)


def test_mirrors_are_asked_in_turn_and_named(made: BuiltImage, tmp_path: Path) -> None:
    """Whatever goes wrong with one; the error is the source's kind, and has the layer that it is about."""
    layout = Layout.open(made.layout)
    layer = open_image(layout).manifest.layers[0]
    with (
        odd_registry(layout, always("", Answer(404))) as lacking,
        odd_registry(layout, always("", Answer(403))) as closed,
        odd_registry(layout, always(layer.digest, Answer(404))) as source,
    ):
        access = quick(mirrors=(Mirror(source.host, (lacking.host, closed.host)),))
        with pytest.raises(ImageNotFound) as caught:
            RegistryClient(access).search(
                name(source, made), FileQuery(folder="d", wanted=frozenset({"x"}), key=lambda each: each)
            )
        assert caught.value.layer == layer.digest
        said = caught.value.message.split("; ")
        assert said[0] == f"{name(source, made)}: blob {layer.digest}: blob unknown"
        assert said[1].startswith(f"mirror: reading manifest {lacking.host}/")
        assert said[2].startswith(f"mirror: reading manifest {closed.host}/")
        assert len(said) == 3


def test_a_release_is_read_from_a_registry(made: BuiltImage) -> None:
    """By its tag, which represents a digest."""
    with odd_registry(Layout.open(made.layout)) as odd:
        client = RegistryClient(quick())
        assert b'"5.2.0"' in client.read_file(parse(f"{odd.host}/a:5.2.0"), FILE)
        odd.asked.clear()
        assert client.resolve(name(odd, made)) == made.digest
        assert odd.asked == []
