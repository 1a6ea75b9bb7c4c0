"""Decides about sessions: whose they are, when they end, and how many there are at once. Pure.

The server keeps them, so that the cookie of a session that has ended is worthless. A cookie is a random name; only its
digest is kept, with which no request can be made.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

# The right to look is asked at the login alone, so a session is short.
LASTS = timedelta(hours=1)
# Whoever started the console has all rights that it has, and opens the printed address again when this is over.
LOCAL_LASTS = timedelta(hours=12)
# Of one user, and of all: each may hold a token of some thousand bytes.
MOST_OF_ONE = 8
MOST = 1024
# Random bytes from which a cookie is made; with fewer characters it is none of ours, with more not looked at.
COOKIE_BYTES = 32
_COOKIE_CHARACTERS = 43
_MAX_USER = 1024


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A login: the user's name, when it ends, and what its forms have to send (`form_key`).

    `token` is the user's own where the console may act for them; else it is empty. `local`: it began with the printed
    address, on the same machine.
    """

    user: str
    until: datetime
    form_key: str
    token: str = ""
    local: bool = False

    def __repr__(self) -> str:
        """Returns user and end only: no key, no token."""
        return f"Session(user={self.user!r}, until={self.until.isoformat()!r})"


class Sessions(msgspec.Struct, frozen=True):
    """The sessions by the digests of their cookies, the oldest first."""

    by_digest: Mapping[str, Session] = {}

    def __repr__(self) -> str:
        """Returns how many there are."""
        return f"Sessions({len(self.by_digest)})"


def begin(user: str, form_key: str, now: datetime, *, token: str = "", local: bool = False) -> Session:
    """Returns a session that begins at `now`."""
    return Session(
        user=user[:_MAX_USER],
        until=now + (LOCAL_LASTS if local else LASTS),
        form_key=form_key,
        token=token,
        local=local,
    )


def with_session(sessions: Sessions, cookie: str, session: Session, now: datetime) -> Sessions | None:
    """Returns the sessions with one more, without those that are over; None if there is no room.

    The oldest session of the same user goes first, so that logins of one user never end those of another.
    """
    kept = dict(without_ended(sessions, now).by_digest)
    own = [digest for digest, each in kept.items() if each.user == session.user]
    for digest in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
        del kept[digest]
    if len(kept) >= MOST:
        return None
    return Sessions({**kept, _digest(cookie): session})


def without(sessions: Sessions, cookie: str) -> Sessions:
    """Returns the sessions without the one of a cookie, which is worth nothing from then on."""
    gone = _digest(cookie)
    return Sessions({digest: each for digest, each in sessions.by_digest.items() if digest != gone})


def without_ended(sessions: Sessions, now: datetime) -> Sessions:
    """Returns the sessions without those that are over: nothing of them stays in memory."""
    if all(now < each.until for each in sessions.by_digest.values()):
        return sessions
    return Sessions({digest: each for digest, each in sessions.by_digest.items() if now < each.until})


def session_of(sessions: Sessions, cookie: str, now: datetime) -> Session | None:
    """Returns the session of a cookie; None if it does not exist, or it is over."""
    if len(cookie) != _COOKIE_CHARACTERS or not cookie.isascii():
        return None
    session = sessions.by_digest.get(_digest(cookie))
    return session if session is not None and now < session.until else None


def is_form_of(session: Session, sent: object) -> bool:
    """Reports whether a form was made for this session: `sent` is the key that it sent."""
    return isinstance(sent, str) and hmac.compare_digest(sent.encode(), session.form_key.encode())


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
