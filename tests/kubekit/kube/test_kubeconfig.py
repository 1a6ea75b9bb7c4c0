"""Which cluster is talked to, as whom, and what is said when the kubeconfig does not tell."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubekit.kube import config
from kubekit.kube.api_errors import ConfigError
from kubekit.kube.auth import Credential, TokenFile, bearer_credential
from kubekit.kube.config import ClusterConfig, From
from kubekit.lang import yaml

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
    """A user's credentials become the Authorization header; files are relative to the kubeconfig."""
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


def test_the_first_file_to_name_something_wins(tmp_path: Path) -> None:
    """Of clusters and users as of contexts."""
    one = write(tmp_path / "1" / "config", cluster={"server": "https://1"}, user={"token": "1"})
    two = write(tmp_path / "2" / "config", cluster={"server": "https://2"}, user={"token": "2"}, current="x")
    for first, second, wanted in ((one, two, "1"), (two, one, "2")):
        loaded = config.load(context="c", environ={"KUBECONFIG": f"{first}:{second}"})
        assert (loaded.server, loaded.auth.credential(NOW).authorization) == (f"https://{wanted}", f"Bearer {wanted}")


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
        pytest.param("http://[::1]", "http://[::1]", "[::1]:80", id="IPv6, no port"),
        pytest.param("https://[::1]", "https://[::1]", "[::1]:443", id="IPv6, no port, by TLS"),
        pytest.param("http://h", "http://h", "h:80", id="no port"),
        pytest.param("https://h:1", "https://h:1", "h:1", id="the first port"),
        pytest.param("https://h:65535//", "https://h:65535", "h:65535", id="the last port"),
    ],
)
def test_server(tmp_path: Path, server: str, expected: str, address: str) -> None:
    """The server's URL as it is used, and host:port as errors name it."""
    loaded = load(write(tmp_path / "config", cluster={"server": server}))
    assert (loaded.server, loaded.address) == (expected, address)


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": {"certificate-authority-data": b64("CA")}},
        {"user": {"client-certificate-data": b64("C"), "client-key-data": b64("K")}},
    ],
    ids=["an authority", "a client certificate"],
)
def test_a_server_without_a_scheme_is_asked_by_tls_where_there_is_something_for_it(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """client-go's rule for a bare host and port."""
    cluster = {"server": "h:6443"} | changes.get("cluster", {})
    assert load(write(tmp_path / "config", cluster=cluster, user=changes.get("user", {}))).server == "https://h:6443"


def test_what_a_kubeconfig_leaves_out(tmp_path: Path) -> None:
    """Nobody, in the namespace `default`; certificates are looked at."""
    loaded = load(write(tmp_path / "config", context={"user": ""}))
    assert (loaded.namespace, loaded.insecure, loaded.headers, loaded.tls_server_name) == ("default", False, (), "")
    assert loaded.auth.credential(NOW) == Credential()
    assert load(write(tmp_path / "config", cluster={"insecure-skip-tls-verify": True})).insecure is True
    assert load(write(tmp_path / "config"), "c").context == "c"


@pytest.mark.parametrize(
    "user",
    [{"as-groups": ["g"]}, {"as-uid": "1"}, {"as-user-extra": {"a": ["b"]}}],
    ids=["a group", "a uid", "an extra"],
)
def test_who_is_impersonated_has_a_name(tmp_path: Path, user: dict[str, Any]) -> None:
    """Nothing of somebody is impersonated alone."""
    with pytest.raises(ConfigError, match="impersonating a group, uid or extra needs a user name"):
        load(write(tmp_path / "config", user=user))
    assert load(write(tmp_path / "config", user={"as": "a"})).headers == (("Impersonate-User", "a"),)


def test_the_contexts_that_there_are(tmp_path: Path) -> None:
    """Sorted; they are reported where none is chosen."""
    path = tmp_path / "config"
    contexts = [{"name": name, "context": {"cluster": "k"}} for name in "bca"]
    path.write_text(yaml.dump({"contexts": contexts}))
    assert config.context_names(str(path)) == ["a", "b", "c"]
    assert config.context_names(environ={"KUBECONFIG": str(path)}) == ["a", "b", "c"]
    assert config.context_names(environ={}) == []
    with pytest.raises(ConfigError) as caught:
        load(path)
    said = "the kubeconfig has no current context; choose one with --context (there is a, b, c)"
    assert (caught.value.message, caught.value.reason) == (said, "ContextMissing")
    path.write_text(yaml.dump({"clusters": [{"name": "k", "cluster": {"server": "https://h"}}]}))
    with pytest.raises(ConfigError, match=r"\(there is none\)"):
        load(path)


def test_files_are_relative_to_the_one_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that was named from the folder that one is in, which may be left."""
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "token").write_text("t")
    write(tmp_path / "some" / "config", user={"tokenFile": "token"})
    monkeypatch.chdir(tmp_path)
    loaded = config.load("some/config", environ={})
    monkeypatch.chdir("/")
    assert loaded.auth.credential(NOW).authorization == "Bearer t"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("plugin", "plugin"),
        ("./plugin", "/a/./plugin"),
        ("bin/plugin", "/a/bin/plugin"),
        ("/bin/plugin", "/bin/plugin"),
    ],
)
def test_where_a_program_is(text: str, path: str) -> None:
    """A name alone is looked up in PATH."""
    assert From("/a").command(text) == path


@pytest.mark.parametrize("gone", ["contexts", "clusters"])
def test_half_a_kubeconfig_is_one(tmp_path: Path, gone: str) -> None:
    """Missing entries are reported, and no service account is used instead."""
    document = yaml.load((write(tmp_path / "config")).read_bytes())
    del document[gone]
    (tmp_path / "config").write_text(yaml.dump(document))
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "config")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A folder in its place, of the kubeconfig and of what it names."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert caught.value.message == f'error loading config file "{tmp_path}": is a directory'
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path / "config", cluster={"certificate-authority": str(tmp_path)}))
    assert caught.value.message == f"unable to read {tmp_path}: is a directory"


@pytest.mark.parametrize(
    ("environ", "server"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "https://10.0.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "6443"}, "https://h:6443"),
    ],
)
def test_where_a_pod_finds_its_server(tmp_path: Path, environ: dict[str, str], server: str) -> None:
    """By the environment; without a file for it the namespace is `default`."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("CA")
    loaded = config.load(environ=environ, service_account=tmp_path)
    assert (loaded.server, loaded.namespace) == (server, "default")
    with pytest.raises(ConfigError, match="no such file"):
        config.load(str(tmp_path / "none"), environ=environ, service_account=tmp_path)
    with pytest.raises(ConfigError, match='context "x" does not exist'):
        config.load(context="x", environ=environ, service_account=tmp_path)
    (tmp_path / "token").unlink()
    with pytest.raises(ConfigError, match="Missing or incomplete") as caught:
        config.load(environ=environ, service_account=tmp_path)
    assert caught.value.reason == "KubeconfigMissing"
    (tmp_path / "token").write_text("t")
    with pytest.raises(ConfigError, match="Missing or incomplete"):
        config.load(environ={}, service_account=tmp_path)


def test_kubeconfig_goes_before_home(tmp_path: Path) -> None:
    """And home counts only where nothing is named."""
    write(tmp_path / ".kube" / "config")
    write(tmp_path / "other", cluster={"server": "https://other"})
    environ = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "other")}
    assert config.load(environ=environ).server == "https://other"
    assert config.load(environ=environ | {"KUBECONFIG": ""}).server == "https://h:6443"
    with pytest.raises(ConfigError, match="Missing or incomplete"):
        config.load(environ=environ | {"KUBECONFIG": str(tmp_path / "none")}, service_account=tmp_path)


def test_a_credential_is_not_printed() -> None:
    """Nor what a configuration has of one."""
    assert repr(Credential("Bearer hush", b"hush", b"hush")) == "Credential(...)"
    assert repr(ClusterConfig(server="https://h", context="c")) == "ClusterConfig(server='https://h', context='c')"


@pytest.mark.parametrize("token", ["a\nb", "a\tb", "a\x7f", "caf\u00e9"])
def test_a_token_that_no_header_holds(token: str) -> None:
    """It is not told."""
    with pytest.raises(ConfigError) as caught:
        bearer_credential(token)
    assert caught.value.message == "the token cannot be sent: it must be one line of ASCII characters"
    assert bearer_credential("a b~!").authorization == "Bearer a b~!"


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
    """Without a token from before there is none to continue with."""
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
        pytest.param({"cluster": {"server": "ftp://x"}}, "not the URL of a server", id="a server that is not a URL"),
        pytest.param({"cluster": {"server": "https://h:70000"}}, "not the URL of a server", id="an impossible port"),
        pytest.param({"cluster": {"server": "https://h:0"}}, "not the URL of a server", id="no port at all"),
        pytest.param({"cluster": {"server": "https://:6443"}}, "not the URL of a server", id="no host"),
        pytest.param({"cluster": {"server": "https://["}}, "not the URL of a server", id="half an address"),
        pytest.param({"user": {"client-certificate-data": "S0VZ"}}, "given together", id="a certificate without a key"),
        pytest.param({"user": {"token": "a\nb"}}, "the kubeconfig's token cannot be sent", id="a token of two lines"),
        pytest.param({"cluster": {"proxy-url": "http://p"}}, "proxy-url is not supported", id="a proxy"),
        pytest.param({"cluster": {"certificate-authority": "x"}}, "x: no such file", id="a CA file that is missing"),
        pytest.param(
            {"cluster": {"certificate-authority-data": "Q0E=", "insecure-skip-tls-verify": True}},
            "exclude each other",
            id="a CA and no verification",
        ),
        pytest.param({"user": {"client-key-data": "S0VZ"}}, "given together", id="a key without a certificate"),
        pytest.param({"user": {"client-key-data": "%"}}, "not base64", id="data that is not base64"),
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


CA = "Y2E="
EMBEDDED: dict[str, Any] = {
    "current-context": "admin",
    "contexts": [{"name": "admin", "context": {"cluster": "hosted", "user": "admin"}}],
    "clusters": [{"name": "hosted", "cluster": {"server": "https://hosted:6443", "certificate-authority-data": CA}}],
    "users": [{"name": "admin", "user": {"token": "abc"}}],
}


def test_a_kubeconfig_of_another_cluster_has_everything_in_itself() -> None:
    """Its address, its authority and its credentials are taken as they are."""
    found = config.of_untrusted(json.dumps(EMBEDDED).encode(), "Secret clusters/admin")
    assert (found.server, found.ca_data) == ("https://hosted:6443", b"ca")


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        pytest.param({}, {"exec": {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}}, "a program"),
        pytest.param({}, {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, "names files"),
        pytest.param({}, {"client-key": "/etc/kubernetes/admin.key", "client-certificate": "x"}, "names files"),
        pytest.param({"certificate-authority": "/etc/passwd"}, {}, "certificate authority as data"),
        pytest.param({"insecure-skip-tls-verify": True, "certificate-authority-data": ""}, {}, "authority as data"),
        pytest.param({"server": "http://api.hosted:80", "certificate-authority-data": ""}, {}, "reached by https"),
        pytest.param({"server": ""}, {}, "has no server"),
    ],
    ids=["program", "token file", "key file", "authority file", "unverified", "no TLS", "no server"],
)
def test_a_kubeconfig_of_another_cluster_reads_and_starts_nothing_here(
    cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    """Its author must not get a file of this machine sent to another server, or a program started."""
    [entry] = EMBEDDED["clusters"]
    document = EMBEDDED | {
        "clusters": [{**entry, "cluster": entry["cluster"] | cluster}],
        "users": [{"name": "admin", "user": user or {"token": "abc"}}],
    }
    with pytest.raises(ConfigError, match=message):
        config.of_untrusted(json.dumps(document).encode(), "Secret clusters/admin")


def test_text_that_is_not_a_kubeconfig_is_refused() -> None:
    """The error names its source."""
    with pytest.raises(ConfigError, match="Secret clusters/admin is not a kubeconfig"):
        config.of_untrusted(b"clusters: {", "Secret clusters/admin")
