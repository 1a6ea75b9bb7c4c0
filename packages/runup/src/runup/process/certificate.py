"""The certificate that a process serves with, which may appear late and is replaced while the process runs.

The cluster's own authority writes it into a Secret some time after the Service that asks for it, on a new cluster
after the operator itself, and again every year. So the operator starts without it: until there is one, no request to
its TLS port is answered, least of all in plain text, and the log says so. If its folder is absent too, the flag names
the wrong place.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from kubekit.error_types import Terminal
from kubekit.kube.clock import Clock
from runup.process.file_version import FileVersion, stamp_of

CHECK_INTERVAL_S = 10.0
log = structlog.get_logger("serving")


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
