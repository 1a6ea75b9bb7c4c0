"""Passes that fail again and again are reported; the status keeps nothing that nobody keeps any more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.factories import cluster_version, condition

from runup.clusterversion.decide import sync_failure
from runup.clusterversion.decide.status import with_conditions
from runup.clusterversion.decide.sync_failure import Failure
from runup.process.plan import PatchStatus

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ENSURING = "Error ensuring the cluster version is up to date: "


def written_conditions(failure: Failure, *found: Any) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition that the plan writes, empty where it writes none."""
    plan = sync_failure.plan(cluster_version(conditions=found), failure, NOW)
    return {
        each["type"]: (each["status"], each.get("reason", ""), each.get("message", ""))
        for action in plan.actions
        if isinstance(action, PatchStatus)
        for each in action.fields["conditions"]
    }


AVAILABLE = condition("Available", "True", message="Done applying 5.0.0")


@pytest.mark.parametrize("progressing", ["True", "False"])
def test_a_pass_that_cannot_be_decided(progressing: str) -> None:
    """As upstream: not available, failing in the error's own words, and as much in progress as it was."""
    found = condition("Progressing", progressing, message="Cluster version is 5.0.0")
    assert written_conditions(Failure("KeyError: 'a'", decided=False), AVAILABLE, found) == {
        "Available": ("False", "", ""),
        "Failing": ("True", "", "KeyError: 'a'"),
        "Progressing": (progressing, "", f"{ENSURING}KeyError: 'a'"),
    }


def test_a_write_that_is_refused_leaves_the_cluster_available() -> None:
    """Only a preflight writes anything but the status, and a preflight changes nothing."""
    found = written_conditions(Failure("configmaps is forbidden", "Forbidden"), AVAILABLE)
    assert found["Available"] == ("True", "AsExpected", "Done applying 5.0.0")
    assert found["Failing"] == ("True", "Forbidden", "configmaps is forbidden")
    assert found["Progressing"] == ("False", "Forbidden", f"{ENSURING}configmaps is forbidden")


def test_it_is_said_once() -> None:
    """An unchanged status is not written again: each write would start the next pass."""
    failure = Failure("x" * 10)
    first = sync_failure.plan(cluster_version(conditions=(AVAILABLE,)), failure, NOW)
    assert len(first.actions) == 1
    shown = with_conditions((AVAILABLE,), sync_failure.conditions(failure, (AVAILABLE,)), (), now=NOW)
    assert sync_failure.plan(cluster_version(conditions=shown), failure, NOW).actions == ()


def test_others_words_are_made_to_fit() -> None:
    """An error may be as long as it likes."""
    assert len(written_conditions(Failure("x" * 100_000), AVAILABLE)["Failing"][2]) <= 32768
