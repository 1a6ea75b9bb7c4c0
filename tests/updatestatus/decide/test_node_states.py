"""The state of one node and of its pool, rule by rule (reference: oc's mco.go; see `nodes`)."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.updatestatus.decide import builders as b

from kubekit.api.meta_v1 import Condition, LabelSelector, LabelSelectorRequirement
from runup.updatestatus.decide import nodes
from runup.updatestatus.decide.insights import pool_completion, pool_updating
from runup.updatestatus.decide.nodes import NodeState, PoolState, Target

VERSIONS = nodes.versions_of(b.configs())
TO_NEW = Target(b.NEW)
DRAIN = {"desiredDrain": "drain-new", "lastAppliedDrain": "uncordon-old"}
DRAINED = {"desiredDrain": "drain-new", "lastAppliedDrain": "drain-new"}
GOING = {"desired": "new", "state": "Working"}


def state(pool: Any = None, target: Target = TO_NEW, **node: Any) -> NodeState:
    """The state of one worker."""
    return nodes.node_state(b.node(**node), pool or b.pool(), VERSIONS, target)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({}, ("Pending", "Outdated", None), id="at the old release: pending"),
        pytest.param({"current": "new", "desired": "new"}, ("Updated", "Completed", 0), id="at the target: updated"),
        pytest.param(GOING, ("Updating", "Progressing", 300), id="on its way, working: updating"),
        pytest.param({**GOING, "state": "Rebooting"}, ("Rebooting", "Progressing", 300), id="rebooting"),
        pytest.param({**GOING, "state": ""}, ("Updating", "Progressing", 300), id="on its way in no known state"),
        pytest.param({**GOING, "state": "Done"}, ("Updated", "Completed", 0), id="done before the config says so"),
        pytest.param({**GOING, **DRAIN}, ("Draining", "Progressing", 600), id="a drain is asked for and not applied"),
        pytest.param({**GOING, **DRAINED}, ("Updating", "Progressing", 300), id="the drain is over"),
        pytest.param({**GOING, **DRAINED, "state": "Done"}, ("Draining", "Progressing", 600), id="drained, yet Done"),
        pytest.param(
            {**GOING, "desiredDrain": "uncordon-new", "lastAppliedDrain": "drain-new"},
            ("Updating", "Progressing", 300),
            id="an uncordon is no drain",
        ),
        pytest.param({**GOING, "desiredDrain": "drain-new"}, ("Updating", "Progressing", 300), id="half of a drain"),
        pytest.param(
            {**GOING, "lastAppliedDrain": "drain-old", "state": "Done"},
            ("Updated", "Completed", 0),
            id="done, and no drain is asked for",
        ),
        pytest.param(
            {**GOING, "desiredDrain": "drain-new", "lastAppliedDrain": "", "state": "Done"},
            ("Updated", "Completed", 0),
            id="done, and no drain was ever applied",
        ),
        pytest.param({"desired": "gone"}, ("Pending", "Unavailable", None), id="wants a configuration nobody knows"),
        pytest.param({"current": "gone", "desired": "gone"}, ("Pending", "Outdated", None), id="at an unknown one"),
        pytest.param(
            {"current": "new", "desired": None, "desiredConfig": None},
            ("Updated", "Unavailable", 0),
            id="at the target without a wish: the daemon has work to do",
        ),
    ],
)
def test_phase_assessment_and_estimate(node: dict[str, Any], expected: tuple[str, str, int | None]) -> None:
    """What the machine-config daemon's annotations come to."""
    found = state(**node)
    assert (found.phase, found.assessment, found.estimate_s) == expected


def test_a_node_of_a_paused_pool_is_excluded_unless_it_is_done() -> None:
    """Pausing keeps nodes where they are; those at the target are done all the same."""
    paused = b.pool(paused=True)
    assert (state(paused).phase, state(paused).assessment, state(paused).estimate_s) == ("Paused", "Excluded", 0)
    assert state(paused, current="new", desired="new").assessment == "Completed"


def test_a_wish_for_another_configuration_than_the_pools_is_no_update() -> None:
    """A node that goes to the release by an older rendered configuration is not on its way to the target."""
    assert not state(b.pool(target="newest"), **GOING).updating


@pytest.mark.parametrize(
    ("node", "updated", "updating"),
    [
        pytest.param({"current": "new", "desired": "new"}, True, False, id="settled"),
        pytest.param({"current": "old", "desired": "new", "state": "Working"}, False, True, id="moving"),
        pytest.param({"current": "old", "desired": "old"}, False, False, id="its turn has not come"),
        pytest.param({"current": "old", "desiredConfig": None}, True, False, id="it was never told what to be"),
    ],
)
def test_a_change_of_architecture_is_told_by_configurations(
    node: dict[str, Any], updated: bool, updating: bool
) -> None:
    """Both configurations carry the same release then, so only the pool's own one counts."""
    versions = dict.fromkeys(("worker-old", "worker-new"), b.NEW)
    found = nodes.node_state(b.node(**node), b.pool(), versions, Target(b.NEW, migrating=True))
    assert (found.updated, found.updating) == (updated, updating)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], False, id="no history"),
        pytest.param([(b.NEW, "image-a")], False, id="an installation"),
        pytest.param([(b.NEW, "image-a"), (b.OLD, "image-b")], False, id="another version, another image"),
        pytest.param([(b.OLD, "image-a"), (b.NEW, "image-b")], False, id="back to another version"),
        pytest.param([(b.NEW, "image-a"), (b.OLD, "image-a")], False, id="another version, the same image"),
        pytest.param([(b.NEW, "image-a"), (b.NEW, "image-a")], False, id="the same release once more"),
        pytest.param([(b.NEW, "image-a"), (b.NEW, "image-b")], True, id="the same version, another image"),
        pytest.param([(b.NEW, "image-b"), (b.NEW, "image-a")], True, id="and back"),
        pytest.param([(b.NEW, "image-a"), (b.OLD, "image-b"), (b.OLD, "image-c")], False, id="one that is over"),
        pytest.param([(b.NEW, "image-a"), (b.NEW, "image-b"), (b.OLD, "image-c")], True, id="after an update"),
    ],
)
def test_what_a_change_of_architecture_is(entries: list[tuple[str, str]], expected: bool) -> None:
    """It is reported by the two newest entries alone."""
    # As read from a server: what is equal is not the same string.
    history = [b.entry(version, image=image) for version, image in json.loads(json.dumps(entries))]
    assert nodes.is_architecture_change(b.version(history)) is expected


BAD_READY, BAD_DISK = b.cond("Ready", "Unknown", message='no "word"'), b.cond("DiskPressure", "True")
BAD_NETWORK = b.cond("NetworkUnavailable", "Unknown")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        pytest.param({"conditions": [BAD_READY]}, "Not ready", id="not ready"),
        pytest.param({"conditions": [BAD_READY, BAD_DISK]}, "Not ready | Disk pressure", id="in order of conditions"),
        pytest.param({"conditions": [BAD_NETWORK]}, "Network unavailable", id="Unknown is not False"),
        pytest.param({"unschedulable": True}, "Node is marked unschedulable", id="cordoned"),
        pytest.param({"state": "Working"}, "Machine Config Daemon is processing the node", id="busy"),
        pytest.param({"currentImage": "a"}, "Machine Config Daemon is processing the node", id="half an image"),
        pytest.param({"unschedulable": True, "state": "Working"}, "Node is marked unschedulable", id="one is enough"),
    ],
)
def test_unavailable_nodes(node: dict[str, Any], message: str) -> None:
    """A node that cannot take work says why, and its estimate is unknown unless it is updated."""
    found = state(**node)
    assert (found.assessment, found.message, found.estimate_s) == ("Unavailable", message, None)
    assert state(**{**node, "current": "new", "desired": "new"}).estimate_s == 0


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({}, id="at rest"),
        pytest.param({"state": "Degraded"}, id="given up"),
        pytest.param({"state": "Unreconcilable"}, id="given up for good"),
        pytest.param({"conditions": [b.cond("MemoryPressure", "True"), b.cond("Ready", "True")]}, id="memory pressure"),
    ],
)
def test_available_nodes(node: dict[str, Any]) -> None:
    """What does not count as unavailable."""
    assert not state(**node).unavailable


def test_a_node_that_is_updating_is_progressing_though_unavailable() -> None:
    """A node that reboots is not ready, and that is how it should be."""
    found = state(**GOING, conditions=[BAD_READY])
    assert found.unavailable
    assert (found.assessment, found.message, found.estimate_s) == ("Progressing", "", 300)


@pytest.mark.parametrize(("degraded", "updated"), [("Degraded", False), ("Unreconcilable", False), ("Degraded", True)])
def test_a_degraded_node_says_the_daemons_reason(degraded: str, updated: bool) -> None:
    """Degraded goes before unavailable, and before the phase."""
    place = "new" if updated else "old"
    found = state(state=degraded, current=place, desired=place, reason="disk is full", conditions=[BAD_READY])
    assert (found.assessment, found.message) == ("Degraded", "disk is full")
    assert found.estimate_s == (0 if updated else None)


def test_a_node_without_desired_configuration_is_not_degraded() -> None:
    """Without a wish there is nothing that the daemon could have failed at."""
    assert not state(state="Degraded", desiredConfig=None).degraded


@pytest.mark.parametrize(
    ("pool", "node", "unavailable", "reasons"),
    [
        pytest.param({}, {"desiredImage": "x"}, False, ["Not ready"], id="an image in a pool without layering"),
        pytest.param({}, {"desiredImage": ""}, True, ["Not ready"], id="an empty image is none"),
        pytest.param({"layered": "x"}, {"desiredImage": "x"}, True, ["Not ready"], id="the layered pool's image"),
        pytest.param(
            {"layered": "x"},
            {"desiredImage": "y"},
            False,
            ["Not ready", f"Node has an unexpected annotation {b.PREFIX}newestImageEquivalentConfig=x"],
            id="another image than the layered pool's",
        ),
    ],
)
def test_layered_pools(pool: dict[str, str], node: dict[str, Any], unavailable: bool, reasons: list[str]) -> None:
    """A node with an image that its pool does not expect is somebody else's business."""
    meta: dict[str, Any] = {}
    if "layered" in pool:
        meta = {
            "labels": {b.PREFIX + "layering-enabled": ""},
            "annotations": {b.PREFIX + "newestImageEquivalentConfig": pool["layered"]},
        }
    found = state(b.pool(**meta), conditions=[BAD_READY], **node)
    assert (found.unavailable, [t.reason for t in found.troubles]) == (unavailable, reasons)


@pytest.mark.parametrize(
    ("conditions", "node", "minutes", "serious"),
    [
        pytest.param([b.cond("Ready", "False")], {}, 4.9, False, id="not ready for less than five minutes"),
        pytest.param([b.cond("Ready", "False")], {}, 5, True, id="not ready for five minutes"),
        pytest.param([b.cond("DiskPressure", "True")], {}, 0.9, False, id="disk pressure for less than a minute"),
        pytest.param([b.cond("DiskPressure", "True")], {}, 1, True, id="disk pressure for a minute"),
        pytest.param([b.cond("NetworkUnavailable", "True")], {}, 0.9, False, id="no network for less than a minute"),
        pytest.param([b.cond("NetworkUnavailable", "True")], {}, 1, True, id="no network for a minute"),
        pytest.param([b.cond("Ready", "False", since=None)], {}, 0, True, id="nobody knows since when"),
        pytest.param([], {"unschedulable": True}, 900, False, id="a cordon alone never"),
        pytest.param([], {"state": "Working"}, 900, False, id="a busy daemon alone never"),
    ],
)
def test_when_a_trouble_is_serious(
    conditions: list[Condition], node: dict[str, Any], minutes: float, serious: bool
) -> None:
    """Short troubles belong to any update."""
    found = state(conditions=conditions, **node)
    assert found.is_serious(b.STARTED + timedelta(minutes=minutes)) is serious


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        pytest.param({"node-role.kubernetes.io/worker": ""}, "worker", id="a worker"),
        pytest.param({"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": ""}, "infra", id="custom"),
        pytest.param({"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/master": ""}, "master", id="both"),
        pytest.param({"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/infra": ""}, "master", id="first"),
        pytest.param({"other": ""}, None, id="none"),
        pytest.param({"zone": "b"}, "by-zone", id="by an expression"),
    ],
)
def test_the_pool_of_a_node(labels: dict[str, str], pool: str | None) -> None:
    """Master first, then custom pools, then worker."""
    by_zone = LabelSelector(match_expressions=(LabelSelectorRequirement(key="zone", operator="In", values=("b",)),))
    pools = (b.pool("worker"), b.pool("infra"), b.pool("by-zone", selector=by_zone), b.pool("master"))
    found = nodes.assess_pools(pools, [b.node(labels=labels)], VERSIONS, TO_NEW)
    assert [each.name for each in found] == ["worker", "infra", "by-zone", "master"]
    assert [each.name for each in found if each.total] == ([pool] if pool else [])


def test_a_pool_without_selector_selects_nothing_and_an_empty_one_everything() -> None:
    """As label selectors do."""
    every = b.pool("every", selector=LabelSelector())
    found = nodes.assess_pools([every], [b.node(labels={})], VERSIONS, TO_NEW)
    assert found[0].total == 1


MIXED = {
    "degraded": {"state": "Degraded"},
    "unavailable": {"conditions": [BAD_READY]},
    "draining": {**GOING, **DRAIN},
    "updating": GOING,
    "rebooting": {**GOING, "state": "Rebooting"},
    "pending": {},
    "updated": {"current": "new", "desired": "new"},
}


def mixed(*names: str, paused: bool = False) -> PoolState:
    """A pool of nodes by what they are."""
    members = [b.node(f"{name}-{i}", **MIXED[name]) for i, name in enumerate(names)]
    return nodes.assess_pools([b.pool(paused=paused)], members, VERSIONS, TO_NEW)[0]


@pytest.mark.parametrize(
    ("names", "paused", "assessment"),
    [
        ((), False, "Completed"),
        (("updated", "updated"), False, "Completed"),
        (("pending", "pending"), False, "Pending"),
        (("pending", "degraded"), False, "Pending"),
        (("pending", "updating", "degraded"), False, "Degraded"),
        (("pending", "updated"), False, "Progressing"),
        (("pending", "updated"), True, "Excluded"),
        (("degraded", "updated"), True, "Degraded"),
        (("draining", "pending"), False, "Progressing"),
    ],
)
def test_the_assessment_of_a_pool(names: tuple[str, ...], paused: bool, assessment: str) -> None:
    """The first that fits, in oc's order; a degraded node that is pending counts as pending first."""
    assert mixed(*names, paused=paused).assessment == assessment


@pytest.mark.parametrize(
    ("names", "paused", "expected"),
    [
        pytest.param(("updated", "updated"), False, ("False", "Updated"), id="all done"),
        pytest.param(("updating", "pending"), False, ("True", "Progressing"), id="a node on its way, none drained"),
        pytest.param(("draining", "pending"), False, ("True", "Progressing"), id="a node being drained"),
        pytest.param(("updating", "pending"), True, ("True", "Progressing"), id="paused with a node on its way"),
        pytest.param(("pending", "updated"), True, ("False", "Paused"), id="paused in the middle"),
        pytest.param(("pending", "updated"), False, ("True", "Progressing"), id="between two batches"),
        pytest.param(("pending", "pending"), False, ("False", "Pending"), id="not begun"),
    ],
)
def test_whether_a_pool_is_updating(names: tuple[str, ...], paused: bool, expected: tuple[str, str]) -> None:
    """One node on its way is enough, whatever it is at."""
    assert pool_updating(mixed(*names, paused=paused))[1:3] == expected


def test_the_counts_of_a_pool() -> None:
    """One node of each kind; the unavailable one is pending besides, and so is the degraded one."""
    found = mixed(*MIXED)
    counts = (found.total, found.available, found.progressing, found.outdated, found.draining, found.degraded)
    # The three that are on their way are unavailable only if the daemon works on them, which it does.
    assert counts == (7, 3, 3, 6, 1, 1)
    assert (found.done, found.pending, found.excluded, found.is_complete) == (1, 3, 0, False)


@given(st.permutations(list(MIXED)), st.integers(0, 6))
def test_the_order_of_rows_does_not_depend_on_the_order_of_nodes(names: list[str], repeated: int) -> None:
    """Degraded, unavailable, progressing (draining, updating, rebooting), outdated, completed; then by name."""
    rows = mixed(*names, names[repeated]).rows()
    kinds = [row.name.rpartition("-")[0] for row in rows]
    order = ["degraded", "unavailable", "draining", "updating", "rebooting", "pending", "updated"]
    assert kinds == sorted(kinds, key=order.index)
    assert all(one.order < two.order for one, two in pairwise(rows))


@pytest.mark.parametrize(
    ("done", "total", "percent"),
    [(0, 0, 100), (0, 3, 0), (1, 3, 33), (1, 8, 12), (3, 8, 38), (2, 3, 67), (999, 1000, 99), (3, 3, 100)],
)
def test_how_far_a_pool_is(done: int, total: int, percent: int) -> None:
    """Half to even, and whole only when no node is left."""
    assert pool_completion(done, total) == percent
