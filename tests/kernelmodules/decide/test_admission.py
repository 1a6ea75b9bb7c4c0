"""The controller repeats the API server's messages about objects that no API server refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.kernel_module_rows import BAD, GOOD, module

from kubekit.api import codec
from runup.api.kmm_v1beta1 import Module, PreflightValidationOCPSpec, PreflightValidationSpec
from runup.kernelmodules.decide.admission import kernel_fault, module_faults, validation_fault

JSON = dict[str, Any]


def _module(spec: JSON, name: str = "kmod") -> Module:
    return codec.convert(Module, {"metadata": {"name": name, "namespace": "drivers"}, "spec": spec})


@pytest.mark.parametrize("spec", GOOD)
def test_nothing_is_wrong_with_what_the_server_takes(spec: JSON) -> None:
    """The same rows as on a server."""
    assert module_faults(_module(spec)) == ()


@pytest.mark.parametrize(("spec", "shown"), BAD)
def test_what_the_server_refuses_is_named(spec: JSON, shown: str) -> None:
    """In the same words."""
    assert any(fault.startswith(shown) for fault in module_faults(_module(spec)))


def test_what_is_wrong_is_named_once_for_each_mapping() -> None:
    """All of it at once, so that one edit fixes it."""
    faults = module_faults(_module(module([{"regexp": "("}, {"literal": "6.1.0"}])))
    assert [fault.partition(":")[0] for fault in faults] == [
        "invalid regexp at index 0",
        "missing spec.moduleLoader.container.kernelMappings[0].containerImage",
        "missing spec.moduleLoader.container.kernelMappings[1].containerImage",
    ]


@pytest.mark.parametrize(
    ("version", "name", "shown"),
    [
        pytest.param("1", "a" * 34, "", id="41 characters"),
        pytest.param(
            "1", "a" * 35, "have a combined length of 42 characters, which exceeds the maximum of 41", id="42"
        ),
        pytest.param("", "a" * 35, "", id="42 without a version, which no label has"),
    ],
)
def test_a_name_that_a_label_cannot_hold(version: str, name: str, shown: str) -> None:
    """No rule of a definition sees the namespace, so only the controller can say it."""
    faults = module_faults(_module(module(version=version), name))
    assert [shown in fault for fault in faults] == ([True] if shown else [])


@pytest.mark.parametrize(
    ("kernel", "shown"),
    [
        pytest.param("5.14.0-427.50.1.el9_4.x86_64", "", id="a release's"),
        pytest.param("6,1-2", "", id="three parts"),
        pytest.param("", "kernelVersion cannot be empty", id="empty"),
        pytest.param("6.1", "invalid kernelVersion 6.1", id="two parts"),
        pytest.param("tesdt", "invalid kernelVersion tesdt", id="no version"),
        pytest.param("6.1.0/..", "invalid kernelVersion 6.1.0/..", id="a path"),
        pytest.param("6.1." + "0" * 61, "invalid kernelVersion 6.1." + "0" * 61, id="too long"),
    ],
)
def test_a_kernel(kernel: str, shown: str) -> None:
    """The plain kind says it of its kernel, too."""
    assert kernel_fault(kernel) == shown
    assert validation_fault(PreflightValidationSpec(kernel_version=kernel)) == shown


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        pytest.param({"release_image": "a"}, "", id="a release"),
        pytest.param({"release_image": "a", "use_rt_kernel": True}, "", id="its real-time kernel"),
        pytest.param({"kernel_version": "6.1.0", "dtk_image": "a"}, "", id="a kernel with its toolkit"),
        pytest.param({}, "kernelVersion cannot be empty where there is no releaseImage", id="nothing"),
        pytest.param({"kernel_version": "6.1"}, "invalid kernelVersion 6.1", id="a bad kernel"),
        pytest.param(
            {"release_image": "a", "kernel_version": "6.1.0"},
            "releaseImage and kernelVersion are mutually exclusive properties",
            id="a release and a kernel",
        ),
        pytest.param(
            {"release_image": "a", "dtk_image": "b"},
            "dtkImage goes with kernelVersion; a releaseImage names its own",
            id="two toolkits",
        ),
        pytest.param(
            {"kernel_version": "6.1.0", "use_rt_kernel": True},
            "useRTKernel goes with releaseImage; a kernelVersion is the kernel itself",
            id="a kernel and a flag",
        ),
    ],
)
def test_a_validation_for_a_release(spec: JSON, shown: str) -> None:
    """Exactly one of the release and the kernel."""
    assert validation_fault(PreflightValidationOCPSpec(**spec)) == shown
