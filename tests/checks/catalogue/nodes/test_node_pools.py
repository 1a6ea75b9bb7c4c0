"""Which pool updates a node."""

from __future__ import annotations

from tests.factories import node, pool

from runup.rules.machine_config import nodes_by_pool, pools_of_node


def test_which_pool_updates_a_node() -> None:
    """Master before a custom one, a custom one before worker; none where two custom ones want it."""
    pools = (pool("worker"), pool("infra"), pool("gpu"), pool("master"))
    role = "node-role.kubernetes.io/"
    nodes = (
        node("plain"),
        node("infra", labels={f"{role}infra": ""}),
        node("both", labels={f"{role}infra": "", f"{role}gpu": ""}),
        node("first", role="master", labels={f"{role}infra": ""}),
        node("alone", role="gpu"),
        node("nowhere", role="edge"),
    )
    found = nodes_by_pool(nodes, [pools_of_node(node.metadata.labels, pools) for node in nodes])
    assert {name: [each.metadata.name for each in members] for name, members in found.items()} == {
        "worker": ["plain"],
        "infra": ["infra"],
        "": ["both", "nowhere"],
        "master": ["first"],
        "gpu": ["alone"],
    }
