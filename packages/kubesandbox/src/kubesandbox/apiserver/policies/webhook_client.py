"""The client of webhooks, of conversion and of admission: the address, the trust, and the errors in Go's words.

A Service of the cluster is reached through the pods that it selects, on this machine: the sandbox has no Service
network. A Service without a selector is reached at the address of its EndpointSlices, as a real server reaches it.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import posixpath
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import aiohttp
import orjson

from kubekit.http.tls import client_context
from kubesandbox.apiserver.store import Store

JSON = dict[str, Any]
# The longest answer that is read; a real server reads any.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
# What client-go says about an answer without a Status (NewGenericServerResponse).
_STATUS_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_UNREADABLE = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


@dataclass(frozen=True, slots=True)
class _Address:
    """The address of a webhook: `shown_url` is the URL in errors.

    `certificate_name` is the name in its certificate, "" if that is the URL's host.
    """

    url: str
    shown_url: str
    certificate_name: str
    tls: ssl.SSLContext


class WebhookFailed(Exception):
    """Error raised with the reason why a webhook gave no usable answer."""


class BadAuthority(WebhookFailed):
    """Error raised for a caBundle without certificates."""


class WebhookClient:
    """The client of all webhooks; one instance for the whole server."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def post_review(self, config: JSON, review: JSON, timeout_s: int) -> Any:
        """Posts a review to the webhook of a `clientConfig` and returns the JSON of its answer.

        Raises WebhookFailed with the words of Go's client.
        """
        address = self._address_of(config, timeout_s)
        post = f'Post "{address.shown_url}": '
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as session,
                session.post(
                    address.url,
                    data=orjson.dumps(review),
                    headers={"Content-Type": "application/json", "Accept": "application/json, */*"},
                    ssl=address.tls,
                    server_hostname=address.certificate_name or None,
                    allow_redirects=False,
                ) as response,
            ):
                body = await _read_body(response)
        except aiohttp.ClientConnectorCertificateError as error:
            # In the words of Go's crypto/x509.
            text = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            if "self-signed" in text or "unable to get local issuer" in text:
                text = "certificate signed by unknown authority"
            raise WebhookFailed(f"{post}tls: failed to verify certificate: x509: {text}") from None
        except aiohttp.ClientConnectorError as error:
            why = os.strerror(error.os_error.errno) if error.os_error.errno else str(error)
            raise WebhookFailed(f"{post}dial tcp {error.host}:{error.port}: connect: {why.lower()}") from None
        except TimeoutError:
            raise WebhookFailed(f"{post}context deadline exceeded") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise WebhookFailed(f"{post}{error}") from None
        type_ = response.headers.get("Content-Type", "")
        if not 200 <= response.status < 300:
            raise WebhookFailed(_failure_text(response.status, body if type_.startswith("text/") or not type_ else b""))
        if not body:
            raise WebhookFailed(f"0-length response with status code: {response.status} and content type: {type_}")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            if not body.lstrip().startswith((b"{", b"[")):
                # Go's client reads it as YAML.
                raise WebhookFailed(_UNREADABLE) from None
            raise WebhookFailed(f"couldn't get version/kind; json parse error: {error}") from None

    def _address_of(self, config: JSON, timeout_s: int) -> _Address:
        """Returns the address of a `clientConfig`. Raises WebhookFailed for a Service without ready pods."""
        try:
            # Base64 of PEM; without any, the system's authorities are trusted.
            pem = base64.b64decode(config.get("caBundle") or "").decode().strip()
            context = _client_context(pem)
        except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
            why = "unable to load root certificates: unable to parse bytes as PEM block"
            raise BadAuthority(why) from error
        service, query = config.get("service"), f"?timeout={timeout_s}s"
        if not service:
            parts = urlsplit(config.get("url", ""))
            url = f"{parts.scheme}://{parts.netloc}{_clean_path(parts.path)}{query}"
            return _Address(url, url, "", context)
        name = f"{service['name']}.{service['namespace']}.svc"
        port, path = service.get("port") or 443, _clean_path(service.get("path") or "")
        shown_url = f"https://{name}:{port}{path}{query}"
        try:
            host, at = _find_backend(self._store, service["namespace"], service["name"], port)
        except WebhookFailed as error:
            raise WebhookFailed(f'Post "{shown_url}": {error}') from None
        return _Address(f"https://{host}:{at}{path}{query}", shown_url, name, context)


def _clean_path(path: str) -> str:
    """Returns a path as Go's client sends it: decoded, without duplicate slashes and dots, and encoded again."""
    clean = posixpath.normpath("/" + unquote(path))
    return quote("/" + clean.lstrip("/"), safe="/$&+,:;=@!*'()~")


@lru_cache(64)
def _client_context(pem: str) -> ssl.SSLContext:
    return client_context(pem)


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """Returns the body of an answer. Raises WebhookFailed if it is too long."""
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise WebhookFailed(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
    return body


def _failure_text(status: int, body: bytes) -> str:
    """Returns what client-go says about an HTTP status."""
    text = body[:2048].decode(errors="replace").strip() or "unknown"
    if status == 403:
        return text
    if status in _STATUS_TEXTS:
        return _STATUS_TEXTS[status]
    if status >= 500:
        return f"an error on the server ({json.dumps(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


# -- Pods behind a Service ---------------------------------------------------------------------------------------------


def _find_backend(store: Store, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Returns host and port of a ready pod behind a Service's port. Raises WebhookFailed."""
    entry = store.get("services", namespace, name)
    if entry is None:
        raise WebhookFailed(f'service "{name}" not found')
    spec = entry.load().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return spec["externalName"], port
    selector = spec.get("selector") or {}
    targets = [each.get("targetPort") or port for each in spec.get("ports") or () if each.get("port") == port]
    if not targets:
        raise WebhookFailed(f'no service port {port} found for service "{name}"')
    if not selector and (found := _find_endpoint(store, namespace, name)) is not None:
        return found
    for candidate in store.items("pods", namespace):
        if not selector or not selector.items() <= candidate.labels.items():
            continue
        pod, at = candidate.load(), targets[0]
        status = pod.get("status") or {}
        if not isinstance(at, int):
            containers = (pod.get("spec") or {}).get("containers") or ()
            ports = (each for container in containers for each in container.get("ports") or ())
            at = next((int(each["containerPort"]) for each in ports if each.get("name") == at), 0)
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        if at and ready and status.get("podIP") and not pod["metadata"].get("deletionTimestamp"):
            return status["podIP"], at
    raise WebhookFailed(f'no endpoints available for service "{name}"')


def _find_endpoint(store: Store, namespace: str, name: str) -> tuple[str, int] | None:
    """Returns a ready address and the first port of a Service's EndpointSlices, or None."""
    for entry in store.items("endpointslices.discovery.k8s.io", namespace):
        if entry.labels.get("kubernetes.io/service-name") != name:
            continue
        endpoints = entry.load()
        for endpoint in endpoints.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                for port in endpoints.get("ports") or ():
                    return endpoint["addresses"][0], int(port["port"])
    return None
