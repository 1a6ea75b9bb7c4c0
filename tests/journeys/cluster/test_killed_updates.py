"""kill -9 of the operator at random moments of an update: the next process ends it, in order, with nothing missed.

The operator is a bare process next to the server. `RUNUP_UPDATE_KILLS` says how often (50 takes some minutes),
`RUNUP_UPDATE_SEED` at which moments. What was missed and in which order objects came is evaluated by the server's own
count of its changes; the audit log, which may come late and in which a killed client's requests are anybody's guess,
only says what one process sent after another.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from bench.releases_world import AGENT, World, events, world
from tests.controlplane.build import Unavailable
from tests.controlplane.rows import SERVERS
from tests.journeys.cluster import small_release
from tests.journeys.cluster.following import Following, Key
from tests.journeys.cluster.small_release import FIRST, VERSION

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.lang import yaml as kyaml

KILLS = int(os.environ.get("RUNUP_UPDATE_KILLS", "2"))
SEED = int(os.environ.get("RUNUP_UPDATE_SEED", "1"))
# One process at a time: a killed one cannot give its lease back, and a short one is lost on a loaded machine.
ALONE = "--no-leader-elect"
WRITES = ("create", "update", "patch")

LIMIT = pytest.mark.timeout(900 + 120 * KILLS)
pytestmark = [pytest.mark.slow, LIMIT]
# The real server's rows have a separate limit, which fifty kills do not keep.
HERE = [*SERVERS[:1], *(pytest.param("kube-apiserver", marks=[pytest.mark.e2e, LIMIT]) for _ in SERVERS[1:])]


@dataclass(frozen=True)
class Write:
    """A write of an operator's process, when the server took it up."""

    key: Key
    process: str
    came: datetime


@pytest.fixture(params=HERE)
def here(request: pytest.FixtureRequest) -> Iterator[World]:
    """A server with the small release installed and somebody who answers its workloads."""
    folder = Path(tempfile.mkdtemp(prefix="runup-test-updates-"))
    try:
        with world(request.param, folder, small_release.write) as made, made.stand_in():
            yield made
    except Unavailable as why:
        pytest.skip(str(why))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_killed_at_random_moments_it_ends_completed(here: World) -> None:
    """Each update is of a separate release, and killed once; the moments come from the seed."""
    drawn = random.Random(SEED)
    with here.operator(FIRST, ALONE) as operator:
        here.until_completed(operator)
    wrong = []
    resources = {plural: _resource(plural) for plural, _, _ in small_release.applied(FIRST)}
    with Following(here.kubeconfig, resources) as following:
        with here.operator("5.0.1", ALONE) as operator:
            usual = here.until_completed(operator)
        for number in range(KILLS):
            version, moment = f"5.0.{number + 2}", drawn.uniform(0.1, 1.1) * usual
            since = here.moment()
            _killed_once(here, version, moment)
            problems = [*out_of_order(following.first(version)), *backwards(_writes(here, since))]
            problems += missed(here, version)
            wrong += [f"{version}, killed after {moment:.2f} s of {usual:.2f} s: {problem}" for problem in problems]
    assert wrong == []


def _killed_once(here: World, version: str, moment: float) -> None:
    """An update to `version` whose operator is killed after so many seconds; the two processes use their names."""
    first_name, second_name = (_named(here, f"{version}-{which}") for which in ("first", "second"))
    began = time.perf_counter()
    with here.operator(version, ALONE, kubeconfig=first_name) as first:
        while time.perf_counter() - began < moment:
            time.sleep(0.005)
        first.process.kill()
        first.process.wait()
    with here.operator(version, ALONE, kubeconfig=second_name) as second:
        here.until_completed(second)


def _named(here: World, user: str) -> Path:
    """The administrator's kubeconfig for `user`, so that the audit log tells processes apart whatever the moment."""
    made = kyaml.load(here.kubeconfig.read_bytes())
    for each in made["users"]:
        each["user"] |= {"as": user, "as-groups": ["system:masters"]}
    path = here.folder / f"{user}.kubeconfig"
    path.write_text(json.dumps(made))
    return path


def missed(here: World, version: str) -> Iterator[str]:
    """Objects that are not as this release has them."""
    for plural, namespace, name in small_release.applied(version):
        found = here.client.send(calls.get_raw(_resource(plural), name, namespace))
        if plural == "clusteroperators":
            says = next((each["version"] for each in found["status"]["versions"]), "")
        else:
            says = found["metadata"]["annotations"].get(VERSION)
        if says != version:
            yield f"{plural} {namespace}/{name} is of {says}"


def out_of_order(first: Mapping[Key, int]) -> Iterator[str]:
    """Objects that were never of the release, or before an earlier run level was all there and its operators said so.

    `first` has the revision at which each object first was of it, a ClusterOperator by its operator's word.
    """
    levels = small_release.applied(FIRST)
    for key, level in levels.items():
        if key not in first:
            yield f"{key} was never of it"
            continue
        late = [other for other, of in levels.items() if of < level and first.get(other, 0) > first[key]]
        if late and key[0] != "clusteroperators":
            yield f"{key} was of it before {late[0]}"


def backwards(writes: Sequence[Write]) -> Iterator[str]:
    """Writes of an earlier run level after a later one, by the same process; a write that is not told is none."""
    levels = small_release.applied(FIRST)
    reached: dict[str, int] = {}
    for write in sorted(writes, key=lambda write: write.came):
        level = levels.get(write.key)
        # An operator's object is made before its turn, and put in its turn.
        if level is None or write.key[0] == "clusteroperators":
            continue
        before = reached.setdefault(write.process, level)
        if level < before:
            yield f"{write.key} of run level {level} was written again after run level {before}"
        reached[write.process] = max(level, before)


def _writes(here: World, since: int) -> list[Write]:
    found = {event["auditID"]: _write(event) for event in events(here.data / "audit.log", since)}
    return [write for write in found.values() if write is not None]


def _write(event: dict[str, Any]) -> Write | None:
    """Whatever came of it: a request whose client was killed may have been carried out."""
    place = event.get("objectRef", {})
    if not event.get("userAgent", "").startswith(AGENT) or event["verb"] not in WRITES or "name" not in place:
        return None
    if place.get("subresource"):
        return None
    # A Namespace is in itself, to the audit log.
    namespace = "" if place["resource"] == "namespaces" else place.get("namespace", "")
    user = event.get("impersonatedUser", {}).get("username", "")
    return Write((place["resource"], namespace, place["name"]), user, _time(event["requestReceivedTimestamp"]))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _resource(plural: str) -> Resource:
    groups = {
        "deployments": ("apps", "v1"),
        "roles": ("rbac.authorization.k8s.io", "v1"),
        "rolebindings": ("rbac.authorization.k8s.io", "v1"),
        "things": (small_release.GROUP, "v1"),
        "clusteroperators": ("config.openshift.io", "v1"),
        "customresourcedefinitions": ("apiextensions.k8s.io", "v1"),
    }
    group, version = groups.get(plural, ("", "v1"))
    whole = ("namespaces", "clusteroperators", "customresourcedefinitions")
    return Resource(group=group, version=version, kind=plural, plural=plural, namespaced=plural not in whole)
