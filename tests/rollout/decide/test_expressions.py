"""Health expressions of a policy: true is healthy, and what fails is unknown. Numbers are those of the cases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rollout.observed_cluster import NOW

from kubekit.error_types import InputError
from runup.api.update_policy_v1alpha1 import ExpressionRead, HealthExpression
from runup.rollout.decide.expressions import Listed, compile_expression, errors_of, evaluate_expressions

BACKUPS = ExpressionRead(
    name="backups", group="example.com", version="v1", resource="backups", kind="Backup", fields=("status.phase",)
)
JSON = dict[str, Any]


def expression(text: str = "object.status.phase == 'Completed'", **changes: Any) -> HealthExpression:
    """An expression about each backup."""
    fields: JSON = {"name": "backup", "reads": (BACKUPS,), "for_": "backups", "expression": text}
    return HealthExpression(**fields | {"message": "a backup is not complete"} | changes)


def backup(name: str = "a", **status: str) -> JSON:
    """A backup."""
    return {"metadata": {"name": name}, "status": status}


def found(source: HealthExpression, *objects: JSON, **listed: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The problems and what is unknown with these objects."""
    [read] = compile_expression(source).reads
    health = evaluate_expressions([source], {read: Listed(objects=objects, **listed)}, NOW)
    return health.problems, health.unknown


@pytest.mark.parametrize(
    ("source", "objects", "problem", "unknown"),
    [
        pytest.param(expression(), [backup(phase="Completed")], "", "", id="true is healthy"),
        pytest.param(expression(), [backup(phase="Failed")], "backup: a backup is not complete", "", id="false"),
        pytest.param(
            expression(), [backup(phase="Completed"), backup("b", phase="x")], "a backup is not", "", id="one of two"
        ),
        pytest.param(expression(), [backup()], "", "phase", id="24: an absent field"),
        pytest.param(
            expression("has(object.status.phase) && object.status.phase == 'Completed'"),
            [backup()],
            "a backup is not complete",
            "",
            id="24: an absent field that the expression expects",
        ),
        pytest.param(expression(message=""), [backup(phase="x")], "'Completed' is false", "", id="without a message"),
        pytest.param(expression(), [], "", "found no objects", id="no object is not healthy"),
        pytest.param(expression(optional=True), [], "", "", id="no object is healthy if it is optional"),
        pytest.param(
            expression("backups.exists(b, b.status.phase == 'Completed')", for_=""),
            [backup(phase="x"), backup("b", phase="Completed")],
            "",
            "",
            id="a list",
        ),
        pytest.param(expression("size(backups) > 0", for_=""), [], "", "found no objects", id="an empty list"),
        pytest.param(
            expression("size(backups) == 0 || false", for_=""), [backup()], "is not complete", "", id="precedence"
        ),
    ],
)
def test_expressions(source: HealthExpression, objects: list[JSON], problem: str, unknown: str) -> None:
    """The problem, or why it is not known; never neither of them by accident."""
    problems, unknowns = found(source, *objects)
    assert (bool(problems), bool(unknowns)) == (bool(problem), bool(unknown))
    assert problem in "; ".join(problems)
    assert unknown in "; ".join(unknowns)


@pytest.mark.parametrize(
    ("optional", "listed", "unknown"),
    [
        pytest.param(False, {"problem": "the cluster has no such kind", "absent": True}, True, id="24: no such kind"),
        pytest.param(True, {"problem": "the cluster has no such kind", "absent": True}, False, id="optional kind"),
        pytest.param(True, {"problem": "forbidden"}, True, id="24: forbidden, though optional"),
        pytest.param(True, {"objects": (backup(phase="Completed"),), "problem": "part of it"}, True, id="24: a part"),
    ],
)
def test_24_kinds_that_are_not_known(optional: bool, listed: JSON, unknown: bool) -> None:
    """Only the absence of the kind is excused by `optional`."""
    source = expression(optional=optional)
    [read] = compile_expression(source).reads
    health = evaluate_expressions([source], {read: Listed(**listed)}, NOW)
    assert (health.problems, bool(health.unknown)) == ((), unknown)


def test_24_what_was_not_read_is_unknown() -> None:
    """A kind that a dump does not have is an example."""
    assert evaluate_expressions([expression()], {}, NOW).unknown == ("backup: backups.example.com: it was not read",)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (expression("object.status.phase =="), "spec.gates.health.expressions[backup]: spec.expression:"),
        (expression("'text'"), "spec.expression:"),
        (expression("nothing.status"), "spec.expression:"),
        (expression(for_="others"), "spec.for: 'others' is not one of the reads"),
        (expression(reads=(ExpressionRead(name="a", fields=("b",), kind="Nonsense"),), for_="a"), "is not a kind that"),
        (expression("true) || (true"), "spec.expression:"),
    ],
)
def test_an_invalid_expression(source: HealthExpression, error: str) -> None:
    """The error names the expression and the field, and the gate is unknown."""
    with pytest.raises(InputError) as caught:
        compile_expression(source)
    assert error in caught.value.message
    assert errors_of([source]) == (caught.value.message,)
    assert evaluate_expressions([source], {}, NOW).unknown == (caught.value.message,)
