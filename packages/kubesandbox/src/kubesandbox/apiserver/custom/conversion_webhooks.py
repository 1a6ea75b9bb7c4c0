"""Conversion webhooks: the review sent, and the checks of the answer.

In: objects, and the desired version. Out: the objects in that version, each with its own metadata except labels and
annotations. Words and checks follow apiextensions-apiserver (conversion/webhook_converter.go).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from kubesandbox.apiserver.policies.webhook_client import WebhookClient, WebhookFailed
from kubesandbox.apiserver.served_kinds import Kind
from kubesandbox.apiserver.status_errors import ApiError

JSON = dict[str, Any]
GROUP = "apiextensions.k8s.io"
_TIMEOUT_S = 30
_CHANGEABLE_METADATA = ("labels", "annotations")


class ConversionWebhooks:
    """The client of conversion webhooks; one instance for the whole server."""

    def __init__(self, client: WebhookClient) -> None:
        self._client = client

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
            answer = await self._client.post_review(webhook.get("clientConfig") or {}, review, _TIMEOUT_S)
            converted = _converted_objects(review, answer)
        except WebhookFailed as error:
            raise ApiError(500, "", f"{group_kind} failed: {error}") from None
        if len(converted) != len(objects):
            raise ApiError(500, "", f"{group_kind} returned {len(converted)} objects, expected {len(objects)}")
        try:
            return [_check_converted(*pair, version) for pair in zip(objects, converted, strict=True)]
        except WebhookFailed as error:
            raise ApiError(500, "", f"{group_kind} returned {error}") from None


def _converted_objects(review: JSON, answer: Any) -> list[Any]:
    """Returns the converted objects of an answer. Raises WebhookFailed."""
    review_version = review["apiVersion"]
    if not isinstance(answer, dict) or answer.get("kind") != "ConversionReview":
        kind = answer.get("kind") if isinstance(answer, dict) else answer
        raise WebhookFailed(f'no kind "{kind}" is registered for version "{review_version}"')
    response = answer.get("response")
    if review_version.endswith("/v1") and answer.get("apiVersion") != review_version:
        expected_kind, got = f"{GROUP}/v1, Kind=ConversionReview", f"{answer.get('apiVersion')}, Kind=ConversionReview"
        raise WebhookFailed(f"expected webhook response of {expected_kind}, got {got}")
    if not isinstance(response, dict):
        raise WebhookFailed("no response provided")
    expected, uid = review["request"]["uid"], response.get("uid", "")
    # v1beta1 leaves the uid of a response unchecked.
    if review_version.endswith("/v1") and uid != expected:
        raise WebhookFailed(f'expected response.uid="{expected}", got "{uid}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise WebhookFailed(
            result.get("message") or f"response.result.status was '{result.get('status', '')}', not 'Success'"
        )
    return list(response.get("convertedObjects") or ())


def _check_converted(original: JSON, converted: Any, version: str) -> JSON:
    """Returns the converted object, its metadata as in the original except for labels and annotations.

    Raises WebhookFailed if another kind, version, name, namespace or uid came back.
    """
    converted = converted if isinstance(converted, dict) else {}
    prefix = "invalid object at index 0: "
    for key, label, expected in (("apiVersion", "groupVersion", version), ("kind", "kind", original["kind"])):
        if converted.get(key) != expected:
            got = converted.get(key, "")
            raise WebhookFailed(f"{prefix}invalid {label} (expected {expected}, received {got})")
    before, after = original["metadata"], converted.get("metadata")
    for key, label in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        has = after.get(key, "") if isinstance(after, dict) else ""
        if before.get(key, "") != has:
            raise WebhookFailed(f"invalid object: must have the same {label}: {before.get(key, '')} != {has}")
    if not isinstance(after, dict):
        raise WebhookFailed("invalid metadata: missing metadata in converted object")
    # Of metadata a webhook may change only labels and annotations; the rest is restored silently.
    metadata = {key: value for key, value in before.items() if key not in _CHANGEABLE_METADATA}
    for field in _CHANGEABLE_METADATA:
        if not (values := after.get(field)):
            continue
        if not isinstance(values, dict):
            why = f"invalid metadata.{field} of type {_go_type(values)} in converted object"
            raise WebhookFailed(f"invalid metadata: {why}")
        for key, value in values.items():
            if not isinstance(value, str):
                why = f"metadata.{field}[{key}] must be a string, but is {_go_type(value)} in converted object"
                raise WebhookFailed(f"invalid metadata: {why}")
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
