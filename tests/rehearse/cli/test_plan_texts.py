"""The plan of a rehearsal as text: what is known of each object, and what was tried."""

from __future__ import annotations

import pytest

from runup.rehearse.cli.render import plan_text
from runup.rehearse.decide.rehearsal_outcome import Action, CopyAccount, ObjectChange, Rehearsal
from runup.release.decide.manifest import Identity

MAP = Identity("", "ConfigMap", "shop", "values")
ASIDE = " (whether it is there already is not known)"


def rehearsal(*changes: ObjectChange, kubernetes: bool = False) -> Rehearsal:
    """One of which nothing but the changes is told."""
    account = CopyAccount("a dump", 1, (("ConfigMap", 1),), (), 0, ())
    return Rehearsal(account, "5.0.0", "5.1.0", tasks=3, tried=2, changes=changes, kubernetes=kubernetes)


@pytest.mark.parametrize(("known", "aside"), [(True, ""), (False, ASIDE)], ids=["known", "not known"])
def test_whether_an_object_is_there_already(known: bool, aside: str) -> None:
    """It is told of those alone of which it is not known."""
    lines = plan_text.plan(rehearsal(ObjectChange(MAP, Action.DELETE, known=known))).splitlines()
    assert lines[1:] == [f"  - {MAP}{aside}", ""]
    assert ("of 1 it is not known whether they are there" in lines[0]) is not known


@pytest.mark.parametrize(
    ("kubernetes", "begins"),
    [
        pytest.param(False, "Tried 2 of 3 objects of the release; stand-ins answered", id="a release"),
        pytest.param(True, "The versions are those of the table of removed APIs;", id="a version of Kubernetes"),
    ],
)
def test_what_was_tried(kubernetes: bool, begins: str) -> None:
    """A table tells of a version of Kubernetes, and nothing is applied."""
    assert plan_text.effort(rehearsal(kubernetes=kubernetes)).startswith(begins)
