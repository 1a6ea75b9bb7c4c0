"""Finds the writer that keeps changing an object, from managedFields."""

from __future__ import annotations

from typing import Any

import pytest
from tests.applying.control.release_folders import NAMESPACE, deployment, manifest

from runup.api.owned_v1 import ManagedFields, OwnedMeta
from runup.applying.decide.contesting_writers import contesting_writer
from runup.applying.decide.merge_rules import MERGER
from runup.applying.decide.merging import MANAGER

DEPLOYMENT, WIDGET = ("apps", "Deployment"), ("example.org", "Widget")
OURS = {"f:spec": {"f:selector": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:name": {}}}}}}}


def wrote(manager: str, at: int, fields: dict[str, Any], **more: str) -> ManagedFields:
    """An entry of managedFields: an update at that second."""
    return ManagedFields(
        manager=manager,
        operation="Update",
        subresource=more.get("subresource", ""),
        fields_v1=fields,
        time=f"2026-01-01T00:00:{at:02}Z",
    )


def containers(key: str, **fields: Any) -> dict[str, Any]:
    """Fields of one container."""
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": {f"k:{key}": {".": {}} | fields}}}}}


SIDECAR = containers('{"name":"mesh"}', **{"f:name": {}, "f:image": {}})
IMAGE = containers('{"name":"a"}', **{"f:image": {}})
REPLICAS = {"f:spec": {"f:replicas": {}}}
ANNOTATION = {"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}}}
OF_STATUS = {"f:status": {"f:replicas": {}}}


@pytest.mark.parametrize(
    ("entries", "writer"),
    [
        pytest.param([], "", id="nobody"),
        pytest.param([wrote(MERGER, 9, SIDECAR), wrote(MANAGER, 9, SIDECAR)], "", id="we alone"),
        pytest.param([wrote("mesh", 1, SIDECAR), wrote("kcm", 9, ANNOTATION)], "mesh", id="who adds what goes"),
        pytest.param([wrote("edit", 1, IMAGE), wrote("kcm", 9, ANNOTATION)], "edit", id="who changes an image"),
        pytest.param([wrote("hpa", 1, REPLICAS), wrote("kcm", 9, ANNOTATION)], "hpa", id="who changes a value of ours"),
        pytest.param([wrote("a", 1, IMAGE), wrote("b", 2, REPLICAS)], "b", id="of two the last"),
        pytest.param([wrote("a", 2, ANNOTATION), wrote("b", 1, ANNOTATION)], "a", id="nobody for sure: the last"),
        pytest.param(
            [wrote("a", 1, IMAGE), wrote("kcm", 9, OF_STATUS, subresource="status")],
            "a",
            id="a status is nobody's",
        ),
    ],
)
def test_who_changes_a_deployment(entries: list[ManagedFields], writer: str) -> None:
    """Not who merely wrote next to it."""
    ours = ManagedFields(
        manager=MANAGER, operation="Apply", subresource="", fields_v1=OURS, time="2026-01-01T00:00:30Z"
    )
    metadata = OwnedMeta(name="a", managed_fields=(ours, *entries))
    assert contesting_writer(DEPLOYMENT, metadata, deployment("a", "registry.example/a:1")) == writer


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"f:spec": {"f:names": {'v:"x"': {}}}}, True, id="a value of a set"),
        pytest.param({"f:spec": {"f:names": {'v:"y"': {}}}}, False, id="another value"),
        pytest.param({"f:spec": {"f:ports": {'k:{"port":1}': {"f:protocol": {}}}}}, True, id="a field of an item"),
        pytest.param({"f:spec": {"f:ports": {'k:{"port":1}': {"f:other": {}}}}}, False, id="another field of it"),
        pytest.param({"f:spec": {"f:ports": {'k:{"port":2}': {"f:protocol": {}}}}}, False, id="another item"),
        pytest.param({"f:spec": {".": {}}}, False, id="only what is around it"),
        pytest.param({"f:spec": {"f:size": {}}}, True, id="a value"),
        pytest.param({"f:spec": {"f:size": {"f:of": {}}}}, False, id="something inside what is a value here"),
    ],
)
def test_who_changes_a_kind_without_rules(fields: dict[str, Any], says: bool) -> None:
    """By what the manifest says."""
    spec = {"names": ["x"], "ports": [{"port": 1, "protocol": "TCP"}], "size": 3}
    obj = manifest("example.org/v1", "Widget", "w", NAMESPACE, spec=spec)
    entries = (wrote("they", 1, fields), wrote("others", 9, ANNOTATION))
    found = contesting_writer(WIDGET, OwnedMeta(name="w", managed_fields=entries), obj)
    assert found == ("they" if says else "others")
