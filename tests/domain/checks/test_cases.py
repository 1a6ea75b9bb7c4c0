"""The cases that a declarative check brings: what is wrong with one, in words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domain.checks.test_declarative import TEXT

from runup.domain.checks import cases
from runup.domain.checks.declarative import declared_check
from runup.lang import yaml as kyaml

OFFERS = {"metadata": {"name": "a", "namespace": "openshift-ingress"}, "data": {"ciphers": "RC4"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", **OFFERS}


def problem(**case: Any) -> str:
    """What is said of one case."""
    document = kyaml.load(TEXT)
    file = {"apiVersion": cases.API_VERSION, "kind": cases.KIND, "check": "legacy-cipher"}
    whole = cases.parse({**file, "cases": [{"name": "c", "expect": "Applies", "objects": [CONFIG_MAP], **case}]})
    return next(iter(cases.judge(declared_check(document, file="x"), whole))).problem


@pytest.mark.parametrize(
    ("case", "said"),
    [
        pytest.param({}, "", id="as expected"),
        pytest.param({"expect": "Clear"}, "expected Clear, found Applies: a offers RC4", id="another result"),
        pytest.param(
            {"lacking": ["nodes"]}, "lacking names nodes, which the check does not read", id="nothing it reads"
        ),
        pytest.param(
            {"lacking": ["nodes", "jobs"]},
            "lacking names jobs, nodes, which the check does not read",
            id="two of those",
        ),
        pytest.param(
            {"lacking": ["configmaps"], "objects": [], "expect": "Unknown"}, "", id="what it reads is lacking"
        ),
        pytest.param({"target": "five"}, "five", id="no version"),
        pytest.param({"name": cases.REPLACE}, f"the skeleton is unchanged: replace {cases.REPLACE}", id="unchanged"),
        pytest.param({"message": "offers RC4"}, "", id="a part of the message"),
        pytest.param(
            {"message": "offers DES"}, "expected a message with 'offers DES', found 'a offers", id="another one"
        ),
        pytest.param({"resources": ["a"]}, "", id="the object that it is about"),
        pytest.param({"resources": ["b"]}, "expected it to be about b, found a", id="another object"),
        pytest.param({"resources": []}, "expected it to be about nothing, found a", id="none"),
    ],
)
def test_what_is_said_of_a_case(case: dict[str, Any], said: str) -> None:
    """Nothing where it is as expected."""
    found = problem(**case)
    assert said in found
    assert bool(said) == bool(found)
