"""Which release is worked towards: the operator's own, an accepted update's, or the one that was applied before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import SINCE

from runup.api.config_v1 import ClusterVersionStatus, Release, Update, UpdateHistory
from runup.clusterversion.decide.targets import asks_for, goal, is_update_under_way
from runup.clusterversion.decide.update_request import Nothing, PreflightRequest, Request, UpdateRequest

HERE = Release(version="5.0.0", image="r/x@sha256:0", architecture="Multi", url="https://u", channels=("c",))
THERE = Release(version="5.1.0", image="r/x@sha256:1")
TWIN = Release(version="5.0.0", image="r/x@sha256:9")
NONE = Nothing()


def entry(release: Release, state: Any = "Completed") -> UpdateHistory:
    """An entry of history."""
    return UpdateHistory(state=state, started_time=SINCE, version=release.version, image=release.image)


def status(desired: Release, *history: UpdateHistory) -> ClusterVersionStatus:
    """A status of that history, newest first."""
    return ClusterVersionStatus(desired=desired, history=history)


TO_THERE = status(THERE, entry(THERE, "Partial"), entry(HERE))
TO_TWIN = status(TWIN, entry(TWIN, "Partial"), entry(HERE))
UNDER_WAY: dict[str, tuple[ClusterVersionStatus, bool]] = {
    "an update": (TO_THERE, True),
    "one that is complete": (status(THERE, entry(THERE), entry(HERE)), False),
    "no history": (status(THERE), False),
    "nothing desired": (status(Release(), entry(THERE, "Partial")), False),
    "another is desired than is the newest": (status(THERE, entry(HERE, "Partial")), False),
    "an older one is desired than is the newest": (
        status(Release(version="4.9.0"), entry(HERE, "Partial")),
        False,
    ),
    "the installation": (status(HERE, entry(HERE, "Partial")), False),
    "the other image of this version": (TO_TWIN, True),
    "the other image, of a cluster that never was at this one": (status(TWIN, entry(TWIN, "Partial")), False),
    "this image, that it comes from": (status(HERE, entry(HERE, "Partial"), entry(HERE)), False),
    "the other image is desired, and the newest is this one": (
        status(TWIN, entry(HERE, "Partial"), entry(HERE)),
        False,
    ),
}


@pytest.mark.parametrize(("found", "expected"), UNDER_WAY.values(), ids=UNDER_WAY.keys())
def test_whether_an_update_is_under_way(found: ClusterVersionStatus, expected: bool) -> None:
    """As the status remembers it."""
    assert is_update_under_way(found, HERE) is expected


def to(version: str = "", image: str = "") -> Request:
    """A request for an update."""
    return UpdateRequest(Update(version=version, image=image))


OWN_BY_IMAGE = to("5.0.0", "mirror/x@sha256:0")
TAKEN_BACK: dict[str, tuple[ClusterVersionStatus, Request, str]] = {
    "it is asked for": (TO_THERE, to("5.1.0"), "5.1.0"),
    "its request was removed": (TO_THERE, NONE, "5.1.0"),
    "this release is asked for": (TO_THERE, to("5.0.0"), "5.0.0"),
    "this release is asked for by its image": (TO_THERE, OWN_BY_IMAGE, "5.0.0"),
    "another release is asked for": (TO_THERE, to("5.2.0"), "5.1.0"),
    "a preflight is asked for": (TO_THERE, PreflightRequest(Update(version="5.0.0")), "5.1.0"),
}


@pytest.mark.parametrize(("found", "request_", "expected"), TAKEN_BACK.values(), ids=TAKEN_BACK.keys())
def test_what_takes_an_update_back(found: ClusterVersionStatus, request_: Request, expected: str) -> None:
    """A separate request, and nothing else."""
    assert goal(request_, found, HERE).version == expected


@pytest.mark.parametrize(
    ("request_", "image"),
    [
        pytest.param(to("5.0.0"), TWIN.image, id="a version says nothing of two images"),
        pytest.param(OWN_BY_IMAGE, HERE.image, id="an image does"),
    ],
)
def test_which_image_of_one_version_is_meant(request_: Request, image: str) -> None:
    """Only an image determines the release."""
    assert goal(request_, TO_TWIN, HERE).image == image


BEFORE = status(THERE, entry(THERE), entry(HERE))
NEVER_HERE = status(THERE, entry(THERE))
APPLIED: dict[str, tuple[ClusterVersionStatus, Request, str | None, str]] = {
    "nothing is applied: its own": (BEFORE, NONE, None, "5.0.0"),
    "what was applied to the end stays": (BEFORE, NONE, "", "5.1.0"),
    "it applies that one already": (NEVER_HERE, to("5.0.0"), THERE.image, "5.1.0"),
    "its own is asked for": (BEFORE, to("5.0.0"), "", "5.0.0"),
    "another is asked for": (BEFORE, to("5.2.0"), "", "5.1.0"),
    "a preflight of its own is asked for": (BEFORE, PreflightRequest(Update(version="5.0.0")), "", "5.1.0"),
    "the cluster was never at its own": (NEVER_HERE, NONE, "", "5.0.0"),
    "its own is desired": (status(HERE, entry(HERE)), NONE, "", "5.0.0"),
    "nothing is desired": (status(Release()), NONE, "", "5.0.0"),
}


@pytest.mark.parametrize(("found", "request_", "applied", "expected"), APPLIED.values(), ids=APPLIED.keys())
def test_where_an_operator_of_another_release_goes(
    found: ClusterVersionStatus, request_: Request, applied: str | None, expected: str
) -> None:
    """An operator of 5.0.0 on a cluster at 5.1.0: moving has to be asked for."""
    assert goal(request_, found, HERE, applied=applied).version == expected


def test_what_is_not_told_of_a_release_is_filled_in() -> None:
    """A request changes all fields of its own release, but only the architecture of another."""
    bare = Release(version="5.0.0", image="mirror/x@sha256:0")
    assert goal(NONE, status(bare, entry(bare)), HERE) == Release(
        version="5.0.0", image="mirror/x@sha256:0", architecture="Multi", url="https://u", channels=("c",)
    )
    assert goal(NONE, TO_THERE, HERE) == Release(version="5.1.0", image=THERE.image, architecture="Multi")


@pytest.mark.parametrize("applied", [None, ""])
def test_another_image_of_its_own_version(applied: str | None) -> None:
    """Where nothing is applied the version decides; where something is, it is another release."""
    found = status(TWIN, entry(HERE))
    expected = TWIN.image if applied is None else HERE.image
    request = NONE if applied is None else OWN_BY_IMAGE
    assert goal(request, found, HERE, applied=applied).image == expected


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        pytest.param(Update(version="5.0.0"), True, id="by version"),
        pytest.param(Update(version="5.0.0+build"), True, id="by version, of a build"),
        pytest.param(Update(version="5.0.1"), False, id="by a newer version"),
        pytest.param(Update(version="4.9.0"), False, id="by an older version"),
        pytest.param(Update(version="five"), False, id="by no version"),
        pytest.param(Update(), False, id="by nothing"),
        pytest.param(Update(version="9.9.9", image="mirror/x@sha256:0"), True, id="by image, whatever the version"),
        pytest.param(Update(version="5.0.0", image="r/x@sha256:1"), False, id="by another image, whatever the version"),
    ],
)
def test_whether_an_update_names_a_release(update: Update, expected: bool) -> None:
    """By image where it has one."""
    assert asks_for(update, HERE) is expected


def test_a_release_without_a_version_is_not_named_by_one() -> None:
    """A value that both lack does not compare equal."""
    assert not asks_for(Update(version="five"), Release(version="six"))
