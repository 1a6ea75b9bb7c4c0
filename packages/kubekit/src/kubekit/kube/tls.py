"""The TLS context for a cluster and a credential, used by both transports."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kubekit.kube.api_errors import ConfigError
from kubekit.kube.auth import Credential
from kubekit.kube.config import ClusterConfig

_OPEN_FILES = "/proc/self/fd"


def context_for(config: ClusterConfig, credential: Credential) -> ssl.SSLContext | None:
    """Returns the context, or None for a plain http server. Raises ConfigError for an unusable certificate or key.

    A credential plugin's client certificate takes precedence over the kubeconfig's.
    """
    if config.url.scheme != "https":
        return None
    try:
        context = ssl.create_default_context(cadata=config.ca_data.decode("ascii") or None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"the certificate authority for {config.server} is not PEM: {error}") from error
    # Python 3.13 turned this on; cluster CAs made by openssl one-liners lack the extensions that it demands.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_client_certificate(
        context, credential.client_cert or config.client_cert, credential.client_key or config.client_key
    )
    return context


def _load_client_certificate(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Loads the client certificate (PEM) and its key, if there is one. Raises ConfigError."""
    if not cert:
        return
    with _temporary_files(cert, key) as paths:
        try:
            context.load_cert_chain(paths[0], paths[1], password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"the client certificate and its key cannot be used: {error}") from error


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
