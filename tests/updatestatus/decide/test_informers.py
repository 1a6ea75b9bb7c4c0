"""Others' entries are kept as they are, whatever they are; together with ours they stay within the limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.test_limits import LATER, cluster, faults

from kubekit.api import codec
from runup.updatestatus.decide import finding as limits
from runup.updatestatus.decide.assess import assess, merge_informers, others_of, own_status, room_beside
from runup.updatestatus.decide.finding import INFORMER
from runup.updatestatus.decide.read_status import report

JSON = dict[str, Any]
THEIRS: JSON = {"name": "theirs", "insights": [{"uid": "x", "type": "FromTheFuture", "future": {"a": [1, None]}}]}


def stored_pool(name: str, *informers: JSON, **more: Any) -> JSON:
    """A worker pool as stored."""
    ref = {"group": "machineconfiguration.openshift.io", "resource": "machineconfigpools", "name": name}
    return {"name": name, "resource": ref, "informers": list(informers), **more}


def as_stored(status: Any) -> JSON:
    """As JSON has it, with lists."""
    stored: JSON = json.loads(codec.encode(status))
    return stored


def stored(snapshot: Any, **others: Any) -> JSON:
    """What is stored once others have written into our status."""
    status = as_stored(assess(snapshot, None, b.NOW))
    status["controlPlane"]["informers"] += others.get("control_plane", [])
    for each in status["workerPools"]:
        each["informers"] += others.get(each["name"], [])
    status["workerPools"] += others.get("pools", [])
    return status


def written(snapshot: Any, status: JSON) -> JSON:
    """What the controller makes of it."""
    others = others_of(status)
    room = room_beside(others)
    made = assess(snapshot, own_status(status), b.NOW, max_bytes=room.bytes, others_pools=room.pools, full=room.full)
    return as_stored(merge_informers(made, others))


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({}, id="nobody else"),
        pytest.param({"control_plane": [THEIRS]}, id="of the control plane"),
        pytest.param({"worker": [THEIRS]}, id="of a pool of ours"),
        pytest.param(
            {"pools": [stored_pool("virtual", THEIRS, conditions=[{"type": "Own"}])]}, id="of a pool of its own"
        ),
        pytest.param({"worker": [THEIRS, {"name": "third"}], "control_plane": [THEIRS]}, id="of several informers"),
    ],
)
def test_writing_again_changes_nothing(others: JSON) -> None:
    """Ours is the same as before, and theirs is byte for byte what it was, known to this version or not."""
    status = stored(b.snapshot(), **others)
    assert written(b.snapshot(), status) == status


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="no status"),
        pytest.param({}, id="an empty one"),
        pytest.param({"controlPlane": 3, "workerPools": {"a": 1}}, id="no objects"),
        pytest.param({"workerPools": [7, {"informers": [THEIRS]}, stored_pool("a")]}, id="a pool without a name"),
        pytest.param({"controlPlane": {"informers": [None, "x", {"name": INFORMER}]}}, id="informers that are none"),
    ],
)
def test_what_is_no_entry_is_nobodys(status: JSON | None) -> None:
    """Nothing of it is kept, and nothing fails."""
    assert not others_of(status)


def test_what_we_cannot_read_of_ours_is_computed_anew() -> None:
    """Theirs stays."""
    status = stored(b.snapshot(), control_plane=[THEIRS])
    status["controlPlane"]["informers"][0]["insights"] = [{"uid": 5}]
    assert own_status(status) is None
    assert written(b.snapshot(), status)["controlPlane"]["informers"][1:] == [THEIRS]


def test_a_pool_that_went_leaves_theirs() -> None:
    """Without what we said about it."""
    status = stored(b.snapshot())
    status["workerPools"].append(stored_pool("gone", {"name": INFORMER}, THEIRS, conditions=[{"type": "Updating"}]))
    [left] = [each for each in written(b.snapshot(), status)["workerPools"] if each["name"] == "gone"]
    assert left == stored_pool("gone", THEIRS)


@pytest.mark.parametrize("kib", [1, 60, 120, 190])
def test_ours_leaves_room_for_theirs(kib: int) -> None:
    """256 KiB are for all of them."""
    big = {"name": "theirs", "insights": [{"uid": "x", "text": "x" * kib * 1024}]}
    snapshot = cluster(2000, 10, [0, 1, 2])
    status = written(snapshot, {"controlPlane": {"informers": [big]}})
    assert len(codec.encode(status)) <= limits.MAX_BYTES
    assert status["controlPlane"]["informers"][1] == big


def test_ours_is_never_less_than_a_report_needs() -> None:
    """However much others wrote: that is between them and the API server."""
    big = {"name": "theirs", "insights": [{"uid": "x", "text": "x" * 400 * 1024}]}
    assert room_beside(others_of({"controlPlane": {"informers": [big]}})).bytes == limits.LEAST_BYTES


@pytest.mark.parametrize(("ours", "theirs"), [(32, 0), (32, 3), (40, 5), (20, 12), (10, 31)])
def test_pools_of_all_are_no_more_than_the_api_has(ours: int, theirs: int) -> None:
    """Theirs stay, ours are left out and counted."""
    snapshot = cluster(ours, ours, [0])
    foreign = [stored_pool(f"virtual-{i}", THEIRS) for i in range(theirs)]
    status = written(snapshot, {"workerPools": foreign})
    assert len(status["workerPools"]) == min(ours + theirs, limits.MAX_POOLS)
    assert [each for each in status["workerPools"] if each in foreign] == foreign
    assert status.get("omittedWorkerPools", 0) == max(0, ours + theirs - limits.MAX_POOLS)


def test_a_pool_of_ours_with_theirs_in_it_counts_once() -> None:
    """32 pools, in three of which another informer has entries, are 32 pools."""
    snapshot = cluster(32, 32, [0])
    status = as_stored(assess(snapshot, None, LATER))
    for each in status["workerPools"][:3]:
        each["informers"].append(THEIRS)
    assert written(snapshot, status).get("omittedWorkerPools", 0) == 0


CROWD = [{"name": f"informer-{i}"} for i in range(16)]


def test_a_layer_has_no_more_informers_than_the_api_has() -> None:
    """Where sixteen others are, ours does not fit: its insights are counted as left out, and the report says so."""
    status = written(b.snapshot(), {"workerPools": [stored_pool("worker", *CROWD)]})
    [worker] = [each for each in status["workerPools"] if each["name"] == "worker"]
    assert worker["informers"] == CROWD
    nodes = sum("worker" in node.metadata.name for node in b.snapshot().nodes)  # type: ignore[union-attr]
    assert worker["omitted"]["nodes"] == nodes
    assert complete(status) == (
        "False",
        f"Other informers have taken every place of pool 'worker'; left out in all: {nodes} nodes",
    )


def test_a_control_plane_of_others_is_not_complete() -> None:
    """Its operators are left out, too, which no number counts."""
    status = written(b.snapshot(nodes=(), machine_config_pools=()), {"controlPlane": {"informers": CROWD}})
    assert status["controlPlane"]["informers"] == CROWD
    assert complete(status) == ("False", "Other informers have taken every place of the control plane")


def complete(status: JSON) -> tuple[str, str]:
    """Status and message of the condition that says whether the report is whole."""
    [found] = [each for each in status["conditions"] if each["type"] == "Complete"]
    return found["status"], found.get("message", "")


def test_the_last_place_in_a_layer_is_ours() -> None:
    """Next to fifteen others, who stay where they are."""
    crowd = [{"name": f"informer-{i}"} for i in range(15)]
    status = written(b.snapshot(), {"workerPools": [stored_pool("worker", *crowd)]})
    [worker] = [each for each in status["workerPools"] if each["name"] == "worker"]
    assert [each["name"] for each in worker["informers"]] == [INFORMER, *(each["name"] for each in crowd)]
    assert not worker.get("omitted")


def test_what_another_informer_says_too_is_shown_once() -> None:
    """Nodes and operators that two informers report are one; ours comes first."""
    status = stored(b.snapshot())
    twin = {**status["workerPools"][0]["informers"][0], "name": "a-twin"}
    plane = {**status["controlPlane"]["informers"][0], "name": "a-twin"}
    before = report({"status": stored(b.snapshot())})
    status["workerPools"][0]["informers"].insert(0, twin)
    status["controlPlane"]["informers"].insert(0, plane)
    after = report({"status": status})
    assert [p.rows for p in after.worker_pools] == [p.rows for p in before.worker_pools]
    assert after.operators == before.operators


def test_the_definition_takes_what_is_written() -> None:
    """Our own status is still one that the definition has."""
    assert faults(assess(b.snapshot(), None, b.NOW, others_pools=frozenset({"virtual"}))) == []
