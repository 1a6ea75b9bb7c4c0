"""kill -9 of the operator at random moments of an update: the next process ends it, in order, with nothing missed.

The operator is a bare process beside the server. `RUNUP_UPDATE_KILLS` says how often (50 takes some minutes),
`RUNUP_UPDATE_SEED` at which moments.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench.releases_world import AGENT, World, world
from bench.standin import AGENT as STAND_IN
from tests.controlplane.build import Unavailable
from tests.controlplane.rows import SERVERS
from tests.journeys.cluster import small_release
from tests.journeys.cluster.small_release import FIRST, LEVELS, VERSION

from runup.api.scheme import Resource
from runup.kube import calls

KILLS = int(os.environ.get("RUNUP_UPDATE_KILLS", "2"))
SEED = int(os.environ.get("RUNUP_UPDATE_SEED", "1"))
# One process at a time: a killed one cannot give its lease back, and a short one is lost on a loaded machine.
ALONE = "--no-leader-elect"
WRITES = ("create", "update", "patch")
Key = tuple[str, str, str]

LIMIT = pytest.mark.timeout(300 + 60 * KILLS)
pytestmark = [pytest.mark.slow, LIMIT]
# The real server's rows have a limit of their own, which fifty kills do not keep.
HERE = [*SERVERS[:1], *(pytest.param("kube-apiserver", marks=[pytest.mark.e2e, LIMIT]) for _ in SERVERS[1:])]


@dataclass(frozen=True)
class Write:
    """A write that the server carried out: when it came, and when it was answered."""

    key: Key
    agent: str
    came: datetime
    answered: datetime


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
    """Each update is of a release of its own, and killed once; the moments come from the seed."""
    drawn = random.Random(SEED)
    with here.operator(FIRST, ALONE) as operator:
        here.until_completed(operator)
    wrong = []
    with here.operator("5.0.1", ALONE) as operator:
        usual = here.until_completed(operator)
    for number in range(KILLS):
        version, moment = f"5.0.{number + 2}", drawn.uniform(0.1, 1.1) * usual
        problems = _killed_once(here, version, moment)
        wrong += [f"{version}, killed after {moment:.2f} s of {usual:.2f} s: {problem}" for problem in problems]
    assert wrong == []


def _killed_once(here: World, version: str, moment: float) -> list[str]:
    """What went wrong in an update to `version` whose operator is killed after so many seconds."""
    since, began = here.moment(), time.perf_counter()
    with here.operator(version, ALONE) as first:
        while time.perf_counter() - began < moment:
            time.sleep(0.005)
        first.process.kill()
        first.process.wait()
    again = datetime.now(UTC)
    with here.operator(version, ALONE) as second:
        here.until_completed(second)
    # The sandbox's log has whole requests only; that of a real server is written when a request is answered, too.
    writes = _writes(here, since)
    return [*missed(here, version), *_unwritten(writes), *_out_of_order(writes), *_backwards(writes, again)]


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


def _unwritten(writes: list[Write]) -> Iterator[str]:
    """Objects that the log knows no write of, though each differs from what it was."""
    written = {write.key for write in writes if write.agent.startswith(AGENT)}
    for key in small_release.applied(FIRST):
        if key not in written:
            yield f"the log has no write of {key}"


def _out_of_order(writes: list[Write]) -> Iterator[str]:
    """Writes of a run level before an earlier one was all there and its operators said so."""
    levels = small_release.applied(FIRST)
    done: dict[Key, datetime] = {}
    for write in sorted(writes, key=lambda write: write.answered):
        # An operator's word counts for its ClusterOperator, the release's for everything else. A watch may tell the
        # word before whoever said it has an answer, so that it counts from when it came.
        if (write.key[0] == "clusteroperators") == write.agent.startswith(STAND_IN):
            done.setdefault(write.key, write.came if write.agent.startswith(STAND_IN) else write.answered)
    for write in writes:
        level = levels.get(write.key)
        if level is None or not write.agent.startswith(AGENT) or write.key[0] == "clusteroperators":
            continue
        late = [key for key, of in levels.items() if of < level and not (key in done and done[key] <= write.came)]
        if late:
            yield f"{write.key} was written before {late[0]}"


def _backwards(writes: list[Write], again: datetime) -> Iterator[str]:
    """Writes of an earlier run level after a later one, by the same process."""
    levels = small_release.applied(FIRST)
    for process in ([w for w in writes if w.came < again], [w for w in writes if w.came >= again]):
        reached = LEVELS[0]
        for write in sorted(process, key=lambda write: write.came):
            level = levels.get(write.key)
            if level is None or not write.agent.startswith(AGENT) or write.key[0] == "clusteroperators":
                continue
            if level < reached:
                yield f"{write.key} of run level {level} was written again after run level {reached}"
            reached = max(level, reached)


def _writes(here: World, since: int) -> list[Write]:
    found: dict[str, Write] = {}
    with (here.data / "audit.log").open("rb") as file:
        file.seek(since)
        for line in file:
            event = json.loads(line)
            write = _write(event)
            if write is not None:
                found[event["auditID"]] = write
    return list(found.values())


def _write(event: dict[str, Any]) -> Write | None:
    place, agent = event.get("objectRef", {}), event.get("userAgent", "")
    if event["verb"] not in WRITES or event.get("responseStatus", {}).get("code", 500) >= 300:
        return None
    if place.get("subresource") not in (None, "status") or "name" not in place:
        return None
    if place.get("subresource") == "status" and not agent.startswith(STAND_IN):
        return None
    key = (place["resource"], place.get("namespace", ""), place["name"])
    # A Namespace is in itself, to the audit log.
    key = key if place["resource"] != "namespaces" else ("namespaces", "", place["name"])
    return Write(key, agent, _time(event["requestReceivedTimestamp"]), _time(event["stageTimestamp"]))


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
    return Resource(group, version, plural, plural, namespaced=plural not in whole)
