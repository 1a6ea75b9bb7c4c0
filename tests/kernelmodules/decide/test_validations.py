"""One PreflightValidation over time: what is final, what is tried again, what goes, and what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.factories import node
from tests.kernelmodules.decide.validation_world import (
    BUILD,
    KERNEL,
    NOW,
    Story,
    entry,
    module,
    observed_with,
    started,
    validation,
)

from kubekit.api.codec import Undecodable
from runup.kernelmodules.decide.module_state import BuildInputs, Image, ImageQuestion
from runup.kernelmodules.decide.reconcile import reconcile
from runup.kernelmodules.decide.runs import Runner, RunState
from runup.process.plan import Delete, Event, PatchStatus

GONE, THERE = Image(verified=False, reason="image i inaccessible or does not exists"), Image(verified=True)
DOCKERFILE = BuildInputs("FROM scratch\n", ("v1",))
DONE = {"verificationStatus": "Success", "verificationStage": "Done", "statusReason": "Verification successful"}


def failed_build() -> Story:
    shown = Story(observed_with(module(build=BUILD))).step()
    return shown.answer(GONE).answer(GONE, DOCKERFILE).run(RunState.FAILED, "no gcc")


def deleted(story: Story) -> list[str]:
    return [each.key.name for each in story.plan.actions if isinstance(each, Delete)]


def test_all_modules_are_asked_about_at_once() -> None:
    """None waits for another's image or build."""
    plan = reconcile(observed_with(*(module(f"m{at}", image=f"r.example/m{at}:1") for at in range(5))), now=NOW)
    assert [question.image for question in plan.work] == [f"r.example/m{at}:1" for at in range(5)]


def test_the_result_of_a_plan_plans_nothing() -> None:
    """A second pass writes nothing, whatever the first one came to."""
    shown = failed_build().step()
    assert shown.plan.actions == ()


def test_a_verified_module_is_not_looked_at_again() -> None:
    """True is final for the Module as it is (docs/reference/upstream.md 11.4), also where nobody knows as which."""
    for generation in (1, 0):
        shown = Story(
            observed_with(module(), validation=validation(entry(**DONE, observedGeneration=generation)))
        ).step()
        assert (shown.plan.work, [each[0] for each in shown.results]) == ((), ["Success"])


def test_an_edited_module_is_looked_at_again() -> None:
    """Until there is an answer, the entry says which generation was looked at before; a second pass writes nothing."""
    edited = module(metadata={"generation": 5})
    shown = Story(observed_with(edited, validation=validation(entry(**DONE)))).step()
    assert shown.results == [("InProgress", "Image", "")]
    assert (len(shown.plan.work), [each.observed_generation for each in shown.entries]) == (1, [1])
    assert shown.step().plan.actions == ()
    shown = shown.answer(Image(verified=True, reason="there"))
    assert shown.results == [("Success", "Done", "there")]
    assert [each.observed_generation for each in shown.entries] == [5]


def test_a_module_made_anew_is_another_one() -> None:
    """The status of an earlier Module of the same name does not count."""
    anew = module(metadata={"creationTimestamp": "2026-11-21T11:59:30Z"})
    shown = Story(observed_with(anew, validation=validation(entry(**DONE)))).step()
    assert shown.results == [("InProgress", "Image", "")]


EDITS: dict[str, dict[str, Any]] = {
    "another kernel": {"kernelVersion": "6.1.0-9.x86_64"},
    "a push that is wanted now": {"pushBuiltImage": True},
}


@pytest.mark.parametrize("spec", EDITS.values(), ids=EDITS.keys())
def test_an_edit_of_the_validation_begins_anew(spec: dict[str, Any]) -> None:
    """The status is about another spec, even for a verified Module."""
    shown = Story(
        observed_with(module(), validation=validation(entry(**DONE), generation=2, observed=1, **spec))
    ).step()
    assert shown.results == [("InProgress", "Image", "")]


def test_a_definition_that_drops_our_field_makes_nothing_old() -> None:
    """Without observedGeneration in the status, what is verified stays verified."""
    shown = Story(observed_with(module(), validation=validation(entry(**DONE), generation=2, observed=0))).step()
    assert [each[0] for each in shown.results] == ["Success"]


def test_a_failed_module_is_tried_again_when_it_changes() -> None:
    """At once, not after three minutes: Modules are watched."""
    shown = Story(observed_with(module(image="r.example/a:1"))).step().answer(GONE)
    shown.edit(module(image="r.example/a:2", metadata={"generation": 2}))
    assert [question.image for question in shown.plan.work] == ["r.example/a:2"]
    assert shown.answer(THERE).results[0][:2] == ("Success", "Done")


def test_a_failed_module_is_tried_again_by_time() -> None:
    """Registries are not watched: after 180 s the same question is open again, and the old answer stands until then."""
    shown = Story(observed_with(module())).step().answer(GONE)
    assert (shown.plan.work, shown.plan.requeue_after_s) == ((), 180.0)
    assert shown.later(180).results == [("Failure", "Done", GONE.reason)]
    assert [question.image for question in shown.plan.work] == ["registry.example/kmod:v1"]
    assert shown.answer(THERE).results[0][:2] == ("Success", "Done")


def test_a_time_moves_only_with_what_is_said() -> None:
    """Three minutes and a second failure of the same kind later, the entry has its old time."""
    shown = Story(observed_with(module())).step().answer(GONE)
    first = shown.entries
    assert shown.later(180).answer(GONE).entries == first


def test_a_failed_build_begins_anew_when_its_dockerfile_changes() -> None:
    """The old run goes, and another is made."""
    shown = failed_build()
    [old] = [run.key.name for run in shown.observed.runs]
    shown.later(180).answer(GONE, BuildInputs("FROM other\n", ("v1",)))
    assert deleted(shown) == [old]
    assert [run["metadata"]["name"] for run in started(shown.plan)] != [old]


def test_a_failed_build_begins_anew_when_a_secret_changes() -> None:
    """A new version of a secret is another run."""
    shown = failed_build()
    shown.later(180).answer(GONE, BuildInputs("FROM scratch\n", ("v2",)))
    assert len(started(shown.plan)) == 1


def test_a_failed_build_stays_while_nothing_changes_and_is_tried_again_after_half_an_hour() -> None:
    """A failure of the moment needs no person."""
    shown = failed_build()
    shown.later(180).answer(GONE, DOCKERFILE)
    assert (deleted(shown), started(shown.plan)) == ([], [])
    shown.later(1700).answer(GONE, DOCKERFILE)
    assert deleted(shown) == [run.key.name for run in shown.observed.runs]


@pytest.mark.parametrize(
    ("seconds", "goes"),
    [pytest.param(1799, False, id="a second before"), pytest.param(1800, True, id="half an hour")],
)
def test_when_a_failed_build_is_tried_again(seconds: int, goes: bool) -> None:
    """Half an hour after its end, to the second; until then the time that is left is what is waited for."""
    shown = failed_build()
    assert shown.later(seconds - 1).answer(GONE, DOCKERFILE).plan.requeue_after_s == pytest.approx(
        min(180, 1800 - (seconds - 1))
    )
    shown.later(1).answer(GONE, DOCKERFILE)
    assert bool(deleted(shown)) is goes


def test_what_was_refused_is_told() -> None:
    """A Job that the API server does not take fails its Module, and only that."""
    shown = Story(observed_with(module(build=BUILD))).step().answer(GONE).answer(GONE, DOCKERFILE)
    [job] = started(shown.plan)
    key = next(each.object["metadata"] for each in shown.plan.actions if getattr(each, "object", None) is job)
    from kubekit.api.meta_v1 import NamespacedName

    shown.observed = replace(
        shown.observed, refused={NamespacedName(key["namespace"], key["name"]): "jobs.batch is forbidden: quota"}
    )
    assert shown.step().results == [
        (
            "Failure",
            "Done",
            f"Failed to verify build for module kmod, kernel version {KERNEL}, error jobs.batch is forbidden: quota",
        )
    ]
    assert started(shown.plan) == []


def test_a_restarted_operator_stops_nothing() -> None:
    """Its answers are lost: what runs continues, and what was said stays until it is known again."""
    shown = Story(observed_with(module(build=BUILD))).step().answer(GONE).answer(GONE, DOCKERFILE).run(RunState.RUNNING)
    before = shown.results
    forgetful = Story(
        observed_with(module(build=BUILD), validation=shown.observed.validation, runs=shown.observed.runs)
    ).step()
    assert (deleted(forgetful), forgetful.results) == ([], before)


def test_entries_of_modules_that_are_gone_go() -> None:
    """Removed and deleting ones; their runs, too."""
    shown = failed_build()
    leaving = module("leaving", metadata={"deletionTimestamp": "2026-11-21T11:59:00Z"})
    shown.edit(leaving)
    assert shown.entries == ()
    assert deleted(shown) == [run.key.name for run in shown.observed.runs]


def test_two_modules_of_one_name_have_an_entry_each() -> None:
    """By namespace and name, in that order."""
    shown = Story(observed_with(module(metadata={"namespace": "b"}), module(metadata={"namespace": "a"}))).step()
    assert [(each.namespace, each.name) for each in shown.entries] == [("a", "kmod"), ("b", "kmod")]


def test_a_module_that_cannot_be_read_is_no_module_that_is_gone() -> None:
    """It has an entry that says what is wrong with it."""
    shown = Story(observed_with(unreadable=(Undecodable("drivers", "odd", "spec.selector: expected object"),))).step()
    expected = "the Module cannot be read: spec.selector: expected object"
    assert shown.results == [("Failure", "Done", expected)]


def test_modules_that_cannot_be_listed_are_not_none() -> None:
    """The status stays, and the condition names the missing input."""
    shown = Story(
        observed_with(validation=validation(entry()), modules=None, modules_problem="modules is forbidden")
    ).step()
    assert shown.observed.validation is not None
    [condition] = shown.observed.validation.status.conditions
    assert (condition.status, condition.reason, len(shown.entries)) == ("Unknown", "ModulesUnknown", 1)
    assert shown.observed.modules is None


def test_a_list_that_may_lack_modules_takes_none_away() -> None:
    """The status of an unlisted Module stays and its run continues, and the result is not "all verified"."""
    shown = failed_build()
    shown.observed = replace(shown.observed, incomplete="only the namespace a was collected", modules=())
    before = shown.entries
    shown.step()
    assert (shown.entries, deleted(shown)) == (before, [])
    assert shown.observed.validation is not None
    assert [each.reason for each in shown.observed.validation.status.conditions] == ["ModulesUnknown"]


def test_nothing_is_built_before_it_is_known_by_what() -> None:
    """Whether the cluster has OpenShift Builds is asked first."""
    shown = Story(observed_with(module(build=BUILD), runner=None)).step().answer(GONE, DOCKERFILE)
    assert started(shown.plan) == []
    shown.observed = replace(shown.observed, runner=Runner.BUILDS)
    shown.step().answer(GONE, DOCKERFILE)
    [build] = started(shown.plan)
    assert (build["kind"], build["spec"]["source"]["dockerfile"], build["spec"]["output"]) == (
        "Build",
        "FROM scratch\n",
        {},
    )


def test_a_validation_that_is_being_deleted_is_left_alone() -> None:
    """The garbage collector has its runs."""
    leaving = validation()
    metadata = with_fields(leaving.metadata, deletion_timestamp=NOW)
    assert not reconcile(observed_with(module(), validation=with_fields(leaving, metadata=metadata)), now=NOW)


ARCHITECTURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "the kernel's own": (KERNEL, ("amd64",)),
    "the kernel's own, of a real-time kernel": ("5.14.0-427.50.1.rt14.el9_4.aarch64+rt", ("arm64",)),
    "the kernel's own, by Debian's name": ("6.1.0-9-amd64", ("amd64",)),
    "those of the nodes that the Module selects": ("6.1.0-9", ("arm64",)),
}


@pytest.mark.parametrize(("kernel", "expected"), ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_an_image_is_looked_at_for_architectures(kernel: str, expected: tuple[str, ...]) -> None:
    """Those on which the kernel will run."""
    nodes = (node("a", architecture="amd64"), node("b", architecture="arm64", labels={"gpu": "yes"}))
    chosen = observed_with(module(selector={"gpu": "yes"}), nodes=nodes, validation=validation(kernelVersion=kernel))
    [question] = reconcile(chosen, now=NOW).work
    assert isinstance(question, ImageQuestion)
    assert question.architectures == expected


def test_a_kernel_of_unknown_architecture_is_not_listed() -> None:
    """The definition lists kernels by architecture, and refuses a status that has one without."""
    shown = Story(observed_with(module(), validation=validation(kernelVersion="6.1.0-9"))).step()
    assert shown.observed.validation is not None
    assert shown.observed.validation.status.kernels == ()


def test_thousand_long_reasons_fit_into_one_object() -> None:
    """Every Module keeps its entry; only reasons get shorter."""
    modules = [module(f"m{at}") for at in range(1500)]
    shown = Story(observed_with(*modules)).step().answer(Image(verified=False, reason="x<" * 3000))
    [patch] = [each for each in shown.plan.actions if isinstance(each, PatchStatus)]
    assert len(shown.entries) == 1500
    assert len(str(patch.fields)) < 1_400_000


def test_events_tell_what_changed_and_no_more_than_anybody_reads() -> None:
    """Verified, failed: one each; of many Modules the first twenty and how many more."""
    shown = Story(observed_with(*(module(f"m{at:02}") for at in range(30)))).step().answer(GONE)
    events = [each for each in shown.plan.actions if isinstance(each, Event)]
    assert [each.reason for each in events] == ["ModuleNotVerified"] * 20 + ["MoreModules"]
    assert events[0].message == f"drivers/m00: {GONE.reason}"
    assert [each for each in shown.later(10).plan.actions if isinstance(each, Event)] == []
