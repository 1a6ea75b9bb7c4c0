"""What a check knows that it cannot tell is said, whatever else cannot be read."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.factories import context

from kubekit.lang import yaml as kyaml
from runup.checks.catalogue import CHECKS
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies, Check, Finding
from runup.checks.decide.snapshots import snapshot_of

JSON = dict[str, Any]
BY_NAME = {check.name: check for check in CHECKS if check.example}


def objects_of(check: Check) -> list[JSON]:
    """The objects of the check's example, and next to each a blank one, which says nothing of what is asked."""
    given: list[JSON] = [obj for obj in kyaml.load_all(check.example) if "apiVersion" in obj]
    blank = [
        {
            **{key: obj[key] for key in ("apiVersion", "kind")},
            "metadata": {**obj.get("metadata", {}), "name": f"blank-{n}"},
        }
        for n, obj in enumerate(given)
    ]
    return [*given, *blank]


def unknown(check: Check, objects: list[JSON]) -> set[Finding]:
    """The findings that say what the check could not report objects that it has read."""
    findings = run_check(check, snapshot_of(check.reads, objects), context()).findings
    return {
        finding
        for finding in findings
        if finding.applies is Applies.UNKNOWN and finding.resources and finding.reason != "PreflightPartial"
    }


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_no_object_that_cannot_be_read_hides_an_unknown(name: str) -> None:
    """A pool that cannot be read must not keep back that a node reports no version."""
    check = BY_NAME[name]
    objects = objects_of(check)
    for index in range(len(objects)):
        odd = copy.deepcopy(objects)
        odd[index]["metadata"]["annotations"] = "odd"
        without = [obj for place, obj in enumerate(objects) if place != index]
        assert unknown(check, without) <= unknown(check, odd), objects[index]
