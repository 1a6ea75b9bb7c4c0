"""Registries that lie, break off, are overloaded, want credentials or are not there, and how a pull ought to end."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from tests.kubekit.oci.registries import Answer, Asked, Odd, basic, odd_registry, release

from bench.measure import Run, process
from kubekit.oci import images
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from runup.release.control.image_build import BuiltImage

DEADLINE_S = 20
MIB = 1 << 20
USER, PASSWORD = "ann", "a word"


@dataclass(frozen=True, slots=True)
class Done:
    """How a process ended; `refused` is the error's type, empty where it succeeded, None where it was ended."""

    run: Run
    refused: str | None
    message: str


def do(folder: Path, job: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Done:
    """Do `job` in a process of its own; what it leaves is below `folder`."""
    outcome = folder / "outcome.json"
    outcome.unlink(missing_ok=True)
    text = json.dumps({"deadline_s": DEADLINE_S, "outcome": str(outcome), **job})
    # Neither finds credentials or proxies of whoever runs this.
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), **(env or {})}
    run = process([sys.executable, "-m", "bench.speed.registry_pull", text], clean)
    if run.code == -signal.SIGALRM:
        return Done(run, None, "")
    found = json.loads(outcome.read_text())
    return Done(run, found["refused"], found["message"])


@dataclass(frozen=True)
class World:
    """A release in a layout, served by `odd`; `spare` has the same and always answers."""

    folder: Path
    built: BuiltImage
    odd: Odd
    spare: Odd

    @property
    def layout(self) -> Layout:
        """What is served."""
        return Layout.open(self.built.layout)

    @property
    def layer(self) -> images.Descriptor:
        """The image's layer."""
        return open_image(self.layout, self.built.digest).manifest.layers[0]

    @property
    def layer_data(self) -> bytes:
        """Its bytes."""
        return self.layout.blob(self.layer.digest).read_bytes()

    def pull(self, **more: Any) -> dict[str, Any]:
        """The job of pulling the image by digest."""
        return {"do": "pull", "image": f"{self.odd.host}/ocp/release@{self.built.digest}", **more}


@dataclass(frozen=True, slots=True)
class Case:
    """A registry that behaves as `prepare` makes it; gives the job. `right` says whether the end is the wanted one."""

    wanted: str
    prepare: Callable[[World], dict[str, Any]]
    right: Callable[[World, Done], bool]
    env: Callable[[World], dict[str, str]] = field(default=lambda _world: {})


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    """A release below `folder` and two registries that have it."""
    with ExitStack() as stack:
        built = release(folder / "made", **{"release-manifests/b.yaml": b"# " + os.urandom(MIB).hex().encode()})
        layout = Layout.open(built.layout)
        odd, spare = (stack.enter_context(odd_registry(layout)) for _ in range(2))
        yield World(folder, built, odd, spare)


def _succeeded(_world: World, done: Done) -> bool:
    return done.refused == ""


def _refused(_world: World, done: Done) -> bool:
    return bool(done.refused)


def _told_apart(_world: World, done: Done) -> bool:
    """Whether a program can tell by the type; a ValueError is what every other refusal is too."""
    return done.refused not in (None, "", "ValueError")


def _waited(seconds: float) -> Callable[[World, Done], bool]:
    return lambda _world, done: done.refused == "" and seconds <= done.run.seconds < seconds + 1.5


def _answering(rule: Callable[[World, Asked], Answer | None]) -> Callable[[World], dict[str, Any]]:
    def prepare(world: World) -> dict[str, Any]:
        world.odd.rule = lambda asked: rule(world, asked)
        return world.pull()

    return prepare


def _once(part: str, answer: Answer) -> Callable[[World], dict[str, Any]]:
    def rule(world: World, asked: Asked) -> Answer | None:
        first = sum(part in earlier.path for earlier in world.odd.asked) == 1
        return answer if first and part in asked.path else None

    return _answering(rule)


def _layer(change: Callable[[bytes], bytes]) -> Callable[[World], dict[str, Any]]:
    return _answering(lambda w, asked: Answer(200, change(w.layer_data)) if w.layer.digest in asked.path else None)


def _manifest(change: Callable[[bytes], bytes]) -> Callable[[World], dict[str, Any]]:
    def rule(world: World, asked: Asked) -> Answer | None:
        return Answer(200, change(world.layout.read(world.built.digest))) if "manifests" in asked.path else None

    return _answering(rule)


def _breaking_off(world: World) -> dict[str, Any]:
    def rule(asked: Asked) -> Answer | None:
        if world.layer.digest not in asked.path:
            return None
        data = world.layer_data
        if not asked.headers.get("Range"):
            first = sum(world.layer.digest in path for path in world.odd.paths()) == 1
            return Answer(200, data, cut=len(data) // 2 if first else None)
        start = int(asked.headers["Range"].removeprefix("bytes=").rstrip("-"))
        return Answer(206, data[start:], {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"})

    world.odd.rule = rule
    return world.pull()


def _schema_2(world: World) -> dict[str, Any]:
    manifest = open_image(world.layout, world.built.digest).manifest
    data = msgspec.json.encode(msgspec.structs.replace(manifest, media_type=images.DOCKER_MANIFEST))
    digest = world.layout.add_blob(data)
    world.layout.add_manifest(images.Descriptor(media_type=images.DOCKER_MANIFEST, digest=digest, size=len(data)))
    return world.pull() | {"image": f"{world.odd.host}/ocp/release@{digest}"}


def _index(world: World) -> dict[str, Any]:
    known = world.layout.resolve(world.built.digest)
    other = release(world.built.layout, "5.2.1")
    described = tuple(
        msgspec.structs.replace(item, annotations={}, platform=images.Platform(architecture=machine, os="linux"))
        for item, machine in ((known, "amd64"), (world.layout.resolve(other.digest), "arm64"))
    )
    data = msgspec.json.encode(images.Index(schema_version=2, media_type=images.INDEX, manifests=described))
    digest = world.layout.add_blob(data)
    world.layout.add_manifest(images.Descriptor(media_type=images.INDEX, digest=digest, size=len(data)))
    return world.pull() | {"image": f"{world.odd.host}/ocp/release@{digest}"}


def _one_architecture(world: World, done: Done) -> bool:
    pulled = Layout(world.folder / "pulled")
    other = world.layout.resolve("5.2.1").digest
    return done.refused == "" and not pulled.blob(other).exists()


def _auth_file(world: World, content: Mapping[str, Any]) -> str:
    path = world.folder / "auth.json"
    path.write_text(json.dumps(content))
    return str(path)


def _for_repository(world: World) -> dict[str, Any]:
    login = {"auth": basic(USER, PASSWORD).removeprefix("Basic ")}
    _wants_password(world)
    auths = {world.odd.host: {"auth": basic("bob", "another").removeprefix("Basic ")}}
    file = _auth_file(world, {"auths": {**auths, f"{world.odd.host}/ocp": login}})
    return world.pull(auth_file=file, auth_backend="basic")


def _for_host(backend: str) -> Callable[[World], dict[str, Any]]:
    def prepare(world: World) -> dict[str, Any]:
        _wants_password(world)
        login = {"auth": basic(USER, PASSWORD).removeprefix("Basic ")}
        return world.pull(auth_file=_auth_file(world, {"auths": {world.odd.host: login}}), auth_backend=backend)

    return prepare


def _by_helper(world: World) -> dict[str, Any]:
    _wants_password(world)
    helper = world.folder / "docker-credential-bench"
    helper.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps({'Username': USER, 'Secret': PASSWORD})}'\n")
    helper.chmod(0o755)
    file = _auth_file(world, {"auths": {world.odd.host: {}}, "credHelpers": {world.odd.host: "bench"}})
    return world.pull(auth_file=file, auth_backend="basic")


def _wants_password(world: World) -> None:
    def rule(asked: Asked) -> Answer | None:
        if asked.headers.get("Authorization") == basic(USER, PASSWORD):
            return None
        return Answer(401, b"", {"WWW-Authenticate": 'Basic realm="bench"'})

    world.odd.rule = rule


def _plain_token_service(world: World) -> dict[str, Any]:
    # 0.0.0.0 leads to this machine and is none of its names.
    realm = f"http://{world.spare.host.replace('127.0.0.1', '0.0.0.0')}/token"
    challenge = {"WWW-Authenticate": f'Bearer realm="{realm}",service="bench"'}
    world.odd.rule = lambda _asked: Answer(401, b"", challenge)
    world.spare.rule = lambda _asked: Answer(200, b'{"token": "t"}')
    login = {"auth": basic(USER, PASSWORD).removeprefix("Basic ")}
    return world.pull(auth_file=_auth_file(world, {"auths": {world.odd.host: login}}))


def _no_password_sent(world: World, done: Done) -> bool:
    return bool(done.refused) and not any("Authorization" in asked.headers for asked in world.spare.asked)


def _mirrored(world: World) -> dict[str, Any]:
    world.odd.rule = lambda _asked: Answer(404)
    return world.pull(mirrors={f"{world.odd.host}/ocp": f"{world.spare.host}/ocp"})


def _nobody(world: World) -> dict[str, Any]:
    return world.pull() | {"image": f"127.0.0.1:1/ocp/release@{world.built.digest}"}


def _pushed(world: World) -> dict[str, Any]:
    """A push after which the manifest must be byte for byte what was signed."""
    uploads: dict[str, bytes] = {}

    def rule(asked: Asked) -> Answer | None:
        if asked.method == "HEAD":
            return Answer(404)
        if asked.method == "POST":
            return Answer(202, b"", {"Location": "/v2/ocp/release/blobs/uploads/1"})
        uploads[asked.path] = asked.body
        return Answer(201)

    world.odd.rule = rule
    job = world.pull() | {"do": "push", "image": f"{world.odd.host}/ocp/release:1", "tag": "5.2.0"}
    return job | {"layout": str(world.built.layout), "digest": world.built.digest}


def _same_manifest(world: World, done: Done) -> bool:
    put = [asked for asked in world.odd.asked if asked.method == "PUT" and "manifests" in asked.path]
    return done.refused == "" and [sha256(asked.body) for asked in put] == [world.built.digest]


CASES = {
    "an honest registry": Case("pulled", lambda world: world.pull(), _succeeded),
    "a push": Case("the manifest arrives byte for byte", _pushed, _same_manifest),
    "a flipped byte in a layer": Case("refused", _layer(lambda data: data[:-1] + b"?"), _refused),
    "another manifest than the digest's": Case("refused", _manifest(lambda data: data + b" "), _refused),
    "a layer 32 MiB longer than it claims": Case("refused", _layer(lambda data: data + bytes(32 * MIB)), _refused),
    "a manifest of 64 MiB": Case("refused", _manifest(lambda data: b" " * (64 * MIB) + data), _refused),
    "a download that breaks off once": Case("goes on where it stopped", _breaking_off, _succeeded),
    "503 once, Retry-After 2": Case(
        "asked again after 2 s", _once("manifests", Answer(503, b"", {"Retry-After": "2"})), _waited(2.0)
    ),
    "429 once, Retry-After 2": Case(
        "asked again after 2 s", _once("manifests", Answer(429, b"", {"Retry-After": "2"})), _waited(2.0)
    ),
    "500 once": Case("asked again", _once("manifests", Answer(500)), _succeeded),
    "nobody listens": Case("an error at once", _nobody, lambda _world, done: bool(done.refused)),
    "no such image": Case("an error of its own type", _answering(lambda _world, _asked: Answer(404)), _told_apart),
    "a Docker schema 2 manifest": Case("pulled", _schema_2, _succeeded),
    "an index of two architectures": Case("one is fetched", _index, _one_architecture),
    "a password, if Basic is known beforehand": Case("pulled", _for_host("basic"), _succeeded),
    "a password, whatever the registry asks for": Case("pulled", _for_host("token"), _succeeded),
    "a password for part of a registry": Case("pulled", _for_repository, _succeeded),
    "a credential helper": Case(
        "pulled", _by_helper, _succeeded, lambda world: {"PATH": f"{world.folder}:{os.environ['PATH']}"}
    ),
    "a token service elsewhere, by plain HTTP": Case("no password is sent", _plain_token_service, _no_password_sent),
    "an image that only a mirror has": Case("pulled", _mirrored, _succeeded),
}
