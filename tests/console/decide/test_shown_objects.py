"""Shows objects as YAML without secret fields; `tests/rules` has the fields."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.preflight.render import samples

from runup.console.decide.shown_objects import (
    HIDDEN,
    MOST_OBJECTS,
    MOST_YAML,
    evidence_of,
    is_secret,
    objects_to_show,
    yaml_of,
)
from runup.preflight.decide.findings import Findings
from runup.report.report import ReportedResource

TOKEN = "s3cr3t-t0k3n"
NODE = ReportedResource(group="", kind="Node", namespace="", name="worker-0")


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **fields}


def test_says_what_is_left_out() -> None:
    """One line says what the placeholder means, only where there is one."""
    assert yaml_of(_object("Pod", spec={"nodeName": "worker-0"})).endswith("  nodeName: worker-0\n")
    shown = yaml_of(_object("Pod", spec={"containers": [{"name": "c", "args": [TOKEN]}]}))
    assert shown.splitlines()[-2:] == [
        f"    args: {HIDDEN}",
        f"# {HIDDEN}: fields that are not known to hold no secrets",
    ]


@pytest.mark.parametrize(
    ("item", "obj", "seen"),
    [
        pytest.param(
            ReportedResource(group="", kind="Secret", namespace="a", name="b"),
            _object("Secret"),
            "never shown",
            id="a Secret",
        ),
        pytest.param(
            ReportedResource(group="", kind="secret", namespace="a", name="b"),
            None,
            "never shown",
            id="however it is written",
        ),
        pytest.param(NODE, _object("Secret", data={"a": TOKEN}), "never shown", id="one that is called otherwise"),
        pytest.param(NODE, None, "not there any more", id="an object that is gone"),
    ],
)
def test_what_has_no_yaml(item: ReportedResource, obj: dict[str, Any] | None, seen: str) -> None:
    """The reason is in its place."""
    evidence = evidence_of(item, samples.FOUND, obj)
    assert evidence.yaml == ""
    assert seen in evidence.why
    assert is_secret(item) == (item.kind.lower() == "secret")


def test_a_long_object_is_cut_and_says_so() -> None:
    """By whole lines; a long text in it is cut by itself."""
    text = yaml_of(_object("Pod", status={"hostIP": ["a" * 100] * 1000, "message": "b" * 100_000, "other": TOKEN}))
    assert len(text) < MOST_YAML + 200
    assert text.rstrip().splitlines()[-1].startswith("# cut: ")
    assert "(5000 characters)" in yaml_of(_object("Pod", status={"message": "b" * 5000}))


def test_an_object_without_end_is_no_fault() -> None:
    """Fields nested deeper than in any real object are hidden."""
    deep: Any = "end"
    for _ in range(200):
        deep = {"a": deep}
    assert HIDDEN in yaml_of(_object("Thing", spec=deep))


def test_which_objects_are_read() -> None:
    """Those of open risks first, each once, and not more than a page may have."""
    many = tuple(
        ReportedResource(group="", kind="Node", namespace="", name=f"n{number}") for number in range(MOST_OBJECTS)
    )
    risks = (
        samples.risk("A", "m", accepted=True, resources=many),
        samples.risk(
            "B", "m", resources=(NODE, NODE, ReportedResource(group="", kind="", namespace="", name="nameless kind"))
        ),
    )
    wanted = objects_to_show(Findings(source="1", target="2", risks=risks))
    assert wanted[0] == NODE
    assert len(wanted) == len(set(wanted)) == MOST_OBJECTS
