"""Common code of both transports: retries, headers, the error of an unreachable server, server time, TLS context.

The retry policy prevents common mistakes: sending again before the time that the server asked for, sending a create
twice, and giving up on a token that was renewed a second ago.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta

import msgspec

from kubekit.http import http_date
from kubekit.http.tls import client_context
from kubekit.kube import api_errors
from kubekit.kube.auth import Credential
from kubekit.kube.clock import Clock
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
        """Returns how to send the request again after an error answer, or raises its ApiError."""
        error = api_errors.error_of(code, headers, body, self._request)
        # A token may have been rotated since it was read; a second 401 is final.
        if isinstance(error, api_errors.Unauthorized) and not self._refreshed:
            self._refreshed = True
            return Retry(refresh=True)
        # Without Retry-After, a server error may have had an effect, so the request is not repeated.
        wait_s = error.retry_after_s if isinstance(error, api_errors.TooManyRequests | api_errors.ServerError) else None
        if wait_s is None or wait_s > LONGEST_WAIT_S or self._waits >= MOST_WAITS:
            raise error
        self._waits += 1
        return Retry(wait_s=wait_s)

    def dropped(self, *, reused: bool) -> bool:
        """Returns whether to try again after a broken connection: once, if the server had closed an idle one."""
        again = reused and self._request.repeatable and not self._reconnected
        self._reconnected = True
        return again


def headers_of(
    request: Request, config: ClusterConfig, credential: Credential, user_agent: str
) -> list[tuple[str, str]]:
    """Returns all headers to send: those of the request, the credential and the impersonation."""
    # No compression: on a cluster's network it costs the server more time than it saves.
    fixed = [("User-Agent", user_agent), ("Accept-Encoding", "identity")]
    authorization = [("Authorization", credential.authorization)] if credential.authorization else []
    return [*fixed, *request.headers, *config.headers, *authorization]


def unreachable_error(config: ClusterConfig, error: BaseException) -> api_errors.Unreachable:
    """Returns the error for a connection that failed with `error`, whatever library raised it."""
    refused = isinstance(error, ConnectionRefusedError)
    return api_errors.Unreachable(config.server, config.address, _failure_text(config, error), refused=refused)


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


# A smaller difference comes from the network and the header's whole seconds.
_SAME_TIME = timedelta(seconds=2)


class ServerTime:
    """The difference between a server's time and `clock` (negative if behind), unknown before the first answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        """Returns the server's time according to the last answer that had a date."""
        return self._clock.now() + self.ahead

    def note_date(self, date: str | None) -> None:
        """Compares the clocks by the `Date` header of an answer that has just come; an invalid date is ignored."""
        if date is None:
            return
        with suppress(ValueError, OverflowError):
            ahead = http_date.parse_http_date(date) - self._clock.now()
            self.ahead = ahead if abs(ahead) > _SAME_TIME else timedelta(0)


_OPEN_FILES = "/proc/self/fd"


def context_for(config: ClusterConfig, credential: Credential) -> ssl.SSLContext | None:
    """Returns the TLS context, None for a plain http server. Raises ConfigError for an unusable certificate or key."""
    if config.url.scheme != "https":
        return None
    try:
        context = client_context(config.ca_data.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise api_errors.ConfigError(f"the certificate authority for {config.server} is not PEM: {error}") from error
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert := credential.client_cert or config.client_cert:
        with _temporary_files(cert, credential.client_key or config.client_key) as paths:
            try:
                context.load_cert_chain(paths[0], paths[1], password=_no_password)
            except (ssl.SSLError, ValueError) as error:
                raise api_errors.ConfigError(f"the client certificate and its key cannot be used: {error}") from error
    return context


@contextmanager
def _temporary_files(*contents: bytes) -> Iterator[list[str]]:
    """Yields paths of private temporary files with these contents, because the ssl module reads only files."""
    if os.path.isdir(_OPEN_FILES) and hasattr(os, "memfd_create"):  # noqa: PTH112 (pathlib is not needed here)
        with ExitStack() as stack:
            # In memory, which is quicker than a folder, and keeps the key off the disk.
            memory_files = [stack.enter_context(open(os.memfd_create("runup"), "wb")) for _ in contents]  # noqa: PTH123
            for file, content in zip(memory_files, contents, strict=True):
                file.write(content)
                file.flush()
            yield [f"{_OPEN_FILES}/{file.fileno()}" for file in memory_files]
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="runup-") as folder:
        paths = [os.path.join(folder, str(number)) for number in range(len(contents))]  # noqa: PTH118
        for path, content in zip(paths, contents, strict=True):
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(content)
        yield paths


def _no_password() -> str:
    raise ValueError("the key is encrypted, and a kubeconfig has no place for its password")
