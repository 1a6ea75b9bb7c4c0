"""What is in an installation of kube-runup with its sandbox, and in the image: CycloneDX."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.image import debian

from tools import packages

PROGRAM = str(Path(sys.executable).with_name("cyclonedx-py"))
Bill = dict[str, Any]


def of_installation(wheels: packages.Built, folder: Path) -> Bill:
    """Returns the bill of the wheels with the locked versions of what they need, installed in `folder` for it."""
    packages.environment(folder / "venv")
    packages.install(wheels, "--python", folder / "venv")
    bill = folder / "bill.json"
    words = ["environment", str(folder / "venv" / "bin" / "python"), "--pyproject", "packages/runup/pyproject.toml"]
    options = ["--output-reproducible", "--of", "JSON", "-o", str(bill)]
    subprocess.run([PROGRAM, *words, *options], cwd=packages.ROOT, check=True, stderr=subprocess.DEVNULL)
    found: Bill = json.loads(bill.read_text(encoding="utf-8"))
    # pyproject.toml leaves the version to the tag.
    found["metadata"]["component"]["version"] = packages.version(wheels[packages.RUNUP])
    return found


def of_image(installation: Bill, architecture: str) -> Bill:
    """Returns the image's: that of the installation with Debian's packages."""
    components = installation["components"]
    debs = [_deb(package) for package in debian.locked(architecture)]
    known = {each["bom-ref"] for each in (*components, *debs)} | {installation["metadata"]["component"].get("bom-ref")}
    edges = [
        {**each, "dependsOn": [ref for ref in each.get("dependsOn", ()) if ref in known]}
        for each in installation.get("dependencies", ())
        if each["ref"] in known
    ]
    return {**installation, "components": [*components, *debs], "dependencies": edges}


def written(bill: Bill, path: Path) -> None:
    """Writes a bill."""
    path.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _deb(package: debian.Locked) -> Bill:
    purl = f"pkg:deb/debian/{package.name}@{quote(package.version)}?arch={package.architecture}&distro={debian.SUITE}"
    return {
        "bom-ref": purl,
        "type": "library",
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
    }
