"""`python -m kubesandbox.envtest DIR`: programs named kube-apiserver and etcd, which Go's envtest starts.

In: the flags that envtest passes (sigs.k8s.io/controller-runtime/pkg/internal/testing/controlplane). Out: the API
server alone, with the certificates that envtest wrote. Flags that it does not implement are named once on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from kubesandbox.apiserver.server_flags import Disabled

PROGRAMS = ("kube-apiserver", "etcd")
# Interval at which a program looks whether the process that started it still runs, in seconds.
_PARENT_CHECK_S = 0.5
# The flags that envtest always passes and that change nothing here.
_WITHOUT_EFFECT = frozenset(
    {
        "advertise-address",
        "allow-privileged",
        "authorization-mode=RBAC",
        "etcd-servers",
        "service-account-issuer",
        "service-account-key-file",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
    }
)


def main() -> None:
    """Writes the programs to a folder, or runs one of them."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in PROGRAMS:
        {"kube-apiserver": _run_api_server, "etcd": _run_etcd}[arguments[0]](arguments[1:])
        return
    parser = argparse.ArgumentParser(
        "python -m kubesandbox.envtest", description="Write kube-apiserver and etcd for envtest to a folder."
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the programs")
    parser.add_argument("--kubernetes-version", default="", metavar="1.N", help="version to behave as (default: 1.34)")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    from kubesandbox.apiserver.kubernetes_version import choose_or_exit

    choose_or_exit(options.kubernetes_version)
    try:
        write_programs(folder, options.kubernetes_version)
    except OSError as error:
        sys.exit(f"error: {error.filename or folder}: {error.strerror}; give another folder")
    sys.stdout.write(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}\n")


def write_programs(folder: Path, version: str = "") -> None:
    """Writes the two programs to `folder`. They use the interpreter that runs now. Raises OSError.

    `version` is that of Kubernetes, for example 1.36.
    """
    options = {"kube-apiserver": ("--kubernetes-version", version)} if version else {}
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        command = shlex.join((sys.executable, "-P", "-m", "kubesandbox.envtest", name, *options.get(name, ())))
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)


def ignored_flags(arguments: list[str]) -> list[str]:
    """Returns the flags of kube-apiserver that have no effect on this server, apart from those of envtest itself."""
    flags = (argument.removeprefix("--") for argument in arguments if argument.startswith("--"))
    return [flag for flag in flags if flag not in _WITHOUT_EFFECT and flag.partition("=")[0] not in _WITHOUT_EFFECT]


def _run_api_server(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("kube-apiserver", allow_abbrev=False)
    parser.add_argument("--cert-dir", type=Path, required=True, help="folder with apiserver.crt and apiserver.key")
    parser.add_argument("--secure-port", type=int, default=6443)
    parser.add_argument("--bind-address", default="127.0.0.1")
    parser.add_argument("--client-ca-file", type=Path)
    parser.add_argument("--kubernetes-version", default="")
    for flag in ("feature-gates", "enable-admission-plugins", "disable-admission-plugins", "runtime-config"):
        parser.add_argument(f"--{flag}", action="append", default=[])
    options, others = parser.parse_known_args(arguments)
    ignored = ignored_flags(others)
    if ignored:
        names = " ".join(f"--{flag}" for flag in ignored)
        sys.stderr.write(f"warning: kubesandbox does not implement these flags of kube-apiserver: {names}\n")
    from kubesandbox.apiserver.kubernetes_version import choose_or_exit

    choose_or_exit(options.kubernetes_version, ",".join(options.feature_gates))
    import uvloop

    from kubesandbox.apiserver.server_flags import parse_or_exit

    disabled = parse_or_exit(
        options.enable_admission_plugins, options.disable_admission_plugins, options.runtime_config
    )
    uvloop.run(_serve(options, disabled))


async def _serve(options: argparse.Namespace, disabled: Disabled) -> None:
    """Serves until SIGTERM or SIGINT, or until the process that started this one ends."""
    from kubekit.http.quick_imports import quick_imports

    with quick_imports():
        from kubesandbox.apiserver.server import ApiServer

    stop, loop, parent = asyncio.Event(), asyncio.get_running_loop(), os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    data = options.cert_dir / "kubesandbox"
    pki = data / "pki"
    pki.mkdir(parents=True, exist_ok=True)
    for suffix in ("crt", "key"):
        (pki / f"server.{suffix}").write_bytes((options.cert_dir / f"apiserver.{suffix}").read_bytes())
    authority = options.client_ca_file.read_bytes() if options.client_ca_file else b""
    async with ApiServer(
        data, options.secure_port, host=options.bind_address, client_authority=authority, disabled=disabled
    ):
        while os.getppid() == parent and not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), _PARENT_CHECK_S)
            except TimeoutError:
                continue


class _Health(http.server.BaseHTTPRequestHandler):
    """Answers every request as a healthy etcd does."""

    def do_GET(self) -> None:
        """Answers `{"health":"true"}`."""
        body = b'{"health":"true","reason":""}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


def _run_etcd(arguments: list[str]) -> None:
    """Answers the health checks of envtest; the API server has a store and needs no etcd."""
    parser = argparse.ArgumentParser("etcd", allow_abbrev=False)
    parser.add_argument("--listen-client-urls", default="http://127.0.0.1:2379", type=lambda urls: urls.split(",")[0])
    parser.add_argument("--unsafe-no-fsync", default="true")
    url, parent = urlsplit(parser.parse_known_args(arguments)[0].listen_client_urls), os.getppid()
    server = http.server.ThreadingHTTPServer((url.hostname or "127.0.0.1", url.port or 2379), _Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)


if __name__ == "__main__":
    main()
