"""Catalogs of operators beside a preflight's checks: read once, again when it matters, Unknown where they cannot be."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.kubekit.oci.layered import Made, layout_in, put_image
from tests.kubekit.oci.registries import Answer, Asked, odd_registry

from kubekit.api import codec
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import load
from kubekit.lang.version import Version
from kubekit.oci.access import Access
from kubesandbox.apiserver.server import ApiServer
from runup.api.olm_v1alpha1 import CatalogSource, Subscription
from runup.checks.catalogue.olm import olm_target_catalog
from runup.checks.decide.model import Context, Snapshot
from runup.checks.decide.target_catalogs import TargetCatalog
from runup.facts.catalog_images import (
    AGAIN_S,
    FIRST_S,
    MAX_FILE_BYTES,
    READING,
    RETRY_S,
    SOURCES,
    SUBSCRIPTIONS,
    SWITCHED_OFF,
    CatalogImages,
    KnownCatalog,
    add_notes,
)
from runup.facts.target_release import TargetRelease
from runup.kernelmodules.control.registries import GivenRegistries
from runup.process.read_only_client import ReadOnlyClient
from runup.release.control.registry_access import TAG_MIRRORS
from runup.report.report import read
from runup.target.process import PreflightTarget, TargetRequest

REGISTRIES = GivenRegistries(Access(attempts=1))
UPDATE = Context(
    source=Version("5.0.0"), target=Version("5.2.0"), now=datetime(2026, 1, 14, tzinfo=UTC), target_kubernetes="1.38.1"
)
CHECK = olm_target_catalog.NAME
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
Rule = Callable[[Asked], Answer | None]


def package(name: str, channel: str = "stable") -> Made:
    """The file of a package with one channel and one version."""
    parts = (
        {"schema": "olm.package", "name": name, "defaultChannel": channel},
        {"schema": "olm.channel", "package": name, "name": channel, "entries": [{"name": f"{name}.v1"}]},
        {"schema": "olm.bundle", "package": name, "name": f"{name}.v1", "image": "x"},
    )
    return Made(f"configs/{name}/catalog.json", "\n".join(json.dumps(part) for part in parts).encode())


def operator(name: str) -> dict[str, Any]:
    """A Subscription of the catalog `mine` that has installed its package."""
    return {
        "apiVersion": SUBSCRIPTIONS.api_version,
        "kind": "Subscription",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"name": name, "channel": "stable", "source": "mine", "sourceNamespace": "shop"},
        "status": {"installedCSV": f"{name}.v1"},
    }


def source(host: str) -> dict[str, Any]:
    """The catalog, whose image follows Kubernetes."""
    template = f"{host}/olm/index:v{{kube_major_version}}.{{kube_minor_version}}"
    metadata = {"name": "mine", "namespace": "shop", "annotations": {"olm.catalogImageTemplate": template}}
    spec = {"image": f"{host}/olm/index:v1.36"}
    return {"apiVersion": SOURCES.api_version, "kind": "CatalogSource", "metadata": metadata, "spec": spec}


def of(host: str, *names: str) -> Snapshot:
    """What the checks see of a cluster with these operators."""
    subs = tuple(codec.convert(Subscription, operator(name)) for name in names)
    return Snapshot(objects={SUBSCRIPTIONS: subs, SOURCES: (codec.convert(CatalogSource, source(host)),)})


def tag_of(digest: str, tag: str = "v1.38") -> Rule:
    """A registry whose tag represents that image."""

    def rule(asked: Asked) -> Answer | None:
        asked.path = asked.path.replace(f"/manifests/{tag}", f"/manifests/{digest}")
        return None

    return rule


async def test_read_once_and_again_where_it_matters(tmp_path: Path) -> None:
    """A tag that represents the same costs one question; another digest, or another operator, is read."""
    layout = layout_in(tmp_path)
    old = put_image(layout, [package("a"), package("b")])
    new = put_image(layout, [package("a", "fast"), package("b")])
    now = [old.digest]

    def rule(asked: Asked) -> Answer | None:
        return tag_of(now[0])(asked)

    with odd_registry(layout, rule) as odd:
        clock, changed = ManualClock(), asyncio.Event()
        images = CatalogImages(REGISTRIES, clock, changed.set)
        image, one = f"{odd.host}/olm/index:v1.38", of(odd.host, "a")
        assert (images.seen(one, UPDATE).catalog_of(image, "a").problem, images.awaited(CHECK)) == (READING, True)
        assert not images.awaited("AnotherCheck")
        async with asyncio.timeout(90):
            await changed.wait()
        assert list((await images.settled(one, UPDATE)).catalog_of(image, "a").packages["a"].channels) == ["stable"]
        assert not images.awaited(CHECK)

        asked = len(odd.asked)
        assert not (await images.settled(one, UPDATE)).catalog_of(image, "a").problem
        assert len(odd.asked) == asked
        await clock.advance(AGAIN_S)
        await images.settled(one, UPDATE)
        assert [each.path.split("/")[-2] for each in odd.asked[asked:]] == ["manifests"]

        both = of(odd.host, "a", "b")
        # Nobody has looked for b: its absence is no answer.
        assert "was not looked for yet" in images.seen(both, UPDATE).catalog_of(image, "b").problem
        assert set((await images.settled(both, UPDATE)).catalog_of(image, "b").packages) == {"a", "b"}

        now[0] = new.digest
        await clock.advance(AGAIN_S)
        assert list((await images.settled(both, UPDATE)).catalog_of(image, "a").packages["a"].channels) == ["fast"]
        assert (await images.settled(of(odd.host), UPDATE)).read == {}
        await images.close()


async def test_what_could_not_be_read_is_tried_again(tmp_path: Path) -> None:
    """Somebody may have fixed it; until then it is a problem, and never an empty catalog."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [package("a")])
    mended = [False]

    def rule(asked: Asked) -> Answer | None:
        return tag_of(made.digest)(asked) if mended[0] else Answer(503)

    with odd_registry(layout, rule) as odd:
        clock = ManualClock()
        images = CatalogImages(REGISTRIES, clock, lambda: None)
        image, snapshot = f"{odd.host}/olm/index:v1.38", of(odd.host, "a")
        assert "503" in (await images.settled(snapshot, UPDATE)).catalog_of(image, "a").problem
        mended[0] = True
        assert "503" in (await images.settled(snapshot, UPDATE)).catalog_of(image, "a").problem
        await clock.advance(RETRY_S)
        assert not (await images.settled(snapshot, UPDATE)).catalog_of(image, "a").problem
        await images.close()


def everything(status: int) -> Rule:
    """A registry that answers so."""
    return lambda _asked: Answer(status)


def leads_to(location: str) -> Rule:
    """A registry whose layers are elsewhere."""
    return lambda asked: Answer(307, b"", {"Location": location}) if "/blobs/" in asked.path else None


FILES = [package("a")]
HUGE = [Made("configs/a/catalog.json", b" " * (MAX_FILE_BYTES + 1))]


@pytest.mark.parametrize(
    ("files", "rule", "words"),
    [
        pytest.param(FILES, everything(401), "asks for nothing known", id="a login is wanted"),
        pytest.param(FILES, everything(403), "wants credentials, and none are known", id="it is refused"),
        pytest.param(FILES, everything(404), "v1.38", id="there is no such image"),
        pytest.param(FILES, everything(500), "500", id="the registry is broken"),
        pytest.param([Made("etc/os-release")], None, "it is not a file-based catalog", id="not a catalog"),
        pytest.param(
            [Made("database/index.db")], None, "it is not a file-based catalog", id="a catalog of the older form"
        ),
        pytest.param(
            [Made("configs/index.json", package("a").data)],
            None,
            "its file configs/index.json was not read and may have a part of any package, so that what it has of a is "
            "not known",
            id="packages in one file",
        ),
        pytest.param(
            [Made("configs/one/index.json", package("b").data), Made("configs/two/index.json", package("a").data)],
            None,
            "its packages are not all in folders of their names, so that what it has of a is not known",
            id="folders that are not named by their package",
        ),
        pytest.param(
            [Made("configs/a/catalog.json", b"{")], None, "configs/a/catalog.json: ", id="a file that is cut off"
        ),
        pytest.param(HUGE, None, f"configs/a/catalog.json has more than {MAX_FILE_BYTES} bytes", id="too large"),
        pytest.param(
            FILES,
            leads_to("http://169.254.169.254/layer"),
            "leads to http://169.254.169.254",
            id="its layers are on this machine's link",
        ),
    ],
)
async def test_why_a_catalog_cannot_be_read(tmp_path: Path, files: list[Made], rule: Rule | None, words: str) -> None:
    """Each says so in words, of that image."""
    layout = layout_in(tmp_path)
    made = put_image(layout, files)

    def answer(asked: Asked) -> Answer | None:
        return (rule(asked) if rule else None) or tag_of(made.digest)(asked)

    with odd_registry(layout, answer) as odd:
        images = CatalogImages(REGISTRIES, ManualClock(), lambda: None)
        seen = await images.settled(of(odd.host, "a"), UPDATE)
        found = seen.catalog_of(f"{odd.host}/olm/index:v1.38", "a")
        assert words in found.problem
        assert not found.packages
        await images.close()


async def test_a_package_that_is_gone_is_told_from_another_layout(tmp_path: Path) -> None:
    """The catalog's other packages are in folders of their names, so this one would be."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [package("b"), package("c")])
    with odd_registry(layout, tag_of(made.digest)) as odd:
        images = CatalogImages(REGISTRIES, ManualClock(), lambda: None)
        found = (await images.settled(of(odd.host, "a"), UPDATE)).catalog_of(f"{odd.host}/olm/index:v1.38", "a")
        assert (found.problem, found.packages) == ("", {})
        await images.close()


async def test_a_registry_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    """The others are read; a first report waits for a while only."""
    layout = layout_in(tmp_path)
    ended = threading.Event()

    def rule(_asked: Asked) -> Answer | None:
        ended.wait(90)
        return Answer(500)

    with odd_registry(layout, rule) as odd:
        clock = ManualClock()
        images = CatalogImages(REGISTRIES, clock, lambda: None, within_s=0.2)
        try:
            snapshot = of(odd.host, "a")
            images.seen(snapshot, UPDATE)
            await clock.advance(FIRST_S)
            assert not images.awaited(CHECK)
            found = (await images.settled(snapshot, UPDATE)).catalog_of(f"{odd.host}/olm/index:v1.38", "a")
            assert found.problem == "it was not read within 0.2 s"
        finally:
            ended.set()
            await images.close()


async def test_closing_stops_a_read(tmp_path: Path) -> None:
    """It waits for no registry. The image stays unread: its time limit has not passed."""
    layout = layout_in(tmp_path)
    ended = threading.Event()

    def rule(_asked: Asked) -> Answer | None:
        ended.wait(90)
        return Answer(500)

    with odd_registry(layout, rule) as odd:
        images = CatalogImages(REGISTRIES, ManualClock(), lambda: None, within_s=1)
        snapshot = of(odd.host, "a")
        try:
            images.seen(snapshot, UPDATE)
            await asyncio.sleep(0)
            await images.close()
            known = images.seen(snapshot, UPDATE).catalog_of(f"{odd.host}/olm/index:v1.38", "a")
            assert known.problem == READING
        finally:
            ended.set()
            await images.close()


@pytest.mark.parametrize(
    ("update", "reads", "why"),
    [
        pytest.param(replace(UPDATE, target=Version("5.0.9")), True, READING, id="a patch brings no catalogs"),
        pytest.param(UPDATE, False, SWITCHED_OFF, id="it was switched off"),
    ],
)
async def test_nothing_is_asked(tmp_path: Path, update: Context, reads: bool, why: str) -> None:
    """Nor is what is not known taken for fine."""
    with odd_registry(layout_in(tmp_path)) as odd:
        images = CatalogImages(REGISTRIES, ManualClock(), lambda: None, reads=reads)
        seen = await images.settled(of(odd.host, "a"), update)
        assert (seen.read, seen.why, odd.asked) == ({}, why, [])
        await images.close()


async def test_a_cluster_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    """`oci:DIR` is for anybody who types it."""
    images = CatalogImages(REGISTRIES, ManualClock(), lambda: None)
    layout_in(tmp_path)
    snapshot = of(f"oci:{tmp_path}/layout", "a")
    (found,) = (await images.settled(snapshot, UPDATE)).read.values()
    assert found.problem
    assert "no file-based catalog" not in found.problem
    await images.close()


class Kept:
    """A report's sink that is a value; `full` says that a complete one is there."""

    def __init__(self) -> None:
        self.data = b""
        self.full = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.data = data
        if read(data).execution_status == "completed":
            self._loop.call_soon_threadsafe(self.full.set)


class Quiet:
    """A log that nobody reads."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_fields: None


def definition(resource: Resource) -> dict[str, Any]:
    """A kind of OLM."""
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    names["listKind"] = f"{resource.kind}List"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    scope = "Namespaced" if resource.namespaced else "Cluster"
    spec = {"group": resource.group, "names": names, "scope": scope, "versions": [version]}
    return {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": spec}


def mirrored(host: str) -> dict[str, Any]:
    """Every image of another registry is in this one."""
    spec = {"imageTagMirrors": [{"source": "registry.example", "mirrors": [host]}]}
    return {"apiVersion": TAG_MIRRORS.api_version, "kind": TAG_MIRRORS.kind, "metadata": {"name": "m"}, "spec": spec}


@pytest.mark.parametrize("by_mirror", [False, True], ids=["where it says", "at a mirror"])
async def test_a_preflight_tells_which_operators_are_left_behind(tmp_path: Path, by_mirror: bool) -> None:
    """The whole way, as the process that runs on: the cluster's operators, the target's catalog, the report."""
    layout = layout_in(tmp_path)
    made = put_image(layout, [package("a"), package("b", "fast")])
    async with ApiServer(tmp_path / "data") as server, Client(load(str(server.kubeconfig))) as admin:
        for resource in (SUBSCRIPTIONS, SOURCES, TAG_MIRRORS):
            await admin.send(calls.create(CRDS, definition(resource)))
        await admin.send(calls.create(NAMESPACES, {"metadata": {"name": "shop"}}))
        with odd_registry(layout, tag_of(made.digest)) as odd:
            await admin.send(calls.create(SOURCES, source("registry.example" if by_mirror else odd.host)))
            if by_mirror:
                await admin.send(calls.create(TAG_MIRRORS, mirrored(odd.host)))
            for name in ("a", "b"):
                await admin.send(calls.create(SUBSCRIPTIONS, operator(name)))
            sink = Kept()
            async with ReadOnlyClient(load(str(server.kubeconfig)), namespace="ours") as client:
                run = PreflightTarget(
                    client=client,
                    request=TargetRequest(
                        target_version="5.2.0",
                        source_version="5.0.0",
                        inner_registries=frozenset(() if by_mirror else (odd.host,)),
                    ),
                    release=TargetRelease(version="5.2.0", kubernetes="1.38.0"),
                    sink=sink,
                    clock=SystemClock(),
                    log=Quiet(),
                    builtin=(olm_target_catalog.CHECK,),
                )
                running = asyncio.create_task(run.run())
                try:
                    async with asyncio.timeout(90):
                        await sink.full.wait()
                finally:
                    running.cancel()
                    with suppress(asyncio.CancelledError):
                        await running
    # The first complete report has the answer: it has waited for it.
    (risk,) = read(sink.data).risks
    assert (risk.name, risk.applies) == ("OperatorNotInTargetCatalog-b", "True")
    assert "it has no channel stable, but fast" in risk.message


def known(problem: str = "", *looked_for: str) -> KnownCatalog:
    """An answer of the beginning."""
    return KnownCatalog(TargetCatalog("i", problem=problem, looked_for=frozenset(looked_for)), "sha256:1", 0.0)


@pytest.mark.parametrize(
    ("answer", "packages", "now", "due"),
    [
        pytest.param(known("", "a", "b"), "a", 1799, False, id="it is half an hour old, nearly"),
        pytest.param(known("", "a", "b"), "a", 1800, True, id="it is"),
        pytest.param(known("no", "a"), "a", 179, False, id="it failed three minutes ago, nearly"),
        pytest.param(known("no", "a"), "a", 180, True, id="it did"),
        pytest.param(known("", "a"), "ab", 0, True, id="a package was not looked for"),
        pytest.param(known("", "a"), "", 0, False, id="nothing is wanted any more"),
    ],
)
def test_when_an_answer_is_due_again(answer: KnownCatalog, packages: str, now: float, due: bool) -> None:
    """By its age, or where more is asked for than was looked for."""
    assert answer.is_due(frozenset(packages), now) is due


def test_why_a_catalog_could_not_be_read_has_what_might_be_the_cause() -> None:
    """Of the cluster, such as its pull secret; where it was read that is nobody's business."""
    assert add_notes(known("no", "a"), ["x", "y"]).found.problem == "no (x; y)"
    assert add_notes(known("no", "a"), []).found.problem == "no"
    assert add_notes(known("", "a"), ["x"]).found.problem == ""


async def test_how_long_a_first_report_waits(tmp_path: Path) -> None:
    """Two minutes from the first question on, however many are asked after it."""
    with odd_registry(layout_in(tmp_path), everything(500)) as odd:
        clock = ManualClock()
        images = CatalogImages(REGISTRIES, clock, lambda: None)
        assert not images.awaited(CHECK)
        clock.jump(5)
        images.seen(of(odd.host, "a"), UPDATE)
        clock.jump(119)
        assert images.awaited(CHECK)
        clock.jump(1)
        assert not images.awaited(CHECK)
        await images.settled(of(odd.host, "a"), UPDATE)
        clock.jump(180)
        images.seen(of(odd.host, "a"), UPDATE)
        assert not images.awaited(CHECK)
        await images.close()


async def test_images_that_were_named_are_read_even_where_others_are_not(tmp_path: Path) -> None:
    """Out of a folder of this machine, too: somebody has typed it."""
    layout = layout_in(tmp_path)
    put_image(layout, [package("a")], name="x")
    named = {"mine": f"oci:{layout.path}:x"}
    shown: list[int] = []
    images = CatalogImages(REGISTRIES, ManualClock(), lambda: shown.append(1), named_images=named, reads=False)
    seen = await images.settled(of("registry.example", "a"), UPDATE)
    assert {image: (found.problem, list(found.packages)) for image, found in seen.read.items()} == {
        named["mine"]: ("", ["a"])
    }
    assert (seen.why, len(shown)) == (SWITCHED_OFF, 2)
    await images.close()


def test_subscriptions_and_catalogs_are_what_the_check_reads() -> None:
    """What is read next to the checks is what they are given rights for."""
    assert {SUBSCRIPTIONS, SOURCES} == {resource_of(Subscription), resource_of(CatalogSource)}
    assert {SUBSCRIPTIONS, SOURCES} <= set(olm_target_catalog.CHECK.reads)
