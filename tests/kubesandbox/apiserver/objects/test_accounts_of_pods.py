"""The account of a new pod, in a namespace with the account that controllers make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.api import JSON, Api
from tests.servers import api_server

PATH = "/api/v1/namespaces/default"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server whose namespace `default` has the accounts `default` and `builder`."""
    with api_server(Path(tmp_path_factory.mktemp("accounts")) / "data") as kubeconfig:
        made = Api("sandbox", str(kubeconfig))
        made.post(f"{PATH}/serviceaccounts", {"metadata": {"name": "default"}}).ok()
        pulls = {"metadata": {"name": "builder"}, "imagePullSecrets": [{"name": "registry"}]}
        made.post(f"{PATH}/serviceaccounts", pulls).ok()
        yield made
        made.close()


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        ({}, ("default", "default", None)),
        ({"serviceAccountName": "builder"}, ("builder", "builder", [{"name": "registry"}])),
        (
            {"serviceAccountName": "none"},
            'pods "p" is forbidden: error looking up service account default/none: serviceaccount "none" not found',
        ),
    ],
)
def test_an_account(api: Api, account: JSON, expected: object) -> None:
    """As the plugin ServiceAccount of a real server, without the volume with a token."""
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **account}}
    answer = api.post(f"{PATH}/pods", body, dryRun="All")
    spec = answer.body.get("spec") or {}
    members = tuple(spec.get(key) for key in ("serviceAccountName", "serviceAccount", "imagePullSecrets"))
    assert (members if answer.code == 201 else answer.message) == expected
