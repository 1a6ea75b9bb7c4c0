"""Layers are untrusted: what they hide, link to, claim and break, read into memory and unpacked into a folder."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from kubekit.oci import images
from kubekit.oci.images import Execution
from kubekit.oci.layers import Image, Pick, open_image, read_folders, select_architecture, unpack_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from kubekit.oci.registry_errors import BadImage, BeyondLimits, CannotWrite, OciError
from kubekit.oci.tarstream import Budget, Hidden, find_in_layer
from runup.release.control.image_build import Layer, build_image


@dataclass(frozen=True)
class Entry:
    """One entry of a tar archive; a file unless it says otherwise."""

    name: str
    data: bytes = b""
    type: bytes = tarfile.REGTYPE
    link: str = ""
    mode: int = 0o644


def directory(name: str, mode: int = 0o755) -> Entry:
    """A folder."""
    return Entry(name, type=tarfile.DIRTYPE, mode=mode)


def symlink(name: str, to: str) -> Entry:
    """A symbolic link."""
    return Entry(name, type=tarfile.SYMTYPE, link=to)


def hardlink(name: str, to: str) -> Entry:
    """A hard link."""
    return Entry(name, type=tarfile.LNKTYPE, link=to)


def tar(entries: list[Entry]) -> bytes:
    """An archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.mode, info.size = entry.type, entry.link, entry.mode, len(entry.data)
            archive.addfile(info, io.BytesIO(entry.data))
    return stream.getvalue()


def image(folder: Path, *layers: list[Entry]) -> Image:
    """An image of these layers, the lowest first."""
    made = [Layer(gzip.compress(tar(entries)), sha256(tar(entries))) for entries in layers]
    build_image(folder / "layout", made, tag="1", config=Execution())
    return open_image(Layout.open(folder / "layout"), "1")


def tree(folder: Path) -> dict[str, str | None]:
    """Path to text of every file, None for a folder; links as where they lead."""
    found: dict[str, str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = path.read_text() if path.is_file() else None
    return found


def f(name: str, text: str = "x") -> Entry:
    """A file of text."""
    return Entry(name, text.encode())


STACKS = [
    pytest.param([[f("m/a", "1")], [f("m/a", "2")]], {"m/a": "2"}, id="the upper layer's file counts"),
    pytest.param([[f("m/a"), f("m/b")], [f("m/.wh.a")]], {"m/b": "x"}, id="a whiteout hides a file"),
    pytest.param([[f("m/d/a"), f("m/b")], [f("m/.wh.d")]], {"m/b": "x"}, id="a whiteout hides a folder"),
    pytest.param([[f("m/a"), f("n/a")], [f(".wh.m")]], {"n/a": "x"}, id="a whiteout hides a folder at the root"),
    pytest.param([[f("m/a")], [f("m/.wh.b")]], {"m/a": "x"}, id="a whiteout of what is not there"),
    pytest.param([[f("m/a", "1")], [f("m/.wh.a"), f("m/a", "2")]], {"m/a": "2"}, id="hidden and written anew"),
    pytest.param([[f("m/a", "1")], [f("m/a", "2"), f("m/.wh.a")]], {"m/a": "2"}, id="a whiteout spares its own layer"),
    pytest.param([[f("m/a"), f("m/d/b")], [f("m/.wh..wh..opq"), f("m/c")]], {"m/c": "x"}, id="an opaque folder"),
    pytest.param([[f("m/a")], [f("m/c"), f("m/.wh..wh..opq")]], {"m/c": "x"}, id="an opaque folder, said at the end"),
    pytest.param([[f("m/a")], [f("m/.wh.a")], [f("m/a", "3")]], {"m/a": "3"}, id="hidden, and back one layer later"),
    pytest.param([[f("m/a/b")], [f("m/a", "file")]], {"m/a": "file"}, id="a file instead of a folder"),
    pytest.param([[f("m/a", "file")], [f("m/a/b/c")]], {"m/a/b/c": "x"}, id="a file below what was a file"),
    pytest.param([[f("m/a", "file")], [directory("m/a")]], {}, id="an empty folder instead of a file"),
    pytest.param([[f("m/a", "file")], [directory("m/a"), f("m/a/b")]], {"m/a/b": "x"}, id="a folder instead of a file"),
    pytest.param(
        [[directory("m/d"), f("m/d/a")], [directory("m/d"), f("m/d/b")]],
        {"m/d/a": "x", "m/d/b": "x"},
        id="a folder that a later layer has as well",
    ),
    pytest.param([[f("m/a"), f("m/a.b")], [f("m/.wh.a")]], {"m/a.b": "x"}, id="a name that only begins alike stays"),
    pytest.param([[f("./m/a"), f("m//b"), f("/m/c")]], {"m/a": "x", "m/b": "x", "m/c": "x"}, id="ways to write a name"),
    pytest.param(
        [[f("m/d/a")], [f("m/d/b"), f("m/.wh.d")]], {"m/d/b": "x"}, id="a whiteout behind what its layer has there"
    ),
    pytest.param(
        [[f("m/d/e/a"), f("m/b")], [f("m/d/e/c"), f("m/.wh..wh..opq")]], {"m/d/e/c": "x"}, id="opaque, far above"
    ),
    pytest.param([[f("m/a"), f("n/a")], [f("n/b"), f(".wh..wh..opq")]], {"n/b": "x"}, id="an opaque root"),
    pytest.param([[f("m/a")], [f("n/.wh..wh..opq")]], {"m/a": "x"}, id="an opaque folder that is not there"),
    pytest.param([[f("m/a", "file")], [f("m/a/b")]], {"m/a/b": "x"}, id="a file in what was a file"),
    pytest.param([[f("m/a/b", "file")], [directory("m/a/b/c")]], {}, id="a folder below what was a file"),
    pytest.param([[f("m/a/b"), f("m/a/c")], [directory("m/a")]], {"m/a/b": "x", "m/a/c": "x"}, id="a folder again"),
    pytest.param([[f("m/a", "1")], [f("m/b")], [f("m/a", "3")]], {"m/a": "3", "m/b": "x"}, id="three, two of a file"),
    pytest.param(
        [[f("m/a", "1")], [hardlink("m/b", "m/a")]], {"m/a": "1", "m/b": "1"}, id="a hard link to a lower layer's file"
    ),
    pytest.param([[f("m/z"), f("m/b"), f("m/a")]], {"m/a": "x", "m/b": "x", "m/z": "x"}, id="in no order"),
]


@pytest.mark.parametrize(("layers", "expected"), STACKS)
def test_layers_on_layers(tmp_path: Path, layers: list[list[Entry]], expected: dict[str, str]) -> None:
    """Read and unpacked alike (OCI image-spec, whiteouts)."""
    found = image(tmp_path, *layers)
    read = read_folders(found, ("m", "n"))
    assert {path: data.decode() for path, data in read.items()} == expected
    assert list(read) == sorted(expected)
    files = tree(unpack_image(found, tmp_path / "unpacked"))
    assert {path: text for path, text in files.items() if text is not None} == expected


LINKS = [
    pytest.param([f("m/a", "1"), symlink("m/b", "a")], {"m/a": "1", "m/b": "1"}, id="a link to a file beside it"),
    pytest.param([f("m/a", "1"), symlink("m/b", "/m/a")], {"m/a": "1", "m/b": "1"}, id="an absolute link"),
    pytest.param([f("m/a", "1"), symlink("n/b", "../m/a")], {"m/a": "1", "n/b": "1"}, id="a link to another folder"),
    pytest.param([f("m/a", "1"), hardlink("m/b", "m/a")], {"m/a": "1", "m/b": "1"}, id="a hard link"),
    pytest.param([f("m/a", "1"), hardlink("m/b", "./m/a")], {"m/a": "1", "m/b": "1"}, id="a hard link, written oddly"),
]


@pytest.mark.parametrize(("entries", "expected"), LINKS)
def test_links(tmp_path: Path, entries: list[Entry], expected: dict[str, str]) -> None:
    """The target of the links is read, and a host that follows them stays inside."""
    found = image(tmp_path, entries)
    assert {path: data.decode() for path, data in read_folders(found, ("m", "n")).items()} == expected
    root = unpack_image(found, tmp_path / "unpacked")
    assert {path: (root / path).read_text() for path in expected} == expected
    assert all((root / path).resolve().is_relative_to(root.resolve()) for path in expected)


HOSTILE = [
    pytest.param([f("../outside")], "leaves the image's root", id="a name that goes up"),
    pytest.param([f("m/../../outside")], "leaves the image's root", id="a name that goes up in the middle"),
    pytest.param([symlink("m/a", "../../outside")], "link to ../../outside, which", id="a link that leads out"),
    pytest.param([symlink("m/a", "../..")], "link to ../.., which", id="a link to the folder above the image"),
    pytest.param([hardlink("m/a", "../outside")], "link to ../outside, which|leaves", id="a hard link that leads out"),
    pytest.param([hardlink("m/a", "m/nothing")], "link to m/nothing, which is not a file", id="a hard link to nothing"),
    pytest.param([hardlink("m/\udcff", "\x1b")], r"m/\\udcff is a (hard )?link to \\x1b", id="names that are no text"),
    pytest.param([hardlink("m/a", "m")], "link to m, which is not a file", id="a hard link to a folder"),
    pytest.param(
        [hardlink("m/a", "m/b"), f("m/b")], "link to m/b, which is not a file", id="a hard link to what follows"
    ),
    pytest.param([Entry("m/a", type=b"Z")], "m/a is not a file, folder or link", id="who knows what"),
    pytest.param([Entry("m/a", type=tarfile.CHRTYPE)], "not a file, folder or link", id="a device"),
    pytest.param([Entry("m/a", type=tarfile.FIFOTYPE)], "not a file, folder or link", id="a pipe"),
    pytest.param([f(".wh...")], "hides no name", id="a whiteout of the folder above the image"),
    pytest.param([f("m/.wh...")], "hides no name", id="a whiteout of a folder's parent"),
    pytest.param([f("m/.wh..")], "hides no name", id="a whiteout of the folder itself"),
    pytest.param([f("m/.wh.")], "hides no name", id="a whiteout of nothing"),
]


@pytest.mark.parametrize("work", [lambda i, p: read_folders(i, ("m",)), lambda i, p: unpack_image(i, p / "x" / "unpacked")], ids=["read", "unpacked"])  # fmt: skip # noqa: E501
@pytest.mark.parametrize(("entries", "said"), HOSTILE)
def test_a_hostile_layer_is_refused(
    tmp_path: Path, entries: list[Entry], said: str, work: Callable[[Image, Path], object]
) -> None:
    """With an error that names the image; nothing else on the disk is touched, nothing is left."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "precious").write_text("mine")
    found = image(tmp_path, [directory("m"), *entries])
    with pytest.raises(BadImage, match=said) as refused:
        work(found, tmp_path)
    assert found.digest in refused.value.message
    assert tree(tmp_path / "x") == {"precious": "mine"}
    assert not (tmp_path / "outside").exists()


def test_links_between_layers_stay_inside(tmp_path: Path) -> None:
    """A folder that a lower layer makes a link of cannot carry an upper layer's file out."""
    lower = [directory("deep/er"), symlink("short", "/deep/er"), symlink("up", "deep/../deep")]
    upper = [f("short/a"), f("up/b"), symlink("short/c", "../../up/b")]
    root = unpack_image(image(tmp_path, lower, upper), tmp_path / "unpacked")
    assert (root / "deep/er/a").read_text() == (root / "deep/b").read_text() == "x"
    assert (root / "short/c").resolve() == (root / "deep/b").resolve()


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    """One error, not a crash."""
    found = image(tmp_path, [symlink("a", "b"), symlink("b", "a"), f("a/x")])
    with pytest.raises(OciError, match=r"circle|cannot be unpacked"):
        unpack_image(found, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_devices_in_their_folder_are_left_out(tmp_path: Path) -> None:
    """Base images that were made by debootstrap have them; a container gets its own."""
    entries = [directory("dev"), Entry("dev/console", type=tarfile.CHRTYPE), Entry("dev/sda", type=tarfile.BLKTYPE)]
    found = image(tmp_path, [*entries, f("dev/text")])
    assert tree(unpack_image(found, tmp_path / "unpacked")) == {"dev": None, "dev/text": "x"}


def test_owners_and_special_bits_are_dropped(tmp_path: Path) -> None:
    """No file is set-id, and the owner can read everything and go into every folder."""
    entries = [Entry("m/a", mode=0o6755), Entry("m/b", mode=0o000), directory("m/d", mode=0o1000)]
    root = unpack_image(image(tmp_path, entries), tmp_path / "unpacked")
    modes = {name: (root / "m" / name).stat().st_mode & 0o7777 for name in "abd"}
    assert modes == {"a": 0o755, "b": 0o400, "d": 0o755}


def test_an_image_that_is_too_large(tmp_path: Path) -> None:
    """Both ways of reading end at their limit, by what the layer claims, before the bytes are taken."""
    found = image(tmp_path, [Entry("m/a", bytes(1000)), Entry("m/b", bytes(1000))])
    with pytest.raises(BadImage, match="m hold more than 1999 bytes"):
        read_folders(found, ("m",), Pick(limit=1999))
    with pytest.raises(BadImage, match="unpacks to more than 1999 bytes"):
        unpack_image(found, tmp_path / "unpacked", limit=1999)
    assert not (tmp_path / "unpacked").exists()
    assert read_folders(found, ("m",), Pick(limit=2000))
    assert unpack_image(found, tmp_path / "unpacked", limit=2000).is_dir()


@pytest.mark.slow
def test_what_a_release_may_hold(tmp_path: Path) -> None:
    """32 MiB below its folders, whatever else is in the image."""
    half = bytes(16 << 20)
    fits = [Entry("other", half), Entry("m/a", half), Entry("n/b", half)]
    assert len(read_folders(image(tmp_path / "fits", fits), ("m", "n"))) == 2
    with pytest.raises(BadImage, match="m, n hold more than 33554432 bytes"):
        read_folders(image(tmp_path / "more", [*fits, f("m/c", "x")]), ("m", "n"))


def test_how_large_one_file_may_be(tmp_path: Path) -> None:
    """To the byte; one that is not read may be any size, and comes without its content."""
    found = image(tmp_path, [Entry("m/a", bytes(1000)), f("m/b", "b"), f("m/c", "c")])
    with pytest.raises(BeyondLimits, match="m/a has more than 999 bytes"):
        read_folders(found, ("m",), Pick(file_limit=999))
    assert read_folders(found, ("m",), Pick(file_limit=1000))["m/a"] == bytes(1000)
    passed_over = Pick(limit=2, file_limit=1, reads=lambda path: path != "m/a")
    assert read_folders(found, ("m",), passed_over) == {"m/a": b"", "m/b": b"b", "m/c": b"c"}


def test_what_is_kept_of_a_file(tmp_path: Path) -> None:
    """By its path and content; a link has what was kept of the file that it leads to, and not less again."""
    found = image(tmp_path, [f("m/a", "abc"), symlink("m/b", "a"), hardlink("m/c", "m/a")])
    kept = read_folders(found, ("m",), Pick(keeps=lambda path, data: path.encode() + data[1:]))
    assert kept == {"m/a": b"m/abc", "m/b": b"m/abc", "m/c": b"m/abc"}


@pytest.mark.parametrize("link", [symlink("m/b", "a"), hardlink("m/b", "m/a")], ids=["a link", "a hard link"])
def test_a_link_to_a_file_that_is_not_read_is_not_an_empty_file(tmp_path: Path, link: Entry) -> None:
    """Who reads it would take what is there for nothing."""
    found = image(tmp_path, [f("m/a", "abc")], [link])
    with pytest.raises(BadImage, match=r"m/b is a link to (m/)?a, which is not read"):
        read_folders(found, ("m",), Pick(reads=lambda path: path == "m/b"))
    assert read_folders(found, ("m",), Pick(reads=lambda path: path != "m/b")) == {"m/a": b"abc", "m/b": b""}


def test_an_image_is_unpacked_for_everybody_to_read(tmp_path: Path) -> None:
    """In folders that are made for it, and nothing else is left there."""
    root = unpack_image(image(tmp_path, [f("m/a")]), tmp_path / "some" / "where" / "unpacked")
    assert root.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in root.parent.iterdir()] == ["unpacked"]


FOLDERS_AND_LINKS = [
    pytest.param([[f("n/a"), symlink("m", "n")], [directory("m")]], {"m": None, "n": None, "n/a": "x"}, id="a folder"),
    pytest.param([[symlink("m", "gone")], [directory("m")]], {"m": None}, id="a folder for a link to nothing"),
    pytest.param([[f("n/a"), symlink("m", "n")], [f("m")]], {"m": "x", "n": None, "n/a": "x"}, id="a file"),
    pytest.param([[f("m/a/b")], [symlink("m", "n")]], {"m": "-> n"}, id="a link for a folder"),
    pytest.param(
        [[f("n/a"), symlink("m", "n")], [f(".wh.m")]], {"n": None, "n/a": "x"}, id="nothing for a link to a folder"
    ),
    pytest.param(
        [[f("n/a")], [symlink("m", "n"), f(".wh.m")]], {"m": "-> n", "n": None, "n/a": "x"}, id="its own link stays"
    ),
    pytest.param([[symlink("m/a", "/")]], {"m": None, "m/a": "-> .."}, id="a link to the root"),
    pytest.param([[symlink("m/a", "../..a")]], {"m": None, "m/a": "-> ../..a"}, id="a name that begins with dots"),
    pytest.param(
        [[symlink("m/b/a", "/n/c")]], {"m": None, "m/b": None, "m/b/a": "-> ../../n/c"}, id="an absolute link"
    ),
    pytest.param(
        [[f("dev/a"), f("dev/b")]], {"dev": None, "dev/a": "x", "dev/b": "x"}, id="files in the devices' folder"
    ),
]


@pytest.mark.parametrize(("layers", "expected"), FOLDERS_AND_LINKS)
def test_folders_and_links_in_each_others_place(
    tmp_path: Path, layers: list[list[Entry]], expected: dict[str, str | None]
) -> None:
    """The upper layer's file counts, and the target of a link stays unchanged."""
    assert tree(unpack_image(image(tmp_path, *layers), tmp_path / "unpacked")) == expected


def test_a_hard_link_to_a_link_is_refused(tmp_path: Path) -> None:
    """It would be followed, to wherever that leads."""
    found = image(tmp_path, [f("m/a"), symlink("m/b", "a"), hardlink("m/c", "m/b")])
    with pytest.raises(BadImage, match="m/c is a hard link to m/b, which is not a file"):
        unpack_image(found, tmp_path / "unpacked")


def test_a_device_elsewhere_than_in_its_folder(tmp_path: Path) -> None:
    """In a folder whose name only begins so it is refused."""
    with pytest.raises(BadImage, match="device/a is not a file, folder or link"):
        unpack_image(image(tmp_path, [Entry("device/a", type=tarfile.CHRTYPE)]), tmp_path / "unpacked")


LINUX = [("amd64", "linux"), ("arm64", "linux")]


@pytest.mark.parametrize(
    ("platforms", "architecture", "expected"),
    [
        pytest.param(LINUX, "amd64", 0, id="the first"),
        pytest.param(LINUX, "arm64", 1, id="the second"),
        pytest.param(LINUX, "", 0, id="any"),
        pytest.param([("amd64", "windows"), *LINUX], "amd64", 1, id="another system's passed over"),
        pytest.param([("amd64", "windows"), *LINUX], "", 1, id="another system's where any will do"),
        pytest.param([None, *LINUX], "arm64", 0, id="one that does not say"),
        pytest.param([("amd64", "windows"), None], "", 1, id="one that does not say where any will do"),
        pytest.param(LINUX[::-1], "s390x", "linux/s390x; it has amd64, arm64", id="one that there is not"),
        pytest.param([("amd64", "windows")], "", "linux/; it has amd64", id="any of another system"),
        pytest.param([], "amd64", "linux/amd64; it has none", id="an empty index"),
    ],
)
def test_the_image_for_an_architecture(
    platforms: list[tuple[str, str] | None], architecture: str, expected: int | str
) -> None:
    """For Linux, the first that fits; else what there is."""
    manifests = tuple(
        images.Descriptor(
            media_type=images.MANIFEST,
            digest=f"sha256:{number}",
            size=1,
            platform=None if each is None else images.Platform(architecture=each[0], os=each[1]),
        )
        for number, each in enumerate(platforms)
    )
    index = images.Index(manifests=manifests)
    if isinstance(expected, int):
        assert select_architecture(index, architecture, "it") == manifests[expected]
    else:
        with pytest.raises(BadImage, match=f"it has no image for {expected}"):
            select_architecture(index, architecture, "it")


def test_an_archive_with_too_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty files cost nothing to write and much to unpack."""
    monkeypatch.setattr("kubekit.oci.tarstream.MAX_ENTRIES", 3)
    found = image(tmp_path, [f(f"m/{number}") for number in range(4)])
    with pytest.raises(BadImage, match="more than 3 entries"):
        read_folders(found, ("m",))


def test_how_deep_a_path_may_be(tmp_path: Path) -> None:
    """256 names; a distribution's deepest paths have some 30."""
    deep = "/".join(["m"] * 256)
    assert read_folders(image(tmp_path / "fits", [f(deep)]), ("m",)) == {deep: b"x"}
    with pytest.raises(BeyondLimits, match="a path has 257 names; the limit is 256"):
        read_folders(image(tmp_path / "too-deep", [f(f"{deep}/m")]), ("m",))


def broken(folder: Path, data: bytes, diff_id: str = "", media_type: str = images.LAYER_GZIP) -> Image:
    """An image whose layer is these bytes, with a digest that holds."""
    build_image(folder / "layout", [Layer(data, diff_id or sha256(data))], tag="1", config=Execution())
    layout = Layout.open(folder / "layout")
    made = open_image(layout, "1")
    layers = tuple(msgspec.structs.replace(layer, media_type=media_type) for layer in made.manifest.layers)
    return Image(layout, made.digest, msgspec.structs.replace(made.manifest, layers=layers), made.config)


GOOD = tar([f("m/a", "x" * 3000)])
BROKEN = [
    pytest.param(gzip.compress(GOOD)[:-20], sha256(GOOD), images.LAYER_GZIP, "is broken", id="cut short"),
    pytest.param(b"no gzip at all", "", images.LAYER_GZIP, "is broken", id="no gzip"),
    pytest.param(gzip.compress(b"no tar" * 1000), "", images.LAYER_GZIP, "is broken", id="no tar in it"),
    pytest.param(gzip.compress(GOOD[:1000]), "", images.LAYER_GZIP, "is broken", id="a tar cut short"),
    pytest.param(gzip.compress(GOOD), sha256(b"else"), images.LAYER_GZIP, "unpacks to", id="another content"),
    pytest.param(
        gzip.compress(GOOD),
        sha256(GOOD),
        "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
        "cannot read a layer of type",
        id="encrypted",
    ),
]


@pytest.mark.parametrize("unpacked", [False, True], ids=["read", "unpacked"])
@pytest.mark.parametrize(("data", "diff_id", "media_type", "said"), BROKEN)
def test_a_broken_layer_is_refused(
    tmp_path: Path, data: bytes, diff_id: str, media_type: str, said: str, unpacked: bool
) -> None:
    """One error naming image and layer, also where the digest holds."""
    found = broken(tmp_path, data, diff_id, media_type)
    with pytest.raises(BadImage, match=said) as refused:
        unpack_image(found, tmp_path / "unpacked") if unpacked else read_folders(found, ("m",))
    assert found.digest in refused.value.message
    assert not (tmp_path / "unpacked").exists()


def test_a_layer_without_compression(tmp_path: Path) -> None:
    """Is read too."""
    found = broken(tmp_path, GOOD, sha256(GOOD), "application/vnd.oci.image.layer.v1.tar")
    assert read_folders(found, ("m",)) == {"m/a": b"x" * 3000}


def test_a_changed_blob_is_refused(tmp_path: Path) -> None:
    """A byte flipped on the disk is noticed before anything of the layer is used."""
    found = image(tmp_path, [f("m/a")])
    path = found.layout.blob(found.manifest.layers[0].digest)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(BadImage, match="other content than its digest says"):
        read_folders(found, ("m",))


def test_an_unpacked_image_is_not_replaced(tmp_path: Path) -> None:
    """Whoever comes second gets an error and changes nothing."""
    found = image(tmp_path, [f("m/a")])
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / "precious").write_text("mine")
    with pytest.raises(CannotWrite):
        unpack_image(found, tmp_path / "unpacked")
    assert tree(tmp_path / "unpacked") == {"precious": "mine"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@dataclass
class Taken:
    """How much of a layer was taken."""

    data: bytes
    pieces: list[int] = field(default_factory=list)

    def __iter__(self) -> Taken:
        return self

    def __next__(self) -> bytes:
        if not self.data:
            raise StopIteration
        piece, self.data = self.data[:100], self.data[100:]
        self.pieces.append(len(piece))
        return piece


def test_one_file_out_of_a_layer_that_is_arriving() -> None:
    """All of the layer is taken, so that it can be hashed; no link of that name, and no file that is too large."""
    data = gzip.compress(tar([f("m/a", "1"), f("m/b", "2"), symlink("m/c", "a")]))
    layer = images.Descriptor(media_type=images.LAYER_GZIP, digest=sha256(data), size=len(data))
    taken = Taken(data + b"\0" * 500)
    assert find_in_layer(taken, layer, "m/a", limit=10, budget=Budget.of("i")) == b"1"
    assert taken.data == b""
    for path, limit, said in (("m/c", 10, "is not a regular file"), ("m/a", 0, "is larger than 0 bytes")):
        with pytest.raises(BadImage, match=said):
            find_in_layer(iter([data]), layer, path, limit=limit, budget=Budget.of("i"))


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        pytest.param(2, "config names 1 layers, manifest another number", id="one more than the config has"),
        pytest.param(0, "config names 1 layers, manifest another number", id="none"),
        pytest.param(129, "has 129 layers; the limit is 128", id="more than any image has"),
    ],
)
def test_layers_are_those_that_the_config_names(tmp_path: Path, layers: int, said: str) -> None:
    """Whether they are read or unpacked."""
    made = broken(tmp_path, gzip.compress(GOOD), sha256(GOOD))
    manifest = msgspec.structs.replace(made.manifest, layers=made.manifest.layers * layers)
    found = Image(made.layout, made.digest, manifest, made.config)
    with pytest.raises(BadImage, match=said):
        read_folders(found, ("m",))
    with pytest.raises(BadImage, match=said):
        unpack_image(found, tmp_path / "unpacked")


def test_an_image_of_as_many_layers_as_there_may_be(tmp_path: Path) -> None:
    """Container engines stop at 127."""
    found = image(tmp_path, *[[f(f"m/{number}")] for number in range(128)])
    assert len(read_folders(found, ("m",))) == 128


def test_what_is_no_image(tmp_path: Path) -> None:
    """It is named, with the type that it says about itself."""
    layout = Layout.create(tmp_path)
    digest = layout.add_blob(b"{}")
    layout.add_manifest(images.Descriptor(media_type="text/plain", digest=digest, size=2), "1")
    with pytest.raises(BadImage, match=f"{digest} is a text/plain, not an image manifest"):
        open_image(layout, "1")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([f("m/.wh.b")], Hidden.YES, id="it is taken away"),
        pytest.param([f("m/.wh.a")], Hidden.NO, id="the file before it is"),
        pytest.param([f("m/.wh.c")], Hidden.NO, id="the file after it is"),
        pytest.param([f("n/.wh.b")], Hidden.NO, id="its namesake in another folder is"),
        pytest.param([f(".wh.m")], Hidden.YES, id="its folder is taken away"),
        pytest.param([f("m/.wh..wh..opq")], Hidden.YES, id="its folder begins anew"),
        pytest.param([f("m/b/.wh..wh..opq")], Hidden.NO, id="a folder of its name begins anew"),
        pytest.param([f("m", "x")], Hidden.YES, id="a file stands where its folder was"),
        pytest.param([symlink("m", "n")], Hidden.YES, id="a link stands where its folder was"),
        pytest.param([directory("m")], Hidden.NO, id="its folder is named again"),
        pytest.param([f("mm", "x"), f("m/bb", "x")], Hidden.NO, id="others begin like it"),
        pytest.param([f("m/b", "here"), f("m/.wh.b")], b"here", id="it is there, whatever is taken away"),
        pytest.param([f("m/.wh.b"), f("m/b", "here")], b"here", id="it is put back in its place"),
    ],
)
def test_what_a_layer_says_of_a_file(entries: list[Entry], expected: bytes | Hidden) -> None:
    """Its content, that lower layers have none any more, or nothing."""
    data = gzip.compress(tar(entries))
    layer = images.Descriptor(media_type=images.LAYER_GZIP, digest=sha256(data), size=len(data))
    assert find_in_layer(iter([data]), layer, "m/b", limit=10, budget=Budget.of("i")) == expected


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """The error names what was to be made, and the system's reason."""
    found = image(tmp_path, [f("m/a")])
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "unpacked"
    with pytest.raises(CannotWrite) as caught:
        unpack_image(found, target)
    assert caught.value.message == f"{target}: image {found.digest} cannot be unpacked: File exists"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names it."""
    found = image(tmp_path, [f("m/a")])
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(CannotWrite, match="locked"):
        unpack_image(found, tmp_path / "locked" / "unpacked")
