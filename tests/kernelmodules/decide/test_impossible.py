"""If an image cannot be built or signed at all, the Module's entry gives the reason, and no Job is created."""

from __future__ import annotations

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

from runup.kernelmodules.decide.build_jobs import LARGEST_DOCKERFILE, Builder
from runup.kernelmodules.decide.module_state import BuildInputs, Image

GONE = Image(verified=False, reason="gone")
KEYS = BuildInputs("", ("k1", "c1"))
TOOLKIT = "FROM $DTK_AUTO\n"
UNSIGNED = {**SIGN, "unsignedImage": "registry.example/raw:v1"}


def story_with_material(material: BuildInputs, builder: Builder | None = None, **changes: Any) -> Story:
    """The image is not there, and what must make it is found to be this."""
    observed = observed_with(module(**changes), validation=validation(pushBuiltImage=False))
    if builder is not None:
        observed = replace(observed, builder=builder)
    return Story(observed).step().answer(GONE).answer(GONE, material)


BUILDING = [
    pytest.param(
        BuildInputs(problem="ConfigMap dockerfile is not there"),
        None,
        "ConfigMap dockerfile is not there",
        id="no Dockerfile",
    ),
    pytest.param(
        BuildInputs("#" * (LARGEST_DOCKERFILE + 1)),
        None,
        f"the Dockerfile has more than {LARGEST_DOCKERFILE // 1024} KiB",
        id="a Dockerfile of a byte too much",
    ),
    pytest.param(
        BuildInputs("FROM scratch\n"),
        Builder(sign_image="signer:1"),
        "no image with buildah is known to the operator: set its flag --build-image",
        id="nothing to build with",
    ),
    pytest.param(
        BuildInputs(TOOLKIT),
        None,
        f"could not get DTK image for kernel {KERNEL}: validate by a PreflightValidationOCP",
        id="no driver toolkit",
    ),
]


@pytest.mark.parametrize(("material", "builder", "why"), BUILDING)
def test_what_cannot_be_built(material: BuildInputs, builder: Builder | None, why: str) -> None:
    """With the stage and the cause."""
    story = story_with_material(material, builder, build=BUILD)
    ((status, stage, reason),) = story.results
    assert (status, stage) == ("Failure", "Done")
    assert f"Failed to verify build for module kmod, kernel version {KERNEL}, error {why}" in reason
    assert started(story.plan) == []


def test_a_dockerfile_may_be_as_large_as_its_limit() -> None:
    """To the byte."""
    assert len(started(story_with_material(BuildInputs("#" * LARGEST_DOCKERFILE), build=BUILD).plan)) == 1


SIGNING = [
    pytest.param(
        BuildInputs(problem="Secret key is not there"), None, UNSIGNED, "Secret key is not there", id="no key"
    ),
    pytest.param(
        KEYS,
        Builder(sign_image="signer:1"),
        UNSIGNED,
        "no image with buildah is known to the operator: set its flag --build-image",
        id="nothing to build with",
    ),
    pytest.param(
        KEYS,
        Builder(image="builder:1"),
        UNSIGNED,
        "no image with sign-file is known to the operator: set its flag --sign-image",
        id="nothing to sign with",
    ),
    pytest.param(
        KEYS,
        None,
        {**UNSIGNED, "unsignedImage": "a b"},
        "'a b' is not the name of an image",
        id="a source in two words",
    ),
    pytest.param(
        KEYS,
        None,
        {**UNSIGNED, "unsignedImage": "a\tb"},
        "'a\\tb' is not the name of an image",
        id="a source with a tab",
    ),
    pytest.param(
        KEYS,
        None,
        {**UNSIGNED, "unsignedImage": "--platform=linux/arm64"},
        "'--platform=linux/arm64' is not the name of an image",
        id="a source that is a flag",
    ),
    pytest.param(
        KEYS,
        Builder(image="builder:1", sign_image="signer:1\nRUN id"),
        UNSIGNED,
        "'signer:1\\nRUN id' is not the name of an image",
        id="a signing image with an instruction",
    ),
]


@pytest.mark.parametrize(("material", "builder", "sign", "why"), SIGNING)
def test_what_cannot_be_signed(material: BuildInputs, builder: Builder | None, sign: dict[str, Any], why: str) -> None:
    """The same of the second stage."""
    story = story_with_material(material, builder, sign=sign)
    ((status, stage, reason),) = story.results
    assert (status, stage) == ("Failure", "Done")
    assert f"Failed to verify signing for module kmod, kernel version {KERNEL}, error {why}" in reason
    assert started(story.plan) == []


def test_nothing_is_pushed_to_what_is_not_an_image() -> None:
    """A name that is a flag of the builder is refused before anything runs."""
    story = story_with_material(BuildInputs("FROM scratch\n"), build=BUILD, image="--authfile=/run/secrets/x:1")
    ((status, stage, reason),) = story.results
    assert (status, stage) == ("Failure", "Done")
    assert "error '--authfile=/run/secrets/x:1' is not the name of an image" in reason
    assert started(story.plan) == []


def test_a_toolkit_that_is_not_an_image_signs_nothing() -> None:
    """It is named by a validation, and would be a line of the Dockerfile."""
    known = validation(dtkImage="dtk:1\nRUN id", pushBuiltImage=False)
    observed = replace(observed_with(module(sign=UNSIGNED), validation=known), builder=Builder(image="builder:1"))
    story = Story(observed).step().answer(GONE).answer(GONE, KEYS)
    assert "'dtk:1\\nRUN id' is not the name of an image" in story.results[0][2]
    assert started(story.plan) == []
