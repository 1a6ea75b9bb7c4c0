"""Which objects are written in a version that the target's Kubernetes does not serve, by the table of removed APIs."""

from __future__ import annotations

from typing import Any

from runup.rehearse.decide import served_versions
from runup.release.decide.manifest import Identity

JSON = dict[str, Any]
GROUP = "flowcontrol.apiserver.k8s.io"


def flow_schema(shown: str, *written: tuple[str, str]) -> JSON:
    """A FlowSchema as the server shows it, with the versions and managers that wrote it."""
    fields = [{"apiVersion": f"{GROUP}/{version}", "manager": manager} for version, manager in written]
    metadata = {"name": "shop", "managedFields": fields}
    return {"apiVersion": f"{GROUP}/{shown}", "kind": "FlowSchema", "metadata": metadata}


def test_a_version_that_somebody_writes() -> None:
    """1.32 no longer serves flowcontrol v1beta3 (kubernetes.io/docs/reference/using-api/deprecation-guide)."""
    (found,) = served_versions.unserved([flow_schema("v1", ("v1beta3", "shop"), ("v1", "ann"))], 31, 32)
    assert (found.version, found.minor, found.writers) == ("v1beta3", 32, ("shop",))
    assert found.objects == (Identity(GROUP, "FlowSchema", "", "shop"),)


def test_versions_that_the_target_serves() -> None:
    """What the target still serves, what went before the source, and what the control plane writes is not told."""
    assert served_versions.unserved([flow_schema("v1", ("v1", "shop"))], 31, 32) == ()
    assert served_versions.unserved([flow_schema("v1", ("v1beta3", "shop"))], 32, 33) == ()
    assert served_versions.unserved([flow_schema("v1", ("v1beta3", "kube-apiserver"))], 31, 32) == ()


def test_a_target_beyond_the_table() -> None:
    """Of a version that the table does not reach nothing is known."""
    assert [each.kind for each in served_versions.kinds_beyond_table(99)] == ["versions of the API"]
    assert served_versions.kinds_beyond_table(32) == ()
