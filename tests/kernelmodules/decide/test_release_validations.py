"""A PreflightValidationOCP: the kernels of its release, its PreflightValidations, and what it says about both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.factories import node
from tests.kernelmodules.decide.validation_world import KERNEL, NOW, entry, module, observed_with, ocp

from kubekit.api import codec
from runup.api.kmm_v1beta1 import ValidatedKernel
from runup.api.kmm_v1beta2 import PreflightValidation
from runup.kernelmodules.decide.module_state import Answer, Answers, Kernels, Observed, ReleaseQuestion
from runup.kernelmodules.decide.reconcile import reconcile
from runup.kernelmodules.decide.toolkit import Flavour, flavour_of, is_real_time
from runup.process.plan import Apply, Delete, PatchStatus, Plan

IMAGE = "registry.example/release@sha256:1"
AMD = ValidatedKernel("amd64", KERNEL, "dtk@sha256:a")
ARM = ValidatedKernel("arm64", "5.14.0-427.50.1.el9_4.aarch64", "dtk@sha256:b")
REAL_TIME = ValidatedKernel("amd64", "5.14.0-427.50.1.el9_4.x86_64+rt", "dtk@sha256:a")
NODES = (
    node("a", architecture="amd64"),
    node("b", architecture="amd64"),
    node("c", architecture="arm64", labels={"gpu": "yes"}),
)


def child(
    name: str = "preflight", *, kernel: str = KERNEL, said: tuple[Any, ...] = (), uid: str = "ocp-uid"
) -> PreflightValidation:
    owner = {"kind": "PreflightValidationOCP", "name": "preflight", "uid": uid, "controller": True}
    condition = {"type": "Validated", "status": "False", "reason": "NotVerified", "observedGeneration": 1}
    document = {
        "metadata": {"name": name, "uid": f"{name}-uid", "generation": 1, "ownerReferences": [owner]},
        "spec": {"kernelVersion": kernel, "dtkImage": "dtk@sha256:a"},
        "status": {"modules": list(said), "observedGeneration": 1, "conditions": [condition]},
    }
    return codec.convert(PreflightValidation, document)


def release(*kernels: ValidatedKernel, problem: str = "", **changes: Any) -> Observed:
    """A PreflightValidationOCP whose release was read."""
    observed = replace(observed_with(**{"validation": None, "ocp": ocp(), **changes}))
    question = ReleaseQuestion(IMAGE, tuple(sorted({flavour_of(each) for each in observed.nodes or ()})))
    return replace(observed, answers=Answers({question: Answer(Kernels(kernels, problem), NOW)}))


def applied(plan: Plan[object]) -> list[tuple[str, str]]:
    return [
        (each.object["metadata"]["name"], each.object["spec"]["kernelVersion"])
        for each in plan.actions
        if isinstance(each, Apply)
    ]


def status(plan: Plan[object]) -> dict[str, Any]:
    [patch] = [each for each in plan.actions if isinstance(each, PatchStatus)]
    return patch.fields


def condition_of(plan: Plan[object]) -> tuple[str, str]:
    [condition] = status(plan)["conditions"]
    return condition["status"], condition["reason"]


def test_the_release_is_read_first() -> None:
    """For the architectures of the nodes."""
    plan = reconcile(observed_with(validation=None, ocp=ocp(spec={"useRTKernel": True}), nodes=NODES), now=NOW)
    assert plan.work == (ReleaseQuestion(IMAGE, (Flavour("amd64", True), Flavour("arm64", True))),)
    assert condition_of(plan) == ("Unknown", "ReadingRelease")


def test_a_release_makes_the_validation_of_its_name() -> None:
    """With kernel, toolkit and push of the release; owned, so that it goes with it."""
    plan = reconcile(release(AMD, ocp=ocp(spec={"pushBuiltImage": True})), now=NOW)
    [made] = [each.object for each in plan.actions if isinstance(each, Apply)]
    assert made["spec"] == {"kernelVersion": KERNEL, "dtkImage": "dtk@sha256:a", "pushBuiltImage": True}
    assert [each["uid"] for each in made["metadata"]["ownerReferences"]] == ["ocp-uid"]


def test_a_release_for_two_architectures_makes_two() -> None:
    """The second is named after its architecture."""
    plan = reconcile(release(AMD, ARM, nodes=NODES), now=NOW)
    assert applied(plan) == [("preflight", KERNEL), ("preflight-arm64", ARM.kernel_version)]


def test_nodes_with_real_time_kernels_have_a_validation_of_their_own() -> None:
    """A Module waits for the kinds of kernel that its nodes run, and for no others."""
    done = {"verificationStatus": "Success", "verificationStage": "Done", "statusReason": "yes"}
    nodes = (
        node("a", architecture="amd64"),
        node("b", architecture="amd64", kernel=f"{KERNEL}+rt", labels={"rt": "yes"}),
    )
    children = {
        "preflight": child(said=(entry("both"), entry("fast"), entry("slow", **done))),
        "preflight-amd64-rt": child(
            "preflight-amd64-rt",
            kernel=REAL_TIME.kernel_version,
            said=(entry("both"), entry("fast", **done), entry("slow")),
        ),
    }
    modules = (module("both"), module("fast", selector={"rt": "yes"}), module("slow", selector={"rt": "no"}))
    slow = node("c", architecture="amd64", labels={"rt": "no"})
    observed = release(AMD, REAL_TIME, nodes=(*nodes, slow), modules=modules)
    assert applied(reconcile(observed, now=NOW)) == [
        ("preflight", KERNEL),
        ("preflight-amd64-rt", REAL_TIME.kernel_version),
    ]
    plan = reconcile(replace(observed, validations=children), now=NOW)
    found = {each["name"]: (each["verificationStatus"], each["statusReason"]) for each in status(plan)["modules"]}
    assert found == {
        "both": ("Failure", "amd64: gone; amd64 real-time: gone"),
        "fast": ("Success", "yes"),
        "slow": ("Success", "yes"),
    }


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("5.14.0-427.50.1.el9_4.x86_64", False),
        ("5.14.0-427.50.1.el9_4.x86_64+rt", True),
        ("4.18.0-305.rt7.72.el8.x86_64", True),
        ("5.14.0-284.rt14.el9.x86_64", True),
        ("6.1.0-rt-amd64", False),
        ("", False),
    ],
)
def test_which_kernels_are_real_time(kernel: str, expected: bool) -> None:
    """By the names that the platform's kernels have."""
    assert is_real_time(kernel) is expected


def test_a_name_does_not_pass_to_another_architecture_by_a_node_that_comes() -> None:
    """The first entry stays first, because its statuses would restart otherwise."""
    known = {"kernels": [codec.to_dict(ARM)], "observedGeneration": 1}
    plan = reconcile(observed_with(validation=None, ocp=ocp(status=known), nodes=NODES), now=NOW)
    assert plan.work == (ReleaseQuestion(IMAGE, (Flavour("arm64"), Flavour("amd64"))),)


def test_an_edited_release_edits_its_validation_and_drops_what_was_said() -> None:
    """The child's status about the old kernel is not shown for the new release."""
    old = child(kernel="5.14.0-1.x86_64", said=(entry(verificationStatus="Success"),))
    plan = reconcile(release(AMD, validations={"preflight": old}), now=NOW)
    assert applied(plan) == [("preflight", KERNEL)]
    assert (condition_of(plan), list(status(plan)["modules"])) == (("Unknown", "InProgress"), [])


def test_what_the_validation_says_is_copied() -> None:
    """Word for word, its times included."""
    plan = reconcile(release(AMD, validations={"preflight": child(said=(entry(),))}), now=NOW)
    assert applied(plan) == []
    assert list(status(plan)["modules"]) == [entry()]
    assert condition_of(plan) == ("False", "NotVerified")


def test_a_module_is_verified_when_it_is_for_every_architecture_of_its_nodes() -> None:
    """A Module on arm64 nodes alone does not wait for amd64."""
    done = {"verificationStatus": "Success", "verificationStage": "Done", "statusReason": "yes"}
    children = {
        "preflight": child(said=(entry("both", **done), entry("gpu"))),
        "preflight-arm64": child(
            "preflight-arm64", kernel=ARM.kernel_version, said=(entry("both"), entry("gpu", **done))
        ),
    }
    modules = (module("both"), module("gpu", selector={"gpu": "yes"}))
    plan = reconcile(release(AMD, ARM, nodes=NODES, validations=children, modules=modules), now=NOW)
    found = {each["name"]: (each["verificationStatus"], each["statusReason"]) for each in status(plan)["modules"]}
    assert found == {"both": ("Failure", "arm64: gone"), "gpu": ("Success", "yes")}


def test_the_only_kernel_of_an_architecture_is_for_all_of_its_nodes() -> None:
    """Also for those that run a real-time kernel now: they will have no other."""
    done = {"verificationStatus": "Success", "verificationStage": "Done", "statusReason": "yes"}
    children = {
        "preflight": child(said=(entry("a"),)),
        "preflight-arm64": child("preflight-arm64", kernel=ARM.kernel_version, said=(entry("a", **done),)),
    }
    nodes = (node("a", architecture="amd64", kernel=f"{KERNEL}+rt"), node("b", architecture="arm64"))
    plan = reconcile(release(AMD, ARM, nodes=nodes, validations=children, modules=(module("a"),)), now=NOW)
    [found] = status(plan)["modules"]
    assert (found["verificationStatus"], found["statusReason"]) == ("Failure", "amd64: gone")


def test_a_validation_that_the_release_does_not_need_any_more_goes() -> None:
    """An architecture that left the cluster."""
    children = {
        "preflight": child(),
        "preflight-arm64": child("preflight-arm64"),
        "other": child("other", uid="another"),
    }
    plan = reconcile(release(AMD, validations=children), now=NOW)
    assert [each.key.name for each in plan.actions if isinstance(each, Delete)] == ["preflight-arm64"]


def test_a_release_that_cannot_be_read_is_told_everywhere() -> None:
    """In the condition, and in every Module's entry, for those who read nothing else; and it is tried again."""
    plan = reconcile(release(problem="failed to get last layer of image", modules=(module(),)), now=NOW)
    [found] = status(plan)["modules"]
    text = f"release image {IMAGE}: failed to get last layer of image"
    assert (found["verificationStatus"], found["verificationStage"], found["statusReason"]) == (
        "Failure",
        "Done",
        text,
    )
    assert (condition_of(plan), status(plan)["conditions"][0]["message"]) == (("False", "ReleaseUnusable"), text)
    assert plan.requeue_after_s == 180.0


def test_a_registry_that_is_away_takes_nothing_back() -> None:
    """The kernels that this very spec's release had before stand."""
    known = {"kernels": [codec.to_dict(AMD)], "observedGeneration": 1}
    observed = release(problem="timeout", ocp=ocp(status=known), validations={"preflight": child(said=(entry(),))})
    assert list(status(reconcile(observed, now=NOW))["modules"]) == [entry()]


def test_a_name_that_is_taken_is_told() -> None:
    """A PreflightValidation that somebody else made is neither changed nor believed."""
    plan = reconcile(release(AMD, validations={"preflight": child(uid="another")}), now=NOW)
    assert applied(plan) == []
    assert "there is a PreflightValidation preflight" in status(plan)["conditions"][0]["message"]


def test_a_kernel_that_is_given_needs_no_release() -> None:
    """The newer operator's fields."""
    given = ocp(spec={"releaseImage": "", "kernelVersion": KERNEL, "dtkImage": "dtk:1"})
    plan = reconcile(observed_with(validation=None, ocp=given), now=NOW)
    assert (applied(plan), plan.work) == ([("preflight", KERNEL)], ())


def test_a_kernel_of_no_known_architecture_has_its_place_as_name() -> None:
    """Nothing else tells it from the first."""
    odd = ValidatedKernel("", "6.1.0-9", "")
    assert applied(reconcile(release(AMD, odd), now=NOW)) == [("preflight", KERNEL), ("preflight-1", "6.1.0-9")]


@pytest.mark.parametrize(
    ("nodes", "spec", "flavours"),
    [
        pytest.param((), {}, (), id="no nodes"),
        pytest.param((), {"useRTKernel": True}, (Flavour("amd64", True),), id="no nodes, and real time wanted"),
        pytest.param(None, {}, (), id="nodes that cannot be listed"),
        pytest.param((node("a", architecture=""),), {}, (), id="a node that does not say"),
        pytest.param(
            (node("a", architecture="arm64"), node("b", architecture="amd64")),
            {},
            (Flavour("amd64"), Flavour("arm64")),
            id="two",
        ),
        pytest.param(
            (node("a", architecture="amd64", kernel="5.14.0-1.el9.x86_64+rt"),),
            {},
            (Flavour("amd64", True),),
            id="a real-time one",
        ),
    ],
)
def test_which_kinds_of_kernels_a_release_is_asked_for(
    nodes: Any, spec: dict[str, Any], flavours: tuple[Flavour, ...]
) -> None:
    """Those of the nodes, in an order that does not change."""
    plan = reconcile(observed_with(validation=None, ocp=ocp(spec=spec), nodes=nodes), now=NOW)
    assert plan.work == (ReleaseQuestion(IMAGE, flavours),)


def changed(found: PreflightValidation, **parts: dict[str, Any]) -> PreflightValidation:
    """The same, with some members of its metadata, spec or status replaced."""
    document = codec.to_dict(found)
    for part, changes in parts.items():
        document[part] = document.get(part, {}) | changes
    return codec.convert(PreflightValidation, document)


@pytest.mark.parametrize(
    ("parts", "writes"),
    [
        pytest.param({}, False, id="it is as it should be"),
        pytest.param({"spec": {"dtkImage": ""}}, False, id="a definition drops the toolkit"),
        pytest.param({"spec": {"dtkImage": "dtk@sha256:z"}}, True, id="another toolkit"),
        pytest.param({"spec": {"dtkImage": "dtk@sha256:0"}}, True, id="an earlier toolkit"),
        pytest.param({"spec": {"pushBuiltImage": True}}, True, id="a push that nobody wants any more"),
        pytest.param({"spec": {"kernelVersion": "6.1.0"}}, True, id="another kernel"),
        pytest.param(
            {"spec": {"kernelVersion": "6.1.0"}, "metadata": {"deletionTimestamp": "2026-11-21T11:00:00Z"}},
            False,
            id="it is being deleted",
        ),
    ],
)
def test_when_a_validation_is_written(parts: dict[str, Any], writes: bool) -> None:
    """Where it is not as the release wants it; one on its way out is recreated once it is gone."""
    plan = reconcile(release(AMD, validations={"preflight": changed(child(), **parts)}), now=NOW)
    assert bool(applied(plan)) is writes


def test_a_validation_on_its_way_out_is_not_removed_again() -> None:
    """Nor one that is somebody's own."""
    leaving = changed(child("old"), metadata={"deletionTimestamp": "2026-11-21T11:00:00Z"})
    plan = reconcile(release(AMD, validations={"preflight": child(), "old": leaving}), now=NOW)
    assert [each for each in plan.actions if isinstance(each, Delete)] == []


@pytest.mark.parametrize(
    ("observed", "shown"),
    [
        pytest.param(1, True, id="of this version of it"),
        pytest.param(0, True, id="of a version that was not seen"),
        pytest.param(2, False, id="of another"),
    ],
)
def test_what_a_validation_said_counts(observed: int, shown: bool) -> None:
    """As long as it is about what is asked now."""
    found = changed(child(said=(entry(),)), status={"observedGeneration": observed})
    assert bool(status(reconcile(release(AMD, validations={"preflight": found}), now=NOW))["modules"]) is shown


def validated(status_: str, reason: str, generation: int = 1) -> dict[str, Any]:
    """What a validation says about itself."""
    said = {"type": "Validated", "status": status_, "reason": reason, "message": "m", "observedGeneration": generation}
    return {"conditions": [said]}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param({"conditions": []}, ("Unknown", "InProgress"), id="nothing yet"),
        pytest.param(validated("False", "NotVerified", 2), ("Unknown", "InProgress"), id="of a later version"),
        pytest.param(validated("False", "NotVerified", 0), ("Unknown", "InProgress"), id="of an earlier version"),
        pytest.param(validated("Unknown", "ModulesUnknown"), ("Unknown", "ModulesUnknown"), id="it cannot tell"),
        pytest.param(validated("Unknown", "InProgress"), ("False", "NotVerified"), id="what is under way is counted"),
        pytest.param(validated("True", "AllVerified"), ("False", "NotVerified"), id="entries count"),
    ],
)
def test_what_is_said_of_a_release(seen: dict[str, Any], expected: tuple[str, str]) -> None:
    """Returns the result of the validations after each has run."""
    found = changed(child(said=(entry(),)), status=seen)
    assert condition_of(reconcile(release(AMD, validations={"preflight": found}), now=NOW)) == expected


def test_a_kernel_that_cannot_be_is_told_without_a_release() -> None:
    """Where there is none that it could be the fault of."""
    bad = ocp(spec={"releaseImage": "", "kernelVersion": "6.1"})
    plan = reconcile(observed_with(validation=None, ocp=bad), now=NOW)
    assert status(plan)["conditions"][0]["message"] == "invalid kernelVersion 6.1"


def test_a_release_that_is_being_deleted_is_left_alone() -> None:
    """Its validations go with it."""
    leaving = ocp(metadata={"deletionTimestamp": "2026-11-21T11:00:00Z"})
    assert not reconcile(release(AMD, ocp=leaving, validations={"old": child("old")}), now=NOW)
