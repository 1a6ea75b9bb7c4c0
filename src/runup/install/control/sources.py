"""Reads the manifests that the components are made of, from the installation or the checkout."""

from __future__ import annotations

from pathlib import Path

import runup
from runup.install.control.sets import InstallError
from runup.install.decide.component import Component, Platform


def manifests(component: Component, platform: Platform) -> dict[str, bytes]:
    """Returns the files of `component` by name; its definitions where the platform lacks them. Raises InstallError."""
    package = Path(runup.__file__).parent
    places = (package / "deploy" / component.folder, package.parent.parent / "deploy" / component.folder)
    files = next((deploy_files for place in places if (deploy_files := _files(place))), {})
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


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.yaml"))}
