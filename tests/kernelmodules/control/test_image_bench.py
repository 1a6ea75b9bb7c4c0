"""The benchmark of the image stage in the small: what it measures holds, and it runs."""

from __future__ import annotations

import pytest
from bench.speed import kernel_modules


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_bench_in_the_small() -> None:
    """Early exit in bytes fetched, and memory that does not grow with the layer."""
    found = kernel_modules.run(megabytes=64, each=1)
    first, absent = found["module_first"], found["module_absent"]
    assert (first["verified"], absent["verified"]) == (1, 0)
    assert first["fetched_bytes"] < 8 * kernel_modules.MIB
    assert absent["fetched_bytes"] > 64 * kernel_modules.MIB
    assert absent["peak_mib"] - found["none"]["peak_mib"] < 40
    assert found["fifty_at_once"]["verified"] == kernel_modules.FIFTY
