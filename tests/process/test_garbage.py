"""How often garbage is looked for."""

from __future__ import annotations

import gc

from runup.process.garbage import collect_rarely


def test_a_list_of_a_cluster_does_not_start_a_collection() -> None:
    """A page of 500 objects of some containers each is less than what is waited for."""
    before = gc.get_threshold()
    collections = []
    try:
        collect_rarely()
        gc.collect()
        gc.callbacks.append(lambda phase, _: collections.append(phase))
        kept = [[[]] for _ in range(5_000)]
        assert (len(kept), collections) == (5_000, [])
        kept.extend([[]] for _ in range(20_000))
        assert collections
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*before)
