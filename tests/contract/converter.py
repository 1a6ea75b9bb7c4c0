"""A conversion webhook as tests need it: HTTPS on loopback, answers as it is reported, remembers what it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kubekit.kube.clock import machine_now
from kubesandbox.apiserver.access import certs

JSON = dict[str, Any]
Answer = Callable[[JSON], Any]


class Converter:
    """`answer(question)` gives the body, or a pair of status and text; it may be replaced at any time."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[JSON] = []
        self.paths: list[str] = []
        self.url = ""
        self.ca_bundle = ""
        self.certificate = ""

    def config(self, **changes: Any) -> JSON:
        """`spec.conversion` of a definition."""
        client = {"url": f"{self.url}/convert", "caBundle": self.ca_bundle, **changes}
        return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


@contextmanager
def converter(folder: Path, answer: Answer) -> Iterator[Converter]:
    """One that listens until the block ends."""
    made = Converter(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.questions.append(question["request"])
            made.paths.append(self.path.partition("?")[0])
            found = made.answer(question)
            status, body = found if isinstance(found, tuple) else (200, json.dumps(found))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    authority, _ = certs.load_or_create(folder, machine_now())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made.url, made.ca_bundle = f"https://127.0.0.1:{server.server_port}", base64.b64encode(authority.cert).decode()
    made.certificate = base64.b64encode((folder / "server.crt").read_bytes()).decode()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
