"""A PreflightValidationOCP: the kernels of its release, its PreflightValidations, and what it says of both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.domain.kernelmodules.validation_world import KERNEL, NOW, entry, module, node, ocp, world

from runup.api import codec
from runup.api.kmm_v1beta1 import ValidatedKernel
from runup.api.kmm_v1beta2 import PreflightValidation
from runup.domain.kernelmodules.asked import Answer, Answers, Kernels, ReleaseQuestion
from runup.domain.kernelmodules.flavours import Flavour, flavour_of, is_real_time
from runup.domain.kernelmodules.observed import Observed
from runup.domain.kernelmodules.reconcile import reconcile
from runup.domain.plan import Apply, Delete, PatchStatus, Plan

IMAGE = "registry.example/release@sha256:1"
AMD = ValidatedKernel("amd64", KERNEL, "dtk@sha256:a")
ARM = ValidatedKernel("arm64", "5.14.0-427.50.1.el9_4.aarch64", "dtk@sha256:b")
REAL_TIME = ValidatedKernel("amd64", "5.14.0-427.50.1.el9_4.x86_64+rt", "dtk@sha256:a")
NODES = (node("a", "amd64"), node("b", "amd64"), node("c", "arm64", gpu="yes"))


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
    observed = replace(world(**{"validation": None, "ocp": ocp(), **changes}))
    question = ReleaseQuestion(IMAGE, tuple(sorted({flavour_of(each) for each in observed.nodes or ()})))
    return replace(observed, answers=Answers({question: Answer(Kernels(kernels, problem), NOW)}))


def applied(plan: Plan) -> list[tuple[str, str]]:
    return [
        (each.object["metadata"]["name"], each.object["spec"]["kernelVersion"])
        for each in plan.actions
        if isinstance(each, Apply)
    ]


def status(plan: Plan) -> dict[str, Any]:
    [patch] = [each for each in plan.actions if isinstance(each, PatchStatus)]
    return patch.fields


def said(plan: Plan) -> tuple[str, str]:
    [condition] = status(plan)["conditions"]
    return condition["status"], condition["reason"]


def test_the_release_is_read_first() -> None:
    """For the architectures of the nodes."""
    plan = reconcile(world(validation=None, ocp=ocp(spec={"useRTKernel": True}), nodes=NODES), now=NOW)
    assert plan.work == (("ask", ReleaseQuestion(IMAGE, (Flavour("amd64", True), Flavour("arm64", True)))),)
    assert said(plan) == ("Unknown", "ReadingRelease")


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
    done = {"verificationStatus": "True", "verificationStage": "Done", "statusReason": "yes"}
    nodes = (node("a", "amd64"), node("b", "amd64", kernel=f"{KERNEL}+rt", rt="yes"))
    children = {
        "preflight": child(said=(entry("both"), entry("fast"), entry("slow", **done))),
        "preflight-amd64-rt": child(
            "preflight-amd64-rt",
            kernel=REAL_TIME.kernel_version,
            said=(entry("both"), entry("fast", **done), entry("slow")),
        ),
    }
    modules = (module("both"), module("fast", selector={"rt": "yes"}), module("slow", selector={"rt": "no"}))
    slow = node("c", "amd64", rt="no")
    observed = release(AMD, REAL_TIME, nodes=(*nodes, slow), modules=modules)
    assert applied(reconcile(observed, now=NOW)) == [
        ("preflight", KERNEL),
        ("preflight-amd64-rt", REAL_TIME.kernel_version),
    ]
    plan = reconcile(replace(observed, validations=children), now=NOW)
    found = {each["name"]: (each["verificationStatus"], each["statusReason"]) for each in status(plan)["modules"]}
    assert found == {
        "both": ("False", "amd64: gone; amd64 real-time: gone"),
        "fast": ("True", "yes"),
        "slow": ("True", "yes"),
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
    """What was first stays first: its statuses would begin anew otherwise."""
    known = {"kernels": [codec.to_dict(ARM)], "observedGeneration": 1}
    plan = reconcile(world(validation=None, ocp=ocp(status=known), nodes=NODES), now=NOW)
    assert plan.work == (("ask", ReleaseQuestion(IMAGE, (Flavour("arm64"), Flavour("amd64")))),)


def test_an_edited_release_edits_its_validation_and_drops_what_was_said() -> None:
    """What the child says of the old kernel is not shown as the new release's."""
    old = child(kernel="5.14.0-1.x86_64", said=(entry(verificationStatus="True"),))
    plan = reconcile(release(AMD, validations={"preflight": old}), now=NOW)
    assert applied(plan) == [("preflight", KERNEL)]
    assert (said(plan), list(status(plan)["modules"])) == (("Unknown", "InProgress"), [])


def test_what_the_validation_says_is_copied() -> None:
    """Word for word, its times included."""
    plan = reconcile(release(AMD, validations={"preflight": child(said=(entry(),))}), now=NOW)
    assert applied(plan) == []
    assert list(status(plan)["modules"]) == [entry()]
    assert said(plan) == ("False", "NotVerified")


def test_a_module_is_verified_when_it_is_for_every_architecture_of_its_nodes() -> None:
    """A Module on arm64 nodes alone does not wait for amd64."""
    done = {"verificationStatus": "True", "verificationStage": "Done", "statusReason": "yes"}
    children = {
        "preflight": child(said=(entry("both", **done), entry("gpu"))),
        "preflight-arm64": child(
            "preflight-arm64", kernel=ARM.kernel_version, said=(entry("both"), entry("gpu", **done))
        ),
    }
    modules = (module("both"), module("gpu", selector={"gpu": "yes"}))
    plan = reconcile(release(AMD, ARM, nodes=NODES, validations=children, modules=modules), now=NOW)
    found = {each["name"]: (each["verificationStatus"], each["statusReason"]) for each in status(plan)["modules"]}
    assert found == {"both": ("False", "arm64: gone"), "gpu": ("True", "yes")}


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
        "False",
        "Requeued",
        text,
    )
    assert (said(plan), status(plan)["conditions"][0]["message"]) == (("False", "ReleaseUnusable"), text)
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
    plan = reconcile(world(validation=None, ocp=given), now=NOW)
    assert (applied(plan), plan.work) == ([("preflight", KERNEL)], ())
