"""The TLS context for a cluster and a credential; both transports use it."""

from __future__ import annotations

import ssl
from pathlib import Path

from runup.kube.auth import Credential
from runup.kube.config import ClusterConfig
from runup.kube.errors import ConfigError


def context_for(config: ClusterConfig, credential: Credential) -> ssl.SSLContext | None:
    """The context, or None for a plain http server; raises ConfigError for a certificate or key that cannot be used.

    A credential plugin's client certificate goes before the kubeconfig's.
    """
    if config.url.scheme != "https":
        return None
    try:
        context = ssl.create_default_context(cadata=config.ca_data.decode("ascii") or None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"the certificate authority for {config.server} is not PEM: {error}") from error
    # Python 3.13 turned this on; cluster CAs made by openssl one-liners lack the extensions that it demands.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _identify(context, credential.client_cert or config.client_cert, credential.client_key or config.client_key)
    return context


def _identify(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    if not cert:
        return
    # The ssl module reads these from files only; the folder is ours alone (0700) and gone at once.
    import tempfile  # a client certificate alone needs it

    with tempfile.TemporaryDirectory(prefix="runup-") as folder:
        paths = Path(folder, "tls.crt"), Path(folder, "tls.key")
        for path, data in zip(paths, (cert, key), strict=True):
            path.write_bytes(data)
        try:
            context.load_cert_chain(*paths, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"the client certificate and its key cannot be used: {error}") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted, and a kubeconfig has no place for its password")
