"""Logs on a real kube-apiserver: it asks a node's kubelet for them, and here is one, out of the node agent's files.

The nodes of a scenario are at addresses that are nowhere. So the server reaches what is in the cluster through a proxy
(its egress selector): a connection to any node's kubelet ends here, and every other one where it was meant to.
"""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

# Where a kubelet listens whose node does not say otherwise.
_PORT = 10250


class Kubelet:
    """`start` before the server, whose `--egress-selector-config-file` is `config`; `stop` after it."""

    def __init__(self, data: Path, port: int = _PORT) -> None:
        self._data = data
        self._port = port
        self._socket = data / "egress.sock"
        self._servers: list[socketserver.BaseServer] = []

    @property
    def config(self) -> Path:
        """The server's configuration."""
        return self._data / "egress.json"

    def start(self) -> None:
        """Listen."""
        answering = self.answering()
        self._serve(answering)
        proxy = type("Proxy", (_Proxy,), {"answering": answering.server_address, "port": self._port})
        self._serve(socketserver.ThreadingUnixStreamServer(str(self._socket), proxy))
        transport = {"uds": {"udsName": str(self._socket)}}
        selection = {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}
        config = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [selection],
        }
        self.config.write_text(json.dumps(config))

    def answering(self) -> ThreadingHTTPServer:
        """Answers connections to the port; the certificate is the server's own, because nobody verifies a kubelet's."""
        logs = ThreadingHTTPServer(("127.0.0.1", 0), type("Logs", (_Logs,), {"pods": self._data / "pods"}))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._data / "pki" / "server.crt", self._data / "pki" / "server.key")
        logs.socket = tls.wrap_socket(logs.socket, server_side=True)
        return logs

    def stop(self) -> None:
        """Listen no more."""
        while self._servers:
            server = self._servers.pop()
            server.shutdown()
            server.server_close()

    def _serve(self, server: Any) -> None:
        server.daemon_threads = True
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()


class _Logs(BaseHTTPRequestHandler):
    """`GET /containerLogs/NAMESPACE/POD/CONTAINER`: what is there; `follow` ends with it."""

    pods: ClassVar[Path]

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        parts = [unquote(part) for part in address.path.split("/")]
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        found = self._log(*parts[2:]) if parts[1:2] == ["containerLogs"] and len(parts) == 5 else None
        data = _cut(found.read_bytes(), query) if found else b"no such log"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _log(self, namespace: str, pod: str, container: str) -> Path | None:
        logs = self.pods.glob(f"{namespace}_{pod}_*/{container}.log")
        return max(logs, key=lambda log: log.stat().st_mtime, default=None)

    def log_message(self, *_: Any) -> None:
        """Nothing: a test prints what is wrong."""


def _cut(data: bytes, query: dict[str, str]) -> bytes:
    if "tailLines" in query:
        lines = data.splitlines(keepends=True)
        data = b"".join(lines[max(0, len(lines) - int(query["tailLines"])) :])
    return data[: int(query["limitBytes"])] if "limitBytes" in query else data


class _Proxy(socketserver.StreamRequestHandler):
    """`CONNECT HOST:PORT`, and then whatever both sides say."""

    answering: ClassVar[tuple[str, int]]
    port: ClassVar[int]
    rbufsize = 0

    def handle(self) -> None:
        _, _, address = self.rfile.readline().partition(b" ")
        while self.rfile.readline().strip():
            pass
        host, _, port = address.split()[0].decode().rpartition(":")
        goal = self.answering if int(port) == self.port else (host.strip("[]"), int(port))
        try:
            other = socket.create_connection(goal)
        except OSError as error:
            self.wfile.write(f"HTTP/1.1 502 {error}\r\n\r\n".encode())
            return
        with other:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_pump, args=(other, self.request), daemon=True)
            back.start()
            _pump(self.request, other)
            back.join()


def _pump(source: socket.socket, goal: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            goal.sendall(data)
    with suppress(OSError):
        goal.shutdown(socket.SHUT_WR)
