"""Large clusters: the size of the object, and that what is left out is counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.updatestatus.decide import builders as b
from tests.updatestatus.decide.test_assessment import faults

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.lang.gotext import to_ns
from runup.api.update_v1alpha1 import UpdateStatusStatus
from runup.cli.updatestatus.render import status_text as rendered
from runup.updatestatus.decide import finding as limits
from runup.updatestatus.decide.assess import assess
from runup.updatestatus.decide.read_status import report_of_status
from runup.updatestatus.decide.snapshot import Snapshot

KINDS: list[dict[str, Any]] = [
    {},
    {"current": "new", "desired": "new"},
    {"desired": "new", "state": "Working"},
    {"state": "Degraded", "reason": "disk is full"},
    {"conditions": [b.cond("Ready", "False", message="kubelet stopped posting node status")]},
]
LATER = b.STARTED + b.minutes(40)


def cluster(nodes: int, pools: int, kinds: list[int]) -> Snapshot:
    """`nodes` workers in `pools` pools, of kinds in turn."""
    names = [f"pool-{i:02}" for i in range(pools)]
    workers = (
        b.node(
            f"ip-10-0-{i // 250}-{i % 250}.us-east-2.compute.internal",
            names[i % pools],
            **KINDS[kinds[(i // pools) % len(kinds)]],
        )
        for i in range(nodes)
    )
    masters = (b.node(f"master-{i}", "master") for i in range(3))
    return b.snapshot(
        nodes=(*masters, *workers),
        machine_config_pools=tuple(b.pool(name) for name in ("master", *names)),
        machine_configs=b.configs("master", *names),
        cluster_operators=tuple(b.operator(f"operator-{i}") for i in range(33)),
    )


def rows(status: UpdateStatusStatus) -> int:
    """How many workers have an insight."""
    return sum(len(pool.rows) for pool in report_of_status(status).worker_pools)


@pytest.mark.parametrize(
    ("nodes", "pools", "kinds"),
    [
        pytest.param(2000, 1, [0, 1, 2], id="2,000 nodes in one pool"),
        pytest.param(2000, 10, [0, 1, 2], id="2,000 nodes in 10 pools", marks=pytest.mark.slow),
        pytest.param(5000, 20, [0, 1, 2], id="5,000 nodes in 20 pools", marks=pytest.mark.slow),
        pytest.param(5000, 20, [4, 3], id="5,000 nodes, none of them well", marks=pytest.mark.slow),
        pytest.param(5000, 40, [1, 2, 4], id="5,000 nodes in more pools than the object holds"),
    ],
)
def test_the_object_stays_small_and_counts_what_it_lacks(nodes: int, pools: int, kinds: list[int]) -> None:
    """256 KiB whatever the cluster; counts of pools are those of all their nodes."""
    snapshot = cluster(nodes, pools, kinds)
    status = assess(snapshot, None, LATER)
    assert len(codec.encode(status)) <= limits.MAX_BYTES
    assert faults(status) == []
    held = status.worker_pools
    assert len(held) == min(pools, limits.MAX_POOLS)
    assert status.omitted_worker_pools == pools - len(held)
    report = report_of_status(status)
    assert sum(pool.counts.total for pool in report.worker_pools) == sum(
        len(range(i, nodes, pools)) for i in range(len(held))
    )
    assert rows(status) + sum(pool.omitted.nodes for pool in held) == sum(
        pool.counts.total for pool in report.worker_pools
    )
    complete = find(status.conditions, "Complete")
    assert complete is not None
    assert (complete.status, complete.reason) == ("False", "InsightsOmitted")


@pytest.mark.parametrize("kinds", [[0, 1, 2], [2], [0, 0, 0, 1], [1, 0, 3]])
def test_what_the_command_prints_by_default_is_the_same_with_and_without_limits(kinds: list[int]) -> None:
    """Of each pool the first rows are kept, and the rest is counted."""
    snapshot = cluster(600, 2, kinds)
    whole, bounded = (assess(snapshot, None, LATER, max_bytes=size) for size in (None, limits.MAX_BYTES))
    assert rows(bounded) < rows(whole) == 600
    now = to_ns(LATER)

    def nodes_of(status: UpdateStatusStatus) -> str:
        return rendered.render(report_of_status(status), now).partition("= Update Health =")[0]

    if 3 not in kinds:
        assert nodes_of(bounded) == nodes_of(whole)
    assert nodes_of(bounded).partition("Worker Pool Nodes")[0] == nodes_of(whole).partition("Worker Pool Nodes")[0]


def test_findings_that_are_left_out_are_summed_up_with_their_worst_level() -> None:
    """Errors are kept before warnings."""
    status = assess(cluster(2000, 1, [4, 4, 4, 3]), None, LATER)
    rows = report_of_status(status).health
    assert {row.level for row in rows if row.check == "NodeDegraded"} == {"Error"}
    assert [row for row in rows if row.check == "NodeUnavailable"] == []
    [more] = [row for row in rows if row.check == "InsightsOmitted"]
    kept = sum(row.check == "NodeDegraded" for row in rows)
    # A node that the daemon gave up on has a reason; all others are not ready.
    assert more.summary == (
        f"{2000 - kept} more insights of pool 'pool-00' are left out ({500 - kept} Error, 1500 Warning)"
    )
    assert more.level == "Error"


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    st.integers(0, 300), st.integers(1, 40), st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(14, 18)
)
def test_any_cluster_fits_and_is_stable(nodes: int, pools: int, kinds: list[int], power: int) -> None:
    """For any budget that holds the pools themselves; and assessing again changes nothing."""
    snapshot = cluster(nodes, pools, kinds)
    budget = max(1 << power, 120_000)
    status = assess(snapshot, None, LATER, max_bytes=budget)
    assert len(codec.encode(status)) <= budget
    assert assess(snapshot, status, LATER, max_bytes=budget) == status
    assert faults(status) == []


def test_pools_that_are_done_are_left_out_first() -> None:
    """Of 40 pools 8; those in which something must be done stay."""
    names = [f"pool-{i:02}" for i in range(40)]
    nodes = tuple(b.node(f"node-{i}", name, **KINDS[1 if i < 10 else 0]) for i, name in enumerate(names))
    status = assess(
        b.snapshot(
            nodes=nodes, machine_config_pools=tuple(b.pool(name) for name in names), machine_configs=b.configs(*names)
        ),
        None,
        LATER,
    )
    assert [pool.name for pool in status.worker_pools] == [names[0], names[1], *names[10:]]
    text = rendered.render(report_of_status(status), to_ns(LATER))
    assert "...\nOmitted 8 more worker pools: the report holds no more.\n" in text
