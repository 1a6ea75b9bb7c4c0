"""JSON patch (RFC 6902), with errors worded as the server words them."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from runup.sandbox.apiserver.errors import ApiError, bad_request

# Kubernetes' own bound (maxJSONPatchOperations in k8s.io/apiserver).
MAX_OPERATIONS = 10_000
_NEEDS_VALUE = frozenset({"add", "replace", "test"})


def apply_json_patch(obj: Any, operations: Any) -> Any:
    """`obj` after the operations, itself unchanged; raises ApiError 400, 413 or 422."""
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
    result = copy.deepcopy(obj)
    for operation in operations:
        result = _apply_one(result, operation)
    return result


def _apply_one(obj: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise _refused()
    if operation.get("op") in _NEEDS_VALUE and "value" not in operation:
        operation = {**operation, "value": None}
    try:
        return jsonpatch.JsonPatch([operation]).apply(obj, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, KeyError, IndexError, TypeError):
        raise _refused() from None


def _refused() -> ApiError:
    # The real server does not say which operation failed either.
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", details={})
