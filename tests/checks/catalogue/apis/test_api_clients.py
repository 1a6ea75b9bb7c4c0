"""Who asked for an API that goes: as many clients as are noted."""

from __future__ import annotations

import pytest
from tests.checks.catalogue.asking import told


@pytest.mark.parametrize(
    ("counted", "noted", "said"),
    [
        pytest.param(3, 3, "Who asked: me, 3 times.", id="all of them were noted"),
        pytest.param(4, 3, "Who asked: me, 3 times and clients that the server did not note, 1 times.", id="but one"),
        pytest.param(2, 3, "Who asked: me, 3 times.", id="more than were counted"),
    ],
)
def test_who_asked_for_an_api(counted: int, noted: int, said: str) -> None:
    """Those that the server noted, and how many it did not."""
    user = {
        "username": "me",
        "userAgent": "",
        "requestCount": noted,
        "byVerb": [{"verb": "get", "requestCount": noted}],
    }
    status = {
        "removedInRelease": "1.38",
        "requestCount": counted,
        "last24h": [{"byNode": [{"nodeName": "n", "byUser": [user], "requestCount": noted}], "requestCount": noted}],
    }
    count = {
        "apiVersion": "apiserver.openshift.io/v1",
        "kind": "APIRequestCount",
        "metadata": {"name": "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"},
        "status": status,
    }
    (found,) = told("RemovedAPIRequested", count)
    assert found.endswith(said)
