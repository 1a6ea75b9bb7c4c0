"""Tests the result of a validation: its condition, entries and events, at their limits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.kernelmodules.decide.validation_world import NOW, entry, module, ocp, validation

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition, NamespacedName
from runup.api.kmm_v1beta1 import ValidatedKernel
from runup.api.kmm_v1beta2 import ModuleStatus, PreflightValidation
from runup.kernelmodules.decide import validation_status as entries
from runup.kernelmodules.decide import validation_status as validation_summary
from runup.kernelmodules.decide.module_state import ModuleState
from runup.process.plan import Event, PatchStatus


def module_status(name: str = "kmod", status: str = "Failure", running: str = "", reason: str = "gone") -> ModuleStatus:
    """Returns the status of a Module."""
    stage = "Image" if status == "InProgress" else "Done"
    words = {"verificationStatus": status, "verificationStage": stage, "runningStage": running}
    return codec.convert(ModuleStatus, entry(name, **words, statusReason=reason))


def runs(running: str, reason: str = "gone") -> ModuleStatus:
    """Returns the statuses of a Module that is being built or signed."""
    return module_status(status="InProgress", running=running, reason=reason)


DONE, FAILED, RUNNING = module_status("a", "Success"), module_status("b"), module_status("c", "InProgress", "Build")
CONDITIONS: dict[str, tuple[tuple[ModuleStatus, ...], str, str, str]] = {
    "none": ((), "True", "NoModules", "There is no Module (kernel 5, 6)."),
    "one that is verified": ((DONE,), "True", "AllVerified", "The Module is verified for kernel 5, 6."),
    "two that are verified": ((DONE, DONE), "True", "AllVerified", "All 2 Modules are verified for kernel 5, 6."),
    "one that failed": (
        (DONE, FAILED),
        "False",
        "NotVerified",
        "1 of 2 Modules verified for kernel 5, 6; the others are tried again.",
    ),
    "one that is under way": (
        (DONE, RUNNING),
        "Unknown",
        "InProgress",
        "1 of 2 Modules verified for kernel 5, 6; others are under way.",
    ),
    "one that failed and one that is under way": (
        (FAILED, RUNNING, DONE),
        "Unknown",
        "InProgress",
        "1 of 3 Modules verified for kernel 5, 6; others are under way.",
    ),
}


@pytest.mark.parametrize(("modules", "status", "reason", "text"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_what_the_entries_come_to(modules: tuple[ModuleStatus, ...], status: str, reason: str, text: str) -> None:
    """Verified is what all are; while one is under way nobody knows."""
    found = validation_summary.condition(modules, ["5", "6"])
    assert (found.type, found.status, found.reason, found.message) == ("Validated", status, reason, text)


def events_of_change(before: tuple[ModuleStatus, ...], *after: ModuleStatus) -> list[tuple[str, str, str]]:
    """The events of that change."""
    found = validation_summary.events(
        validation(), {NamespacedName("drivers", each.name): each for each in before}, after
    )
    assert all(isinstance(each, Event) for each in found)
    return [(each.type, each.reason, each.message) for each in found if isinstance(each, Event)]


NOT_VERIFIED = ("Warning", "ModuleNotVerified", "drivers/kmod: gone")
CHANGES: dict[str, tuple[tuple[ModuleStatus, ...], ModuleStatus, list[tuple[str, str, str]]]] = {
    "it is verified": ((), module_status(status="Success"), [("Normal", "ModuleVerified", "drivers/kmod: gone")]),
    "it failed": ((), module_status(), [NOT_VERIFIED]),
    "it failed as before": ((module_status(),), module_status(), []),
    "it failed in another way": ((module_status(reason="no gcc"),), module_status(), [NOT_VERIFIED]),
    "its image is being looked at": ((), runs(""), []),
    "a build began": ((), runs("Build"), [("Normal", "BuildStarted", "drivers/kmod: gone")]),
    "a build began after a failure": (
        (module_status(),),
        runs("Build"),
        [("Normal", "BuildStarted", "drivers/kmod: gone")],
    ),
    "a build goes on in other words": ((runs("Build", "x"),), runs("Build"), []),
    "a signature follows a build": (
        (runs("Build"),),
        runs("Sign"),
        [("Normal", "SignStarted", "drivers/kmod: gone")],
    ),
}


@pytest.mark.parametrize(("before", "after", "events"), CHANGES.values(), ids=CHANGES.keys())
def test_which_change_is_an_event(
    before: tuple[ModuleStatus, ...], after: ModuleStatus, events: list[tuple[str, str, str]]
) -> None:
    """What somebody would want to know, once."""
    assert events_of_change(before, after) == events


@pytest.mark.parametrize(
    ("count", "last"),
    [
        pytest.param(20, "drivers/m19: gone", id="as many as are told"),
        pytest.param(21, "1 more Modules changed; status.modules has them all", id="one more"),
        pytest.param(25, "5 more Modules changed; status.modules has them all", id="five more"),
    ],
)
def test_how_many_events_there_are(count: int, last: str) -> None:
    """Twenty, and one that counts the rest."""
    found = events_of_change((), *(module_status(f"m{at:02}") for at in range(count)))
    assert len(found) == min(count, 21)
    assert found[-1][2] == last


def condition(message: str = "", status: Any = "True") -> Condition:
    """Returns the condition about all Modules."""
    return Condition(type=validation_summary.VALIDATED, status=status, reason="R", message=message)


def test_a_status_keeps_what_others_said() -> None:
    """Conditions of other types stay; a kernel of no architecture has no place in the list."""
    other = Condition(type="Other", status="True", last_transition_time=NOW)
    found = codec.to_dict(validation(generation=4))
    found["status"] = {"conditions": [codec.to_dict(other)]}
    kernels = (ValidatedKernel("", "6.1.0-9", ""), ValidatedKernel("amd64", "5", "dtk"))
    made = validation_summary.status(
        codec.convert(PreflightValidation, found), (), condition("x" * 2000), kernels, now=NOW
    )
    assert [each.type for each in made.conditions] == ["Other", "Validated"]
    assert made.kernels == kernels[1:]
    assert (made.observed_generation, made.conditions[1].observed_generation) == (4, 4)
    assert made.conditions[1].message.endswith(" more characters")
    assert len(made.conditions[1].message) <= 1024


@pytest.mark.parametrize(("length", "whole"), [(1024, True), (1025, False)])
def test_how_long_what_is_said_of_all_may_be(length: int, whole: bool) -> None:
    """Longer text is cut, and marked as cut."""
    made = validation_summary.status(validation(), (), condition("x" * length), (), now=NOW)
    assert (made.conditions[0].message == "x" * length) is whole
    assert len(made.conditions[0].message) <= 1024


def test_what_is_said_already_is_not_written() -> None:
    """A patch has what became empty, too; of a status that is new it says so."""
    kept = validation(entry())
    assert validation_summary.patch(kept, kept.status) == []
    (patch,) = validation_summary.patch(kept, validation_summary.status(kept, (), condition(), (), now=NOW))
    assert isinstance(patch, PatchStatus)
    assert (patch.fields["modules"], patch.fields["kernels"], patch.fresh) == ([], [], False)
    new = ocp()
    (first,) = validation_summary.patch(new, validation_summary.status(new, (), condition(), (), now=NOW))
    assert isinstance(first, PatchStatus)
    assert (first.fresh, first.resource.kind, first.resource_version) == (True, "PreflightValidationOCP", "9")


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        pytest.param("2026-11-21T11:58:59Z", True, id="the Module is older"),
        pytest.param("2026-11-21T11:59:00Z", True, id="of one second"),
        pytest.param("2026-11-21T11:59:01Z", False, id="the Module is newer"),
    ],
)
def test_whether_an_entry_is_about_a_namesake(made: str, counts: bool) -> None:
    """A status from before the Module's creation is outdated."""
    found = entries.entry_about(module_status(), module(metadata={"creationTimestamp": made}))
    assert (found is not None) is counts


def test_an_entry_without_a_time_is_about_any() -> None:
    """Nobody knows better; nor where the Module does not say when it was made."""
    timeless = codec.convert(ModuleStatus, {"name": "kmod", "namespace": "drivers"})
    assert entries.entry_about(timeless, module(metadata={"creationTimestamp": "2026-11-21T11:59:01Z"})) == timeless
    assert entries.entry_about(module_status(), module()) == module_status()
    assert entries.entry_about(None, module()) is None


PENDING = ModuleState(verified=False, stage="Image", reason="", keeps_previous_status=True)
KNOWN = ModuleState(verified=False, stage="Image", reason="looked")
ENTRIES: dict[str, tuple[ModuleState, dict[str, Any], str]] = {
    "nothing is known, of this version": (PENDING, {"observedGeneration": 2}, "gone"),
    "nothing is known, of no version": (PENDING, {"observedGeneration": 0}, "gone"),
    "nothing is known, of another version": (PENDING, {"observedGeneration": 1}, ""),
    "it was looked at": (KNOWN, {"observedGeneration": 2}, "looked"),
}


@pytest.mark.parametrize(("looked", "before", "reason"), ENTRIES.values(), ids=ENTRIES.keys())
def test_what_stays_while_nothing_is_known(looked: ModuleState, before: dict[str, Any], reason: str) -> None:
    """Tests statuses about this version of the Module, or about an unknown version."""
    old = codec.convert(ModuleStatus, entry(**before))
    assert entries.entry(module(metadata={"generation": 2}), looked, old, now=NOW).status_reason == reason


@pytest.mark.parametrize(
    ("changes", "moves"),
    [
        pytest.param({}, False, id="the same"),
        pytest.param({"verification_status": "Success"}, True, id="another status"),
        pytest.param({"verification_stage": "Image"}, True, id="another stage"),
        pytest.param({"status_reason": "here"}, True, id="another reason"),
        pytest.param({"observed_generation": 9}, False, id="another version of the Module"),
    ],
)
def test_when_an_entrys_time_moves(changes: dict[str, Any], moves: bool) -> None:
    """With what it says, and not with the version that it was said of."""
    later = NOW + timedelta(hours=1)
    found = entries.with_transition_time(replace(module_status(), **changes), module_status(), now=later)
    assert found.last_transition_time == (later if moves else module_status().last_transition_time)


@pytest.mark.parametrize(
    ("count", "length", "least", "most"),
    [
        # 768 KiB are 768 reasons of 1024 bytes, or 3072 of 256.
        pytest.param(768, 1024, 1024, 1024, id="whole reasons"),
        pytest.param(769, 1024, 200, 256, id="one too many for them"),
        pytest.param(3072, 256, 256, 256, id="shorter ones"),
        pytest.param(3073, 256, 40, 64, id="one too many for those"),
        pytest.param(20000, 256, 40, 64, id="more than have room at all"),
    ],
)
def test_how_long_reasons_may_be(count: int, length: int, least: int, most: int) -> None:
    """As long as all of them together fit; every entry stays."""
    found = entries.fit_entries([module_status(reason="x" * length)] * count)
    assert len(found) == count
    assert {least <= len(each.status_reason) <= most for each in found} == {True}
