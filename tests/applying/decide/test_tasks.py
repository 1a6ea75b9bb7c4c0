"""What a manifest's annotations make of its task."""

from __future__ import annotations

import pytest
from tests.applying.decide.tasks import task

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
