"""Objects of built-in kinds as Go reads and writes them; expected values are those of a kube-apiserver 1.34."""

from __future__ import annotations

from typing import Any

import pytest

from kubesandbox.apiserver.schema.builtin import BuiltinSchema, Definitions, builtin_schema
from kubesandbox.apiserver.schema.builtin_table import full_name
from kubesandbox.apiserver.schema.typed import DecodeError, shape_of
from kubesandbox.apiserver.served_kinds import BUILTIN

JSON = dict[str, Any]
ONE = {"cpu": "1"}


def schema(kind: str) -> BuiltinSchema:
    """A kind's schema, whatever its group."""
    row = next(row for row in BUILTIN if row.kind == kind)
    found = builtin_schema(row.group, row.version, kind)
    assert found is not None
    return found


@pytest.mark.parametrize("row", BUILTIN, ids=lambda row: f"{row.group}-{row.kind}")
def test_every_served_kind_has_a_type(row: Any) -> None:
    """No kind is taken as it comes, and what it refers to exists."""
    found = builtin_schema(row.group, row.version, row.kind)
    assert found is not None
    assert found.root.properties["apiVersion"].type == "string"


def test_every_reference_leads_somewhere() -> None:
    """In the OpenAPI documents."""

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [name for child in value.values() for name in references(child)]
        return [name for child in value for name in references(child)] if isinstance(value, list) else []

    known = Definitions()
    missing = {ref for name in known for ref in references(known[name]) if ref.rpartition("/")[2] not in known}
    assert missing == set()


@pytest.mark.parametrize(
    ("kind", "obj", "stored"),
    [
        pytest.param("ConfigMap", {"data": {"a": None, "b": ""}}, {"data": {"a": "", "b": ""}}, id="null in a map"),
        pytest.param("ConfigMap", {"data": None, "immutable": None}, {}, id="nulls are absent"),
        pytest.param(
            "Lease",
            {"spec": {"renewTime": "2026-01-01T00:00:00.500000+02:00"}},
            {"spec": {"renewTime": "2025-12-31T22:00:00.500000Z"}},
            id="times are in UTC",
        ),
        pytest.param(
            "ResourceQuota",
            {"spec": {"hard": {"requests.cpu": "1000m", "requests.memory": "1024Mi", "pods": 5}}},
            {"spec": {"hard": {"requests.cpu": "1", "requests.memory": "1Gi", "pods": "5"}}},
            id="quantities are canonical",
        ),
        pytest.param(
            "ControllerRevision",
            {"data": {"a": None}, "revision": 1},
            {"data": {"a": None}, "revision": 1},
            id="raw JSON",
        ),
    ],
)
def test_what_is_stored(kind: str, obj: JSON, stored: JSON) -> None:
    """Canonical forms, and no nulls."""
    assert schema(kind).decode(obj) == (stored, [])


def test_unknown_fields_are_named_where_they_stand() -> None:
    """In the order of the text, those of metadata too."""
    container = {"name": "c", "imag": "x"}
    obj = {"metadata": {"nme": "x"}, "spec": {"template": {"spec": {"containers": [{"name": "b"}, container]}}}, "x": 1}
    stored, unknown = schema("Deployment").decode(obj)
    assert unknown == ["metadata.nme", "spec.template.spec.containers[1].imag", "x"]
    assert stored["spec"]["template"]["spec"]["containers"] == [{"name": "b"}, {"name": "c"}]


def pod_of(**container: Any) -> JSON:
    """A pod with one container."""
    return {"spec": {"containers": [{"name": "c", **container}]}}


@pytest.mark.parametrize(
    ("kind", "obj", "message"),
    [
        pytest.param(
            "Deployment",
            {"spec": {"replicas": "3"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            id="text for a number",
        ),
        pytest.param(
            "Deployment",
            {"spec": {"replicas": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            id="a fraction",
        ),
        pytest.param(
            "Pod",
            pod_of(env=[{"name": "A", "value": 1}]),
            "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
            id="in a list, without indices",
        ),
        pytest.param(
            "Pod",
            pod_of(imagePullPolicy=1),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type "
            "v1.PullPolicy",
            id="a string with a name",
        ),
        pytest.param(
            "ConfigMap",
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            id="in a map, without the key",
        ),
        pytest.param(
            "Pod",
            {"spec": []},
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
            id="a list for a struct",
        ),
        pytest.param(
            "Pod",
            {"spec": {"containers": {}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            id="a struct for a list",
        ),
        pytest.param(
            "Pod",
            pod_of(resources={"limits": {"cpu": "much"}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="no quantity",
        ),
    ],
)
def test_what_does_not_fit_its_type(kind: str, obj: JSON, message: str) -> None:
    """In the words of Go's decoder."""
    with pytest.raises(DecodeError) as refused:
        schema(kind).decode(obj)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("kind", "obj", "answered"),
    [
        pytest.param("Service", {}, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}, id="structs"),
        pytest.param("Role", {"metadata": {}, "rules": []}, {"metadata": {}, "rules": None}, id="null list"),
        pytest.param(
            "RoleBinding",
            {"metadata": {}},
            {"metadata": {}, "roleRef": {"apiGroup": "", "kind": "", "name": ""}},
            id="texts that are always written",
        ),
        pytest.param("Secret", {"metadata": {"labels": {}}, "immutable": False}, {"metadata": {}, "immutable": False},
                     id="a pointer keeps its zero, a map that is empty goes"),
        pytest.param("Lease", {"spec": {"leaseTransitions": 0}}, {"metadata": {}, "spec": {"leaseTransitions": 0}},
                     id="zero transitions"),
    ],
)  # fmt: skip
def test_what_is_answered(kind: str, obj: JSON, answered: JSON) -> None:
    """Zeros that Go writes, and none of those that it leaves out."""
    row = next(row for row in BUILTIN if row.kind == kind)
    shape = shape_of(full_name(row.group, row.version, kind))
    assert shape is not None
    assert shape.complete(obj, defaults=False) == answered


def test_completing_twice_changes_nothing() -> None:
    """Of every kind, from nothing at all."""
    for row in BUILTIN:
        known = schema(row.kind)
        whole = known.complete(known.empty())
        assert known.complete(whole) == whole
        assert known.decode(whole)[1] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'cannot parse "" as "2006"'),
        ("yesterday", 'cannot parse "yesterday" as "2006"'),
        ("2026-1-1", 'cannot parse "1-1" as "01"'),
        ("2026-01-01 00:00:00Z", 'cannot parse " 00:00:00Z" as "T"'),
        ("2026-01-01T00:00:00", 'cannot parse "" as "Z07:00"'),
    ],
)
def test_times_that_are_none(text: str, why: str) -> None:
    """In the words of Go's time.Parse."""
    obj = {"metadata": {"creationTimestamp": text}}
    with pytest.raises(DecodeError) as refused:
        schema("ConfigMap").decode(obj)
    assert str(refused.value) == f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": {why}'


def test_numbers_of_a_time_out_of_range() -> None:
    """Named, as Go does; and a micro time has six digits."""
    for text, why in (("2026-13-01T00:00:00Z", "month out of range"), ("2026-02-30T00:00:00Z", "day out of range")):
        with pytest.raises(DecodeError, match=f'parsing time "{text}": {why}'):
            schema("ConfigMap").decode({"metadata": {"creationTimestamp": text}})
    with pytest.raises(DecodeError, match=r'cannot parse ".5Z" as ".000000"'):
        schema("Lease").decode({"spec": {"renewTime": "2026-01-01T00:00:00.5Z"}})


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value"),
    [
        pytest.param("PodTemplate", {"template": {"spec": {}}}, "template.spec.dnsPolicy", "ClusterFirst", id="in it"),
        pytest.param("Job", {"spec": {"backoffLimitPerIndex": 1}}, "spec.backoffLimit", 2147483647, id="by others"),
        pytest.param("Deployment", {"spec": {"replicas": 0}}, "spec.replicas", 0, id="a pointer's zero is meant"),
        pytest.param("Deployment", {"spec": {"strategy": {"type": ""}}}, "spec.strategy.type", "RollingUpdate", id="0"),
        pytest.param("StatefulSet", {"spec": {"updateStrategy": {"type": "RollingUpdate"}}}, "spec.updateStrategy",
                     {"type": "RollingUpdate"}, id="no partition for a named strategy"),
        pytest.param("DaemonSet", {}, "metadata.annotations", {"deprecated.daemonset.template.generation": "1"},
                     id="an annotation"),
        pytest.param("LimitRange", {"spec": {"limits": [{"type": "Container", "max": ONE}]}}, "spec.limits",
                     [{"type": "Container", "max": ONE, "default": ONE, "defaultRequest": ONE}], id="in a list"),
    ],
)  # fmt: skip
def test_defaults(kind: str, obj: JSON, path: str, value: Any) -> None:
    """Those that Kubernetes sets in code."""
    found: Any = schema(kind).complete(schema(kind).decode(obj)[0])
    for part in path.split("."):
        found = found[part]
    assert found == value
