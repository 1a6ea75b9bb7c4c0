"""Every risk that we can report has a page behind the link that it carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from runup.domain.checks.catalogue import (
    CHECKS,
    budget_pods,
    cluster_version_health,
    drain_blocked,
    dual_stack,
    etcd_members,
    feature_set,
    kubelet_skew,
    node_health,
    node_pools,
    operator_health,
    operator_upgradeable,
    pool_health,
    pool_paused,
    update_in_progress,
)
from runup.domain.checks.engine import unknown_risk
from runup.domain.checks.payload import unusable
from runup.domain.checks.results import OMITTED
from runup.domain.preflight.report import DOCUMENTATION, documentation_url

PAGES = Path(__file__).parents[3] / "docs" / "checks"
NAMES = sorted(
    {
        budget_pods.UNREADY,
        budget_pods.OVERLAP,
        cluster_version_health.FAILING,
        cluster_version_health.UPGRADEABLE,
        cluster_version_health.PARTIAL,
        drain_blocked.NAME,
        etcd_members.NAME,
        node_pools.IN_NONE,
        node_pools.IN_SEVERAL,
        dual_stack.NAME,
        feature_set.NAME,
        kubelet_skew.NAME,
        node_health.NOT_READY,
        node_health.CORDONED,
        *(expectation.risk + "-x" for expectation in operator_health.EXPECTATIONS),
        operator_upgradeable.NAME + "-x",
        pool_health.DEGRADED + "-x",
        pool_health.UPDATING + "-x",
        pool_paused.NAME + "-x",
        update_in_progress.NAME,
        OMITTED,
        unknown_risk(unusable("x", "")),
        "PreflightCheckUnknown",
        *(unknown_risk(check) for check in CHECKS),
    }
)


@pytest.mark.parametrize("name", NAMES)
def test_page(name: str) -> None:
    """The page exists, is about that risk, and is listed."""
    page = documentation_url(name).removeprefix(DOCUMENTATION) + ".md"
    text = (PAGES / page).read_text()
    assert text.startswith(f"# {page.removesuffix('.md')}\n")
    assert "**Applies when**" in text
    assert "**What to do**" in text
    assert f"({page})" in (PAGES / "README.md").read_text()
