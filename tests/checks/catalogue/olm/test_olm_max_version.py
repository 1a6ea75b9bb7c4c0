"""The highest version of OpenShift that an operator takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubekit.lang.version import Version
from runup.checks.catalogue.olm.shared.installed_operators import BadMaximum, max_openshift_version, maximum_allows


def properties(*values: Any) -> str:
    """What OLM writes on what it installs."""
    said = [{"type": "olm.package", "value": "x"}, *({"type": "olm.maxOpenShiftVersion", "value": v} for v in values)]
    return json.dumps({"properties": said})


@pytest.mark.parametrize(
    ("text", "highest"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param(properties(), None, id="no highest"),
        pytest.param(properties(""), None, id="an empty one"),
        pytest.param(properties("5.1"), (5, 1), id="one"),
        pytest.param(properties("v5.1"), (5, 1), id="with a letter"),
        pytest.param(properties("5"), (5, 0), id="a major version"),
        pytest.param(properties(" 5.1.7-rc.1+build "), (5, 1), id="a whole version"),
        pytest.param(properties("5.9", "5.10"), (5, 10), id="the higher of two"),
        pytest.param(properties("6.0", "5.10"), (6, 0), id="the higher major of two"),
    ],
)
def test_the_highest_version_that_an_operator_takes(text: str, highest: tuple[int, int] | None) -> None:
    """As OLM reads it."""
    assert max_openshift_version(text) == highest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(properties(5.1), "olm.maxOpenShiftVersion '5.1', which is not a version in quotes", id="a number"),
        pytest.param(properties("soon"), "olm.maxOpenShiftVersion 'soon', which", id="a word"),
        pytest.param(properties("5.1", "soon"), "olm.maxOpenShiftVersion 'soon', which", id="one of two"),
        pytest.param(properties("x" * 61), f"olm.maxOpenShiftVersion '{'x' * 60}', which", id="as much as is told"),
        pytest.param("[" * 9000, f"properties that are not JSON ('{'[' * 60}')", id="brackets without end"),
        pytest.param("[" * 61, f"properties that are not JSON ('{'[' * 60}')", id="no JSON"),
    ],
)
def test_a_highest_version_that_is_none(text: str, said: str) -> None:
    """Not taken for any; as much is reported as says which one it is."""
    with pytest.raises(BadMaximum) as caught:
        max_openshift_version(text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("highest", "takes"),
    [
        (None, True),
        ((5, 1), False),
        ((5, 2), True),
        ((5, 3), True),
        ((4, 22), False),
        ((6, 0), True),
    ],
)
def test_whether_an_operator_takes_the_target(highest: tuple[int, int] | None, takes: bool) -> None:
    """Up to its highest, that included."""
    assert maximum_allows(highest, Version("5.2.7")) is takes
