"""The kinds by which a target gets its account, as the API server serves them."""

from __future__ import annotations

import pytest

from kubekit.api.scheme import Resource
from runup.preflight.decide import accounts


@pytest.mark.parametrize(
    ("kind", "path", "namespaced"),
    [
        (accounts.SERVICE_ACCOUNT, "v1/serviceaccounts", True),
        (accounts.ROLE, "rbac.authorization.k8s.io/v1/roles", True),
        (accounts.ROLE_BINDING, "rbac.authorization.k8s.io/v1/rolebindings", True),
        (accounts.CLUSTER_ROLE, "rbac.authorization.k8s.io/v1/clusterroles", False),
        (accounts.CLUSTER_ROLE_BINDING, "rbac.authorization.k8s.io/v1/clusterrolebindings", False),
    ],
)
def test_where_they_are(kind: Resource, path: str, namespaced: bool) -> None:
    """A wrong one would be a 404 in the middle of a preflight."""
    assert (f"{kind.api_version}/{kind.plural}", kind.namespaced) == (path, namespaced)
