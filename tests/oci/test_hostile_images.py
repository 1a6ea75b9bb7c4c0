"""Images made to hurt whoever reads them: refused at once, before memory or disk is spent on what they claim."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from bench.hostile_images import HARMLESS, IMAGES, MIB, header

from runup.oci.errors import BadImage
from runup.oci.images import LAYER_GZIP, MAX_DOCUMENT_BYTES, Descriptor
from runup.oci.layout import Layout
from runup.oci.tar import MAX_HEADER_BYTES, MAX_NAME_BYTES, Archive, BadTar
from runup.oci.tarstream import Budget, find_in_layer


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str | int]]:
    """What a process of its own says that read all of them, one after the other."""
    command = [sys.executable, "-m", "bench.hostile_images", str(tmp_path_factory.mktemp("hostile"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("row", IMAGES, ids=lambda row: row.name)
def test_a_hostile_image_is_refused(told: list[tuple[str, str, str | int]], row: object) -> None:
    """By each way to use it, for the reason that is written beside it, and with nothing of size written."""
    name, said = getattr(row, "name"), getattr(row, "said")  # noqa: B009
    outcomes = {way: text for found, way, text in told if found == name}
    assert outcomes, name
    for way, text in outcomes.items():
        assert re.search(said, str(text)), f"{way}: {text}"


def test_what_only_looks_odd_is_read(told: list[tuple[str, str, str | int]]) -> None:
    """The other half: it costs time alone."""
    names = {row.name for row in HARMLESS}
    assert {text for name, _, text in told if name in names} == {""}


def test_no_image_takes_100_mib(told: list[tuple[str, str, str | int]]) -> None:
    """The whole process, Python included, at the worst of all rows."""
    (peak,) = [text for name, _, text in told if name == "peak"]
    assert isinstance(peak, int)
    assert 10 * 1024 < peak < 100 * 1024


def test_a_manifest_beyond_its_limit_is_not_decoded(tmp_path: Path) -> None:
    """A document of many small values takes forty times its size once it is decoded."""
    layout = Layout.create(tmp_path)
    digest = layout.add_blob(b" " * (MAX_DOCUMENT_BYTES + 1))
    with pytest.raises(BadImage, match=f"larger than {MAX_DOCUMENT_BYTES} bytes"):
        layout.read(digest)


class Bytes(io.BytesIO):
    """An archive in memory."""


def listed(data: bytes) -> list[tuple[str, int, str, str]]:
    """What our reader finds: name, size, link, type."""
    found = []
    archive = Archive(Bytes(data))
    for entry in archive:
        content = b"".join(archive.pieces())
        assert len(content) == entry.size
        found.append((entry.name.rstrip("/"), entry.size, entry.linkname, entry.kind.decode()))
    return found


LONG = "f/" * 60 + "name-" * 30


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_others_write_is_read(form: int) -> None:
    """Names of all lengths, links, folders, devices, sizes: as Python's own writer has them, in all three formats."""
    stream = io.BytesIO()
    names = ["a", "b" * 100, "d/" * 70 + "e"] + ([LONG, "ü" * 90] if form != tarfile.USTAR_FORMAT else [])
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for number, name in enumerate(names):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.uid = number * 511, 1.5 if form == tarfile.PAX_FORMAT else 1, 70_000
            archive.addfile(info, io.BytesIO(b"x" * info.size))
        for kind, link in ((tarfile.DIRTYPE, ""), (tarfile.SYMTYPE, "to/" * 40 if len(names) > 3 else "to")):
            info = tarfile.TarInfo("odd")
            info.type, info.linkname = kind, link
            archive.addfile(info)
    with tarfile.open(fileobj=io.BytesIO(stream.getvalue())) as archive:
        expected = [(entry.name, entry.size, entry.linkname, entry.type.decode()) for entry in archive]
    assert listed(stream.getvalue()) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(header(b"a", b"\0", 3) + b"xyz", [("a", 3, "", "0")], id="an old file, not filled up"),
        pytest.param(header(b"a/", b"\0"), [("a", 0, "", "5")], id="a folder from before POSIX"),
        pytest.param(header(b"a", b"7", 1) + b"x" * 512, [("a", 1, "", "0")], id="a contiguous file"),
        pytest.param(header(b"l", b"2", 99, b"to"), [("l", 0, "to", "2")], id="a link that claims a size has none"),
        pytest.param(header(b"a") + bytes(512) + header(b"b"), [("a", 0, "", "0")], id="what follows the end"),
    ],
)
def test_old_and_odd_archives(data: bytes, expected: list[tuple[str, int, str, str]]) -> None:
    """As tarfile and GNU tar read them."""
    assert listed(data) == expected


@pytest.mark.parametrize("length", [MAX_NAME_BYTES, MAX_NAME_BYTES + 1])
def test_names_have_a_limit(length: int) -> None:
    """The longest path of Linux is read, one more byte is not."""
    name = b"x" * length
    data = header(b"././@LongLink", b"L", length) + name + bytes(-length % 512) + header(b"a")
    if length <= MAX_NAME_BYTES:
        assert listed(data)[0][0] == name.decode()
    else:
        with pytest.raises(BadTar, match="a name has 4097 bytes"):
            listed(data)


@pytest.mark.parametrize("length", [MAX_HEADER_BYTES, MAX_HEADER_BYTES + 1])
def test_extended_headers_have_a_limit(length: int) -> None:
    """Attributes of the largest size fit."""
    head = b"%d SCHILY.xattr.user.a=" % length
    data = header(b"x", b"x", length) + head + b"v" * (length - len(head) - 1) + b"\n" + bytes(-length % 512)
    if length <= MAX_HEADER_BYTES:
        assert listed(data + header(b"a")) == [("a", 0, "", "0")]
    else:
        with pytest.raises(BadTar, match="the limit is"):
            listed(data + header(b"a"))


def test_limits_are_the_images_not_a_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers of half a limit each and a third are one image too many."""
    monkeypatch.setattr("runup.oci.tarstream.MAX_ENTRIES", 2)
    budget = Budget.of("i")
    data = header(b"a") + bytes(1024)
    layer = Descriptor(media_type="application/vnd.oci.image.layer.v1.tar", digest="sha256:x", size=len(data))
    for _ in range(2):
        find_in_layer([data], layer, "b", limit=1, budget=budget)
    with pytest.raises(BadImage, match="more than 2 entries"):
        find_in_layer([data], layer, "b", limit=1, budget=budget)


def test_a_layer_may_grow_as_text_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small may grow as it likes; beyond that the limit is by what is packed."""
    monkeypatch.setattr("runup.oci.tarstream.MAX_SMALL_BYTES", 2 * MIB)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo("a")
        info.size = MIB
        archive.addfile(info, io.BytesIO(bytes(MIB)))
    data = stream.getvalue()
    layer = Descriptor(media_type=LAYER_GZIP, digest="sha256:x", size=len(data))
    assert find_in_layer([data], layer, "a", limit=MIB, budget=Budget.of("i")) == bytes(MIB)
    monkeypatch.setattr("runup.oci.tarstream.MAX_SMALL_BYTES", MIB // 2)
    monkeypatch.setattr("runup.oci.tarstream.MAX_RATIO", 10)
    with pytest.raises(BadImage, match="10 times what it has packed"):
        find_in_layer([data], layer, "a", limit=MIB, budget=Budget.of("i"))
