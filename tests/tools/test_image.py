"""What the operator's image is made of, before anything is fetched or built."""

from __future__ import annotations

import gzip
import io
import tarfile
import tomllib
from pathlib import Path

import pytest
import semver
from tools.image import build, debian
from tools.image.recipe import recipe
from tools.image.tree import File, Tree, layer, read, write

from tools import packages

TREE: Tree = {
    "usr/bin/program": File(b"#!/bin/sh\n", executable=True),
    "usr/bin/other": File.link("program"),
    "tmp": File.folder(0o1777),
    "etc/hosts": File(b"127.0.0.1 localhost\n"),
}


def _members(data: bytes) -> list[tuple[str, bytes, int, str]]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as archive:
        assert all(member.mtime == member.uid == member.gid == 0 for member in archive)
        return [(member.name, member.type, member.mode, member.linkname) for member in archive]


def test_a_layer_is_sorted_and_has_the_folders_above_its_files() -> None:
    """Neither times nor owners are in it."""
    assert _members(layer(TREE).data) == [
        ("etc", tarfile.DIRTYPE, 0o755, ""),
        ("etc/hosts", tarfile.REGTYPE, 0o644, ""),
        ("tmp", tarfile.DIRTYPE, 0o1777, ""),
        ("usr", tarfile.DIRTYPE, 0o755, ""),
        ("usr/bin", tarfile.DIRTYPE, 0o755, ""),
        ("usr/bin/other", tarfile.SYMTYPE, 0o777, "program"),
        ("usr/bin/program", tarfile.REGTYPE, 0o755, ""),
    ]


def test_the_order_in_which_files_were_found_does_not_matter() -> None:
    """The same files, the same digest."""
    assert layer(dict(reversed(TREE.items()))) == layer(TREE)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Links stay links; a folder with nothing in it is none of a tree's files."""
    write(TREE, tmp_path)
    assert read(tmp_path, "in/") == {f"in/{name}": file for name, file in TREE.items() if name != "tmp"}
    assert (tmp_path / "tmp").is_dir()


@pytest.mark.parametrize("architecture", debian.ARCHITECTURES)
def test_every_package_is_locked(architecture: str) -> None:
    """By version and digest, for each machine; the interpreter is one that the wheel supports."""
    locked = debian.locked(architecture)
    assert [package.name for package in locked] == sorted(debian.PACKAGES)
    assert all(len(package.sha256) == 64 for package in locked)
    versions = {package.version for package in locked if "python3.11" in package.name}
    assert len(versions) == 1
    assert versions.pop().startswith("3.11.")


def test_both_machines_have_the_same_python() -> None:
    """One's interpreter writes the byte code of the other's image."""
    first, second = (
        {package.name: package.version for package in debian.locked(name) if "python" in package.name}
        for name in debian.ARCHITECTURES
    )
    assert first == second


def test_the_layer_of_runup_has_all_of_the_wheels() -> None:
    """What changes with each commit is not in the layer of libraries, which is the large one."""
    projects = [tomllib.loads(path.read_text()) for path in packages.ROOT.glob("packages/*/pyproject.toml")]
    wheels = [project["tool"]["hatch"]["build"]["targets"]["wheel"] for project in projects]
    folders = {Path(package).name for wheel in wheels for package in wheel["packages"]}
    assert folders | {project["project"]["name"].replace("-", "_") for project in projects} == {*build.OWN}


def test_the_recipe_is_the_containerfiles() -> None:
    """Version and revision are arguments of its build."""
    found = recipe({"VERSION": "1.2.3", "REVISION": "abc"})
    assert found.entrypoint == ("/usr/bin/cluster-version-operator",)
    assert found.linked == (
        "/opt/runup/bin/cluster-version-operator",
        "/opt/runup/bin/kernel-module-preflight",
    )
    assert "PYTHONUNBUFFERED=1" in found.env
    assert found.labels["org.opencontainers.image.version"] == "1.2.3"
    assert found.labels["org.opencontainers.image.revision"] == "abc"
    assert found.labels["io.openshift.release.operator"] == "true"


@pytest.mark.parametrize(
    ("text", "is_debian"),
    [
        pytest.param("URIs: http://a\nSuites: bookworm\nSigned-By: /x/debian-archive-keyring.gpg", True, id="Debian's"),
        pytest.param("deb http://a bookworm main", True, id="of one line, with no key"),
        pytest.param("deb [signed-by=/x/vendor.gpg] http://a tool-bookworm main", False, id="somebody else's"),
        pytest.param("URIs: http://a\nSuites: noble\n", False, id="of another distribution"),
    ],
)
def test_which_apt_sources_are_debians(text: str, is_debian: bool) -> None:
    """Sources of others are not asked: what they offer is not in the lock file."""
    assert debian.is_debian(text) is is_debian


def test_a_machine_without_debians_mirror_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of DEBIAN_SOURCES takes the place of the machine's settings."""
    monkeypatch.setattr(debian, "APT_SETTINGS", tmp_path)
    monkeypatch.delenv("DEBIAN_SOURCES", raising=False)
    with pytest.raises(SystemExit, match="DEBIAN_SOURCES"):
        debian.sources()
    monkeypatch.setenv("DEBIAN_SOURCES", "/elsewhere/snapshot.sources")
    assert debian.sources() == [Path("/elsewhere/snapshot.sources")]


@pytest.mark.parametrize(
    ("python", "semantic"),
    [
        ("1.2.3", "1.2.3"),
        ("1.2.3rc1", "1.2.3-rc.1"),
        ("0.1.0.dev0", "0.1.0-dev.0"),
        ("0.2.0.dev7+dirty", "0.2.0-dev.7+dirty"),
        ("1.2", "1.2.0"),
    ],
)
def test_versions_as_krew_and_helm_have_them(python: str, semantic: str) -> None:
    """The order of releases stays: one in development comes before the release."""
    assert packages.semantic(python) == semantic
    assert semver.Version.is_valid(semantic)
