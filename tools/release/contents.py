"""What a release consists of, all made of one wheel for each distribution."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from packaging.version import Version
from tools.image import build, source
from tools.release import archives, bills

from tools import packages

CHART = packages.ROOT / "deploy" / "chart"
PARTS = ("sdists", "image", "krew", "bills", "chart", "changelog")
"""Artefacts of a release in addition to the wheels."""


def write(folder: Path, architectures: Sequence[str], parts: Collection[str] = PARTS) -> None:
    """Writes the wheels and these parts into `folder`; checksums are not among them."""
    with tempfile.TemporaryDirectory(prefix="runup-parts-") as temporary:
        work = Path(temporary)
        wheels = {name: _moved(path, folder) for name, path in packages.wheels(work / "wheels").items()}
        check_versions({name: packages.version(wheel) for name, wheel in wheels.items()})
        version = packages.version(wheels[packages.RUNUP])
        if "sdists" in parts:
            for path in packages.sdists(work / "sdists").values():
                _moved(path, folder)
        if "image" in parts:
            _image(folder, work / "image", wheels, architectures)
        if "krew" in parts:
            _krew(folder, work / "krew", folder)
        if "bills" in parts:
            _bills(folder, work, wheels, architectures)
        if "chart" in parts:
            chart(CHART, folder, version)
    if "changelog" in parts:
        (folder / "CHANGELOG.md").write_text(changelog(version), encoding="utf-8")


def _moved(path: Path, folder: Path) -> Path:
    return path.rename(folder / path.name)


def check_versions(versions: Mapping[str, str]) -> None:
    """Ends the program if kube-runup is a release and what it is built with is not: no index would offer that."""
    if Version(versions[packages.RUNUP]).is_devrelease:
        return
    for name, version in versions.items():
        if Version(version).is_devrelease:
            tag = f"git tag {name}-v{Version(version).base_version}"
            raise SystemExit(f"error: {name} {version} is not a release, and kube-runup is: tag it, such as `{tag}`")


def _image(folder: Path, layout: Path, wheels: packages.Built, architectures: Sequence[str]) -> None:
    version = packages.version(wheels[packages.RUNUP])
    built = build.images(layout, architectures, wheels)
    archives.pack(archives.below(layout), folder / f"runup-image-{version}.oci.tar")
    (folder / f"runup-image-{version}.digest").write_text(f"{built.digest}\n", encoding="utf-8")


def _bills(folder: Path, work: Path, wheels: packages.Built, architectures: Sequence[str]) -> None:
    version = packages.version(wheels[packages.RUNUP])
    bill = bills.of_installation(wheels, work)
    bills.written(bill, folder / f"runup-{version}.cdx.json")
    for architecture in architectures:
        path = folder / f"runup-image-{version}-{architecture}.cdx.json"
        bills.written(bills.of_image(bill, architecture), path)


def _krew(folder: Path, made: Path, wheels: Path) -> None:
    tool = packages.ROOT / "tools" / "krew_archive.py"
    command = [sys.executable, str(tool), str(made), "--wheels", str(wheels)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for path in made.iterdir():
        path.rename(folder / path.name)


def chart(source_folder: Path, folder: Path, version: str) -> Path:
    """Packs a Helm chart as `helm package` does, with the release's version in it; returns the archive."""
    semantic = packages.semantic(version)
    files = archives.below(source_folder)
    text = files["Chart.yaml"].read_text(encoding="utf-8")
    name = re.findall(r"^name: (\S+)$", text, re.MULTILINE)[0]
    text = re.sub(r"^(version|appVersion): .*$", rf'\1: "{semantic}"', text, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="runup-chart-") as temporary:
        described = Path(temporary, "Chart.yaml")
        described.write_text(text, encoding="utf-8")
        described.chmod(0o644)
        archive = folder / f"{name}-chart-{semantic}.tgz"
        archives.pack({f"{name}/{path}": file for path, file in (files | {"Chart.yaml": described}).items()}, archive)
    return archive


# Where towncrier itself writes a section.
_RELEASES_START = "<!-- towncrier release notes start -->"


def changelog(version: str) -> str:
    """Returns CHANGELOG.md: as it is where it has a section of this release, otherwise with one of the fragments."""
    kept = (packages.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if re.search(rf"^## {re.escape(version)}\b", kept, re.MULTILINE):
        return kept
    date = source.commit().time.date().isoformat()
    towncrier = str(Path(sys.executable).with_name("towncrier"))
    command = [towncrier, "build", "--draft", "--version", version, "--date", date]
    new = subprocess.run(command, cwd=packages.ROOT, check=True, capture_output=True, text=True).stdout
    return kept.replace(_RELEASES_START, f"{_RELEASES_START}\n\n{new.strip()}", 1)
