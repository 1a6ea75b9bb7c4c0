"""Credentials for the API server: a token, a token file that is rotated, a name and password, or a credential plugin.

A transport calls `credential(now)` before each request and `refresh()` once after a 401. The reprs leave secrets out. A
plugin is a program named in a kubeconfig that prints an ExecCredential, in versions `client.authentication.k8s.io/v1`
and `v1beta1`; its result is kept until it expires or is rejected. Protocol:
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
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
        return self.value

    def credential(self, now: datetime) -> Credential:  # noqa: ARG002
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
    """Returns the credential for a bearer token. Raises ConfigError, with the source, if no header can hold it."""
    return Credential(authorization=f"Bearer {checked_header_value(token, source)}")


def checked_header_value(value: str, source: str) -> str:
    """Returns `value` if a header can hold it. Raises ConfigError, which does not show it, since it may be a secret."""
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(f"{source} cannot be sent: it must be one line of ASCII characters")
    return value


def basic_credential(username: str, password: str) -> Credential:
    """Returns the credential for a name and a password, which proxies of API servers accept."""
    import base64  # which few clusters need

    return Credential(authorization="Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())


V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
InteractiveMode = Literal["Never", "IfAvailable", "Always"]


class ExecEnv(Wire, frozen=True):
    """An environment variable for a plugin."""

    name: str
    value: str = ""


class ExecStanza(Wire, frozen=True, kw_only=True):
    """`users[].user.exec` as written; `exec_spec` validates it."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecEnv, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""
    # client-go does not read this field from a kubeconfig, so it is ignored.
    config: Any = msgspec.UNSET


class ExecCredentialStatus(Wire, frozen=True):
    """`status` of an ExecCredential: a token, a client certificate with its key, or both."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(Wire, frozen=True):
    """The document that a plugin prints."""

    api_version: str = ""
    kind: str = ""
    status: ExecCredentialStatus | None = None


class ExecSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The `exec` stanza of a kubeconfig user; `cluster` is None unless the stanza has provideClusterInfo."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: InteractiveMode = "IfAvailable"
    cluster: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        """Returns the text without `env`, which may hold secrets."""
        return f"ExecSpec(command={self.command!r}, args={self.args!r})"

    def info(self, *, interactive: bool) -> str:
        """Returns the value of KUBERNETES_EXEC_INFO: an ExecCredential that shows the plugin its cluster and mode."""
        spec: dict[str, Any] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = dict(self.cluster)
        return codec.encode({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}).decode()


class ExecPlugin:
    """Runs the plugin if there is no credential, or if it has expired or was rejected."""

    def __init__(self, spec: ExecSpec) -> None:
        self.spec = spec
        self._status: ExecCredentialStatus | None = None

    def cached(self, now: datetime) -> Credential | None:
        """Returns the credential if it has not expired (`Auth.cached`)."""
        status = self._status
        if status is None or (status.expiration_timestamp is not None and now >= status.expiration_timestamp):
            return None
        return _credential_of(status)

    def credential(self, now: datetime) -> Credential:
        """Returns the credential (`Auth.credential`), running the plugin if needed. Raises ConfigError."""
        if (cached := self.cached(now)) is not None:
            return cached
        self._status = read_credential(self.spec, _run_plugin(self.spec))
        return _credential_of(self._status)

    def refresh(self) -> None:
        self._status = None


def read_credential(spec: ExecSpec, output: bytes) -> ExecCredentialStatus:
    """Returns the status in the plugin's output. Raises ConfigError if it is not a usable ExecCredential."""
    prefix = f"the credential plugin {spec.command} printed"
    try:
        credential = codec.decode(ExecCredential, output)
    except codec.DecodeError as error:
        raise ConfigError(f"{prefix} no ExecCredential: {error}") from error
    if (credential.kind, credential.api_version) != ("ExecCredential", spec.api_version):
        raise ConfigError(
            f"{prefix} {credential.kind or 'no kind'} of {credential.api_version or 'no apiVersion'}, "
            f"but the kubeconfig names {spec.api_version}"
        )
    status = credential.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise ConfigError(f"{prefix} neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{prefix} a client certificate without its key, or a key without its certificate")
    checked_header_value(status.token, f"what the credential plugin {spec.command} printed as its token")
    return status


def _credential_of(status: ExecCredentialStatus) -> Credential:
    """Returns the token or the client certificate that the plugin issued."""
    return Credential(
        authorization=f"Bearer {status.token}" if status.token else "",
        client_cert=status.client_certificate_data.encode(),
        client_key=status.client_key_data.encode(),
    )


def _run_plugin(spec: ExecSpec) -> bytes:
    """Runs the credential plugin and returns its output. Raises ConfigError if it cannot start or fails."""
    import subprocess

    terminal = sys.stdin is not None and sys.stdin.isatty()
    if spec.interactive_mode == "Always" and not terminal:
        raise ConfigError(f"the credential plugin {spec.command} asks questions, and standard input is not a terminal")
    interactive = spec.interactive_mode != "Never" and terminal
    environment = {**os.environ, **dict(spec.env), "KUBERNETES_EXEC_INFO": spec.info(interactive=interactive)}
    try:
        # The plugin inherits stderr, because it prints its prompts and errors there.
        completed = subprocess.run(
            [spec.command, *spec.args],
            env=environment,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        hint = f"\n\n{spec.install_hint.strip()}" if spec.install_hint.strip() else ""
        raise ConfigError(
            f"the credential plugin {spec.command} cannot be started: {error.strerror}{hint}",
            reason="ExecPluginMissing",
        ) from error
    if completed.returncode != 0:
        raise ConfigError(
            f"the credential plugin {spec.command} failed with exit code {completed.returncode}",
            reason="ExecPluginFailed",
        )
    return completed.stdout


def exec_spec(stanza: ExecStanza, cluster: Mapping[str, Any]) -> ExecSpec:
    """Returns the validated `exec` stanza. Raises ConfigError for a version or mode that the protocol does not have."""
    if stanza.api_version not in (V1, V1BETA1):
        raise ConfigError(
            f"the credential plugin {stanza.command} wants {stanza.api_version or 'no apiVersion'}; "
            f"supported are {V1} and {V1BETA1}"
        )
    if not stanza.command:
        raise ConfigError("a credential plugin without a command")
    # v1 requires interactiveMode; v1beta1 defaults it to IfAvailable.
    mode = stanza.interactive_mode or ("" if stanza.api_version == V1 else "IfAvailable")
    if mode not in ("Never", "IfAvailable", "Always"):
        raise ConfigError(
            f"the credential plugin {stanza.command} has interactiveMode {mode or 'unset'!r}; "
            f"{stanza.api_version} needs Never, IfAvailable or Always"
        )
    return ExecSpec(
        api_version=stanza.api_version,
        command=stanza.command,
        args=stanza.args,
        env=tuple((variable.name, variable.value) for variable in stanza.env),
        install_hint=stanza.install_hint,
        interactive_mode=mode,  # type: ignore[arg-type]
        cluster=cluster if stanza.provide_cluster_info else None,
    )
