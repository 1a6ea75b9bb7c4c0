"""What a manifest's annotations make of its task."""

from __future__ import annotations

import pytest
from tests.applying.decide.tasks import task

from runup.applying.decide.task import deletion_text
from runup.release.decide.manifest import Identity

CREATE_ONLY, DELETE = "release.openshift.io/create-only", "release.openshift.io/delete"


@pytest.mark.parametrize(
    ("annotations", "create_only", "deletes", "unusable"),
    [
        pytest.param(None, False, False, "", id="none at all"),
        pytest.param({"a": "true"}, False, False, "", id="another one"),
        pytest.param({CREATE_ONLY: "true"}, True, False, "", id="made once"),
        pytest.param({CREATE_ONLY: "True"}, True, False, "", id="made once, in capitals"),
        pytest.param({CREATE_ONLY: "yes"}, False, False, "", id="a word that is not true"),
        pytest.param({DELETE: "true"}, False, True, "", id="to be gone"),
        pytest.param(
            {DELETE: "false"},
            False,
            True,
            f'Invalid delete annotation "{DELETE}" value: "false"',
            id="to be gone or not, who knows",
        ),
    ],
)
def test_annotations(annotations: dict[str, str] | None, create_only: bool, deletes: bool, unusable: str) -> None:
    """As upstream reads them (lib/resourcebuilder, lib/resourcedelete)."""
    metadata = {} if annotations is None else {"annotations": annotations}
    found = task("0000_50_a_x.yaml", metadata=metadata)
    assert (found.create_only, found.deletes, found.unusable) == (create_only, deletes, unusable)


def test_how_a_task_is_named() -> None:
    """Kind, namespace where there is one, and which of how many."""
    assert str(task("0000_50_a_x.yaml", "Deployment", "apps", "x")) == 'deployment "ns/x" (1 of 1)'
    assert str(task("0000_50_a_x.yaml", "Namespace", "", "x", metadata={"namespace": ""})) == 'namespace "x" (1 of 1)'


@pytest.mark.parametrize(
    ("identity", "text"),
    [
        (Identity("", "ConfigMap", "ns", "a"), 'configmap "ns/a"'),
        (Identity("rbac.authorization.k8s.io", "ClusterRole", "", "a"), 'clusterrole "a"'),
        (Identity("apiextensions.k8s.io", "CustomResourceDefinition", "", "a.b"), 'customresourcedefinition "a.b"'),
        (Identity("monitoring.coreos.com", "PrometheusRule", "ns", "a"), 'PrometheusRule "ns/a"'),
    ],
)
def test_a_deletion_is_printed_as_the_go_operator_does(identity: Identity, text: str) -> None:
    """Kinds with special deletion functions are in lower case (lib/resourcedelete); others are unchanged."""
    assert deletion_text(identity) == text
