"""Webhooks that would be asked about what an update writes."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import JSON, findings


def webhooks(*policies: str, resources: str = "pods", group: str = "") -> JSON:
    """A configuration of webhooks without backends, one a policy."""
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resources]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "policies"},
        "webhooks": [
            {
                "name": f"w{number}.example.com",
                "failurePolicy": policy,
                "clientConfig": {"service": {"namespace": "policies", "name": "webhook"}},
                "rules": [rule],
            }
            for number, policy in enumerate(policies)
        ],
    }


@pytest.mark.parametrize(
    ("configuration", "times"),
    [
        pytest.param(webhooks("Fail"), 1, id="one"),
        pytest.param(webhooks("Ignore", "Fail"), 1, id="after one that may be ignored"),
        pytest.param(webhooks("Fail", "Ignore", "Fail"), 2, id="two"),
        pytest.param(webhooks("Fail", resources="*"), 1, id="of every resource"),
        pytest.param(webhooks("Fail", resources="*/*"), 1, id="of every resource and all beneath"),
        pytest.param(webhooks("Fail", resources="jobs"), 0, id="of what is not of this group"),
        pytest.param(webhooks("Fail", group="*", resources="jobs"), 1, id="of every group"),
        pytest.param(webhooks("Fail", group="batch", resources="*"), 1, id="of another group"),
        pytest.param(webhooks("Fail", group="example.com", resources="*"), 0, id="of its own group"),
    ],
)
def test_webhooks_in_the_way(configuration: JSON, times: int) -> None:
    """Each that an update's writes must pass, and whose backend is not there."""
    assert [name for name, *_ in findings("WebhookBlocksUpdate", configuration)] == ["WebhookBlocksUpdate"] * times
