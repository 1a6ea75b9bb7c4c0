"""A layer as it is unpacked piece by piece: what is counted, up to which byte, and what has a hash."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections.abc import Iterator

import pytest
import zstandard
from bench.hostile.images import header
from hypothesis import given
from hypothesis import strategies as st
from tests.kubekit.oci.layered import PLAIN, Made, hardlink, symlink, tar

from kubekit.oci.images import LAYER_GZIP, LAYER_ZSTD, Descriptor
from kubekit.oci.reference import sha256
from kubekit.oci.registry_errors import BadImage, BeyondLimits
from kubekit.oci.tarstream import (
    BrokenLayer,
    Budget,
    Hidden,
    Pieces,
    Unpacked,
    checked_entries,
    find_in_layer,
    hidden_by,
    inner_path,
    open_layer,
)

MIB = 1 << 20


def layer(data: bytes = b"", media_type: str = PLAIN, size: int | None = None) -> Descriptor:
    """How a manifest points at a layer."""
    return Descriptor(media_type=media_type, digest=sha256(data), size=len(data) if size is None else size)


class Stream:
    """Gives one piece after the other, however much is asked for, and notes how much that was."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.asked: list[int] = []

    def read(self, size: int, /) -> bytes:
        """The next piece, none at the end."""
        self.asked.append(size)
        return self.pieces.pop(0) if self.pieces else b""


def test_what_an_image_may_unpack_to() -> None:
    """4 GiB to the byte."""
    budget = Budget.of("image")
    budget.take(4 * 1024 * MIB)
    with pytest.raises(BeyondLimits) as caught:
        budget.take(1)
    assert str(caught.value) == "image image: unpacks to more than 4294967296 bytes"


def test_how_many_entries_an_image_may_have() -> None:
    """100,000 of them, unless another number was said."""
    budget = Budget.of("image")
    for _ in range(100_000):
        budget.count()
    with pytest.raises(BeyondLimits) as caught:
        budget.count()
    assert str(caught.value) == "image image: has more than 100000 entries"


def test_a_budget_of_other_limits() -> None:
    """None at all is a limit, too."""
    budget = Budget.of("image", 0, 1)
    budget.take(0)
    budget.count()
    with pytest.raises(BeyondLimits, match="unpacks to more than 0 bytes"):
        budget.take(1)
    with pytest.raises(BeyondLimits, match="has more than 1 entries"):
        budget.count()


@pytest.mark.parametrize(
    ("packed", "most"),
    [
        pytest.param(0, 64 * MIB, id="nothing"),
        pytest.param(335_544, 64 * MIB, id="a little less than a 200th of 64 MiB"),
        pytest.param(335_545, 67_109_000, id="a little more"),
    ],
)
def test_how_much_a_layer_may_grow(packed: int, most: int) -> None:
    """200 times, and anything up to 64 MiB; not a byte more."""
    budget = Budget.of("image")
    Unpacked(Stream(bytes(most)), layer(size=packed), budget).rest()
    assert budget.bytes == 4 * 1024 * MIB - most
    with pytest.raises(BeyondLimits) as caught:
        Unpacked(Stream(bytes(most + 1)), layer(size=packed), budget).rest()
    words = f"image image: a layer unpacks to more than {most} bytes, 200 times what it has packed"
    assert str(caught.value) == words


@pytest.mark.slow
@given(st.lists(st.binary(min_size=1, max_size=9), max_size=9), st.lists(st.integers(0, 12), max_size=12))
def test_it_is_read_in_any_sizes(pieces: list[bytes], sizes: list[int]) -> None:
    """Whatever the stream gives at a time; fewer only at the end, and the hash is that of all of it."""
    data = b"".join(pieces)
    unpacked = Unpacked(Stream(*pieces), layer(data), Budget.of("image"))
    at = 0
    for size in sizes:
        assert unpacked.read(size) == data[at : at + size]
        at += size
    assert unpacked.rest() == sha256(data)


def test_how_much_is_asked_for_at_once() -> None:
    """A quarter of a mebibyte, which is all of a layer that is in memory at a time."""
    stream = Stream(b"x")
    Unpacked(stream, layer(), Budget.of("image")).rest()
    assert stream.asked == [262_144, 262_144]


def framed(data: bytes, window_log: int) -> bytearray:
    """A zstd frame that wants so large a window."""
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return bytearray(packer.compress(data) + packer.flush())


def test_how_large_a_window_may_be() -> None:
    """8 MiB, as RFC 8878 recommends; what asks for the next, an eighth more, is no broken layer: it is not known."""
    data = tar([Made("a", b"here")])
    frame = framed(data, 23)
    # RFC 8878, 3.1.1.1.2: five bits of exponent above 10, three of eighths.
    assert frame[5] == (23 - 10) << 3
    packed = bytes(frame)
    assert find_in_layer([packed], layer(packed, LAYER_ZSTD), "a", limit=4, budget=Budget.of("i")) == b"here"
    frame[5] += 1
    packed = bytes(frame)
    with pytest.raises(BeyondLimits, match=r"cannot be read: .*too much memory"):
        find_in_layer([packed], layer(packed, LAYER_ZSTD), "a", limit=4, budget=Budget.of("i"))


def test_names_the_extra_that_reads_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a layer may be valid, so its content is unknown rather than broken."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(BeyondLimits, match=r"need package zstandard: pip install 'kubekit\[zstd\]'$"):
        find_in_layer([b""], layer(b"", LAYER_ZSTD), "a", limit=4, budget=Budget.of("i"))


def test_frames_one_after_the_other() -> None:
    """As programs write them that pack on several processors."""
    data = tar([Made("a", b"here" * 1000)])
    packed = bytes(framed(data[:900], 20) + framed(data[900:], 20))
    assert find_in_layer([packed], layer(packed, LAYER_ZSTD), "a", limit=4000, budget=Budget.of("i")) == b"here" * 1000


@pytest.mark.parametrize(
    ("media_type", "data", "why"),
    [
        pytest.param(LAYER_GZIP, b"no gzip", "incorrect header check", id="no gzip"),
        pytest.param(LAYER_GZIP, gzip.compress(b"x" * 2000)[:12] + b"\xff" * 30, "invalid", id="broken inside"),
        pytest.param(LAYER_ZSTD, b"no zstd", "Unknown frame", id="no zstd"),
        pytest.param(PLAIN, b"no tar", "it is cut short", id="no tar"),
    ],
)
def test_a_broken_layer(media_type: str, data: bytes, why: str) -> None:
    """Image and layer are named; what arrives is taken to its end all the same, so that it can be hashed."""
    pieces = iter([data, b"more", b"and more"])
    found = layer(data, media_type)
    with pytest.raises(BrokenLayer) as caught:
        find_in_layer(pieces, found, "a", limit=4, budget=Budget.of("image"))
    assert str(caught.value).startswith(f"image image: layer {found.digest} is broken: ")
    assert why in str(caught.value)
    assert list(pieces) == []


def test_a_type_that_is_not_read() -> None:
    """It may be in order: what is in it is not known."""
    with (
        pytest.raises(BeyondLimits, match="image image: cannot read a layer of type text/plain"),
        open_layer(Stream(), layer(media_type="text/plain"), Budget.of("image")),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b", "a/b"),
        ("./a//b/", "a/b"),
        ("/a", "a"),
        ("//a", "a"),
        ("./", ""),
        ("", ""),
        ("...", "..."),
        ("a/..b/c..", "a/..b/c.."),
    ],
)
def test_a_path_from_the_root(name: str, path: str) -> None:
    """However a writer begins it."""
    assert inner_path(name, "image") == path


@pytest.mark.parametrize("name", ["..", "a/..", "../a", "a/../b", "/..", "a\0b"])
def test_a_path_that_leaves_the_root(name: str) -> None:
    """Also one that would come back."""
    with pytest.raises(BadImage) as caught:
        inner_path(name, "image")
    assert str(caught.value) == f"image image: {name!r} leaves the image's root"


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        (".wh.a", ("a", False)),
        ("b/.wh.a", ("b/a", False)),
        ("b/c/.wh..wh..opq", ("b/c", True)),
        (".wh..wh..opq", ("", True)),
        ("b/.wh..wh.a", ("b/.wh.a", False)),
        (".wh.b/a", None),
        ("b/a.wh.", None),
    ],
)
def test_what_a_whiteout_hides(path: str, hidden: tuple[str, bool] | None) -> None:
    """OCI image-spec, "Whiteouts": a file of that name, or with the opaque one all that is in the folder."""
    assert hidden_by(path) == hidden


def test_entries_have_paths_and_the_root_has_none() -> None:
    """Every one of them is counted, the root too."""
    data = tar([Made("./", b"", b"5"), Made("./a"), Made("b/c/", b"", b"5")])
    budget = Budget.of("image", None, 3)
    with open_layer(Stream(data), layer(data), budget) as (archive, _):
        assert [(path, entry.name) for path, entry in checked_entries(archive, budget)] == [
            ("a", "./a"),
            ("b/c", "b/c/"),
        ]
    assert budget.entries == 0


@pytest.mark.parametrize(
    ("made", "limit", "said"),
    [
        pytest.param(Made("a", b"1234"), 3, "image image: a is larger than 3 bytes", id="too large"),
        pytest.param(symlink("a", "b"), 4, "image image: a is not a regular file", id="a link"),
        pytest.param(hardlink("a", "b"), 4, "image image: a is not a regular file", id="a hard link"),
    ],
)
def test_a_file_that_is_not_read_out(made: Made, limit: int, said: str) -> None:
    """The error names the file that is in the place."""
    data = tar([made])
    with pytest.raises(BadImage) as caught:
        find_in_layer([data], layer(data), "a", limit=limit, budget=Budget.of("image"))
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("made", "found"),
    [
        pytest.param([Made("a", b"1234")], b"1234", id="as large as may be"),
        pytest.param([Made("a", b"1"), Made("a", b"2")], b"2", id="the later of two"),
        pytest.param([Made("a", b"1"), Made(".wh.a")], b"1", id="whatever is hidden below"),
        pytest.param([Made(".wh.a"), Made("b")], Hidden.YES, id="hidden, and nothing said of it any more"),
        pytest.param([Made("a", b"")], b"", id="empty, which is not the same as not there"),
    ],
)
def test_a_file_that_is_read_out(made: list[Made], found: bytes | Hidden) -> None:
    """What the layer says about it in the end."""
    data = tar(made)
    assert find_in_layer([data], layer(data), "a", limit=4, budget=Budget.of("image")) == found


def test_a_file_is_read_out_up_to_the_layers_end() -> None:
    """Bytes after the archive count for the limits, as for the hash."""
    data = tar([Made("a")])
    budget = Budget.of("image", len(data) + 5)
    assert find_in_layer([data + bytes(5)], layer(data), "a", limit=4, budget=budget) == b"x"
    assert budget.bytes == 0
    with pytest.raises(BeyondLimits, match="unpacks to more than"):
        find_in_layer([data], layer(data), "a", limit=4, budget=budget)


def test_pieces_are_a_file() -> None:
    """As much as is asked for, out of one piece at a time; empty ones are no end."""

    def coming() -> Iterator[bytes]:
        yield from (b"abc", b"", b"d")

    pieces = Pieces(coming())
    assert [pieces.read(size) for size in (2, 2, 1, 5, 5)] == [b"ab", b"c", b"d", b"", b""]


def test_limits_are_the_images_not_a_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers of half a limit each and a third are one image too many."""
    monkeypatch.setattr("kubekit.oci.tarstream.MAX_ENTRIES", 2)
    budget = Budget.of("i")
    data = header(b"a") + bytes(1024)
    layer = Descriptor(media_type="application/vnd.oci.image.layer.v1.tar", digest="sha256:x", size=len(data))
    for _ in range(2):
        find_in_layer([data], layer, "b", limit=1, budget=budget)
    with pytest.raises(BadImage, match="more than 2 entries"):
        find_in_layer([data], layer, "b", limit=1, budget=budget)


def test_a_layer_may_grow_as_text_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data may expand freely; beyond that the limit depends on the packed size."""
    monkeypatch.setattr("kubekit.oci.tarstream.MAX_SMALL_BYTES", 2 * MIB)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo("a")
        info.size = MIB
        archive.addfile(info, io.BytesIO(bytes(MIB)))
    data = stream.getvalue()
    layer = Descriptor(media_type=LAYER_GZIP, digest="sha256:x", size=len(data))
    assert find_in_layer([data], layer, "a", limit=MIB, budget=Budget.of("i")) == bytes(MIB)
    monkeypatch.setattr("kubekit.oci.tarstream.MAX_SMALL_BYTES", MIB // 2)
    monkeypatch.setattr("kubekit.oci.tarstream.MAX_RATIO", 10)
    with pytest.raises(BadImage, match="10 times what it has packed"):
        find_in_layer([data], layer, "a", limit=MIB, budget=Budget.of("i"))
