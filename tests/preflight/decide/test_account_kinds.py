"""The kinds by which a target gets its account, as the API server serves them."""

from __future__ import annotations

import pytest

from kubekit.api.scheme import Resource
from runup.preflight.decide import service_account


@pytest.mark.parametrize(
    ("kind", "path", "namespaced"),
    [
        (service_account.SERVICE_ACCOUNT, "v1/serviceaccounts", True),
        (service_account.ROLE, "rbac.authorization.k8s.io/v1/roles", True),
        (service_account.ROLE_BINDING, "rbac.authorization.k8s.io/v1/rolebindings", True),
        (service_account.CLUSTER_ROLE, "rbac.authorization.k8s.io/v1/clusterroles", False),
        (service_account.CLUSTER_ROLE_BINDING, "rbac.authorization.k8s.io/v1/clusterrolebindings", False),
    ],
)
def test_where_they_are(kind: Resource, path: str, namespaced: bool) -> None:
    """A wrong one would be a 404 in the middle of a preflight."""
    assert (f"{kind.api_version}/{kind.plural}", kind.namespaced) == (path, namespaced)
