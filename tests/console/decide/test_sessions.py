"""Cookies of sessions: ours are read until they are over, and nobody else's."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runup.console.decide.sessions import LASTS, cookie_of, session_of

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
KEY, OTHER = b"k" * 32, b"o" * 32


@given(st.text(max_size=200))
def test_what_is_written_is_read(user: str) -> None:
    """Whatever a user is called; and the cookie has only characters that a cookie may have."""
    user = user.encode("utf-8", "ignore").decode()
    cookie = cookie_of(user, NOW, KEY)
    session = session_of(cookie, NOW + LASTS - timedelta(seconds=1), KEY)
    assert session is not None
    assert session.user == user
    assert cookie.isascii()
    assert not set(cookie) & set(' ",;\\')


def _longer(cookie: str) -> str:
    body, _, signature = cookie.partition(".")
    whole = base64.urlsafe_b64decode(body).replace(b'"user":"ann"', b'"user":"bob"')
    return f"{base64.urlsafe_b64encode(whole).decode()}.{signature}"


@pytest.mark.parametrize(
    ("change", "after", "key"),
    [
        pytest.param(lambda cookie: cookie, LASTS, KEY, id="its hour is over"),
        pytest.param(lambda cookie: cookie, timedelta(0), OTHER, id="of another server"),
        pytest.param(_longer, timedelta(0), KEY, id="another user"),
        pytest.param(lambda cookie: cookie.partition(".")[0], timedelta(0), KEY, id="without a signature"),
        pytest.param(lambda cookie: f"{cookie.partition('.')[0]}.", timedelta(0), KEY, id="an empty signature"),
        pytest.param(lambda cookie: f".{cookie.partition('.')[2]}", timedelta(0), KEY, id="a signature alone"),
        pytest.param(lambda cookie: f"{cookie}\u00e9", timedelta(0), KEY, id="not ASCII"),
        pytest.param(lambda _: "", timedelta(0), KEY, id="nothing"),
        pytest.param(lambda _: "a" * 10_000 + ".b", timedelta(0), KEY, id="long"),
    ],
)
def test_whose_cookie_is_not_read(change: Callable[[str], str], after: timedelta, key: bytes) -> None:
    """None of these is a session."""
    assert session_of(cookie_of("ann", NOW, KEY), NOW, KEY) is not None
    assert session_of(change(cookie_of("ann", NOW, KEY)), NOW + after, key) is None
