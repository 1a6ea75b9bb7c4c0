"""What answers Services on a real kube-apiserver: admission and conversion webhooks, and an aggregated API.

A plane has neither pods nor the network of Services. So the server reaches what is in the cluster through a proxy (its
egress selector): whoever is asked at `PORT` admits, converts and serves everything, and nobody is at another port.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.controlplane.kubelet import Kubelet

from kubesandbox.apiserver.access import certs

PORT = 9443


class Backends(Kubelet):
    """In the place of a plane's kubelet; `services` are the names in its certificate, such as `guard.policies.svc`."""

    def __init__(self, data: Path, services: Sequence[str], now: datetime) -> None:
        super().__init__(data, PORT)
        self._pki = data / "pki"
        self._services = services
        self._now = now

    def answering(self) -> ThreadingHTTPServer:
        """What connections to the port get, by a certificate of the plane's own authority."""
        ca = certs.KeyPair((self._pki / "ca.crt").read_bytes(), (self._pki / "ca.key").read_bytes())
        pair = certs.issue_server(ca, self._now, services=self._services)
        file = self._pki / "backends.pem"
        certs.write_private(file, pair.cert + pair.key)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(file)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        return server


class _Answers(BaseHTTPRequestHandler):
    """Admits each object, converts to whatever is wanted, and serves an API without resources."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = review.pop("request")
        answer: dict[str, Any] = {"uid": asked["uid"]}
        if review["kind"] == "ConversionReview":
            wanted = asked["desiredAPIVersion"]
            answer["convertedObjects"] = [{**each, "apiVersion": wanted} for each in asked["objects"]]
            answer["result"] = {"status": "Success"}
        else:
            answer["allowed"] = True
        self._answer({**review, "response": answer})

    def do_GET(self) -> None:
        group_version = "/".join(self.path.split("?")[0].split("/")[2:4])
        self._answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": []})

    def _answer(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing: a test prints what is wrong."""
