"""Which release `--to`, `--to-image` and `--to-latest` mean; texts as in `oc adm upgrade`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import cluster

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import InputError
from runup.api.config_v1 import AcceptRisk, ConditionalUpdateRisk, Update
from runup.clusterversion.decide.upgrade_target import (
    Flags,
    Nothing,
    Target,
    check_flags,
    check_guards,
    choose,
    cleared_text,
    guards,
    update_patch,
)

A, B, C = (f"quay.io/ocp/release@sha256:{letter * 64}" for letter in "abc")
MIRRORED_A, MIRRORED_B = (f"registry.local/mirror/release@sha256:{letter * 64}" for letter in "ab")
TAGGED, OTHER_TAG = "quay.io/ocp/release:5.1.0", "quay.io/ocp/release:5.1.1"
HERE = "quay.io/ocp/release@sha256:" + "0" * 64
# Before the cluster's own in the alphabet, where the others are after it.
EARLIER = f"a.example/release@sha256:{'a' * 64}"


def _condition(type_: str, status: str, reason: str = "R", message: str = "M") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _cluster(
    available: Sequence[tuple[str, str]] = (),
    conditional: Sequence[tuple[str, str, str]] = (),
    conditions: Sequence[dict[str, Any]] = (),
    spec: dict[str, Any] | None = None,
    desired: dict[str, str] | None = None,
) -> Any:
    status = {
        "desired": {"version": "5.0.0", "image": HERE, **(desired or {})},
        "availableUpdates": [{"version": version, "image": image} for version, image in available],
        "conditionalUpdates": [
            {
                "release": {"version": version, "image": image},
                "conditions": [_condition("Recommended", recommended, "Risky", "One.\nTwo.")],
            }
            for version, image, recommended in conditional
        ],
        "conditions": [*conditions],
    }
    return cluster({"spec": {"clusterID": "x", **(spec or {})}, "status": status})


def _not_offered(found: Any, *conditions: Condition) -> Any:
    """The cluster with its first conditional update as one that is there for a preflight alone."""
    risk = ConditionalUpdateRisk(name="UpdatePathNotOffered", message="m", url="u", conditions=conditions)
    first, *others = found.status.conditional_updates
    updates = [replace(first, risks=(risk,)), *others]
    return replace(found, status=replace(found.status, conditional_updates=updates))


ACCEPTED = (
    "warning: with --allow-not-recommended you have accepted the risks with 5.2.0 and bypassed Recommended=False "
    "Risky: One.\nTwo.\n"
)
EXPLICIT = (
    "warning: The requested upgrade image is not one of the available updates. You have used --allow-explicit-upgrade "
    "for the update to proceed anyway\n"
)
UNREADABLE = "warning: unable to calculate match for the update target in available {}: invalid reference format\n"

TARGETS: dict[str, tuple[Any, Flags, Any]] = {
    "a version that is offered": (_cluster([("5.1.0", A)]), Flags(to="5.1.0"), Target("5.1.0", A)),
    "an image that is offered": (_cluster([("5.1.0", A)]), Flags(to_image=A), Target("5.1.0", A)),
    "the same digest elsewhere keeps what was typed": (
        _cluster([("5.1.0", A)]),
        Flags(to_image=MIRRORED_A),
        Target("5.1.0", MIRRORED_A),
    ),
    "the latest of what is offered": (
        _cluster([("5.0.9", A), ("5.0.10", B)]),
        Flags(to_latest=True),
        Target("5.0.10", B),
    ),
    "a version that is not recommended, allowed": (
        _cluster([], [("5.2.0", C, "False")]),
        Flags(to="5.2.0", allow_not_recommended=True),
        Target("5.2.0", C, (("err", ACCEPTED),)),
    ),
    "the latest may be one that is not recommended": (
        _cluster([("5.1.0", A)], [("5.2.0", C, "False")]),
        Flags(to_latest=True, allow_not_recommended=True),
        Target("5.2.0", C, (("err", ACCEPTED),)),
    ),
    "an image that no list has, allowed": (
        _cluster([("5.1.0", A)]),
        Flags(to_image=C, allow_explicit_upgrade=True),
        Target("", C, (("err", EXPLICIT),)),
    ),
    "the version that it has": (
        _cluster(),
        Flags(to="5.0.0"),
        Nothing((("out", "info: Cluster is already at version 5.0.0\n"),)),
    ),
    "the latest where nothing is offered": (
        _cluster(),
        Flags(to_latest=True),
        Nothing((("out", "info: Cluster is already at the latest available version 5.0.0\n"),)),
    ),
    "the one that is named, of several": (
        _cluster([("5.0.9", A), ("5.2.0", C), ("5.1.0", B)]),
        Flags(to="5.1.0"),
        Target("5.1.0", B),
    ),
    "the image that is named, of several": (
        _cluster([("5.0.9", A), ("5.2.0", C), ("5.1.0", B)]),
        Flags(to_image=B),
        Target("5.1.0", B),
    ),
    "the digest that is named, of several": (
        _cluster([("5.0.9", A), ("5.2.0", C), ("5.1.0", B)]),
        Flags(to_image=MIRRORED_B),
        Target("5.1.0", MIRRORED_B),
    ),
    "a version below the cluster's": (_cluster([("4.9.0", A)]), Flags(to="4.9.0"), Target("4.9.0", A)),
    "an image before the cluster's": (
        _cluster([("5.1.0", EARLIER)]),
        Flags(to_image=EARLIER),
        Target("5.1.0", EARLIER),
    ),
    "two tags are not the same for want of a digest": (
        _cluster([("5.1.1", OTHER_TAG)]),
        Flags(to_image=TAGGED, force=True, allow_explicit_upgrade=True),
        Target("", TAGGED, (("err", EXPLICIT),)),
    ),
    "an image that is not recommended, by its digest elsewhere": (
        _cluster([("5.1.0", A)], [("5.2.0", C, "False"), ("5.3.0", B, "False")]),
        Flags(to_image=MIRRORED_B, allow_not_recommended=True),
        Target("5.3.0", B, (("err", ACCEPTED.replace("5.2.0", "5.3.0")),)),
    ),
    "lists with images that are none": (
        _cluster([("5.1.0", "no image")], [("5.2.0", "nor this", "False"), ("5.3.0", C, "False")]),
        Flags(to_image=B, allow_explicit_upgrade=True),
        Target(
            "",
            B,
            (
                ("err", UNREADABLE.format("updates")),
                ("err", UNREADABLE.format("conditional updates")),
                ("err", EXPLICIT),
            ),
        ),
    ),
    "the latest is not one that would have to be allowed": (
        _cluster([("5.1.0", A)], [("5.2.0", C, "False")]),
        Flags(to_latest=True),
        Target("5.1.0", A),
    ),
    "the latest is told of alone": (
        _cluster([("5.3.0", A)], [("5.2.0", C, "False")]),
        Flags(to_latest=True, allow_not_recommended=True),
        Target("5.3.0", A),
    ),
    "the image that it has": (
        _cluster(),
        Flags(to_image=HERE),
        Nothing((("out", f"info: Cluster is already at {HERE}\n"),)),
    ),
    "a conditional update that is recommended is not looked at": (
        _cluster([("5.1.0", A)], [("5.2.0", C, "True")]),
        Flags(to="5.1.0", allow_not_recommended=True),
        Target("5.1.0", A),
    ),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets(name: str) -> None:
    """The walk over the lists ends where oc's does."""
    seen, flags, expected = TARGETS[name]
    assert choose(seen, flags) == expected


STALE = _condition("RetrievedUpdates", "False", "RemoteFailed", "no answer")
REFUSED: dict[str, tuple[Any, Flags, str]] = {
    "not recommended": (
        _cluster([], [("5.2.0", C, "Unknown")]),
        Flags(to="5.2.0"),
        "the update 5.2.0 is not one of the recommended updates, but is available as a conditional update. To accept "
        "the Recommended=Unknown risk and to proceed with update use --allow-not-recommended.\n"
        "  Reason: Risky\n  Message: One.\n  Two.\n",
    ),
    "not offered": (
        _cluster([("5.0.2", A), ("5.1.0", B)]),
        Flags(to="5.2.0"),
        "the update is not one of the possible targets: 5.1.0, 5.0.2. specify --to-image to continue with the update.",
    ),
    "an image that is not offered": (
        _cluster([("5.1.0", A)]),
        Flags(to_image=C),
        "the update is not one of the possible targets: 5.1.0. specify --allow-explicit-upgrade to continue with the "
        "update.",
    ),
    "nothing offered": (
        _cluster(),
        Flags(to="5.2.0"),
        "no recommended updates, specify --to-image to continue with the update or wait for new updates to be "
        "available.",
    ),
    "nothing at all": (
        _cluster(),
        Flags(to_latest=True, allow_not_recommended=True),
        "no recommended or conditional updates, specify --to-image to continue with an update or wait for new updates "
        "to be available.",
    ),
    "a flag for images does nothing for a version": (
        _cluster([("5.1.0", A)]),
        Flags(to="5.2.0", allow_explicit_upgrade=True),
        "the update is not one of the possible targets: 5.1.0. specify --to-image to continue with the update.",
    ),
    "not recommended ones are targets where they are allowed": (
        _cluster([("5.1.0", A)], [("5.3.0", C, "False")]),
        Flags(to="5.2.0", allow_not_recommended=True),
        "the update is not one of the possible targets: 5.3.0, 5.1.0. specify --to-image to continue with the update.",
    ),
    "not recommended ones are none where they are not": (
        _cluster([], [("5.3.0", C, "False")]),
        Flags(to="5.2.0"),
        "no recommended updates, specify --to-image to continue with the update or wait for new updates to be "
        "available.",
    ),
    "nothing offered, by lists that are fresh": (
        _cluster([], [], [_condition("RetrievedUpdates", "True")]),
        Flags(to="5.2.0"),
        "no recommended updates, specify --to-image to continue with the update or wait for new updates to be "
        "available.",
    ),
    "whether the lists are stale is not known": (
        _cluster([("5.1.0", A)], [], [_condition("RetrievedUpdates", "Unknown", "Asking", "not yet")]),
        Flags(to_image=C),
        "cannot refresh available updates:\n  Reason: Asking\n  Message: not yet\n\nspecify "
        "--allow-explicit-upgrade to continue with the update.",
    ),
    "one that only a preflight lists": (
        _not_offered(_cluster([("5.1.0", A)], [("5.3.0", C, "Unknown")])),
        Flags(to="5.3.0", allow_not_recommended=True),
        "the update service does not offer 5.3.0, which a preflight checks: `runup preflight explain "
        "UpdatePathNotOffered` says how to reach it. To go there all the same, name its image: "
        f"--to-image={C} --allow-explicit-upgrade",
    ),
    "one of which the update service has said nothing yet": (
        _not_offered(_cluster([("5.1.0", A)], [("5.3.0", C, "Unknown")]), Condition(type="Applies", status="Unknown")),
        Flags(to="5.3.0", allow_not_recommended=True),
        "whether the update service offers 5.3.0, which a preflight checks, is not known: it has not answered yet; try "
        "again in a minute, or see `runup upgrade` for why it does not answer",
    ),
    "one that the update service does not offer": (
        _not_offered(_cluster([("5.1.0", A)], [("5.3.0", C, "False")]), Condition(type="Applies", status="True")),
        Flags(to="5.3.0"),
        "the update service does not offer 5.3.0, which a preflight checks: `runup preflight explain "
        "UpdatePathNotOffered` says how to reach it. To go there all the same, name its image: "
        f"--to-image={C} --allow-explicit-upgrade",
    ),
    "another one than a preflight lists": (
        _not_offered(_cluster([("5.1.0", A)], [("5.3.0", C, "Unknown"), ("5.4.0", B, "False")])),
        Flags(to="5.2.0", allow_not_recommended=True),
        "the update is not one of the possible targets: 5.4.0, 5.1.0. specify --to-image to continue with the update.",
    ),
    "the lists are stale": (
        _cluster([], [], [STALE]),
        Flags(to="5.2.0"),
        "cannot refresh available updates:\n  Reason: RemoteFailed\n  Message: no answer\n\nspecify --to-image to "
        "continue with the update.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_targets_refused(name: str) -> None:
    """Each refusal names the way out."""
    seen, flags, message = REFUSED[name]
    with pytest.raises(InputError) as caught:
        choose(seen, flags)
    assert caught.value.message == message


FLAGS: dict[str, tuple[Flags, str]] = {
    "clear with a target": (Flags(clear=True, to="5.1.0"), "--clear may not be specified with any other flags"),
    "multi-arch with a target": (
        Flags(to_multi_arch=True, to="5.1.0"),
        "--to-multi-arch may not be used with --to, --to-image, or --to-latest",
    ),
    "clear with an image": (Flags(clear=True, to_image=A), "--clear may not be specified with any other flags"),
    "clear with the latest": (Flags(clear=True, to_latest=True), "--clear may not be specified with any other flags"),
    "clear with multi-arch": (
        Flags(clear=True, to_multi_arch=True),
        "--clear may not be specified with any other flags",
    ),
    "multi-arch with an image": (
        Flags(to_multi_arch=True, to_image=A),
        "--to-multi-arch may not be used with --to, --to-image, or --to-latest",
    ),
    "multi-arch with the latest": (
        Flags(to_multi_arch=True, to_latest=True),
        "--to-multi-arch may not be used with --to, --to-image, or --to-latest",
    ),
    "two targets": (Flags(to="5.1.0", to_image=A), "only one of --to or --to-image may be provided"),
    "no version": (
        Flags(to="5.1"),
        "--to must be a semantic version (e.g. 4.0.1 or 4.1.0-nightly-20181104): No Major.Minor.Patch elements found",
    ),
    "no pull spec": (Flags(to_image="a b"), "--to-image must be a valid image pull spec: invalid reference format"),
    "a bare word": (
        Flags(to_image="release:1"),
        "--to-image must be a valid image pull spec: no registry or repository specified",
    ),
    "a version as image": (
        Flags(to_image="4.0.1"),
        "--to-image must be a valid image pull spec: no tag or digest specified",
    ),
    "a tag": (
        Flags(to_image="quay.io/ocp/release:5.1.0"),
        "--to-image must be a by-digest pull spec, unless --force is also set, because release images that are not "
        "accessed via digest cannot be verified by the cluster.  Even when --force is set, using tags is not "
        "recommended, although we continue to allow it for backwards compatibility",
    ),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_refused(name: str) -> None:
    """Contradictions and what cannot be parsed are refused before any connection."""
    flags, message = FLAGS[name]
    with pytest.raises(InputError) as caught:
        check_flags(flags)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(Flags(), id="nothing"),
        pytest.param(Flags(clear=True), id="clear alone"),
        pytest.param(Flags(to_multi_arch=True), id="multi-arch alone"),
        pytest.param(Flags(to_latest=True, force=True), id="the latest"),
        pytest.param(Flags(to="5.1.0"), id="a version"),
        pytest.param(Flags(to_image=A), id="an image"),
        pytest.param(Flags(to_image=A, force=True), id="an image by digest, whatever is waived"),
        pytest.param(Flags(to_image=f"ocp/release@sha256:{'a' * 64}"), id="a repository without a registry"),
        pytest.param(Flags(to_image=f"quay.io/release@sha256:{'a' * 64}"), id="a registry without a namespace"),
    ],
)
def test_flags_that_go(flags: Flags) -> None:
    """Nothing is said about them."""
    assert check_flags(flags) == ()


def test_a_tag_with_force_is_a_warning() -> None:
    """As oc still allows it."""
    said = check_flags(Flags(to_image="quay.io/ocp/release:5.1.0", force=True))
    assert [stream for stream, _ in said] == ["err"]
    assert said[0][1].startswith("warning: Using by-tag pull specs is dangerous, and while we still allow it")


GUARDED = (
    "the cluster version object is invalid, you must correct the invalid state first:\n\n  Reason: R\n  Message: M\n\n"
    'the cluster is experiencing an error reconciling "5.0.0":\n\n  Reason: R\n  Message: M\n\n'
    "the cluster is already upgrading:\n\n  Reason: R\n  Message: M"
)
ALL_BAD = [_condition(type_, "True") for type_ in ("Progressing", "Failing", "Invalid")]


def test_guards_stop_an_update() -> None:
    """Invalid, Failing and Progressing are reported together, and the flag that bypasses them."""
    with pytest.raises(InputError) as caught:
        check_guards(_cluster(conditions=ALL_BAD), allow_with_warnings=False)
    way_out = "If you want to upgrade anyway, use --allow-upgrade-with-warnings."
    assert caught.value.message == f"{GUARDED}\n\n{way_out}"


def test_guards_bypassed() -> None:
    """With the flag the same text is a warning."""
    said = check_guards(_cluster(conditions=ALL_BAD), allow_with_warnings=True)
    assert said == (("err", f"warning: --allow-upgrade-with-warnings is bypassing: {GUARDED}\n"),)


def test_unknown_does_not_guard() -> None:
    """Failing=Unknown does not stop an update."""
    assert check_guards(_cluster(conditions=[_condition("Failing", "Unknown")]), allow_with_warnings=False) == ()


@pytest.mark.parametrize(
    ("desired", "name"),
    [
        pytest.param({"version": ""}, f'"{HERE}"', id="by its image"),
        pytest.param(
            {"version": "", "image": ""},
            '"ClusterVersion status.desired has neither a version nor image; please open a bug"',
            id="by nothing",
        ),
    ],
)
def test_a_cluster_without_a_version_fails_by_another_name(desired: dict[str, str], name: str) -> None:
    """oc's order, and its words for what should not be."""
    seen = _cluster(conditions=[_condition("Failing", "True")], desired=desired)
    assert guards(seen).startswith(f"the cluster is experiencing an error reconciling {name}:\n")


FOUR = {"architecture": "", "version": "5.1.0", "image": A, "force": False}
PATCHES: dict[str, tuple[Update | None, dict[str, Any]]] = {
    "nothing was asked for": (None, FOUR),
    "accepted risks stay": (
        Update(accept_risks=(AcceptRisk(name="A"), AcceptRisk(name="B"))),
        {**FOUR, "acceptRisks": [{"name": "A"}, {"name": "B"}]},
    ),
    "a preflight's mode is dropped": (Update(version="5.1.0", mode="Preflight"), {**FOUR, "mode": None}),
}


@pytest.mark.parametrize("name", PATCHES)
def test_the_patch_of_an_update(name: str) -> None:
    """oc's four keys always; mode is null only where there was one, since older servers do not know the field."""
    desired, update = PATCHES[name]
    assert update_patch(desired, version="5.1.0", image=A) == {"spec": {"desiredUpdate": update}}


@pytest.mark.parametrize(
    ("desired", "text"),
    [
        pytest.param(Update(version="5.0.0"), "Cleared the update field, still at 5.0.0\n", id="same version"),
        pytest.param(Update(version="5.1.0"), "Cancelled requested upgrade to 5.1.0\n", id="other version"),
        pytest.param(Update(image=A), f"Cancelled requested upgrade to {A}\n", id="other image"),
        pytest.param(
            Update(version="5.0.0", image=A), "Cancelled requested upgrade to 5.0.0\n", id="images decide over versions"
        ),
        pytest.param(Update(version="4.9.9"), "Cancelled requested upgrade to 4.9.9\n", id="lower version"),
        pytest.param(Update(image=EARLIER), f"Cancelled requested upgrade to {EARLIER}\n", id="earlier image"),
        pytest.param(
            Update(version="5.1.0", image=HERE), "Cleared the update field, still at 5.0.0\n", id="same image"
        ),
        pytest.param(Update(), "Cancelled requested upgrade to <unknown>\n", id="nothing named"),
    ],
)
def test_what_clear_says(desired: Update, text: str) -> None:
    """Whether the request was what the cluster runs already."""
    assert cleared_text(desired, _cluster()) == text


@pytest.mark.parametrize(
    ("desired", "now", "text"),
    [
        pytest.param(
            Update(image=HERE),
            {"version": ""},
            f"Cleared the update field, still at {HERE}\n",
            id="it has an image only",
        ),
        pytest.param(
            Update(version="5.0.0", image=A),
            {"image": ""},
            "Cleared the update field, still at 5.0.0\n",
            id="versions decide where it has no image",
        ),
        pytest.param(
            Update(image=A), {"version": "", "image": ""}, f"Cancelled requested upgrade to {A}\n", id="it has neither"
        ),
        pytest.param(
            Update(),
            {"version": "", "image": ""},
            "Cancelled requested upgrade to <unknown>\n",
            id="two that are empty",
        ),
    ],
)
def test_what_clear_says_of_a_cluster_of_which_less_is_known(desired: Update, now: dict[str, str], text: str) -> None:
    """A value that one side lacks never compares equal."""
    assert cleared_text(desired, _cluster(desired=now)) == text
