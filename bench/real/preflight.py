"""First risks on a real node: with the target's image there, without it, and with half a CPU; and a fix after them.

Two nodes with kubelets, an installed release whose operator runs in a pod, and the image as it is published (`make
image`). A preflight is asked for by a patch of ClusterVersion, as `runup` does it, and the time runs until its status
has the risk that was made for it: a paused pool. Needs what `make real` needs, and apt for the image.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tests.realcluster import build, images, installing, releases
from tests.realcluster.cluster import HERE, RealCluster
from tests.realcluster.installing import CONFIG
from tests.realcluster.kube import PODS, Kube
from tests.realcluster.machine_config import API, POOL, MachineConfig
from tests.realcluster.node import SOCKET, Node
from tests.realcluster.releases import ReleaseWorld
from tests.realcluster.story import FIRST, PREFLIGHT, Story
from tools.image import build as published

from bench.aims import commit_of
from bench.measure import pace, spread
from bench.speed.preflight_stages import Request, request_of
from kubekit.kube import calls
from kubekit.oci.layers import Image, open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from runup.process.names import OPERATOR_NAMESPACE
from runup.release.control.image_build import BuiltImage, Layer, build_image

THERE, RUNUP, ALL = "5.1.0", "5.1.1", "5.1.2"
"""Targets: the installed image with another release's manifests, one whose runup is another, too, and one of which the
node has no layer."""
ROUNDS = 5
KUBELET = "kubelet: volumes, sandbox, image, container"
PULL = "of which the pull of the image, as the kubelet tells it"
RISK = f"MachineConfigPoolPaused-{POOL}"
WAIT_S = 120.0
CALM_S = 2.0
JSON = dict[str, Any]


def run(*, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measures each case that many times, after one time that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="runup-published-") as temporary:
        layout = Path(temporary) / "image"
        made = published.images(layout, ["amd64"])
        os.environ[build.IMAGE] = f"oci:{layout}:{made.tag}"
        sizes = made.images[0].layers
        with RealCluster() as cluster:
            kube = Kube(cluster.kubeconfig)
            with _installed(cluster, kube, Path(temporary)) as story:
                before = pace()
                cases = _measured(_Asking(story), rounds)
                return {
                    "commit": commit_of(images.ROOT),
                    "pace": round((before + pace()) / 2, 3),
                    "megabytes": {name: round(size / 1e6, 1) for name, size in sizes.items()},
                    "cases": cases,
                }


@contextmanager
def _installed(cluster: RealCluster, kube: Kube, temporary: Path) -> Iterator[Story]:
    """A cluster whose operator has installed its release, and three to which it may be updated."""
    folder = cluster.folder / "releases"
    component = cluster.registry.push(releases.component_image(folder), "component")
    operator = images.operator(folder)
    with ReleaseWorld(folder, cluster.registry, HERE, operator, component) as world:
        world.release(FIRST)
        world.release(THERE, previous=(FIRST,))
        for version, kept in ((RUNUP, len(_layers(operator)) - 1), (ALL, 0)):
            world.operator = built_again(operator, temporary / version, kept)
            world.release(version, previous=(FIRST,))
        installing.prepare(kube, world, list(world.releases))
        machines = MachineConfig(cluster, kube)
        machines.install(FIRST)
        story = Story(cluster, kube, world, machines)
        story.install()
        story.until(lambda: story.completed(FIRST), f"{FIRST} is Completed")
        story.until(lambda: _offered(story) >= {THERE, RUNUP, ALL}, "the graph is read", stalled_s=60)
        yield story


def _offered(story: Story) -> set[str]:
    """The versions to which ClusterVersion says that one may update."""
    status = story.status
    conditional = [each["release"] for each in status.get("conditionalUpdates") or ()]
    return {each["version"] for each in (*conditional, *(status.get("availableUpdates") or ()))}


def built_again(image: BuiltImage, layout: Path, kept: int) -> BuiltImage:
    """Writes the image with the same files in other layers into `layout`; the `kept` lowest layers stay as they are."""
    opened = open_image(Layout.open(image.layout), image.tag)
    layers = []
    for number, data in enumerate(_layers(image)):
        tar = gzip.decompress(data)
        if number >= kept:
            tar = _with_file(tar, f"built-again-{number}")
            data = gzip.compress(tar, compresslevel=6, mtime=0)
        layers.append(Layer(data, sha256(tar)))
    return build_image(layout, layers, tag=image.tag, config=opened.config.config)


def _layers(image: BuiltImage) -> list[bytes]:
    opened: Image = open_image(Layout.open(image.layout), image.tag)
    return [opened.layout.blob(layer.digest).read_bytes() for layer in opened.manifest.layers]


def _with_file(tar: bytes, name: str) -> bytes:
    buffer = io.BytesIO(tar)
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


def _measured(asking: _Asking, rounds: int) -> dict[str, Any]:
    cases: dict[str, tuple[str, bool, str]] = {
        "image on the node": (THERE, False, ""),
        "image on the node, half a CPU": (THERE, False, "500m"),
        "another runup to pull": (RUNUP, True, ""),
        "all to pull": (ALL, True, ""),
    }
    found: dict[str, Any] = {}
    for name, (version, pulled, limit) in cases.items():
        asking.story.set_preflights(**({"cpuLimit": limit} if limit else {}))
        first, gone, later = [], [], []
        for number in range(rounds + 1):
            if pulled:
                asking.forget(version)
            told = asking.round(version)
            print(f"real_preflight: {name}, {number}: {json.dumps(told)}", file=sys.stderr, flush=True)
            if number:
                first.append(told["first"])
                gone.append(told["gone"])
                later.append(told["later"])
        stages = {stage: spread([each[stage] for each in first]) for stage in first[0]}
        found[name] = {
            "request_to_first_risks_seconds": stages.pop("all"),
            "request_to_first_risks_stages": stages,
            "object_changed_to_risk_gone_seconds": spread(gone),
            "the_same_two_seconds_later": spread(later),
        }
    return found


class _Asking:
    """Preflights, one after the other."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._client = story.kube.client
        self._version = story.kube.resource(CONFIG, "ClusterVersion")
        self._pools = story.kube.resource(API, "MachineConfigPool")

    def round(self, version: str) -> dict[str, Any]:
        """The seconds of one preflight: until its first risks, by stages, and from two fixes until they are seen."""
        self._pause(paused=True)
        asked = time.time()
        self._desire({"mode": "Preflight", "version": version})
        self._until(lambda: RISK in self._risks(version), "the first risks")
        seen = time.time()
        gone = self._fixed(version)
        self._pause(paused=True)
        self._until(lambda: RISK in self._risks(version), "the risk again")
        time.sleep(CALM_S)
        later = self._fixed(version)
        stages = self._stages(asked, seen)
        self._desire(None)
        self._until(lambda: not self._pods(), "the preflight's end")
        return {"first": stages, "gone": gone, "later": later}

    def forget(self, version: str) -> None:
        """Removes the release's image from the nodes, and what only it needs there."""
        image = self.story.world.releases[version].image
        for node in self.story.cluster.nodes.values():
            self._until(partial(_lacks, image, node, "containers", "ls"), f"no container of {image}")
            names = [line.split()[0] for line in _ctr(node, "images", "ls").splitlines() if _digest(image) in line]
            if names:
                _ctr(node, "images", "rm", "--sync", *names)
            self._until(partial(_lacks, _digest(image), node, "content", "ls", "-q"), f"nothing of {image} is left")

    def _fixed(self, version: str) -> float:
        began = time.perf_counter()
        self._pause(paused=False)
        self._until(lambda: RISK not in self._risks(version), "the risk is gone")
        return round(time.perf_counter() - began, 3)

    def _stages(self, asked: float, seen: float) -> dict[str, float]:
        """Between moments of the API server's audit log, of the node's disk, and of the target's own log."""
        requests = self._requests(asked, seen)
        (pod,) = self._pods()
        name, node = pod["metadata"]["name"], self.story.cluster.nodes[pod["spec"]["nodeName"]]
        (folder,) = (node.disk / "var" / "log" / "pods").glob(f"*_{name}_*/*")
        made = next(each for each in requests if each.verb == "create" and each.uri.endswith("/pods"))
        bound = next(each for each in requests if f"/pods/{name}/binding" in each.uri)
        reports = self._reports(name)
        moments = {
            "request, operator's pass, Deployment to pod": made.answered,
            "scheduler": bound.answered,
            KUBELET: folder.stat().st_mtime,
            "runc, interpreter, imports, first report": reports[0][0],
            "lists, evaluation, report's write": next((at for at, risks in reports if RISK in risks), seen),
            "notice, operator's pass, status": seen,
        }
        told, before = {}, asked
        for stage, moment in moments.items():
            told[stage] = round(max(moment - before, 0.0), 3)
            before = max(before, moment)
            if stage == KUBELET:
                told[PULL] = self._pull(pod)
        return told | {"all": round(seen - asked, 3)}

    def _pull(self, pod: JSON) -> float:
        """Seconds that the kubelet says to have pulled the image for; 0 if it was there."""
        events = self.story.kube.listed("v1", "Event", OPERATOR_NAMESPACE)
        for event in events:
            if event["involvedObject"].get("uid") == pod["metadata"]["uid"] and event["reason"] == "Pulled":
                taken = event["message"].partition('" in ')[2].split(" ")[0]
                return _seconds(taken) if taken else 0.0
        return 0.0

    def _reports(self, pod: str) -> list[tuple[float, list[str]]]:
        lines = self.story.kube.logs(OPERATOR_NAMESPACE, pod).splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [
            (datetime.fromisoformat(each["timestamp"]).timestamp(), each["risks"])
            for each in events
            if each["event"] == "report written"
        ]

    def _requests(self, asked: float, seen: float) -> list[Request]:
        lines = self.story.cluster.plane.audit_log.read_bytes().splitlines()
        told = [json.loads(line) for line in lines if line.endswith(b"}")]
        requests = [request_of(each) for each in told if each["stage"] == "ResponseComplete"]
        return [each for each in requests if asked <= each.received <= seen]

    def _risks(self, version: str) -> list[str]:
        updates = self._client.send(calls.get_raw(self._version, "version"))["status"].get("conditionalUpdates") or []
        return next((each.get("riskNames", []) for each in updates if each["release"]["version"] == version), [])

    def _pods(self) -> list[JSON]:
        """The preflight's, those included that end."""
        return list(self._client.send(calls.list_raw(PODS, OPERATOR_NAMESPACE, label_selector=PREFLIGHT)).items)

    def _desire(self, desired: JSON | None) -> None:
        self._client.send(calls.merge_patch(self._version, "version", {"spec": {"desiredUpdate": desired}}))

    def _pause(self, *, paused: bool) -> None:
        self._client.send(calls.merge_patch(self._pools, POOL, {"spec": {"paused": paused}}))

    def _until(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not within {WAIT_S:g} s\n{self.story.failure_details()}")
            time.sleep(0.005)


def _ctr(node: Node, *words: str) -> str:
    return node.run("ctr", "--address", SOCKET, "--namespace", "k8s.io", *words)


def _lacks(text: str, node: Node, *words: str) -> bool:
    return text not in _ctr(node, *words)


def _digest(image: str) -> str:
    return image.rpartition("@")[2]


def _seconds(text: str) -> float:
    """Returns the seconds of a Go duration such as 1m2.5s or 812ms."""
    if text.endswith("ms"):
        return round(float(text[:-2]) / 1000, 3)
    minutes, _, seconds = text.removesuffix("s").rpartition("m")
    return round(60 * float(minutes or 0) + float(seconds), 3)
