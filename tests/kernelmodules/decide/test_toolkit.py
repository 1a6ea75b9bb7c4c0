"""Which kernels a release brings: what its references and its driver toolkit say, and what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubekit.error_types import Terminal
from runup.kernelmodules.decide.toolkit import toolkit_image, toolkit_of

RELEASE = "quay.example/release@sha256:1"
DTK = "quay.example/dtk@sha256:2"
KERNEL, RT = "5.14.0-427.50.1.el9_4.x86_64", "5.14.0-427.50.1.el9_4.x86_64+rt"


def references(*tags: Any) -> bytes:
    """An ImageStream."""
    return json.dumps({"kind": "ImageStream", "spec": {"tags": list(tags)}}).encode()


def tag(name: str, image: str) -> dict[str, Any]:
    """A tag of it."""
    return {"name": name, "from": {"kind": "DockerImage", "name": image}}


def test_the_toolkits_image() -> None:
    """It is found among the others."""
    assert toolkit_image(references(tag("cli", "a"), tag("driver-toolkit", DTK)), RELEASE) == DTK


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"{", "failed to unmarshal release-manifests/image-references data", id="no JSON"),
        pytest.param(b"[]", "failed to unmarshal release-manifests/image-references data", id="no object"),
        pytest.param(b'"\xff"', "failed to unmarshal release-manifests/image-references data", id="no UTF-8"),
        pytest.param(b"{}", "failed to find driver-toolkit entry in the release-manifests/image", id="no tags"),
        pytest.param(references(tag("cli", "a")), "failed to find driver-toolkit entry", id="another's tag"),
        pytest.param(references("odd", None), "failed to find driver-toolkit entry", id="odd tags"),
        pytest.param(
            references({"name": "driver-toolkit"}), "driver-toolkit local reference is missing from", id="no image"
        ),
        pytest.param(references(tag("driver-toolkit", "")), "local reference is missing", id="an empty image"),
    ],
)
def test_references_without_a_toolkit(data: bytes, said: str) -> None:
    """The error names the file and the release."""
    with pytest.raises(Terminal, match=said):
        toolkit_image(data, RELEASE)


@pytest.mark.parametrize(
    ("document", "architecture", "kernels"),
    [
        pytest.param({"KERNEL_VERSION": KERNEL}, "amd64", (KERNEL, ""), id="a kernel"),
        pytest.param(
            {"KERNEL_VERSION": KERNEL, "RT_KERNEL_VERSION": RT}, "amd64", (KERNEL, RT), id="and one of real time"
        ),
        pytest.param(
            {"KERNEL_VERSION": "4.18.0-305.el8_4"}, "arm64", ("4.18.0-305.el8_4.aarch64", ""), id="without architecture"
        ),
        pytest.param(
            {"KERNEL_VERSION": "4.18.0-305.el8.aarch64", "RT_KERNEL_VERSION": ""},
            "arm64",
            ("4.18.0-305.el8.aarch64", ""),
            id="another architecture",
        ),
        pytest.param({"KERNEL_VERSION": KERNEL}, "", (KERNEL, ""), id="whatever architecture"),
    ],
)
def test_what_a_toolkit_says(document: dict[str, str], architecture: str, kernels: tuple[str, str]) -> None:
    """Its kernels as nodes report them."""
    found = toolkit_of(json.dumps({"RHEL_VERSION": "9.4", **document}).encode(), DTK, architecture)
    assert (found.kernel, found.real_time) == kernels


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"no", "failed to unmarshal etc/driver-toolkit-release.json data", id="no JSON"),
        pytest.param(b"[]", "failed to unmarshal etc/driver-toolkit-release.json data", id="no object"),
        pytest.param(b'"\xff"', "failed to unmarshal etc/driver-toolkit-release.json data", id="no UTF-8"),
        pytest.param(
            b'{"RHEL_VERSION": "9.4"}',
            r"both KernelVersion <> and RHEL_VERSION <9.4> should not be empty",
            id="no kernel",
        ),
        pytest.param(b'{"KERNEL_VERSION": 5, "RHEL_VERSION": "9"}', "should not be empty", id="a number"),
        pytest.param(b'{"KERNEL_VERSION": "5.14.0-1.x86_64"}', "should not be empty", id="no system"),
        pytest.param(
            b'{"KERNEL_VERSION": "5.14.0-1.el9.aarch64", "RHEL_VERSION": "9.4"}',
            "is for arm64, kernel 5.14.0-1.el9.aarch64: the release has no driver toolkit for amd64",
            id="another architecture's",
        ),
    ],
)
def test_a_toolkit_that_does_not_say(data: bytes, said: str) -> None:
    """The error names file, image and what was there."""
    with pytest.raises(Terminal, match=said):
        toolkit_of(data, DTK, "amd64")


def test_no_real_time_kernel() -> None:
    """Asked for where it does not exist, it is an error and not the other kernel."""
    found = toolkit_of(json.dumps({"KERNEL_VERSION": KERNEL, "RHEL_VERSION": "9.4"}).encode(), DTK)
    assert found.chosen(real_time=False) == KERNEL
    with pytest.raises(Terminal, match="rt_kernel_version is missing for this release, probably not and x86_64"):
        found.chosen(real_time=True)
