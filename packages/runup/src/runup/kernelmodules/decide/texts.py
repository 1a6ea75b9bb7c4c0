"""The texts of statuses, in the words of Kernel Module Management (internal/preflight), which people search for.

Details beyond those of Kernel Module Management follow after its words.
"""

from __future__ import annotations

from collections.abc import Iterable

NOT_AGAIN = "this Module will not be verified again in this Preflight CR"
WAITING_BUILD = "Waiting for build verification"
WAITING_SIGN = "Waiting for sign verification"
NO_IMAGE_TO_SIGN = "no image to sign given"
NOTHING_LOADED = "Verification successful (the Module loads no kernel module)"
UNPUSHED = (
    "the image to sign is what the build makes, and nothing is pushed: set pushBuiltImage to true, or give the image "
    "without a signature by hand"
)


NAME_THE_KERNEL = "containerImage must name the kernel, for example by a tag with ${KERNEL_FULL_VERSION}"


def overwritten(image: str, kernels: Iterable[str] | None) -> str:
    """Returns why nothing is pushed to `image`, which has modules of `kernels`; None if that is not known."""
    if kernels is None:
        return f"a push could overwrite kernel modules in {image}, which was not read completely: {NAME_THE_KERNEL}"
    return (
        f"a push would overwrite {image}, which has modules for kernel {', '.join(sorted(kernels))}: {NAME_THE_KERNEL}"
    )


def replaced_index(image: str) -> str:
    """Returns why nothing is pushed to `image`, which nodes of several architectures need."""
    return (
        f"a push could replace {image}, which serves several architectures, with an image for one of them: push an "
        "index with an image for each"
    )


def pushed_twice(image: str, validation: str, kernel: str) -> str:
    """Returns why nothing is pushed to `image`, which another validation would push for its own kernel."""
    return f"PreflightValidation {validation} would push {image}, too, for kernel {kernel}: {NAME_THE_KERNEL}"


def verified_text(verified_by: str) -> str:
    """Returns the message of a verified Module; `verified_by` names the evidence."""
    return f"Verification successful ({verified_by}), {NOT_AGAIN}"


IMAGE_VERIFIED = verified_text("image accessible and verified")


def built_text(*, pushed: bool) -> str:
    """Returns the message of a build that succeeded."""
    return verified_text("build compiles and image pushed" if pushed else "build compiles")


def signed_text(*, pushed: bool) -> str:
    """Returns the message of a signature that succeeded."""
    return verified_text("sign completes and image pushed" if pushed else "sign completes")


def build_failed(module: str, kernel: str, error: str) -> str:
    """Returns the message of a build that failed or could not be started."""
    return f"Failed to verify build for module {module}, kernel version {kernel}, error {error}"


def sign_failed(module: str, kernel: str, error: str) -> str:
    """Returns the message of a signature that failed or could not be started."""
    return f"Failed to verify signing for module {module}, kernel version {kernel}, error {error}"


def invalid_module(faults: Iterable[str]) -> str:
    """Returns the message of a Module that admission would refuse."""
    return f"the Module is invalid: {'; '.join(faults)}"


def no_toolkit(kernel: str) -> str:
    """Returns why a Dockerfile that starts from the driver toolkit cannot be built."""
    return (
        f"could not get DTK image for kernel {kernel}: validate by a PreflightValidationOCP with spec.releaseImage, or "
        "set spec.dtkImage"
    )
