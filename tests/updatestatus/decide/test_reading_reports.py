"""Objects of other releases: what is missing, what is new, what is spelled otherwise; never a crash, never "fine"."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.test_assessment import FULL

from kubekit.api import codec
from kubekit.lang.gotext import to_ns
from runup.cli.updatestatus.render import status_text as rendered
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.decode import decode, with_unknown
from runup.updatestatus.decide.read_status import HealthRow, report, report_of_status

JSON = dict[str, Any]
NOW = to_ns(b.NOW)
DRAIN: JSON = {"desiredDrain": "drain-new", "lastAppliedDrain": "uncordon-old"}
PAUSED = b.snapshot(machine_config_pools=(b.pool("master"), b.pool("worker", paused=True)))


def written(snapshot: Any = None) -> JSON:
    """An object as this release writes it."""
    status = assess(snapshot or b.snapshot(), None, b.NOW, max_bytes=None)
    return {"status": json.loads(codec.encode(status))}


def insights(obj: JSON) -> list[JSON]:
    """Every insight of the control plane."""
    found: list[JSON] = obj["status"]["controlPlane"]["informers"][0]["insights"]
    return found


def text(obj: JSON, details: str = "none") -> str:
    """What the command prints of it."""
    return rendered.render(report(obj), NOW, rendered.details(details))


def of_type(obj: JSON, type_: str) -> JSON:
    """The first insight of a type."""
    return next(insight for insight in insights(obj) if insight["type"] == type_)


NEWER: dict[str, Callable[[JSON], None]] = {
    "fields that nobody here knows": lambda obj: _spread(obj, {"brandNew": {"a": [1]}}),
    "an informer more": lambda obj: obj["status"]["controlPlane"]["informers"].append({"name": "other"}),
    "a condition more": lambda obj: obj["status"]["conditions"].append(
        {"type": "New", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ),
}


def _spread(value: Any, extra: JSON) -> None:
    if isinstance(value, dict):
        for each in list(value.values()):
            _spread(each, extra)
        value.update(extra)
    elif isinstance(value, list):
        for each in value:
            _spread(each, extra)


@pytest.mark.parametrize("change", NEWER.values(), ids=NEWER)
def test_what_is_only_more_changes_nothing(change: Callable[[JSON], None]) -> None:
    """A newer release adds fields."""
    old = written()
    new = copy.deepcopy(old)
    change(new)
    assert text(new, "all") == text(old, "all")


def test_an_insight_of_a_new_type_is_named() -> None:
    """And the update is not said to go well."""
    obj = written()
    insights(obj).append(
        {"uid": "etcd-1", "acquiredAt": "2026-01-01T00:00:00Z", "type": "EtcdMember", "etcdMember": {}}
    )
    insights(obj).append(
        {"uid": "etcd-2", "acquiredAt": "2026-01-01T00:00:00Z", "type": "EtcdMember", "etcdMember": {}}
    )
    assert (
        "-       Unknown   Unknown   2 insights of type EtcdMember cannot be read by this version of runup\n"
        in text(obj)
    )
    assert "proceeding well" not in text(obj)
    assert "Another version of the update status controller wrote the report" in text(obj, "health")


def test_pages_of_insights_show_unknown_ones_too() -> None:
    """As health insights, so that whoever shows a status need not know about decoding."""
    obj = written()
    insights(obj).append({"uid": "etcd-1", "acquiredAt": "2026-01-01T00:00:00Z", "type": "EtcdMember"})
    status, unknown = decode(obj)
    [row] = report_of_status(with_unknown(status, unknown, b.NOW)).health
    assert row.summary == "1 insight of type EtcdMember cannot be read by this version of runup"
    assert with_unknown(status, (), b.NOW) is status


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"uid": "x", "type": "Health"}, id="without its member"),
        pytest.param({"uid": "x", "type": "Health", "acquiredAt": "soon", "health": {}}, id="with a time that is none"),
        pytest.param({"uid": "x", "type": "Health", "acquiredAt": "2026-01-01T00:00:00Z", "health": []}, id="a list"),
    ],
)
def test_an_insight_that_cannot_be_decoded_is_named(broken: JSON) -> None:
    """One of them does not cost the others."""
    obj = written(PAUSED)
    insights(obj).append(broken)
    assert "1 insight of type Health cannot be read by this version of runup" in text(obj)
    assert "Outdated nodes in a paused pool 'worker' will not be updated" in text(obj)


def test_a_new_level_stands_first_as_it_is() -> None:
    """Nobody here can say that it is less bad than Critical."""
    obj = written(PAUSED)
    insights(obj).append(
        {
            "uid": "x",
            "acquiredAt": "2026-01-01T00:00:00Z",
            "type": "Health",
            "health": {
                "scope": {"type": "Galaxy"},
                "impact": {"level": "Fatal", "type": "Everything", "summary": "It is over"},
                "remediation": {},
            },
        }
    )
    lines = text(obj).partition("= Update Health =")[2].splitlines()
    assert lines[2].split() == ["-", "Fatal", "Everything", "It", "is", "over"]


def test_new_reasons_of_a_node_are_shown_as_they_are() -> None:
    """Neither updated nor pending: it is Unknown, and so not done."""
    obj = written()
    for condition in of_type(obj, "Node")["node"]["conditions"]:
        if condition["type"] == "Updating":
            condition["reason"] = "Teleporting"
    [line] = [line for line in text(obj).splitlines() if "Teleporting" in line]
    assert line.split()[:3] == ["master-0000", "Unknown", "Teleporting"]


def test_new_words_of_nodes_stand_above_known_ones() -> None:
    """An unknown rank may be the worst; of two nodes in one state, the one with a new phase comes first."""
    masters = (
        b.node("master-0000", "master", desired="new", state="Degraded", **DRAIN),
        b.node("master-0001", "master", state="Degraded"),
        b.node("master-0002", "master"),
    )
    obj = written(b.snapshot(nodes=masters))
    shown = {each["node"]["name"]: each["node"]["conditions"] for each in insights(obj) if each["type"] == "Node"}
    for name in ("master-0001", "master-0002"):
        updating = next(condition for condition in shown[name] if condition["type"] == "Updating")
        updating["reason"] = "Teleporting"
    pool = report(obj).control_plane_pool
    assert pool is not None
    assert [(row.name, row.assessment, row.phase) for row in pool.rows] == [
        ("master-0002", "Unknown", "Teleporting"),
        ("master-0001", "Degraded", "Teleporting"),
        ("master-0000", "Degraded", "Draining"),
    ]


def test_a_new_assessment_is_shown_as_it_is() -> None:
    """The field is for people."""
    obj = written()
    of_type(obj, "ClusterVersion")["clusterVersion"]["assessment"] = "Waiting for the moon"
    assert text(obj).startswith("= Control Plane =\nAssessment:      Waiting for the moon\n")


def _without(*names: str) -> Callable[[JSON], None]:
    def change(value: Any) -> None:
        if isinstance(value, dict):
            for name in names:
                value.pop(name, None)
            for each in value.values():
                change(each)
        elif isinstance(value, list):
            for each in value:
                change(each)

    return change


OLDER: dict[str, tuple[Callable[[JSON], None], str]] = {
    "no verbatim Progressing": (_without("progressing"), "etcd   -       -        "),
    "no summaries of pools": (_without("summaries"), "worker        Excluded     "),
    "no check names": (_without("check", "firstObservedAt"), "Outdated nodes in a paused pool 'worker' will not"),
    "no estimate": (_without("estimatedCompletedAt"), "Duration:        4m\n"),
    "no versions": (_without("versions"), "Target Version:  unknown (from unknown)\n"),
    "no own conditions": (_without("omitted"), "Completion:      0% (0 operators updated, 1 updating, 1 waiting)\n"),
}


@pytest.mark.parametrize(("change", "line"), OLDER.values(), ids=OLDER)
def test_what_an_older_release_does_not_write(change: Callable[[JSON], None], line: str) -> None:
    """The rest is printed."""
    obj = written(
        b.snapshot(
            cluster_operators=(b.operator("etcd", progressing="True"), b.operator("network")),
            machine_config_pools=PAUSED.machine_config_pools,
        )
    )
    change(obj)
    assert line in text(obj, "operators")


@pytest.mark.parametrize(("left_out", "expected"), [(3, 3), (0, 0), ("many", 0), (None, 0)])
def test_how_many_pools_were_left_out(left_out: Any, expected: int) -> None:
    """It is read where it is a number."""
    obj = written()
    obj["status"]["omittedWorkerPools"] = left_out
    assert decode(obj)[0].omitted_worker_pools == expected


@pytest.mark.parametrize(
    ("state", "line"),
    [("Completed", "4.14.1 (from 4.14.0)"), ("Partial", "4.14.1 (from incomplete 4.14.0)")],
)
def test_where_the_update_comes_from(state: str, line: str) -> None:
    """An update that was never finished is named as such."""
    history = b.update_history(b.entry(b.OLD, state, started=b.STARTED - b.minutes(90)))
    assert f"Target Version:  {line}\n" in text(written(b.snapshot(cluster_version=b.version(history))))


@pytest.mark.parametrize(
    ("paused", "current", "reason"),
    [(False, "old", "NoProblems"), (True, "old", "Paused"), (False, "new", "AllNodesUpdated")],
)
def test_why_a_pool_is_healthy(paused: bool, current: str, reason: str) -> None:
    """All done, held back on purpose, or simply nothing wrong."""
    pools = (b.pool("master"), b.pool("worker", paused=paused))
    nodes = (b.node("master-0000", "master"), b.node(current=current, desired=current))
    obj = written(b.snapshot(machine_config_pools=pools, nodes=nodes))
    [worker] = [
        each["machineConfigPool"]
        for informer in obj["status"]["workerPools"][0]["informers"]
        for each in informer["insights"]
        if each["type"] == "MachineConfigPool"
    ]
    assert [each["reason"] for each in worker["conditions"] if each["type"] == "Healthy"] == [reason]


def test_without_insights_of_pools_their_nodes_are_counted() -> None:
    """Upstream's controller never made them."""
    obj = written()
    expected = text(obj)
    for layer in (obj["status"]["controlPlane"], *obj["status"]["workerPools"]):
        for informer in layer["informers"]:
            informer["insights"] = [each for each in informer["insights"] if each["type"] != "MachineConfigPool"]
    assert text(obj) == expected


def test_a_union_that_is_nested_is_read_all_the_same() -> None:
    """As the very last draft had it; and the enhancement's own sample calls health UpdateHealth."""
    obj = written(PAUSED)
    expected = text(obj, "all")
    for layer in (obj["status"]["controlPlane"], *obj["status"]["workerPools"]):
        for insight in layer["informers"][0]["insights"]:
            inner = {key: insight.pop(key) for key in list(insight) if key not in ("uid", "acquiredAt")}
            if inner["type"] == "Health":
                inner["type"] = "UpdateHealth"
            insight["insight"] = inner
    assert text(obj, "all") == expected


def test_an_installation_that_is_marked_on_the_target() -> None:
    """As the first drafts had it."""
    obj = written()
    versions = of_type(obj, "ClusterVersion")["clusterVersion"]["versions"]
    versions["target"]["metadata"] = [{"key": "Installation"}]
    assert "Target Version:  4.14.1 (a new install)\n" in text(obj)


@pytest.mark.parametrize("obj", [{}, {"status": {}}, {"status": None}])
def test_an_object_without_status_tells_nothing(obj: JSON) -> None:
    """Readers ask `updating`, which is None then."""
    found = report(obj)
    assert found.updating is None
    assert not found.is_updating


@pytest.mark.parametrize("status", ["text", 7, [1]])
def test_what_is_no_status_at_all_is_one_clear_error(status: Any) -> None:
    """The frame has to be readable."""
    with pytest.raises(codec.DecodeError):
        report({"status": status})


@pytest.mark.parametrize(
    ("check", "resource"), [("NodeUnavailable", "pods"), ("", "nodes")], ids=["by its check", "by its object"]
)
def test_what_is_of_a_pool_stands_before_what_is_not(check: str, resource: str) -> None:
    """Of one level and one age, as `oc` collects them; a check of another kind may be about a node."""
    obj = written()
    for summary, named, about in (("other", "Test", "nodes"), ("node", check, resource)):
        health: JSON = {
            "scope": {"type": "ControlPlane", "resources": [{"resource": about, "name": "master-0"}]},
            "impact": {"level": "Warning", "type": "None", "summary": summary},
            "check": named,
        }
        insights(obj).append({"uid": summary, "acquiredAt": "2026-01-01T00:00:00Z", "type": "Health", "health": health})
    assert [row.summary for row in report(obj).health] == ["node", "other"]


LEVELS = ["Unknown", "Info", "Warning", "Error", "Critical"]


@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.none() | st.integers(0, 5)), max_size=14))
def test_the_order_of_health(rows: list[tuple[str, int | None]]) -> None:
    """Highest level first, newest first within, unknown ages last, ties as they came."""
    obj = written()
    for i, (level, minute) in enumerate(rows):
        health: JSON = {
            "scope": {"type": "ControlPlane"},
            "impact": {"level": level, "type": "None", "summary": str(i)},
            "check": "Test",
        }
        if minute is not None:
            health["startedAt"] = f"2026-01-01T00:0{minute}:00Z"
        insights(obj).append({"uid": f"h{i}", "acquiredAt": "2026-01-01T00:00:00Z", "type": "Health", "health": health})

    def key(row: HealthRow) -> tuple[int, int, int]:
        minute = row.since.minute if row.since else -1
        return -LEVELS.index(row.level), -minute, int(row.summary)

    found = [key(row) for row in report(obj).health]
    assert found == sorted(found)
    assert len(found) == len(rows)


@pytest.mark.parametrize("snapshot", FULL.values(), ids=FULL)
def test_every_status_renders(snapshot: Any) -> None:
    """Whatever is missing, with all details."""
    for details in rendered.DETAILS:
        assert text(written(snapshot), details).endswith("\n")


def test_what_could_not_be_read_is_printed_even_when_nothing_is_updating() -> None:
    """A cluster whose pools nobody sees may well be updating."""
    from runup.updatestatus.decide.alerts import Unreadable

    quiet = b.version([b.entry(b.NEW)], progressing="False")
    obj = written(b.snapshot(cluster_version=quiet, nodes=Unreadable("forbidden"), cluster_operators=()))
    assert text(obj).startswith("Could not determine whether the cluster is updating.\n\n= Update Health =\n")
    assert "Nodes could not be read, so part of the status is unknown" in text(obj)


ODD: dict[str, Callable[[JSON], None]] = {
    "a condition of another status": lambda obj: obj["status"]["controlPlane"]["conditions"][0].update(status="Maybe"),
    "conditions that are no list": lambda obj: obj["status"].update(conditions={"a": 1}),
    "a reference of another shape": lambda obj: obj["status"]["controlPlane"].update(resource="version"),
    "a pool without reference": lambda obj: obj["status"]["workerPools"][0].pop("resource"),
    "a count that is none": lambda obj: obj["status"]["workerPools"][0].update(omitted="many"),
    "an informer that is none": lambda obj: obj["status"]["workerPools"][0]["informers"].append(7),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_a_part_that_cannot_be_read_costs_no_other(change: Callable[[JSON], None]) -> None:
    """Operators, pools and nodes are all there."""
    obj = written()
    change(obj)
    found = report(obj)
    assert (len(found.operators), [pool.name for pool in found.worker_pools]) == (2, ["worker"])
    assert len(found.worker_pools[0].rows) == 3


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += _places(each, (*path, key))
    return found


SAMPLE = written(FULL["alerts"])
PLACES = _places(SAMPLE)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSONS), min_size=1, max_size=4))
def test_whatever_another_release_writes_is_read_or_refused_in_words(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    """Any part may be anything: never a traceback."""
    obj = copy.deepcopy(SAMPLE)
    for path, value in changes:
        holder: Any = obj
        try:
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    try:
        assert text(obj, "all").endswith("\n")
    except codec.DecodeError as error:
        assert "status" in str(error)


def test_an_operator_that_says_nothing_of_itself_is_not_healthy() -> None:
    """Without the condition Available nobody can tell."""
    obj = written(b.snapshot(cluster_operators=(b.operator("etcd", available=None),)))
    [etcd] = [
        each["clusterOperator"]
        for informer in obj["status"]["controlPlane"]["informers"]
        for each in informer["insights"]
        if each["type"] == "ClusterOperator"
    ]
    found = [(each["status"], each["reason"]) for each in etcd["conditions"] if each["type"] == "Healthy"]
    assert found == [("Unknown", "Unavailable")]


@pytest.mark.parametrize(("assessment", "done"), [("Completed", True), ("Progressing", False)])
def test_without_operators_the_version_says_whether_the_control_plane_is_done(assessment: str, done: bool) -> None:
    """Nothing to count is not the same as all done."""
    obj = written(b.snapshot(cluster_operators=()))
    of_type(obj, "ClusterVersion")["clusterVersion"]["assessment"] = assessment
    assert report(obj).control_plane_done is done
