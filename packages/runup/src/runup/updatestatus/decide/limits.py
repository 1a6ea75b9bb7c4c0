"""Limits that keep the object small for 5,000 nodes: what is left out first, and how that is counted.

The rule, in this order, until the JSON of the status has at most `MAX_BYTES`:

1. At most 40 health insights a layer, the worst first; one more insight says how many are left out and how bad.
2. Texts (messages, descriptions) are cut at 2048 characters, with a note of how long they were.
3. Node insights of each pool are a prefix of its table (degraded, unavailable, progressing, excluded, outdated and
   completed nodes, in this order), ten at least: what needs attention and what the command prints by default stays.
   The pool's own insight counts every node.
4. Texts and health insights become fewer and shorter in steps, and at last nodes fewer than ten.

What informers other than ours contributed is never cut: it counts towards the limit, and ours becomes smaller, down to
`LEAST_BYTES`. Of more than 32 worker pools those that are done are left out first. What is missing is counted in
`omitted` beside the list, and the condition Complete is False.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MAX_BYTES = 256 * 1024
LEAST_BYTES = 64 * 1024
"""The size that our status may always have, whatever others wrote. The API server and etcd refuse others' entries long
before both together are too large."""
MAX_POOLS = 32
# Insights an informer may have in a layer, by the API.
MAX_CONTROL_PLANE = 128
MAX_POOL = 1024
MIN_NODES = 10
"""The number of rows of a pool that the command prints by default."""

# Few steps, so that the object does not change whenever a message grows by a word.
NODE_STEPS = (1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, MIN_NODES)


class Limits(msgspec.Struct, frozen=True):
    """The limits of a status: nodes a pool, health insights a layer, characters of a text, and pools."""

    nodes: int
    health: int
    text: int
    pools: int = MAX_POOLS


UNBOUNDED = Limits(nodes=1 << 31, health=1 << 31, text=1 << 31, pools=1 << 31)
LARGEST = Limits(nodes=NODE_STEPS[0], health=40, text=32768)
FEWER_NODES = Limits(nodes=NODE_STEPS[0], health=40, text=2048)
"""The first limits at which nodes are left out."""
SMALLEST = (
    Limits(nodes=MIN_NODES, health=20, text=512),
    Limits(nodes=MIN_NODES, health=8, text=256),
    Limits(nodes=MIN_NODES, health=3, text=256),
    Limits(nodes=6, health=3, text=256),
    Limits(nodes=3, health=2, text=256),
    Limits(nodes=0, health=1, text=128),
)
"""Limits that are tried in turn if ten nodes a pool are too many."""

# A node's insight never has fewer bytes, so no more insights are built than could fit.
LEAST_NODE_BYTES = 400


def node_step(pool_sizes: Sequence[int], room: int, node_bytes: float) -> int:
    """Returns the largest step of nodes a pool for which all pools' nodes fit `room` bytes at `node_bytes` each."""
    fitting = (step for step in NODE_STEPS if sum(min(size, step) for size in pool_sizes) * node_bytes <= room)
    return next(fitting, MIN_NODES)
