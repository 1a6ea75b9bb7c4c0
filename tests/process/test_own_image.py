"""Which image belongs to this runup."""

from __future__ import annotations

import pytest

from runup import build_info
from runup.process.names import default_image


@pytest.mark.parametrize(
    ("named", "image"),
    [
        pytest.param("registry.example/runup:1.2.3", "registry.example/runup:1.2.3", id="named when it was built"),
        pytest.param("", None, id="not named, as in a checkout"),
    ],
)
def test_the_image_of_the_same_release(named: str, image: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """None means that nobody can tell: whoever installs has to name one."""
    monkeypatch.setattr(build_info, "IMAGE", named)
    assert default_image() == image
