"""Parts of a release of runup's own that need nothing to be fetched."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest
import yaml
from tools.release import archives, contents, signing


def _folder(folder: Path, mtime: int) -> Path:
    (folder / "inner").mkdir(parents=True)
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    (folder / "inner" / "data").write_text("data\n")
    (folder / "linked").symlink_to("inner")
    for path in (folder / "program", folder / "inner" / "data"):
        os.utime(path, (mtime, mtime))
    return folder


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz"])
def test_an_archive_depends_on_its_content_alone(name: str, tmp_path: Path) -> None:
    """Neither on times, nor on the folder, nor on its own name's folder; links are what they lead to."""
    packed = []
    for folder, mtime in (("one", 1_000_000_000), ("another", 1_500_000_000)):
        files = archives.below(_folder(tmp_path / folder, mtime))
        archives.pack(files, tmp_path / folder / name)
        packed.append((tmp_path / folder / name).read_bytes())
    assert packed[0] == packed[1]
    with tarfile.open(fileobj=io.BytesIO(packed[0])) as archive:
        found = [(member.name, member.mode, member.isfile()) for member in archive]
    assert found == [("inner/data", 0o644, True), ("linked/data", 0o644, True), ("program", 0o755, True)]


def test_the_chart_has_the_releases_version(tmp_path: Path) -> None:
    """One in development is a version that Helm takes; the checkout's own file stays."""
    before = (contents.CHART / "Chart.yaml").read_bytes()
    archive = contents.chart(contents.CHART, tmp_path, "1.3.0.dev5")
    assert archive.name == "runup-chart-1.3.0-dev.5.tgz"
    with tarfile.open(archive) as packed:
        described = packed.extractfile("runup/Chart.yaml")
        assert described is not None
        chart = yaml.safe_load(described.read())
    assert (chart["name"], chart["version"], chart["appVersion"]) == ("runup", "1.3.0-dev.5", "1.3.0-dev.5")
    assert (contents.CHART / "Chart.yaml").read_bytes() == before


def test_a_release_is_built_with_releases() -> None:
    """The error names the tag that is missing; a version in development may be built with others."""
    versions = {"kubekit": "0.4.0", "kubesandbox": "0.5.7.dev3", "kube-runup": "1.2.3"}
    with pytest.raises(SystemExit) as ended:
        contents.check_versions(versions)
    assert str(ended.value) == (
        "error: kubesandbox 0.5.7.dev3 is not a release, and kube-runup is: "
        "tag it, such as `git tag kubesandbox-v0.5.7`"
    )
    contents.check_versions(versions | {"kubesandbox": "0.5.7"})
    contents.check_versions(versions | {"kube-runup": "1.2.4.dev1"})


def test_checksums_are_of_files_in_their_order(tmp_path: Path) -> None:
    """As `sha256sum --check` reads them."""
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a", "b")}
    assert signing.checksums(tmp_path) == f"{digests['a']}  a\n{digests['b']}  b\n"


def test_no_key_is_no_signature() -> None:
    """That is said, and no failure."""
    assert signing.key("") is None


@pytest.mark.parametrize(
    "content", [None, b"", b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n"], ids=["absent", "empty", "cut"]
)
def test_a_key_that_cannot_be_used_ends_it_before_anything_is_built(content: bytes | None, tmp_path: Path) -> None:
    """With the file's name and the way out, and nothing of what is in it."""
    path = tmp_path / "key.asc"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        signing.key(str(path))
    assert str(ended.value).startswith(f"error: RUNUP_SIGNING_KEY={path}: ")
    assert str(ended.value).endswith("name a file with an armored secret key")
