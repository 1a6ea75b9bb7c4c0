"""What a release calls its images, for checks that run containers: known, or not known and asked again later."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.kubekit.oci.layered import Made, layout_in, put_image
from tests.kubekit.oci.registries import odd_registry
from tests.release.control.test_registry_access import cluster

from kubekit.kube.clock import ManualClock
from kubekit.oci.signatures import Verifier
from runup.clusterversion.control.release_verification import RIGHTS_AGAIN, ReleaseChecks
from runup.release.control.release_images import ReleaseImages
from runup.release.decide.payload import IMAGE_REFERENCES_FILE

TAG = {"name": "tool", "from": {"kind": "DockerImage", "name": "registry.example/tool@sha256:1"}}
REFERENCES = {
    "kind": "ImageStream",
    "apiVersion": "image.openshift.io/v1",
    "metadata": {"name": "5.2.0"},
    "spec": {"tags": [TAG]},
}


@pytest.mark.parametrize(
    ("files", "known"),
    [
        pytest.param(
            [Made(IMAGE_REFERENCES_FILE, json.dumps(REFERENCES).encode())],
            {"tool": "registry.example/tool@sha256:1"},
            id="a release",
        ),
        pytest.param([Made(IMAGE_REFERENCES_FILE, b"{")], None, id="references that nobody can read"),
        pytest.param([Made("etc/motd", b"")], None, id="no release"),
    ],
)
async def test_what_it_calls_its_images(tmp_path: Path, files: list[Made], known: dict[str, str] | None) -> None:
    """Asked once however often; what is not known is none of its images for a while, and then looked for again."""
    layout = layout_in(tmp_path)
    clock, done = ManualClock(), asyncio.Event()
    with odd_registry(layout) as odd:
        image = f"{odd.host}/ocp/release@{put_image(layout, files).digest}"
        async with cluster({}) as client:
            checks = ReleaseChecks(
                client,
                lambda: Verifier((), ()),
                clock,
                done.set,
                images=ReleaseImages(client),
                custom_stores=lambda: (),
            )
            checks.read_images(image)
            assert checks.states[image].listing
            checks.read_images(image)
            with capture_logs() as logs:
                async with asyncio.timeout(90):
                    await done.wait()
                await checks.close()
    assert [line["event"] for line in logs] == ([] if known else ["preflight: container checks are not run"])
    state = checks.states[image]
    assert not state.listing
    assert dict(state.images) == (known or {})
    assert state.images_until == (None if known else clock.now() + RIGHTS_AGAIN)
    assert len([asked for asked in odd.asked if "/manifests/" in asked.path]) == 1
