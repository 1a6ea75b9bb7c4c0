"""Stored objects that a schema cannot decode: whose effect it is."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kubesandbox.apiserver.store import Entry
from runup.rehearse.control.stored_objects import Definition, try_stored_objects

JSON = dict[str, Any]
EMBEDDED: JSON = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}}
PLAIN: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(of_template: JSON) -> JSON:
    """A definition with the schema of its field `template`."""
    schema = {"type": "object", "properties": {"template": of_template}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.mark.parametrize(
    ("before", "refused", "unknown"),
    [
        pytest.param(PLAIN, True, False, id="the release's schema alone cannot decode it: refused"),
        pytest.param(EMBEDDED, False, True, id="neither can: not known"),
    ],
)
def test_an_object_that_cannot_be_decoded(before: JSON, refused: bool, unknown: bool) -> None:
    """Only what the release changes is its effect."""
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}},
    }
    entry = Entry("things", "a", 1, json.dumps(obj).encode())
    outcome = try_stored_objects(
        Definition(copy.deepcopy(definition(before))), definition(EMBEDDED), [entry], kubernetes="1.34.0", complete=True
    )
    (stored,) = outcome.objects
    assert (bool(stored.refused), bool(stored.unknown)) == (refused, unknown)
