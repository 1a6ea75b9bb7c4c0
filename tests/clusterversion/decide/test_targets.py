"""Which release a request means, at its edges: how far, by which image, and what was meant before."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import Terminal, Waiting
from runup.advice.decide.current_advice import CurrentAdvice
from runup.api.config_v1 import Release, Update
from runup.clusterversion.decide import targets
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.deployment_steps import Trust


def pinned(number: int, registry: str = "r") -> str:
    """An image by digest."""
    return f"{registry}/x@sha256:{number:064x}"


HERE = Release(version="5.0.0", image=pinned(0))
NEXT = Release(version="5.1.0", image=pinned(1), url="https://u")


def meant(update: Update, *known: Release, attempt: Attempt | None = None, **rest: Any) -> Release:
    """The release that a preflight looks at; `known` are reachable."""
    check = rest.pop("check", None)
    advised = CurrentAdvice(reachable=known, **rest)
    releases = {update.image: check} if check else {}
    return targets.preflight_target(update, current=HERE, advised=advised, attempt=attempt, releases=releases)


def refused(update: Update, *known: Release, **rest: Any) -> Terminal | Waiting:
    """Why none."""
    with pytest.raises((Terminal, Waiting)) as caught:
        meant(update, *known, **rest)
    found: Terminal | Waiting = caught.value
    return found


DISTANCES: dict[str, tuple[str, str, bool, str]] = {
    "the next patch": ("5.0.0", "5.0.1", False, ""),
    "two majors": ("5.9.9", "7.0.0", False, ""),
    "three majors": ("5.0.0", "8.0.0", False, "TargetTooFar"),
    "the same": ("5.0.0", "5.0.0", False, "TargetIsCurrent"),
    "the same, in another image": ("5.0.0", "5.0.0", True, ""),
    "a candidate of the same": ("5.0.0", "5.0.0-rc.1", False, "TargetIsDowngrade"),
    "an older one, in another image": ("5.0.0", "4.22.0", True, "TargetIsDowngrade"),
    "from no version": ("five", "5.0.0", False, "InvalidTargetVersion"),
    "to no version": ("5.0.0", "five", False, "InvalidTargetVersion"),
}


@pytest.mark.parametrize(("source", "target", "another", "reason"), DISTANCES.values(), ids=DISTANCES.keys())
def test_how_far_a_target_may_be(source: str, target: str, another: bool, reason: str) -> None:
    """Ahead, and at most two major versions."""
    if not reason:
        targets.check_distance(source, target, another_image=another)
        return
    with pytest.raises(Terminal) as caught:
        targets.check_distance(source, target, another_image=another)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("source", "target", "shown"),
    [
        pytest.param("five", "six", "five or six is not a semantic version", id="both"),
        pytest.param("", "5.0.0", "the current version or 5.0.0 is not a semantic version", id="no source"),
        pytest.param("5.0.0", "", "5.0.0 or the target is not a semantic version", id="no target"),
    ],
)
def test_what_is_no_version_is_named(source: str, target: str, shown: str) -> None:
    """Or said to be missing."""
    with pytest.raises(Terminal) as caught:
        targets.check_distance(source, target, another_image=False)
    assert caught.value.message == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        pytest.param(0, "it knows none from here;", id="none"),
        pytest.param(1, "from here it knows 5.1.1;", id="one"),
        pytest.param(10, "5.1.3, 5.1.2, 5.1.1;", id="as many as are shown"),
        pytest.param(11, "5.1.4, 5.1.3, 5.1.2 and 1 more;", id="one more"),
        pytest.param(13, "5.1.6, 5.1.5, 5.1.4 and 3 more;", id="three more"),
    ],
)
def test_what_could_be_named_instead(count: int, shown: str) -> None:
    """Newest first, ten of them; none that is behind or too far, and each once."""
    known = [Release(version=f"5.1.{number}", image=pinned(number)) for number in range(1, count + 1)]
    others = [
        *(Release(version=version, image=pinned(99)) for version in ("4.9.0", "9.0.0", "five")),
        *known,
        HERE,
    ]
    found = refused(Update(version="5.9.9"), *others)
    assert found.reason == "TargetNotFound"
    assert shown in found.message


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param(None, "no way to version 5.9.9; it", id="nothing is known of the service"),
        pytest.param("True", "no way to version 5.9.9; it", id="it answered"),
        pytest.param(
            "False", "no way to version 5.9.9 (RetrievedUpdates is False: it is away); it", id="it did not answer"
        ),
    ],
)
def test_why_a_version_is_not_found(status: Any, shown: str) -> None:
    """Also that the service may only be away."""
    condition = Condition(type="RetrievedUpdates", status=status, message="it is away") if status else None
    assert shown in refused(Update(version="5.9.9"), condition=condition).message


def test_before_the_service_has_answered_nothing_is_refused() -> None:
    """It is waited for, except for what lies behind in any case."""
    assert isinstance(refused(Update(version="5.9.9"), settled=False), Waiting)
    assert refused(Update(version="4.9.0"), settled=False).reason == "TargetIsDowngrade"
    assert meant(Update(version="5.1.0"), NEXT, settled=False) == NEXT


def test_a_version_of_two_images_is_named_by_neither() -> None:
    """The same image of two registries is one; what has no image is none."""
    twin = Release(version="5.1.0", image=pinned(2))
    mirrored = Release(version="5.1.0", image=pinned(1, "mirror"))
    found = refused(Update(version="5.1.0"), NEXT, twin)
    assert found.reason == "AmbiguousTarget"
    assert f"there are 2 releases of version 5.1.0 ({pinned(1)}, {pinned(2)})" in found.message
    assert meant(Update(version="5.1.0"), NEXT, mirrored).image == mirrored.image
    assert meant(Update(version="5.1.0"), Release(version="5.1.0"), NEXT) == NEXT


def test_an_image_that_is_known_has_its_texts_from_there() -> None:
    """Under the name by which it was asked for; a version next to it has to be its own."""
    asked = pinned(1, "mirror")
    assert meant(Update(image=asked), NEXT) == Release(version="5.1.0", image=asked, url="https://u")
    assert meant(Update(image=asked, version="5.1.0"), NEXT).image == asked
    assert refused(Update(image=asked, version="5.2.0"), NEXT).reason == "VersionMismatch"
    assert refused(Update(image=asked, version="5.0.9"), NEXT).reason == "VersionMismatch"


@pytest.mark.parametrize(
    "image", ["r/x:1", "r/x@sha256:12", f"r/x@sha256:{'0' * 65}", f"r/x@sha256:{'G' * 64}", f"r/x@md5:{'0' * 64}"]
)
def test_an_image_that_could_change_is_refused(image: str) -> None:
    """Only a whole digest names one for good."""
    assert refused(Update(image=image)).reason == "TagNotDigest"


VERIFIED = {"trust": Trust.VERIFIED}
CHECKS: dict[str, tuple[Update, ReleaseCheck | None, str]] = {
    "nobody looked": (Update(), None, "VerifyingImage"),
    "its signature is being verified": (Update(), ReleaseCheck(running=True), "VerifyingImage"),
    "its signature is bad": (Update(), ReleaseCheck(trust=Trust.FAILED, error="no"), "ImageVerificationFailed"),
    "its version is being read": (Update(), ReleaseCheck(**VERIFIED), "ResolvingTarget"),
    "its version is known": (Update(), ReleaseCheck(**VERIFIED, version="5.1.0"), "=5.1.0"),
    "its version is another": (
        Update(version="5.2.0"),
        ReleaseCheck(**VERIFIED, version="5.1.0"),
        "VersionMismatch",
    ),
    "it cannot be read": (Update(), ReleaseCheck(**VERIFIED, unreadable="away"), "TargetUnreadable"),
    "it cannot be read, and a version is stated": (
        Update(version="5.2.0"),
        ReleaseCheck(**VERIFIED, unreadable="away"),
        "=5.2.0",
    ),
    "forced, and nobody looked": (Update(force=True), None, "ResolvingTarget"),
    "forced, its signature is bad, and its version known": (
        Update(force=True),
        ReleaseCheck(trust=Trust.FAILED, version="5.1.0"),
        "=5.1.0",
    ),
}


@pytest.mark.parametrize(("update", "check", "expected"), CHECKS.values(), ids=CHECKS.keys())
def test_an_image_that_no_graph_knows(update: Update, check: ReleaseCheck | None, expected: str) -> None:
    """Nothing of it is read before it is trusted; what the image says about itself counts."""
    asked = Update(version=update.version, image=pinned(7), force=update.force)
    if expected.startswith("="):
        assert meant(asked, check=check).version == expected[1:]
        return
    found = refused(asked, check=check)
    assert found.reason == expected
    assert (getattr(found, "retry_after_s", 60.0)) == 60.0


RUNNING = Attempt(id="preflight-1-0", source_version="5.0.0", target_version="5.1.0", target_image=pinned(5))
ATTEMPTS: dict[str, tuple[Update, Attempt, str]] = {
    "the version that was meant": (Update(version="5.1.0"), RUNNING, pinned(5)),
    "the image that was meant": (Update(image=pinned(5)), RUNNING, pinned(5)),
    "both": (Update(version="5.1.0", image=pinned(5)), RUNNING, pinned(5)),
    "another image": (Update(image=pinned(1)), RUNNING, pinned(1)),
    "that of another source": (
        Update(version="5.1.0"),
        Attempt(id="preflight-1-0", source_version="4.9.0", target_version="5.1.0", target_image=pinned(5)),
        pinned(1),
    ),
    "that of a newer source": (
        Update(version="5.1.0"),
        Attempt(id="preflight-1-0", source_version="5.0.1", target_version="5.1.0", target_image=pinned(5)),
        pinned(1),
    ),
    "that of another version": (
        Update(version="5.1.0"),
        Attempt(id="preflight-1-0", source_version="5.0.0", target_version="5.2.0", target_image=pinned(5)),
        pinned(1),
    ),
}


@pytest.mark.parametrize(("update", "attempt", "image"), ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_graph_that_changes_does_not_move_a_target(update: Update, attempt: Attempt, image: str) -> None:
    """The meaning of a request is fixed when the attempt begins."""
    assert meant(update, NEXT, attempt=attempt).image == image


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        pytest.param(Update(image=pinned(0, "mirror"), version="5.0.0"), "TargetIsCurrent", id="the very image"),
        pytest.param(Update(version="5.0.0"), "TargetIsCurrent", id="its version"),
    ],
)
def test_the_running_release_is_nothing_to_check(update: Update, reason: str) -> None:
    """Wherever its image is kept."""
    assert refused(update, HERE).reason == reason


def test_another_image_of_the_running_version_is_one_to_check() -> None:
    """By digest; what has none cannot be distinguished from it."""
    twin = Release(version="5.0.0", image=pinned(3))
    assert meant(Update(image=pinned(3)), twin) == twin
