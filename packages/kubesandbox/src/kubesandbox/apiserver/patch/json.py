"""JSON patch (RFC 6902), with errors worded as the server words them."""

from __future__ import annotations

from typing import Any

import jsonpatch

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.schema.validate import type_name
from kubesandbox.apiserver.status_errors import ApiError, bad_request

# Kubernetes' own bound (maxJSONPatchOperations in k8s.io/apiserver).
MAX_OPERATIONS = 10_000
_NEEDS_VALUE = frozenset({"add", "replace", "test"})
_ADDING = frozenset({"add", "move", "copy"})


def apply_json_patch(obj: Any, operations: Any) -> Any:
    """Returns `obj` after the operations; `obj` is not changed. Raises ApiError 400, 413 or 422."""
    if not isinstance(operations, list):
        kind = type_name(operations)
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
    result = copy_json(obj)
    for operation in operations:
        result = _apply_one(result, operation)
    return result


def _apply_one(obj: Any, operation: Any) -> Any:
    """Returns `obj` after one operation of a JSON patch (RFC 6902). Raises ApiError 422."""
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise _rejected_error()
    if operation.get("op") in _NEEDS_VALUE and "value" not in operation:
        # The server's library reads an absent value as null.
        operation = {**operation, "value": None}
    try:
        return jsonpatch.JsonPatch([_as_rfc(obj, operation)]).apply(obj, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, KeyError, IndexError, TypeError):
        raise _rejected_error() from None


def _as_rfc(obj: Any, operation: dict[str, Any]) -> dict[str, Any]:
    """Translates what the server's library accepts beyond RFC 6902: indices from the end, and a replace that adds."""
    translated = {
        **operation,
        "path": _resolve_negative_index(obj, operation["path"], adding=operation.get("op") in _ADDING),
    }
    if isinstance(operation.get("from"), str):
        translated["from"] = _resolve_negative_index(obj, operation["from"], adding=False)
    parent, _, _ = translated["path"].rpartition("/")
    if operation.get("op") == "replace" and isinstance(jsonpatch.JsonPointer(parent).resolve(obj, None), dict):
        translated["op"] = "add"
    return translated


def _resolve_negative_index(obj: Any, path: str, *, adding: bool) -> str:
    """Replaces indices from the end by real ones: `/words/-1` by `/words/2`."""
    parts = path.split("/")
    container = obj
    for at, part in enumerate(parts[1:], 1):
        if isinstance(container, list) and part.lstrip("-").isdigit() and part.startswith("-"):
            size = len(container) + (1 if adding and at == len(parts) - 1 else 0)
            parts[at] = part = str(size + int(part))
        if isinstance(container, list):
            container = container[int(part)] if part.isdigit() and int(part) < len(container) else None
        else:
            container = (
                container.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(container, dict) else None
            )
    return "/".join(parts)


def _rejected_error() -> ApiError:
    # The real server does not name the failed operation either.
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", details={})
