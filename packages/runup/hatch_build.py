"""Adds to the wheel what is outside this folder, and writes `runup/build_info.py`: version, commit, and image.

RUNUP_IMAGE names the operator's image of the same release.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "runup/build_info.py"
# What the commands read at run time next to the code, so that an installation does all that a checkout does.
READ_AT_RUN_TIME = ("deploy/manifests", "deploy/update-status", "deploy/kernel-module-preflight", "docs/checks")


class BuildInfo(BuildHookInterface):
    """The hook; an editable installation keeps the checkout's own module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files; an sdist has them at the same places as the checkout, so that a wheel builds from it."""
        if version != "standard":
            return
        # An unpacked sdist has the files itself; in a checkout they are two folders up.
        root = Path(self.root)
        repository = root if (root / "deploy").is_dir() else root.parents[1]
        if self.target_name == "sdist":
            build_data["force_include"].update({str(repository / name): name for name in READ_AT_RUN_TIME})
            return
        build_data["force_include"].update({str(repository / name): f"runup/{name}" for name in READ_AT_RUN_TIME})
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
        if version == "standard" and self.target_name == "wheel":
            self._folder.cleanup()


def _revision(root: str) -> str:
    if not any((folder / ".git").exists() for folder in (Path(root), Path(root).parents[1])):
        return ""
    words = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _pull_spec(image: str, version: str) -> str:
    """Returns `image` with the version as its tag, unless it has a tag or a digest."""
    name = image.rpartition("/")[2]
    return image if not image or ":" in name or "@" in name else f"{image}:{version.replace('+', '-')}"
