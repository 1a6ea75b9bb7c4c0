"""The retry policy after a failed attempt, shared by both transports and without I/O.

Prevents common mistakes: sending again before the time that the server asked for, sending a create twice, and giving up
on a token that was renewed a second ago.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping

import msgspec

from kubekit.kube.api_errors import ApiError, ServerError, TooManyRequests, Unauthorized, Unreachable, error_of
from kubekit.kube.auth import Credential
from kubekit.kube.config import ClusterConfig
from kubekit.kube.request import Request

# The transport waits as the server asks up to this long (seconds) and this often; beyond that the caller decides.
LONGEST_WAIT_S = 30.0
MOST_WAITS = 5


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds to establish a connection, and to get an answer over it."""

    connect_s: float = 10.0
    answer_s: float = 60.0


DEFAULT_TIMEOUTS = Timeouts()


class Retry(msgspec.Struct, frozen=True):
    """The decision to send a request again after `wait_s` seconds, with fresh credentials if `refresh`."""

    wait_s: float = 0.0
    refresh: bool = False


class Attempts:
    """The attempts at one request: decides which of them may be repeated, and when."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._refreshed = False
        self._reconnected = False
        self._waits = 0

    def refused(self, code: int, headers: Mapping[str, str], body: bytes) -> Retry:
        """Returns how to send the request again after an error answer.

        Raises its ApiError if it is not to be sent again.
        """
        error = error_of(code, headers, body, self._request)
        # A token may have been rotated since it was read; a second 401 is final.
        if isinstance(error, Unauthorized) and not self._refreshed:
            self._refreshed = True
            return Retry(refresh=True)
        wait_s = self._wait_s(error)
        if wait_s is None:
            raise error
        self._waits += 1
        return Retry(wait_s=wait_s)

    def dropped(self, *, reused: bool) -> bool:
        """Returns whether to try again after a broken connection: once, if the server had closed an idle one."""
        again = reused and self._request.repeatable and not self._reconnected
        self._reconnected = True
        return again

    def _wait_s(self, error: ApiError) -> float | None:
        if not isinstance(error, TooManyRequests | ServerError) or error.retry_after_s is None:
            return None
        # Without Retry-After, a server error may have had an effect, so the request is not repeated.
        return error.retry_after_s if error.retry_after_s <= LONGEST_WAIT_S and self._waits < MOST_WAITS else None


def headers_of(
    request: Request, config: ClusterConfig, credential: Credential, user_agent: str
) -> list[tuple[str, str]]:
    """Returns all headers to send: those of the request, the credential and the impersonation."""
    # No compression: on a cluster's network it costs the server more time than it saves.
    fixed = [("User-Agent", user_agent), ("Accept-Encoding", "identity")]
    authorization = [("Authorization", credential.authorization)] if credential.authorization else []
    return [*fixed, *request.headers, *config.headers, *authorization]


def unreachable_error(config: ClusterConfig, error: BaseException) -> Unreachable:
    """Returns the error for a connection that failed with `error`, whatever library raised it."""
    refused = isinstance(error, ConnectionRefusedError)
    return Unreachable(config.server, config.address, _failure_text(config, error), refused=refused)


def _failure_text(config: ClusterConfig, error: BaseException) -> str:
    """Returns why the server could not be reached, as people read it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {getattr(error, 'reason', None) or error}"
    if isinstance(error, socket.gaierror):
        return f"no address is known for {config.url.hostname}: {error.strerror}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "the connection was closed before the answer was complete"
