"""The PreflightChecks that our scenario releases carry are usable, and the example finds what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.factories import context

import runup.sandbox
from kubekit.api import codec
from runup.checks.decide.declared_checks import declared_checks
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Snapshot
from runup.checks.decide.reads import Read, shape
from runup.release.decide.inclusion import Filters

SCENARIOS = Path(runup.sandbox.__file__).parent / "scenario" / "bundled"
FILES = sorted(SCENARIOS.glob("*/**/preflight-checks/*.yaml"))
FILTERS = Filters(profile="self-managed-high-availability", feature_set="", gates=frozenset(), major=5)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_usable(path: Path) -> None:
    """Every file declares at least one check that the scenario's cluster gets."""
    checks = declared_checks({path.name: path.read_text()}, FILTERS)
    assert checks
    assert not [check for check in checks if check.component == "release"]


def _count(name: str, count: int | None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {} if count is None else {"requestCount": count}}


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([], ""),
        ([_count("pods.v1", 9), _count("endpointslices.v1.discovery.k8s.io", 7)], ""),
        ([_count("endpointslices.v1beta1.discovery.k8s.io", None)], ""),
        (
            [_count("endpointslices.v1beta1.discovery.k8s.io", 1312)],
            "endpointslices.v1beta1.discovery.k8s.io was asked for 1312 times in the last day; "
            "5.2.0 does not serve it.",
        ),
    ],
    ids=["nothing counted", "only what is still served", "a removed API that nobody uses", "a removed API in use"],
)
def test_removed_apis(counts: list[dict[str, Any]], message: str) -> None:
    """The example of the skip-level scenario."""
    path = next(path for path in FILES if path.name.endswith("removed-apis.yaml"))
    (check,) = declared_checks({path.name: path.read_text()}, FILTERS)
    (read,) = check.reads
    assert isinstance(read, Read)
    objects = tuple(codec.decode(shape(read.fields), codec.encode(count)) for count in counts)
    found = run_check(check, Snapshot(objects={read: objects}), context()).findings
    assert [message] * bool(message) == [finding.message for finding in found]
