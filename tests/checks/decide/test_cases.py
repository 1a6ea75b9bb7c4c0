"""The cases that a declarative check brings: what is wrong with one, in words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.decide.test_declarative import CONTAINER, QUERY, TEXT

from kubekit.lang import yaml as kyaml
from runup.checks.decide import cases
from runup.checks.decide.declarative import declared_check

OFFERS = {"metadata": {"name": "a", "namespace": "openshift-ingress"}, "data": {"ciphers": "RC4"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", **OFFERS}


def problem(**case: Any) -> str:
    """Returns the problem of one case."""
    document = kyaml.load(TEXT)
    file = {"apiVersion": cases.API_VERSION, "kind": cases.KIND, "check": "legacy-cipher"}
    whole = cases.parse({**file, "cases": [{"name": "c", "expect": "Applies", "objects": [CONFIG_MAP], **case}]})
    return next(iter(cases.evaluate_cases(declared_check(document, file="x"), whole))).problem


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
        pytest.param(
            {"name": cases.UNCHANGED_MARK}, f"the skeleton is unchanged: replace {cases.UNCHANGED_MARK}", id="unchanged"
        ),
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


def case(expect: str, *objects: Any, **more: Any) -> cases.Case:
    """A case of a file."""
    return cases.Case(name="c", expect=expect, objects=objects, **more)  # type: ignore[arg-type]


NO_APPLIES, NO_CLEAR = (f"there is no case with objects that expects {kind}" for kind in ("Applies", "Clear"))
NO_UNKNOWN = "there is no case that expects Unknown: name one of the reads in `lacking`"
NO_EMPTY = "there is no case of an empty cluster: one without objects"
CLEAR, APPLIES = case("Clear", CONFIG_MAP), case("Applies", CONFIG_MAP)
UNKNOWN, EMPTY = case("Unknown", lacking=("configmaps",)), case("Clear")
MISSING: dict[str, tuple[str, tuple[cases.Case, ...], list[str]]] = {
    "all kinds": (TEXT, (CLEAR, APPLIES, UNKNOWN, EMPTY), []),
    "none": (TEXT, (), [NO_CLEAR, NO_APPLIES, NO_UNKNOWN, NO_EMPTY]),
    "clear without objects only": (TEXT, (EMPTY, APPLIES, UNKNOWN), [NO_CLEAR]),
    "nothing that applies": (TEXT, (CLEAR, UNKNOWN, EMPTY), [NO_APPLIES]),
    "nothing unknown": (TEXT, (CLEAR, APPLIES, EMPTY), [NO_UNKNOWN]),
    "no empty cluster": (TEXT, (CLEAR, APPLIES, UNKNOWN), [NO_EMPTY]),
    "of a query": (
        QUERY,
        (case("Clear", prometheus=(0.0,)), case("Applies", prometheus=(1.0,)), case("Unknown")),
        [],
    ),
    "of a query, none": (
        QUERY,
        (),
        [
            "there is no case with an answer of prometheus that expects Clear",
            "there is no case with an answer of prometheus that expects Applies",
            "there is no case that expects Unknown: leave `prometheus` out, or give it no sample",
        ],
    ),
    "of a container, none": (CONTAINER, (), []),
}


@pytest.mark.parametrize(("text", "found", "lacks"), MISSING.values(), ids=MISSING.keys())
def test_which_kinds_of_cases_are_missing(text: str, found: tuple[cases.Case, ...], lacks: list[str]) -> None:
    """Clear, applies, unknown, and an empty cluster; a container's are where its image is made."""
    check = declared_check(kyaml.load(text), file="x")
    assert list(cases.missing_kinds(check, found)) == lacks


@pytest.mark.parametrize(
    ("samples", "expect", "said"),
    [
        pytest.param([1.0], "Applies", "", id="1"),
        pytest.param([0.0], "Clear", "", id="0"),
        pytest.param([], "Unknown", "", id="no sample"),
        pytest.param([1.0, 1.0], "Unknown", "", id="two samples"),
        pytest.param(None, "Unknown", "", id="nobody is asked"),
        pytest.param([2.0], "Applies", "expected Applies, found Unknown", id="2"),
    ],
)
def test_a_query_is_judged_by_what_prometheus_says(samples: list[float] | None, expect: str, said: str) -> None:
    """As it would be in a cluster."""
    asked = case(expect, prometheus=None if samples is None else tuple(samples))
    file = cases.Cases(cases.API_VERSION, cases.KIND, "x", (asked,))
    first = next(iter(cases.evaluate_cases(declared_check(kyaml.load(QUERY), file="x"), file)))
    assert first.problem.startswith(said)
    assert bool(first.problem) == bool(said)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param({}, "Object missing required field `apiVersion`", id="nothing"),
        pytest.param(
            {"apiVersion": "v1", "kind": cases.KIND, "check": "x", "cases": []}, "is not a Pre", id="another version"
        ),
        pytest.param(
            {"apiVersion": cases.API_VERSION, "kind": "Pod", "check": "x", "cases": []},
            "is not a Pre",
            id="another kind",
        ),
        pytest.param(
            {"apiVersion": cases.API_VERSION, "kind": cases.KIND, "check": "x", "cases": [], "more": 1},
            "Object contains unknown field `more`",
            id="a field that none has",
        ),
    ],
)
def test_what_is_no_file_of_cases(document: dict[str, Any], said: str) -> None:
    """The message names the field."""
    with pytest.raises(cases.BadCases, match=f"^{said}"):
        cases.parse(document)
