"""`python -m kubesandbox.envtest`: the programs that Go's envtest starts, with the flags and files it passes."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.servers import eventually

from kubekit.kube.clock import machine_now
from kubesandbox import envtest
from kubesandbox.apiserver.access import certs

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def test_names_the_flags_without_effect() -> None:
    """Those that envtest always passes (controlplane/apiserver.go, defaultArgs) are not named."""
    always = [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--etcd-servers=http://127.0.0.1:1",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]
    assert envtest.ignored_flags(always) == []
    assert envtest.ignored_flags([*always, "--feature-gates=A=true", "--authorization-mode=Node"]) == [
        "feature-gates=A=true",
        "authorization-mode=Node",
    ]


@contextmanager
def started(program: Path, flags: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program of envtest, started by a separate process that does nothing else, as a test binary might end."""
    starter = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", starter, str(program), *flags], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.slow
def test_etcd_answers_health_checks_and_ends_with_its_starter(tmp_path: Path) -> None:
    envtest.write_programs(tmp_path)
    port = free_port()
    with started(tmp_path / "etcd", [f"--listen-client-urls=http://127.0.0.1:{port}", "--data-dir=x"]) as process:
        eventually(lambda: not is_free(port), "the port is open")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            assert json.load(answer)["health"] == "true"
        os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: is_free(port), "the port is free again")


@pytest.mark.slow
def test_serves_with_the_certificates_of_envtest(tmp_path: Path) -> None:
    """The serving certificate and the authority of clients are envtest's; the server ends with its starter."""
    envtest.write_programs(tmp_path)
    now, port = machine_now(), free_port()
    serving_ca, client_ca = certs.new_ca(now), certs.new_ca(now)
    serving = certs.issue_server(serving_ca, now)
    user = certs.issue_client(client_ca, "admin", ["system:masters"], now)
    for name, pem in (
        ("apiserver.crt", serving.cert), ("apiserver.key", serving.key), ("ca.crt", serving_ca.cert),
        ("client-ca.crt", client_ca.cert), ("user.crt", user.cert), ("user.key", user.key),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(pem)
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    context.load_cert_chain(tmp_path / "user.crt", tmp_path / "user.key")
    flags = [f"--cert-dir={tmp_path}", f"--secure-port={port}", f"--client-ca-file={tmp_path / 'client-ca.crt'}"]
    with started(tmp_path / "kube-apiserver", [*flags, "--bind-address=127.0.0.1"]) as process:
        eventually(lambda: not is_free(port), "the port is open")
        request = urllib.request.Request(
            f"https://127.0.0.1:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews",
            data=json.dumps(REVIEW).encode(), headers={"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            told = json.load(answer)["status"]["userInfo"]
        assert (told["username"], told["groups"]) == ("admin", ["system:masters", "system:authenticated"])
        os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: is_free(port), "the port is free again")
