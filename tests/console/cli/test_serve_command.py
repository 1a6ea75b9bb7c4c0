"""`runup serve` as it is typed: the commands of its page, what it refuses to serve, and how it ends."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.cli.render.reading import read
from tests.servers import eventually

from kubekit.lang import yaml as kyaml
from kubesandbox.apiserver.access.certs import issue_server, new_ca

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "console.md").read_text()
TYPED = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
ADDRESS = re.compile(r"serving at (https?://\S+) \(Ctrl-C ends it\)\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, in which everything is typed."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A console in a process of its own, at a port of its own; yields its address."""
    command = [sys.executable, "-m", "runup", *words, "--listen", "127.0.0.1:0"]
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**environment, "HOME": "/nonexistent"}
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


def judged(url: str) -> str:
    """What the first page says once every cluster was judged."""
    text: str = eventually(lambda: "Not judged yet" not in (page := got(url)) and page, "every cluster is judged")
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
            text = judged(url)
            assert "Preflight of 3 clusters: 2 with risks that apply, 1 not all known" in text
            assert "WebhookBlocksUpdate" in got(f"{url}clusters/orchard")
            assert ("No history" in got(f"{url}history")) == ("--store" not in words)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_how_it_ends(number: int, code: int) -> None:
    """At once, also while it judges and somebody looks at an update; no process is left."""
    with serving("serve", "--inventory", "examples/fleet.yaml") as (url, process):
        with urllib.request.urlopen(f"{url}clusters/harbour/update/events", timeout=240) as events:
            assert events.readline() == b"retry: 10000\n"
            children = _children_of(process.pid)
            assert len(children) >= 2
            process.send_signal(number)
            assert process.wait(240) == code
    eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "its processes have ended")


def _children_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True).stdout
    return [int(word) for word in found.split()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_a_certificate_and_a_login(folder: Path) -> None:
    """Behind a stated name nothing is shown without a token, and the process keeps no page from another host."""
    authority = new_ca("test")
    certificate, key = issue_server(authority, ["localhost", "127.0.0.1"])
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)
    cluster = {"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    users = [{"name": "a", "user": {}}]
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "users": users}
    (folder / "kubeconfig").write_text(kyaml_text({**config, "current-context": "a"}))
    words = ("--kubeconfig", "kubeconfig", "--tls-cert", "tls.crt", "--tls-key", "tls.key")
    trusted = ssl.create_default_context(cadata=authority.cert_pem.decode())
    with serving("serve", "--inventory", "examples/fleet.yaml", *words, "--behind-proxy", "--host", "127.0.0.1") as (
        url,
        _,
    ):
        assert url.startswith("https://")
        assert "Bearer token of the cluster" in got(url, trusted)
        with pytest.raises(urllib.error.HTTPError) as refused:
            got(url.replace("127.0.0.1", "localhost") + "nowhere", trusted)
        # Loopback's own names are known; there is a login before everything.
        assert refused.value.code in (303, 404) or "Login" in refused.value.read().decode()


def kyaml_text(value: object) -> str:
    """A document as JSON, which is YAML."""
    import json

    text = json.dumps(value)
    assert kyaml.load(text) == value
    return text


DUMPS = ("--inventory", "examples/fleet.yaml")


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        pytest.param((), "name some with --contexts", id="no cluster"),
        pytest.param(("--store", "nowhere"), "--store nowhere: there is no such folder", id="no store"),
        pytest.param(("--store", "examples"), "--store examples has no report; make some", id="an empty store"),
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
            (*DUMPS, "--tls-cert", "a", "--tls-key", "b"), "--tls-cert a, --tls-key b: cannot be used", id="no file"
        ),
        pytest.param(
            (*DUMPS, "--listen", "0.0.0.0:0", "--behind-proxy", "--host", "h"), "kubeconfig", id="no cluster to ask"
        ),
        pytest.param((*DUMPS, "--to-image", "a", "--release-dir", "b"), "give one of them", id="two releases"),
        pytest.param((*DUMPS, "--graph", "nowhere"), "there is no nowhere", id="no graph"),
        pytest.param((*DUMPS, "--suppressions", "nowhere"), "--suppressions nowhere", id="no suppressions"),
        pytest.param((*DUMPS, "--context", "a"), "a fleet is named by --contexts", id="one context"),
        pytest.param((*DUMPS, "--listen", "192.0.2.1:0", "--behind-proxy"), "--host NAME", id="an address elsewhere"),
    ],
)
def test_what_is_not_served(run: Run, typed: tuple[str, ...], says: str) -> None:
    """One error that names the input and the way out, before anything is judged."""
    ran = run("serve", *typed)
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err


def test_an_address_that_is_taken(run: Run) -> None:
    """It is named, and the processes end."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("serve", *DUMPS, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert ran.code == 1
    assert re.search(r"--listen 127\.0\.0\.1:\d+: ", ran.err)
