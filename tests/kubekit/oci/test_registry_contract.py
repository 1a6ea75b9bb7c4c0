"""The registry client against registries that exist: what was pushed is what is pulled, and refusals are told apart."""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubekit.oci.registries import REAL, release, sandbox_registry, writing

from kubekit.oci.access import Access
from kubekit.oci.credentials import AuthFile, Credentials, Login
from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import ImageNotFound, Unauthorized
from runup.sandbox.processes.services import load_or_create_writer, write_credentials_file

FOLDERS = ("manifests", "release-manifests")
NONE = Access()


@pytest.fixture(params=REAL)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A registry that everybody may read."""
    with REAL[request.param](tmp_path) as found:
        yield found


@pytest.fixture(params=REAL)
def guarded_host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A registry that knows one user."""
    with REAL[request.param](tmp_path, users={"ann": "s3cret:with-colon"}) as found:
        yield found


def access(host: str, login: Login) -> Access:
    """Ways to a registry for one user."""
    return Access(credentials=Credentials((AuthFile("test", {host: login}),)))


def test_what_was_pushed_is_pulled(host: str, tmp_path: Path) -> None:
    """By tag and by digest, byte for byte, from an empty layout."""
    built = release(tmp_path / "made")
    client = RegistryClient(writing(host))
    client.push(Layout.open(built.layout), built.digest, parse(f"{host}/ocp/release:5.2.0"))
    assert client.resolve(parse(f"{host}/ocp/release:5.2.0")) == built.digest
    for number, name in enumerate((f"{host}/ocp/release:5.2.0", f"{host}/ocp/release@{built.digest}")):
        layout = Layout.create(tmp_path / f"pulled-{number}")
        assert client.pull(parse(name), layout) == built.digest
        found = read_folders(open_image(layout, built.digest), FOLDERS)
        assert found == read_folders(open_image(Layout.open(built.layout)), FOLDERS)


def test_a_second_push_sends_no_blob(host: str, tmp_path: Path) -> None:
    """An existing layer counts as sent: it is gone here, and the push succeeds."""
    built = release(tmp_path / "made")
    layout = Layout.open(built.layout)
    client = RegistryClient(writing(host))
    client.push(layout, built.digest, parse(f"{host}/ocp/release:one"))
    layout.blob(open_image(layout).manifest.layers[0].digest).unlink()
    client.push(layout, built.digest, parse(f"{host}/ocp/release:two"))
    assert client.resolve(parse(f"{host}/ocp/release:two")) == built.digest


def test_one_file_is_read_without_pulling(host: str, tmp_path: Path) -> None:
    """The bytes of the file, and an error for one that the image has not."""
    built = release(tmp_path / "made")
    client = RegistryClient(writing(host))
    name = parse(f"{host}/ocp/release@{built.digest}")
    client.push(Layout.open(built.layout), built.digest, parse(f"{host}/ocp/release:5.2.0"))
    assert client.read_file(name, "release-manifests/a.yaml").startswith(b"kind: ConfigMap")
    with pytest.raises(ImageNotFound, match="has no file etc/passwd"):
        client.read_file(name, "etc/passwd")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ocp/release:nothing", id="a tag"),
        pytest.param("ocp/release@sha256:" + "0" * 64, id="a digest"),
        pytest.param("no/such/repository:1", id="a repository"),
    ],
)
def test_what_is_not_there_is_said_in_a_kubelets_words(host: str, tmp_path: Path, name: str) -> None:
    """Users and operators look for `manifest unknown`."""
    with pytest.raises(ImageNotFound, match="manifest unknown") as caught:
        RegistryClient(NONE).pull(parse(f"{host}/{name}"), Layout.create(tmp_path / "layout"))
    assert name in caught.value.message


def test_a_user_is_let_in(guarded_host: str, tmp_path: Path) -> None:
    """Push and pull with the user's password, which has a colon in it."""
    built = release(tmp_path / "made")
    client = RegistryClient(access(guarded_host, Login("ann", "s3cret:with-colon")))
    client.push(Layout.open(built.layout), built.digest, parse(f"{guarded_host}/ocp/release:5.2.0"))
    assert client.pull(parse(f"{guarded_host}/ocp/release:5.2.0"), Layout.create(tmp_path / "pulled")) == built.digest


@pytest.mark.parametrize(
    ("login", "said"),
    [
        pytest.param(None, "wants credentials, and none are known for", id="nobody"),
        pytest.param(Login("ann", "wrong-word"), "refused", id="a wrong password"),
    ],
)
def test_others_are_told_apart(guarded_host: str, tmp_path: Path, login: Login | None, said: str) -> None:
    """No credentials is not the same as wrong ones; no password is ever in a message."""
    ways = NONE if login is None else access(guarded_host, login)
    with pytest.raises(Unauthorized, match=said) as caught:
        RegistryClient(ways).pull(parse(f"{guarded_host}/ocp/release:5.2.0"), Layout.create(tmp_path / "pulled"))
    assert "wrong-word" not in caught.value.message
    assert guarded_host in caught.value.message


def test_everybody_reads_and_only_the_writer_writes(tmp_path: Path) -> None:
    """Another user of the machine reaches the sandbox's registry too, and must not change what a cluster runs."""
    built = release(tmp_path / "made")
    layout = Layout.open(built.layout)
    with sandbox_registry(tmp_path) as host:
        name = parse(f"{host}/ocp/release:5.2.0")
        for ways, said in ((NONE, "none are known for"), (access(host, Login("writer", "wrong")), "refused pushing")):
            with pytest.raises(Unauthorized, match=said):
                RegistryClient(ways).push(layout, built.digest, name)
        RegistryClient(writing(host)).push(layout, built.digest, name)
        assert RegistryClient(NONE).pull(name, Layout.create(tmp_path / "pulled")) == built.digest


WRITES = [
    ("POST", "blobs/uploads/"),
    ("POST", f"blobs/uploads/?mount=sha256:{'0' * 64}&from=a/b"),
    ("PATCH", "blobs/uploads/abc"),
    ("PUT", f"blobs/uploads/abc?digest=sha256:{'0' * 64}"),
    ("PUT", "manifests/5.2.0"),
    ("DELETE", "manifests/5.2.0"),
]


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_no_writing_request_gets_by(tmp_path: Path, method: str, path: str) -> None:
    """Whatever the path: the method decides, before anything is looked up."""
    with sandbox_registry(tmp_path) as host:
        request = urllib.request.Request(f"http://{host}/v2/ocp/release/{path}", data=b"x", method=method)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=90)
        assert caught.value.code == 401
        assert caught.value.headers["WWW-Authenticate"].startswith("Basic")
        caught.value.close()
    assert [path.name for path in (tmp_path / "registry").iterdir() if path.name.startswith(".incoming")] == []


def test_skopeo_pushes_with_the_kept_secret(tmp_path: Path) -> None:
    """The file is one that other programs read; it is its owner's alone, and another start keeps the password."""
    if (skopeo := shutil.which("skopeo")) is None:
        pytest.skip("skopeo is not installed")
    built = release(tmp_path / "made")
    source = f"oci:{built.layout}:5.2.0"
    file = tmp_path / "auth.json"
    with sandbox_registry(tmp_path) as host:
        write_credentials_file(file, host, {"writer": "word"})
        command = [skopeo, "--insecure-policy", "copy", "--dest-tls-verify=false"]
        target = f"docker://{host}/ocp/release:5.2.0"
        nobody = [*command, "--dest-no-creds", source, target]
        assert subprocess.run(nobody, capture_output=True, check=False).returncode != 0
        known = [*command, "--dest-authfile", str(file), source, target]
        done = subprocess.run(known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        inspect = [skopeo, "inspect", "--no-creds", "--tls-verify=false", target]
        assert built.digest in subprocess.run(inspect, capture_output=True, text=True, check=True).stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert load_or_create_writer(file) == {"writer": "word"}
    (user, word), *_ = load_or_create_writer(tmp_path / "nothing").items()
    assert (user, len(word) > 30) == ("runup", True)
