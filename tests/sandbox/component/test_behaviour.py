"""What a component's operator says about itself, by how it is asked to behave."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from runup.sandbox.component import component_process as behaviour
from runup.sandbox.component.component_process import Behaviour, Expected, component_of

JSON = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
BEFORE = "2026-10-02T07:00:11Z"


def condition(kind: str, status: str, **rest: str) -> JSON:
    """One that has been so for long."""
    return {"type": kind, "status": status, "reason": "AsExpected", "lastTransitionTime": BEFORE, **rest}


WELL = (condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False"))


def at(version: str, *conditions: JSON) -> JSON:
    """The status of an operator at `version`."""
    return {"versions": [{"name": "operator", "version": version}], "conditions": list(conditions or WELL)}


def operator_status(now: JSON, kind: str, *, running_s: float = 60.0, ready: bool = True) -> JSON | None:
    """What an operator of 5.1.0 makes of it."""
    expected = Expected("5.1.0", behaviour=behaviour.parse(kind))
    return behaviour.status(now, expected, running_s=running_s, operand_ready=ready, at=NOW)


def short(found: JSON | None) -> tuple[str, str, str, str] | None:
    """Version, Available, Progressing and Degraded."""
    if found is None:
        return None
    states = {each["type"]: each["status"] for each in found["conditions"]}
    version = found["versions"][0]["version"] if found["versions"] else ""
    return (version, states["Available"], states["Progressing"], states["Degraded"])


@pytest.mark.parametrize(
    ("now", "kind", "seconds", "ready", "expected"),
    [
        pytest.param(at("5.1.0"), "well", 0, False, None, id="who is there already says nothing"),
        pytest.param(at("5.0.0"), "well", 60, True, ("5.1.0", "True", "False", "False"), id="an update"),
        pytest.param(at("5.0.0"), "well", 60, False, ("5.0.0", "True", "True", "False"), id="its operand is not ready"),
        pytest.param(at("5.0.0"), "well", 0, True, ("5.0.0", "True", "True", "False"), id="it has just been started"),
        pytest.param({}, "well", 60, True, ("5.1.0", "True", "False", "False"), id="a new object has no status"),
        pytest.param({}, "well", 60, False, ("", "False", "True", "False"), id="a new one whose operand is not ready"),
        pytest.param(at("5.0.0"), "slow:90", 60, True, ("5.0.0", "True", "True", "False"), id="a slow one after 60 s"),
        pytest.param(at("5.0.0"), "slow:90", 90, True, ("5.1.0", "True", "False", "False"), id="a slow one after 90 s"),
        pytest.param(at("5.0.0"), "stuck", 9e9, True, ("5.0.0", "True", "True", "False"), id="a stuck one never"),
        pytest.param(
            at("5.0.0"), "degraded", 60, True, ("5.1.0", "True", "False", "True"), id="a degraded one is there"
        ),
        pytest.param(
            at("5.0.0", WELL[0], WELL[1], condition("Degraded", "True", reason="OperandFailing")),
            "well",
            60,
            True,
            ("5.1.0", "True", "False", "False"),
            id="a mended one is well again",
        ),
    ],
)
def test_what_it_says(
    now: JSON, kind: str, seconds: float, ready: bool, expected: tuple[str, str, str, str] | None
) -> None:
    """Its version, and the three conditions that an update waits for."""
    assert short(operator_status(now, kind, running_s=seconds, ready=ready)) == expected


@pytest.mark.parametrize("kind", ["well", "stuck", "degraded"])
def test_what_was_said_is_not_said_again(kind: str) -> None:
    """Else a component would write for ever."""
    first = operator_status(at("5.0.0"), kind)
    assert first is not None
    assert operator_status(first, kind) is None


def test_what_a_scenario_says_of_an_operator_stays() -> None:
    """Upgradeable is nothing that an update changes, and a condition that keeps its status keeps its time."""
    upgradeable = condition("Upgradeable", "False", reason="InTree", message="3 volumes")
    found = operator_status(at("5.0.0", *WELL, upgradeable), "well")
    assert found is not None
    assert upgradeable in found["conditions"]
    assert WELL[0] in found["conditions"]


def test_a_condition_that_changes_has_its_time() -> None:
    """To the second, as Kubernetes has it."""
    found = operator_status(at("5.0.0"), "stuck")
    assert found is not None
    (progressing,) = (each for each in found["conditions"] if each["type"] == "Progressing")
    assert progressing["lastTransitionTime"] == "2026-11-21T12:00:00Z"
    assert progressing["message"] == "Working towards 5.1.0"


@pytest.mark.parametrize("text", ["wel", "stuck:3", "slow:soon", ""])
def test_an_unknown_behaviour_is_refused(text: str) -> None:
    """By its name."""
    with pytest.raises(ValueError, match=f"behaviour '{text}'"):
        behaviour.parse(text)


def test_arguments_of_a_pod() -> None:
    """Operators with their behaviours, and the version of what one of them runs."""
    arguments = ["--name=kube", "--namespace=ns", "--release=5.1.0", "--operator=a", "--operator=b=slow:3"]
    found = component_of([*arguments, "--operand=a=1.36.1"])
    assert (found.name, found.namespace, found.version) == ("kube", "ns", "5.1.0")
    assert found.operators == (
        ("a", Expected("5.1.0", (("a", "1.36.1"),))),
        ("b", Expected("5.1.0", behaviour=Behaviour("slow", 3.0))),
    )


@pytest.mark.parametrize(
    ("operator", "feature_set", "restricted"),
    [
        ("kube-apiserver", "TechPreviewNoUpgrade", True),
        ("kube-apiserver", "DevPreviewNoUpgrade", True),
        ("kube-apiserver", "", False),
        ("kube-apiserver", "OKD", False),
        ("dns", "TechPreviewNoUpgrade", False),
    ],
)
def test_a_feature_set_that_forbids_minor_updates(operator: str, feature_set: str, *, restricted: bool) -> None:
    """The operator of the API server is not upgradeable then, and stays so: its status is written once."""
    arguments = ["--name=n", "--namespace=ns", "--release=5.1.0", f"--operator={operator}"]
    ((_, expected),) = component_of([*arguments, f"--feature-set={feature_set}"]).operators
    before = at("5.1.0", *WELL, condition("Upgradeable", "True"))
    found = behaviour.status(before, expected, running_s=60.0, operand_ready=True, at=NOW)
    assert (found is not None) is restricted
    if found is not None:
        (upgradeable,) = [each for each in found["conditions"] if each["type"] == "Upgradeable"]
        reason = f"FeatureGates_RestrictedFeatureGates_{feature_set}"
        assert (upgradeable["status"], upgradeable["reason"]) == ("False", reason)
        assert behaviour.status(found, expected, running_s=60.0, operand_ready=True, at=NOW) is None
