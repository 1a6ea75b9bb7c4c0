"""A rehearsed release next to the real one, on nodes that run it: `runup rehearse` first, then every object is applied.

Compared are, object by object, whether it is refused, created, changed or left alone, the words of a refusal, and the
fields of a change with their values; then, once controllers and nodes have done their part, whether the objects still
are as the release left them. What it says about each difference is the cluster's truth.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.applying.control.release_folders import write_release
from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import Kube
from tests.rehearse.reference.beside_the_server import Answer, applied_object, install_before
from tests.rehearse.reference.seeded_release import SeededRelease, seeded_release
from tests.rehearse.rehearsed_world import CLUSTER_VERSION, TARGET, World, definitions, populated, release_files

from kubekit.kube import calls
from runup.applying.control.loading import read_folder
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.decide.rendering import ClusterValues, render
from runup.applying.decide.task import Task, tasks_of
from runup.rehearse.decide import differences
from runup.rehearse.decide.rehearsal_findings import value
from runup.release.decide.payload import load_payload

JSON = dict[str, Any]
ANSWERS = (
    "refused, created, changed or left alone",
    "refused in the same words",
    "changed: the same fields, from and to the same values",
    "still as the release left it when controllers and nodes were done",
)
_QUIET_S = 5.0
_LONGEST = 400
"""Characters of a value in the data of `runup rehearse`."""


@dataclass
class Agreement:
    """How often both said the same, by what was compared, with each difference; `not_known` said so beforehand."""

    asked: Counter[str] = field(default_factory=Counter)
    same: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    not_known: list[str] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)

    def compare(self, what: str, where: str, rehearsed: object, real: object) -> None:
        """Counts one answer."""
        self.asked[what] += 1
        if rehearsed == real:
            self.same[what] += 1
        else:
            self.different.append(f"{where}: {what}: rehearsed {rehearsed}, real {real}")


def measured(cluster: RealCluster, kube: Kube, seeds: Iterable[int]) -> JSON:
    """Compares the releases of some seeds, and returns the figures; nothing of them is left."""
    agreement = Agreement()
    for seed in seeds:
        compare(cluster, kube, seeded_release(seed), agreement)
        print(f"release of seed {seed}: {dict(agreement.same)} of {dict(agreement.asked)}", file=sys.stderr, flush=True)
    return {
        "objects": dict(agreement.verdicts),
        "same": {what: f"{agreement.same[what]} of {agreement.asked[what]}" for what in ANSWERS},
        "different": agreement.different,
        "notKnown": agreement.not_known,
    }


def compare(cluster: RealCluster, kube: Kube, release: SeededRelease, agreement: Agreement) -> None:
    """Rehearses the release of a seed by the command, applies it, and counts what both came to."""
    with tempfile.TemporaryDirectory(prefix="runup-release-") as folder:
        root = write_release(Path(folder), TARGET, release_files(*release.after))
        try:
            asyncio.run(_compare(cluster, kube, release=release, root=root, agreement=agreement))
        finally:
            _remove(kube, [*release.after, *release.before])


async def _compare(cluster: RealCluster, kube: Kube, release: SeededRelease, root: Path, agreement: Agreement) -> None:
    async with populated(cluster.kubeconfig) as world:
        resource = await world.resource(CLUSTER_VERSION)
        uid = (await world.client.send(calls.get_raw(resource, "version")))["metadata"]["uid"]
        await install_before(world, release, uid)
        _settled(kube, release.before)
        said = _rehearsed(cluster, root)
        manifests = load_payload(read_folder(root), source=str(root)).manifests
        # As the operator does it: kinds that the release defines are looked up in its definitions.
        kinds = ResourceDiscovery(world.client)
        kinds.define(manifests)
        named = {obj["metadata"]["name"] for obj in release.after}
        real = [
            (task, await _applied(world, task, uid, kinds))
            for task in tasks_of(manifests)
            if task.identity.name in named
        ]
    _settled(kube, release.after)
    for task, answer in real:
        _compare_object(agreement, release, said=said, task=task, answer=answer)
        if answer.after is not None:
            now = kube.get(answer.after["apiVersion"], task.identity.kind, task.identity.name, task.identity.namespace)
            moved = [each.path for each in differences.changes(task.identity, answer.after, now)]
            agreement.compare(ANSWERS[3], f"seed {release.number}, {task.identity}", [], moved)


async def _applied(world: World, task: Task, uid: str, kinds: ResourceDiscovery) -> Answer:
    obj = render(task, ClusterValues(owner_uid=uid)).object
    return await applied_object(world.client, task.identity, obj, kinds)


def _rehearsed(cluster: RealCluster, root: Path) -> JSON:
    """What `runup rehearse` says about the release in a folder, as data."""
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "runup", "rehearse", f"--release-dir={root}", "-o", "json"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2, 3), f"{done.returncode}: {done.stdout[-2000:]}{done.stderr}"
    rehearsal: JSON = json.loads(done.stdout)["rehearsal"]
    assert rehearsal["tried"] == rehearsal["tasks"], rehearsal["notices"]
    return rehearsal


def _compare_object(agreement: Agreement, release: SeededRelease, said: JSON, task: Task, answer: Answer) -> None:
    named, where = str(task.identity), f"seed {release.number}, {task.identity}"
    refused = {each["object"]: each for each in said["refused"]}
    changed = {each["object"]: each for each in said["changes"]}
    shown = "refused" if named in refused else changed.get(named, {}).get("action", "left alone")
    shown = {"create": "created", "update": "changed", "nothing": "left alone"}.get(shown, shown)
    fields = _fields(task, answer)
    real = "left alone" if answer.verdict == "changed" and not fields else answer.verdict
    agreement.verdicts[real] += 1
    if named in refused and refused[named]["kind"] == "not known":
        agreement.not_known.append(f"{where}: {refused[named]['message']}; really {real}")
        return
    words = refused[named]["message"] if named in refused else answer.refusal.message if answer.refusal else ""
    agreement.compare(ANSWERS[0], f"{where} ({words})" if shown != real else where, shown, real)
    if shown == real == "refused" and answer.refusal is not None:
        # A refused change of a spec ends with its difference, line by line, which the copy's server does not print.
        # It may be one of several faults, which are in brackets.
        both = (refused[named]["message"], answer.refusal.message)
        first_lines = (text.partition("\n")[0].rstrip("]") for text in both)
        agreement.compare(ANSWERS[1], where, *first_lines)
    if shown == real == "changed":
        rehearsed = {each["path"]: [each["before"], each["after"]] for each in changed[named]["fields"]}
        agreement.compare(ANSWERS[2], where, rehearsed, fields)


def _fields(task: Task, answer: Answer) -> dict[str, list[str]]:
    """The fields that applying has changed, with their values before and after as a plan shows them."""
    if answer.before is None or answer.after is None:
        return {}
    found = differences.changes(task.identity, answer.before, answer.after)
    return {each.path: [value(each.before, _LONGEST), value(each.after, _LONGEST)] for each in found}


def _settled(kube: Kube, objects: list[JSON]) -> None:
    """Returns once nobody has changed what the objects ask for, for some seconds."""
    state, since = None, time.monotonic()

    def is_quiet() -> bool:
        nonlocal state, since
        now = [differences.without_server_fields(_found(kube, obj)) for obj in objects]
        if now != state:
            state, since = now, time.monotonic()
        return time.monotonic() - since >= _QUIET_S

    kube.until(is_quiet, "controllers have done their part")


def _found(kube: Kube, obj: JSON) -> JSON:
    try:
        return kube.get(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    except LookupError:
        return {}


def _remove(kube: Kube, objects: list[JSON]) -> None:
    """Deletes the objects, and the definitions of the platform; returns once their namespace is gone."""
    for obj in reversed([*definitions(), *objects]):
        found = _found(kube, obj)
        if found:
            kube.delete(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    spaces = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "Namespace"}
    for space in spaces:
        kube.until(lambda space=space: not kube.get("v1", "Namespace", space), f"namespace {space} is gone")
