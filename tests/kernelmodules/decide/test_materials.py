"""Tests the inputs of builds and signatures besides a Dockerfile: driver toolkit, files, and owners of runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct
from tests.factories import node
from tests.kernelmodules.decide.test_runs import OWNER, WANTED
from tests.kernelmodules.decide.test_stages_of_a_module import DOCKERFILE, GONE, UNSIGNED
from tests.kernelmodules.decide.validation_world import (
    BUILD,
    KERNEL,
    Story,
    module,
    observed_with,
    ocp,
    started,
    validation,
)

from kubekit.api import codec
from kubekit.api.meta_v1 import OwnerReference
from runup.api.build_v1 import Build
from runup.api.kmm_v1beta1 import Module
from runup.kernelmodules.decide import builds
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.module_files import kernel_of, kernel_spelling, module_of
from runup.kernelmodules.decide.module_state import BuildInputs, Image
from runup.kernelmodules.decide.runs import Runner, RunState
from runup.kernelmodules.decide.toolkit import absent_error
from runup.kernelmodules.decide.verdict import ExaminationOutcome, ImageVerdict, architectures
from runup.process.plan import Delete

TOOLKIT = BuildInputs("ARG DTK_AUTO\nFROM ${DTK_AUTO}\n", ("v1",))
DTK = "dtk@sha256:a"


def arguments(shown: Story) -> dict[str, str]:
    """The build's arguments."""
    (build,) = started(shown.plan)
    return {each["name"]: each["value"] for each in build["spec"]["strategy"]["dockerStrategy"]["buildArgs"]}


def building(material: BuildInputs, **changes: Any) -> Story:
    """A build of that Dockerfile, by OpenShift."""
    observed = observed_with(module(build=BUILD), runner=Runner.BUILDS, **changes)
    return Story(observed).step().answer(GONE).answer(GONE, material)


def test_a_dockerfile_that_starts_from_the_driver_toolkit_is_told_which() -> None:
    """The validation's own, else that of the release which has the kernel; no other namespace counts."""
    known = validation(dtkImage=DTK)
    assert arguments(building(TOOLKIT, validation=known))["DTK_AUTO"] == DTK
    assert "DTK_AUTO" not in arguments(building(DOCKERFILE, validation=known))
    kernels = [
        {"architecture": "amd64", "kernelVersion": "0.0.0", "dtkImage": "other"},
        {"architecture": "amd64", "kernelVersion": KERNEL},
        {"architecture": "amd64", "kernelVersion": KERNEL, "dtkImage": DTK},
        {"architecture": "amd64", "kernelVersion": "9.9.9", "dtkImage": "another"},
    ]
    parents = {"preflight": ocp(status={"kernels": kernels})}
    assert arguments(building(TOOLKIT, parents=parents))["DTK_AUTO"] == DTK


def test_the_driver_toolkit_of_the_own_release_comes_first() -> None:
    """Another release may have the same kernel, and another image of it, which would see the key of a signature."""

    def release(name: str, image: str) -> Any:
        made = ocp(status={"kernels": [{"architecture": "amd64", "kernelVersion": KERNEL, "dtkImage": image}]})
        return replace_struct(made, metadata=replace_struct(made.metadata, name=name, uid=f"uid-of-{name}"))

    owner = OwnerReference(kind="PreflightValidationOCP", name="mine", uid="uid-of-mine", controller=True)
    child = validation()
    child = replace_struct(child, metadata=replace_struct(child.metadata, owner_references=(owner,)))
    both = {name: release(name, f"{name}:1") for name in ("another", "mine", "other")}
    assert arguments(building(TOOLKIT, parents=both, validation=child))["DTK_AUTO"] == "mine:1"
    assert arguments(building(TOOLKIT, parents=both))["DTK_AUTO"] == "another:1"


def test_ours_count_before_a_modules_own_arguments() -> None:
    """A Module may add some, and not tell another kernel."""
    own = {**BUILD, "buildArgs": [{"name": "KERNEL_VERSION", "value": "x"}, {"name": "A", "value": "b"}]}
    observed = observed_with(module(build=own), runner=Runner.BUILDS)
    assert arguments(Story(observed).step().answer(GONE).answer(GONE, DOCKERFILE)) == {
        "KERNEL_VERSION": KERNEL,
        "KERNEL_FULL_VERSION": KERNEL,
        "MOD_NAME": "kmod",
        "MOD_NAMESPACE": "drivers",
        "A": "b",
    }


def test_a_signature_is_made_by_the_toolkit_where_nobody_has_another_program() -> None:
    """With the kernel's own sign-file."""
    observed = observed_with(
        module(sign=UNSIGNED), validation=validation(dtkImage=DTK), builder=Builder(image="builder:1")
    )
    shown = Story(observed).step().answer(GONE).answer(GONE, BuildInputs())
    (sign,) = started(shown.plan)
    dockerfile = sign["spec"]["template"]["metadata"]["annotations"]["kmm.node.kubernetes.io/dockerfile"]
    assert f"FROM {DTK} AS signing" in dockerfile
    assert f'"/usr/src/kernels/{KERNEL}/scripts/sign-file", "/signroot/' in dockerfile


def test_files_that_cannot_be_signed_fail_the_module() -> None:
    """Before anything runs; what variables make of a file is looked at, too."""
    shown = Story(observed_with(module(sign={**UNSIGNED, "filesToSign": ["/opt/$${HOME}.ko"]}))).step()
    assert (
        shown.answer(GONE)
        .answer(GONE, BuildInputs())
        .results[0][2]
        .endswith(
            "filesToSign: '/opt/${HOME}.ko' has characters other than letters, digits and /._+@:,=~%-, "
            "or *?[]!^ of patterns"
        )
    )


def test_a_run_of_another_validation_is_left_alone() -> None:
    """Nor is one removed that is on its way out."""
    shown = Story(observed_with(module(build=BUILD))).step().answer(GONE).answer(GONE, DOCKERFILE).run(RunState.RUNNING)
    (run,) = shown.observed.runs
    for changes in ({"owner_uid": "another"}, {"owner_uid": "a"}, {"deleting": True}):
        shown.observed = replace(shown.observed, runs=(replace(run, **changes),), modules=())
        assert [each for each in shown.step().plan.actions if isinstance(each, Delete)] == []
    shown.observed = replace(shown.observed, runs=(run,))
    assert [each.uid for each in shown.step().plan.actions if isinstance(each, Delete)] == [run.uid]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("snd-usb.ko", "snd_usb", id="plain"),
        pytest.param("a.ko.xz", "a", id="packed with xz"),
        pytest.param("a.ko.gz", "a", id="packed with gzip"),
        pytest.param("a.ko.zst", "a", id="packed with zstd"),
        pytest.param("a.ko.bz2", "", id="packed by something else"),
        pytest.param("modules.dep", "", id="another file"),
    ],
)
def test_which_module_a_file_is(file: str, expected: str) -> None:
    """In modprobe's own spelling."""
    assert module_of(file) == expected
    assert kernel_spelling("a-b_c") == "a_b_c"


def test_a_build_that_nobody_owns_is_none_of_ours() -> None:
    """Labels alone do not make it one."""
    made = builds.build(WANTED, OWNER, 60)
    assert builds.run_of(codec.convert(Build, made)) is not None
    made["metadata"]["ownerReferences"] = [{**OWNER, "controller": False}]
    assert builds.run_of(codec.convert(Build, made)) is None


def test_an_image_that_says_nothing_of_kernels() -> None:
    """It is no driver toolkit."""
    assert absent_error("i:1").message == "file etc/driver-toolkit-release.json is not present in the image i:1"


@pytest.mark.parametrize("outcome", ExaminationOutcome)
def test_a_verdict_as_an_answer(outcome: ExaminationOutcome) -> None:
    """An unknown image is not verified."""
    assert ImageVerdict(outcome=outcome, message="why").answer == Image(
        outcome is ExaminationOutcome.VERIFIED, "why", None
    )


def test_of_which_architectures_kernels_must_be_known() -> None:
    """Those of the nodes that load something, each once."""
    nodes = (
        node("a", architecture="arm64"),
        node("b", architecture="amd64"),
        node("c", architecture="amd64"),
        node("d", architecture="s390x", labels={"odd": "yes"}),
    )
    chosen = module(selector={"odd": "yes"})
    idle = codec.convert(Module, {"metadata": {"name": "idle", "namespace": "drivers"}, "spec": {}})
    assert architectures((module(),), nodes) == ("amd64", "arm64", "s390x")
    assert architectures((chosen,), nodes) == ("s390x",)
    assert architectures((idle,), nodes) == ()


@pytest.mark.parametrize(
    ("path", "kernel"),
    [
        pytest.param("opt/lib/modules/5.14.0/a.ko", "5.14.0", id="where modprobe looks"),
        pytest.param("lib/modules/5.14.0/extra/a.ko.xz", "5.14.0", id="at the root, in a folder below"),
        pytest.param("lib/modules/a.ko", "", id="in no kernel's folder"),
        pytest.param("src/a.ko", "", id="anywhere else"),
    ],
)
def test_which_kernel_a_file_is_for(path: str, kernel: str) -> None:
    """By the folder that modprobe reads."""
    assert kernel_of(path) == kernel
