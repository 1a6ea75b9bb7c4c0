"""How an object for 5,000 nodes stays small: what is left out first, and how that is counted.

The rule, in this order, until the JSON of the status has at most `max_bytes`:

1. At most `health` health insights a layer, the worst first; one insight says how many more there are and how bad.
2. Texts (messages, descriptions) are cut at `text` characters, with a note of how long they were.
3. Node insights of each pool are a prefix of its table (degraded, unavailable, progressing, excluded, outdated and
   completed nodes, in this order), so that what needs attention and what the command prints by default stays.
   Pools' own insights count every node.
4. Of more than 32 worker pools those that are done are left out first.

What is missing is counted in `omitted` beside the list, and the condition Complete is False.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_BYTES = 256 * 1024
MAX_POOLS = 32
# Insights an informer may have in a layer, by the API.
MAX_CONTROL_PLANE = 128
MAX_POOL = 1024
MIN_NODES = 10
"""As many rows as the command prints of a pool without being asked for more."""

_TEXTS = ((32768, 40), (2048, 40), (512, 20), (256, 8))
_NODES = (1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, MIN_NODES)
# A node's insight is larger in any cluster; steps that cannot fit are not even tried.
_LEAST_NODE_BYTES = 400


@dataclass(frozen=True, slots=True)
class Caps:
    """How much is kept: nodes a pool, health insights a layer, characters of a text, pools."""

    nodes: int
    health: int
    text: int
    pools: int


UNBOUNDED = Caps(nodes=1 << 31, health=1 << 31, text=1 << 31, pools=1 << 31)


def steps(pool_sizes: list[int], max_bytes: int) -> Iterator[Caps]:
    """What to try, from generous to meagre; the last is taken whatever it comes to."""
    possible = [cap for cap in _NODES if sum(min(size, cap) for size in pool_sizes) * _LEAST_NODE_BYTES <= max_bytes]
    caps = possible or [MIN_NODES]
    first_text, first_health = _TEXTS[0]
    yield Caps(caps[0], first_health, first_text, MAX_POOLS)
    second_text, second_health = _TEXTS[1]
    for cap in caps:
        yield Caps(cap, second_health, second_text, MAX_POOLS)
    for text, health in _TEXTS[2:]:
        yield Caps(MIN_NODES, health, text, MAX_POOLS)
