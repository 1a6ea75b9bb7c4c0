"""How often garbage is looked for."""

from __future__ import annotations

import gc

from runup.process.memory import collect_rarely


def test_a_list_of_a_cluster_does_not_start_a_collection() -> None:
    """A page of 500 objects of some containers each is less than what is waited for."""
    before = gc.get_threshold()
    collections: list[str] = []

    def note(phase: str, _: object) -> None:
        collections.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        collect_rarely()
        kept = [[[]] for _ in range(5_000)]
        assert (len(kept), collections) == (5_000, [])
        kept.extend([[]] for _ in range(20_000))
        assert collections
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
