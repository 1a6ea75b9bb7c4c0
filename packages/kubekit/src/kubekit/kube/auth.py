"""Credentials for the API server: a token, a token file that is rotated, or a name and password.

A transport calls `credential(now)` before each request and `refresh()` once after a 401. Credential plugins are in
`kubekit.kube.exec_plugin`. No secret is printed: the reprs leave them out.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from kubekit.kube.api_errors import ConfigError
from kubekit.lang.files import read_limited

# client-go's interval for re-reading a service account's token; the kubelet renews it long before it expires.
TOKEN_FILE_MAX_AGE = timedelta(seconds=60)


class Credential(msgspec.Struct, frozen=True):
    """A credential: `authorization` is that header's value, or empty; certificate and key are PEM, or empty."""

    authorization: str = ""
    client_cert: bytes = b""
    client_key: bytes = b""

    def __repr__(self) -> str:
        """Returns a constant text: secrets have no place in logs and tracebacks."""
        return "Credential(...)"


class Auth(Protocol):
    """A source of credentials."""

    def cached(self, now: datetime) -> Credential | None:
        """Returns the credential if it is at hand, None if `credential` would have to run a program for it."""

    def credential(self, now: datetime) -> Credential:
        """Returns the credential to use at `now`; may block while a program runs. Raises ConfigError."""

    def refresh(self) -> None:
        """Drops the cached credential, because the server rejected it."""


class Static(msgspec.Struct, frozen=True):
    """A credential that never changes; by default it is empty (a client certificate of the config, or anonymous)."""

    value: Credential = Credential()

    def cached(self, now: datetime) -> Credential | None:  # noqa: ARG002
        """Returns the credential (`Auth.cached`)."""
        return self.value

    def credential(self, now: datetime) -> Credential:  # noqa: ARG002
        """Returns the credential (`Auth.credential`)."""
        return self.value

    def refresh(self) -> None:
        """Does nothing: there is no other credential (`Auth.refresh`)."""


class TokenFile:
    """A bearer token in a file, read again every minute and after a rejection."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._read: tuple[datetime, Credential] | None = None

    def cached(self, now: datetime) -> Credential | None:
        """Returns the credential (`Auth.cached`); reading a small file is quick enough for an event loop."""
        return self.credential(now)

    def credential(self, now: datetime) -> Credential:
        """Returns the credential (`Auth.credential`). The last token is kept while the file cannot be read.

        Raises ConfigError if no token could be read yet, or the file is empty.
        """
        if self._read is not None and now - self._read[0] < TOKEN_FILE_MAX_AGE:
            return self._read[1]
        try:
            token = read_limited(self.path).decode("utf-8", "replace").strip()
        except OSError as error:
            if self._read is not None:
                return self._read[1]
            raise ConfigError(f"the token file {self.path} cannot be read: {error.strerror}") from error
        if not token:
            raise ConfigError(f"the token file {self.path} is empty")
        self._read = (now, bearer_credential(token, f"the token file {self.path}"))
        return self._read[1]

    def refresh(self) -> None:
        """Drops the cached token, so that the file is read again (`Auth.refresh`)."""
        self._read = None


def bearer_credential(token: str, source: str = "the token") -> Credential:
    """Returns the credential for a bearer token.

    Raises ConfigError, which names the source, if a header cannot hold it.
    """
    return Credential(authorization=f"Bearer {checked_header_value(token, source)}")


def checked_header_value(value: str, source: str) -> str:
    """Returns `value` if a header can hold it. Raises ConfigError, which does not show it, since it may be a secret."""
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(f"{source} cannot be sent: it must be one line of ASCII characters")
    return value


def basic_credential(username: str, password: str) -> Credential:
    """Returns the credential for a name and a password.

    API servers dropped basic authentication in 1.19; proxies in front of them still use it.
    """
    import base64  # which few clusters need

    return Credential(authorization="Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())
