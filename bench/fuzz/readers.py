"""What reads other people's bytes, each with a way to make an input of a seeded random; for `bench.fuzz`.

`make` depends on the random alone, so that seed and index name an input for good. `read` returns `accepted` or
`refused`; it raises Wrong for an outcome that is a fault of ours, and any other exception is a crash.
"""

from __future__ import annotations

import functools
import json
import random
import socket
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jsonschema_rs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.fuzz import dumps as fuzz_dumps
from bench.fuzz import layers as fuzz_layers
from bench.fuzz import statuses as fuzz_statuses
from bench.fuzz.changes import JSON, ODD, changed_bytes, changed_document, encoded
from bench.fuzz.outcomes import ACCEPTED, REFUSED, Wrong, check_text
from bench.hostile import cel as hostile_cel
from bench.hostile import reports as hostile_reports
from bench.hostile.openpgp import Certificate, Key, packet
from kubekit.http.http_connection import Answer
from kubekit.lang.cel import CelError, compile_cel
from kubekit.lang.version import Version
from kubekit.oci import credentials, reference
from kubekit.oci.access import Access
from kubekit.oci.registry_errors import OciError, Unverified
from kubekit.oci.signatures import Keyring, signature_claim, verify_signatures
from kubekit.oci.transport import RegistryRequest, Transport, pause_s
from runup.advice.decide.graph import BadGraph, derive_advice, parse_graph
from runup.report import report

_MIB = 1 << 20


@dataclass(frozen=True)
class Reader:
    """`make` gives an input, `read` uses it and says what came of it."""

    make: Callable[[random.Random], bytes]
    read: Callable[[bytes], str]


# A target's report.


def _report(drawn: random.Random) -> bytes:
    if drawn.random() < 0.5:
        return hostile_reports.mutation(drawn)
    return changed_bytes(drawn, encoded(hostile_reports.whole()), (b'"risks":', b"\\u0000", b"[", b'{"a":', b"null"))


def _read_report(data: bytes) -> str:
    outcome, why = hostile_reports.judged(report.read, data, None, _valid_report())
    if outcome in ("wrong", "crashed"):
        raise Wrong(why)
    return ACCEPTED if outcome.startswith(ACCEPTED) else REFUSED


@functools.cache
def _valid_report() -> Callable[[JSON], bool]:
    return jsonschema_rs.validator_for(json.loads(hostile_reports.SCHEMA.read_text())).is_valid


# The update service's graph.


def _whole_graph(drawn: random.Random) -> JSON:
    count = drawn.choice((3, 10, 60))
    channels = {"io.openshift.upgrades.graph.release.channels": "stable-5.0,fast-5.0"}
    nodes = [
        {"version": f"5.{n % 3}.{n // 3}", "payload": f"r.example/a@sha256:{n:064x}", "metadata": channels}
        for n in range(count)
    ]
    rules = [{"type": "PromQL", "promql": {"promql": 'max(a{b="c"})'}}, {"type": "Always"}]
    risks = [
        {"name": f"Risk{n}", "url": "https://example.com/", "message": "Words.", "matchingRules": rules}
        for n in range(drawn.randint(1, 4))
    ]
    edges = [[0, drawn.randrange(count)] for _ in range(count)]
    edges += [[drawn.randrange(count), drawn.randrange(count)] for _ in range(2 * count)]
    guarded = [{"from": "5.0.0", "to": nodes[drawn.randrange(count)]["version"]} for _ in range(5)]
    return {"version": 1, "nodes": nodes, "edges": edges, "conditionalEdges": [{"edges": guarded, "risks": risks}]}


def _graph(drawn: random.Random) -> bytes:
    document = _whole_graph(drawn)
    odd = (*ODD, [0, 0], [0], [0, 1 << 70], "5.0.0", "5.0.0-" + "a." * 100, {"type": "PromQL", "promql": None})
    data = encoded(changed_document(drawn, document, odd) if drawn.random() < 0.7 else document)
    words = (b"[0,1],", b'{"edges":[],"risks":[]},', b"[", b'{"version":"5.0.0"},', b"\\ud800", b'"')
    return data if drawn.random() < 0.5 else changed_bytes(drawn, data, words, 4 * _MIB)


def _read_graph(data: bytes) -> str:
    try:
        derive_advice(parse_graph(data), current=Version("5.0.0"), channel="stable-5.0")
    except BadGraph as error:
        return check_text(str(error))
    return ACCEPTED


# Signatures, and the keyrings that they are shown to.

_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_MADE = datetime(2024, 11, 1, tzinfo=UTC)
_DIGEST = "sha256:" + "52" * 32


@functools.cache
def _signed() -> tuple[tuple[bytes, bytes], ...]:
    """Messages and their keyrings, the same in each process."""
    first, second = (Key(_MADE, Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32)) for n in (1, 2))
    text, at = signature_claim(_DIGEST, "registry.example/ocp/release"), _MADE + timedelta(days=30)
    plain, sub = Certificate(first), Certificate(first, subkey=second)
    return (
        (first.message(text, at), plain.public),
        (second.message(text, at), sub.public),
        (packet(8, b"\x00" + first.message(text, at)), plain.public),
    )


def _signature(drawn: random.Random) -> bytes:
    """A byte for the seed, one for what was changed, four for the length of the message, message and keyring."""
    number = drawn.randrange(len(_signed()))
    message, keyring = _signed()[number]
    words = (packet(10, b"PGP"), packet(2, b"\x04"), b"\xa3\x01", b"\xc8\xff", b"\xe0", message[:40], keyring[:60])
    which = drawn.choice((1, 1, 2, 3))
    if which & 1:
        message = changed_bytes(drawn, message, words, 1 << 18)
        # GnuPG compresses what it signs: what is beyond the limit as it comes may be within it packed.
        message = packet(8, b"\x02" + zlib.compress(message)) if drawn.random() < 0.3 else message
    if which & 2:
        keyring = changed_bytes(drawn, keyring, words, 1 << 18)
    return bytes([number, which]) + len(message).to_bytes(4, "big") + message + keyring


def _read_signature(data: bytes) -> str:
    size = int.from_bytes(data[2:6], "big")
    message, keyring = data[6 : 6 + size], data[6 + size :]
    try:
        verified = verify_signatures(_DIGEST, [Keyring("a", keyring)], [message], now=_NOW)
    except Unverified as error:
        return check_text(str(error))
    if verified.digest != _DIGEST:
        raise Wrong(f"verified {verified.digest}")
    return ACCEPTED


# The heads of a registry's answers.

_QUESTION = RegistryRequest(
    reference=reference.parse("registry.example/a:1"),
    method="GET",
    path="manifests/1",
    what="reading registry.example/a:1",
)
_HEADS = (
    b'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm="https://auth.example/token",service="a",scope="b:c:pull"\r\n'
    b'WWW-Authenticate: Basic realm="a, b=\\"c\\""\r\nContent-Length: 2\r\n\r\n{}',
    b"HTTP/1.1 429 Later\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nDate: Wed, 21 Oct 2026 07:27:00 GMT\r\n\r\n",
    b"HTTP/1.1 503 Later\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.1 307 There\r\nLocation: https://storage.example/a?b=c#d\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nDocker-Content-Digest: sha256:aa\r\nContent-Length: 3\r\n\r\nabc",
)
_HEAD_WORDS = (
    *(
        b"\r\n",
        b"WWW-Authenticate: ",
        b'realm="',
        b"\\",
        b'"',
        b",",
        b"a=b,",
        b" ",
        b"\t",
        b"=",
        b"Bearer ",
        b"a" * 4096,
    ),
    *(b"Retry-After: ", b"Date: ", b"1e400", b"-1", b"+9999999999", b"21 Oct 2026 07:28:00 ", b"Wed, 21-Oct-99 "),
    *(b"Location: ", b"//", b"http://[", b"https://\xe4.example/", b":99999/", b"\0", b"Content-Length: 9" * 20),
)


def _head(drawn: random.Random) -> bytes:
    data = drawn.choice(_HEADS)
    if drawn.random() < 0.2:
        name = drawn.choice((b"WWW-Authenticate", b"Retry-After", b"Location", b"Date"))
        value = drawn.choice(_HEAD_WORDS[2:]) * drawn.choice((1, 100, 4000))
        data = data.replace(b"\r\n", b"\r\n" + name + b": " + value[:65_000] + b"\r\n", 1)
    return changed_bytes(drawn, data, _HEAD_WORDS, 160_000)


def _read_head(data: bytes) -> str:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MIB)
        theirs.settimeout(1)
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        try:
            answer = Answer(ours, lambda: 1.0, has_body=True)
            answer.read(_MIB)
        except OSError as error:
            return check_text(str(error) or type(error).__name__)
    return _use_headers(answer)


def _use_headers(answer: Answer) -> str:
    asked = answer.headers.get_all("WWW-Authenticate")
    credentials.parse_challenges(asked)
    if len(credentials.quote_headers(asked)) > _LONGEST_CHALLENGES:
        raise Wrong("the challenges are quoted at length")
    if not 0 <= pause_s(1, answer.headers.get("Retry-After"), answer.headers.get("Date")) <= 60:
        raise Wrong("a pause that nobody waits")
    try:
        Transport(Access()).allowed("https://registry.example/v2/a", answer.headers.get("Location"), _QUESTION)
    except OciError as error:
        return check_text(str(error))
    return ACCEPTED


_LONGEST_CHALLENGES = 3000


# CEL: expressions of checks, and texts that are none.


def _cel(drawn: random.Random) -> bytes:
    text = hostile_cel.expression(drawn, drawn.randint(1, 5)).encode()
    return text if drawn.random() < 0.6 else changed_bytes(drawn, text, _CEL_WORDS, 1 << 16)


_CEL_WORDS = (
    *(
        b"(",
        b"[",
        b"{",
        b"!",
        b"-",
        b"? 1 : ",
        b".a",
        b"[0]",
        b"'",
        b'"""',
        b"\\u{",
        b"\\",
        b"r'",
        b"b'\\xff'",
        b"9" * 400,
    ),
    *(b"s.matches('(a*)*b')", b"s.find('(.{1,999}){1,999}')", b"cel.bind(v,s+s,v+v)", b"l.map(x,l)", b"[l,l,l]", b"\0"),
    *(b"s.replace('', s)", b"m.map(k, m[k])", b"duration('9e99h')", b"timestamp('0001-01-01T00:00:00Z')", b"has(m.a)"),
)


def _read_cel(data: bytes) -> str:
    try:
        text = data.decode(errors="surrogateescape")
        compile_cel(text, dict.fromkeys(hostile_cel.VARIABLES, "dyn")).evaluate(hostile_cel.VARIABLES)
    except CelError as error:
        return check_text(str(error))
    return ACCEPTED


READERS = {
    "report": Reader(_report, _read_report),
    "graph": Reader(_graph, _read_graph),
    "layers": Reader(fuzz_layers.make, fuzz_layers.read),
    "signatures": Reader(_signature, _read_signature),
    "headers": Reader(_head, _read_head),
    "dumps": Reader(fuzz_dumps.make, fuzz_dumps.read),
    "cel": Reader(_cel, _read_cel),
    "statuses": Reader(fuzz_statuses.make, fuzz_statuses.read),
}
