"""Operators that failed, where only some of OLM's kinds can be read."""

from __future__ import annotations

from tests.checks.catalogue.asking import BY_NAME
from tests.factories import context

from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of

CHECK = BY_NAME["OperatorFailed"]
SUBSCRIPTION = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "Subscription",
    "metadata": {"name": "logs", "namespace": "logging"},
    "status": {"conditions": [{"type": "BundleUnpackFailed", "status": "True", "message": "DeadlineExceeded"}]},
}


def test_a_subscription_is_reported_without_install_plans() -> None:
    """A kind that cannot be read hides no failure that another kind shows, and is reported as Unknown."""
    unreadable = ("InstallPlan", "CustomResourceDefinition")
    lacking = snapshot_of(
        CHECK.reads, [SUBSCRIPTION], lacking=lambda read: "forbidden" if read.kind in unreadable else ""
    )
    found = run_check(CHECK, lacking, context()).findings
    assert [(finding.name, finding.applies.value) for finding in found] == [
        ("OperatorFailed-logs", "True"),
        ("OperatorFailedUnknown", "Unknown"),
    ]
