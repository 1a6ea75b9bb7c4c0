"""The release that the tests of this folder look at: built once, since it takes a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.journeys.install.checkouts import TAGS, build_release, copy

from kubekit.oci.signatures import generate_key


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of this checkout's files, tagged, and signed by a key that was made for it."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "key.asc").write_bytes(generate_key().secret)
    return build_release(copy(folder / "checkout", *TAGS), RUNUP_SIGNING_KEY=str(folder / "key.asc"))
