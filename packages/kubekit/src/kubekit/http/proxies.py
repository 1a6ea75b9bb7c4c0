"""The proxies that the environment names (`https_proxy`, `http_proxy`, `no_proxy`), in upper or lower case.

The variables are read as Python's urllib reads them, which keeps `HTTP_PROXY` from CGI programs.
"""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit

import msgspec

_PORTS = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """A proxy; `authorization` is the header that it wants, empty for none."""

    scheme: str
    host: str
    port: int
    authorization: str = ""

    @classmethod
    def parse(cls, text: str) -> Proxy:
        """Returns the proxy that a variable names, as a URL or as `host:port`. Raises OSError for anything else."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            default = _PORTS[parts.scheme]
            host, port = parts.hostname, parts.port or default
        except (ValueError, KeyError):
            host, port = None, 0
        if not host:
            # Not the text itself, which may have a password.
            raise OSError("the environment's proxy is not a URL such as http://proxy.example:3128")
        if not (parts.username and parts.password):
            return cls(parts.scheme, host, port)
        login = f"{unquote(parts.username)}:{unquote(parts.password)}"
        return cls(parts.scheme, host, port, f"Basic {base64.b64encode(login.encode()).decode()}")


def proxy_url_for(scheme: str, host: str) -> str:
    """Returns what the environment names as the proxy for a URL of `scheme`, empty where `host` is reached directly.

    `host` may have a port, which `no_proxy` may name, too.
    """
    # Imported here because it takes longer than the rest of this client, and reads nothing but the environment.
    import urllib.request

    proxy = urllib.request.getproxies().get(scheme, "")
    return proxy if proxy and not urllib.request.proxy_bypass(host) else ""
