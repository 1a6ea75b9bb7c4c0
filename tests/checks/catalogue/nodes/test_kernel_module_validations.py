"""Tests the findings from kernel-module validations, and which images count as equal."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME
from tests.factories import context

from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of
from runup.kernelmodules.decide.readiness import PreflightResults, Readiness, Status


def validation(kind: str = "PreflightValidationOCP", name: str = "v", /, **status: Any) -> dict[str, Any]:
    """A validation of which nobody can show whether it is about the target."""
    spec = {"releaseImage": "other:9"} if kind.endswith("OCP") else {"kernelVersion": "6.1.0"}
    metadata = {"name": name}
    return {
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def entry(status: str, **changes: Any) -> dict[str, Any]:
    """What a validation says about Module `drivers/kmod`."""
    return {"name": "kmod", "namespace": "drivers", "verificationStatus": status, **changes}


FAILED = "Kernel module drivers/kmod failed its verification at stage "


SAID: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "verified": ([validation(modules=[entry("Success")])], []),
    "verified, in the older word": ([validation(modules=[entry("True")])], []),
    "failed": (
        [validation(modules=[entry("Failure", verificationStage="Done", statusReason="no gcc.")])],
        ["Kernel module drivers/kmod failed its verification: no gcc (PreflightValidationOCP v)."],
    ),
    "failed, and nobody says why": (
        [validation(modules=[entry("Failure")])],
        [f"{FAILED}unknown (PreflightValidationOCP v)."],
    ),
    "failed, in the older word": (
        [validation(modules=[entry("False", verificationStage="Build", statusReason="no gcc.")])],
        [f"{FAILED}Build: no gcc (PreflightValidationOCP v)."],
    ),
    "under way": (
        [validation(modules=[entry("", verificationStage="Image")])],
        [
            "Whether KernelModuleNotVerified applies is unknown: PreflightValidationOCP v has not verified "
            "drivers/kmod yet."
        ],
    ),
    "nothing yet": (
        [validation("PreflightValidation")],
        ["Whether KernelModuleNotVerified applies is unknown: PreflightValidation v has no result for any module yet."],
    ),
    "two failed, in order": (
        [
            validation("PreflightValidation", "b", modules=[entry("False")]),
            validation("PreflightValidation", "a", modules=[entry("False", name="z"), entry("False", name="y")]),
        ],
        [
            FAILED.replace("kmod", "y") + "unknown (PreflightValidation a).",
            FAILED.replace("kmod", "z") + "unknown (PreflightValidation a).",
            f"{FAILED}unknown (PreflightValidation b).",
        ],
    ),
}


@pytest.mark.parametrize(("objects", "shown"), SAID.values(), ids=SAID.keys())
def test_what_a_validation_says_of_modules(objects: list[dict[str, Any]], shown: list[str]) -> None:
    """Each that failed, with its stage and why; what is not decided is not fine."""
    check = BY_NAME["KernelModuleNotVerified"]
    outcome = run_check(check, snapshot_of(check.reads, objects), context())
    assert [finding.message for finding in outcome.findings] == shown


MODULE = {
    "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
    "kind": "Module",
    "metadata": {"name": "kmod", "namespace": "drivers"},
    "spec": {"moduleLoader": {"container": {"modprobe": {"moduleName": "kmod"}}}},
}
BAD = entry("False", verificationStage="Image", statusReason="gone")
OWNER = {"apiVersion": "kmm.sigs.x-k8s.io/v1beta2", "kind": "PreflightValidationOCP", "name": "v", "uid": "u"}


def about(kind: str, name: str = "v", owned: bool = False, **spec: str) -> dict[str, Any]:
    """A validation of this kernel or release, whose one module failed."""
    made = validation(kind, name, modules=[BAD])
    made["metadata"] |= {"ownerReferences": [{**OWNER, "controller": True}]} if owned else {}
    return {**made, "spec": spec}


PLAIN, OCP = "PreflightValidation", "PreflightValidationOCP"
ONCE = [f"{FAILED}Image: gone (PreflightValidationOCP v)."]
# The target is quay.io/example/release@sha256:5, with kernel 6.1.0-5.
WHOSE = [
    pytest.param([about(PLAIN, kernelVersion="5.14.0-1")], [], [], id="another kernel"),
    pytest.param([about(OCP, releaseImage="o/r@sha256:9")], [], [], id="another release"),
    pytest.param([about(OCP, kernelVersion="5.14.0-1")], [], [], id="another kernel, by the other kind"),
    pytest.param([about(PLAIN, kernelVersion="6.1.0-5")], [], ["Image"], id="the target's kernel"),
    pytest.param([about(OCP, releaseImage="mirror/r@sha256:5")], [], ["Image"], id="the target's release"),
    pytest.param(
        [about(OCP, releaseImage="o/r@sha256:9"), about(PLAIN, owned=True, kernelVersion="5.14.0-1")],
        [], [], id="another release and what it made",
    ),
    pytest.param(
        [about(OCP, releaseImage="o/r:9"), about(PLAIN), about(PLAIN, "v-arm64", owned=True)],
        ONCE, [], id="a release that may be the target, and what it made, which say the same",
    ),
    pytest.param(
        [about(OCP, releaseImage="o/r@sha256:5"), about(PLAIN), about(PLAIN, "v-arm64", owned=True, kernelVersion="x")],
        [], ["Image"], id="the target's release and what it made",
    ),
    pytest.param([about(PLAIN)], [f"{FAILED}Image: gone (PreflightValidation v)."], [], id="a kernel that is not said"),
]  # fmt: skip


@pytest.mark.parametrize(("validations", "verified", "ready"), WHOSE)
def test_whose_risk_a_failure_is(validations: list[dict[str, Any]], verified: list[str], ready: list[str]) -> None:
    """The target's by one check, what may be the target's by the other, each once; of another kernel by neither."""
    fine = Readiness(
        namespace="drivers",
        name="kmod",
        kernel="6.1.0-5",
        architecture="amd64",
        stage="i:1",
        status="Done",
        reason=Status.TRUE,
        image="verified",
    )
    evaluated = replace(context(), kernel_modules=PreflightResults((fine,)))
    shown = {}
    for name in ("KernelModuleNotVerified", "KernelModulesNotReady"):
        check = BY_NAME[name]
        objects = snapshot_of(check.reads, [*validations, MODULE])
        shown[name] = [finding.message for finding in run_check(check, objects, evaluated).findings]
    assert shown["KernelModuleNotVerified"] == verified
    assert [each.partition("at stage ")[2].partition(":")[0] for each in shown["KernelModulesNotReady"]] == ready


def test_a_failure_for_the_target_at_no_stage_of_its_own() -> None:
    """Done only means that the validation has ended."""
    failed = validation(modules=[entry("Failure", verificationStage="Done", statusReason="gone")])
    failed["spec"] = {"releaseImage": "o/r@sha256:5"}
    check = BY_NAME["KernelModulesNotReady"]
    (found,) = run_check(check, snapshot_of(check.reads, [failed, MODULE]), context()).findings
    assert found.message == "Kernel module drivers/kmod failed its validation for the target: gone."


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        pytest.param("a", "1 kernel module (drivers/a) of the cluster was never verified", id="one"),
        pytest.param("ab", "2 kernel modules (drivers/a and drivers/b) of the cluster were never verified", id="two"),
    ],
)
def test_modules_that_nobody_verified(names: str, shown: str) -> None:
    """The finding is reported until the images have been checked."""
    check = BY_NAME["KernelModuleNotVerified"]
    objects = [
        {
            "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
            "kind": "Module",
            "metadata": {"name": name, "namespace": "drivers"},
            "spec": {},
        }
        for name in names
    ]
    (found,) = run_check(check, snapshot_of(check.reads, objects), context()).findings
    assert found.message.startswith(shown)
    assert run_check(check, snapshot_of(check.reads, ()), context()).result == "Clear"
