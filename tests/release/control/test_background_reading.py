"""What is read of a release beside everything else: each once at a time, what failed is told and read again later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.kubekit.oci.layered import Made, layout_in, put_image
from tests.kubekit.oci.registries import Answer, Asked, odd_registry
from tests.release.control.test_registry_access import FORBIDDEN, Answers, cluster

from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock
from kubekit.kube.config import ClusterConfig
from kubekit.oci.registry import RegistryClient
from kubekit.oci.registry_errors import Unverified
from kubekit.oci.signatures import Verified
from runup.advice.control import update_service
from runup.api.preflight_reads_v1 import FILE as READS_FILE
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide import rights
from runup.clusterversion.control.release_verification import RIGHTS_AGAIN, WITHIN_S, ReleaseChecks, text_of
from runup.preflight.decide.deployment_steps import Trust
from runup.release.control import release_images
from runup.release.control import signatures as signature_stores
from runup.release.control.release_images import ReleaseImages, ReleaseUnreadable
from runup.release.control.signatures import MOST_BYTES, merge_signatures, store_signatures
from runup.release.decide.payload import METADATA_FILE

VERSION = json.dumps({"kind": "cincinnati-metadata-v0", "version": "5.2.0"}).encode()


@dataclass
class Scene:
    """Checks of images in one registry, and how often somebody was reported."""

    checks: ReleaseChecks
    clock: ManualClock
    host: str
    layout: Any
    asked: list[Asked]
    notified: list[int] = field(default_factory=list)

    def image(self, *files: Made) -> str:
        """A release with these files; its pull spec."""
        return f"{self.host}/ocp/release@{put_image(self.layout, list(files)).digest}"

    async def settled(self) -> None:
        """Wait until nothing is read any more."""
        async with asyncio.timeout(90):
            await self.checks.settled()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """With a running release that carries no keys."""
    layout, clock, notified = layout_in(tmp_path), ManualClock(), list[int]()
    with odd_registry(layout) as odd:
        async with cluster({}) as client:
            checks = ReleaseChecks(
                client, lambda: None, clock, lambda: notified.append(1), images=ReleaseImages(client)
            )
            yield Scene(checks, clock, odd.host, layout, odd.asked, notified)
            await checks.close()


def manifests(asked: list[Asked]) -> int:
    """How often an image was asked for."""
    return sum("/manifests/" in each.path for each in asked)


async def test_a_version_is_read_once_at_a_time(scene: Scene) -> None:
    """With when that was; whoever asks again later gets it read again."""
    image = scene.image(Made(METADATA_FILE, VERSION))
    for _ in range(2):
        scene.checks.read(image)
    assert scene.checks.states[image].reading
    await scene.settled()
    state = scene.checks.states[image]
    assert (state.version, state.unreadable, state.reading, state.read_at) == ("5.2.0", "", False, scene.clock.now())
    assert (manifests(scene.asked), scene.notified) == (1, [1])
    scene.checks.read(image)
    await scene.settled()
    assert manifests(scene.asked) == 2


async def test_an_image_whose_metadata_is_none_is_no_release(scene: Scene) -> None:
    """It is said with what is wrong, and both ways out."""
    image = scene.image(Made(METADATA_FILE, b"{}"))
    scene.checks.read(image)
    await scene.settled()
    said = scene.checks.states[image].unreadable
    assert said.startswith(f"{image} is not a release image: release-metadata: unrecognized kind")
    assert said.endswith("; name a release image, or set version together with image")


async def test_a_version_that_cannot_be_read_says_why(scene: Scene) -> None:
    """And that nobody reads it any more."""
    image = scene.image(Made("etc/motd", b""))
    scene.checks.read(image)
    await scene.settled()
    state = scene.checks.states[image]
    assert (state.version, state.reading) == ("", False)
    assert "the image has no file release-manifests/release-metadata" in state.unreadable
    assert scene.notified == [1]


def declared(*reads: dict[str, str]) -> Made:
    """The file in which a release declares what its checks read."""
    return Made(READS_FILE, json.dumps({"format": rights.FORMAT, "reads": reads}).encode())


@pytest.mark.parametrize(
    ("files", "known", "logged"),
    [
        pytest.param([], False, ["as this release's"], id="a release that declares none"),
        pytest.param([Made(READS_FILE, b"{")], False, ["as this release's"], id="a file that nobody can read"),
        pytest.param([declared({"group": "g", "resource": "things"})], True, [], id="a kind of its own"),
        pytest.param(
            [declared({"group": "g", "resource": "things"}, {"group": "", "resource": "secrets"})],
            True,
            ["not given"],
            id="and one that nobody is given",
        ),
    ],
)
async def test_what_the_checks_of_a_release_read(
    scene: Scene, files: list[Made], known: bool, logged: list[str]
) -> None:
    """What this release's own do, where it cannot be read: for a minute, then it is looked for again."""
    image = scene.image(Made("etc/motd", b""), *files)
    with capture_logs() as logs:
        for _ in range(2):
            scene.checks.read_rights(image)
        assert scene.checks.states[image].asking
        await scene.settled()
    state = scene.checks.states[image]
    named = {(right.group, right.resource) for right in state.rights or ()}
    assert (("g", "things") in named, ("", "secrets") in named) == (known, False)
    assert (state.rights == own_rights(), state.asking) == (not known, False)
    assert state.rights_until == (None if known else scene.clock.now() + RIGHTS_AGAIN)
    events = ["not given" if "is not given" in line["event"] else "as this release's" for line in logs]
    assert (events, manifests(scene.asked), scene.notified) == (logged, 1, [1])


def test_how_long_what_could_not_be_read_is_left_alone() -> None:
    """A registry that was away may be back when the next preflight starts: a minute."""
    assert RIGHTS_AGAIN.total_seconds() == 60


async def test_without_keys_nothing_is_verified(scene: Scene) -> None:
    """It is said at once, once, and nobody is asked."""
    for _ in range(2):
        scene.checks.check("registry.example/r@sha256:1")
    await scene.settled()
    state = scene.checks.states["registry.example/r@sha256:1"]
    assert (state.trust, state.running, state.at) == (Trust.FAILED, False, scene.clock.now())
    assert state.error == "the running release carries no keys, so verification is not possible"
    assert (scene.notified, scene.asked) == ([1], [])


@pytest.mark.parametrize(
    ("details", "said"),
    [
        pytest.param((), "no", id="nothing more"),
        pytest.param(("a", "b", "c"), "no: a; b; c", id="three answers"),
        pytest.param(("a", "b", "c", "d"), "no: a; b; c; and 1 more answers", id="one more"),
        pytest.param(tuple("abcdefgh"), "no: a; b; c; and 5 more answers", id="many more"),
    ],
)
def test_how_much_of_what_stores_answered_is_told(details: tuple[str, ...], said: str) -> None:
    """Three of them, and how many there are besides."""
    assert text_of(Unverified("no", details)) == said


def test_how_long_each_may_take() -> None:
    """Verifying has half of upstream's four minutes, an image as long; a store half a minute, the service a whole."""
    assert (WITHIN_S, release_images.DEADLINE_S, signature_stores.TIMEOUT_S, update_service.TIMEOUT_S) == (
        120,
        120,
        30,
        60,
    )


DIGEST = "sha256:" + "a" * 64
KEY = f"sha256-{'a' * 64}"
MAP = "/api/v1/namespaces/openshift-config-managed/configmaps/signatures-managed"


def kept(**data: str) -> Answers:
    """What an earlier operator kept; an underscore is a dash."""
    held = {key.replace("_", "-"): value for key, value in data.items()}
    metadata = {"name": "signatures-managed", "namespace": "openshift-config-managed"}
    return {MAP: (200, {"kind": "ConfigMap", "metadata": metadata, "binaryData": held})}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        pytest.param({MAP: FORBIDDEN}, "you may not", id="it may not be read"),
        pytest.param({MAP: (200, [])}, "", id="it is no ConfigMap"),
    ],
)
async def test_signatures_that_cannot_be_kept(answers: Answers, why: str) -> None:
    """Are a line of the log: the verdict stands."""
    async with cluster(answers) as client:
        with capture_logs() as logs:
            await store_signatures(client, Verified(DIGEST, ("redhat",), (b"x",)))
    (line,) = logs
    assert (line["event"], line["digest"]) == ("the signatures of a release are not kept", DIGEST)
    assert why in line["why"]


async def test_signatures_that_are_kept_already_are_not_written_again() -> None:
    """Who asks hourly writes nothing: a write would be refused here."""
    answers = kept(**{f"sha256_{'a' * 64}_0": "eA=="})
    async with cluster(answers) as client:
        with capture_logs() as logs:
            await store_signatures(client, Verified(DIGEST, ("redhat",), (b"x",)))
            assert logs == []


def of_size(number: int, size: int) -> dict[str, bytes]:
    """A signature of another digest, with its key so many bytes."""
    key = f"sha256-{number:064}-0"
    return {key: b"x" * (size - len(key))}


@pytest.mark.parametrize(
    ("more", "stays"),
    [pytest.param(0, True, id="as much as there is room for"), pytest.param(1, False, id="one byte more")],
)
def test_how_much_is_kept(more: int, stays: bool) -> None:
    """A ConfigMap holds a mebibyte, as base64."""
    new = {f"{KEY}-0": b"y"}
    size = sum(len(key) + len(value) for key, value in new.items())
    other = of_size(1, MOST_BYTES - size + more)
    assert (set(other) <= set(merge_signatures(other, DIGEST, [b"y"]))) is stays
    assert MOST_BYTES == 512 * 1024


def test_what_is_left_out_is_what_came_first() -> None:
    """The rest stays in its order."""
    found = {**of_size(1, MOST_BYTES // 2), **of_size(2, MOST_BYTES // 2), **of_size(3, 100), **of_size(4, 100)}
    names = list(found)
    assert list(merge_signatures(found, DIGEST, [b"y"])) == [*names[1:], f"{KEY}-0"]


async def test_an_image_has_its_time(tmp_path: Path) -> None:
    """As long as whoever asks for folders says; then the way out is named."""

    def rule(_asked: Asked) -> Answer | None:
        return Answer(429, b"", {"Retry-After": "1"})

    layout = layout_in(tmp_path)
    made = put_image(layout, [Made("a")])
    with odd_registry(layout, rule) as odd:
        async with cluster({}) as client:
            with pytest.raises(ReleaseUnreadable) as caught:
                await ReleaseImages(client).folders(f"{odd.host}/a@{made.digest}", ("manifests",), within_s=0.1)
    assert caught.value.message == (
        "it was not read within 0.1 s; make the registry reachable, or name a mirror in an ImageDigestMirrorSet, "
        "or name another release"
    )


async def test_who_is_left_behind_in_a_thread_waits_no_longer() -> None:
    """Whoever asked has gone: between two attempts nothing is waited for any more."""
    waits: list[Any] = []

    def what(client: RegistryClient) -> str:
        waits.append(client.access.wait)
        return "read"

    async with cluster({}) as client:
        assert await ReleaseImages(client).ask("r.example/a:1", what, "or else", 60) == "read"
    assert [wait(0) for wait in waits] == [True]


@pytest.mark.parametrize(
    ("image", "said"),
    [
        pytest.param("not an image", "; correct the image, or choose another target", id="no name of an image"),
        pytest.param(
            "HOST/ocp/release:1", "; name a release image, or choose another target", id="an image without the file"
        ),
    ],
)
async def test_the_way_out_where_an_image_cannot_be_read(tmp_path: Path, image: str, said: str) -> None:
    """It fits the error."""
    layout = layout_in(tmp_path)
    put_image(layout, [Made("a")], name="1")
    made = put_image(layout, [Made("a")])
    with odd_registry(layout) as odd:
        async with cluster({}) as client:
            with pytest.raises(ReleaseUnreadable) as caught:
                text = image.replace("HOST", odd.host).replace(":1", f"@{made.digest}")
                await ReleaseImages(client).references(text if "HOST" in image else image)
    assert caught.value.message.endswith(said)


async def test_a_client_that_reaches_nobody_is_no_verdict() -> None:
    """The pull secret could not be read: that is a note to whatever the registry says."""
    async with Client(ClusterConfig(server="http://127.0.0.1:9")) as client:
        with pytest.raises(
            ReleaseUnreadable, match=r"\(the pull secret openshift-config/pull-secret could not be read: "
        ):
            await ReleaseImages(client).references("127.0.0.1:1/a@sha256:" + "1" * 64)
