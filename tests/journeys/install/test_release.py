"""A release of runup's own: one commit gives the same files twice, signed, and each says which release it is of."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from tests.journeys.install.checkouts import IMAGE, TIME, VERSION, VERSIONS, build_release, clone, copy
from tools.image import debian

from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from tools import packages

LIMIT_S = 900

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * LIMIT_S),
    pytest.mark.xdist_group("image"),
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get, by which the image's base is fetched"),
]


def test_the_same_commit_gives_the_same_files(release: Path, tmp_path: Path) -> None:
    """All of them, to the byte; without a key they are not signed."""
    again = build_release(clone(release.parents[1], tmp_path / "another"), TZ="Asia/Tokyo", PYTHONHASHSEED="9")
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()
    assert not (again / "SHA256SUMS.asc").exists()


def test_the_checksums_are_signed_and_hold(release: Path, tmp_path: Path) -> None:
    """By the tools that everybody has."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=release, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    listed = {line.split()[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in release.iterdir()} - {"SHA256SUMS", "SHA256SUMS.asc", "signing-key.asc"}
    if shutil.which("gpg") is None:
        pytest.skip("no gpg")
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--no-autostart"]
    subprocess.run([*gpg, "--import", str(release / "signing-key.asc")], check=True, capture_output=True)
    verify = [*gpg, "--status-fd", "1", "--verify", str(release / "SHA256SUMS.asc")]
    changed = tmp_path / "SHA256SUMS"
    changed.write_text((release / "SHA256SUMS").read_text().replace("a", "b"))
    for file, shown in ((release / "SHA256SUMS", b"GOODSIG"), (changed, b"BADSIG")):
        done = subprocess.run([*verify, str(file)], capture_output=True, check=False)
        assert shown in done.stdout, done.stderr


def test_what_is_in_it(release: Path) -> None:
    """Everything that somebody would look for, by names that do not clash in one place of downloads."""
    platforms = ("linux-amd64", "linux-arm64", "darwin-arm64")
    wanted = {
        "CHANGELOG.md",
        "SHA256SUMS",
        "SHA256SUMS.asc",
        "signing-key.asc",
        "runup.yaml",
        *(f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name, version in VERSIONS.items()),
        *(f"{name.replace('-', '_')}-{version}.tar.gz" for name, version in VERSIONS.items()),
        f"runup-{VERSION}.cdx.json",
        f"runup-chart-{VERSION}.tgz",
        f"runup-image-{VERSION}.digest",
        f"runup-image-{VERSION}.oci.tar",
        *(f"runup-{platform}.tar.gz" for platform in platforms),
        *(f"runup-image-{VERSION}-{architecture}.cdx.json" for architecture in debian.ARCHITECTURES),
    }
    assert {path.name for path in release.iterdir()} == wanted


def test_the_wheel_knows_its_image(release: Path) -> None:
    """Named without a tag, it is that of the version."""
    with zipfile.ZipFile(release / f"kube_runup-{VERSION}-py3-none-any.whl") as wheel:
        assert f'IMAGE = "{IMAGE}:{VERSION}"' in wheel.read("runup/build_info.py").decode()


def test_the_image_is_for_both_machines(release: Path, tmp_path: Path) -> None:
    """One digest for both, as a pull by digest wants it; the wheel in it is the one next to it."""
    with tarfile.open(release / f"runup-image-{VERSION}.oci.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    layout = Layout.open(tmp_path)
    assert layout.resolve(VERSION).digest == (release / f"runup-image-{VERSION}.digest").read_text().strip()
    for architecture in debian.ARCHITECTURES:
        image = open_image(layout, VERSION, architecture=architecture)
        assert image.config.architecture == architecture
        assert image.labels["org.opencontainers.image.version"] == VERSION
        assert image.config.created == TIME


def test_the_plugins_are_those_of_the_manifest(release: Path) -> None:
    """krew compares each with its checksum."""
    plugin = yaml.safe_load((release / "runup.yaml").read_text())
    assert plugin["spec"]["version"] == f"v{VERSION}"
    sums = dict(reversed(line.split()) for line in (release / "SHA256SUMS").read_text().splitlines())
    for platform in plugin["spec"]["platforms"]:
        assert platform["sha256"] == sums[platform["uri"].rpartition("/")[2]]


def test_the_chart_is_of_the_same_version(release: Path) -> None:
    """All of its files are in it, those too that the checkout has by a link."""
    with tarfile.open(release / f"runup-chart-{VERSION}.tgz") as archive:
        described = archive.extractfile("runup/Chart.yaml")
        assert described is not None
        chart = yaml.safe_load(described.read())
        assert all(member.isfile() for member in archive)
        assert {"runup/values.yaml", "runup/files/update-status/kubernetes/objects.yaml"} <= set(archive.getnames())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_the_bills_say_what_is_installed(release: Path) -> None:
    """The image's has Debian's packages as well."""
    bill = json.loads((release / f"runup-{VERSION}.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == VERSION
    names = {each["name"] for each in bill["components"]}
    assert {"aiohttp", "kubekit", "kubesandbox", "orjson"} <= names
    for architecture in debian.ARCHITECTURES:
        image = json.loads((release / f"runup-image-{VERSION}-{architecture}.cdx.json").read_text())
        of_image = {each["name"]: each.get("purl", "") for each in image["components"]}
        assert of_image.keys() == names | set(debian.PACKAGES)
        assert of_image["libssl3"].startswith("pkg:deb/debian/libssl3@3.0.")
        refs = {each["bom-ref"] for each in image["components"]}
        assert all(set(edge.get("dependsOn", ())) <= refs for edge in image["dependencies"])


def test_the_changelog_has_every_fragment(release: Path) -> None:
    """Under the version and the commit's day, by kind, above the earlier releases."""
    checkout = release.parents[1]
    text = (release / "CHANGELOG.md").read_text()
    new, earlier = text.split("\n## ")[1:3]
    assert (new.splitlines()[0], earlier.splitlines()[0]) == (f"{VERSION} ({TIME[:10]})", "0.1.0")
    fragments = list((checkout / "changelog.d").glob("*.md"))
    kinds = {path.suffixes[0].removeprefix(".").capitalize() for path in fragments}
    assert set(re.findall(r"^### (\w+)$", new, re.MULTILINE)) == kinds
    assert len(re.findall(r"^- ", new, re.MULTILINE)) == len({path.read_text() for path in fragments})


def test_a_release_with_a_section_has_the_changelog_of_the_checkout(tmp_path: Path) -> None:
    """The section of the first release is curated."""
    checkout = copy(tmp_path / "checkout")
    code = "from tools.release import contents; print(contents.changelog('0.1.0'), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True)
    assert done.stdout == (checkout / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", packages.NAMES)
def test_the_sources_build_the_same_wheel(release: Path, name: str, tmp_path: Path) -> None:
    """To the byte, without git or the settings of the release: the sources hold version, commit and image."""
    with tarfile.open(packages.found(release, ".tar.gz")[name]) as archive:
        archive.extractall(tmp_path, filter="data")
    (sources,) = tmp_path.iterdir()
    built = packages.wheel_of(sources, tmp_path / "dist")
    released = packages.found(release)[name]
    assert packages.version(built) == VERSIONS[name]
    assert (built.name, built.read_bytes()) == (released.name, released.read_bytes())
