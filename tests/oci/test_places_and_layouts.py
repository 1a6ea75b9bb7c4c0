"""Where images are and go, as typed: folders, layouts on disk, registries; nothing that exists is replaced unasked."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import msgspec
import pytest
from tests.oci.registries import release, sandbox_registry, writing

from runup.oci import images
from runup.oci.access import Access
from runup.oci.build import build_release, layer_of
from runup.oci.errors import BadImage, CannotWrite, ImageNotFound, InvalidReference, OciError, WouldReplace
from runup.oci.layout import Layout, media_type_of
from runup.oci.places import LayoutPlace, destination_of, files_in, files_of, place_of, put
from runup.oci.reference import Reference, sha256

DIGEST = "sha256:" + "a" * 64
FOLDERS = ("manifests", "release-manifests")
NONE = Access()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oci:dir", LayoutPlace(Path("dir"))),
        ("oci:/a/b:5.2.0", LayoutPlace(Path("/a/b"), "5.2.0")),
        (f"oci:/a/b@{DIGEST}", LayoutPlace(Path("/a/b"), DIGEST)),
        ("oci:/a:b/c", LayoutPlace(Path("/a:b/c"))),
        ("quay.io/ocp/release:5.2.0", Reference("quay.io", "ocp/release", "5.2.0")),
        (f"docker://quay.io/a@{DIGEST}", Reference("quay.io", "a", "", DIGEST)),
    ],
)
def test_places(text: str, expected: LayoutPlace | Reference) -> None:
    """A layout or a pull spec; a layout is written back as it was typed."""
    assert place_of(text) == expected
    if isinstance(expected, LayoutPlace):
        assert str(place_of(text)) == text


@pytest.mark.parametrize("text", ["", "oci:", "release", "release:5.2.0", "folder/of/mine", "https://quay.io/a"])
def test_what_is_no_place(text: str) -> None:
    """The error has the text, and what is expected."""
    with pytest.raises(InvalidReference) as refused:
        place_of(text)
    assert repr(text) in refused.value.message
    assert "expected" in refused.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oci:dir", "oci:dir:5.2.0"),
        ("oci:dir:mine", "oci:dir:mine"),
        ("docker://quay.io/a", "quay.io/a:5.2.0"),
        ("docker://quay.io/a:mine", "quay.io/a:mine"),
    ],
)
def test_destinations(text: str, expected: str) -> None:
    """Named by the version unless there is a tag."""
    assert str(destination_of(text, "5.2.0")) == expected


def test_a_version_with_a_plus_sign_is_a_tag_all_the_same() -> None:
    """Registries allow none; a layout does."""
    assert str(destination_of("docker://quay.io/a", "5.2.0+x")) == "quay.io/a:5.2.0_x"
    assert str(destination_of("oci:dir", "5.2.0+x")) == "oci:dir:5.2.0+x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("dir", "neither oci:DIR[:TAG] nor docker://HOST/REPO:TAG", id="no scheme"),
        pytest.param("quay.io/a:1", "neither oci:DIR[:TAG] nor docker://", id="a pull spec without docker://"),
        pytest.param(f"oci:dir@{DIGEST}", "digest comes from what is in it", id="a layout by digest"),
        pytest.param(f"docker://quay.io/a@{DIGEST}", "digest comes from what is in it", id="a registry by digest"),
    ],
)
def test_what_is_no_destination(text: str, said: str) -> None:
    """The way out is named."""
    with pytest.raises(InvalidReference) as refused:
        destination_of(text, "5.2.0")
    assert said in refused.value.message


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    """Those below its folders, also in folders within, and what links lead to; nothing else."""
    (tmp_path / "manifests" / "more").mkdir(parents=True)
    (tmp_path / "manifests" / "a.yaml").write_text("a")
    (tmp_path / "manifests" / "more" / "b.yaml").write_text("b")
    (tmp_path / "README.md").write_text("r")
    (tmp_path / "manifests" / "c.yaml").symlink_to("../README.md")
    expected = {"manifests/a.yaml": b"a", "manifests/c.yaml": b"r", "manifests/more/b.yaml": b"b"}
    assert files_in(tmp_path, FOLDERS) == expected


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        pytest.param(
            lambda f: (f / "a.yaml").symlink_to("gone"), BadImage, "a.yaml: is no file", id="a link to nothing"
        ),
        pytest.param(lambda f: os.mkfifo(f / "a.yaml"), BadImage, "a.yaml: is no file", id="a pipe"),
        pytest.param(lambda f: (f / "a.yaml").symlink_to("/dev/zero"), BadImage, "a.yaml: is no file", id="a device"),
        pytest.param(lambda f: os.truncate(f / "b.yaml", 1 << 40), BadImage, "hold more than", id="a terabyte"),
        pytest.param(lambda f: (f / "b.yaml").unlink(), ImageNotFound, "holds none of manifests/", id="nothing"),
        pytest.param(lambda f: (f / "b.yaml").rename(f.parent / "b.yaml"), ImageNotFound, "holds none", id="elsewhere"),
    ],
)
def test_a_folder_that_cannot_be_packed(tmp_path: Path, spoil: object, kind: type[OciError], said: str) -> None:
    """The error names what is in the way; nothing is left out silently."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "b.yaml").touch()
    assert callable(spoil)
    try:
        spoil(folder)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        pytest.skip("this file system has no files of a terabyte")
    with pytest.raises(kind, match=said):
        files_in(tmp_path, FOLDERS)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(ImageNotFound, match="nowhere: there is no such folder"):
        files_in(tmp_path / "nowhere", FOLDERS)


def test_an_image_goes_from_layout_to_layout_and_registry(tmp_path: Path) -> None:
    """Under the name that was asked for, with the same digest and the same files everywhere."""
    made = release(tmp_path / "made")
    source = Layout.open(made.layout)
    with sandbox_registry(tmp_path) as host:
        for text in (f"oci:{tmp_path / 'other'}:x", f"docker://{host}/ocp/release:x"):
            put(source, made.digest, destination_of(text, "5.2.0"), writing(host))
            files, digest = files_of(place_of(text), FOLDERS, writing(host))
            assert digest == made.digest
            assert "release-manifests/a.yaml" in files


@pytest.mark.parametrize("kind", ["layout", "registry"])
def test_a_name_is_not_taken_from_another_image(kind: str, tmp_path: Path) -> None:
    """Unless that was asked for; the same image again is no matter."""
    one, two = release(tmp_path / "one"), release(tmp_path / "two", **{"manifests/b.yaml": b"# b"})
    with sandbox_registry(tmp_path) as host:
        text = f"oci:{tmp_path / 'target'}:x" if kind == "layout" else f"docker://{host}/ocp/release:x"
        place = destination_of(text, "")
        put(Layout.open(one.layout), one.digest, place, writing(host))
        put(Layout.open(one.layout), one.digest, place, writing(host))
        with pytest.raises(WouldReplace, match=f"is another image .{one.digest}.; choose another tag, or overwrite it"):
            put(Layout.open(two.layout), two.digest, place, writing(host))
        assert files_of(place, FOLDERS, writing(host))[1] == one.digest
        put(Layout.open(two.layout), two.digest, place, writing(host), overwrite=True)
        assert files_of(place, FOLDERS, writing(host))[1] == two.digest


def test_a_folder_with_something_else_is_not_made_a_layout(tmp_path: Path) -> None:
    """What is there stays as it is."""
    made = release(tmp_path / "made")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for folder in (tmp_path / "mine", tmp_path / "mine" / "file"):
        with pytest.raises(CannotWrite):
            put(Layout.open(made.layout), made.digest, LayoutPlace(folder, "x"), NONE)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_names_in_a_layout(tmp_path: Path) -> None:
    """By tag, by digest, or alone; else what there is is named."""
    one = release(tmp_path / "layout", "5.2.0")
    layout = Layout.open(one.layout)
    assert layout.resolve().digest == layout.resolve("5.2.0").digest == layout.resolve(one.digest).digest == one.digest
    two = release(tmp_path / "layout", "5.2.1")
    for name, said in (("5.3.0", "holds no image 5.3.0; it has 5.2.0, 5.2.1"), ("", "holds 2 images; name one")):
        with pytest.raises(ImageNotFound, match=said):
            layout.resolve(name)
    assert layout.remove("5.2.1") is True
    assert layout.remove("5.2.1") is False
    assert layout.resolve().digest == one.digest
    assert layout.resolve(two.digest).digest == two.digest


def test_the_index_is_that_of_the_image_layout_specification(tmp_path: Path) -> None:
    """Schema version 2; a name only where one was given; by name and digest, so that one content is one file."""
    made = release(tmp_path / "layout", "5.2.0")
    layout = Layout.open(made.layout)
    named = layout.resolve("5.2.0")
    nameless = msgspec.structs.replace(named, digest="sha256:" + "f" * 64, annotations={})
    layout.add_manifest(nameless)
    layout.add_manifest(msgspec.structs.replace(nameless, digest="sha256:" + "e" * 64))
    document = json.loads((made.layout / "index.json").read_bytes())
    assert document["schemaVersion"] == 2
    assert [(item["digest"][-1], item.get("annotations", {})) for item in document["manifests"]] == [
        ("e", {}),
        ("f", {}),
        (named.digest[-1], {"org.opencontainers.image.ref.name": "5.2.0"}),
    ]


@pytest.mark.parametrize("missing", ["oci-layout", "index.json"])
def test_a_folder_that_is_no_layout(missing: str, tmp_path: Path) -> None:
    """It is named, and what it lacks."""
    made = release(tmp_path / "layout")
    (made.layout / missing).unlink()
    with pytest.raises(ImageNotFound, match="is no OCI image layout"):
        Layout.open(made.layout)


@pytest.mark.parametrize("digest", ["sha256:../../etc/passwd", "../x", "sha512:" + "a" * 128, "sha256:abc", ""])
def test_a_digest_never_names_another_file(digest: str, tmp_path: Path) -> None:
    """What is no sha256 digest is refused before it becomes a path."""
    layout = Layout.create(tmp_path)
    with pytest.raises(BadImage, match="is no sha256 digest"):
        layout.blob(digest)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"{", "is no JSON", id="no JSON"),
        pytest.param(b"[]", "is no JSON object", id="a list"),
        pytest.param(b"{}", "neither an image manifest nor an index", id="neither"),
    ],
)
def test_a_document_that_is_no_manifest(data: bytes, said: str) -> None:
    """Refused for what it is."""
    with pytest.raises(BadImage, match=said):
        media_type_of(data)


def test_a_manifest_without_a_media_type() -> None:
    """Its members give it away."""
    assert media_type_of(b'{"config": {}}') == images.MANIFEST
    assert media_type_of(b'{"manifests": []}') == images.INDEX


def test_many_builders_of_one_layout_lose_nothing(tmp_path: Path) -> None:
    """Whoever writes last keeps what the others wrote."""
    versions = [f"5.2.{number}" for number in range(8)]
    threads = [threading.Thread(target=release, args=(tmp_path / "layout", version)) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    names = [item.annotations[images.REF_NAME] for item in Layout.open(tmp_path / "layout").index().manifests]
    assert sorted(names) == versions


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says so; neither a blob nor a name is there."""
    layout = Layout.create(tmp_path / "layout")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(_handle: int, _data: bytes) -> int:
        raise full

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(CannotWrite, match="No space left on device"), layout.incoming() as writer:
        writer.write(b"data")
    monkeypatch.undo()
    assert not layout.blob(sha256(b"data")).exists()
    assert [path.name for path in layout.path.iterdir() if path.name.startswith(".incoming")] == []


def test_the_same_files_make_the_same_image(tmp_path: Path) -> None:
    """Whatever their order; another byte or another executable makes another."""
    files = {"manifests/a.yaml": b"a", "manifests/b.yaml": b"b"}
    digests = {
        build_release(tmp_path / name, version="5.2.0", files=given).digest
        for name, given in (("one", files), ("two", dict(reversed(files.items()))))
    }
    assert len(digests) == 1
    assert (
        build_release(tmp_path / "three", version="5.2.0", files={**files, "manifests/a.yaml": b"x"}).digest
        not in digests
    )
    assert build_release(tmp_path / "four", version="5.2.0", files=files, operator=b"#!/bin/sh\n").digest not in digests


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/etc/passwd", "is no path inside an image"),
        ("../x", "is no path inside an image"),
        ("a//b", "is no path inside an image"),
        ("a/./b", "is no path inside an image"),
        ("a/b/c", "would be a file and a folder"),
    ],
)
def test_a_path_that_no_image_can_have(name: str, said: str) -> None:
    """Refused before anything is written."""
    with pytest.raises(BadImage, match=said):
        layer_of({name: b"", "a/b": b""} if name == "a/b/c" else {name: b""})
