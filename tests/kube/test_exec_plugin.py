"""Credential plugins, with a real program that records how it was called."""

from __future__ import annotations

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runup.kube import config
from runup.kube.auth import Auth
from runup.kube.errors import ConfigError
from runup.lang import yaml

NOW = datetime(2026, 1, 1, tzinfo=UTC)
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"

PLUGIN = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "runs").open("a") as runs:
    print(json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ), "tty": sys.stdin.isatty()}}), file=runs)
sys.stdout.write((here / "output").read_text())
sys.exit(int((here / "code").read_text()))
"""


class Plugin:
    """A plugin in a folder of its own, and a kubeconfig beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exits(0)
        program = folder / "plugin"
        program.write_text(PLUGIN)
        program.chmod(0o755)

    def exits(self, code: int) -> None:
        """The exit code from now on."""
        (self.folder / "code").write_text(str(code))

    def prints(self, *, api_version: str = V1, **status: Any) -> None:
        """The ExecCredential that it prints from now on."""
        document = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
        (self.folder / "output").write_text(json.dumps(document))

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Every run so far: argv, env, tty."""
        path = self.folder / "runs"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def auth(self, cluster: dict[str, Any] | None = None, **stanza: Any) -> Auth:
        """The auth of a kubeconfig with this plugin."""
        exec_ = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"} | stanza
        document = {
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://h"} | (cluster or {})}],
            "users": [{"name": "u", "user": {"exec": {k: v for k, v in exec_.items() if v is not None}}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }
        path = self.folder / "config"
        path.write_text(yaml.dump(document))
        return config.load(str(path), environ={}).auth


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """A plugin that prints the token `t`."""
    made = Plugin(tmp_path)
    made.prints(token="t")
    return made


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_a_token_is_kept(plugin: Plugin, version: str) -> None:
    """One run serves every request until the server refuses the token."""
    plugin.prints(api_version=version, token="t")
    auth = plugin.auth(apiVersion=version)
    assert auth.cached(NOW) is None
    assert [auth.credential(NOW).authorization for _ in range(3)] == ["Bearer t"] * 3
    assert len(plugin.runs) == 1
    auth.refresh()
    auth.credential(NOW)
    assert len(plugin.runs) == 2


def test_an_expired_token_is_renewed(plugin: Plugin) -> None:
    """At its expirationTimestamp, not a second later."""
    plugin.prints(token="t", expirationTimestamp="2026-01-01T01:00:00Z")
    auth = plugin.auth()
    auth.credential(NOW)
    assert auth.cached(NOW + timedelta(minutes=59, seconds=59)) is not None
    assert auth.cached(NOW + timedelta(hours=1)) is None


def test_a_client_certificate(plugin: Plugin) -> None:
    """A certificate and its key come as PEM text."""
    plugin.prints(clientCertificateData="CERT", clientKeyData="KEY")
    credential = plugin.auth().credential(NOW)
    assert (credential.authorization, credential.client_cert, credential.client_key) == ("", b"CERT", b"KEY")


def test_how_it_is_called(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, environment on top of ours, and KUBERNETES_EXEC_INFO with the cluster when it asks for it."""
    monkeypatch.setenv("INHERITED", "yes")
    cluster = {
        "tls-server-name": "n",
        "certificate-authority-data": base64.b64encode(b"CA").decode(),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    plugin.auth(cluster, args=["get", "token"], env=[{"name": "X", "value": "1"}], provideClusterInfo=True).credential(
        NOW
    )
    (run,) = plugin.runs
    assert run["argv"] == ["get", "token"]
    assert (run["env"]["X"], run["env"]["INHERITED"]) == ("1", "yes")
    assert json.loads(run["env"]["KUBERNETES_EXEC_INFO"]) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://h",
                "tls-server-name": "n",
                "certificate-authority-data": base64.b64encode(b"CA").decode(),
                "config": {"audience": "a"},
            },
        },
    }


def test_the_cluster_is_told_only_on_request(plugin: Plugin) -> None:
    """Without provideClusterInfo the plugin learns nothing of the cluster."""
    plugin.auth().credential(NOW)
    assert json.loads(plugin.runs[0]["env"]["KUBERNETES_EXEC_INFO"])["spec"] == {"interactive": False}


@pytest.mark.parametrize(
    ("stanza", "output", "says"),
    [
        pytest.param({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, None, "supported are", id="v1alpha1"),
        pytest.param({"interactiveMode": None}, None, "interactiveMode 'unset'", id="v1 without interactiveMode"),
        pytest.param({"interactiveMode": "Maybe"}, None, "'Maybe'", id="an unknown interactiveMode"),
        pytest.param({"command": ""}, None, "without a command", id="no command"),
        pytest.param(
            {"command": "no-such-plugin", "installHint": "Get it from the shop."},
            None,
            "cannot be started: No such file or directory\n\nGet it from the shop.",
            id="a program that is not installed",
        ),
        pytest.param({"interactiveMode": "Always"}, None, "standard input is not a terminal", id="no terminal"),
        pytest.param({}, "nonsense", "printed no ExecCredential", id="output that is no JSON"),
        pytest.param(
            {},
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "a\nb"}}),
            "printed as its token cannot be sent",
            id="a token of two lines",
        ),
        pytest.param(
            {},
            json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential", "status": {"token": "t"}}),
            f"of {V1BETA1}, but the kubeconfig names {V1}",
            id="another version than asked for",
        ),
        pytest.param(
            {},
            json.dumps({"apiVersion": "client.authentication.k8s.io/a", "kind": "ExecCredential", "status": {}}),
            f"but the kubeconfig names {V1}",
            id="a version that sorts before it",
        ),
        *(
            pytest.param(
                {},
                json.dumps({"apiVersion": V1, "kind": kind, "status": {"token": "t"}}),
                f"printed {kind or 'no kind'} of {V1}",
                id=f"{kind or 'no kind'} for an ExecCredential",
            )
            for kind in ("", "Config", "TokenReview")
        ),
        pytest.param(
            {},
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {}}),
            "neither a token nor a client certificate",
            id="an empty status",
        ),
        pytest.param(
            {},
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientKeyData": "K"}}),
            "without its certificate",
            id="a key alone",
        ),
    ],
)
def test_mistakes_of_plugins(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, stanza: dict[str, Any], output: str | None, says: str
) -> None:
    """Each is an error that names the plugin and the way out, and no traceback."""
    monkeypatch.setattr("sys.stdin", None)
    if output is not None:
        (plugin.folder / "output").write_text(output)
    with pytest.raises(ConfigError) as caught:
        plugin.auth(**stanza).credential(NOW)
    assert says in caught.value.message


def test_a_failing_plugin(plugin: Plugin) -> None:
    """Its exit code is told; what it printed is not used."""
    plugin.exits(3)
    with pytest.raises(ConfigError, match="failed with exit code 3"):
        plugin.auth().credential(NOW)
