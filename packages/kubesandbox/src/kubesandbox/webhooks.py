"""Webhooks that a test serves on this machine, installed as envtest installs them.

In: objects with webhooks, such as those of config/webhook. Out: the objects with `url` and `caBundle` instead of a
Service, a host, a port and certificates for the server of the webhooks, and that server for plain functions.
"""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.kube.clock import machine_now
from kubesandbox.apiserver.access import certs

JSON = dict[str, Any]
Handler = Callable[[JSON], JSON]
"""Takes the `request` of an AdmissionReview or ConversionReview and returns its `response`, without the uid."""
_CONFIGURATIONS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServing:
    """The address at which webhooks are served: `host`, `port`, and `cert_dir` with tls.crt, tls.key and ca.crt, as
    envtest has it."""

    host: str
    port: int
    cert_dir: Path

    @property
    def ca_bundle(self) -> str:
        """The certificate authority in base64, as in `caBundle`."""
        return b64encode((self.cert_dir / "ca.crt").read_bytes()).decode()

    @contextmanager
    def serve(self, handlers: Mapping[str, Handler]) -> Iterator[None]:
        """Serves functions by path while the block runs, such as `{"/mutate-ships": mutate}`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert_dir / "tls.crt", self.cert_dir / "tls.key")
        with http.server.ThreadingHTTPServer((self.host, self.port), _handler_class(handlers)) as server:
            server.socket = context.wrap_socket(server.socket, server_side=True)
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()


def prepare(folder: Path, host: str = "127.0.0.1", port: int = 0) -> WebhookServing:
    """Writes certificates for `host` to `folder`; port 0 takes a free one."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = certs.new_ca(machine_now())
    serving = certs.issue_server(authority, machine_now(), addresses=() if host in certs.LOOPBACK else (host,))
    (folder / "ca.crt").write_bytes(authority.cert)
    (folder / "tls.crt").write_bytes(serving.cert)
    certs.write_private(folder / "tls.key", serving.key)
    if not port:
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
    return WebhookServing(host=host, port=port, cert_dir=folder)


def with_serving(obj: JSON, serving: WebhookServing) -> JSON:
    """Returns the object with the address and the authority of `serving` in its webhooks; other objects as they are."""
    if obj.get("kind") in _CONFIGURATIONS:
        webhooks = obj.get("webhooks") or ()
        return {**obj, "webhooks": [_with_client_config(webhook, serving) for webhook in webhooks]}
    conversion = (obj.get("spec") or {}).get("conversion") or {}
    if obj.get("kind") == "CustomResourceDefinition" and conversion.get("strategy") == "Webhook":
        webhook = _with_client_config(conversion.get("webhook") or {}, serving)
        return {**obj, "spec": {**obj["spec"], "conversion": {**conversion, "webhook": webhook}}}
    return obj


def _with_client_config(webhook: JSON, serving: WebhookServing) -> JSON:
    """Replaces a Service by its path on this machine (envtest/webhook.go, updateClientConfig)."""
    config = dict(webhook.get("clientConfig") or {})
    service = config.pop("service", None)
    if service is not None:
        path = str(service.get("path") or "").lstrip("/")
        config["url"] = f"https://{serving.host}:{serving.port}/{path}"
    return {**webhook, "clientConfig": {**config, "caBundle": serving.ca_bundle}}


def _handler_class(handlers: Mapping[str, Handler]) -> type[http.server.BaseHTTPRequestHandler]:
    class Reviews(http.server.BaseHTTPRequestHandler):
        """Answers reviews by the function of their path."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answers a review; 404 for a path without a function, 500 with the error of one that raises."""
            review = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            handler = handlers.get(self.path.partition("?")[0])
            if handler is None:
                self._answer(404, {"message": f"no webhook is served at {self.path}"})
                return
            try:
                response = {"uid": review["request"]["uid"], **handler(review["request"])}
            except Exception as error:  # noqa: BLE001 - the API server reports the error of a webhook
                self._answer(500, {"message": f"{type(error).__name__}: {error}"})
                return
            self._answer(200, {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

        def _answer(self, code: int, content: JSON) -> None:
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Writes nothing."""

    return Reviews
