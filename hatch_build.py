"""Writes `runup/build_info.py` into the wheel: version, commit, and the image that RUNUP_IMAGE names."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "runup/build_info.py"


class BuildInfo(BuildHookInterface):
    """The hook; an editable installation keeps the checkout's own module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Puts the module into the wheel."""
        if version != "standard":
            return
        values = {
            "VERSION": self.metadata.version,
            "REVISION": _revision(self.root),
            "IMAGE": _pull_spec(os.environ.get("RUNUP_IMAGE", ""), self.metadata.version),
        }
        text = '"""What this copy of runup was built from."""\n\n'
        # As JSON's, the quotes are those of the house.
        text += "".join(f'{name} = "{value}"\n' for name, value in values.items())
        # Not in the checkout: several may build there at a time.
        self._folder = tempfile.TemporaryDirectory(prefix="runup-build-")
        written = Path(self._folder.name, "build_info.py")
        written.write_text(text, encoding="utf-8")
        build_data["force_include"][str(written)] = MODULE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  the hook's
        """Removes what was written for the wheel."""
        if version == "standard":
            self._folder.cleanup()


def _revision(root: str) -> str:
    if not Path(root, ".git").exists():
        return ""
    words = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _pull_spec(image: str, version: str) -> str:
    """Returns `image` with the version as its tag, unless it has a tag or a digest."""
    name = image.rpartition("/")[2]
    return image if not image or ":" in name or "@" in name else f"{image}:{version.replace('+', '-')}"
