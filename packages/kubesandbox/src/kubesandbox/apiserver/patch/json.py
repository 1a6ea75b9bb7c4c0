"""JSON patch (RFC 6902), with errors worded as the server words them."""

from __future__ import annotations

import re
from typing import Any

import orjson

from kubesandbox.apiserver.json_copy import copy_json
from kubesandbox.apiserver.schema.validate import type_name
from kubesandbox.apiserver.status_errors import ApiError, bad_request

# Kubernetes' own bound (maxJSONPatchOperations in k8s.io/apiserver).
MAX_OPERATIONS = 10_000
# What all copies of a patch may add, in bytes of JSON (JSONPatchMaxCopyBytes in k8s.io/apiserver).
MAX_COPIED_BYTES = 3 * 1024 * 1024
_INDEX = re.compile("-?(?:0|[1-9][0-9]{0,8})")
_POINTER = re.compile("(?:/(?:[^~/]|~[01])*)*")


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
    # Split at its slashes, every pointer begins with an empty text: that is the key of the whole object here.
    root, copied = {"": copy_json(obj)}, 0
    try:
        for operation in operations:
            copied += _apply_one(root, operation)
            if copied > MAX_COPIED_BYTES:
                raise LookupError
    except LookupError:
        # The real server does not name the failed operation either.
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message, details={}) from None
    return root[""]


def _apply_one(root: dict[str, Any], operation: Any) -> int:
    """Applies one operation; returns the bytes that it copied.

    Raises LookupError if the operation is invalid or does not fit the object.
    """
    copied = 0
    match operation:
        # The library reads an absent value as null.
        case {"op": "add", "path": str(path)}:
            _add(root, path, copy_json(operation.get("value")))
        case {"op": "remove", "path": str(path)} if path:
            container, key = _locate(root, path)
            del container[key]
        case {"op": "replace", "path": ""} if not isinstance(operation.get("value"), dict | list):
            # The library's error about a whole object of another type is lost (replace of evanphx/json-patch v4).
            pass
        case {"op": "replace", "path": str(path)}:
            container, key = _locate(root, path)
            # In an object, the library's `replace` adds what is absent.
            container[key] = copy_json(operation.get("value"))
        case {"op": "move", "from": str(source), "path": str(path)} if source and not path.startswith(f"{source}/"):
            container, key = _locate(root, source)
            value = container[key]
            if path != source:
                del container[key]
                _add(root, path, value)
        case {"op": "copy", "from": str(source), "path": str(path)} if source:
            container, key = _locate(root, source)
            copied = len(orjson.dumps(container[key]))
            _add(root, path, copy_json(container[key]))
        case {"op": "test", "path": str(path)}:
            container, key = _locate(root, path)
            # Encoded only if it is as large as the operation's own value.
            if container[key] != (value := operation.get("value")) or _encode(container[key]) != _encode(value):
                raise LookupError
        case _:
            raise LookupError
    return copied


def _add(root: dict[str, Any], path: str, value: Any) -> None:
    if not path:  # the library has no container of the whole object
        raise LookupError
    container, key = _locate(root, path, adding=True)
    if isinstance(container, list):
        container.insert(key, value)
    else:
        container[key] = value


def _locate(root: dict[str, Any], pointer: str, *, adding: bool = False) -> tuple[Any, Any]:
    """Returns the object or list that a JSON pointer leads into, and the key or index there. Raises LookupError.

    The key need not exist. With `adding`, the index may be that behind the last item.
    """
    if not _POINTER.fullmatch(pointer):
        raise LookupError
    *parents, last = pointer.split("/")
    container: Any = root
    for part in parents:
        container = container[_key(container, part, adding=False)]
    return container, _key(container, last, adding=adding)


def _key(container: Any, part: str, *, adding: bool) -> str | int:
    """Returns the key of an object or the index of a list that a part of a pointer names. Raises LookupError."""
    if isinstance(container, dict):
        return part.replace("~1", "/").replace("~0", "~")
    if isinstance(container, list):
        size = len(container) + adding
        if part == "-" and adding:
            return size - 1
        if _INDEX.fullmatch(part):
            # Beyond RFC 6902, the library counts negative indices from the end.
            index = int(part) + (size if part.startswith("-") else 0)
            if 0 <= index < size:
                return index
    raise LookupError


def _encode(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
