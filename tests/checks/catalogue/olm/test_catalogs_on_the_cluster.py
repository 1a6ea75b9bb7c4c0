"""Where an operator could go whose Subscription knows nothing newer: what the catalogs on the cluster have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check

CHECK = next(check for check in CHECKS if check.name == "OperatorUpdateFirst")
HEAD = """'[{"type":"olm.maxOpenShiftVersion","value":"5.3"}]'"""
FOUND = "openshift-tracing/tracing: its catalog redhat-operators has tracing.v4.0.1 in channel stable-4"
NOWHERE = "no channel of its catalog redhat-operators ends with a version that runs there"


def messages_of_changed_example(*changes: tuple[str, str]) -> list[str]:
    """What the check says about its example, changed so."""
    text = CHECK.example
    for old, new in changes:
        assert old in text, f"{old!r} is not in the example"
        text = text.replace(old, new)
    snapshot, context = check_page.example(with_fields(CHECK, example=text))
    return [finding.message for finding in run_check(CHECK, snapshot, context).findings]


PLAN = """apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: install-x, namespace: NAMESPACE}
status: {bundleLookups: [{identifier: NAME, properties: 'PROPERTIES'}]}
---
"""
BEGINNING = "\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: logging"
UNTIL = '{"properties":[{"type":"olm.maxOpenShiftVersion","value":"5.3"}]}'
NEWER = "openshift-logging/logging from logging.v5.8.1 to logging.v5.9.0"


def plan(namespace: str, name: str, properties: str) -> tuple[str, str]:
    """The example with an InstallPlan before all else."""
    text = PLAN.replace("NAMESPACE", namespace).replace("NAME", name).replace("PROPERTIES", properties)
    return BEGINNING, f"\n{text}{BEGINNING[1:]}"


def catalog(namespace: str, name: str) -> tuple[str, str]:
    """The example with a CatalogSource before all else."""
    head = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource"
    return BEGINNING, f"\n{head}\nmetadata: {{name: {name}, namespace: {namespace}}}\n---{BEGINNING}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(plan("openshift-logging", "logging.v5.9.0", UNTIL), f"{NEWER}, which runs up to 5.3.", id="until"),
        pytest.param(plan("openshift-logging", "logging.v5.9.0", ""), f"{NEWER}.", id="it says nothing of it"),
        pytest.param(
            plan("openshift-logging", "logging.v5.9.0", "{["),
            NEWER + ", which has properties that are not JSON ('{[').",
            id="it says what cannot be read",
        ),
        pytest.param(plan("shop", "logging.v5.9.0", UNTIL), f"{NEWER}.", id="a plan of another namespace"),
        pytest.param(plan("openshift-logging", "logging.v5.8.1", UNTIL), f"{NEWER}.", id="a plan of another version"),
    ],
)
def test_what_is_known_of_the_version_that_waits(change: tuple[str, str], words: str) -> None:
    """The plan that brings it has its properties."""
    assert words in messages_of_changed_example(change)[0]


def test_an_installed_version_of_which_nothing_can_be_read_is_another_risk() -> None:
    """The check of the maximum reports it; this one reports only the other operator."""
    (only,) = messages_of_changed_example(('"value":"5.0"', '"value":"soon"'))
    assert FOUND in only


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param((), f"{FOUND} (runs up to 5.3).", id="another channel has one"),
        pytest.param(((HEAD, "'[]'"),), f"{FOUND} (names no highest version).", id="one that says nothing of it"),
        pytest.param((("{olm.properties:", "{other:"),), f"{FOUND} (names no highest version).", id="no properties"),
        pytest.param(((HEAD, HEAD.replace("5.3", "5.1")),), NOWHERE, id="it ends before the target"),
        pytest.param(
            ((HEAD, "'[{]'"),), f"{FOUND}, with properties that are not JSON", id="properties that cannot be read"
        ),
        pytest.param((("currentCSV: tracing.v4.0.1", "currentCSV: tracing.v3.4.0"),), NOWHERE, id="the same in both"),
        pytest.param(
            (
                ("catalogSource: redhat-operators", "catalogSource: community-operators"),
                catalog("x", "redhat-operators"),
            ),
            "its catalog redhat-operators has no package tracing",
            id="a namesake in another catalog",
        ),
        pytest.param(
            (
                ("channel: stable-3, source: redhat-operators", "channel: stable-3, source: a, sourceNamespace: b"),
                ("catalogSource: redhat-operators", "catalogSource: a\n  catalogSourceNamespace: c"),
                catalog("b", "a"),
            ),
            "its catalog a has no package tracing",
            id="a catalog of that name in another namespace",
        ),
        pytest.param(
            (
                ("channel: stable-3, source: redhat-operators", "channel: stable-3, source: a, sourceNamespace: b"),
                ("catalogSource: redhat-operators", "catalogSource: a\n  catalogSourceNamespace: c"),
                catalog("c", "a"),
            ),
            "its catalog a is not there",
            id="its catalog is gone, and another namespace has one of that name",
        ),
    ],
)
def test_what_the_catalogs_have(changes: tuple[tuple[str, str], ...], words: str) -> None:
    """Next to the operator whose update waits already."""
    pending, catalogs = messages_of_changed_example(*changes)
    assert "openshift-logging/logging from logging.v5.8.1 to logging.v5.9.0" in pending
    assert words in catalogs


@pytest.mark.parametrize(
    ("changes", "ways"),
    [
        ((), ["Change the Subscription's channel"]),
        (
            (("catalogSource: redhat-operators", "catalogSource: community-operators"),),
            ["Bring the CatalogSource of openshift-tracing/tracing back"],
        ),
    ],
)
def test_the_way_out_is_that_of_what_is_missing(changes: tuple[tuple[str, str], ...], ways: list[str]) -> None:
    """Without its catalog no channel helps."""
    text = CHECK.example
    for old, new in changes:
        text = text.replace(old, new)
    snapshot, context = check_page.example(with_fields(CHECK, example=text))
    (*_, finding) = run_check(CHECK, snapshot, context).findings
    known = ("Change the Subscription's channel", "Bring the CatalogSource of openshift-tracing/tracing back")
    assert [way for way in known if way in finding.remediation] == ways


def test_a_catalog_of_which_perhaps_not_all_were_listed_is_not_gone() -> None:
    """An incomplete list proves no absence."""
    text = CHECK.example.replace("catalogSource: redhat-operators", "catalogSource: community-operators")
    snapshot, context = check_page.example(with_fields(CHECK, example=text))
    catalogs = next(read for read in CHECK.reads if read.kind == "CatalogSource")
    cut = replace(snapshot, incomplete={catalogs: ("the rest was cut off",)})
    shown = [(each.applies.value, each.message) for each in run_check(CHECK, cut, context).findings]
    assert not any("is not there" in message for _, message in shown)
    assert any(applies == "Unknown" and "which catalogs there are is not known" in why for applies, why in shown)
