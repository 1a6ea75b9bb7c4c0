"""No link of a sandbox's risk is dead: its releases name a base, and what is there answers."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from kubekit.oci.layers import open_image, read_folders
from kubekit.oci.layout import Layout
from runup.release.decide.payload import METADATA_FILE, load_payload
from runup.report import documentation
from runup.sandbox.processes.services import Registry
from runup.sandbox.scenario import folder, scenario_releases


async def test_a_releases_links_lead_to_pages_that_answer(tmp_path: Path) -> None:
    """The base in the metadata of a release is served by the registry that the release comes from."""
    async with Registry(tmp_path / "registry") as registry, aiohttp.ClientSession() as session:
        scenario = folder.load(folder.find("skip-level"))
        newest = scenario_releases.build(scenario, tmp_path, registry=registry.host)[-1]
        files = read_folders(
            open_image(Layout.open(tmp_path / "registry"), newest.built.digest), scenario_releases.FOLDERS
        )
        base = load_payload(files, source=METADATA_FILE).metadata.documentation_base
        async with session.get(documentation.page("MachineConfigPoolPaused-infra", base)) as answer:
            assert answer.status == 200
            assert (await answer.text()).startswith("# MachineConfigPoolPaused\n")


@pytest.mark.parametrize("name", ["NoSuchRisk", "..%2FREADME", "README", "writing-checks", "%2Fetc%2Fpasswd"])
async def test_nothing_but_pages_is_served(tmp_path: Path, name: str) -> None:
    """A name that is no risk's leads nowhere."""
    async with (
        Registry(tmp_path / "registry") as registry,
        aiohttp.ClientSession() as session,
        session.get(f"{registry.url}/docs/checks/{name}") as answer,
    ):
        assert answer.status == 404
