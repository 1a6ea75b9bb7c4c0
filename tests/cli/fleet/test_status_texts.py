"""The texts of `fleet status`, `fleet recommend` and `fleet history`, of clusters with whatever names."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.updatestatus.decide import builders as b

from runup.cli.fleet import history_command, recommend_command, status_command
from runup.cli.fleet.recommend_command import AdviceRow
from runup.cli.fleet.status_command import StatusRow
from runup.cli.render.screen import Screen
from runup.fleet.decide.trend import Change, ReportStep, summarize_days
from runup.updatestatus.decide.alerts import Unreadable
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import report_of_status

EVIL = "a\nharbour: fine\x1b[31m"


def lines(parts: object) -> list[str]:
    """Returns the printed lines without trailing blanks."""
    return [line.rstrip() for line in "".join(map(str, parts)).splitlines()]  # type: ignore[call-overload]


def test_the_status_of_a_fleet() -> None:
    """Those that update first, then those that need attention; who could not be read is apart, on one line."""
    rows = [
        StatusRow(cluster="harbour", updating="False", target="4.16.0", operators=(30, 30), pools=(2, 2)),
        StatusRow(
            cluster="orchard",
            updating="False",
            target="4.16.0",
            operators=(29, 30),
            pools=(2, 2),
            attention=2,
            first="Operator dns is degraded",
        ),
        StatusRow(
            cluster="lighthouse",
            updating="True",
            target="4.17.1",
            operators=(12, 30),
            pools=(0, 2),
            attention=1,
            first="Pool worker is paused",
        ),
        StatusRow(cluster=EVIL, problem="refused"),
    ]
    assert lines(status_command.text(rows)) == [
        "4 clusters: 1 updating, 1 could not be read",
        "",
        "CLUSTER     UPDATING  TARGET  OPERATORS  POOLS  ATTENTION  FIRST",
        "lighthouse  yes       4.17.1  12/30      0/2    1          Pool worker is paused",
        "orchard     no        4.16.0  29/30      2/2    2          Operator dns is degraded",
        "harbour     no        4.16.0  30/30      2/2    0          -",
        "",
        "Could not be read, so nothing is known about them:",
        "  a\\nharbour: fine\\x1b[31m: refused",
    ]


DENIED = Unreadable("forbidden")
UPDATING: dict[str, tuple[dict[str, Any], str]] = {
    "all is read, and done": ({}, "False"),
    "MachineConfigs may not be read": ({"machine_configs": DENIED}, "Unknown"),
    "MachineConfigPools may not be read": ({"machine_config_pools": DENIED}, "Unknown"),
    "Nodes may not be read": ({"nodes": DENIED}, "Unknown"),
    "one pool cannot be decoded": ({"undecoded": (("MachineConfigPool worker", "it is odd"),)}, "Unknown"),
    "one configuration cannot be decoded": ({"undecoded": (("MachineConfig rendered-w", "it is odd"),)}, "Unknown"),
    "one node cannot be decoded": ({"undecoded": (("Node worker-0", "it is odd"),)}, "Unknown"),
    "Nodes are listed in part": ({"incomplete": {"nodes": "a server says so"}}, "Unknown"),
    "one Pod cannot be decoded": ({"undecoded": (("Pod shop/web-1", "it is odd"),)}, "False"),
    "Pods may not be read, which tell nothing of pools": ({"pending_pods": DENIED}, "False"),
    "the control plane updates, whatever is known of pools": (
        {"machine_configs": DENIED, "cluster_version": b.version()},
        "True",
    ),
}


@pytest.mark.parametrize(("changes", "updating"), UPDATING.values(), ids=list(UPDATING))
def test_whether_a_cluster_updates(changes: dict[str, Any], updating: str) -> None:
    """No cluster is done as long as nobody can report its pools."""
    done = {
        "cluster_version": b.version([b.entry(b.NEW)], progressing="False"),
        "machine_config_pools": (b.pool("master"),),
        "nodes": (b.node("master-0", "master", current="new", desired="new"),),
    }
    status = assess(b.snapshot(**{**done, **changes}), None, b.NOW)
    assert status_command.updating_of(report_of_status(status)) == updating


def test_the_advice_for_a_fleet() -> None:
    """One line for all with the same answer, the most clusters first."""
    same = {"version": "4.15.0", "channel": "stable-4.16", "newest": ("4.16.3", "4.15.9"), "risky": 1}
    rows = [
        AdviceRow(cluster="harbour", **same),
        AdviceRow(cluster=EVIL, **same),
        AdviceRow(cluster="orchard", version="4.14.2", channel="stable-4.14", issues=("Failing",)),
    ]
    assert lines(recommend_command.text(rows)) == [
        "Updates of 3 clusters",
        "",
        "NUMBER  VERSION  CHANNEL      NEWEST RECOMMENDED  RISKY  ISSUES   CLUSTERS",
        "2       4.15.0   stable-4.16  4.16.3, 4.15.9      1      -        harbour, a\\nharbour: fine\\x1b[31m",
        "1       4.14.2   stable-4.14  -                   0      Failing  orchard",
    ]


def test_the_advice_about_one_version() -> None:
    """The number of clusters for which it is recommended, and why the others are refused."""
    rows = [
        AdviceRow(cluster="harbour", version="4.15.0", channel="stable-4.16"),
        AdviceRow(cluster="orchard", version="4.14.2", channel="", refused="not offered"),
    ]
    printed = lines(recommend_command.text(rows, "4.16.3"))
    assert printed[0] == "Update to 4.16.3 recommended: 1 of 2 clusters"
    assert [line.split()[3] for line in printed[3:]] == ["recommended", "not"]


def test_what_changed_and_which_objects_changed_it() -> None:
    """Three objects of a risk are named; of a fleet each day or week has its counts."""
    monday, tuesday = datetime(2026, 11, 23, 6, tzinfo=UTC), datetime(2026, 11, 24, 6, tzinfo=UTC)
    found = [
        ReportStep(cluster="a", observed=monday, target="4.16.0", completed=True, applies=2, first=True),
        ReportStep(
            cluster="a",
            observed=tuesday,
            target="4.16.0",
            completed=True,
            applies=2,
            accepted_applies=1,
            came=(
                Change("Cordoned", tuple(f"Node {name}" for name in "bcdef"), whole=False),
                Change("Skew", ("Node a",), whole=True),
            ),
            went=(Change("Ack", (), whole=True),),
        ),
        ReportStep(cluster="a", observed=tuesday, target="4.16.0", completed=False),
    ]
    printed = lines(history_command.report_lines(found, Screen(240)))
    assert [re.split(" {2,}", line)[2:] for line in printed] == [
        ["APPLY", "UNKNOWN", "ACCEPTED OF THESE", "NEW", "GONE"],
        ["2", "0", "0", "first report", "-"],
        ["2", "0", "1", "Cordoned: now also Node b, Node c, Node d and 2 more; Skew (Node a)", "Ack"],
        ["-", "-", "-", "could not be evaluated", "-"],
    ]
    counts = {"applies": 3, "unknown": 1, "accepted_applies": 1, "accepted_unknown": 1}
    other = ReportStep(cluster="b", observed=monday, target="4.16.0", completed=True, first=True, **counts)
    assert lines(history_command.day_lines(summarize_days([*found, other], weeks=True), weeks=True)) == [
        "WEEK OF     CLUSTERS  NOT EVALUATED  APPLY  UNKNOWN  ACCEPTED OF THESE  NEW   GROWN     GONE",
        "2026-11-23  2         1              3      1        2                  Skew  Cordoned  Ack",
    ]
