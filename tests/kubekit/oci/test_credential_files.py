"""Docker's and podman's credential files and helpers: which login counts for which image, and what is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubekit.oci.credentials import AuthFile, Credentials, Login, default_files, load_credentials, parse_auth_file
from kubekit.oci.reference import parse as reference
from kubekit.oci.registry_errors import BadCredentials

ANN, BOB, EVE = Login("ann", "a:b"), Login("bob", "word"), Login("eve", "x")
SECRET = "hunter2-is-never-printed"


def auth(login: Login) -> dict[str, str]:
    """An entry of `auths`."""
    return {"auth": base64.b64encode(f"{login.user}:{login.password}".encode()).decode()}


def read(document: Any) -> AuthFile:
    """The document as a file."""
    return parse_auth_file(document if isinstance(document, bytes) else json.dumps(document).encode(), "the file")


@pytest.mark.parametrize(
    ("auths", "image", "expected"),
    [
        pytest.param({"quay.io": auth(ANN)}, "quay.io/a/b:1", ANN, id="by registry"),
        pytest.param({"quay.io": auth(ANN)}, "quay.io:443/a/b:1", None, id="a port makes it another registry"),
        pytest.param({"quay.io": auth(ANN)}, "other.io/a/b:1", None, id="another registry"),
        pytest.param({"quay.io": auth(ANN), "quay.io/a": auth(BOB)}, "quay.io/a/b:1", BOB, id="by part of the path"),
        pytest.param({"quay.io/a": auth(ANN), "quay.io/a/b": auth(BOB)}, "quay.io/a/b:1", BOB, id="the longest counts"),
        pytest.param({"quay.io": auth(ANN), "quay.io/a": auth(BOB)}, "quay.io/ab/c:1", ANN, id="not by half a name"),
        pytest.param({"https://quay.io": auth(ANN)}, "quay.io/a:1", ANN, id="written as a URL"),
        pytest.param({"https://quay.io/v2/": auth(ANN)}, "quay.io/a:1", ANN, id="written as the URL of its API"),
        pytest.param({"https://index.docker.io/v1/": auth(ANN)}, "a/b:1", ANN, id="Docker Hub, as docker writes it"),
        pytest.param({"docker.io": auth(ANN)}, "docker.io/a/b:1", ANN, id="Docker Hub, as podman writes it"),
        pytest.param({"quay.io": {}}, "quay.io/a:1", None, id="an empty entry is nobody"),
        pytest.param({"quay.io": auth(ANN), "quay.io/a": {}}, "quay.io/a:1", ANN, id="an empty one decides nothing"),
        pytest.param({"http://quay.io/v1": auth(ANN)}, "quay.io/a:1", ANN, id="written as an older API's URL"),
        pytest.param({"quay.io/v1": auth(ANN)}, "quay.io/a:1", None, id="a repository called like an API"),
        pytest.param({"quay.io/v1": auth(ANN)}, "quay.io/v1/a:1", ANN, id="below a repository called like an API"),
        pytest.param({"https://quay.io/a/": auth(ANN)}, "quay.io/a:1", ANN, id="a repository written as a URL"),
        *(
            pytest.param({key: auth(ANN)}, "busybox:1", ANN, id=f"Docker Hub as {key}")
            for key in (
                "index.docker.io",
                "registry-1.docker.io",
                "index.docker.io/v1",
                "https://registry-1.docker.io/v2/",
            )
        ),
        pytest.param({"quay.io": {"username": "bob"}}, "quay.io/a:1", None, id="a name without a password is nobody"),
        pytest.param(
            {"quay.io": {"username": "", "password": "x", **auth(ANN)}}, "quay.io/a:1", ANN, id="a password of nobody"
        ),
        pytest.param(
            {"quay.io": {"username": "bob", "password": ""}}, "quay.io/a:1", Login("bob", ""), id="an empty one"
        ),
        pytest.param({"quay.io": {"username": "bob", "password": "word"}}, "quay.io/a:1", BOB, id="in two fields"),
        pytest.param(
            {"quay.io": {"identitytoken": "t", **auth(ANN)}}, "quay.io/a:1", Login(identity_token="t"), id="a token"
        ),
        pytest.param(
            {"quay.io": {"auth": base64.b64encode(b"bob:word\0\0").decode()}}, "quay.io/a:1", BOB, id="padded with NULs"
        ),
        pytest.param({"localhost:5000": auth(ANN)}, "localhost:5000/a:1", ANN, id="a registry with a port"),
    ],
)
def test_whose_login(auths: dict[str, Any], image: str, expected: Login | None) -> None:
    """By registry, or the longest part of the repository (containers-auth.json(5))."""
    assert read({"auths": auths}).login(reference(image)) == expected


def test_a_login_is_never_printed() -> None:
    """Neither the password nor the token is in what a log or a traceback would show."""
    for login in (Login("ann", SECRET), Login(identity_token=SECRET)):
        assert SECRET not in repr(Credentials((AuthFile("f", {"h": login}),)))
    assert ANN.basic == "Basic " + base64.b64encode(b"ann:a:b").decode()
    assert Login(identity_token=SECRET).basic == Login("ann", "word", "t").basic == Login().basic == ""
    assert Login("ann").basic == "Basic " + base64.b64encode(b"ann:").decode()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(b"{", "the file: is not JSON", id="no JSON"),
        pytest.param(b"\xff", "the file: is not JSON", id="no text"),
        pytest.param(b"[" * 100_000, "the file: is not JSON", id="lists without end"),
        pytest.param([], "the file: is not a JSON object", id="a list"),
        pytest.param({"auths": [SECRET]}, "the file: auths is not an object", id="auths as a list"),
        pytest.param({"auths": {"h": SECRET}}, "the file: auths[h]: is not an object", id="an entry as text"),
        pytest.param({"auths": {"h": {"auth": SECRET}}}, "auths[h]: auth is not base64", id="a password as it is"),
        pytest.param(
            {"auths": {"h": {"auth": base64.b64encode(SECRET.encode()).decode()}}},
            "base64 of user:password",
            id="no colon",
        ),
        pytest.param(
            {"auths": {"h": {"auth": base64.b64encode(b"\xff:x").decode()}}},
            "base64 of user:password",
            id="no text in it",
        ),
        pytest.param({"credHelpers": ["x"]}, "the file: credHelpers is not an object", id="helpers as a list"),
        pytest.param({"credsStore": "-x"}, "'-x' is not the name of a credential helper", id="an option"),
        pytest.param(
            {"credHelpers": {"h": "../../bin/sh"}}, "is not the name of a credential helper", id="a helper's path"
        ),
        pytest.param({"credsStore": ["x"]}, "is not the name of a credential helper", id="a list of helpers"),
    ],
)
def test_a_file_that_is_none(document: Any, said: str) -> None:
    """The error names the file and the entry, never what is in it."""
    with pytest.raises(BadCredentials) as refused:
        read(document)
    assert said in refused.value.message
    assert SECRET not in refused.value.message


def helper(folder: Path, name: str, script: str) -> None:
    """A credential helper."""
    program = folder / f"docker-credential-{name}"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


HELPERS = {
    "good": 'read -r server; echo "{\\"Username\\": \\"bob\\", \\"Secret\\": \\"$server\\"}"',
    "token": 'echo \'{"Username": "<token>", "Secret": "t"}\'',
    "none": "echo 'credentials not found in native keychain'; exit 1",
    "failing": f"echo {SECRET}; exit 3",
    "odd": f"echo {SECRET}",
    "nested": "head -c 100000 /dev/zero | tr '\\0' '['",
}


@pytest.mark.parametrize(
    ("document", "image", "expected"),
    [
        pytest.param({"credHelpers": {"quay.io": "good"}}, "quay.io/a:1", Login("bob", "quay.io"), id="one registry's"),
        pytest.param({"credHelpers": {"quay.io": "good"}}, "other.io/a:1", None, id="not another's"),
        pytest.param({"credsStore": "good"}, "other.io/a:1", Login("bob", "other.io"), id="for every registry"),
        pytest.param(
            {"credsStore": "good"}, "a/b:1", Login("bob", "https://index.docker.io/v1/"), id="Docker Hub by its old URL"
        ),
        pytest.param(
            {"credsStore": "good"},
            "a.example/b:1",
            Login("bob", "a.example"),
            id="one before it in the alphabet by its own",
        ),
        pytest.param({"credsStore": "token"}, "quay.io/a:1", Login(identity_token="t"), id="a token"),
        pytest.param({"credsStore": "none"}, "quay.io/a:1", None, id="one that knows nobody"),
        pytest.param(
            {"credHelpers": {"quay.io": "good"}, "auths": {"quay.io": auth(ANN)}},
            "quay.io/a:1",
            Login("bob", "quay.io"),
            id="before what is in the file",
        ),
        pytest.param(
            {"credsStore": "good", "auths": {"quay.io": auth(ANN)}}, "quay.io/a:1", ANN, id="the file before the store"
        ),
        pytest.param(
            {"credsStore": "good", "auths": {"quay.io": {}}},
            "quay.io/a:1",
            Login("bob", "quay.io"),
            id="as docker leaves it",
        ),
    ],
)
def test_helpers(
    document: dict[str, Any], image: str, expected: Login | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get the server on stdin and answer with a login."""
    for name, script in HELPERS.items():
        helper(tmp_path, name, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert read(document).login(reference(image)) == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("missing", "must know the login for quay.io, is not on PATH", id="not there"),
        pytest.param("failing", "docker-credential-failing failed for quay.io with exit code 3", id="it fails"),
        pytest.param("odd", "docker-credential-odd answered something else than a login", id="it talks"),
        pytest.param("nested", "docker-credential-nested answered something else than a login", id="lists without end"),
    ],
)
def test_a_helper_that_does_not_help(name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error, never "no credentials"; what it printed is not in it."""
    for known, script in HELPERS.items():
        helper(tmp_path, known, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(BadCredentials) as refused:
        read({"credHelpers": {"quay.io": name}}).login(reference("quay.io/a:1"))
    assert said in refused.value.message
    assert SECRET not in refused.value.message


def test_a_helper_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up after half a minute, or whatever was said."""
    helper(tmp_path, "slow", "exec sleep 60")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("kubekit.oci.credentials.HELPER_TIMEOUT_S", 0.05)
    with pytest.raises(BadCredentials, match=r"must know the login for quay\.io, did not answer: .* timed out"):
        read({"credsStore": "slow"}).login(reference("quay.io/a:1"))


def test_the_first_file_that_knows_a_registry_decides() -> None:
    """Also where it says that it is nobody's, which is not to know it."""
    files = (AuthFile("one", {"quay.io": None}), AuthFile("two", {"quay.io": ANN}), AuthFile("three", {"quay.io": BOB}))
    assert Credentials(files).login(reference("quay.io/a:1")) == ANN
    assert Credentials(files).login(reference("other.io/a:1")) is None


@pytest.mark.parametrize(
    ("environ", "places"),
    [
        ({}, ["/nonexistent/.config/containers/auth.json", "/nonexistent/.docker/config.json"]),
        ({"HOME": "/h"}, ["/h/.config/containers/auth.json", "/h/.docker/config.json"]),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "DOCKER_CONFIG": "/d", "XDG_RUNTIME_DIR": "/r"},
            ["/r/containers/auth.json", "/c/containers/auth.json", "/d/config.json"],
        ),
    ],
)
def test_the_environment_says_where(environ: dict[str, str], places: list[str]) -> None:
    """As podman and docker have it."""
    assert [str(path) for path in default_files(environ)] == places


def test_where_files_are_looked_for(tmp_path: Path) -> None:
    """Podman's before docker's; the first that knows a registry decides; those that are not there are passed over."""
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    places = default_files(environ)
    assert [path.relative_to(tmp_path).as_posix() for path in places] == [
        "run/containers/auth.json", ".config/containers/auth.json", ".docker/config.json",
    ]  # fmt: skip
    assert load_credentials(environ=environ).login(reference("quay.io/a:1")) is None
    for path, login in ((places[1], BOB), (places[2], ANN)):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"auths": {"quay.io": auth(login)}}))
    places[2].write_text(json.dumps({"auths": {"quay.io": auth(ANN), "other.io": auth(EVE)}}))
    assert load_credentials(environ=environ).login(reference("quay.io/a:1")) == BOB
    assert load_credentials(environ=environ).login(reference("other.io/a:1")) == EVE


@pytest.mark.parametrize("named", ["flag", "environment"])
def test_a_file_that_was_named_counts_alone(named: str, tmp_path: Path) -> None:
    """Nothing else is asked; where it is not there, that is the error."""
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"auths": {"quay.io": auth(ANN)}}))
    path = tmp_path / "auth.json"

    def loaded() -> Credentials:
        environ: Mapping[str, str] = {"HOME": str(tmp_path)}
        if named == "flag":
            return load_credentials(str(path), {**environ, "REGISTRY_AUTH_FILE": "/nowhere"})
        return load_credentials("", {**environ, "REGISTRY_AUTH_FILE": str(path)})

    with pytest.raises(BadCredentials, match=r"auth\.json: the credential file cannot be read: No such file"):
        loaded()
    path.write_text("{}")
    assert loaded().login(reference("quay.io/a:1")) is None
