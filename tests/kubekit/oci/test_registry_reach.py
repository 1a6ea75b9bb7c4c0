"""How long a registry may keep somebody waiting, and where it may not lead."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.kubekit.oci.registries import Answer, Asked, odd_registry, release

from kubekit.http.addresses import AddressPolicy, Deadline, ForbiddenAddress, address_of, connect_allowed
from kubekit.oci.access import Access
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import AddressNotAllowed, OciError, Unauthorized, Unreachable

DIGEST = "sha256:" + "5" * 64
FILE = "release-manifests/release-metadata"
BEAT_S = 0.05


@contextmanager
def dripping(head: bytes, then: bytes) -> Iterator[str]:
    """`host:port` of who sends `head` at once, then a byte of `then` every moment, for ten seconds at most."""
    ended = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(10)

    def serve() -> None:
        with suppress(OSError):
            while not ended.is_set():
                caller, _ = server.accept()
                with caller, suppress(OSError):
                    caller.recv(4096)
                    caller.sendall(head)
                    for at in range(200):
                        if ended.wait(BEAT_S):
                            return
                        caller.sendall(then[at % len(then) :][:1])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        ended.set()
        with suppress(OSError):
            socket.create_connection(server.getsockname(), 1).close()
        thread.join(12)
        server.close()


OK = b"HTTP/1.1 200 OK\r\n"
DRIPS = [
    pytest.param(b"", b"HTTP/1.1 200 OK and so on ", id="the status line"),
    pytest.param(OK, b"X-Header: more of it ", id="the headers"),
    pytest.param(OK + b"Content-Length: 100\r\n\r\n", b"{", id="a body of a known length"),
    pytest.param(OK + b"\r\n", b"{", id="a body without an end"),
    pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n", id="a body in pieces"),
    pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="promises"),
    pytest.param(b"HTTP/1.1 401 No\r\nContent-Length: 100\r\n\r\n", b"{", id="a refusal's body"),
]


@pytest.mark.parametrize(("head", "then"), DRIPS)
def test_a_byte_now_and_then_ends_at_the_deadline(head: bytes, then: bytes) -> None:
    """Each byte comes in time; the request as a whole does not."""
    access = Access(request_s=10 * BEAT_S, timeout_s=5, wait=lambda _seconds: False, attempts=2)
    with dripping(head, then) as host, pytest.raises(OciError) as caught:
        RegistryClient(access).read_file(parse(f"{host}/a@{DIGEST}"), FILE)
    assert isinstance(caught.value, Unreachable | Unauthorized)


def test_a_blob_that_drips_ends_at_the_deadline(tmp_path: Path) -> None:
    """A blob has as much time as its size needs, and no more."""
    made = release(tmp_path / "made")
    head = OK + b"Content-Length: 100000\r\n\r\n"
    with dripping(head, b"\x1f") as slow:

        def rule(asked: Asked) -> Answer | None:
            return Answer(307, b"", {"Location": f"http://{slow}/"}) if "/blobs/" in asked.path else None

        access = Access(request_s=10 * BEAT_S, timeout_s=5, wait=lambda _seconds: False)
        with odd_registry(Layout.open(made.layout), rule) as odd, pytest.raises(Unreachable, match="in time"):
            RegistryClient(access).pull(parse(f"{odd.host}/a@{made.digest}"), Layout.create(tmp_path / "pulled"))


def test_a_deadline_counts_down() -> None:
    """No wait is longer than what is left, nor than one piece's."""
    now = [100.0]
    deadline = Deadline.after(10, 4, lambda: now[0])
    assert deadline.wait_s() == 4
    now[0] = 108.5
    assert deadline.wait_s() == 1.5
    now[0] = 110.0
    with pytest.raises(TimeoutError, match="the request's time is over"):
        deadline.wait_s()
    now[0] = 109.5
    assert deadline.wait_s() == 0.5


PLACES = [
    # address, refused where a registry leads there, and where that registry was named on this machine
    ("127.0.0.1", True, False),
    ("127.8.9.1", True, False),
    ("::1", True, False),
    ("::ffff:127.0.0.1", True, False),
    ("64:ff9b::7f00:1", True, False),
    ("169.254.169.254", True, True),
    ("::ffff:169.254.169.254", True, True),
    ("64:ff9b::a9fe:a9fe", True, True),
    ("2002:a9fe:a9fe::", True, True),
    ("fe80::1", True, True),
    ("fd00:ec2::254", True, True),
    ("fd20:ce::254", True, True),
    ("100.100.100.200", True, True),
    ("::ffff:100.100.100.200", True, True),
    ("168.63.129.16", True, True),
    ("fd00:ec2::253", False, False),
    ("0.0.0.0", True, True),
    ("::", True, True),
    ("224.0.0.1", True, True),
    ("ff02::1", True, True),
    ("192.0.2.1", False, False),
    ("10.0.0.1", False, False),
    ("2001:db8::1", False, False),
    ("64:ff9b::c000:201", False, False),
    # The last 32 bits count behind the prefix, all of them and no more.
    ("64:ff9b::1", False, False),
    ("64:ff9b::", True, True),
    ("64:ff9b:0:0:0:1:0:0", False, False),
    ("::7f00:1", True, False),
    ("::a9fe:a9fe", True, True),
    ("::1:7f00:1", False, False),
    ("::2", False, False),
    ("2002:7f00:1::", True, False),
    ("::ffff:10.0.0.1", False, False),
]


@pytest.mark.parametrize(("address", "refused", "on_this_machine"), PLACES)
def test_where_a_registry_may_not_lead(address: str, refused: bool, on_this_machine: bool) -> None:
    """The registry that was named may be anywhere; private networks stay allowed, since registries live there."""
    found = ipaddress.ip_address(address)
    assert AddressPolicy(own=False).refuses(found) is refused
    assert AddressPolicy(own=False, loopback=True).refuses(found) is on_this_machine
    assert not AddressPolicy(own=True).refuses(found)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("169.254.169.254", "169.254.169.254"),
        ("2852039166", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("127.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("registry.example", None),
        ("", None),
    ],
)
def test_an_address_is_known_however_it_is_written(host: str, address: str | None) -> None:
    """As the system's resolver reads it."""
    assert str(address_of(host)) == str(address)


def test_an_address_that_is_refused_is_named() -> None:
    """A name is evaluated when it is known what it is."""
    with pytest.raises(ForbiddenAddress, match=r"127\.1 is an address that registries must not lead to"):
        AddressPolicy(own=False).check("127.1")
    for host in ("registry.example", "192.0.2.1"):
        AddressPolicy(own=False).check(host)
    AddressPolicy().check("127.1")


def deadline() -> Deadline:
    """Far away."""
    return Deadline.after(60, 60, lambda: 0.0)


def test_the_first_address_that_answers_is_taken(names: dict[str, list[str]]) -> None:
    """Where none does, the last one's error is reported; where it does not exist, that."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        names["somewhere"] = ["127.0.0.2", "127.0.0.1", "127.0.0.3"]
        with connect_allowed("somewhere", port, AddressPolicy(), deadline()) as made:
            assert made.getpeername()[0] == "127.0.0.1"
        names["nowhere"] = ["127.0.0.2", "127.0.0.3"]
        with pytest.raises(ConnectionRefusedError):
            connect_allowed("nowhere", port, AddressPolicy(), deadline())
        with pytest.raises(
            ForbiddenAddress, match=r"nowhere is 127\.0\.0\.3, an address that registries must not lead to"
        ):
            connect_allowed("nowhere", port, AddressPolicy(own=False), deadline())
        names["empty"] = []
        with pytest.raises(OSError, match="empty has no address"):
            connect_allowed("empty", port, AddressPolicy(), deadline())


def test_a_connection_has_no_longer_than_its_request(names: dict[str, list[str]]) -> None:
    """Where that is over, nobody is called."""
    names["somewhere"] = ["127.0.0.1"]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(TimeoutError, match="the request's time is over"),
    ):
        connect_allowed("somewhere", server.getsockname()[1], AddressPolicy(), Deadline.after(0, 60, lambda: 0.0))


INNER = ["169.254.169.254", "[fe80::1]", "0.0.0.0", "[::]", "[::ffff:169.254.169.254]", "2852039166", "224.0.0.1"]


@pytest.mark.parametrize("kind", ["a redirect", "a token service", "an upload"])
@pytest.mark.parametrize("inner", INNER)
def test_a_registry_leads_to_no_inward_address(tmp_path: Path, inner: str, kind: str) -> None:
    """Not even the sandbox's, which is on this machine itself: before anything is sent."""
    made = release(tmp_path / "made")
    place = f"https://{inner}/latest/"
    answers = {
        "a redirect": Answer(307, b"", {"Location": place}),
        "a token service": Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="{place}"'}),
        "an upload": Answer(202, b"", {"Location": place}),
    }

    def rule(asked: Asked) -> Answer:
        return Answer(404) if kind == "an upload" and asked.method == "HEAD" else answers[kind]

    client = RegistryClient(Access(wait=lambda _seconds: False))
    with odd_registry(Layout.open(made.layout), rule) as odd, pytest.raises(Unauthorized, match="must not lead to"):
        if kind == "an upload":
            client.push(Layout.open(made.layout), made.digest, parse(f"{odd.host}/a:1"))
        else:
            client.resolve(parse(f"{odd.host}/a:1"))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and the addresses that the system's resolver gives for them."""
    known: dict[str, list[str]] = {}
    system = socket.getaddrinfo

    def resolve(host: str, *arguments: Any, **options: Any) -> list[Any]:
        return [entry for address in known.get(host, [host]) for entry in system(address, *arguments, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"], ["::1", "127.0.0.1"]])
def test_a_name_that_is_an_inward_address(tmp_path: Path, names: dict[str, list[str]], addresses: list[str]) -> None:
    """A registry elsewhere leads to a name; what that is decides, and nobody is called."""
    names["registry.example"] = ["127.0.0.1"]
    names["inner.example"] = addresses
    made = release(tmp_path / "made")
    with odd_registry(Layout.open(made.layout)) as inner:
        port = inner.host.rpartition(":")[2]
        rule = lambda _asked: Answer(307, b"", {"Location": f"http://inner.example:{port}/x"})  # noqa: E731
        with odd_registry(Layout.open(made.layout), rule) as odd:
            host = f"registry.example:{odd.host.rpartition(':')[2]}"
            plain = frozenset({host, f"inner.example:{port}"})
            with pytest.raises(
                Unauthorized, match=r"inner\.example is .*, an address that registries must not lead to"
            ):
                RegistryClient(Access(plain_http=plain)).resolve(parse(f"{host}/a:1"))
            assert len(odd.asked) == 1
    assert inner.asked == []


def test_a_name_is_reached_at_its_good_address(tmp_path: Path, names: dict[str, list[str]]) -> None:
    """A registry on this machine may lead to a name that is this machine, and the bad address of it is passed over."""
    names["store.example"] = ["169.254.169.254", "127.0.0.1"]
    made = release(tmp_path / "made")
    with odd_registry(Layout.open(made.layout)) as store:
        port = store.host.rpartition(":")[2]

        def rule(asked: Asked) -> Answer:
            return Answer(307, b"", {"Location": f"http://store.example:{port}{asked.path}"})

        with odd_registry(Layout.open(made.layout), rule) as odd:
            access = Access(plain_http=frozenset({f"store.example:{port}"}))
            found = RegistryClient(access).resolve(parse(f"{odd.host}/a:5.2.0"))
    assert found == made.digest
    assert len(store.asked) == 1


SERVICES = (ipaddress.ip_network("10.96.0.0/12"), ipaddress.ip_network("fd00:96::/112"))


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("10.96.0.1", True),
        ("10.111.255.255", True),
        ("10.112.0.0", False),
        ("::ffff:10.96.0.1", True),
        ("64:ff9b::a60:1", True),
        ("fd00:96::1", True),
        ("fd00:97::1", False),
        ("192.0.2.1", False),
        ("127.0.0.1", True),
        ("169.254.169.254", True),
    ],
)
def test_the_clusters_services_are_inner_addresses(address: str, refused: bool) -> None:
    """However they are written; for a registry that was listed they are not."""
    found = ipaddress.ip_address(address)
    assert AddressPolicy(own=False, networks=SERVICES).refuses(found) is refused
    assert not AddressPolicy(own=True, networks=SERVICES).refuses(found)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost"])
def test_this_machines_own_names_are_inner(host: str) -> None:
    """A proxy would take them for itself, so they are not left to it."""
    with pytest.raises(ForbiddenAddress):
        AddressPolicy(own=False).check(host)
    AddressPolicy().check(host)
    AddressPolicy(own=False, loopback=True).check(host)


@pytest.mark.parametrize(
    "written", ["127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "evil.example"]
)
def test_somebody_elses_reference_reaches_no_inner_address(
    tmp_path: Path, names: dict[str, list[str]], written: str
) -> None:
    """Whatever it is called: nobody is asked, and the message has nothing of an answer."""
    names["evil.example"] = ["127.0.0.1", "169.254.169.254", "::1"]
    made = release(tmp_path / "made")
    with odd_registry(Layout.open(made.layout)) as inner:
        host = f"{written}:{inner.host.rpartition(':')[2]}"
        access = Access(inner=frozenset(), plain_http=frozenset({host}), attempts=1)
        with pytest.raises(AddressNotAllowed, match="was not asked, because it is at an inner address"):
            RegistryClient(access).resolve(parse(f"{host}/a:5.2.0"))
    assert inner.asked == []


def test_a_listed_registry_is_asked_and_no_other(tmp_path: Path) -> None:
    """Host and port count: another service of the same machine is another one."""
    made = release(tmp_path / "made")
    with odd_registry(Layout.open(made.layout)) as listed, odd_registry(Layout.open(made.layout)) as other:
        client = RegistryClient(Access(inner=frozenset({listed.host}), attempts=1))
        assert client.resolve(parse(f"{listed.host}/a:5.2.0")) == made.digest
        with pytest.raises(AddressNotAllowed):
            client.resolve(parse(f"{other.host}/a:5.2.0"))
    assert other.asked == []


@pytest.mark.parametrize("kind", ["a redirect", "a token service"])
def test_a_listed_registry_leads_to_listed_ones_alone(tmp_path: Path, kind: str) -> None:
    """Its own redirects and token service are asked; for what is not listed it is no way in."""
    made = release(tmp_path / "made")
    with odd_registry(Layout.open(made.layout)) as store, odd_registry(Layout.open(made.layout)) as inner:
        place = ""

        def rule(asked: Asked) -> Answer:
            if kind == "a redirect":
                return Answer(307, b"", {"Location": f"http://{place}{asked.path}"})
            return Answer(401, b"", {"WWW-Authenticate": f'Bearer realm="http://{place}/token"'})

        with odd_registry(Layout.open(made.layout), rule) as odd:
            client = RegistryClient(Access(inner=frozenset({odd.host, store.host}), attempts=1))
            place = store.host
            with suppress(OciError):
                client.resolve(parse(f"{odd.host}/a:5.2.0"))
            assert len(store.asked) == 1
            place = inner.host
            with pytest.raises(Unauthorized, match=r"leads elsewhere: .* must not lead to"):
                client.resolve(parse(f"{odd.host}/a:5.2.0"))
    assert inner.asked == []


def test_a_name_that_changes_between_looks_is_judged_at_each(
    tmp_path: Path, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that was evaluated is the one that is connected to: there is no second look in between."""
    looks = []
    resolve = socket.getaddrinfo

    def changing(host: str, *arguments: Any, **options: Any) -> list[Any]:
        looks.append(host)
        names["evil.example"] = ["127.0.0.2"] if len(looks) % 2 else ["127.0.0.1"]
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    made = release(tmp_path / "made")

    # A separate network represents the inner one, and 127.0.0.2, where nobody listens, for the web.
    class Outer(AddressPolicy, frozen=True):
        def refuses(self, address: Any) -> bool:
            return str(address) == "127.0.0.1"

    with odd_registry(Layout.open(made.layout)) as inner:
        port = int(inner.host.rpartition(":")[2])
        for _ in range(4):
            with pytest.raises(OSError, match=r"refused|must not lead to"):
                connect_allowed("evil.example", port, Outer(own=False), Deadline.after(60, 60))
    assert looks == ["evil.example"] * 4
    assert inner.asked == []
