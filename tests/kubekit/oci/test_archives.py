"""Archives header by header: every field where it stands, what is refused in which words, each limit at its edge."""

from __future__ import annotations

import io
import re
import tarfile

import pytest
from bench.hostile.images import header

from kubekit.oci.tar import Archive, BadTar, Entry

END = bytes(1024)


def changed(block: bytes, *fields: tuple[int, bytes], signed: bool = False) -> bytes:
    """A header with other bytes at some places, and the checksum of that; `signed` as old writers had it."""
    made = bytearray(block)
    for at, value in fields:
        made[at : at + len(value)] = value
    made[148:156] = b" " * 8
    total = sum(made) - (256 * sum(byte >= 0x80 for byte in made) if signed else 0)
    made[148:156] = b"%06o\0 " % total
    return bytes(made)


def extended(kind: bytes, data: bytes) -> bytes:
    """A header that says something of the entry after it."""
    return header(b"././@LongLink", kind, len(data)) + data + bytes(-len(data) % 512)


def record(key: bytes, value: bytes) -> bytes:
    """A record of a pax header: its length counts itself."""
    rest = b" %s=%s\n" % (key, value)
    length = next(size for size in range(len(rest), len(rest) + 20) if len(b"%d" % size) + len(rest) == size)
    return b"%d" % length + rest


def read(data: bytes) -> list[tuple[Entry, bytes]]:
    """Every entry with its content."""
    archive = Archive(io.BytesIO(data))
    return [(entry, b"".join(archive.pieces())) for entry in archive]


def only(data: bytes) -> Entry:
    """The one entry of an archive."""
    ((entry, _),) = read(data + END)
    return entry


def test_records_are_as_long_as_they_say() -> None:
    """POSIX has this one for an example: the length counts its own digits."""
    assert record(b"path", b"x" * 90) == b"99 path=" + b"x" * 90 + b"\n"
    assert record(b"path", b"x" * 91) == b"101 path=" + b"x" * 91 + b"\n"


@pytest.mark.parametrize(
    ("block", "mode"),
    [
        pytest.param(header(b"a"), 0o644, id="as written"),
        pytest.param(changed(header(b"a"), (100, b"0100755\0")), 0o755, id="a file's type in it is none of it"),
        pytest.param(changed(header(b"a"), (100, b"0007777\0")), 0o7777, id="every bit of it"),
        pytest.param(changed(header(b"a"), (100, b"  755 \0 ")), 0o755, id="with blanks around it"),
        pytest.param(changed(header(b"a"), (100, b"\x80\0\0\0\0\0\1\xed")), 0o755, id="in base 256"),
        pytest.param(changed(header(b"a"), (100, bytes(8))), 0, id="left empty"),
        pytest.param(changed(header(b"a"), (100, b"rw-r--r-")), 0o644, id="no number, which is as good as any"),
        pytest.param(changed(header(b"a"), (100, b"0000999\0")), 0o644, id="no octal number"),
    ],
)
def test_the_mode(block: bytes, mode: int) -> None:
    """Permission, set-id and sticky bits."""
    assert only(block).mode == mode


@pytest.mark.parametrize(
    ("field", "size"),
    [
        pytest.param(b"00000000003\0", 3, id="octal"),
        pytest.param(b"         3 \0", 3, id="with blanks"),
        pytest.param(b"000000000003", 3, id="without an end"),
        pytest.param(b"\x80" + (3).to_bytes(11, "big"), 3, id="base 256"),
        pytest.param(bytes(12), 0, id="empty"),
    ],
)
def test_a_size(field: bytes, size: int) -> None:
    """As tar writers have it."""
    ((entry, content),) = read(changed(header(b"a"), (124, field)) + (b"xyz" + bytes(509) if size else b"") + END)
    assert (entry.size, content) == (size, b"xyz"[:size])


@pytest.mark.parametrize(
    "field",
    [
        b"00000000008\0",
        b"00000000009\0",
        b"0000000001x\0",
        b"000001 00001",
        b"\xff" * 12,
        b"\x7f" + bytes(11),
        "\u0663".encode() * 6,
    ],
)
def test_a_size_that_is_no_number(field: bytes) -> None:
    """It is shown."""
    with pytest.raises(BadTar, match=re.escape(f"{field!r} is not a number")):
        only(changed(header(b"a"), (124, field)))


@pytest.mark.parametrize(
    ("block", "name"),
    [
        pytest.param(header(b"n" * 100), "n" * 100, id="as long as its field"),
        pytest.param(changed(header(b"n"), (345, b"some/folder")), "some/folder/n", id="its first part apart"),
        pytest.param(
            changed(header(b"n"), (345, b"p" * 155), (500, b"x")), "p" * 155 + "/n", id="its first part at its longest"
        ),
        pytest.param(
            changed(header(b"n"), (257, b"ustar  \0"), (345, b"00000000000")), "n", id="GNU tar has times there"
        ),
        pytest.param(
            changed(header(b"n"), (257, bytes(8)), (345, b"folder")), "n", id="and who knows what before POSIX"
        ),
        pytest.param(header(b"caf\xe9"), "caf\udce9", id="bytes that are no text"),
    ],
)
def test_a_name(block: bytes, name: str) -> None:
    """The whole of its field, and of a second one where POSIX has that."""
    assert only(block).name == name


def test_where_a_link_leads() -> None:
    """The whole of its field, and nothing of the next."""
    assert only(header(b"a", b"2", 0, b"l" * 100)).linkname == "l" * 100


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (b"0", "isreg"),
        (b"\0", "isreg"),
        (b"7", "isreg"),
        (b"1", "islnk"),
        (b"2", "issym"),
        (b"3", "isdev"),
        (b"4", "isdev"),
        (b"5", "isdir"),
        (b"6", "isdev"),
    ],
)
def test_every_kind(kind: bytes, asked: str) -> None:
    """It is one thing and no other; what is no file has no content, whatever it claims."""
    entries = read(header(b"a", kind, 512 if asked != "isreg" else 0) + header(b"b") + END)
    assert [entry.name for entry, _ in entries] == ["a", "b"]
    names = ("isreg", "isdir", "issym", "islnk", "isdev")
    assert [name for name in names if getattr(entries[0][0], name)()] == [asked]
    assert entries[0][0].size == 0


def test_only_before_posix_a_slash_makes_a_folder() -> None:
    """A file of today whose name ends so is a file."""
    assert only(header(b"a/", b"\0")).isdir()
    assert only(header(b"a/")).isreg()


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1024])
@pytest.mark.parametrize("taken", [0, 1, 9])
def test_content_that_nobody_reads_is_passed_over(size: int, taken: int) -> None:
    """The next header is found, whether all of the content was taken, a part, or none."""
    data = header(b"a", size=size) + b"x" * size + bytes(-size % 512) + header(b"b", size=3) + b"yes" + bytes(509) + END
    archive = Archive(io.BytesIO(data))
    first = next(iter(archive))
    for _, piece in zip(range(taken), archive.pieces(), strict=False):
        assert piece
    second = next(iter(archive))
    assert (first.name, second.name, b"".join(archive.pieces())) == ("a", "b", b"yes")


class Asked:
    """An archive that notes how much was asked for at once."""

    def __init__(self, data: bytes) -> None:
        self._stream = io.BytesIO(data)
        self.sizes: list[int] = []

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self.sizes.append(size)
        return self._stream.read(size)


def test_a_large_file_comes_in_pieces() -> None:
    """Of a quarter of a mebibyte, so that nobody holds all of it."""
    source = Asked(header(b"a", size=600_000) + bytes(600_000 + 64) + END)
    archive = Archive(source)
    next(iter(archive))
    assert [len(piece) for piece in archive.pieces()] == [262_144, 262_144, 75_712]
    assert max(source.sizes) == 262_144


@pytest.mark.parametrize("kind", [b"x", b"X"])
def test_a_pax_header_says_more_of_the_next_entry(kind: bytes) -> None:
    """Its name, link and size instead of the fields', and of no entry after that."""
    said = record(b"path", b"long") + record(b"size", b"3") + record(b"linkpath", b"there") + record(b"comment", b"")
    data = extended(kind, said) + header(b"short", b"0", 0, b"here") + b"abc" + bytes(509) + header(b"next") + END
    (first, content), (second, _) = read(data)
    assert (first.name, first.linkname, content) == ("long", "there", b"abc")
    assert (second.name, second.linkname, second.size) == ("next", "", 0)


def test_headers_in_a_row_add_up() -> None:
    """The later entry counts; fields that it lacks are kept."""
    data = extended(b"L", b"name\0") + extended(b"K", b"link\0more") + extended(b"x", record(b"path", b"last"))
    assert only(data + header(b"a", b"2")) == Entry(name="last", kind=b"2", size=0, mode=0o644, linkname="link")


@pytest.mark.parametrize("kind", [b"x", b"g", b"L"])
@pytest.mark.parametrize("count", [8, 9])
def test_how_many_headers_belong_to_one_entry(kind: bytes, count: int) -> None:
    """Eight are read, of whatever kind."""
    data = extended(kind, record(b"comment", b"")) * count + header(b"a") + END
    if count == 8:
        assert len(read(data)) == 1
    else:
        with pytest.raises(BadTar, match="more than 8 extended headers belong to one entry"):
            read(data)


def test_the_count_begins_anew_with_each_entry() -> None:
    """Eight before each of two are not sixteen."""
    assert len(read((extended(b"x", record(b"comment", b"")) * 8 + header(b"a")) * 2 + END)) == 2


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g"])
def test_how_long_a_header_may_be(kind: bytes) -> None:
    """131,072 bytes, two attributes of the 65,536 that Linux allows; one more is refused before it is read."""
    # A name ends at the first NUL, so that it may be short in a long header.
    body = b"n\0" + bytes(131_070) if kind in (b"L", b"K") else record(b"comment", b"v" * (131_072 - 16))
    assert len(body) == 131_072
    assert only(extended(kind, body) + header(b"a")).size == 0
    with pytest.raises(BadTar, match="a header has 131073 bytes; the limit is 131072"):
        only(header(b"././@LongLink", kind, 131_073))


@pytest.mark.parametrize(("kind", "what"), [(b"L", "name"), (b"K", "link")])
def test_how_long_a_path_may_be(kind: bytes, what: str) -> None:
    """4,096 bytes, Linux' PATH_MAX."""
    entry = only(extended(kind, b"p" * 4096) + header(b"a", b"2"))
    assert "p" * 4096 in (entry.name, entry.linkname)
    with pytest.raises(BadTar, match=f"a {what} has 4097 bytes; the limit is 4096"):
        only(extended(kind, b"p" * 4097) + header(b"a", b"2"))


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(b"5 a=b\n", id="longer than it says"),
        pytest.param(b"00000000000000000025 a=b\n", id="a length of twenty digits"),
        pytest.param(b"path=a\n", id="no length"),
        pytest.param(b" 7 a=b\n", id="a blank before it"),
        pytest.param(b"7\ta=bc\n", id="a tab behind it"),
        pytest.param(b"-7 a=b\n", id="less than nothing"),
        pytest.param(b"0 a=b\n", id="nothing"),
        pytest.param(b"6 a=b\n" + b"0 c=d\n", id="nothing in the second"),
        pytest.param(b"6 a=b\n" + b"1 c=d\n", id="its own first digit"),
        pytest.param(b"6 a=bc", id="no end of the line"),
        pytest.param(b"7 a=b\n", id="longer than the header"),
        pytest.param(b"6 abc\n", id="no value"),
        pytest.param(b"6 a=b\nx", id="something after it"),
    ],
)
def test_records_that_are_none(records: bytes) -> None:
    """One that does not fit makes the whole header worthless."""
    with pytest.raises(BadTar, match="a pax header is malformed"):
        only(extended(b"x", records) + header(b"a"))


@pytest.mark.parametrize(
    ("records", "name"),
    [
        pytest.param(b"0000000000000000027 path=b\n", "b", id="a length of nineteen digits"),
        pytest.param(b"12 path=b=c\n", "b=c", id="a sign in the value"),
        pytest.param(b"12 path=b\nc\n", "b\nc", id="a line's end in the value"),
        pytest.param(b"10 path=b\n10 path=c\n", "c", id="the same again, which counts"),
        pytest.param(b"8 path=\n", "a", id="empty, as if it were not said"),
        pytest.param(b"5 =b\n", "a", id="of no name"),
        pytest.param(b"6 \xff=b\n", "a", id="of a name that is not text"),
    ],
)
def test_records_that_are_read(records: bytes, name: str) -> None:
    """As POSIX has them, "pax Extended Header"."""
    assert only(extended(b"x", records) + header(b"a")).name == name


@pytest.mark.parametrize("said", ["1e99", "-1", "", "0x10", "1" * 20, "7" * 50])
def test_a_pax_size_that_is_no_number(said: str) -> None:
    """As much of it is shown as shows what it is."""
    with pytest.raises(BadTar, match=re.escape(f"a file's size is {said.encode()[:40]!r}")):
        only(extended(b"x", record(b"size", said.encode())) + header(b"a"))


@pytest.mark.parametrize("key", ["path", "linkpath", "size", "GNU.sparse.major"])
def test_what_a_global_header_may_not_say(key: str) -> None:
    """Readers differ in whom it is said of; anything else is nobody's business."""
    other = record(b"comment", b"made by a test") + record(b"mtime", b"1")
    assert only(extended(b"g", other) + header(b"a")).name == "a"
    with pytest.raises(BadTar, match=f"a global header gives every entry a {key}"):
        only(extended(b"g", other + record(key.encode(), b"1")) + header(b"a"))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(header(b"s", b"S"), id="of GNU tar"),
        pytest.param(extended(b"x", record(b"GNU.sparse.major", b"1")) + header(b"s"), id="of pax"),
        pytest.param(
            extended(b"x", record(b"comment", b"") + record(b"GNU.sparse.map", b"")) + header(b"s"), id="of both"
        ),
    ],
)
def test_a_sparse_file(data: bytes) -> None:
    """No image has one, and readers differ."""
    with pytest.raises(BadTar, match="it has a sparse file, which is not read"):
        only(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "it is empty", id="nothing"),
        pytest.param(header(b"a")[:511], "it is cut short", id="all but a byte of a header"),
        pytest.param(header(b"a") + b"x", "it is cut short", id="a byte of the second"),
        pytest.param(header(b"a", size=2) + b"x", "it ends in the middle of a file", id="half a file"),
        pytest.param(header(b"a", size=2), "it ends in the middle of a file", id="nothing of a file"),
        pytest.param(header(b"a", b"x", 2), "it ends in the middle of a file", id="nothing of a pax header"),
        pytest.param(b"x" * 512, "is not a number", id="no header"),
        pytest.param(
            header(b"a")[:9] + b"x" + header(b"a")[10:], "a header's checksum does not hold", id="another byte"
        ),
    ],
)
def test_no_archive(data: bytes, said: str) -> None:
    """The error is one line."""
    with pytest.raises(BadTar, match=said):
        read(data)


@pytest.mark.parametrize("data", [END, bytes(512), END + header(b"a")], ids=["its end", "half its end", "what follows"])
def test_an_archive_of_nothing(data: bytes) -> None:
    """The end may come first."""
    assert read(data) == []


@pytest.mark.parametrize("kind", [b"0", b"\x80"])
def test_a_checksum_of_signed_bytes(kind: bytes) -> None:
    """Some writers summed those; a byte is negative from 128 on, in whichever field it stands."""
    block = header(b"\x7f\x80\xff", kind)
    fields = ((136, b"\x80" + bytes(10) + b"\xc8"), (157, b"\x80\x7f"), (511, b"\xff"))
    assert only(changed(block, *fields, signed=True)) == only(changed(block, *fields))


def listed(data: bytes) -> list[tuple[str, int, str, str]]:
    """What our reader finds: name, size, link, type."""
    found = []
    archive = Archive(io.BytesIO(data))
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
