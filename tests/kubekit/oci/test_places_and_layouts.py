"""Where images are and go, as typed: folders, layouts on disk, registries; nothing that exists is replaced unasked."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import msgspec
import pytest
from tests.kubekit.oci.registries import release, sandbox_registry, writing

from kubekit.oci import images
from kubekit.oci.access import Access
from kubekit.oci.image_locations import (
    LayoutLocation,
    copy_image,
    parse_destination,
    parse_location,
    read_folder_files,
    read_image_files,
)
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout, media_type_of
from kubekit.oci.reference import Reference, sha256
from kubekit.oci.registry_errors import BadImage, CannotWrite, ImageNotFound, InvalidReference, NameInUse, OciError
from runup.release.control.image_build import build_release, layer_of

DIGEST = "sha256:" + "a" * 64
FOLDERS = ("manifests", "release-manifests")
NONE = Access()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oci:dir", LayoutLocation(Path("dir"))),
        ("oci:/a/b:5.2.0", LayoutLocation(Path("/a/b"), "5.2.0")),
        (f"oci:/a/b@{DIGEST}", LayoutLocation(Path("/a/b"), DIGEST)),
        ("oci:/a:b/c", LayoutLocation(Path("/a:b/c"))),
        ("oci:/a:b/c:d", LayoutLocation(Path("/a:b/c"), "d")),
        ("oci:dir@home", LayoutLocation(Path("dir@home"))),
        ("oci:dir@home:5.2.0", LayoutLocation(Path("dir@home"), "5.2.0")),
        ("quay.io/ocp/release:5.2.0", Reference("quay.io", "ocp/release", "5.2.0")),
        (f"docker://quay.io/a@{DIGEST}", Reference("quay.io", "a", "", DIGEST)),
    ],
)
def test_places(text: str, expected: LayoutLocation | Reference) -> None:
    """A layout or a pull spec; a layout is written back as it was typed."""
    assert parse_location(text) == expected
    if isinstance(expected, LayoutLocation):
        assert str(parse_location(text)) == text


@pytest.mark.parametrize("text", ["oci:", "oci::5.2.0", f"oci:@{DIGEST}"])
def test_a_layout_without_a_folder(text: str) -> None:
    """Nothing is taken for the folder that one is in."""
    with pytest.raises(InvalidReference, match="names no folder; expected oci:DIR or oci:DIR:TAG"):
        parse_location(text)


@pytest.mark.parametrize("text", ["", "oci:", "release", "release:5.2.0", "folder/of/mine", "https://quay.io/a"])
def test_what_is_no_place(text: str) -> None:
    """The error has the text, and what is expected."""
    with pytest.raises(InvalidReference) as refused:
        parse_location(text)
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
    assert str(parse_destination(text, "5.2.0")) == expected


def test_a_version_with_a_plus_sign_is_a_tag_all_the_same() -> None:
    """Registries allow none; a layout does."""
    assert str(parse_destination("docker://quay.io/a", "5.2.0+x")) == "quay.io/a:5.2.0_x"
    assert str(parse_destination("oci:dir", "5.2.0+x")) == "oci:dir:5.2.0+x"


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
        parse_destination(text, "5.2.0")
    assert said in refused.value.message


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    """Those below its folders, also in folders within, and what links lead to; nothing else."""
    (tmp_path / "manifests" / "more").mkdir(parents=True)
    (tmp_path / "manifests" / "a.yaml").write_text("a")
    (tmp_path / "manifests" / "more" / "b.yaml").write_text("b")
    (tmp_path / "README.md").write_text("r")
    (tmp_path / "manifests" / "c.yaml").symlink_to("../README.md")
    expected = {"manifests/a.yaml": b"a", "manifests/c.yaml": b"r", "manifests/more/b.yaml": b"b"}
    assert read_folder_files(tmp_path, FOLDERS) == expected


@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        pytest.param(
            lambda f: (f / "a.yaml").symlink_to("gone"),
            BadImage,
            "a.yaml: cannot be packed, because it is a broken link",
            id="a link to nothing",
        ),
        pytest.param(
            lambda f: os.mkfifo(f / "a.yaml"),
            BadImage,
            "a.yaml: cannot be packed, because it is a special file",
            id="a pipe",
        ),
        pytest.param(
            lambda f: (f / "a.yaml").symlink_to("/dev/zero"), BadImage, "a.yaml: cannot be packed", id="a device"
        ),
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
        read_folder_files(tmp_path, FOLDERS)


def test_how_much_a_folder_may_hold(tmp_path: Path) -> None:
    """As much as a release may, in all of its files; to the byte."""
    for name, size in (("manifests", 20 << 20), ("release-manifests", 12 << 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
        os.truncate(tmp_path / name / "a", size)
    assert sum(map(len, read_folder_files(tmp_path, FOLDERS).values())) == 33_554_432
    (tmp_path / "manifests" / "b").write_text("b")
    with pytest.raises(BadImage, match="manifests, release-manifests hold more than 33554432 bytes"):
        read_folder_files(tmp_path, FOLDERS)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(ImageNotFound, match="nowhere: there is no such folder"):
        read_folder_files(tmp_path / "nowhere", FOLDERS)


def test_an_image_goes_from_layout_to_layout_and_registry(tmp_path: Path) -> None:
    """Under the name that was asked for, with the same digest and the same files everywhere."""
    made = release(tmp_path / "made")
    source = Layout.open(made.layout)
    with sandbox_registry(tmp_path) as host:
        for text in (f"oci:{tmp_path / 'other'}:x", f"docker://{host}/ocp/release:x"):
            copy_image(source, made.digest, parse_destination(text, "5.2.0"), writing(host))
            files, digest = read_image_files(parse_location(text), FOLDERS, writing(host))
            assert digest == made.digest
            assert "release-manifests/a.yaml" in files


@pytest.mark.parametrize("kind", ["layout", "registry"])
def test_a_name_is_not_taken_from_another_image(kind: str, tmp_path: Path) -> None:
    """Unless that was asked for; the same image again is no matter."""
    one, two = release(tmp_path / "one"), release(tmp_path / "two", **{"manifests/b.yaml": b"# b"})
    with sandbox_registry(tmp_path) as host:
        text = f"oci:{tmp_path / 'target'}:x" if kind == "layout" else f"docker://{host}/ocp/release:x"
        place = parse_destination(text, "")
        copy_image(Layout.open(one.layout), one.digest, place, writing(host))
        copy_image(Layout.open(one.layout), one.digest, place, writing(host))
        with pytest.raises(NameInUse, match=f"is another image .{one.digest}.; choose another tag, or overwrite it"):
            copy_image(Layout.open(two.layout), two.digest, place, writing(host))
        assert read_image_files(place, FOLDERS, writing(host))[1] == one.digest
        copy_image(Layout.open(two.layout), two.digest, place, writing(host), overwrite=True)
        assert read_image_files(place, FOLDERS, writing(host))[1] == two.digest


def test_a_folder_with_something_else_is_not_made_a_layout(tmp_path: Path) -> None:
    """Existing files stay unchanged."""
    made = release(tmp_path / "made")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for folder in (tmp_path / "mine", tmp_path / "mine" / "file"):
        with pytest.raises(CannotWrite):
            copy_image(Layout.open(made.layout), made.digest, LayoutLocation(folder, "x"), NONE)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_a_layout_may_be_made_where_there_is_room_for_one(tmp_path: Path) -> None:
    """In an empty folder, and next to other images of a layout."""
    one, two = release(tmp_path / "one"), release(tmp_path / "two", "5.2.1")
    (tmp_path / "empty").mkdir()
    for made, name in ((one, "x"), (two, "y")):
        copy_image(Layout.open(made.layout), made.digest, LayoutLocation(tmp_path / "empty", name), NONE)
    target = Layout.open(tmp_path / "empty")
    assert (target.resolve("x").digest, target.resolve("y").digest) == (one.digest, two.digest)
    assert read_image_files(LayoutLocation(tmp_path / "empty", "y"), FOLDERS, NONE)[1] == two.digest


@pytest.mark.parametrize("there", [False, True], ids=["made for it", "there before"])
def test_an_image_that_cannot_be_copied_leaves_all_as_it_was(there: bool, tmp_path: Path) -> None:
    """A folder that was made for it goes again; one that was there stays, and has no new name."""
    made, old = release(tmp_path / "made"), release(tmp_path / "old", "5.1.0")
    source, target = Layout.open(made.layout), tmp_path / "target"
    if there:
        copy_image(Layout.open(old.layout), old.digest, LayoutLocation(target, "old"), NONE)
    layer = open_image(source).manifest.layers[0]
    source.blob(layer.digest).unlink()
    with pytest.raises(ImageNotFound, match=f"blob {layer.digest} cannot be read: No such file"):
        copy_image(source, made.digest, LayoutLocation(target, "new"), NONE)
    assert target.exists() is there
    if there:
        assert [item.annotations[images.REF_NAME] for item in Layout.open(target).index().manifests] == ["old"]


def test_what_a_folder_is_refused_for(tmp_path: Path) -> None:
    """It is named, and why it cannot become a layout."""
    made = release(tmp_path / "made")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for folder, said in (
        (tmp_path / "mine", "exists already and is not an OCI image layout; name another folder"),
        (tmp_path / "mine" / "file", "no layout can be made there: Not a directory"),
        (tmp_path / "mine" / "file" / "below", "cannot be written: Not a directory"),
    ):
        with pytest.raises(CannotWrite) as caught:
            copy_image(Layout.open(made.layout), made.digest, LayoutLocation(folder, "x"), NONE)
        assert caught.value.message == f"{folder}: {said}"


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


def test_what_a_layout_says_of_names_that_it_has_not(tmp_path: Path) -> None:
    """The error lists the existing entries, by name if they have one."""
    layout = Layout.create(tmp_path)
    for name, said in (("", "holds no image at all"), ("a", "holds no image a"), (DIGEST, f"holds no image {DIGEST}")):
        with pytest.raises(ImageNotFound) as caught:
            layout.resolve(name)
        assert caught.value.message == f"{tmp_path}: {said}"
    other = layout.add_blob(b"{}")
    layout.add_manifest(images.Descriptor(media_type=images.MANIFEST, digest=other, size=2))
    layout.add_manifest(images.Descriptor(media_type=images.MANIFEST, digest=DIGEST, size=2), "b")
    for name, said in (
        ("", f"holds 2 images; name one as oci:{tmp_path}:TAG; it has b, {other}"),
        ("a", f"holds no image a; it has b, {other}"),
    ):
        with pytest.raises(ImageNotFound) as caught:
            layout.resolve(name)
        assert caught.value.message == f"{tmp_path}: {said}"


def test_one_image_of_two_names_is_one(tmp_path: Path) -> None:
    """Nobody need choose between them."""
    layout = Layout.create(tmp_path)
    for name in ("a", "b"):
        layout.add_manifest(images.Descriptor(media_type=images.MANIFEST, digest=DIGEST, size=2), name)
    assert layout.resolve().digest == layout.resolve("b").digest == layout.resolve(DIGEST).digest == DIGEST


A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("added", "kept"),
    [
        pytest.param([(A, ""), (A, "")], [(A, "")], id="twice without a name"),
        pytest.param([(A, "x"), (A, "x")], [(A, "x")], id="twice of one name"),
        pytest.param([(A, ""), (A, "x")], [(A, "x")], id="a name for what had none"),
        pytest.param([(A, "x"), (A, "")], [(A, ""), (A, "x")], id="without a name, which takes none away"),
        pytest.param([(A, "x"), (A, "y")], [(A, "x"), (A, "y")], id="two names"),
        pytest.param([(A, "x"), (B, "x")], [(B, "x")], id="a name for another image"),
        pytest.param([(A, ""), (B, "")], [(A, ""), (B, "")], id="two without a name"),
        pytest.param([(B, ""), (A, "")], [(A, ""), (B, "")], id="two without a name, by digest"),
        pytest.param([(A, "y"), (B, "x")], [(B, "x"), (A, "y")], id="two, by name"),
        pytest.param([(A, ""), (B, "x")], [(A, ""), (B, "x")], id="another image's name"),
    ],
)
def test_what_the_index_has(added: list[tuple[str, str]], kept: list[tuple[str, str]], tmp_path: Path) -> None:
    """A name is one image's; an image without a name is there once."""
    layout = Layout.create(tmp_path)
    for digest, name in added:
        layout.add_manifest(images.Descriptor(media_type=images.MANIFEST, digest=digest, size=2), name)
    found = layout.index().manifests
    assert [(item.digest, item.annotations.get(images.REF_NAME, "")) for item in found] == kept


def test_what_is_said_of_an_image_is_kept(tmp_path: Path) -> None:
    """Its other annotations and its platform, next to the name."""
    layout = Layout.create(tmp_path)
    platform = images.Platform(architecture="arm64", os="linux")
    said = images.Descriptor(
        media_type=images.MANIFEST, digest=DIGEST, size=2, annotations={"a": "b"}, platform=platform
    )
    layout.add_manifest(said, "x")
    assert layout.resolve("x") == msgspec.structs.replace(said, annotations={"a": "b", images.REF_NAME: "x"})


def test_documents_have_a_limit(tmp_path: Path) -> None:
    """A mebibyte, of the index and of a manifest; a byte more is not read."""
    layout = Layout.create(tmp_path)
    index = (tmp_path / "index.json").read_bytes()
    (tmp_path / "index.json").write_bytes(index + b" " * (1_048_576 - len(index)))
    assert layout.index().manifests == ()
    manifest = b'{"config":{}}'.ljust(1_048_576)
    fits, more = layout.add_blob(manifest), layout.add_blob(manifest + b" ")
    assert layout.read(fits) == manifest
    assert layout.resolve(fits).size == 1_048_576
    with pytest.raises(BadImage) as caught:
        layout.read(more)
    assert caught.value.message == f"{more} in {tmp_path} is larger than 1048576 bytes"
    with pytest.raises(ImageNotFound, match=f"holds no image {more}"):
        layout.resolve(more)
    with (tmp_path / "index.json").open("ab") as file:
        file.write(b" ")
    with pytest.raises(BadImage) as caught:
        layout.index()
    assert caught.value.message == f"{tmp_path}: index.json is larger than 1048576 bytes"


def test_what_is_gone_from_a_layout(tmp_path: Path) -> None:
    """Each is named with the place that it should be at."""
    layout = Layout.create(tmp_path)
    (tmp_path / "index.json").unlink()
    with pytest.raises(ImageNotFound) as caught:
        layout.index()
    assert caught.value.message == f"{tmp_path}: index.json cannot be read: No such file or directory"
    with pytest.raises(ImageNotFound) as caught:
        layout.read(DIGEST)
    assert caught.value.message == f"{tmp_path}: blob {DIGEST} cannot be read: No such file or directory"
    with pytest.raises(ImageNotFound) as caught, layout.open_blob(DIGEST):
        pass
    assert caught.value.message == f"{tmp_path}: blob {DIGEST} cannot be read: No such file or directory"


def test_a_blob_of_another_content_is_refused_however_it_is_read(tmp_path: Path) -> None:
    """With the digest that it should have, and the one that it has."""
    layout, other = Layout.create(tmp_path / "layout"), Layout.create(tmp_path / "other")
    layout.blob(DIGEST).write_bytes(b"something else")
    said = f"blob {DIGEST} has other content than its digest says .{sha256(b'something else')}."
    with pytest.raises(BadImage, match=said):
        layout.read(DIGEST)
    with pytest.raises(BadImage, match=said), layout.open_blob(DIGEST):
        pass
    with pytest.raises(BadImage, match=said):
        layout.copy_blob(DIGEST, other)
    with pytest.raises(BadImage, match=said), other.incoming() as writer:
        writer.write(b"something")
        writer.write(b" else")
        assert writer.size == 14
        writer.commit(DIGEST)
    assert not other.blob(DIGEST).exists()
    assert not list(other.path.glob(".incoming-*"))


def test_a_blob_that_is_there_is_not_copied_again(tmp_path: Path) -> None:
    """The other layout need not even have it."""
    layout, other = Layout.create(tmp_path / "layout"), Layout.create(tmp_path / "other")
    digest = layout.add_blob(b"x")
    other.copy_blob(digest, layout)
    with pytest.raises(ImageNotFound):
        layout.copy_blob(DIGEST, other)
    big = bytes(1_500_000)
    layout.copy_blob(layout.add_blob(big), other)
    assert other.blob(sha256(big)).read_bytes() == big


def test_a_layout_is_for_everybody_to_read(tmp_path: Path) -> None:
    """However its files came; the marker is the specification's."""
    layout = Layout.create(tmp_path / "deep" / "layout")
    layout.add_blob(b"a")
    with layout.incoming() as writer:
        writer.write(b"b")
        writer.commit()
    files = [path for path in layout.path.rglob("*") if path.is_file() and path.name != ".lock"]
    assert sorted(path.name for path in files) == sorted(
        ["index.json", "oci-layout", sha256(b"a").partition(":")[2], sha256(b"b").partition(":")[2]]
    )
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}
    assert json.loads((layout.path / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}


def test_a_layout_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    """Also one whose marker somebody else wrote."""
    made = release(tmp_path)
    (tmp_path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0", "by": "somebody else"}')
    layout = Layout.create(tmp_path)
    assert "somebody else" in (tmp_path / "oci-layout").read_text()
    assert layout.resolve().digest == made.digest


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
    with pytest.raises(ImageNotFound, match="is not an OCI image layout"):
        Layout.open(made.layout)


@pytest.mark.parametrize("digest", ["sha256:../../etc/passwd", "../x", "sha512:" + "a" * 128, "sha256:abc", ""])
def test_a_digest_never_names_another_file(digest: str, tmp_path: Path) -> None:
    """A text that is not a sha256 digest is refused before it becomes a path."""
    layout = Layout.create(tmp_path)
    with pytest.raises(BadImage, match="is not a sha256 digest"):
        layout.blob(digest)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"{", "is not JSON", id="no JSON"),
        pytest.param(b"[]", "is not a JSON object", id="a list"),
        pytest.param(b"{}", "neither an image manifest nor an index", id="neither"),
        pytest.param(
            b'{"mediaType": ""}', "is neither an image manifest nor an index of images", id="a type of nothing"
        ),
        pytest.param(b'{"mediaType": 5}', "neither an image manifest nor an index", id="a type that is not text"),
        pytest.param(b'{"manifests": {}}', "neither an image manifest nor an index", id="images that are no list"),
        pytest.param(b'{"config": []}', "neither an image manifest nor an index", id="a config that is not an object"),
        pytest.param(b'{"config": null, "manifests": null}', "neither an image manifest nor", id="both of them null"),
        pytest.param(b'{"layers": []}', "neither an image manifest nor an index", id="layers alone"),
        pytest.param(b'{"\xff": 1}', "neither an image manifest nor an index", id="a member that is no UTF-8"),
        pytest.param(b'{"mediaType": "\xff"}', "a manifest is not JSON", id="a type that is no UTF-8"),
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
    assert media_type_of(b'{"manifests": [], "config": {}}') == images.INDEX
    assert media_type_of(b'{"manifests": {}, "config": {}, "mediaType": ""}') == images.MANIFEST


def test_a_media_type_counts_before_members() -> None:
    """Whoever asks knows what to do with another one."""
    assert media_type_of(b'{"mediaType": "text/plain", "config": {}, "manifests": []}') == "text/plain"


@pytest.mark.parametrize(
    ("data", "manifests"),
    [
        pytest.param(b'{"manifests": null, "annotations": null}', 0, id="nulls at the top"),
        pytest.param(
            b'{"manifests": [{"mediaType": "a", "digest": "b", "size": 1, "platform": {"os": null}}]}',
            1,
            id="nulls in lists and in what is inside",
        ),
        pytest.param(b'{"null": 1, "more": [null, [null, {"a": null}]]}', 0, id="nulls where nobody looks"),
    ],
)
def test_nulls_are_as_good_as_nothing(data: bytes, manifests: int) -> None:
    """Go writes them for what is empty."""
    assert len(images.decode_document(images.Index, data, "it").manifests) == manifests


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(
            b'{"config": 1}', "it is not a valid manifest: Expected `object`, got `int`", id="no object inside"
        ),
        pytest.param(
            b'{"config": null}', "it is not a valid manifest: Object missing required field `config`", id="a null"
        ),
        pytest.param(b"[null]", "it is not a valid manifest: Expected `object`", id="a list"),
        pytest.param(b"{", "it is not a valid manifest: ", id="no JSON"),
        pytest.param(b"[" * 5000 + b"null", "it is not a valid manifest: ", id="lists without end"),
    ],
)
def test_a_document_that_does_not_fit(data: bytes, said: str) -> None:
    """It is named, with what it should be."""
    with pytest.raises(BadImage) as caught:
        images.decode_document(images.Manifest, data, "it")
    assert caught.value.message.startswith(said)


def test_many_builders_of_one_layout_lose_nothing(tmp_path: Path) -> None:
    """Whoever writes last keeps what the others wrote."""
    versions = [f"5.2.{number}" for number in range(8)]
    threads = [threading.Thread(target=release, args=(tmp_path / "layout", version)) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
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


def test_a_disk_that_is_full_at_the_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partial blob is removed, and the index is unchanged."""
    layout = Layout.create(tmp_path)

    def change_mode(_handle: int, _mode: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fchmod", change_mode)
    for write in (
        lambda: layout.add_blob(b"data"),
        lambda: layout.add_manifest(images.Descriptor(media_type=images.MANIFEST, digest=DIGEST, size=2), "x"),
        lambda: layout.remove("x"),
    ):
        with pytest.raises(CannotWrite) as caught:
            write()
        assert caught.value.message == f"{tmp_path}: cannot be written: No space left on device"
    monkeypatch.undo()
    assert layout.index().manifests == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "blobs", "index.json", "oci-layout"]
    assert list((tmp_path / "blobs" / "sha256").iterdir()) == []


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
        ("/etc/passwd", "is not a path inside an image"),
        ("../x", "is not a path inside an image"),
        ("a//b", "is not a path inside an image"),
        ("a/./b", "is not a path inside an image"),
        ("a/b/c", "would be a file and a folder"),
    ],
)
def test_a_path_that_no_image_can_have(name: str, said: str) -> None:
    """Refused before anything is written."""
    with pytest.raises(BadImage, match=said):
        layer_of({name: b"", "a/b": b""} if name == "a/b/c" else {name: b""})
