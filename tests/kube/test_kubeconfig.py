"""Which cluster is talked to, as whom, and what is said when the kubeconfig does not tell."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runup.kube import config
from runup.kube.auth import TokenFile
from runup.kube.config import ClusterConfig
from runup.kube.errors import ConfigError
from runup.lang import yaml

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def write(path: Path, **changes: Any) -> Path:
    """A kubeconfig with one context `c`, apart from `changes` of the cluster, the user and the context."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": changes.get("current", "c"),
        "clusters": [{"name": "k", "cluster": {"server": "https://h:6443"} | changes.get("cluster", {})}],
        "users": [{"name": "u", "user": changes.get("user", {})}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"} | changes.get("context", {})}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(document))
    return path


def load(path: Path, context: str | None = None) -> ClusterConfig:
    """Load one file, without an environment."""
    return config.load(str(path), context, environ={})


def b64(text: str) -> str:
    """Base64, as data in a kubeconfig is."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        pytest.param({"token": "t"}, "Bearer t", id="a token"),
        pytest.param({"token": "t", "tokenFile": "token"}, "Bearer from-file", id="a token file before a token"),
        pytest.param({"username": "a", "password": "b"}, "Basic " + b64("a:b"), id="a name and a password"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_authorization(tmp_path: Path, user: dict[str, Any], authorization: str) -> None:
    """What a user has becomes the Authorization header; files are relative to the kubeconfig."""
    (tmp_path / "token").write_text("from-file\n")
    loaded = load(write(tmp_path / "config", user=user))
    assert loaded.auth.credential(NOW).authorization == authorization


def test_certificates_from_data_and_from_files(tmp_path: Path) -> None:
    """Data goes before files; a file is relative to the kubeconfig that names it."""
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "key").write_text("KEY")
    loaded = load(
        write(
            tmp_path / "config",
            cluster={"certificate-authority": "ca.crt", "tls-server-name": "other"},
            user={"client-certificate-data": b64("CERT"), "client-key": "key"},
            context={"namespace": "ns"},
        )
    )
    assert (loaded.ca_data, loaded.client_cert, loaded.client_key) == (b"CA", b"CERT", b"KEY")
    assert (loaded.tls_server_name, loaded.namespace, loaded.context) == ("other", "ns", "c")


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    """A configuration may end up in a log or a traceback."""
    user = {"token": "hush", "client-certificate-data": b64("C"), "client-key-data": b64("hush")}
    loaded = load(write(tmp_path / "config", user=user))
    assert "hush" not in repr(loaded)
    assert "hush" not in repr(loaded.auth)


def test_impersonation(tmp_path: Path) -> None:
    """`as` and its companions are headers of every request."""
    user = {"as": "a", "as-uid": "1", "as-groups": ["g", "h"], "as-user-extra": {"scopes": ["x", "y"]}}
    assert load(write(tmp_path / "config", user=user)).headers == (
        ("Impersonate-User", "a"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "y"),
    )


def test_files_merge_as_kubectl_merges_them(tmp_path: Path) -> None:
    """The first file to name something wins, each path is relative to its own file, missing files are skipped."""
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "ca.crt").write_text("TWO")
    one = tmp_path / "one" / "config"
    one.parent.mkdir()
    one.write_text(
        yaml.dump(
            {
                "contexts": [
                    {"name": name, "context": {"cluster": "k", "user": "u", "namespace": "first"}}
                    for name in ("mine", "c")
                ],
                "current-context": "mine",
            }
        )
    )
    two = write(tmp_path / "two" / "config", cluster={"certificate-authority": "ca.crt"}, user={"token": "t"})
    environ = {"KUBECONFIG": f"{tmp_path}/none::{one}:{two}"}
    loaded = config.load(environ=environ)
    assert (loaded.context, loaded.namespace, loaded.ca_data) == ("mine", "first", b"TWO")
    assert config.load(context="c", environ=environ).namespace == "first"
    assert config.load(environ={"KUBECONFIG": f"{two}:{one}"}).context == "c"


def test_home_is_the_last_file(tmp_path: Path) -> None:
    """Without KUBECONFIG it is ~/.kube/config."""
    write(tmp_path / ".kube" / "config")
    assert config.load(environ={"HOME": str(tmp_path)}).server == "https://h:6443"


@pytest.mark.parametrize(
    ("server", "expected", "address"),
    [
        pytest.param("https://h:6443/", "https://h:6443", "h:6443", id="a slash at the end is dropped"),
        pytest.param("https://h/k8s/a", "https://h/k8s/a", "h:443", id="a path stays"),
        pytest.param("h:8080", "http://h:8080", "h:8080", id="no scheme and no TLS"),
        pytest.param("http://[::1]:80", "http://[::1]:80", "[::1]:80", id="IPv6"),
    ],
)
def test_server(tmp_path: Path, server: str, expected: str, address: str) -> None:
    """The server's URL as it is used, and host:port as errors name it."""
    loaded = load(write(tmp_path / "config", cluster={"server": server}))
    assert (loaded.server, loaded.address) == (expected, address)


def test_in_a_pod(tmp_path: Path) -> None:
    """Without a kubeconfig, a pod uses its service account."""
    for name, text in (("token", "t"), ("ca.crt", "CA"), ("namespace", "ns\n")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    loaded = config.load(environ=environ, service_account=tmp_path)
    assert (loaded.server, loaded.ca_data, loaded.namespace) == ("https://[fd00::1]:443", b"CA", "ns")
    assert loaded.auth.credential(NOW).authorization == "Bearer t"


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """After a minute, and after a refusal; while it cannot be read, the last token is used."""
    path = tmp_path / "token"
    path.write_text("one")
    auth = TokenFile(path)
    assert auth.credential(NOW).authorization == "Bearer one"
    path.write_text("two")
    assert auth.credential(NOW + timedelta(seconds=59)).authorization == "Bearer one"
    assert auth.credential(NOW + timedelta(seconds=60)).authorization == "Bearer two"
    path.write_text("three")
    auth.refresh()
    assert auth.credential(NOW + timedelta(seconds=61)).authorization == "Bearer three"
    path.unlink()
    assert auth.credential(NOW + timedelta(seconds=300)).authorization == "Bearer three"


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read: No such file or directory"), (b" \n", "is empty")],
    ids=["none", "empty"],
)
def test_a_token_file_that_gives_nothing(tmp_path: Path, content: bytes | None, said: str) -> None:
    """Without a token from before there is none to go on with."""
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        TokenFile(path).credential(NOW)
    assert str(caught.value) == f"the token file {path} {said}"


@pytest.mark.parametrize(
    "content", [b"one\ntwo", b"\xff\xfe", b"caf\xc3\xa9"], ids=["two lines", "no text", "no ASCII"]
)
def test_a_token_file_that_holds_no_token(tmp_path: Path, content: bytes) -> None:
    """It is named, and nothing of it is shown."""
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        TokenFile(path).credential(NOW)
    assert str(caught.value) == f"the token file {path} cannot be sent: it must be one line of ASCII characters"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"current": ""}, "no current context; choose one with --context", id="no current context"),
        pytest.param({"current": "x"}, 'context "x" does not exist', id="a context that does not exist"),
        pytest.param({"context": {"cluster": "x"}}, 'names the cluster "x", which does not exist', id="no cluster"),
        pytest.param({"context": {"user": "x"}}, 'names the user "x", which does not exist', id="no user"),
        pytest.param({"cluster": {"server": ""}}, "has no server", id="a cluster without a server"),
        pytest.param({"cluster": {"server": "ftp://x"}}, "not the URL of a server", id="a server that is no URL"),
        pytest.param({"cluster": {"server": "https://h:70000"}}, "not the URL of a server", id="an impossible port"),
        pytest.param({"cluster": {"proxy-url": "http://p"}}, "proxy-url is not supported", id="a proxy"),
        pytest.param({"cluster": {"certificate-authority": "x"}}, "x: no such file", id="a CA file that is missing"),
        pytest.param(
            {"cluster": {"certificate-authority-data": "Q0E=", "insecure-skip-tls-verify": True}},
            "exclude each other",
            id="a CA and no verification",
        ),
        pytest.param({"user": {"client-key-data": "S0VZ"}}, "given together", id="a key without a certificate"),
        pytest.param({"user": {"client-key-data": "%"}}, "not base64", id="data that is no base64"),
        pytest.param({"user": {"as-groups": ["g"]}}, "needs a user name", id="impersonating a group alone"),
        pytest.param({"user": {"as": "a\nb"}}, "what the kubeconfig impersonates", id="impersonating two lines"),
        pytest.param(
            {"user": {"as": "a", "as-user-extra": {"s\r": ["x"]}}},
            "what the kubeconfig impersonates",
            id="impersonating with an extra of two lines",
        ),
        pytest.param({"user": {"auth-provider": {"name": "gcp"}}}, "credential plugin", id="an auth provider"),
        pytest.param({"user": {"token": 7}}, "error loading config file", id="a token that is a number"),
    ],
)
def test_mistakes(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    """Each mistake is one error that names it."""
    path = write(tmp_path / "config", **changes)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("a: [", 'error loading config file "{path}": yaml: line ', id="broken YAML"),
        pytest.param("- a", 'error loading config file "{path}": ', id="a list"),
        pytest.param("\udcff", 'error loading config file "{path}": yaml: ', id="not text"),
        pytest.param("", "Missing or incomplete configuration info.", id="an empty file"),
    ],
)
def test_files_that_are_no_kubeconfig(tmp_path: Path, content: str, says: str) -> None:
    """The error names the file, as kubectl's does."""
    path = tmp_path / "config"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.message.startswith(says.format(path=path))


def test_no_file(tmp_path: Path) -> None:
    """A file asked for by name must exist; otherwise the error says where one is looked for."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "none")
    assert caught.value.message == f"stat {tmp_path}/none: no such file or directory"
    with pytest.raises(ConfigError) as caught:
        config.load(environ={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "h"}, service_account=tmp_path)
    assert caught.value.message.startswith("Missing or incomplete configuration info.  Please point to")
    with pytest.raises(ConfigError, match='context "x" does not exist'):
        config.load(context="x", environ={"HOME": str(tmp_path)})
