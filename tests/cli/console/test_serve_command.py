"""`runup serve` as it is typed: the commands of its page, what it refuses to serve, and how it ends."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest
from tests.cli.commands import Run
from tests.cli.fleet.test_fleet_commands import folder
from tests.cli.render.reading import read
from tests.operator.test_killed_operator import limit_memory
from tests.process.logs import logs
from tests.servers import eventually

from kubekit.kube.clock import SystemClock
from kubesandbox.apiserver.access.certs import issue_server, new_ca

__all__ = ["folder"]

__all__ = ["logs"]
ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "console.md").read_text()
TYPED = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
DUMPS = ("--inventory", "examples/fleet.yaml")
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {}}]
"""
ADDRESS = re.compile(r"serving at (https?://\S+) \(Ctrl-C ends it\)\n")


@contextmanager
def serving(*words: str, stderr: int | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A console in a separate process, at a separate port; yields its address."""
    command = [sys.executable, "-m", "runup", *words, "--listen", "127.0.0.1:0"]
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, env={**environment, "HOME": "/nonexistent"}
    ) as it:
        try:
            assert it.stdout is not None
            match = ADDRESS.fullmatch(it.stdout.readline())
            assert match is not None
            yield match[1], it
        finally:
            it.terminate()
            it.wait(240)


def got(url: str, context: ssl.SSLContext | None = None) -> str:
    """What a page says."""
    with urllib.request.urlopen(url, timeout=240, context=context) as answer:
        return read(answer.read().decode()).text


def first_page(url: str) -> str:
    """Returns the first page once every cluster was evaluated."""
    text: str = eventually(lambda: "Not evaluated yet" not in (page := got(url)) and page, "every cluster is judged")
    return text


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_the_page_types(run: Run) -> None:
    """Every line of the page, in order: later ones read what earlier ones wrote."""
    assert len(TYPED) > 3
    for line in TYPED:
        words = shlex.split(line)[1:]
        if words[0] != "serve":
            assert run(*words).code == 2
            continue
        with serving(*words) as (url, _):
            text = first_page(url)
            assert "Preflight of 3 clusters: 2 with risks that apply, 1 not all known" in text
            assert "WebhookBlocksUpdate" in got(f"{url}clusters/orchard")
            assert ("No history" in got(f"{url}history")) == ("--store" not in words)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_how_it_ends(number: int, code: int, folder: Path) -> None:
    """At once, also while it evaluates and somebody looks at an update; no process is left."""
    (folder / "kubeconfig").write_text(KUBECONFIG)
    with serving("serve", "--contexts", "a", "--kubeconfig", "kubeconfig") as (url, process):
        eventually(lambda: _is_answered(f"{url}clusters/a"), "the clusters are listed")
        with urllib.request.urlopen(f"{url}clusters/a/update/events", timeout=240) as events:
            assert events.readline() == b"retry: 10000\n"
            children = _children_of(process.pid)
            assert len(children) >= 2
            process.send_signal(number)
            assert process.wait(240) == code
    eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "its processes have ended")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_console_without_memory_ends(folder: Path) -> None:
    """A process that no longer listens must end, so that it is started again; its error is one sentence."""
    with serving("serve", "--inventory", "examples/fleet.yaml", stderr=subprocess.PIPE) as (url, process):
        first_page(url)
        limit_memory(process.pid, 0)
        with suppress(OSError):
            for path in ("clusters/orchard", "clusters/orchard/update", "clusters/orchard/graph", "history") * 50:
                got(url + path)
        assert process.wait(240) == 1
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1].startswith("error: there is not enough memory for this command")


def _is_answered(url: str) -> bool:
    try:
        return bool(got(url))
    except HTTPError as error:
        return error.code != 503


def _children_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True).stdout
    return [int(word) for word in found.split()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_where_clusters_can_be_changed(folder: Path) -> None:
    """A second address is printed, with a key; without it, others on this machine look and no more."""
    (folder / "kubeconfig").write_text(KUBECONFIG)
    with serving("serve", "--contexts", "a", "--kubeconfig", "kubeconfig", "--allow-actions") as (url, process):
        assert process.stdout is not None
        match = re.fullmatch(rf"to change clusters, open ({url}enter\?key=\S{{40,}})\n", process.stdout.readline())
        assert match is not None
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with pytest.raises(HTTPError, match="403"):
            opener.open(f"{url}clusters/a/start", timeout=240)
        with opener.open(match[1], timeout=240) as answer:
            assert "Clusters can be changed from here" in answer.read().decode()
        # There is no such server: what is reported is that, and not that the address is wrong.
        with pytest.raises(HTTPError, match="502") as refused:
            opener.open(f"{url}clusters/a/start", timeout=240)
        assert "127.0.0.1:1 was refused" in refused.value.read().decode()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_a_certificate_and_a_login(folder: Path) -> None:
    """Nothing is shown without a token, also on this machine behind a proxy; renewed certificates are served."""
    trusted = _issue(folder)
    # Nobody logs in here: it is enough that there is a cluster that could be asked.
    (folder / "kubeconfig").write_text(KUBECONFIG)
    door = ("--tls-cert", "tls.crt", "--tls-key", "tls.key", "--behind-proxy", "--host", "console.example")
    with serving("serve", *DUMPS, "--kubeconfig", "kubeconfig", *door) as (url, _):
        assert url.startswith("https://")
        assert "Bearer token of the cluster" in got(url, trusted)
        assert "Bearer token of the cluster" in got(f"{url}clusters/harbour", trusted)
        renewed = _issue(folder)
        eventually(lambda: _is_trusted(url, renewed), "the renewed certificate is served")


def _issue(folder: Path) -> ssl.SSLContext:
    """Writes a certificate by a new authority, and returns what trusts it alone."""
    now = SystemClock().now()
    authority = new_ca(now)
    issued = issue_server(authority, now)
    (folder / "tls.crt").write_bytes(issued.cert)
    (folder / "tls.key").write_bytes(issued.key)
    return ssl.create_default_context(cadata=authority.cert.decode())


def _is_trusted(url: str, context: ssl.SSLContext) -> bool:
    try:
        return bool(got(url, context))
    except URLError as error:
        assert isinstance(error.reason, ssl.SSLError)
        return False


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        pytest.param((), "name some with --contexts", id="no cluster"),
        pytest.param(("--store", "nowhere"), "--store nowhere: there is no such folder", id="no store"),
        pytest.param(("--store", "."), "--store . has no report; make some", id="an empty store"),
        pytest.param(("--listen", "x"), "--listen x: give host:port", id="no address"),
        pytest.param((*DUMPS, "--listen", "0.0.0.0:0"), "never in the clear", id="tokens in the clear"),
        pytest.param((*DUMPS, "--listen", "[::]:0"), "never in the clear", id="tokens in the clear, by IPv6"),
        pytest.param((*DUMPS, "--listen", ":0"), "never in the clear", id="every address, not written"),
        pytest.param(
            (*DUMPS, "--listen", "0.0.0.0:0", "--behind-proxy"), "give it with --host NAME", id="a proxy without a name"
        ),
        pytest.param((*DUMPS, "--behind-proxy"), "give it with --host NAME", id="a proxy on this machine"),
        pytest.param((*DUMPS, "--tls-cert", "a"), "are a pair; give both", id="half a pair"),
        pytest.param(
            (*DUMPS, "--tls-cert", "a", "--tls-key", "b"),
            "--tls-cert a, --tls-key b: they cannot be used: there is no a",
            id="no file",
        ),
        pytest.param((*DUMPS, "--tls-cert", "examples/fleet.yaml", "--tls-key", "b"), "there is no b", id="no key"),
        pytest.param(
            (*DUMPS, "--tls-cert", "examples/fleet.yaml", "--tls-key", "examples/fleet.yaml"),
            "--tls-cert examples/fleet.yaml, --tls-key examples/fleet.yaml: they cannot be used",
            id="no certificate",
        ),
        pytest.param(
            (*DUMPS, "--listen", "0.0.0.0:0", "--behind-proxy", "--host", "h"), "kubeconfig", id="no cluster to ask"
        ),
        pytest.param((*DUMPS, "--to-image", "a", "--release-dir", "b"), "give one of them", id="two releases"),
        pytest.param(
            (*DUMPS, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"),
            "evaluates on this",
            id="elsewhere",
        ),
        pytest.param((*DUMPS, "--graph", "nowhere"), "there is no nowhere", id="no graph"),
        pytest.param((*DUMPS, "--suppressions", "nowhere"), "--suppressions nowhere", id="no suppressions"),
        pytest.param((*DUMPS, "--context", "a"), "a fleet is named by --contexts", id="one context"),
        pytest.param((*DUMPS, "--allow-actions"), "a dump or a kept report cannot be changed", id="actions on dumps"),
        pytest.param((*DUMPS, "--listen", "192.0.2.1:0", "--behind-proxy"), "--host NAME", id="an address elsewhere"),
    ],
)
def test_what_is_not_served(run: Run, typed: tuple[str, ...], says: str) -> None:
    """One error that names the input and the way out, before anything is evaluated."""
    ran = run("serve", *typed)
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err


@pytest.mark.usefixtures("logs")
def test_an_address_that_is_taken(run: Run) -> None:
    """It is named, and the processes end."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("serve", *DUMPS, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert ran.code == 1
    assert re.search(r"--listen 127\.0\.0\.1:\d+: ", ran.err)
