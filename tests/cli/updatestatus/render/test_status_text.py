"""Each line of the status text, branch by branch (reference: oc's status command; its bytes are its contract)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.updatestatus.decide import builders as b

from kubekit.lang.gotext import to_ns
from runup.cli.updatestatus.render import status_text as rendered
from runup.cli.updatestatus.render.status_text import changes, summary
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import report_of_status
from runup.updatestatus.decide.snapshot import Snapshot

FRACTION_NS = 368975


def text(snapshot: Snapshot, minutes: float = 4, details: str = "none", fraction: int = 0) -> str:
    """The whole text so long after the start."""
    now = b.STARTED + b.minutes(minutes) + timedelta(microseconds=fraction // 1000)
    report = report_of_status(assess(snapshot, None, now, max_bytes=None))
    return rendered.render(report, to_ns(b.STARTED + b.minutes(minutes)) + fraction, rendered.details(details))


def line(of: str, label: str) -> str:
    """The value of a labelled line."""
    return next(each for each in of.splitlines() if each.startswith(label)).removeprefix(f"{label}:").strip()


def at(done: int, total: int = 10, **changes: Any) -> Snapshot:
    """An update of so many operators."""
    operators = tuple(b.operator(f"o{i}", b.NEW if i < done else b.OLD, **changes) for i in range(total))
    return b.snapshot(cluster_operators=operators)


PREVIOUS = [b.entry(b.OLD), b.entry("4.13.9")]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([b.entry(b.NEW, "Partial")], "4.14.1 (a new install)", id="an installation"),
        pytest.param([b.entry(b.NEW, "Partial"), *PREVIOUS], "4.14.1 (from 4.14.0)", id="an update"),
        pytest.param(
            [b.entry(b.NEW, "Partial"), b.entry(b.OLD, "Partial"), *PREVIOUS],
            "4.14.1 (from incomplete 4.14.0)",
            id="from an incomplete one",
        ),
        pytest.param(
            [b.entry(b.NEW, "Partial"), b.entry(b.NEW, image="x")],
            "4.14.1 to Multi-Architecture",
            id="another architecture",
        ),
        pytest.param(
            [b.entry(b.NEW, "Partial"), b.entry(b.NEW, "Partial", image="x")],
            "4.14.1 (from incomplete 4.14.1)",
            id="another architecture after an incomplete update",
        ),
        pytest.param([b.entry(b.NEW, "Partial"), b.entry(b.NEW)], "4.14.1 (from 4.14.1)", id="the same image again"),
        pytest.param([], "unknown (from unknown)", id="no history"),
    ],
)
def test_the_target_version(history: Any, expected: str) -> None:
    """In the order of oc's rules: install, incomplete, architecture, update."""
    snapshot = b.snapshot(cluster_version=b.version(history))
    assert line(text(snapshot), "Target Version") == expected


@pytest.mark.parametrize(
    ("minutes", "duration"),
    [
        (0, "now (Est. Time Remaining: 1h12m)"),
        (0.1, "6s (Est. Time Remaining: 1h12m)"),
        (10, "10m (Est. Time Remaining: 1h)"),
        (10.45, "10m (Est. Time Remaining: 59m)"),
        (10.5, "11m (Est. Time Remaining: 59m)"),
        (51, "51m (Est. Time Remaining: 11m)"),
        (51.7, "52m (Est. Time Remaining: <10m)"),
        (60, "1h"),
        (66, "1h6m (Est. Time Remaining: <10m)"),
        (72, "1h12m (Est. Time Remaining: <10m)"),
        (72.1, "1h12m (Est. Time Remaining: N/A; estimate duration was 1h2m)"),
        (120, "2h (Est. Time Remaining: N/A; estimate duration was 1h10m)"),
    ],
)
def test_duration_and_estimate_by_the_baseline(minutes: float, duration: str) -> None:
    """An hour and a fifth; what is overdue counts five sixths."""
    assert line(text(at(0), minutes), "Duration") == duration


@pytest.mark.parametrize(
    ("minutes", "assessment"),
    [(60, "Progressing"), (60.5, "Progressing - Slow"), (72, "Progressing - Slow"), (72.1, "Stalled")],
)
def test_the_assessment(minutes: float, assessment: str) -> None:
    """By what remains of the estimate."""
    assert line(text(at(0), minutes), "Assessment") == assessment


def test_a_change_of_architecture_has_no_estimate() -> None:
    """Yet it can be slow."""
    snapshot = b.snapshot(cluster_version=b.version([b.entry(b.NEW, "Partial"), b.entry(b.NEW, image="x")]))
    expected = "1h5m (Est. Time Remaining: N/A for Multi-Architecture Migration)"
    assert line(text(snapshot, 65), "Duration") == expected
    assert line(text(snapshot, 65), "Assessment") == "Progressing - Slow"


def test_the_duration_of_an_update_that_history_ended() -> None:
    """Its own, though operators are not done."""
    done = b.version([b.entry(b.NEW, took=b.minutes(50)), b.entry(b.OLD)])
    found = text(b.snapshot(cluster_version=done), 300)
    assert line(found, "Duration") == "50m (Est. Time Remaining: 12m)"


def test_without_history_no_time_has_gone_by() -> None:
    """oc counts from nothing then, and health from the Progressing condition."""
    found = text(b.snapshot(cluster_version=b.version([])), 7)
    assert line(found, "Duration") == "now (Est. Time Remaining: 1h12m)"
    assert "7m      Info    None     Update is proceeding well" in found


@pytest.mark.parametrize(
    ("operators", "completion", "health"),
    [
        pytest.param(
            [b.operator("a"), b.operator("b", b.NEW)],
            "50% (1 operators updated, 0 updating, 1 waiting)",
            "2 Healthy",
            id="half",
        ),
        pytest.param(
            [
                b.operator("a", progressing="True"),
                b.operator("b", progressing="Unknown"),
                b.operator("c", progressing=None),
            ],
            "0% (0 operators updated, 1 updating, 0 waiting)",
            "3 Healthy",
            id="two that do not say what they do",
        ),
        pytest.param(
            [b.operator("a", available=None), b.operator("b", available="Unknown"), b.operator("c", degraded="True")],
            "0% (0 operators updated, 0 updating, 3 waiting)",
            "0 Healthy, 2 Unavailable, 1 Available but degraded",
            id="none is well",
        ),
        pytest.param(
            [b.operator("a", available="False", degraded="True"), b.operator("b", payload=False)],
            "0% (0 operators updated, 0 updating, 1 waiting)",
            "0 Healthy, 1 Unavailable",
            id="unavailable goes before degraded, and others do not count",
        ),
        pytest.param(
            [b.operator("a", degraded="True")],
            "0% (0 operators updated, 0 updating, 1 waiting)",
            "0 Healthy, 1 Available but degraded",
            id="degraded alone",
        ),
    ],
)
def test_completion_and_health_of_operators(operators: Any, completion: str, health: str) -> None:
    """Counts of the payload's operators."""
    found = text(b.snapshot(cluster_operators=tuple(operators)))
    assert line(found, "Completion") == completion
    assert line(found, "Operator Health") == health


def test_the_line_of_updating_operators_is_there_only_if_there_are_any() -> None:
    """In the order of operators."""
    assert "Updating:" not in text(at(3))
    going = [b.operator(name, progressing="True") for name in ("network", "etcd")]
    assert line(text(b.snapshot(cluster_operators=tuple(going))), "Updating") == "network, etcd"


def test_the_table_of_updating_operators() -> None:
    """Reasons are cut at twenty characters, further lines of a message are rows, ages keep their fraction."""
    operators = (
        b.operator("etcd", progressing=b.cond("Progressing", "True", "x" * 20, "one", b.STARTED + b.minutes(4))),
        b.operator("network", progressing=b.cond("Progressing", "True", "x" * 21, "two\n\nlines")),
        b.operator("dns", progressing=b.cond("Progressing", "True", "", "")),
        b.operator("waits"),
    )
    found = text(b.snapshot(cluster_operators=operators), details="operators", fraction=FRACTION_NS)
    assert found.partition("\nUpdating Cluster Operators\n")[2].partition("\nControl")[0] == (
        "NAME      SINCE   REASON                 MESSAGE\n"
        f"etcd      6m8s    {'x' * 20}   one\n"
        f"network   4m      {'x' * 17}...   two\n"
        f"                                         \n"
        f"                                         lines\n"
        "dns       4m      -                      \n"
    )


@pytest.mark.parametrize("details", ["none", "nodes", "health"])
def test_the_table_of_operators_has_to_be_asked_for(details: str) -> None:
    """With operators or all."""
    assert "Updating Cluster Operators" not in text(at(0, progressing="True"), details=details)
    assert "Updating Cluster Operators" not in text(at(0), details="operators")


def test_a_control_plane_that_is_done() -> None:
    """One line, at the time of looking or at history's own."""
    done = b.snapshot(cluster_operators=(b.operator(at=b.NEW),))
    assert text(done, 64.4).startswith(
        "= Control Plane =\nUpdate to 4.14.1 successfully completed at 2026-03-01T11:04:24Z (duration: 1h4m)\n\n"
    )
    ended = b.version([b.entry(b.NEW, took=b.minutes(7)), b.entry(b.OLD)], progressing="False")
    done = b.snapshot(cluster_version=ended, cluster_operators=(b.operator(at=b.NEW),))
    assert text(done, 64).startswith(
        "= Control Plane =\nUpdate to 4.14.1 successfully completed at 2026-03-01T10:07:00Z (duration: 7m)\n\n"
    )


UPDATED = {"current": "new", "desired": "new"}


def test_control_plane_nodes_that_are_done_take_one_line() -> None:
    """With their version."""
    masters = [b.node(f"m{i}", "master", **UPDATED) for i in range(3)]
    assert "\n\nAll control plane nodes successfully updated to 4.14.1\n\n" in text(
        b.snapshot(nodes=(*masters, b.node()))
    )


def test_a_cluster_without_workers_has_no_section_for_them() -> None:
    """Compact and single-node clusters."""
    assert "Worker" not in text(b.snapshot(nodes=(b.node("m", "master"),)))
    assert "Control Plane Nodes" not in text(b.snapshot(nodes=(b.node("w"),)))


def test_pools() -> None:
    """One that is empty, one that is done, one that is paused and degraded; all with nodes have a table."""
    pools = ("master", "worker", "empty", "done", "mixed")
    nodes = (
        b.node("w1"),
        b.node("d1", "done", **UPDATED),
        b.node("p1", "mixed", state="Degraded", reason="why"),
        b.node("p2", "mixed"),
        b.node("p3", "mixed", **UPDATED),
    )
    snapshot = b.snapshot(
        machine_config_pools=tuple(b.pool(name, paused=name == "mixed") for name in pools),
        nodes=nodes,
        machine_configs=b.configs(*pools),
    )
    assert text(snapshot).partition("= Worker Upgrade =\n\n")[2].partition("\n= Update")[0] == (
        "WORKER POOL   ASSESSMENT   COMPLETION   STATUS\n"
        "worker        Pending      0% (0/1)     1 Available, 0 Progressing, 0 Draining\n"
        "empty         Empty                     0 Total\n"
        "done          Completed    100% (1/1)   1 Available, 0 Progressing, 0 Draining\n"
        "mixed         Degraded     33% (1/3)    3 Available, 0 Progressing, 0 Draining, 2 Excluded, 1 Degraded\n"
        "\n"
        "Worker Pool Nodes: worker\n"
        "NAME   ASSESSMENT   PHASE     VERSION   EST   MESSAGE\n"
        "w1     Outdated     Pending   4.14.0    ?     \n"
        "\n"
        "Worker Pool Nodes: done\n"
        "NAME   ASSESSMENT   PHASE     VERSION   EST   MESSAGE\n"
        "d1     Completed    Updated   4.14.1    -     \n"
        "\n"
        "Worker Pool Nodes: mixed\n"
        "NAME   ASSESSMENT   PHASE     VERSION   EST   MESSAGE\n"
        "p1     Degraded     Paused    4.14.0    ?     why\n"
        "p2     Excluded     Paused    4.14.0    -     \n"
        "p3     Completed    Updated   4.14.1    -     \n"
    )


def test_nodes_beyond_the_tenth_are_counted() -> None:
    """Unless they need attention; widths are those of the rows that are printed."""
    nodes = [
        *(b.node(f"a-degraded-{i}", state="Degraded", reason="r") for i in range(9)),
        *(b.node(f"b-unavailable-{i}", conditions=[b.cond("Ready", "False")]) for i in range(3)),
        b.node("c-draining", desired="new", state="Working", desiredDrain="drain-x", lastAppliedDrain="uncordon-x"),
        b.node("d-rebooting", desired="new", state="Rebooting"),
        b.node("e-with-a-long-name-that-is-not-printed"),
        b.node("f-updated", **UPDATED),
    ]
    found = text(b.snapshot(nodes=tuple(nodes), machine_config_pools=(b.pool("worker"),)))
    table = found.partition("Worker Pool Nodes: worker\n")[2].partition("\n= Update")[0].splitlines()
    assert [row.split()[0] for row in table[1:13]] == [node.metadata.name for node in nodes[:12]]
    assert table[0] == "NAME              ASSESSMENT    PHASE     VERSION   EST   MESSAGE"
    assert table[13:] == [
        "...",
        "Omitted additional 4 Total, 1 Completed, 2 Available, 2 Progressing, 3 Outdated, 1 Draining, 0 Excluded, "
        "and 0 Degraded nodes.",
        "Pass along --details=nodes to see all information.",
    ]
    whole = text(b.snapshot(nodes=tuple(nodes), machine_config_pools=(b.pool("worker"),)), details="nodes")
    assert "Omitted" not in whole
    assert "\nf-updated " in whole


@pytest.mark.parametrize(
    ("name", "shown"),
    [("worker-1", "<node> is full, <node>!"), ("worker1", "worker1 is full, worker1!")],
)
def test_a_nodes_own_name_in_its_message(name: str, shown: str) -> None:
    """Is replaced if it has at least eight bytes."""
    node = b.node(name, state="Degraded", reason=f"{name} is full, {name}!")
    assert f"   {shown}\n" in text(b.snapshot(nodes=(node,)))


def test_a_newline_in_a_message_splits_the_table() -> None:
    """As in Go's tabwriter, the rows before and after it have separate widths."""
    nodes = (
        b.node("a-node-with-a-long-name", state="Degraded", reason="one\ntwo"),
        b.node("b", conditions=[b.cond("Ready", "False")]),
    )
    found = text(b.snapshot(nodes=nodes)).partition("Worker Pool Nodes: worker\n")[2].partition("\n= Update")[0]
    assert found == (
        "NAME                      ASSESSMENT   PHASE     VERSION   EST   MESSAGE\n"
        "a-node-with-a-long-name   Degraded     Pending   4.14.0    ?     one\n"
        "two\n"
        "b   Unavailable   Pending   4.14.0   ?   Not ready\n"
    )


def test_a_node_of_an_unknown_configuration_has_no_version() -> None:
    """A question mark."""
    assert "Outdated     Pending   ?         ?     \n" in text(b.snapshot(nodes=(b.node(current="x", desired="x"),)))


FAILING = b.snapshot(
    cluster_version=b.version(failing=b.cond("Failing", "True", "R", "first\nsecond", b.STARTED + b.minutes(1))),
    machine_config_pools=(b.pool("master"), b.pool("worker", paused=True)),
)


def test_health_as_a_table() -> None:
    """Without details, the hint is below."""
    assert text(FAILING).partition("= Update Health =\n")[2] == (
        "SINCE   LEVEL     IMPACT           MESSAGE\n"
        "3m      Warning   Update Stalled   Cluster Version version is failing to proceed with the update (R)\n"
        "-       Warning   Update Stalled   Outdated nodes in a paused pool 'worker' will not be updated\n"
        "\n"
        "Run with --details=health for additional description and links to related online documentation\n"
    )


def test_health_at_length() -> None:
    """Blocks with a blank line between; a newline of a description is a comma at its column."""
    found = text(FAILING, details="health").partition("= Update Health =\n")[2]
    assert found.startswith(
        "Message: Cluster Version version is failing to proceed with the update (R)\n"
        "  Since:       3m\n"
        "  Level:       Warning\n"
        "  Impact:      Update Stalled\n"
        "  Reference:   https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/"
        "ClusterOperatorDegraded.md\n"
        "  Resources:\n"
        "    clusterversions.config.openshift.io: version\n"
        "  Description: first\n"
        "               , second\n"
        "\n"
        "Message: Outdated nodes"
    )


def test_an_update_that_goes_well_is_said_to() -> None:
    """Always as a table, and without the hint."""
    expected = "SINCE   LEVEL   IMPACT   MESSAGE\n4m      Info    None     Update is proceeding well\n"
    for details in ("none", "health"):
        assert text(b.snapshot(), details=details).partition("= Update Health =\n")[2] == expected


@pytest.mark.parametrize(
    ("changes", "updating"),
    [
        pytest.param(
            {"cluster_version": b.version([b.entry(b.NEW)], progressing="False"), "nodes": ()}, False, id="done"
        ),
        pytest.param({"cluster_version": b.version([b.entry(b.NEW)], progressing="False")}, True, id="workers are not"),
        pytest.param(
            {
                "cluster_version": b.version([b.entry(b.NEW)], progressing="False"),
                "nodes": (b.node("m", "master"), b.node("w", **UPDATED)),
            },
            False,
            id="only control plane nodes are not",
        ),
        pytest.param({"nodes": ()}, True, id="the control plane is not"),
        pytest.param({"cluster_version": b.version(progressing="Unknown"), "nodes": ()}, False, id="it does not know"),
    ],
)
def test_whether_the_cluster_is_updating(changes: dict[str, Any], updating: bool) -> None:
    """By ClusterVersion's Progressing and the pools of workers."""
    assert (text(b.snapshot(**changes)) != "The cluster is not updating.\n") is updating


def test_a_requested_release_that_does_not_load_is_told_though_nothing_is_updating() -> None:
    """oc would only say that nothing is updating."""
    refused = b.cond("ReleaseAccepted", "False", "RetrievePayload", "no such image")
    cluster = b.version([b.entry(b.OLD)], progressing="False", others=(refused,))
    snapshot = b.snapshot(cluster_version=cluster, nodes=(), pending_pods=())
    assert text(snapshot) == (
        "The cluster is not updating.\n"
        "\n"
        "= Update Health =\n"
        "SINCE   LEVEL   IMPACT           MESSAGE\n"
        "4m      Error   Update Stalled   The requested release was not accepted (RetrievePayload)\n"
        "\n"
        "Run with --details=health for additional description and links to related online documentation\n"
    )


def lines(before: Snapshot, after: Snapshot) -> list[str]:
    """What `--watch` prints in a pipe."""
    old, new = (report_of_status(assess(each, None, b.NOW, max_bytes=None)) for each in (before, after))
    return list(changes(old, new))


def test_the_changes_between_two_looks() -> None:
    """Operators, nodes, pools, health; nothing where nothing changed."""
    before = b.snapshot()
    assert lines(before, before) == []
    after = b.snapshot(
        cluster_operators=(
            b.operator("etcd", b.NEW),
            b.operator("network", progressing=b.cond("Progressing", "True", "R", "rolling out\nslowly")),
        ),
        machine_config_pools=(b.pool("master"), b.pool("worker", paused=True)),
        nodes=(
            b.node("master-0000", "master", desired="new", state="Rebooting"),
            *(b.node(f"worker-{i:04}", **(UPDATED if i == 1 else {})) for i in range(3)),
        ),
    )
    assert lines(before, after) == [
        "Cluster Operator etcd is updated (1 of 2)",
        "Cluster Operator network is updating: rolling out",
        "Node master-0000: Pending -> Rebooting",
        "Node worker-0000: Pending -> Paused",
        "Node worker-0002: Pending -> Paused",
        "Node worker-0001: Pending -> Updated",
        "Pool worker: 1 of 3 nodes are updated",
        "Warning: Outdated nodes in a paused pool 'worker' will not be updated",
    ]
    assert lines(after, before)[-1] == "Over: Outdated nodes in a paused pool 'worker' will not be updated"


def test_beginning_and_end_of_an_update_are_lines_of_their_own() -> None:
    """The control plane first, then everything."""
    ended = b.version([b.entry(b.NEW), b.entry(b.OLD)], progressing="False")
    done = b.snapshot(cluster_operators=(b.operator("etcd", b.NEW), b.operator("network", b.NEW)))
    quiet = b.snapshot(cluster_version=ended, cluster_operators=done.cluster_operators, nodes=())
    assert "Control plane is updated to 4.14.1" in lines(b.snapshot(), done)
    assert lines(done, quiet)[0] == "The cluster is not updating."
    assert summary(report_of_status(assess(b.snapshot(), None, b.NOW))) == (
        "Update to 4.14.1 (from 4.14.0): control plane 0 of 2 operators updated, pool master 0 of 3 nodes, "
        "pool worker 0 of 3 nodes"
    )


def test_many_nodes_at_once_are_counted() -> None:
    """Twenty are named."""
    before = b.snapshot(nodes=tuple(b.node(f"n{i:02}") for i in range(30)))
    after = b.snapshot(nodes=tuple(b.node(f"n{i:02}", **UPDATED) for i in range(30)))
    assert lines(before, after)[20:] == [
        "Pool worker: 10 more nodes changed",
        "Pool worker: 30 of 30 nodes are updated",
    ]


def test_a_second_that_is_not_over_is_not_told() -> None:
    """A nanosecond before it, either."""
    assert rendered.clock_time(1_000_000_000) == "00:00:01Z"
    assert rendered.clock_time(999_999_999) == "00:00:00Z"


def test_twenty_nodes_at_once_are_all_named() -> None:
    """None is left to be counted; one more is."""
    for count, more in ((20, []), (21, ["Pool worker: 1 more nodes changed"])):
        before = b.snapshot(nodes=tuple(b.node(f"n{i:02}") for i in range(count)))
        after = b.snapshot(nodes=tuple(b.node(f"n{i:02}", **UPDATED) for i in range(count)))
        assert lines(before, after)[20:-1] == more


def test_a_pool_that_appears_and_a_level_that_changes() -> None:
    """A pool with how far it is; what is about the same and as grave is no news."""
    nodes = (b.node("w1"), b.node("d1", "blue"))
    both = tuple(b.pool(name) for name in ("master", "worker", "blue"))
    before = b.snapshot(nodes=nodes[:1])
    after = b.snapshot(nodes=nodes, machine_config_pools=both, machine_configs=b.configs("master", "worker", "blue"))
    assert "Pool blue has appeared: pool blue 0 of 1 nodes" in lines(before, after)
    old, new = (report_of_status(assess(each, None, b.NOW, max_bytes=None)) for each in (before, FAILING))
    (row,) = [row for row in new.health if "failing" in row.summary]
    report = replace(new, health=(row,))
    louder = replace(new, health=(replace(row, level="Error", summary="worse"),))
    assert list(changes(report, louder)) == ["Error: worse"]
    assert list(changes(report, replace(new, health=(replace(row, summary="other words"),)))) == []
    assert f"{row.level}: {row.summary}" in list(changes(old, new))


def test_a_terminal_that_is_too_low_shows_no_healthy_nodes() -> None:
    """Items that need attention are below them and must not be cut off."""
    status = assess(b.snapshot(machine_config_pools=(b.pool("master"), b.pool("worker", paused=True))), None, b.NOW)
    report = report_of_status(status)
    low = rendered.render(report, to_ns(b.NOW), rows=rendered.NO_TABLES)
    assert "\nControl Plane Nodes: 0 of 3 updated\n\n= Worker Upgrade =\n" in low
    assert "Worker Pool Nodes" not in low
    assert "Outdated nodes in a paused pool" in low
    broken = assess(b.snapshot(nodes=(b.node(state="Degraded", reason="x"), b.node("w2"))), None, b.NOW)
    low = rendered.render(report_of_status(broken), to_ns(b.NOW), rows=rendered.NO_TABLES)
    assert "worker-0000   Degraded     Pending" in low
    assert "w2" not in low


@pytest.mark.parametrize(
    ("minutes", "seen"), [(0, "-"), (0.01, "-"), (3, "3m")], ids=["just now", "less than a second ago", "minutes ago"]
)
def test_since_when_nobody_recorded_a_beginning(minutes: float, seen: str) -> None:
    """The first look does not know the start, as in oc; a later look shows since when it was seen."""
    status = assess(FAILING, None, b.NOW)
    now = to_ns(b.NOW + b.minutes(minutes))
    rows = [row for row in rendered.render(report_of_status(status), now).splitlines() if "paused pool" in row]
    assert [row.split()[0] for row in rows] == [seen]


@pytest.mark.parametrize("as_oc", [True, False])
def test_a_stalled_update_never_proceeds_well(as_oc: bool) -> None:
    """Also in a report without insights, whose estimate has passed since; oc prints both of its example files."""
    status = assess(at(3), None, b.STARTED, max_bytes=None)
    printed = rendered.render(report_of_status(status), to_ns(b.STARTED + b.minutes(300)), as_oc=as_oc)
    assert line(printed, "Assessment") == "Stalled"
    assert ("Update is proceeding well" in printed) is as_oc
    assert ("Update Stalled   The update of the control plane takes longer" in printed) is not as_oc
