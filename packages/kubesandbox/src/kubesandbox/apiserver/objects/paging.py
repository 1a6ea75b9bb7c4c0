"""Continue tokens: the position and revision at which a list goes on. Opaque to clients, validated like any input."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import orjson

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.go_syntax import json_error

JSON = dict[str, Any]

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)

_VERSION = "meta.k8s.io/v1"
_BASE64 = re.compile(r"[A-Za-z0-9_-]*")


def page_token(rv: int, key: str) -> str:
    """Returns the token of the page after `key`, in a list at revision `rv`."""
    text = orjson.dumps({"v": _VERSION, "rv": rv, "start": f"{key}\u0000"})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def read_token(token: str) -> tuple[int, str]:
    """Returns revision and last key of a token. Raises ApiError 400."""
    try:
        # Go's tokens are base64url without padding.
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        at = len(token) - len(_BASE64.sub("", token, count=1))
        raise _invalid_token(f"illegal base64 data at input byte {at}") from None
    value = _parse_token(text)
    if value.get("v") != _VERSION:
        raise _invalid_token(f"server does not recognize this encoded version {value.get('v') or ''}")
    if not isinstance(value.get("rv"), int) or not value["rv"]:
        raise _invalid_token(f"incorrect encoded start resourceVersion (version {_VERSION})")
    start = value.get("start")
    if not isinstance(start, str) or not start:
        raise _invalid_token(f"encoded start key empty (version {_VERSION})")
    return value["rv"], start.rstrip("\u0000")


def _parse_token(text: bytes) -> JSON:
    """Returns the content of a decoded continue token. Raises ApiError (400) if it is not JSON."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _invalid_token(json_error(text) or str(error)) from None
    return value if isinstance(value, dict) else {}


def _invalid_token(why: str) -> status_errors.ApiError:
    return status_errors.bad_request(f"invalid continue token: continue key is not valid: {why}")
