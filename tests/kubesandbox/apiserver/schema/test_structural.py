"""Structural schemas: pruning, defaulting, faults in Kubernetes' words, transition rules, CRDs, built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesandbox.apiserver.schema.crd import validate_crd
from kubesandbox.apiserver.schema.object_schema import compile_schema, strict_errors

JSON = dict[str, Any]

SCHEMA: JSON = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0, "default": 3},
                "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
                "digits": {"type": "string", "pattern": r"^\d+$"},
                "slow": {"type": "string", "pattern": "^(a+)+$"},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "since": {"type": "string", "format": "date-time", "nullable": True},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            },
        }
    },
}
COMPILED = compile_schema(SCHEMA)


def spec(**fields: Any) -> JSON:
    return {"spec": fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"n": "x"}, ['spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"']),
        ({"n": -1}, ["spec.n: Invalid value: -1: spec.n in body should be greater than or equal to 0"]),
        ({"name": "a"}, ['spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long']),
        ({"name": "A1"}, ["spec.name: Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'"]),
        ({"name": "ab\n"}, ["spec.name: Invalid value: \"ab\\n\": spec.name in body should match '^[a-z]+$'"]),
        ({"digits": "\u0663"},
         ["spec.digits: Invalid value: \"\u0663\": spec.digits in body should match '^\\d+$'"]),
        ({"slow": "a" * 5000}, []),
        ({"slow": "a" * 40 + "b"},
         [f"spec.slow: Invalid value: \"{'a' * 40}b\": spec.slow in body should match '^(a+)+$'"]),
        ({"name": None}, ['spec.name: Invalid value: "null": spec.name in body must be of type string: "null"']),
        ({"port": 80}, []),
        ({"port": "80%"}, []),
        ({"labels": {"a": 1}},
         ['spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"']),
        ({"since": None}, []),
        ({"since": "today"},
         ['spec.since: Invalid value: "today": spec.since in body must be of type date-time: "today"']),
        ({"tags": ["a", "a"]}, ['spec.tags[1]: Duplicate value: "a"']),
    ],
)  # fmt: skip
def test_faults(fields: JSON, expected: list[str]) -> None:
    """Each fault in the words of kube-openapi and apimachinery."""
    found = [str(error) for error in COMPILED.validate(spec(**fields))]
    assert [text for text in found if "were not checked" not in text] == expected


def test_transition_rules() -> None:
    """A rule on oldSelf runs on updates alone; what is unchanged passes though it is invalid."""
    assert COMPILED.validate(spec(fixed="a")) == []
    assert [str(e) for e in COMPILED.validate(spec(fixed="b"), spec(fixed="a"))] == [
        'spec.fixed: Invalid value: "string": failed rule: self == oldSelf'
    ]
    assert COMPILED.validate(spec(n=-1, name="ok"), spec(n=-1)) == []


def test_pruning_names_what_it_drops() -> None:
    """Unknown fields go and are named; maps and free objects keep theirs."""
    obj = spec(typo=1, labels={"x": "y"}, free={"anything": 1})
    kept, unknown = COMPILED.prune(obj)
    assert kept == spec(labels={"x": "y"}, free={"anything": 1})
    assert strict_errors(unknown) == ('unknown field "spec.typo"',)
    assert obj["spec"]["typo"] == 1


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "n", "labels", "free", "tags", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # how fast data is made says nothing on a busy machine
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "x"]), JSONS))
def test_prune_and_default_twice_change_nothing_more(obj: JSON) -> None:
    """Both are idempotent."""
    once = COMPILED.default(COMPILED.prune(obj)[0])
    assert COMPILED.prune(once) == (once, ())
    assert COMPILED.default(once) == once


def _crd(schema: JSON) -> JSON:
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    body = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return {"metadata": {"name": "things.example.com"}, "spec": body}


# What all versions have alike is at the definition itself.
AT = "spec.validation.openAPIV3Schema"


@pytest.mark.parametrize(
    ("properties", "path", "body"),
    [
        ({"a": {}}, f"{AT}.properties[a].type", "Required value: must not be empty for specified object fields"),
        ({"a": {"type": "array"}}, f"{AT}.properties[a].items", "Required value: must be specified"),
        (
            {"a": {"type": "integer", "default": "x"}},
            f"{AT}.properties[a].default",
            'Invalid value: "string":  in body must be of type integer: "string"',
        ),
    ],
)
def test_crd_faults(properties: JSON, path: str, body: str) -> None:
    """A CRD that is not structural is refused with the place and the reason."""
    (error,) = validate_crd(_crd({"type": "object", "properties": properties}))
    assert (error.path, error.body) == (path, body)


def test_a_rule_that_does_not_compile_refuses_the_crd() -> None:
    """The compiler's text is in the fault."""
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "selff == 1"}]}
    (error,) = validate_crd(_crd(schema))
    assert error.path == f"{AT}.x-kubernetes-validations[0].rule"
    assert "compilation failed: ERROR: <input>:1:1: undeclared reference to 'selff'" in error.body
