"""Kubeconfigs that are missing or wrong, against a server that is there: one error that names what to correct."""

from __future__ import annotations

import base64
import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.commands import Run, Server

Config = dict[str, Any]


def cluster(config: Config) -> Any:
    """The only cluster."""
    return config["clusters"][0]["cluster"]


def user(config: Config) -> Any:
    """The only user."""
    return config["users"][0]["user"]


def text(value: bytes) -> str:
    """As kubeconfigs have bytes."""
    return base64.b64encode(value).decode()


def another_login(config: Config, **login: Any) -> None:
    """The user, with this instead of a certificate."""
    config["users"][0]["user"] = login


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}
WRONG: list[Any] = [
    pytest.param(
        lambda c: cluster(c).pop("certificate-authority-data"), "its certificate is not trusted", id="no authority"
    ),
    pytest.param(lambda c: cluster(c).update({"certificate-authority-data": "?"}), "is not base64", id="no base64"),
    pytest.param(
        lambda c: cluster(c).update({"certificate-authority-data": text(b"hello")}), "is not PEM", id="no certificate"
    ),
    pytest.param(
        lambda c: (cluster(c).clear(), cluster(c).update(server="https://x", **{"certificate-authority": "/gone"})),
        "unable to read /gone",
        id="an authority's file that is gone",
    ),
    pytest.param(lambda c: another_login(c, token="rubbish"), "You must be logged in", id="a token that nobody knows"),
    pytest.param(lambda c: another_login(c, tokenFile="/gone"), "the token file /gone", id="a token's file"),
    pytest.param(
        lambda c: another_login(c, token="a\nb"), "the kubeconfig's token cannot be sent", id="a token of two lines"
    ),
    pytest.param(
        lambda c: another_login(c, token="t", **{"as": "you\r\nX-Evil: 1"}),
        "what the kubeconfig impersonates cannot be sent",
        id="an impersonated header",
    ),
    pytest.param(lambda c: another_login(c), "You must be logged in to the server (Unauthorized)", id="nobody"),
    pytest.param(lambda c: another_login(c, exec=PLUGIN), "no-such-plugin cannot be started", id="a plugin"),
    pytest.param(lambda c: user(c).pop("client-key-data"), "must be given together", id="no key"),
    pytest.param(lambda c: user(c).update({"client-certificate-data": text(b"x")}), "cannot be used", id="no PEM"),
    pytest.param(lambda c: c.update(users=[]), 'names the user "', id="a user who is not there"),
    pytest.param(lambda c: c.update(clusters=[]), 'names the cluster "', id="a cluster that is not there"),
    pytest.param(lambda c: c.update(contexts="x"), "`$.contexts`", id="contexts that are no list"),
    pytest.param(lambda c: c.pop("current-context"), "choose one with --context (there is ", id="no current context"),
    pytest.param(lambda c: cluster(c).update(server="https://nowhere.invalid:6443"), "nowhere.invalid", id="no host"),
    pytest.param(
        lambda c: cluster(c).update(server=cluster(c)["server"].replace("https", "http")),
        "the connection was closed",
        id="http instead of https",
    ),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_kubeconfig_that_is_wrong(
    change: Callable[[Config], object], said: str, run: Run, server: Server, tmp_path: Path
) -> None:
    """Asking for a preflight changes nothing, and the error says what is wrong."""
    server.set_cluster_version()
    before = server.cluster_version()
    config = copy.deepcopy(yaml.safe_load(server.kubeconfig.read_text()))
    change(config)
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    ran = run("upgrade", "--preflight", "--to=5.1.0", "--kubeconfig", path)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert server.cluster_version() == before


def test_a_kubeconfig_that_is_none(run: Run, tmp_path: Path) -> None:
    """A folder, an empty file and one that may not be read are reported apart from one that is not there."""
    (tmp_path / "empty").touch()
    for path, said in ((tmp_path, "is a directory"), (tmp_path / "empty", "Missing or incomplete configuration info")):
        ran = run("upgrade", "--kubeconfig", path)
        assert (ran.code, ran.out) == (1, "")
        assert said in ran.err


OPERATOR = [sys.executable, "-c", "import sys; from runup.cli.operator.main import main; sys.exit(main())"]
IMAGE = "quay.io/ocp/release@sha256:" + "a" * 64


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["start", "--release-image", IMAGE, "--node-name", "n"], id="start"),
        pytest.param(["preflight", "--format=preflight-v1-json", "--once"], id="preflight"),
    ],
)
def test_the_operators_commands_too(words: list[str], tmp_path: Path) -> None:
    """A kubeconfig that is not there is one line and exit code 1; no report is written."""
    command = [*OPERATOR, *words, "--kubeconfig", "/gone"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: stat /gone: no such file or directory\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.slow
@pytest.mark.parametrize("words", [["version"], ["--help"], ["completion", "bash"]], ids=" ".join)
@pytest.mark.parametrize("unbuffered", ["1", ""], ids=["line by line", "at the end"])
def test_output_that_finds_no_room(words: list[str], unbuffered: str) -> None:
    """A failed write is an error, because a script that stores the output must know."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "runup", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=environment,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["version"], ["--help"], ["completion", "bash"]], ids=" ".join)
def test_output_that_nobody_reads(words: list[str]) -> None:
    """`runup ... | true` is no error worth a word; the exit code is that of a process that SIGPIPE ended."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "runup", *words], stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
