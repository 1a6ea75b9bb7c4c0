"""Settings of the tests that apply releases."""

from __future__ import annotations

import pytest

from runup.applying.control import release_run, worker


@pytest.fixture(autouse=True)
def keeps_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run returns its memory to the system, which takes longer than the run in a process that has all tests."""
    for module in (release_run, worker):
        monkeypatch.setattr(module, "trim", lambda: None)
