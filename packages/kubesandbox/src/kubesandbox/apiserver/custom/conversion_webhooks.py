"""The client of conversion webhooks: the review sent, the address and trust, and the checks of the answer.

In: objects, and the desired version. Out: the objects in that version, each with its own metadata except labels and
annotations. Words and checks follow apiextensions-apiserver (conversion/webhook_converter.go). A Service of the cluster
is reached through the pods that it selects, on this machine: the sandbox has no Service network.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from kubekit.http.tls import client_context
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.store import Store

JSON = dict[str, Any]
GROUP = "apiextensions.k8s.io"
_TIMEOUT_S = 30
_CHANGEABLE_METADATA = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """The address of a webhook: `shown_url` is the URL in errors.

    `certificate_name` is the name in its certificate, "" if that is the URL's host.
    """

    url: str
    shown_url: str
    certificate_name: str
    tls: ssl.SSLContext


class _ConversionFailed(Exception):
    """The reason why the webhook did not convert."""


class ConversionWebhooks:
    """The client of conversion webhooks; one instance for the whole server."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def convert_objects(self, kind: Kind, objects: Sequence[JSON], version: str) -> list[JSON]:
        """Returns `objects` in `version`. Raises ApiError 500 with the words of a real server."""
        first = objects[0]
        group_kind = f"conversion webhook for {first['apiVersion']}, Kind={first['kind']}"
        webhook = kind.crd["spec"]["conversion"]["webhook"] if kind.crd else {}
        # The first version in the webhook's order of preference that the server knows.
        known = (v for v in webhook.get("conversionReviewVersions") or () if v in ("v1", "v1beta1"))
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{GROUP}/{next(known, 'v1')}",
            "request": {"uid": str(uuid.uuid4()), "desiredAPIVersion": version, "objects": list(objects)},
        }
        try:
            answer = await _post_review(self._address_of(webhook.get("clientConfig") or {}), review)
            converted = _converted_objects(review, answer)
        except _ConversionFailed as error:
            raise ApiError(500, "", f"{group_kind} failed: {error}") from None
        if len(converted) != len(objects):
            raise ApiError(500, "", f"{group_kind} returned {len(converted)} objects, expected {len(objects)}")
        try:
            return [_check_converted(*pair, version) for pair in zip(objects, converted, strict=True)]
        except _ConversionFailed as error:
            raise ApiError(500, "", f"{group_kind} returned {error}") from None

    def _address_of(self, client: JSON) -> WebhookAddress:
        """Returns the address of a `clientConfig`. Raises _ConversionFailed for a Service without ready pods."""
        try:
            # Base64 of PEM; without any, the system's authorities are trusted.
            pem = base64.b64decode(client.get("caBundle") or "").decode().strip()
            context = client_context(pem)
        except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
            raise _ConversionFailed(f"unable to load root certificates: {error}") from error
        service = client.get("service")
        if not service:
            url = f"{client.get('url', '')}?timeout={_TIMEOUT_S}s"
            return WebhookAddress(url, url, "", context)
        name = f"{service['name']}.{service['namespace']}.svc"
        port, path = service.get("port") or 443, (service.get("path") or "").lstrip("/")
        shown_url = f"https://{name}:{port}/{path}?timeout={_TIMEOUT_S}s"
        try:
            host, at = _find_backend(self._store, service["namespace"], service["name"], port)
        except _ConversionFailed as error:
            raise _ConversionFailed(f'Post "{shown_url}": {error}') from None
        return WebhookAddress(f"https://{host}:{at}/{path}?timeout={_TIMEOUT_S}s", shown_url, name, context)


async def _post_review(address: WebhookAddress, review: JSON) -> Any:
    """Posts a review to the webhook and returns the JSON of its answer.

    Raises _ConversionFailed with the words of Go's client.
    """
    post = f'Post "{address.shown_url}": '
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S)) as session,
            session.post(
                address.url,
                data=orjson.dumps(review),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                ssl=address.tls,
                server_hostname=address.certificate_name or None,
                allow_redirects=False,
            ) as response,
        ):
            body = await response.read()
            if response.status >= 300:
                raise _ConversionFailed('an error on the server ("unknown") has prevented the request from succeeding')
    except aiohttp.ClientConnectorCertificateError as error:
        # In the words of Go's crypto/x509.
        text = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        if "self-signed" in text or "unable to get local issuer" in text:
            text = "certificate signed by unknown authority"
        raise _ConversionFailed(f"{post}tls: failed to verify certificate: x509: {text}") from None
    except aiohttp.ClientConnectorError as error:
        why = os.strerror(error.os_error.errno) if error.os_error.errno else str(error)
        raise _ConversionFailed(f"{post}dial tcp {error.host}:{error.port}: connect: {why.lower()}") from None
    except TimeoutError:
        raise _ConversionFailed(f"{post}context deadline exceeded") from None
    except (aiohttp.ClientError, ValueError) as error:
        raise _ConversionFailed(f"{post}{error}") from None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _ConversionFailed(f"couldn't get version/kind; json parse error: {error}") from None


def _converted_objects(review: JSON, answer: Any) -> list[Any]:
    """Returns the converted objects of an answer. Raises _ConversionFailed."""
    review_version = review["apiVersion"]
    if not isinstance(answer, dict) or answer.get("kind") != "ConversionReview":
        kind = answer.get("kind") if isinstance(answer, dict) else answer
        raise _ConversionFailed(f'no kind "{kind}" is registered for version "{review_version}"')
    response = answer.get("response")
    if review_version.endswith("/v1") and answer.get("apiVersion") != review_version:
        expected_kind, got = f"{GROUP}/v1, Kind=ConversionReview", f"{answer.get('apiVersion')}, Kind=ConversionReview"
        raise _ConversionFailed(f"expected webhook response of {expected_kind}, got {got}")
    if not isinstance(response, dict):
        raise _ConversionFailed("no response provided")
    expected, uid = review["request"]["uid"], response.get("uid", "")
    # v1beta1 leaves the uid of a response unchecked.
    if review_version.endswith("/v1") and uid != expected:
        raise _ConversionFailed(f'expected response.uid="{expected}", got "{uid}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise _ConversionFailed(
            result.get("message") or f"response.result.status was '{result.get('status', '')}', not 'Success'"
        )
    return list(response.get("convertedObjects") or ())


def _check_converted(original: JSON, converted: Any, version: str) -> JSON:
    """Returns the converted object, its metadata as in the original except for labels and annotations.

    Raises _ConversionFailed if another kind, version, name, namespace or uid came back.
    """
    converted = converted if isinstance(converted, dict) else {}
    prefix = "invalid object at index 0: "
    for key, label, expected in (("apiVersion", "groupVersion", version), ("kind", "kind", original["kind"])):
        if converted.get(key) != expected:
            got = converted.get(key, "")
            raise _ConversionFailed(f"{prefix}invalid {label} (expected {expected}, received {got})")
    before, after = original["metadata"], converted.get("metadata")
    for key, label in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        has = after.get(key, "") if isinstance(after, dict) else ""
        if before.get(key, "") != has:
            raise _ConversionFailed(f"invalid object: must have the same {label}: {before.get(key, '')} != {has}")
    if not isinstance(after, dict):
        raise _ConversionFailed("invalid metadata: missing metadata in converted object")
    # Of metadata a webhook may change only labels and annotations; the rest is restored silently.
    metadata = {key: value for key, value in before.items() if key not in _CHANGEABLE_METADATA}
    for field in _CHANGEABLE_METADATA:
        if not (values := after.get(field)):
            continue
        if not isinstance(values, dict):
            why = f"invalid metadata.{field} of type {_go_type(values)} in converted object"
            raise _ConversionFailed(f"invalid metadata: {why}")
        for key, value in values.items():
            if not isinstance(value, str):
                why = f"metadata.{field}[{key}] must be a string, but is {_go_type(value)} in converted object"
                raise _ConversionFailed(f"invalid metadata: {why}")
        metadata[field] = values
    return {**converted, "metadata": metadata}


def _go_type(value: Any) -> str:
    """Returns the Go type that JSON of this value is decoded into."""
    go_types = {
        bool: "bool",
        int: "int64",
        float: "float64",
        str: "string",
        list: "[]interface {}",
        type(None): "<nil>",
    }
    return go_types.get(type(value), "map[string]interface {}")


# -- Pods behind a Service ---------------------------------------------------------------------------------------------


def _find_backend(store: Store, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Returns host and port of a ready pod behind a Service's port. Raises _ConversionFailed."""
    entry = store.get("services", namespace, name)
    if entry is None:
        raise _ConversionFailed(f'service "{name}" not found')
    spec = entry.load().get("spec") or {}
    selector = spec.get("selector") or {}
    targets = [each.get("targetPort") or port for each in spec.get("ports") or () if each.get("port") == port]
    if not targets:
        raise _ConversionFailed(f'no service port {port} found for service "{name}"')
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
    raise _ConversionFailed(f'no endpoints available for service "{name}"')
