"""How pytest-xdist spreads the tests: as its `loadgroup`, without going through all of them after each of them.

Its own schedulers count what is left of a worker's tests by all that it ever had, and look for a test's place in the
list of all: of eighteen thousand tests the process that spreads them took half a minute of a processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Places(list[str]):
    """A list of different strings that knows where each is."""

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__(values)
        self._places = {value: place for place, value in enumerate(values)}

    def index(self, value: str, *_: Any) -> int:
        """See `list.index`."""
        return self._places[value]


class Spread(LoadGroupScheduling):
    """pytest-xdist's, which forgets what a worker has done."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """See `LoadScopeScheduling.add_node_collection`."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Places(collection)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """See `LoadScopeScheduling.mark_test_complete`."""
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(units[scope].values()):
            del units[scope]


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread | None:
    """For groups; each other way to spread tests stays as it is."""
    return Spread(config, log) if config.getvalue("dist") == "loadgroup" else None
