"""`runup checks test` where cases and checks do not belong together: each is named, and the command fails."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import Run

from runup.checks.decide.cases import API_VERSION, UNCHANGED_MARK


def test_cases_and_checks_that_lack_each_other_are_named(tmp_path: Path, run: Run) -> None:
    """Cases of a check with another name, and a check without cases."""
    words = ("--resource", "routes.v1.route.openshift.io", "--kind", "Route", "--in", tmp_path)
    assert run("checks", "new", "old-routes", *words).code == 0
    cases = tmp_path / "old-routes.test.yaml"
    text = cases.read_text()
    assert text.count("check: old-routes") == 1
    cases.write_text(text.replace("check: old-routes", "check: older-routes"))
    ran = run("checks", "test", tmp_path)
    assert ran.code == 1
    assert ran.out == (
        "FAIL older-routes: there are cases for it, but the check itself is missing\n"
        "FAIL old-routes: it has no cases; `runup checks new` writes some\n"
    )


def test_cases_alone_are_enough_to_fail(tmp_path: Path, run: Run) -> None:
    """All that there is of checks passes."""
    assert run("checks", "new", "old-pods", "--kind", "Pod", "--in", tmp_path).code == 0
    cases = tmp_path / "old-pods.test.yaml"
    cases.write_text(cases.read_text().replace(UNCHANGED_MARK, "shop"))
    assert run("checks", "test", tmp_path).code == 0
    (tmp_path / "other.test.yaml").write_text(cases.read_text().replace("check: old-pods", "check: older"))
    ran = run("checks", "test", tmp_path)
    assert (ran.code, ran.out.splitlines()[0]) == (
        1,
        "FAIL older: there are cases for it, but the check itself is missing",
    )


def test_a_check_in_an_image_needs_no_cases(tmp_path: Path, run: Run) -> None:
    """It is tested where its image is built, as `checks coverage` has it, too."""
    risk = {"name": "NetworkNotReady", "message": "The network is not ready for the update."}
    spec = {"component": "network", "container": {"image": "cluster-network-operator"}, "risk": risk}
    check = {"apiVersion": API_VERSION, "kind": "PreflightCheck", "metadata": {"name": "in-an-image"}}
    (tmp_path / "check.yaml").write_text(json.dumps({**check, "spec": spec}))
    ran = run("checks", "test", tmp_path)
    assert (ran.code, ran.err, ran.out) == (0, "", "ok   in-an-image: a container, tested where its image is built\n")
