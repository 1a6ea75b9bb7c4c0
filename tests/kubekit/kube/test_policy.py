"""Tests retries after unexpected answers: whether, when and how often a request is repeated."""

from __future__ import annotations

import errno
import json
import socket
import ssl

import pytest

from kubekit.api.core_v1 import ConfigMap, Node
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound, ServerError, TooManyRequests, Unauthorized
from kubekit.kube.auth import Credential
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Request
from kubekit.kube.transport import Attempts, Retry, headers_of, unreachable_error

GET = calls.get(Node, "a").request
CREATE = calls.create(resource_of(ConfigMap), {"metadata": {"name": "a", "namespace": "ns"}}).request


def body(code: int, reason: str) -> bytes:
    """A Status."""
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "m"}).encode()


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("seconds", ["0", "1", "30"])
def test_a_wait_that_is_asked_for_is_granted_five_times(code: int, seconds: str) -> None:
    """Up to half a minute each; the sixth is the caller's."""
    attempts = Attempts(CREATE)
    for _ in range(5):
        assert attempts.refused(code, {"Retry-After": seconds}, body(code, "")) == Retry(float(seconds), refresh=False)
    with pytest.raises((TooManyRequests, ServerError)) as caught:
        attempts.refused(code, {"Retry-After": seconds}, body(code, ""))
    assert caught.value.retry_after_s == float(seconds)


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        pytest.param(429, {"Retry-After": "31"}, id="longer than half a minute"),
        pytest.param(429, {}, id="nobody says for how long"),
        pytest.param(503, {}, id="out of order, and nobody says for how long"),
        pytest.param(404, {"Retry-After": "1"}, id="not there, whatever else is said"),
        pytest.param(409, {"Retry-After": "1"}, id="a conflict"),
    ],
)
def test_what_is_not_waited_for(code: int, headers: dict[str, str]) -> None:
    """The caller decides."""
    with pytest.raises(ApiError, match=r"\Am\Z") as caught:
        Attempts(GET).refused(code, headers, body(code, ""))
    assert caught.value.code == code


def test_credentials_are_made_anew_once() -> None:
    """At once; refused again they are wrong. Waits are counted by themselves."""
    attempts = Attempts(GET)
    assert attempts.refused(401, {}, b"") == Retry(0.0, refresh=True)
    assert attempts.refused(429, {"Retry-After": "1"}, b"") == Retry(1.0, refresh=False)
    with pytest.raises(Unauthorized):
        attempts.refused(401, {}, b"")
    with pytest.raises(NotFound):
        Attempts(GET).refused(404, {}, b"")


@pytest.mark.parametrize(
    ("request_", "reused", "again"),
    [(GET, True, True), (GET, False, False), (CREATE, True, False), (CREATE, False, False)],
    ids=["an old one, a read", "a new one, a read", "an old one, a create", "a new one, a create"],
)
def test_a_connection_that_broke(request_: Request, reused: bool, again: bool) -> None:
    """An old one may have been closed before the request came; that is so once."""
    attempts = Attempts(request_)
    assert attempts.dropped(reused=reused) is again
    assert attempts.dropped(reused=True) is False


def test_the_headers_of_a_request() -> None:
    """Who asks, whatever for, on whose behalf; nothing of a credential where it does not exist."""
    config = ClusterConfig(server="https://h", headers=(("Impersonate-User", "u"),))
    sent = [("User-Agent", "me"), ("Accept-Encoding", "identity"), ("Accept", "application/json")]
    who = [("Authorization", "Bearer t")]
    assert headers_of(GET, config, Credential("Bearer t"), "me") == [*sent, ("Impersonate-User", "u"), *who]
    assert headers_of(GET, ClusterConfig(server="https://h"), Credential(), "me") == sent


def no_reason(error: ssl.SSLError, reason: str | None) -> ssl.SSLError:
    """As the ssl module makes it."""
    error.reason = reason  # type: ignore[assignment]
    return error


def not_trusted() -> ssl.SSLCertVerificationError:
    """As the ssl module makes it."""
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "detail", "refused"),
    [
        (not_trusted(), "its certificate is not trusted: self-signed certificate", False),
        (no_reason(ssl.SSLError(1, "x"), "WRONG_VERSION_NUMBER"), "TLS failed: WRONG_VERSION_NUMBER", False),
        (ssl.SSLError("x"), "TLS failed: ('x',)", False),
        (
            socket.gaierror(-2, "Name or service not known"),
            "no address is known for h: Name or service not known",
            False,
        ),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "no answer in time", False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "connection refused", True),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no route to host", False),
        (ConnectionResetError(), "the connection was closed before the answer was complete", False),
        (ValueError("x"), "the connection was closed before the answer was complete", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_why_there_was_no_answer(error: Exception, detail: str, refused: bool) -> None:
    """In words, with the server; whether nobody listens there is distinguished."""
    made = unreachable_error(ClusterConfig(server="https://h"), error)
    assert (made.detail, made.refused, made.server, made.address) == (detail, refused, "https://h", "h:443")
    assert str(made) == f"could not reach https://h: {detail}"
