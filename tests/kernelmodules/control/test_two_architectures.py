"""The operator, an index of images for two architectures, and nodes of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.kernelmodules.control.test_controller import BUILD, dockerfile, module_stages
from tests.kernelmodules.control.world import (
    MODULES,
    OPTIONS,
    VALIDATIONS,
    cluster_with_kernel_modules,
    module,
    running,
    validation,
)
from tests.kubekit.oci.layered import Made, elf, layout_in, put_image, put_index
from tests.kubekit.oci.registries import odd_registry

from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of

# A kernel whose name has no architecture: the Module's nodes decide which images are needed.
KERNEL = "6.1.0-9"
MACHINES = {"amd64": 62, "arm64": 183}
VERIFIED = "Verification successful (image accessible and verified), this Module will not be verified again"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "tag", "build", "expected"),
    [
        pytest.param({"amd64": "a", "arm64": "a"}, "v1", {}, ("Success", VERIFIED), id="both have the module"),
        pytest.param(
            {"amd64": "a", "arm64": ""}, "v1", {}, ("Failure", "does not contain kernel module"), id="one lacks it"
        ),
        pytest.param(
            {"amd64": "a"}, "v1", {}, ("Failure", "has no image for linux/arm64; it has amd64"), id="one is absent"
        ),
        pytest.param(
            {"amd64": "a", "arm64": ""}, "v1", BUILD, ("Failure", "which was not read completely: "), id="a push"
        ),
        pytest.param(
            {"amd64": "a", "arm64": ""},
            f"v1-{KERNEL}",
            BUILD,
            ("Failure", "which serves several architectures, with an image for one of them"),
            id="a push to a name with the kernel",
        ),
    ],
)
async def test_an_index_serves_the_nodes_of_both(
    tmp_path: Path, images: dict[str, str], tag: str, build: dict[str, object], expected: tuple[str, str]
) -> None:
    """Verified only if the image of every architecture that the Module's nodes have contains the module."""
    layout = layout_in(tmp_path)
    entries = [
        put_image(
            layout,
            [Made(f"opt/lib/modules/{KERNEL}/{name or 'other'}.ko", elf(MACHINES[architecture]))],
            architecture=architecture,
        )
        for architecture, name in images.items()
    ]
    put_index(layout, *entries, name=tag)
    with odd_registry(layout) as odd:
        options = replace(OPTIONS, inner=frozenset({odd.host}))
        async with cluster_with_kernel_modules(tmp_path) as made, running(made, options):
            for architecture in MACHINES:
                info = {"nodeInfo": {"architecture": architecture}}
                labels = {"node-role.kubernetes.io/worker": ""}
                node = {"metadata": {"name": architecture, "labels": labels}, "status": info}
                await made.create(resource_of(Node), {"apiVersion": "v1", "kind": "Node", **node})
            await dockerfile(made)
            await made.create(MODULES, module("a", f"{odd.host}/drivers/a:{tag}", **build))
            await made.create(VALIDATIONS, validation(kernelVersion=KERNEL, pushBuiltImage=True))
            found = await made.until(
                lambda status: module_stages(status).get("a", ("", ""))[0] in ("Success", "Failure")
            )
    (shown,) = found.modules
    assert (shown.verification_status, expected[1] in shown.status_reason) == (expected[0], True), shown.status_reason
