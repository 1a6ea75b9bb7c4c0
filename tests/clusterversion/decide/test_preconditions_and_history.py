"""Preconditions of an update, one by one, and the pruning of the history."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.factories import NOW, SINCE, cluster_version, condition

from kubekit.api.meta_v1 import Condition, ConditionStatus
from runup.api.config_v1 import ComponentOverride, Release, UpdateHistory
from runup.clusterversion.decide.history import MAX_ENTRIES, begin_entry, prune
from runup.clusterversion.decide.preconditions import Objection, objections, summary
from runup.clusterversion.decide.targets import same_release


def past(*versions: str) -> tuple[UpdateHistory, ...]:
    """Completed entries, newest first."""
    return tuple(
        UpdateHistory(state="Completed", started_time=SINCE, completion_time=SINCE, version=v, image=f"i@{v}")
        for v in versions
    )


@pytest.mark.parametrize(
    ("current", "target", "history", "expected"),
    [
        pytest.param("5.0.0", "5.0.9", (), [], id="patch"),
        pytest.param("5.0.0", "5.1.0", (), [], id="next minor"),
        pytest.param("5.0.0", "5.2.0", (), ["MultipleMinorVersionsUpdate"], id="two minors"),
        pytest.param("4.22.0", "5.0.0", (), [], id="4 to 5.0"),
        pytest.param("4.22.0", "5.1.0", (), ["MajorVersionUpdate"], id="4 to 5.1"),
        pytest.param("5.0.0", "6.0.0", (), ["MajorVersionUpdate"], id="next major"),
        pytest.param("5.0.1", "5.0.0", ("5.0.1", "5.0.0"), [], id="back to the previous patch"),
        pytest.param("5.0.2", "5.0.0", ("5.0.2", "5.0.1"), ["LowDesiredVersion"], id="back to another"),
        pytest.param("5.1.0", "5.0.0", ("5.1.0", "5.0.0"), ["LowDesiredVersion"], id="back over a minor"),
        pytest.param("5.0.1", "5.0.0", ("5.0.1",), ["LowDesiredVersion"], id="back without a previous"),
        pytest.param("5.0.2", "5.0.1", ("5.0.2", "5.0.0"), ["LowDesiredVersion"], id="back to one in between"),
        pytest.param("5.0.0", "4.22.0", (), ["LowDesiredVersion"], id="back over a major"),
        pytest.param("5.0.0", "5.0.0", ("5.0.0", "4.22.0"), [], id="another image of the same version"),
        pytest.param("3.11.0", "4.0.0", (), ["MajorVersionUpdate"], id="3 to 4.0"),
        pytest.param("5.0.0", "five", (), ["InvalidDesiredVersion"], id="no version"),
    ],
)
def test_blocking_objections(current: str, target: str, history: tuple[str, ...], expected: list[str]) -> None:
    """What stops an update, with its reason."""
    version = cluster_version(current, desired=Release(version=current, image=f"i@{current}"), history=past(*history))
    found = objections(version, Release(version=target, image="x"), available=True, recommended=None)
    assert [objection.reason for objection in found if objection.blocking] == expected


@pytest.mark.parametrize(
    ("current", "target", "shown"),
    [
        pytest.param(
            "5.0.0",
            "5.2.0",
            "5.2.0 is more than one minor version beyond the current target 5.0.0 (5.2 > 5.(0+1)), and only updates "
            "within the current minor version or to the next minor version are supported.",
            id="two minors",
        ),
        pytest.param(
            "4.22.0",
            "5.1.0",
            "5.1.0 has a larger major version than the current target 4.22.0 (5 > 4), and only updates within the "
            "current major version or to 5.0 are supported.",
            id="from 4",
        ),
        pytest.param(
            "5.0.0",
            "6.0.0",
            "6.0.0 has a larger major version than the current target 5.0.0 (6 > 5), and only updates within the "
            "current major version are supported.",
            id="from 5",
        ),
        pytest.param(
            "3.11.0",
            "4.0.0",
            "4.0.0 has a larger major version than the current target 3.11.0 (4 > 3), and only updates within the "
            "current major version are supported.",
            id="from 3",
        ),
    ],
)
def test_a_step_that_is_too_large_says_how_far_one_may_go(current: str, target: str, shown: str) -> None:
    """How far it would be, and how far an update may go from there."""
    version = cluster_version(current, desired=Release(version=current, image="i"))
    (found,) = objections(version, Release(version=target, image="x"), available=True, recommended=None)
    assert found.message == shown


@pytest.mark.parametrize(("target", "blocks"), [("5.1.0", True), ("5.0.1", False)])
def test_upgradeable_false_blocks_leaving_the_minor_version_only(target: str, blocks: bool) -> None:
    """With the condition's own reason and message."""
    conditions = (condition("Upgradeable", "False", "Because", "no"),)
    version = cluster_version("5.0.0", conditions=conditions)
    found = objections(version, Release(version=target, image="x"), available=True, recommended=None)
    assert [o.reason for o in found if o.blocking] == (["Because"] if blocks else [])


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("False", "is not recommended:\n\nIt drains."),
        ("Unknown", "is Recommended=Unknown: Slow: It drains."),
        ("True", None),
    ],
)
def test_what_the_risks_say_is_told_and_blocks_nothing(status: ConditionStatus, said: str | None) -> None:
    """With the condition's own reason."""
    version = cluster_version("5.0.0", desired=Release(version="5.0.0", image="i"))
    verdict = condition("Recommended", status, "Slow", "It drains.")
    found = objections(version, Release(version="5.0.9", image="x"), available=False, recommended=verdict)
    expected = [] if said is None else [("Slow", f"Update from 5.0.0 to 5.0.9 {said}", False)]
    assert [(each.reason, each.message, each.blocking) for each in found] == expected


@pytest.mark.parametrize(
    ("channel", "reason", "said"),
    [
        pytest.param("", "NoChannel", "Configured channel is unset, so the recommended status", id="no channel"),
        pytest.param("stable-5.0", "UnknownUpdate", "", id="a channel that does not have it"),
    ],
)
def test_what_nobody_recommends_says_why(channel: str, reason: str, said: str) -> None:
    """And blocks nothing."""
    version = cluster_version("5.0.0", desired=Release(version="5.0.0", image="i"))
    version = replace(version, spec=replace(version.spec, channel=channel))
    (found,) = objections(version, Release(version="5.0.9", image="x"), available=False, recommended=None)
    assert (found.reason, found.blocking) == (reason, False)
    assert said in found.message


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(("5.0.0", "i@sha256:a"), ("5.0.0", "mirror/i@sha256:a"), True, id="from a mirror"),
        pytest.param(("5.0.0", "i@sha256:a"), ("5.0.0", "i@sha256:b"), False, id="another image of the version"),
        pytest.param(("5.0.0", ""), ("5.0.0", "i@sha256:b"), True, id="an image that is not known"),
        pytest.param(("5.0.1", ""), ("5.0.0", ""), False, id="newer"),
        pytest.param(("5.0.0", ""), ("5.0.1", ""), False, id="older"),
    ],
)
def test_which_releases_are_one(one: tuple[str, str], other: tuple[str, str], same: bool) -> None:
    """By version, and by image where both are known."""
    first, second = (Release(version=version, image=image) for version, image in (one, other))
    assert same_release(first, second) is same


def test_a_new_entry_closes_the_one_before() -> None:
    """Its completion is when the next one began; the state stays."""
    first = begin_entry((), Release(version="5.0.0", image="a"), now=SINCE)
    both = begin_entry(first, Release(version="5.0.1", image="b"), now=NOW)
    assert [(e.version, e.state, e.completion_time) for e in both] == [
        ("5.0.1", "Partial", None),
        ("5.0.0", "Partial", NOW),
    ]
    assert begin_entry(both, Release(version="5.0.1", image="b"), now=NOW) == both


@pytest.mark.parametrize(
    ("entry", "release", "expected"),
    [
        pytest.param({"image": "a"}, ("5.0.0", "a"), ("5.0.0", "a"), id="the version was not known"),
        pytest.param({"version": "5.0.0"}, ("5.0.0", "a"), ("5.0.0", "a"), id="the image was not known"),
        pytest.param({"version": "5.0.0", "image": "a"}, ("", "a"), ("5.0.0", "a"), id="the version is not known now"),
    ],
)
def test_an_entry_gets_what_it_lacked(
    entry: dict[str, str], release: tuple[str, str], expected: tuple[str, str]
) -> None:
    """It is the same release, so there is no second entry, and nothing that was known is lost."""
    version, image = release
    before = UpdateHistory(state="Partial", started_time=SINCE, verified=True, accepted_risks="R", **entry)
    [found] = begin_entry((before,), Release(version=version, image=image), now=NOW)
    assert (found.version, found.image) == expected
    assert (found.started_time, found.verified, found.accepted_risks) == (SINCE, True, "R")


def test_a_new_entry_claims_nothing() -> None:
    """No risk was accepted and no signature verified unless somebody says so."""
    [found] = begin_entry((), Release(version="5.0.0", image="a"), now=NOW)
    assert (found.verified, found.accepted_risks, found.state) == (False, "", "Partial")


ONE = 'Precondition "A" failed because of "Because": not now'
TWO = 'Precondition "B" failed because of "Reason": never'
SEVERAL = f"Multiple precondition checks failed:\n* {ONE}\n* {TWO}"


@pytest.mark.parametrize(
    ("number", "was_forced", "expected"),
    [
        pytest.param(1, False, ONE, id="one"),
        pytest.param(1, True, f"Forced through blocking failures: {ONE}", id="one, forced"),
        pytest.param(2, False, SEVERAL, id="several"),
        pytest.param(2, True, f"Forced through blocking failures: {SEVERAL}", id="several, forced"),
    ],
)
def test_what_stands_in_the_way_as_one_text(number: int, was_forced: bool, expected: str) -> None:
    """In cluster-version-operator's words (pkg/payload/precondition)."""
    found = (Objection("A", "Because", "not now"), Objection("B", "Reason", "never"))
    assert summary(found[:number], was_forced=was_forced) == expected


def test_pruning_keeps_the_ends_and_drops_one_of_the_middle() -> None:
    """The oldest and the newest five survive, one entry goes at a time."""
    entries = past(*(f"5.0.{n}" for n in range(MAX_ENTRIES + 1, 0, -1)))
    kept = prune(entries)
    assert len(kept) == MAX_ENTRIES
    assert kept[:5] == entries[:5]
    assert kept[-1] == entries[-1]


def test_a_cluster_whose_version_is_none_is_told_so() -> None:
    """Nothing can be compared, and nothing is blocked."""
    version = cluster_version("five", desired=Release(version="five", image="i"))
    found = objections(version, Release(version="5.0.9", image="x"), available=True, recommended=None)
    assert found == (
        Objection(
            "ClusterVersionGiantHop", "InvalidCurrentVersion", "'five' is not a semantic version", blocking=False
        ),
    )
    [target] = objections(version, Release(version="six", image="x"), available=True, recommended=None)
    assert (target.reason, target.message, target.blocking) == (
        "InvalidDesiredVersion",
        "'six' is not a semantic version",
        True,
    )


@pytest.mark.parametrize(
    ("retrieved", "said"),
    [
        pytest.param((), "No RetrievedUpdates, so the recommended status of updating {} is unknown.", id="not asked"),
        pytest.param(
            (condition("RetrievedUpdates", "True", "Fine"),),
            "RetrievedUpdates=True (Fine), so the update {} is probably neither recommended nor supported.",
            id="asked",
        ),
        pytest.param(
            (condition("RetrievedUpdates", "False", "RemoteFailed"),),
            "RetrievedUpdates=False (RemoteFailed), so the recommended status of updating {} is unknown.",
            id="asked in vain",
        ),
    ],
)
def test_what_is_not_listed_says_whether_anybody_knows(retrieved: tuple[Condition, ...], said: str) -> None:
    """In cluster-version-operator's words (pkg/payload/precondition/clusterversion)."""
    version = cluster_version("5.0.0", conditions=retrieved)
    version = replace(version, spec=replace(version.spec, channel="stable-5.0"))
    (found,) = objections(version, Release(version="5.0.9", image="x"), available=False, recommended=None)
    assert found.message == said.format("from 5.0.0 to 5.0.9")


NOT_NOW = condition("Upgradeable", "False", "Because", "Not now.")
RUNS, RESTS = condition("Progressing", "True"), condition("Progressing", "False")
UNMANAGED = (ComponentOverride(kind="Deployment", name="x", unmanaged=True),)


@pytest.mark.parametrize(
    ("step", "completed", "running", "overrides", "expected"),
    [
        pytest.param(
            ("5.0.0", "5.0.1"),
            ("5.0.0",),
            RESTS,
            UNMANAGED,
            (
                "ClusterVersionOverridesSet",
                # pkg/payload/precondition/clusterversion/upgradeable.go of the Go operator.
                "Retarget from 5.0.0 to 5.0.1 is not blocked by ClusterVersionOverridesSet. But the cluster-version "
                "operator is not managing these resources; they are currently the responsibility of the agent that set "
                "the overrides: Disabling ownership via cluster version overrides prevents upgrades between minor or "
                "major versions. Please remove overrides before requesting a minor or major version update.",
            ),
            id="a patch, with something unmanaged",
        ),
        pytest.param(
            ("5.1.0", "5.1.2"),
            ("~5.1.0", "5.0.0"),
            RUNS,
            (),
            (
                "MinorVersionClusterUpdateInProgress",
                "Retarget to 5.1.2 while a minor version update from 5.0.0 to 5.1.0 is in progress",
            ),
            id="another patch while a minor update runs",
        ),
        pytest.param(
            ("5.0.0", "5.0.2"),
            ("~5.0.0", "4.22.0"),
            RUNS,
            (),
            (
                "MajorVersionClusterUpdateInProgress",
                "Retarget to 5.0.2 while a major version update from 4.22.0 to 5.0.0 is in progress",
            ),
            id="another patch while a major update runs",
        ),
        pytest.param(("5.1.0", "5.1.2"), ("5.1.0", "5.0.0"), RUNS, (), None, id="a patch runs"),
        pytest.param(("5.1.0", "5.1.2"), ("~5.1.0", "5.0.0"), RESTS, (), None, id="nothing runs"),
        pytest.param(("5.1.0", "5.1.2"), ("~5.1.0",), RUNS, (), None, id="nothing was ever completed"),
    ],
)
def test_retargeting_within_a_minor_version(
    step: tuple[str, str],
    completed: tuple[str, ...],
    running: Condition,
    overrides: tuple[ComponentOverride, ...],
    expected: tuple[str, str] | None,
) -> None:
    """Upgradeable=False blocks none of it, and is reported."""
    history = tuple(
        replace(entry, state="Partial" if text.startswith("~") else "Completed", version=text.strip("~"))
        for text, entry in zip(completed, past(*completed), strict=True)
    )
    version = cluster_version(step[0], history=history, conditions=(NOT_NOW, running))
    version = replace(version, spec=replace(version.spec, overrides=overrides))
    found = objections(version, Release(version=step[1], image="x"), available=True, recommended=None)
    assert [(each.reason, each.message) for each in found] == ([expected] if expected else [])
    assert not any(each.blocking for each in found)
