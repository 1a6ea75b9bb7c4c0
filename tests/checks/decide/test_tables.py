"""The tables of what Kubernetes removes: no gap, nothing twice, and what is removed by nothing is said."""

from __future__ import annotations

import re

import pytest

from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.nodes.runtime_version import CHECK as RUNTIME
from runup.checks.decide import removal_tables
from runup.checks.decide.check_page import messages

NAMES = ("removed-apis", "removed-gates", "removed-flags", "removed-volumes")


@pytest.mark.parametrize("name", NAMES)
def test_every_minor_version_has_a_row(name: str) -> None:
    """Also one that removes nothing: an empty row says so, a missing one would only imply it."""
    table = removal_tables.table(name)
    assert sorted(table.removed) == list(range(table.first, table.last + 1))
    assert re.fullmatch(r"20\d\d-\d\d", table.date)
    assert len(table.source) > 20
    assert not table.knows(table.last + 1)
    assert table.knows(table.last)


def test_nothing_is_removed_in_some_minor_versions() -> None:
    """1.28, 1.30 and 1.31 remove no API; 1.29 removes the second beta of flow control."""
    assert [dict(removal_tables.removed_versions(minor - 1, minor)) for minor in (28, 30, 31)] == [{}, {}, {}]
    assert removal_tables.removed_versions(28, 29)["flowcontrol.apiserver.k8s.io", "v1beta2", "FlowSchema"] == 29


def test_no_api_is_removed_twice() -> None:
    """pluto lists flow control's first beta under 1.26 and 1.29; it went with 1.26."""
    seen = [
        (entry["group"], entry["version"], kind)
        for _, row in removal_tables.table("removed-apis").between(0, 99)
        for entry in row
        for kind in entry["kinds"]
    ]
    assert len(set(seen)) == len(seen)
    assert removal_tables.removed_versions(0, 99)["flowcontrol.apiserver.k8s.io", "v1beta1", "FlowSchema"] == 26


def test_no_gate_is_removed_twice() -> None:
    """A gate goes once."""
    gates = [gate for _, row in removal_tables.table("removed-gates").between(0, 99) for gate in row]
    assert len(set(gates)) == len(gates)


def test_the_tables_are_where_checks_find_them() -> None:
    """The rows of minimums and of scanners have what the checks ask of them."""
    assert messages(RUNTIME)
    assert {"get", "list", "watch"} == set(removal_tables.document("read-only-clients")["verbs"])
    assert all(row.get("user") or row.get("agent") for row in removal_tables.document("read-only-clients")["clients"])
    assert {check.name for check in CHECKS} >= {"RemovedAPIStored", "RemovedFeatureGate", "RemovedFlag"}
