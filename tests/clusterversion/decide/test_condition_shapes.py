"""Every condition of ClusterVersion word for word, as dashboards, runbooks and other programs know them.

The texts are upstream's (docs/reference/upstream.md 6.1, 8.1, 10.2). What applying says is in `test_applying`, a pass
that fails in `test_stuck`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.world import OWN, World, image
from tests.factories import condition

from runup.advice.decide.risks.cluster_state import SourceRisk
from runup.advice.decide.upgradeable import upgradeable
from runup.api.config_v1 import CapabilitiesSpec, CapabilitiesStatus, Update
from runup.clusterversion.decide.applying import enabled_capabilities
from runup.clusterversion.decide.view import View, look

Shape = tuple[str, str, str]
TO_503 = Update(version="5.0.3", image=image("5.0.3"))
NAMED = f'version="5.0.3" image="{image("5.0.3")}"'


def kept() -> World:
    """A cluster whose release is applied and kept."""
    return World.new().applying().settle().worker_completes().settle()


def unsigned() -> World:
    """Asked for a release that nobody signed."""
    world = kept()
    world.trusted = False
    return world.ask(TO_503).settle()


def out_of_reach() -> World:
    """Asked for a release that cannot be fetched."""
    world = kept()
    world.registry = False
    return world.ask(TO_503).settle()


def of_another_version() -> World:
    """Asked for a release by an image that holds another one."""
    return kept().ask(Update(version="5.0.3", image=image("5.1.0"))).settle()


def asked_in_vain(version: str) -> World:
    """Asked for what the preconditions forbid."""
    return kept().ask(Update(version=version, image=image(version))).settle()


def installing() -> World:
    """Before anything was ever applied."""
    return World.new(history=(), conditions=()).applying().settle()


def badly_asked(**spec: str) -> World:
    """A spec with so many fields that nobody can use."""
    world = kept()
    version = world.observed.cluster_version
    changed = with_fields(version.spec, **spec, desired_update=Update(version="x"))
    return world.change(cluster_version=with_fields(version, spec=changed)).settle()


def updating_and_badly_asked() -> World:
    """The request that the update came from is unusable by now."""
    world = kept().ask(TO_503).settle()
    version = world.observed.cluster_version
    changed = with_fields(version.spec, cluster_id="x")
    return world.change(cluster_version=with_fields(version, spec=changed)).settle()


def capable(spec: CapabilitiesSpec | None) -> World:
    """A cluster on which everything was on once."""
    world = kept()
    version = world.observed.cluster_version
    changed = with_fields(version.spec, capabilities=spec)
    return world.change(cluster_version=with_fields(version, spec=changed)).settle()


GIANT = (
    "9.0.0 has a larger major version than the current target 5.0.0 (9 > 5), and only updates within the current major "
    "version are supported."
)
NOBODY = "RetrievedUpdates=True (), so the update from 5.0.0 to 9.0.0 is probably neither recommended nor supported."
BAD_VERSION = 'spec.desiredUpdate.version: Invalid value: "x": must be a semantic version (1.2.3[-...])'
BAD_ID = 'spec.clusterID: Invalid value: "x": must be an RFC4122-variant UUID'
INVALID = "InvalidClusterVersion"


@pytest.mark.parametrize(
    ("make", "type_", "expected"),
    [
        pytest.param(
            kept,
            "ReleaseAccepted",
            ("True", "PayloadLoaded", f'Payload loaded version="5.0.0" image="{OWN}" architecture="amd64"'),
            id="the running release",
        ),
        pytest.param(
            lambda: kept().ask(TO_503).settle(),
            "ReleaseAccepted",
            ("True", "PayloadLoaded", f'Payload loaded {NAMED} architecture="amd64"'),
            id="a release that was asked for and loaded",
        ),
        pytest.param(
            lambda: _after_one_pass(kept().ask(TO_503)),
            "ReleaseAccepted",
            ("Unknown", "RetrievePayload", f"Retrieving and verifying payload {NAMED}"),
            id="on its way",
        ),
        pytest.param(
            unsigned,
            "ReleaseAccepted",
            (
                "False",
                "RetrievePayload",
                f"Retrieving payload failed {NAMED} failure=The update cannot be verified: no signature",
            ),
            id="not signed",
        ),
        pytest.param(
            out_of_reach,
            "ReleaseAccepted",
            ("False", "RetrievePayload", f"Retrieving payload failed {NAMED} failure=no answer"),
            id="not to be had",
        ),
        pytest.param(
            of_another_version,
            "ReleaseAccepted",
            (
                "False",
                "VerifyPayloadVersion",
                f'Verifying payload failed version="5.0.3" image="{image("5.1.0")}" failure='
                "release image version 5.1.0 does not match the expected upstream version 5.0.3",
            ),
            id="another version than was said",
        ),
        pytest.param(
            lambda: asked_in_vain("9.0.0"),
            "ReleaseAccepted",
            (
                "False",
                "PreconditionChecks",
                f'Preconditions failed for payload loaded version="9.0.0" image="{image("9.0.0")}": '
                f'Multiple precondition checks failed:\n* Precondition "ClusterVersionGiantHop" failed because of '
                f'"MajorVersionUpdate": {GIANT}\n* Precondition "ClusterVersionRecommendedUpdate" failed because of '
                f'"UnknownUpdate": {NOBODY}',
            ),
            id="a jump that is too large",
        ),
        pytest.param(
            lambda: installing().ask(TO_503).settle(),
            "ReleaseAccepted",
            (
                "Unknown",
                "Installing",
                "Waiting for the installation of 5.0.0 to complete before the update to 5.0.3 is looked at.",
            ),
            id="an update that is asked for before there is a cluster",
        ),
        pytest.param(
            lambda: installing().ask(TO_503).settle().worker_completes().settle(),
            "ReleaseAccepted",
            ("True", "PayloadLoaded", f'Payload loaded {NAMED} architecture="amd64"'),
            id="the same, once there is one",
        ),
        pytest.param(installing, "Available", ("False", "", ""), id="nothing was ever applied"),
        pytest.param(installing, "Failing", ("False", "", ""), id="an installation that has begun"),
        pytest.param(installing, "Progressing", ("True", "", "Working towards 5.0.0"), id="towards the first release"),
        pytest.param(kept, "Available", ("True", "", "Done applying 5.0.0"), id="all of it, once at least"),
        pytest.param(kept, "Invalid", ("", "", ""), id="a spec that can be used"),
        pytest.param(
            badly_asked,
            "Invalid",
            ("True", INVALID, f"The cluster version is invalid: {BAD_VERSION}"),
            id="one field that cannot be used",
        ),
        pytest.param(
            lambda: badly_asked(cluster_id="x"),
            "Invalid",
            ("True", INVALID, f"The cluster version is invalid:\n* {BAD_ID}\n* {BAD_VERSION}\n"),
            id="two of them",
        ),
        pytest.param(
            badly_asked,
            "Progressing",
            ("False", INVALID, "Stopped at 5.0.0: the cluster version is invalid"),
            id="kept, whatever the spec says",
        ),
        pytest.param(
            updating_and_badly_asked,
            "Progressing",
            ("True", INVALID, "Reconciling 5.0.3: the cluster version is invalid"),
            id="updating, whatever the spec says",
        ),
        pytest.param(
            lambda: capable(None),
            "ImplicitlyEnabledCapabilities",
            ("False", "AsExpected", "Capabilities match configured spec"),
            id="capabilities as asked for",
        ),
        pytest.param(
            lambda: capable(CapabilitiesSpec(baseline_capability_set="v4.18")),
            "ImplicitlyEnabledCapabilities",
            (
                "True",
                "CapabilitiesImplicitlyEnabled",
                "The following capabilities could not be disabled: UpdateStatus",
            ),
            id="one that was on once and is not asked for any more; those that no gate opens are none",
        ),
    ],
)
def test_a_condition_is_told_in_these_words(make: Callable[[], World], type_: str, expected: Shape) -> None:
    """Status, reason, message; three empty texts where the condition is absent."""
    world = make()
    assert (*(world.condition(type_) or ("", "")), world.message(type_)) == expected


def _after_one_pass(world: World) -> World:
    world.step()
    return world


def test_older_names_go() -> None:
    """Conditions that no operator sets any more are removed; conditions of others stay."""
    older = (
        "ImplicitlyEnabled",
        "UpgradeableAdminAckRequired",
        "UpgradeableDeletesInProgress",
        "UpgradeableClusterOperators",
        "UpgradeableClusterVersionOverrides",
        "UpgradeableUpgradeInProgress",
    )
    found = (*(condition(name) for name in older), condition("SomebodyElses"))
    world = World.new(conditions=found).applying().settle()
    left = {each.type for each in world.version.status.conditions}
    assert left.isdisjoint(older)
    assert "SomebodyElses" in left


def test_a_rejected_release_disturbs_nothing() -> None:
    """Only ReleaseAccepted reports it."""
    before, after = kept(), out_of_reach()
    quiet = ("Available", "Failing", "Progressing", "ImplicitlyEnabledCapabilities")
    assert [after.message(name) for name in quiet] == [before.message(name) for name in quiet]
    assert after.version.status.desired == before.version.status.desired
    assert after.version.status.history == before.version.status.history


def test_what_else_is_asked_for_counts_though_the_release_is_refused() -> None:
    """Capabilities of the spec are those of the running release, whatever becomes of the update."""
    world = World.new(capabilities=CapabilitiesStatus()).applying()
    version = world.observed.cluster_version
    few = with_fields(version.spec, capabilities=CapabilitiesSpec(baseline_capability_set="None"))
    world.change(cluster_version=with_fields(version, spec=few)).settle().worker_completes().settle()
    assert world.version.status.capabilities.enabled_capabilities == ()
    world.registry = False
    more = CapabilitiesSpec(baseline_capability_set="None", additional_enabled_capabilities=("Console",))
    version = world.observed.cluster_version
    world.change(cluster_version=with_fields(version, spec=with_fields(version.spec, capabilities=more)))
    world.ask(TO_503).settle()
    assert world.condition("ReleaseAccepted") == ("False", "RetrievePayload")
    assert world.version.status.capabilities.enabled_capabilities == ("Console",)
    progress = world.observed.progress
    assert progress is not None
    assert progress.wanted is not None
    assert (progress.wanted.version, progress.wanted.filters.capabilities) == (
        "5.0.0",
        enabled_capabilities(_view(world)),
    )


def _view(world: World) -> View:
    return look(world.observed, world.now)


def blocks(name: str, message: str = "It says no.") -> SourceRisk:
    """A risk of leaving the minor version."""
    return SourceRisk(name=name, message=message, url="https://example.com/")


@pytest.mark.parametrize(
    ("risks", "expected"),
    [
        pytest.param([], None, id="nothing speaks against it: absent, never True"),
        pytest.param([blocks("AdminAck-x")], ("RiskNameNotCompatibleWithReasonProperty", "It says no."), id="a dash"),
        pytest.param([blocks("Updating")], ("Updating", "It says no."), id="one"),
        pytest.param(
            [blocks("A", "First."), blocks("B", "Second.")],
            (
                "MultipleReasons",
                "Cluster should not be upgraded between minor or major versions for multiple reasons:\n"
                "* First.\n* Second.",
            ),
            id="several",
        ),
    ],
)
def test_whether_the_minor_version_may_be_left(risks: list[SourceRisk], expected: tuple[str, str] | None) -> None:
    """False with the risk."""
    found = upgradeable(risks, None)
    assert (found and (found.reason, found.message)) == expected
    if found is not None:
        assert found.status == "False"
