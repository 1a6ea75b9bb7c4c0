"""Which offered release a policy chooses, and since when it was offered. The number is that of the case."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rollout.observed_cluster import NOW

from kubekit.api.meta_v1 import Condition
from runup.api.config_v1 import ClusterVersion, ClusterVersionStatus, Release, UpdateHistory
from runup.api.update_policy_v1alpha1 import OfferedRelease, PolicyTarget, UpdatePolicy, UpdatePolicySpec
from runup.rollout.decide.candidate import MAX_OFFERED, choice_of, choose, offered_releases
from runup.rollout.decide.hops import Path

DAY = timedelta(days=1)
RETRIEVED = Condition(type="RetrievedUpdates", status="True", last_transition_time=NOW - DAY)


def image(version: str) -> str:
    """The image of a release."""
    return f"example.com/release@sha256:{version.encode().hex().zfill(64)}"


def cluster(*offered: str, channels: tuple[str, ...] = (), **status: Any) -> ClusterVersion:
    """A cluster on 5.0.3 to which these releases are offered."""
    old = UpdateHistory(state="Completed", started_time=NOW - DAY, version="5.0.3", image=image("5.0.3"))
    fields: dict[str, Any] = {
        "desired": Release(version="5.0.3", image=old.image, channels=channels),
        "history": (old,),
        "available_updates": tuple(Release(version=version, image=image(version)) for version in offered),
        "conditions": (RETRIEVED,),
    }
    return ClusterVersion(status=ClusterVersionStatus(**fields | status))


def seen(**days: float) -> tuple[OfferedRelease, ...]:
    """Releases that have been offered for so many days; `_` is a dot."""
    return tuple(
        OfferedRelease(version=name, image=image(name), first_seen=NOW - days_ * DAY)
        for name, days_ in ((key.strip("v").replace("_", "."), value) for key, value in days.items())
    )


def silent(minutes: int) -> Condition:
    """The condition of an update service that has not answered for so long."""
    return replace(RETRIEVED, status="False", last_transition_time=NOW - timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("target", "found", "offered", "expected"),
    [
        pytest.param({}, cluster("5.0.4", "5.0.10", "5.1.0"), (), "5.0.10", id="the newest patch release"),
        pytest.param({"follow": "Minor"}, cluster("5.0.4", "5.1.0", "5.1.2"), (), "5.1.2", id="the next minor version"),
        pytest.param({}, cluster("5.1.0"), (), "UpToDate", id="nothing is offered"),
        pytest.param({"block_versions": ("5.0.x",)}, cluster("5.0.4"), (), "Blocked", id="blocked"),
        pytest.param(
            {"block_versions": ("5.0.10",)}, cluster("5.0.4", "5.0.10"), (), "5.0.4", id="the newest is blocked"
        ),
        pytest.param({"min_age": "2d"}, cluster("5.0.4"), (), "TooYoung", id="not seen before"),
        pytest.param({"min_age": "2d"}, cluster("5.0.4"), seen(v5_0_4=1.9), "TooYoung", id="too young"),
        pytest.param({"min_age": "2d"}, cluster("5.0.4"), seen(v5_0_4=2), "5.0.4", id="old enough to the second"),
        pytest.param(
            {"min_age": "2d"}, cluster("5.0.4", "5.0.5"), seen(v5_0_4=3, v5_0_5=1), "5.0.4", id="the newest of age"
        ),
        pytest.param(
            {"min_age": "2d"},
            cluster("5.0.4"),
            (replace(seen(v5_0_4=9)[0], image=image("other")),),
            "TooYoung",
            id="19: another image of the same version is new",
        ),
        pytest.param(
            {"follow": "Exact", "version": "5.1.0", "min_age": "2d"},
            cluster("5.1.0"),
            (),
            "TooYoung",
            id="named, young",
        ),
        pytest.param(
            {"follow": "Exact", "version": "5.1.0", "min_age": "2d", "image": image("5.1.0")},
            cluster(),
            (),
            "5.1.0",
            id="a named image has no age",
        ),
        pytest.param({"follow": "Minor", "behind": 1}, cluster("5.1.0"), (), "UpToDate", id="the newest minor version"),
        pytest.param({"follow": "Minor", "behind": 1}, cluster("5.1.0", "5.2.0"), (), "5.1.0", id="one behind"),
        pytest.param(
            {"follow": "Minor", "behind": 1}, cluster("5.1.0", channels=("stable-5.2",)), (), "5.1.0", id="by a channel"
        ),
        pytest.param(
            {"follow": "Minor", "behind": 2},
            cluster("5.1.0", channels=("stable-5.2", "x", "")),
            (),
            "UpToDate",
            id="two",
        ),
        pytest.param({"behind": 2}, cluster("5.0.4"), (), "5.0.4", id="patch releases are not held back"),
        pytest.param(
            {}, cluster("5.0.4", conditions=()), (), "GraphNotAnswering", id="the update service does not answer"
        ),
        pytest.param({}, cluster("5.0.4", conditions=(silent(59),)), (), "5.0.4", id="it answered 59 minutes ago"),
        pytest.param(
            {},
            cluster("5.0.4", conditions=(silent(61),)),
            (),
            "GraphNotAnswering",
            id="it has not answered for an hour",
        ),
        pytest.param({"follow": "Exact", "version": "five"}, cluster("5.0.4"), (), "NoPath", id="no version"),
    ],
)
def test_the_chosen_release(
    target: dict[str, Any], found: ClusterVersion, offered: tuple[OfferedRelease, ...], expected: str
) -> None:
    """The version, or the reason why none is chosen."""
    choice = choose(PolicyTarget(**target), found, NOW, offered)
    assert (choice.candidate.version if choice.candidate else choice.reason) == expected


@pytest.mark.parametrize(("unknown", "reason"), [(True, "GraphNotAnswering"), (False, "NoPath")])
def test_26_a_path_that_is_not_known(unknown: bool, reason: str) -> None:
    """A graph that does not answer is not a graph without a path."""
    choice = choice_of(Path(problem="m", unknown=unknown))
    assert (choice.candidate, choice.reason, choice.unknown) == (None, reason, unknown)


def test_a_young_release_says_from_when_on_it_counts() -> None:
    """The message has the time of the release that is old enough first."""
    choice = choose(PolicyTarget(min_age="2d"), cluster("5.0.4", "5.0.5"), NOW, seen(v5_0_4=1))
    assert choice.message == "5.0.4 must be offered until 2027-02-03T22:00:00Z before an update to it starts."


def policy(*offered: OfferedRelease, **target: Any) -> UpdatePolicy:
    """A policy with this status."""
    made = UpdatePolicy(spec=UpdatePolicySpec(target=PolicyTarget(**target)))
    return replace(made, status=replace(made.status, offered=offered))


def test_29_offered_releases() -> None:
    """The first time stays while a release is offered, and begins again after it was withdrawn."""
    before = policy(*seen(v5_0_4=3, v5_0_5=2))
    assert offered_releases(before, cluster("5.0.4", "5.1.0"), NOW) == seen(v5_0_4=3)
    assert offered_releases(policy(), cluster("5.0.4"), NOW) == seen(v5_0_4=0)
    assert offered_releases(before, cluster(conditions=()), NOW) == before.status.offered


def test_58_offered_releases_are_bounded() -> None:
    """The newest releases are recorded."""
    many = [f"5.0.{number}" for number in range(4, 104)]
    recorded = offered_releases(policy(), cluster(*many), NOW)
    assert (len(recorded), recorded[0].version) == (MAX_OFFERED, "5.0.103")
