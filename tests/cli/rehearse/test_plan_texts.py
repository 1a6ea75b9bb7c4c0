"""The plan of a rehearsal as text: what is known about each object, and what was tried."""

from __future__ import annotations

import pytest

from runup.cli.rehearse import plan_text
from runup.cli.rehearse import plan_text as plan_page
from runup.rehearse.decide.rehearsal_outcome import Action, CopyAccount, FieldChange, ObjectChange, Rehearsal, Weight
from runup.release.decide.manifest import Identity

MAP = Identity("", "ConfigMap", "shop", "values")
ASIDE = " (whether it is there already is not known)"


def rehearsal(*changes: ObjectChange, kubernetes: bool = False) -> Rehearsal:
    """One of which nothing but the changes is reported."""
    account = CopyAccount(source="a dump", objects=1, kinds=(("ConfigMap", 1),), left_out=(), requests=0, notes=())
    return Rehearsal(
        account=account, source="5.0.0", target="5.1.0", tasks=3, tried=2, changes=changes, kubernetes=kubernetes
    )


@pytest.mark.parametrize(("known", "aside"), [(True, ""), (False, ASIDE)], ids=["known", "not known"])
def test_whether_an_object_is_there_already(known: bool, aside: str) -> None:
    """It is reported of those alone of which it is not known."""
    lines = plan_text.plan(rehearsal(ObjectChange(identity=MAP, action=Action.DELETE, known=known))).splitlines()
    assert lines[1:] == [f"  - {MAP}{aside}", ""]
    assert ("of 1 it is not known whether they are there" in lines[0]) is not known
    page = str(plan_page.plan_section(rehearsal(ObjectChange(identity=MAP, action=Action.DELETE, known=known))))
    assert ("Whether it is there already is not known." in page) is not known


def test_no_plan_of_a_version_of_kubernetes() -> None:
    """Nothing of it was applied, so a page has no section of it."""
    assert plan_page.plan_section(rehearsal(kubernetes=True)) is None


@pytest.mark.parametrize("weight", Weight)
def test_which_objects_are_named(weight: Weight) -> None:
    """Those of which more changes than metadata; the others are counted, and named where all are asked for."""
    field = FieldChange(path="data.mode", before="fast", after="slow", weight=weight)
    found = rehearsal(ObjectChange(identity=MAP, action=Action.UPDATE, fields=(field,)))
    counted = "  ... and 1 object more: --verbose, or -o json"
    named = f"  ~ {MAP}"
    assert (counted if weight is Weight.METADATA else named) in plan_text.plan(found).splitlines()
    assert named in plan_text.plan(found, whole=True).splitlines()


@pytest.mark.parametrize(
    ("kubernetes", "begins"),
    [
        pytest.param(False, "Tried 2 of 3 objects of the release; stand-ins answered", id="a release"),
        pytest.param(True, "The versions are those of the table of removed APIs;", id="a version of Kubernetes"),
    ],
)
def test_what_was_tried(kubernetes: bool, begins: str) -> None:
    """A table reports a version of Kubernetes, and nothing is applied."""
    assert plan_text.effort_text(rehearsal(kubernetes=kubernetes)).startswith(begins)
