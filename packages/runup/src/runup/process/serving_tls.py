"""Chooses TLS versions and ciphers for serving: flags override the cluster's profile, which overrides safe defaults.

Nothing older than TLS 1.2 is ever served, whatever a profile allows: every client that reads metrics supports it. The
ciphers of TLS 1.3 are OpenSSL's own.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

import structlog

from kubekit.api.meta_v1 import NamespacedName
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from runup.api.owned_v1 import Configuration
from runup.process import tls_profile
from runup.process.tls_profile import API_SERVER, TlsProfile

log = structlog.get_logger("serving")
VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
WATCH_S = 1800


def profile_of_flags(min_version: str, cipher_suites: str) -> TlsProfile:
    """Returns the profile from the flags. Raises ValueError that names the flag and its allowed values."""
    if min_version and min_version not in VERSIONS:
        raise ValueError(f"--tls-min-version {min_version}: give one of {', '.join(VERSIONS)}")
    ciphers = tuple(filter(None, cipher_suites.split(",")))
    unknown = [name for name in ciphers if name not in tls_profile.KNOWN_CIPHERS]
    if unknown:
        raise ValueError(
            f"--tls-cipher-suites {','.join(unknown)}: not known; "
            f"known are {', '.join(sorted(tls_profile.KNOWN_CIPHERS))}"
        )
    return TlsProfile(min_version, ciphers)


class TlsSettings:
    """A TLS `context` configured by flags and cluster. Changes apply from the next connection on."""

    def __init__(self, context: ssl.SSLContext, flags: TlsProfile) -> None:
        self._context = context
        self._flags = flags
        self._defaults = ":".join(cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3")
        self.follow(None)

    def follow(self, cluster_profile: TlsProfile | None) -> None:
        """Applies the cluster's profile, None for our own defaults; flags override both."""
        new_profile = cluster_profile or TlsProfile()
        version = self._flags.min_version or new_profile.min_version
        ciphers = self._flags.ciphers or new_profile.ciphers
        # Profiles that allow TLS 1.0 or 1.1 have no entry: 1.2 is the least.
        self._context.minimum_version = VERSIONS.get(version, ssl.TLSVersion.TLSv1_2)
        names = tls_profile.openssl_names(ciphers)
        try:
            # OpenSSL raises an error if it knows none of the names; then the defaults are served.
            self._context.set_ciphers(":".join(names) or self._defaults)
        except ssl.SSLError as error:
            log.warning(
                "no cipher of the profile can be served, so the default ones are", ciphers=names, why=str(error)
            )
            self._context.set_ciphers(self._defaults)


def profile_reflector(
    client: Client, clock: Clock, follow: Callable[[TlsProfile | None], None]
) -> Reflector[Configuration]:
    """Returns a reflector that calls `follow` with the cluster's profile, now and whenever it changes."""
    cache: Cache[Configuration] = Cache(Configuration)

    def follow_profile() -> None:
        api_server = cache.get(NamespacedName("", "cluster"))
        follow(tls_profile.mandatory_profile({"spec": api_server.spec}) if api_server is not None else None)

    cache.add_listener(lambda *_: follow_profile())
    return Reflector(
        client,
        Configuration,
        cache,
        field_selector="metadata.name=cluster",
        clock=clock,
        resource=API_SERVER,
        watch_s=WATCH_S,
    )
