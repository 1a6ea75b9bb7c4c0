"""How pytest-xdist spreads the fast tests: as its `loadfile`, without counting all files after each test.

A file has one worker, so that what its tests share is made once. pytest-xdist counts what is left of a worker's tests
by all that it ever had: of eighteen thousand tests the process that spreads them took a quarter of a minute.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class Spread(LoadFileScheduling):
    """pytest-xdist's, which forgets what a worker has done."""

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """See `LoadScopeScheduling.mark_test_complete`."""
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(units[scope].values()):
            del units[scope]


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread | None:
    """For files; each other way to spread tests stays as it is."""
    return Spread(config, log) if config.getvalue("dist") == "loadfile" else None
