"""Images of kernel modules next to a preflight's checks: asked for once, again when something changed or time is up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.kubekit.oci.layered import Made, layout_in, put_image
from tests.kubekit.oci.registries import Answer, Asked, odd_registry

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.kube.config import load
from kubekit.oci.access import Access
from kubesandbox.apiserver.server import ApiServer
from runup.api.kmm_v1beta1 import Module
from runup.checks.catalogue.nodes import kernel_modules_ready
from runup.checks.decide.model import Snapshot
from runup.facts.module_images import MODULES, NO_TOOLKIT, NODES, KnownModule, ModuleImages, ModuleInput
from runup.facts.target_release import TargetRelease
from runup.kernelmodules.control.registries import GivenRegistries
from runup.kernelmodules.decide.readiness import RECHECK_INTERVAL_S, PreflightResults, Readiness, Status
from runup.process.read_only_client import ReadOnlyClient
from runup.report.report import read
from runup.target.process import PreflightTarget, TargetRequest, listed_registries

KERNEL = "5.14.0-427.el9_4.x86_64"
CRDS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
REGISTRIES = GivenRegistries(Access(attempts=1))


def module(name: str, image: str, **labels: str) -> dict[str, Any]:
    """A Module `drivers/<name>`."""
    container = {"modprobe": {"moduleName": name}, "kernelMappings": [{"regexp": ".", "containerImage": image}]}
    return {
        "apiVersion": MODULES.api_version,
        "kind": "Module",
        "metadata": {"name": name, "namespace": "drivers", "labels": labels},
        "spec": {"selector": {}, "moduleLoader": {"container": container}},
    }


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "w"},
    "status": {"nodeInfo": {"architecture": "amd64", "kernelVersion": "5.14.0-1.el9.x86_64"}},
}


def of(*modules: dict[str, Any]) -> Snapshot:
    """What the checks see."""
    found = tuple(codec.convert(Module, each) for each in modules)
    return Snapshot(objects={MODULES: found, NODES: (codec.convert(Node, NODE),)})


def toolkit() -> bytes:
    """What a driver toolkit says about itself."""
    return json.dumps({"KERNEL_VERSION": KERNEL, "RHEL_VERSION": "9.4"}).encode()


def statuses(seen: PreflightResults) -> dict[str, Status]:
    """By module."""
    return {each.name: each.status for each in seen.found}


async def test_asked_for_once_and_again_where_something_changed(tmp_path: Path) -> None:
    """What is verified stays so; another spec, or time where it is not verified, is another question."""
    layout = layout_in(tmp_path)
    dtk = put_image(layout, [Made("etc/driver-toolkit-release.json", toolkit())])
    good = put_image(layout, [Made(f"opt/lib/modules/{KERNEL}/a.ko")])
    pushed = [False]

    def rule(asked: Asked) -> Answer | None:
        if asked.path.endswith("/later"):
            asked.path = asked.path.replace("later", good.digest)
            return None if pushed[0] else Answer(404)
        return None

    with odd_registry(layout, rule) as odd:
        clock, changed = ManualClock(), asyncio.Event()
        images = ModuleImages(REGISTRIES, f"{odd.host}/ocp/dtk@{dtk.digest}", clock, changed.set)
        first = of(module("a", f"{odd.host}/k/a@{good.digest}"), module("b", f"{odd.host}/k/a:later"))
        assert images.seen(first) == PreflightResults()
        async with asyncio.timeout(90):
            await changed.wait()
        assert statuses(images.seen(first)) == {"a": Status.TRUE, "b": Status.FALSE}
        asked = len(odd.asked)
        labelled = of(module("a", f"{odd.host}/k/a@{good.digest}", x="y"), module("b", f"{odd.host}/k/a:later"))
        assert statuses(await images.settled(labelled)) == {"a": Status.TRUE, "b": Status.FALSE}
        assert len(odd.asked) == asked
        renamed = of(module("a", f"{odd.host}/k/a@{good.digest}"), module("b", f"{odd.host}/k/b:later"))
        assert statuses(images.seen(renamed)) == {"a": Status.TRUE}
        assert statuses(await images.settled(renamed)) == {"a": Status.TRUE, "b": Status.FALSE}
        await clock.advance(RECHECK_INTERVAL_S)
        asked = len(odd.asked)
        assert statuses(await images.settled(renamed)) == {"a": Status.TRUE, "b": Status.FALSE}
        assert not any(each.path.startswith("/v2/k/a/") for each in odd.asked[asked:])
        pushed[0] = True
        await clock.advance(RECHECK_INTERVAL_S)
        wanted = of(module("a", f"{odd.host}/k/b:later"))
        assert statuses(await images.settled(wanted)) == {"a": Status.TRUE}
        assert await images.settled(of()) == PreflightResults()
        await images.close()


@pytest.mark.parametrize(
    ("snapshot", "named", "why"),
    [
        pytest.param(of(module("a", "r/a:1")), "", NO_TOOLKIT, id="a release that names no toolkit"),
        pytest.param(
            Snapshot(objects={MODULES: of(module("a", "r/a:1")).objects[MODULES]}, unreadable={NODES: "forbidden"}),
            "r/dtk:1",
            "which nodes load it is not known: forbidden",
            id="nodes that cannot be read",
        ),
        pytest.param(of(), "", "", id="no Modules"),
    ],
)
async def test_nothing_is_asked_where_nothing_can_be_known(snapshot: Snapshot, named: str, why: str) -> None:
    """The reason is what is reported instead."""
    images = ModuleImages(REGISTRIES, named, ManualClock(), lambda: None)
    assert images.seen(snapshot) == PreflightResults(why=why)
    await images.close()


@pytest.mark.parametrize(
    ("found", "now", "due"),
    [
        pytest.param([Status.FALSE], 179, False, id="three minutes ago, nearly"),
        pytest.param([Status.TRUE, Status.UNKNOWN], 180, True, id="one of its kernels is not known"),
        pytest.param([Status.TRUE], 10_000, False, id="what is verified stays so"),
        pytest.param([], 10_000, False, id="nothing was found out"),
    ],
)
def test_when_an_answer_is_due_again(found: list[Status], now: float, due: bool) -> None:
    """Where it is not verified, after three minutes."""
    readiness = tuple(
        Readiness(namespace="drivers", name="a", kernel="", architecture="", stage="Image", status=status, reason="")
        for status in found
    )
    assert KnownModule(ModuleInput(codec.convert(Module, module("a", "i")), ()), readiness, 0.0).is_due(now) is due


async def test_nodes_that_nobody_has_read_yet() -> None:
    """No reason was given, so that is the reason."""
    images = ModuleImages(REGISTRIES, "r/dtk:1", ManualClock(), lambda: None)
    seen = images.seen(Snapshot(objects={MODULES: of(module("a", "r/a:1")).objects[MODULES]}))
    assert seen.why == "which nodes load it is not known: they were not read"
    await images.close()


async def test_a_bug_of_ours_is_no_verdict() -> None:
    """It is reported at each Module, and tried again like any failure; who gives up hears nothing."""

    class Broken:
        async def access(self, *_: Any) -> Access:
            raise RuntimeError("oops")

    shown: list[int] = []
    images = ModuleImages(Broken(), "r/dtk:1", ManualClock(), lambda: shown.append(1))  # type: ignore[arg-type]
    (one,) = (await images.settled(of(module("a", "r/a:1")))).found
    assert (one.namespace, one.name, one.stage, one.status) == ("drivers", "a", "Image", Status.UNKNOWN)
    assert one.reason == "looking at it failed: RuntimeError: oops"
    assert shown == [1]
    other = ModuleImages(REGISTRIES, "r/dtk:1", ManualClock(), lambda: shown.append(1))
    other.seen(of(module("a", "r/a:1")))
    await other.close()
    assert shown == [1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Kept:
    """A report's sink that is a value."""

    data = b""

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.data = data


class Quiet:
    """A log that nobody reads."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_fields: None


async def test_a_preflight_tells_which_modules_are_not_ready(tmp_path: Path) -> None:
    """The whole way: a cluster's Modules, the target's toolkit, a registry, the report."""
    layout = layout_in(tmp_path)
    dtk = put_image(layout, [Made("etc/driver-toolkit-release.json", toolkit())])
    good = put_image(layout, [Made(f"opt/lib/modules/{KERNEL}/good.ko")])
    names = {"kind": "Module", "plural": "modules", "singular": "module", "listKind": "ModuleList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "kmm.sigs.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]}
    async with ApiServer(tmp_path / "data") as server, Client(load(str(server.kubeconfig))) as admin:
        await admin.send(calls.create(CRDS, {"metadata": {"name": "modules.kmm.sigs.x-k8s.io"}, "spec": spec}))
        await admin.send(calls.create(NAMESPACES, {"metadata": {"name": "drivers"}}))
        await admin.send(calls.create(resource_of(Node), NODE))
        with odd_registry(layout, lambda asked: Answer(404) if asked.path.endswith("/1") else None) as odd:
            for name, image in (("good", f"{odd.host}/k/good@{good.digest}"), ("missing", f"{odd.host}/k/missing:1")):
                await admin.send(calls.create(MODULES, module(name, image)))
            release = TargetRelease(
                version="5.2.0", kubernetes="1.38.0", images={"driver-toolkit": f"{odd.host}/ocp/dtk@{dtk.digest}"}
            )
            sink = Kept()
            async with ReadOnlyClient(load(str(server.kubeconfig)), namespace="ours") as client:
                run = PreflightTarget(
                    client=client,
                    request=TargetRequest(
                        target_version="5.2.0", source_version="5.0.0", inner_registries=frozenset({odd.host})
                    ),
                    release=release,
                    sink=sink,
                    clock=SystemClock(),
                    log=Quiet(),
                    builtin=(kernel_modules_ready.CHECK,),
                )
                await run.run(once=True)
    (risk,) = read(sink.data).risks
    assert (risk.name, risk.applies, risk.severity) == ("KernelModulesNotReady", "True", "critical")
    assert f"Kernel module drivers/missing will not load on kernel {KERNEL}, by stage Image: image " in risk.message
    assert "k/missing:1 inaccessible or does not exists: reading manifest" in risk.message


@pytest.mark.parametrize(
    ("request_", "inner"),
    [
        pytest.param(TargetRequest(target_version="5.2.0"), set(), id="nothing"),
        pytest.param(
            TargetRequest(target_version="5.2.0", inner_registries=frozenset({"a:1"})), {"a:1"}, id="what is listed"
        ),
        pytest.param(
            TargetRequest(target_version="5.2.0", plain_http=frozenset({"a:1"})),
            {"a:1"},
            id="what is listed for plain HTTP",
        ),
        pytest.param(
            TargetRequest(target_version="5.2.0", target_image="r.svc:5000/ocp@sha256:5"),
            {"r.svc:5000"},
            id="the target's own",
        ),
        pytest.param(
            TargetRequest(target_version="5.2.0", catalogs={"s": "c.svc/index:1"}),
            {"c.svc"},
            id="a catalog that was typed",
        ),
    ],
)
def test_which_inner_registries_objects_of_a_cluster_may_name(request_: TargetRequest, inner: set[str]) -> None:
    """Those that an administrator named, and never any: None would mean that."""
    assert listed_registries(request_).inner == inner
