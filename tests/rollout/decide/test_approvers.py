"""Who may approve a run, by roles and their bindings. Numbers are those of the cases."""

from __future__ import annotations

from typing import Any

import pytest

from runup.api.update_policy_v1alpha1 import Candidate, RunGate, UpdateRun, UpdateRunSpec, UpdateRunStatus
from runup.rollout.decide.approvers import approvers_of, missing_approvals

RULE = {"apiGroups": ["update.runup.dev"], "resources": ["updateruns"], "verbs": ["get", "approve"]}
JANE = {"kind": "User", "name": "jane"}


def _role(rule: dict[str, Any] | None, name: str = "r") -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": [rule] if rule is not None else None}


def _binding(*subjects: dict[str, str], role: str = "r") -> dict[str, Any]:
    return {"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [*subjects]}


@pytest.mark.parametrize(
    ("rule", "bindings", "subjects"),
    [
        pytest.param(RULE, [_binding(JANE)], ("User jane",), id="the verb on the kind"),
        pytest.param(
            RULE,
            [_binding(JANE, {"kind": "ServiceAccount", "name": "t", "namespace": "ci"}), _binding(JANE)],
            ("ServiceAccount ci/t", "User jane"),
            id="each subject once",
        ),
        pytest.param(
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            [_binding({"kind": "Group", "name": "system:masters"})],
            ("Group system:masters",),
            id="every verb on everything",
        ),
        pytest.param({**RULE, "resourceNames": ["5.1.0-a"]}, [_binding(JANE)], ("User jane",), id="this run by name"),
        pytest.param({**RULE, "resourceNames": ["5.0.0-b"]}, [_binding(JANE)], (), id="another run"),
        pytest.param({**RULE, "verbs": ["get", "update"]}, [_binding(JANE)], (), id="no approve"),
        pytest.param({**RULE, "resources": ["updateapprovals"]}, [_binding(JANE)], (), id="another kind"),
        pytest.param({**RULE, "apiGroups": [""]}, [_binding(JANE)], (), id="another group"),
        pytest.param({"nonResourceURLs": ["*"], "verbs": ["*"]}, [_binding(JANE)], (), id="addresses only"),
        pytest.param(RULE, [_binding(JANE, role="other")], (), id="another role"),
        pytest.param(RULE, [{"roleRef": {"name": "r"}, "subjects": None}], (), id="a binding of nobody"),
        pytest.param(None, [_binding(JANE)], (), id="a role without rules"),
        pytest.param(RULE, [], (), id="no binding"),
    ],
)
def test_lists_the_subjects_that_may_approve(
    rule: dict[str, Any] | None, bindings: list[dict[str, Any]], subjects: tuple[str, ...]
) -> None:
    """By the verb `approve` on updateruns, as the admission policy requires it."""
    assert approvers_of("5.1.0-a", [_role(rule)], bindings) == subjects


def test_21_an_approval_that_is_not_verified_is_missing() -> None:
    """Unknown is not given; a gate of another kind is not an approval."""
    gates = (
        RunGate(name="approval cab", state="Open", reason="Approved"),
        RunGate(name="approval storage", state="Closed", reason="ApprovalMissing"),
        RunGate(name="approval network", state="Unknown", reason="ApproverUnverified"),
        RunGate(name="alerts", state="Unknown", reason="AlertsUnknown"),
    )
    target = Candidate(version="5.1.0", image="i@sha256:1")
    run = UpdateRun(spec=UpdateRunSpec(target=target), status=UpdateRunStatus(gates=gates))
    assert [gate.name for gate in missing_approvals(run)] == ["approval storage", "approval network"]
