"""Reads the manifests that the components are made of, from the installation or the checkout."""

from __future__ import annotations

from pathlib import Path

import runup
from runup.install.control.sets import InstallError
from runup.install.decide.component import Component, Platform
from runup.packaged_files import packaged_files


def manifests(component: Component, platform: Platform) -> dict[str, bytes]:
    """Returns the files of `component` by name; its definitions where the platform lacks them. Raises InstallError."""
    package = Path(runup.__file__).parent
    files = {file.name: file.read_bytes() for file in packaged_files(f"deploy/{component.folder}", "*.yaml")}
    missing = [] if files else [f"deploy/{component.folder}"]
    definitions = component.definitions if platform is Platform.KUBERNETES else ()
    for name in definitions:
        file = package / "sandbox" / "crds" / name
        if file.is_file():
            files[name] = file.read_bytes()
    missing += [name for name in definitions if name not in files]
    if missing:
        raise InstallError(f"this installation of runup lacks {', '.join(missing)}: install it anew")
    return files
