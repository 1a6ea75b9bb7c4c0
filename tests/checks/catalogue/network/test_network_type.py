"""Since when a network plug-in is gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME
from tests.factories import context, network, snapshot

from runup.checks.decide.engine import run_check


@pytest.mark.parametrize(
    ("type_", "target", "applies"),
    [
        ("OpenShiftSDN", "4.16.9", False),
        ("OpenShiftSDN", "4.17.0", True),
        ("OpenShiftSDN", "4.18.0", True),
        ("OpenShiftSDN", "5.0.0", True),
        ("Kuryr", "4.14.9", False),
        ("Kuryr", "4.15.0", True),
        ("Kuryr", "4.16.0", True),
        ("OVNKubernetes", "5.2.0", False),
        ("Calico", "5.2.0", False),
    ],
)
def test_since_when_a_network_is_gone(type_: str, target: str, applies: bool) -> None:
    """In that very minor version, and in each later one."""
    found = network()
    found = replace(found, status=replace(found.status, network_type=type_))
    outcome = run_check(BY_NAME["NetworkTypeRemoved"], snapshot(found), context("4.13.0", target))
    assert [finding.name for finding in outcome.findings] == ["NetworkTypeRemoved"] * applies


def test_a_network_that_does_not_say_what_it_is() -> None:
    """The spec counts if the status is empty; if both are empty, the type is unknown."""
    found = network()
    silent = replace(found, status=replace(found.status, network_type=""))
    shown = replace(silent, spec=replace(silent.spec, network_type="Kuryr"))
    check = BY_NAME["NetworkTypeRemoved"]
    assert [run_check(check, snapshot(each), context()).result for each in (silent, shown)] == ["Unknown", "Applies"]
