"""Credential plugins, with a real program that records how it was called."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubekit.kube import config
from kubekit.kube.api_errors import ConfigError
from kubekit.kube.auth import Auth, ExecSpec, read_credential
from kubekit.lang import yaml

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
    """A plugin in a separate folder, and a kubeconfig next to it."""

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
        pytest.param({}, "nonsense", "printed no ExecCredential", id="output that is not JSON"),
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


@pytest.mark.parametrize("code", [1, 3])
def test_a_failing_plugin(plugin: Plugin, code: int) -> None:
    """Its exit code is reported; what it printed is not used."""
    plugin.exits(code)
    with pytest.raises(ConfigError, match=f"failed with exit code {code}") as caught:
        plugin.auth().credential(NOW)
    assert caught.value.reason == "ExecPluginFailed"


def test_a_plugin_that_is_not_there(plugin: Plugin) -> None:
    """Without a hint there is none; a hint of blanks is none."""
    for hint in (None, " \n"):
        with pytest.raises(ConfigError) as caught:
            plugin.auth(command="no-such-plugin", installHint=hint).credential(NOW)
        said = "the credential plugin no-such-plugin cannot be started: No such file or directory"
        assert (caught.value.message, caught.value.reason) == (said, "ExecPluginMissing")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input is a terminal."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield
    os.close(ours)


@pytest.mark.parametrize(
    ("mode", "interactive"), [("Never", False), ("IfAvailable", True), ("Always", True)], ids=["never", "if", "always"]
)
@pytest.mark.usefixtures("terminal")
def test_whether_a_plugin_may_ask(plugin: Plugin, mode: str, interactive: bool) -> None:
    """It is reported; at a terminal it may unless the kubeconfig says that it never does."""
    plugin.auth(interactiveMode=mode).credential(NOW)
    assert json.loads(plugin.runs[0]["env"]["KUBERNETES_EXEC_INFO"])["spec"] == {"interactive": interactive}


def test_nobody_is_asked_without_a_terminal(plugin: Plugin) -> None:
    """Where a plugin may ask and need not; the older version's default is that."""
    plugin.prints(api_version=V1BETA1, token="t")
    auth = plugin.auth(apiVersion=V1BETA1, interactiveMode=None)
    auth.credential(NOW)
    assert json.loads(plugin.runs[0]["env"]["KUBERNETES_EXEC_INFO"])["spec"] == {"interactive": False}
    assert plugin.runs[0]["tty"] is False


def test_what_a_plugin_is_told_of_an_unchecked_cluster(plugin: Plugin) -> None:
    """No more than there is."""
    plugin.auth({"insecure-skip-tls-verify": True}, provideClusterInfo=True).credential(NOW)
    spec = json.loads(plugin.runs[0]["env"]["KUBERNETES_EXEC_INFO"])["spec"]
    assert spec["cluster"] == {"server": "https://h", "insecure-skip-tls-verify": True}


def test_a_plugins_environment_is_not_printed() -> None:
    """It may hold secrets."""
    spec = ExecSpec(api_version=V1, command="plugin", args=("a",), env=(("X", "hush"),))
    assert repr(spec) == "ExecSpec(command='plugin', args=('a',))"


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (None, "neither a token nor a client certificate"),
        ({"clientCertificateData": "C"}, "a client certificate without its key, or a key without its certificate"),
        (
            {"token": "t", "clientKeyData": "K"},
            "a client certificate without its key, or a key without its certificate",
        ),
    ],
    ids=["no status", "a certificate alone", "a key beside a token"],
)
def test_half_a_credential(status: dict[str, str] | None, says: str) -> None:
    """It is none."""
    printed = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    with pytest.raises(ConfigError) as caught:
        read_credential(ExecSpec(api_version=V1, command="plugin"), json.dumps(printed).encode())
    assert caught.value.message == f"the credential plugin plugin printed {says}"


@pytest.mark.parametrize(
    ("stanza", "says"),
    [
        ({"apiVersion": None}, f"wants no apiVersion; supported are {V1} and {V1BETA1}"),
        ({"apiVersion": "v2"}, f"wants v2; supported are {V1} and {V1BETA1}"),
        ({"interactiveMode": "Maybe"}, f"has interactiveMode 'Maybe'; {V1} needs Never, IfAvailable or Always"),
    ],
    ids=["no version", "another version", "another mode"],
)
def test_a_stanza_that_the_protocol_does_not_have(plugin: Plugin, stanza: dict[str, Any], says: str) -> None:
    """It says what there is."""
    with pytest.raises(ConfigError) as caught:
        plugin.auth(**stanza)
    assert caught.value.message.endswith(says)


def test_a_credential_that_never_expires_is_kept(plugin: Plugin) -> None:
    """Certificate and token together."""
    plugin.prints(token="t", clientCertificateData="C", clientKeyData="K")
    auth = plugin.auth()
    auth.credential(NOW)
    kept = auth.cached(NOW + timedelta(days=10_000))
    assert kept is not None
    assert (kept.authorization, kept.client_cert, kept.client_key) == ("Bearer t", b"C", b"K")
