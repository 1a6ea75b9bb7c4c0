"""Adds to the wheel what is outside this folder, and writes `runup/build_info.py`: version, commit, and image.

RUNUP_IMAGE names the operator's image of the same release.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "runup/build_info.py"
# What the commands read at run time next to the code, so that an installation does all that a checkout does.
READ_AT_RUN_TIME = (
    "deploy/manifests",
    "deploy/update-status",
    "deploy/kernel-module-preflight",
    "deploy/update-policy",
    "deploy/fleet-update",
    "docs/reference/checks",
)


class BuildInfo(BuildHookInterface):
    """The hook; an editable installation keeps the checkout's own module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files and the module. An sdist has both, so that the same wheel is built from it."""
        if version != "standard":
            return
        root = Path(self.root)
        is_checkout = not (root / "PKG-INFO").is_file()
        repository = root.parents[1] if is_checkout else root
        sources, packaged = ("src/", "") if self.target_name == "sdist" else ("", "runup/")
        # Not in the checkout: several may build there at a time.
        self._folder = tempfile.TemporaryDirectory(prefix="runup-build-")
        for folder in READ_AT_RUN_TIME:
            for path in (repository / folder).rglob("*"):
                if path.is_file():
                    name = path.relative_to(repository)
                    # Of a link, a copy: an archive would have the link, and a file that is named here twice once.
                    source = _copied(path, Path(self._folder.name, name)) if path.is_symlink() else path
                    build_data["force_include"][str(source)] = f"{packaged}{name}"
        before = runpy.run_path(str(root / "src" / MODULE))
        values = {
            "VERSION": self.metadata.version,
            "REVISION": _revision(root) if is_checkout else before["REVISION"],
            "IMAGE": _pull_spec(os.environ.get("RUNUP_IMAGE", ""), self.metadata.version) or before["IMAGE"],
        }
        text = '"""What this copy of runup was built from."""\n\n'
        # As JSON's, the quotes are those of the house.
        text += "".join(f'{name} = "{value}"\n' for name, value in values.items())
        written = Path(self._folder.name, "build_info.py")
        written.write_text(text, encoding="utf-8")
        build_data["force_include"][str(written)] = f"{sources}{MODULE}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002  the hook's
        """Removes what was written."""
        if version == "standard":
            self._folder.cleanup()


def _copied(path: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    return shutil.copyfile(path, to)


def _revision(root: Path) -> str:
    words = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _pull_spec(image: str, version: str) -> str:
    """Returns `image` with the version as its tag, unless it has a tag or a digest."""
    name = image.rpartition("/")[2]
    return image if not image or ":" in name or "@" in name else f"{image}:{version.replace('+', '-')}"
