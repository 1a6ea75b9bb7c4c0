"""Writes and reads the session cookie: who logged in and until when, signed with the server's key. Pure."""

from __future__ import annotations

import base64
import binascii
import hmac
from datetime import UTC, datetime, timedelta

import msgspec

# The right to look is asked at the login alone, so a session is short.
LASTS = timedelta(hours=1)
# Browsers keep 4096 bytes of a cookie.
_MAX_COOKIE = 3072
_MAX_USER = 1024


class Session(msgspec.Struct, frozen=True):
    """A login: the user's name, and the second (since 1970) at which it ends."""

    user: str
    until_s: int


def cookie_of(user: str, now: datetime, key: bytes) -> str:
    """Returns the value of the cookie for a login at `now`."""
    body = _text(msgspec.json.encode(Session(user[:_MAX_USER], int((now + LASTS).timestamp()))))
    return f"{body}.{_signature(body, key)}"


def session_of(cookie: str, now: datetime, key: bytes) -> Session | None:
    """Returns the session in a cookie; None if it is not ours, was changed, or is over."""
    body, dot, signature = cookie.partition(".")
    if not dot or len(cookie) > _MAX_COOKIE or not cookie.isascii():
        return None
    if not hmac.compare_digest(signature, _signature(body, key)):
        return None
    try:
        session = msgspec.json.decode(base64.urlsafe_b64decode(body), type=Session)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return session if now < datetime.fromtimestamp(session.until_s, UTC) else None


def _signature(body: str, key: bytes) -> str:
    return _text(hmac.digest(key, body.encode(), "sha256"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
