"""The alerts of a live cluster: by the route of its Thanos, with the user's token; why not is what the user reads."""

from __future__ import annotations

import gc
import http.server
import json
import ssl
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubekit.kube import config
from kubekit.kube.client_sync import SyncClient
from kubesandbox.apiserver.access.certs import issue_server, new_ca
from runup.advice.control import recommend_input
from runup.process.connection import Connection
from runup.updatestatus.control import thanos
from runup.updatestatus.decide.alerts import Alert, Unreadable

NOW = datetime.now(UTC)
ROUTE = "/apis/route.openshift.io/v1/namespaces/openshift-monitoring/routes/thanos-querier"
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
ALERTS = "/api/v1/alerts"
PREFIX = "failed to get alerts from Thanos: "
WHERE = "the openshift-monitoring/thanos-querier Route"
FIRING = {"data": {"alerts": [{"labels": {"alertname": "Bad"}, "state": "firing", "activeAt": "2026-01-01T00:00:00Z"}]}}
BAD = Alert(labels={"alertname": "Bad"}, annotations={}, state="firing", active_at=datetime(2026, 1, 1, tzinfo=UTC))


@dataclass
class Cluster:
    """An API server and its Thanos behind one address; `answers` are status and body by path, `asked` the tokens."""

    port: int
    kubeconfig: Path
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def has_route(self, *hosts: str | None) -> None:
        """The route is admitted for these hosts; for None it is not yet."""
        ingress = [{"host": host} if host else {} for host in hosts]
        self.answers[ROUTE] = (200, json.dumps({"status": {"ingress": ingress}}).encode())

    def found(self) -> tuple[Alert, ...] | Unreadable:
        """What the command finds."""
        with SyncClient(config.load(str(self.kubeconfig))) as client:
            return thanos.alerts(client, NOW)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Trusted by its kubeconfig, whose user has a token."""
    ca = new_ca(NOW)
    pair = issue_server(ca, NOW)
    for name, content in (("crt", pair.cert), ("key", pair.key), ("ca", ca.cert)):
        (tmp_path / name).write_bytes(content)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = made.answers.get(self.path, (404, b'{"kind": "Status", "message": "no such route"}'))
            made.asked.append((self.path, self.headers.get("Authorization", "")))
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        made = Cluster(server.server_address[1], tmp_path / "config")
        write(made.kubeconfig, f"https://127.0.0.1:{made.port}", {"token": "t0"})
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def write(file: Path, server: str, user: dict[str, str]) -> None:
    """A kubeconfig of that user, which trusts the authority next to it."""
    cluster = {"server": server, "certificate-authority": str(file.parent / "ca")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(yaml.safe_dump(document))


def test_alerts_are_asked_with_the_users_token(cluster: Cluster) -> None:
    """At the route's host, which the kubeconfig's authority vouches for."""
    cluster.has_route(f"127.0.0.1:{cluster.port}")
    cluster.answers[ALERTS] = (200, json.dumps(FIRING).encode())
    assert cluster.found() == (BAD,)
    assert cluster.asked == [(ROUTE, "Bearer t0"), (ALERTS, "Bearer t0")]


def test_the_next_host_is_asked_where_one_does_not_answer(cluster: Cluster) -> None:
    """A host that is not there yet, one that refuses, one that answers."""
    cluster.has_route(None, "127.0.0.1:1", f"127.0.0.1:{cluster.port}")
    cluster.answers[ALERTS] = (200, json.dumps(FIRING).encode())
    assert cluster.found() == (BAD,)


def test_a_user_without_a_token_is_not_known_to_thanos(cluster: Cluster) -> None:
    """A certificate is for the API server alone: nobody is asked."""
    write(cluster.kubeconfig, f"https://127.0.0.1:{cluster.port}", {"username": "u", "password": "p"})
    assert cluster.found() == Unreadable("no token is currently in use for this session")
    assert cluster.asked == []


def test_without_a_route_the_servers_words_are_told(cluster: Cluster) -> None:
    """Its own, not a code."""
    found = cluster.found()
    assert isinstance(found, Unreadable)
    assert found.why == PREFIX + "no such route"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param((403, b"no"), "GET status code=403", id="a refusal"),
        pytest.param((200, b"<html>"), "JSON is malformed", id="a page of something else"),
        pytest.param((200, b'{"status": "error", "error": "busy"}'), "busy", id="an error"),
        pytest.param(
            (200, b" " * ((16 << 20) + 1)), "the answer is longer than 16777216 bytes", id="more than is read"
        ),
    ],
)
def test_an_answer_that_holds_no_alerts(cluster: Cluster, answer: tuple[int, bytes], why: str) -> None:
    """With the host that gave it."""
    host = f"127.0.0.1:{cluster.port}"
    cluster.has_route(host)
    cluster.answers[ALERTS] = answer
    found = cluster.found()
    assert isinstance(found, Unreadable)
    assert found.why.startswith(f"{PREFIX}unable to get {ALERTS} from URI in {WHERE}: {host}->")
    assert why in found.why


def test_the_longest_answer_that_is_read(cluster: Cluster) -> None:
    """One byte less than too much."""
    cluster.has_route(f"127.0.0.1:{cluster.port}")
    cluster.answers[ALERTS] = (200, json.dumps(FIRING).encode().ljust(16 << 20))
    assert cluster.found() == (BAD,)


def test_alerts_decide_what_is_recommended(cluster: Cluster) -> None:
    """Each with its labels, its state and its words; one that is only pending says nothing yet."""
    alerts = [
        {
            "labels": {"alertname": name, "severity": "critical"},
            "annotations": {"summary": "It is bad", "description": "Very."},
            "state": state,
            "activeAt": "2026-01-01T00:00:00Z",
        }
        for name, state in (("Bad", "firing"), ("Soon", "pending"))
    ]
    version = {"metadata": {"name": "version"}}
    cluster.has_route(f"127.0.0.1:{cluster.port}")
    cluster.answers[VERSION] = (200, json.dumps(version).encode())
    cluster.answers[ALERTS] = (200, json.dumps({"data": {"alerts": alerts}}).encode())
    found = recommend_input.read(
        Connection(str(cluster.kubeconfig)), dump=None, mock=None, reject_bad_flags=lambda: None
    )
    assert (found.cluster, found.problem, found.config_maps) == (version, "", ())
    (bad,) = [check for check in found.checks if check.name]
    assert (bad.name, bad.condition.status, bad.condition.reason) == ("Bad", "False", "Alert:firing")
    assert bad.condition.message.startswith("critical alert Bad firing, ")
    assert "It is bad. The alert description is: Very. " in bad.condition.message


def test_an_answer_that_is_not_read_to_its_end_is_closed(cluster: Cluster) -> None:
    """Its connection is given back at once, and not whenever memory is."""
    cluster.has_route(f"127.0.0.1:{cluster.port}")
    cluster.answers[ALERTS] = (200, b" " * ((16 << 20) + 2))
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", ResourceWarning)
        assert isinstance(cluster.found(), Unreadable)
        gc.collect()
    assert [str(each.message) for each in shown] == []


def test_each_host_is_told_where_none_answers(cluster: Cluster) -> None:
    """How many, and why not."""
    cluster.has_route("127.0.0.1:1", "127.0.0.1:2")
    found = cluster.found()
    assert isinstance(found, Unreadable)
    assert found.why.startswith(f"{PREFIX}unable to get {ALERTS} from any of 2 URIs in {WHERE}: [127.0.0.1:1->")
    assert ", 127.0.0.1:2->" in found.why


def test_whom_nobody_vouches_for_gets_no_token(cluster: Cluster, tmp_path: Path) -> None:
    """A host of the route whose certificate is another's."""
    other = new_ca(NOW)
    (tmp_path / "ca").write_bytes(other.cert)
    cluster.has_route(f"127.0.0.1:{cluster.port}")
    found = cluster.found()
    assert isinstance(found, Unreadable)
    assert cluster.asked == []
