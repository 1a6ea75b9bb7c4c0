"""`runup upgrade policy show|set` and `runup upgrade run start|retry` against an API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.rollout.control.policy_world import CALENDARS, POLICIES, RUNS, World, world

from kubekit.kube import calls
from runup.api.update_policy_v1alpha1 import UpdateCalendar, UpdateRun

pytestmark = pytest.mark.slow
POLICY = """
apiVersion: update.runup.dev/v1alpha1
kind: UpdatePolicy
metadata: {name: cluster}
spec:
  target: {follow: Minor}
  calendars: [nights]
"""
CALENDAR = """
---
apiVersion: update.runup.dev/v1alpha1
kind: UpdateCalendar
metadata: {name: nights}
spec:
  timeZone: Europe/Berlin
  windows:
  - {opens: "0 22 * * TUE,THU", for: 6h}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for all tests."""
    with world(tmp_path_factory.mktemp("policy") / "data") as found:
        yield found


def _words(shared: World) -> tuple[str, str]:
    return ("--kubeconfig", str(shared.server.kubeconfig))


def test_stores_a_policy_or_nothing(shared: World, run: Run, tmp_path: Path) -> None:
    """A missing calendar, a wrong field and a field of another author are refused before anything is stored."""
    shared.begin()
    shared.client.send(calls.delete(POLICIES, "cluster"))
    file = tmp_path / "policy.yaml"
    connection = _words(shared)
    assert "has no UpdatePolicy: `runup upgrade policy set FILE`" in run("upgrade", "policy", "show", *connection).err
    for text, error in (
        (POLICY, "calendar nights does not exist"),
        (POLICY.replace("Minor", "minor") + CALENDAR, "follow"),
        (CALENDAR, "must have one UpdatePolicy; it has 0"),
        (POLICY.replace("name: cluster", "name: other") + CALENDAR, "named cluster"),
        ((POLICY + "  soak: 1x\n") + CALENDAR, "spec.soak"),
    ):
        file.write_text(text)
        refused = run("upgrade", "policy", "set", str(file), *connection)
        assert (refused.code, error in refused.err) == (1, True), refused.err
        assert shared.client.list_all(UpdateCalendar)[0] == []
    file.write_text(POLICY + CALENDAR)
    stored = run("upgrade", "policy", "set", str(file), *connection)
    assert (stored.code, stored.err) == (0, "")
    assert stored.out.startswith("Stored UpdatePolicy cluster, UpdateCalendar nights: ")
    shown = run("upgrade", "policy", "show", *connection)
    assert "Follows           Minor\n" in shown.out
    assert "Calendars         nights\n" in shown.out
    assert "has not reported any condition" in shown.out
    assert json.loads(run("upgrade", "policy", "show", "-o", "json", *connection).out)["spec"]["calendars"] == [
        "nights"
    ]
    # The calendar of the cluster counts as well.
    file.write_text(POLICY.replace("Minor", "Patch"))
    assert run("upgrade", "policy", "set", str(file), *connection).code == 0
    taken = {"metadata": {"name": "cluster"}, "spec": {"soak": "3h"}}
    shared.client.send(calls.apply(POLICIES, taken, field_manager="gitops", force=True))
    file.write_text(POLICY + "  soak: 2h\n")
    refused = run("upgrade", "policy", "set", str(file), *connection)
    assert (refused.code, "another author manages fields of UpdatePolicy cluster" in refused.err) == (1, True)
    assert "gitops" in refused.err
    shared.client.send(calls.delete(CALENDARS, "nights"))


def test_starts_and_retries_a_run(shared: World, run: Run) -> None:
    """In the user's own name; a retry follows a failed run only."""
    connection = _words(shared)
    shared.begin(calendars=["Always"], actuator="None", paused=True)
    refused = run("upgrade", "run", "start", "5.9.0", *connection)
    assert (refused.code, "no run to 5.9.0 can start" in refused.err) == (1, True)
    started = run("upgrade", "run", "start", "v5.1.0", *connection)
    made = shared.run()
    assert started.out.startswith(f"Created run {made.metadata.name} to 5.1.0: ")
    assert made.spec.requested_by
    shared.passes(2)
    assert shared.reason() == "PreflightMissing"
    assert "is not finished" in run("upgrade", "run", "start", "5.1.0", *connection).err
    assert "only a failed run is retried" in run("upgrade", "run", "retry", made.metadata.name, *connection).err
    status = {"status": {"step": "Failed"}}
    shared.client.send(calls.merge_patch(RUNS, made.metadata.name, status, subresource="status"))
    retried = run("upgrade", "run", "retry", made.metadata.name, "--skip-pool", "infra", *connection)
    assert retried.code == 0, retried.err
    [second] = [each for each in shared.client.list_all(UpdateRun)[0] if each.metadata.name != made.metadata.name]
    assert (second.spec.retry_of, second.spec.skip_pools) == (made.metadata.name, ("infra",))
    assert second.spec.requested_by == made.spec.requested_by
