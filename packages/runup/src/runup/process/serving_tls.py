"""The TLS with which a process serves: its versions and ciphers, and its certificate.

Flags override the cluster's profile, which overrides safe defaults. Nothing older than TLS 1.2 is ever served, whatever
a profile allows: every client that reads metrics supports it. The ciphers of TLS 1.3 are OpenSSL's own.

The cluster's own authority writes the certificate into a Secret some time after the Service that asks for it, on a new
cluster after the operator itself, and again every year. So the operator starts without it: until there is one, no
request to its TLS port is answered, least of all in plain text, and the log says so. If its folder is absent too, the
flag names the wrong place.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import structlog

from kubekit.api.meta_v1 import NamespacedName
from kubekit.error_types import Terminal
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.watch import Reflector
from kubekit.lang.files import FileVersion, stamp_of
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


CHECK_INTERVAL_S = 10.0


class ServingCertificate:
    """A TLS `context` for serving; it loads the certificate as soon as there is one, and each later one."""

    def __init__(
        self,
        cert_file: str,
        key_file: str,
        clock: Clock,
        *,
        serves: str = "metrics and health",
        flags: tuple[str, str] = ("--serving-cert-file", "--serving-key-file"),
    ) -> None:
        """Takes the two files, and words for texts.

        `serves` says in the log what is not served until there is a certificate; `flags` are the names of the flags for
        the two files, for errors.
        """
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._cert_file = cert_file
        # One file may hold both.
        self._key_file = key_file or cert_file
        self._clock = clock
        self._serves = serves
        self._flags = flags
        self._seen: tuple[FileVersion | None, FileVersion | None] = (None, None)

    def start(self) -> None:
        """Loads an existing certificate. Raises Terminal, which names the flags, if it cannot be used."""
        self._seen = self._stamps()
        if self._seen == (None, None) and Path(self._cert_file).parent.is_dir():
            text = f"no serving certificate yet: {self._serves} are not served until there is one"
            log.warning(text, cert_file=self._cert_file, key_file=self._key_file)
            return
        if why := self._load():
            raise Terminal(f"{self._flags_text()}: they cannot be used: {why}", reason="BadFlag")

    async def follow(self) -> None:
        """Looks for a changed certificate every `CHECK_INTERVAL_S`."""
        while True:
            await self._clock.sleep(CHECK_INTERVAL_S)
            self.look()

    def look(self) -> None:
        """Loads the certificate if its files changed; warns and keeps the last one if the new one cannot be used."""
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        if why := self._load():
            log.warning("the serving certificate cannot be used, the one before still counts", why=why)
        else:
            log.info("the serving certificate was read", cert_file=self._cert_file)

    def _load(self) -> str:
        """Loads the certificate for the next connections; returns the error, empty if it was loaded."""
        try:
            # An empty password makes an encrypted key an error; without one OpenSSL would ask on the terminal.
            self.context.load_cert_chain(self._cert_file, self._key_file, password=lambda: "")
        except OSError as error:  # includes ssl.SSLError: no certificate, no key, or a key of another certificate
            return str(getattr(error, "reason", None) or error.strerror or error)
        return ""

    def _flags_text(self) -> str:
        cert_flag, key_flag = self._flags
        return f"{cert_flag} {self._cert_file}, {key_flag} {self._key_file}"

    def _stamps(self) -> tuple[FileVersion | None, FileVersion | None]:
        return _file_version(self._cert_file), _file_version(self._key_file)


def _file_version(file: str) -> FileVersion | None:
    try:
        return stamp_of(Path(file))
    except OSError:
        return None
