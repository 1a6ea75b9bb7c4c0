"""The JSON Schemas, which editors complete by: what they demand, and what they let pass."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from runup.checks.decide.check_schema import cases_schema, check_schema


def test_what_the_schema_of_a_check_says() -> None:
    """Of everything around its spec."""
    schema = check_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (schema["title"], schema["type"]) == ("PreflightCheck", "object")
    assert schema["required"] == ["apiVersion", "kind", "metadata", "spec"]
    assert list(schema["properties"]) == schema["required"]
    assert schema["properties"]["kind"] == {"const": "PreflightCheck"}
    assert schema["properties"]["spec"] == {"$ref": "#/$defs/PreflightCheckSpec"}


@pytest.mark.parametrize(
    ("metadata", "good"),
    [
        pytest.param({"name": "a"}, True, id="a name"),
        pytest.param({"name": ""}, False, id="an empty one"),
        pytest.param({}, False, id="none"),
        pytest.param("a", False, id="a text"),
        pytest.param({"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}}, True, id="words beside it"),
        pytest.param({"name": "a", "labels": {"a": 1}}, False, id="a label that is a number"),
        pytest.param({"name": "a", "annotations": {"a": 1}}, False, id="an annotation that is a number"),
        pytest.param({"name": "a", "other": 1}, True, id="what others write there"),
    ],
)
def test_what_metadata_may_be(metadata: Any, good: bool) -> None:
    """A name it must have."""
    schema = check_schema()
    own = {"$defs": schema["$defs"], **schema["properties"]["metadata"]}
    assert jsonschema_rs.validator_for(own).is_valid(metadata) is good


def test_what_the_schema_of_cases_says() -> None:
    """The kind and its version are words, not any text."""
    schema = cases_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "PreflightCheckTest"
    known = schema["$defs"]["Cases"]["properties"]
    assert known["kind"] == {"const": "PreflightCheckTest"}
    assert known["apiVersion"] == check_schema()["properties"]["apiVersion"]
    assert known["cases"]["type"] == "array"
