"""Continue tokens: where a list goes on, and at which revision. Opaque to clients, checked like any input."""

from __future__ import annotations

import base64
from typing import cast

import orjson

from runup.sandbox.apiserver import errors

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


def token(rv: int, key: str) -> str:
    """The token of the page after `key`, in a list at revision `rv`."""
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": rv, "start": f"{key}\u0000"})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def read_token(given: str) -> tuple[int, str]:
    """Revision and last key of a token; raises ApiError 400."""
    try:
        value = orjson.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
        return int(value["rv"]), cast("str", value["start"]).rstrip("\u0000")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise errors.bad_request("continue key is not valid: invalid character in token") from None
