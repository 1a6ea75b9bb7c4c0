"""Which versions a ClusterOperator's manifest declares, whatever else is written there."""

from __future__ import annotations

from typing import Any

import pytest

from runup.api.config_v1 import OperandVersion
from runup.applying.decide.health import wants_versions


@pytest.mark.parametrize(
    ("manifest", "wanted"),
    [
        pytest.param({}, [], id="no status"),
        pytest.param({"status": "x"}, [], id="a status that is a text"),
        pytest.param({"status": {}}, [], id="no versions"),
        pytest.param({"status": {"versions": "operator"}}, [], id="versions that are a text"),
        pytest.param({"status": {"versions": ["operator"]}}, [], id="a version that is a text"),
        pytest.param(
            {"status": {"versions": [{"name": "operator", "version": "5.0.0"}, None, {"name": "a"}, {"version": 1}]}},
            [("operator", "5.0.0"), ("a", ""), ("", "1")],
            id="several",
        ),
    ],
)
def test_which_versions_a_manifest_declares(manifest: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    """In the order of the manifest, and never a crash."""
    assert wants_versions(manifest) == tuple(OperandVersion(name=name, version=version) for name, version in wanted)
