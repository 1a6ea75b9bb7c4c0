"""Tests loaded releases: each is loaded once, failures are reported, and few are kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.applying.control.release_folders import config_map, namespace
from tests.clusterversion.decide.world import release
from tests.kubekit.kube.apiscript import eventually

from kubekit.error_types import Terminal
from kubekit.kube.clock import ManualClock
from kubekit.lang.text import stored_bytes
from runup.api.config_v1 import Release
from runup.applying.control.loading import NotLoaded, ReleaseLoads, read_folder
from runup.applying.control.release_source import MAX_ERROR, payload_of
from runup.release.decide.payload import Payload

OWN = "own"


class Source:
    """Gives releases, or fails as it is reported; `held` waits first."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def load(self, wanted: Release) -> Payload:
        """See `Payloads.load`."""
        self.asked.append(wanted.image)
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return release(wanted.version)


class Scene:
    """Releases next to the operator's own, and how often somebody was woken."""

    def __init__(self) -> None:
        self.source, self.clock, self.woken = Source(), ManualClock(), 0
        self.loads = ReleaseLoads(self.source, self.clock, self._wake, image=OWN, own_payload=release("5.0.0"))

    def _wake(self) -> None:
        self.woken += 1

    async def load(self, image: str, *, applied: str = "") -> None:
        """Ask for it, and wait."""
        self.loads.load(Release(image=image, version="5.2.0"), applied=applied)
        await eventually(lambda: not self.loads.states[image].running)


async def test_a_release_is_loaded_once() -> None:
    """Nobody asks for the operator's own, nor for what is loaded or on its way."""
    at = Scene()
    at.loads.load(Release(image=OWN))
    at.source.open.clear()
    at.loads.load(Release(image="a", version="5.2.0"))
    at.loads.load(Release(image="a", version="5.2.0"))
    assert at.loads.states["a"].running
    assert (at.loads.payload("a"), at.loads.payload("never asked for")) == (None, None)
    at.source.open.set()
    with capture_logs() as logs:
        await at.load("a")
        await at.load("a")
    assert [(line["event"], line["image"]) for line in logs] == [("loaded", "a")]
    assert (at.source.asked, at.woken) == (["a"], 1)
    assert at.loads.payload("a") == release("5.2.0")
    assert at.loads.payload(OWN) == release("5.0.0")
    assert not at.loads.states["a"].running


@pytest.mark.parametrize(
    ("error", "reason", "said", "logged"),
    [
        pytest.param(
            NotLoaded("no registry", reason="RetrievePayload"),
            "RetrievePayload",
            "no registry",
            ("warning", "a release could not be loaded"),
            id="it cannot be had",
        ),
        pytest.param(
            ValueError("oops"),
            "LoadPayload",
            "ValueError: oops",
            ("error", "loading a release failed"),
            id="a bug of ours",
        ),
    ],
)
async def test_why_a_release_is_not_loaded(error: Exception, reason: str, said: str, logged: tuple[str, str]) -> None:
    """The failure is reported with its time, during retries and until the release is loaded."""
    at = Scene()
    at.source.error = error
    await at.clock.advance(60)
    with capture_logs() as logs:
        await at.load("a")
    state = at.loads.states["a"]
    assert (state.reason, state.error, state.at, state.running) == (reason, said, at.clock.now(), False)
    assert [(line["log_level"], line["event"]) for line in logs] == [logged]
    at.source.error = None
    at.source.open.clear()
    at.loads.load(Release(image="a", version="5.2.0"))
    again = at.loads.states["a"]
    assert (again.reason, again.error, again.at, again.running) == (reason, said, state.at, True)
    at.source.open.set()
    await at.load("a")
    assert (at.loads.states["a"].reason, at.woken) == ("", 2)


async def test_few_releases_are_kept() -> None:
    """The oldest goes when a third is asked for: never the operator's own, never one on its way."""
    at = Scene()
    for image in ("a", "b"):
        await at.load(image)
    assert list(at.loads.states) == [OWN, "a", "b"]
    await at.load("c")
    assert list(at.loads.states) == [OWN, "b", "c"]
    at.source.open.clear()
    at.loads.load(Release(image="d"))
    assert list(at.loads.states) == [OWN, "c", "d"]
    at.loads.load(Release(image="e"))
    assert list(at.loads.states) == [OWN, "c", "d", "e"]
    await at.loads.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_release_that_is_applied_is_kept() -> None:
    """However many others are asked for meanwhile: what it enables is compared with the next one."""
    at = Scene()
    for image in ("applied", "refused", "asked"):
        await at.load(image, applied="applied")
    assert list(at.loads.states) == [OWN, "applied", "asked"]
    at.source.error = NotLoaded("no", reason="LoadPayload")
    for image in ("bad", "bad", "worse"):
        await at.load(image, applied="applied")
    assert list(at.loads.states) == [OWN, "applied", "worse"]


def test_which_files_of_a_folder_are_a_release_s(tmp_path: Path) -> None:
    """Those below the payload's folders, as they are; a folder without any is no release."""
    for name in ("manifests/deep/a.yaml", "release-manifests/b", "elsewhere/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    names = ["manifests/deep/a.yaml", "release-manifests/b"]
    assert read_folder(tmp_path) == {name: name.encode() for name in names}
    with pytest.raises(Terminal, match="no release payload in"):
        read_folder(tmp_path / "elsewhere")


def files(odd: int) -> dict[str, bytes]:
    """A release with so many files whose names say nothing of their component."""
    references = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "5.2.0"}}
    found = {
        "release-manifests/release-metadata": b'{"kind": "cincinnati-metadata-v0", "version": "5.2.0"}',
        "release-manifests/image-references": json.dumps(references).encode(),
        "manifests/0000_00_a_0.yaml": json.dumps(namespace()).encode(),
    }
    return found | {
        f"release-manifests/odd{number:02}.yaml": json.dumps(config_map(f"m{number}", {})).encode()
        for number in range(odd)
    }


@pytest.mark.parametrize(
    ("odd", "lines", "last"),
    [
        pytest.param(20, 20, "", id="as many as are told"),
        pytest.param(21, 21, "and 1 more", id="one more"),
        pytest.param(31, 21, "and 11 more", id="many more"),
    ],
)
def test_what_is_odd_about_a_release_is_told_up_to_a_number(odd: int, lines: int, last: str) -> None:
    """One line of the log each, and one for the rest."""
    with capture_logs() as logs:
        payload_of(files(odd), Release(image="i"), "self-managed-high-availability")
    said = [line["what"] for line in logs if line["event"] == "release: odd"]
    assert len(said) == lines
    assert (said[-1] == last) is bool(last)


def test_what_is_wrong_with_a_release_fits_a_condition() -> None:
    """However many of its files are broken."""
    broken = {f"release-manifests/0000_50_c_{number:04}.yaml": b"kind: [" for number in range(2000)}
    with pytest.raises(NotLoaded) as raised:
        payload_of(files(0) | broken, Release(image="i"), "self-managed-high-availability")
    assert raised.value.reason == "LoadPayload"
    assert stored_bytes(raised.value.message) <= MAX_ERROR == 8192
