"""Image, build, sign: what a Module's entry says at each turn, in the words of Kernel Module Management."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.kernelmodules.decide.validation_world import (
    BUILD,
    KERNEL,
    SIGN,
    Story,
    module,
    observed_with,
    started,
    validation,
)

from runup.kernelmodules.decide.module_state import BuildInputs, Image
from runup.kernelmodules.decide.runs import RunState

GONE = Image(verified=False, reason="image registry.example/kmod:v1 inaccessible or does not exists")
THERE = Image(verified=True)
OTHER = "5.14.0-400.1.1.el9_3.x86_64"
# The tag of the nodes that run now, and one that could not be read.
RUNNING = Image(verified=False, reason="it lacks kmod", kernels=frozenset({OTHER}))
UNREAD = Image(verified=False, reason="no answer", kernels=None)
NAMED = "containerImage must name the kernel, for example by a tag with ${KERNEL_FULL_VERSION}"
DOCKERFILE = BuildInputs("FROM scratch\n", ("v1",))
AGAIN = "this Module will not be verified again in this Preflight CR"
BUILD_FAILED = f"Failed to verify build for module kmod, kernel version {KERNEL}, error "
SIGN_FAILED = f"Failed to verify signing for module kmod, kernel version {KERNEL}, error "


def story(push: bool = False, **changes: Any) -> Story:
    return Story(observed_with(module(**changes), validation=validation(pushBuiltImage=push))).step()


UNSIGNED = {**SIGN, "unsignedImage": "registry.example/raw:v1"}

# The truth table of internal/preflight/preflight_test.go, "correct flow of the image/build/sign verification".
FLOWS: dict[str, tuple[Callable[[], Story], tuple[str, str, str]]] = {
    "nothing is known at first": (story, ("InProgress", "Image", "")),
    "an image that is there ends it": (
        lambda: story(build=BUILD).answer(THERE),
        ("Success", "Done", f"Verification successful (image accessible and verified), {AGAIN}"),
    ),
    "an image that is not there fails where nothing could make it": (
        lambda: story().answer(GONE),
        ("Failure", "Done", GONE.reason),
    ),
    "an image that is not there and is named by its digest fails as well": (
        lambda: story(push=True, image="registry.example/kmod@sha256:1").answer(GONE),
        ("Failure", "Done", GONE.reason),
    ),
    "a build waits for its Dockerfile": (
        lambda: story(build=BUILD).answer(GONE),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "a build that runs is waited for": (
        lambda: story(build=BUILD).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.RUNNING),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "a build that cannot begin says what it lacks": (
        lambda: story(build=BUILD).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.RUNNING, "no Secret"),
        ("InProgress", "Build", "Waiting for build verification: no Secret"),
    ),
    "a build that succeeds ends it": (
        lambda: story(build=BUILD).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.SUCCEEDED),
        ("Success", "Done", f"Verification successful (build compiles), {AGAIN}"),
    ),
    "a build that succeeds and pushes ends it": (
        lambda: story(push=True, build=BUILD).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.SUCCEEDED),
        ("Success", "Done", f"Verification successful (build compiles and image pushed), {AGAIN}"),
    ),
    "a build that fails shows the end of its log": (
        lambda: story(build=BUILD).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.FAILED, "no gcc"),
        ("Failure", "Done", f"{BUILD_FAILED}build failed: no gcc"),
    ),
    "a Dockerfile that is not there is named": (
        lambda: story(build=BUILD).answer(GONE).answer(GONE, BuildInputs(problem="failed to get dockerfile ConfigMap")),
        ("Failure", "Done", f"{BUILD_FAILED}failed to get dockerfile ConfigMap"),
    ),
    "a build from a driver toolkit that nobody knows fails at once": (
        lambda: story(build=BUILD).answer(GONE).answer(GONE, BuildInputs("FROM ${DTK_AUTO}\n")),
        (
            "Failure",
            "Done",
            f"{BUILD_FAILED}could not get DTK image for kernel {KERNEL}: validate by a PreflightValidationOCP with "
            "spec.releaseImage, or set spec.dtkImage",
        ),
    ),
    "a build into an image that is named by digest fails at once": (
        lambda: story(push=True, build=BUILD, image="registry.example/kmod@sha256:1").answer(GONE),
        (
            "Failure",
            "Done",
            f"{BUILD_FAILED}registry.example/kmod@sha256:1 is named by its digest, so nothing can be pushed there: "
            f"name it by a tag ({GONE.reason})",
        ),
    ),
    "a push over another kernel's modules is refused": (
        lambda: story(push=True, build=BUILD).answer(RUNNING),
        (
            "Failure",
            "Done",
            f"{BUILD_FAILED}a push would overwrite registry.example/kmod:v1, which has modules for kernel {OTHER}: "
            f"{NAMED} ({RUNNING.reason})",
        ),
    ),
    "a signature over another kernel's modules is refused": (
        lambda: story(push=True, sign=UNSIGNED).answer(RUNNING),
        (
            "Failure",
            "Done",
            f"{SIGN_FAILED}a push would overwrite registry.example/kmod:v1, which has modules for kernel {OTHER}: "
            f"{NAMED} ({RUNNING.reason})",
        ),
    ),
    "a push over what could not be read is refused": (
        lambda: story(push=True, build=BUILD).answer(UNREAD),
        (
            "Failure",
            "Done",
            f"{BUILD_FAILED}a push could overwrite kernel modules in registry.example/kmod:v1, which was not "
            f"read completely: {NAMED} ({UNREAD.reason})",
        ),
    ),
    "a tag that names the kernel may be overwritten": (
        lambda: story(push=True, build=BUILD, image=f"registry.example/kmod:v1-{KERNEL}").answer(RUNNING),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "a tag that names the kernel is pushed though it could not be read": (
        lambda: story(push=True, build=BUILD, image="registry.example/kmod:$KERNEL_FULL_VERSION").answer(UNREAD),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "a tag that begins as the kernel does names another one": (
        lambda: story(push=True, build=BUILD, image=f"registry.example/kmod:{KERNEL}5").answer(RUNNING),
        (
            "Failure",
            "Done",
            f"{BUILD_FAILED}a push would overwrite registry.example/kmod:{KERNEL}5, which has modules for kernel "
            f"{OTHER}: {NAMED} ({RUNNING.reason})",
        ),
    ),
    "modules of this kernel alone may be overwritten": (
        lambda: story(push=True, build=BUILD).answer(replace(RUNNING, kernels=frozenset({KERNEL}))),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "without a push nothing is overwritten": (
        lambda: story(build=BUILD).answer(RUNNING),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "build and signature without a push say so before anything runs": (
        lambda: story(build=BUILD, sign=SIGN).answer(GONE),
        (
            "Failure",
            "Done",
            f"{SIGN_FAILED}the image to sign is what the build makes, and nothing is pushed: set pushBuiltImage to "
            f"true, or give the image without a signature by hand ({GONE.reason})",
        ),
    ),
    "a signature of nothing says so": (
        lambda: story(sign=SIGN).answer(GONE),
        ("Failure", "Done", f"{SIGN_FAILED}no image to sign given ({GONE.reason})"),
    ),
    "a build into an image that is named by digest is tried where nothing is pushed": (
        lambda: story(build=BUILD, image="registry.example/kmod@sha256:1").answer(GONE),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "a signature without a build runs at once": (
        lambda: story(sign=UNSIGNED).answer(GONE).answer(GONE, BuildInputs()).run(RunState.RUNNING),
        ("InProgress", "Sign", "Waiting for sign verification"),
    ),
    "a signature that succeeds ends it": (
        lambda: story(sign=UNSIGNED).answer(GONE).answer(GONE, BuildInputs()).run(RunState.SUCCEEDED),
        ("Success", "Done", f"Verification successful (sign completes), {AGAIN}"),
    ),
    "a signature that fails shows the end of its log": (
        lambda: story(sign=UNSIGNED).answer(GONE).answer(GONE, BuildInputs()).run(RunState.FAILED, "bad key"),
        ("Failure", "Done", f"{SIGN_FAILED}sign failed: bad key"),
    ),
    "a signature waits for its build": (
        lambda: story(push=True, build=BUILD, sign=SIGN).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.RUNNING),
        ("InProgress", "Build", "Waiting for build verification"),
    ),
    "no signature follows a build that failed": (
        lambda: (
            story(push=True, build=BUILD, sign=SIGN).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.FAILED, "x")
        ),
        ("Failure", "Done", f"{BUILD_FAILED}build failed: x"),
    ),
    "a signature follows its build": (
        lambda: story(push=True, build=BUILD, sign=SIGN).answer(GONE).answer(GONE, DOCKERFILE).run(RunState.SUCCEEDED),
        ("InProgress", "Sign", "Waiting for sign verification"),
    ),
    "build and signature that succeed and push end it": (
        lambda: (
            story(push=True, build=BUILD, sign=SIGN)
            .answer(GONE)
            .answer(GONE, DOCKERFILE)
            .run(RunState.SUCCEEDED)
            .answer(GONE, BuildInputs("", ("k1", "c1")))
            .run(RunState.SUCCEEDED)
        ),
        ("Success", "Done", f"Verification successful (sign completes and image pushed), {AGAIN}"),
    ),
}


@pytest.mark.parametrize(("shown", "expected"), FLOWS.values(), ids=FLOWS.keys())
def test_an_entry_says_how_far_a_module_is(shown: Callable[[], Story], expected: tuple[str, str, str]) -> None:
    """Status, stage and reason after the last turn; the message is that of the last stage that ran."""
    assert shown().results == [expected]


@pytest.mark.parametrize(
    ("image", "other", "refused"),
    [
        pytest.param("registry.example/kmod:v1", {}, True, id="one tag for two kernels"),
        pytest.param("registry.example/kmod:$KERNEL_FULL_VERSION", {}, False, id="a tag for each kernel"),
        pytest.param("registry.example/kmod:$KERNEL_XYZ", {}, True, id="a tag with a part of the kernel"),
        pytest.param("registry.example/kmod:v1", {"pushBuiltImage": False}, False, id="the other pushes nothing"),
        pytest.param("registry.example/kmod:v1", {"kernelVersion": KERNEL}, False, id="the other has this kernel"),
    ],
)
def test_refuses_a_tag_that_another_validation_pushes(image: str, other: dict[str, Any], refused: bool) -> None:
    """Whichever comes second would overwrite the modules of the first."""
    validations = {
        "preflight": validation(pushBuiltImage=True),
        "z-other": validation(**{"kernelVersion": OTHER, "pushBuiltImage": True, **other}),
    }
    observed = observed_with(module(build=BUILD, image=image), validation=validations["preflight"])
    shown = Story(replace(observed, validations=validations)).step().answer(GONE)
    ((_, _, reason),) = shown.results
    expected = f"{BUILD_FAILED}PreflightValidation z-other would push registry.example/kmod:"
    assert reason.startswith(expected) is refused
    assert (f", too, for kernel {OTHER}: {NAMED}" in reason) is refused


def test_a_module_without_a_loader_has_nothing_to_verify() -> None:
    """Only a device plugin: no image is asked for."""
    found = Story(observed_with(module(moduleLoader=None))).step()
    assert found.results == [("Success", "Done", "Verification successful (the Module loads no kernel module)")]
    assert found.plan.work == ()


def test_a_kernel_that_no_mapping_has_is_told() -> None:
    """The text is KMM's, with its cause."""
    unmapped = module()
    loader = unmapped.spec.module_loader
    assert loader is not None
    other = validation(kernelVersion="x")
    container = {"modprobe": {"moduleName": "kmod"}, "kernelMappings": [{"literal": "y", "containerImage": "i:1"}]}
    found = Story(observed_with(module(moduleLoader={"container": container}), validation=other)).step()
    assert found.results[0][2].startswith("failed to process kernel mapping in the module kmod for kernel version x: ")


def test_the_final_image_is_signed_from_a_temporary_one() -> None:
    """The build pushes next to the image, the signature to its very name."""
    asked = story(push=True, build=BUILD, sign=SIGN, image="host:5000/kmod:v1").answer(GONE).answer(GONE, DOCKERFILE)
    [build] = started(asked.plan)
    push = build["spec"]["template"]["spec"]["containers"][0]
    assert push["args"][2:] == ["push", "host:5000/kmod:v1_drivers_kmod_kmm_unsigned"]
    signing = asked.run(RunState.SUCCEEDED).answer(GONE, BuildInputs("", ("k1", "c1")))
    [sign] = started(signing.plan)
    annotations = sign["spec"]["template"]["metadata"]["annotations"]
    assert annotations["kmm.node.kubernetes.io/dockerfile"].splitlines() == [
        "FROM host:5000/kmod:v1_drivers_kmod_kmm_unsigned AS source",
        "FROM signer:1 AS signing",
        "USER 0",
        'COPY --from=source ["/opt/lib/modules/a.ko", "/signroot/opt/lib/modules/a.ko"]',
        'RUN ["/bin/sh", "-c", "set -e; IFS=; for pattern; do for file in $pattern; do '
        '\\"$0\\" sha256 /run/secrets/key/key /run/secrets/cert/cert \\"$file\\"; done; done", '
        '"/usr/local/bin/sign-file", "/signroot/opt/lib/modules/a.ko"]',
        "FROM source",
        'COPY --from=signing ["/signroot/opt/lib/modules/a.ko", "/opt/lib/modules/a.ko"]',
    ]
    assert sign["spec"]["template"]["spec"]["containers"][0]["args"][2:] == ["push", "host:5000/kmod:v1"]
