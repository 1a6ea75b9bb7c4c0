"""Sessions: their cookies are known until they end, nobody else's are, and nobody's logins end those of others."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runup.console.decide import sessions
from runup.console.decide.sessions import COOKIE_BYTES, LASTS, LOCAL_LASTS, MOST_OF_ONE, Sessions

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
COOKIE, OTHER = secrets.token_urlsafe(COOKIE_BYTES), secrets.token_urlsafe(COOKIE_BYTES)
TOKEN = "t0k3n"
ANN = sessions.begin("ann", "form", NOW, token=TOKEN)


NONE = Sessions()


def _with(*users: str, of: Sessions = NONE) -> tuple[Sessions, list[str]]:
    """Sessions of these users, and their cookies."""
    cookies = []
    for user in users:
        cookies.append(secrets.token_urlsafe(COOKIE_BYTES))
        more = sessions.with_session(of, cookies[-1], sessions.begin(user, "form", NOW), NOW)
        assert more is not None
        of = more
    return of, cookies


ONE = sessions.with_session(NONE, COOKIE, ANN, NOW)
assert ONE is not None


@pytest.mark.slow
@given(st.text(max_size=200))
def test_whose_session_it_is(user: str) -> None:
    """Whatever a user is called."""
    all_, (cookie,) = _with(user)
    session = sessions.session_of(all_, cookie, NOW + LASTS - timedelta(seconds=1))
    assert session is not None
    assert session.user == user


@pytest.mark.parametrize(
    ("cookie", "after"),
    [
        pytest.param(COOKIE, LASTS, id="its hour is over"),
        pytest.param(OTHER, timedelta(0), id="another one"),
        pytest.param(COOKIE[:-1], timedelta(0), id="a part of it"),
        pytest.param(f"{COOKIE}a", timedelta(0), id="more than it"),
        pytest.param(COOKIE[:-1] + "\u00e9", timedelta(0), id="not ASCII"),
        pytest.param(next(iter(ONE.by_digest)), timedelta(0), id="what is kept of it"),
        pytest.param("", timedelta(0), id="nothing"),
        pytest.param("a" * 10_000, timedelta(0), id="long"),
    ],
)
def test_whose_cookie_is_not_known(cookie: str, after: timedelta) -> None:
    """None of these is a session."""
    assert sessions.session_of(ONE, COOKIE, NOW) == ANN
    assert sessions.session_of(ONE, cookie, NOW + after) is None


def test_a_session_that_has_ended() -> None:
    """Its cookie is worth nothing, at any time; those of others are what they were."""
    all_, (bobs,) = _with("bob", of=ONE)
    after = sessions.without(all_, COOKIE)
    assert sessions.session_of(after, COOKIE, NOW) is None
    assert sessions.session_of(after, bobs, NOW) is not None


def test_nothing_stays_of_those_that_are_over() -> None:
    """No token, least of all."""
    assert TOKEN in str([each.token for each in ONE.by_digest.values()])
    assert sessions.without_ended(ONE, NOW) is ONE
    assert sessions.without_ended(ONE, NOW + LASTS).by_digest == {}


def test_no_token_is_printed() -> None:
    """A log line or a traceback that has a session in it has no token and no key."""
    assert TOKEN not in repr(ANN) + repr(ONE)
    assert "form" not in repr(ANN)


def test_many_logins_of_one() -> None:
    """The oldest end, and nobody else's."""
    all_, (bobs,) = _with("bob")
    all_, cookies = _with(*["ann"] * (MOST_OF_ONE + 2), of=all_)
    known = [sessions.session_of(all_, cookie, NOW) is not None for cookie in cookies]
    assert known == [False] * 2 + [True] * MOST_OF_ONE
    assert sessions.session_of(all_, bobs, NOW) is not None


def test_many_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room there is no login, and nobody's ends; there is room again when some are over."""
    monkeypatch.setattr(sessions, "MOST", 2)
    all_, cookies = _with("ann", "bob")
    assert sessions.with_session(all_, OTHER, sessions.begin("eve", "form", NOW), NOW) is None
    assert all(sessions.session_of(all_, cookie, NOW) for cookie in cookies)
    later = NOW + LASTS
    assert sessions.with_session(all_, OTHER, sessions.begin("eve", "form", later), later) is not None


@pytest.mark.parametrize(
    ("sent", "ours"),
    [("form", True), ("Form", False), ("", False), (None, False), ("f\u00f6rm", False), (b"form", False)],
)
def test_whose_form_it_is(sent: object, ours: bool) -> None:
    """Only a form that was made for the session has its key."""
    assert sessions.is_form_of(ANN, sent) == ours


def test_how_long_they_last() -> None:
    """The right to look is asked at the login alone; whoever started the console has it anyway."""
    assert timedelta(minutes=5) < LASTS <= timedelta(hours=1)
    assert sessions.begin("", "form", NOW, local=True).until == NOW + LOCAL_LASTS
