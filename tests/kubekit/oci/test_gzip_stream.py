"""gzip as it arrives: the same bytes as Python's own reader, and nothing in a header that keeps it busy."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.oci import tar
from kubekit.oci.tar import BadGzip, GzipStream

MEMBER = gzip.compress(b"some text " * 100, mtime=0)


class Slowly:
    """Packed bytes that arrive so many at a time; counts how often they are asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = io.BytesIO(data), size
        self.asked = 0

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes."""
        self.asked += 1
        return self._data.read(min(size, self._size))


def unpacked(data: bytes, *, arriving: int = 1 << 16, size: int = 1 << 16) -> bytes:
    """All of it, read in pieces of `size`."""
    stream = GzipStream(Slowly(data, arriving))
    return b"".join(iter(lambda: stream.read(size), b""))


@given(
    st.lists(st.binary(max_size=300), max_size=5),
    st.integers(1, 50),
    st.integers(1, 500),
    st.sampled_from([b"", b"\0", b"\0" * 600]),
)
def test_members_of_any_content_in_pieces_of_any_size(
    contents: list[bytes], arriving: int, size: int, between: bytes
) -> None:
    """Zeros behind a member are padding, as for Python's reader."""
    packed = b"".join(gzip.compress(each, mtime=0) + between for each in contents)
    assert unpacked(packed, arriving=arriving, size=size) == gzip.decompress(packed) == b"".join(contents)


def test_a_header_with_all_that_it_may_have() -> None:
    """Extra bytes, name, comment and checksum (RFC 1952, 2.3)."""
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"name\0" + b"comment\0"
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    assert unpacked(head + MEMBER[10:]) == b"some text " * 100


def test_a_name_without_an_end_is_read_by_the_piece() -> None:
    """Python's reader asks for each byte: a megabyte of it took a second, and a layer may have gigabytes."""
    slowly = Slowly(b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * (8 << 20), 1 << 20)
    with pytest.raises(EOFError, match="before the end of a gzip member"):
        GzipStream(slowly).read(1)
    assert slowly.asked < 600


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        pytest.param(MEMBER[:-1], EOFError, "before the end of a gzip member", id="cut short"),
        pytest.param(b"no gzip at all", BadGzip, "incorrect header check", id="another format"),
        pytest.param(MEMBER + b"more", BadGzip, "incorrect header check", id="what follows is no member"),
        pytest.param(MEMBER[:-8] + bytes(8), BadGzip, "incorrect data check", id="another checksum"),
        pytest.param(MEMBER[:-4] + bytes(4), BadGzip, "incorrect length check", id="another length"),
        pytest.param(MEMBER[:30] + b"\xff" * 30 + MEMBER[30:], BadGzip, "Error -3", id="broken inside"),
    ],
)
def test_what_is_no_gzip(data: bytes, error: type[Exception], said: str) -> None:
    """Told as what it is, however it arrives."""
    for arriving in (1, 7, 1 << 16):
        with pytest.raises(error, match=said):
            unpacked(data, arriving=arriving)


def test_nothing_is_no_member() -> None:
    """As for Python's reader; an archive of nothing is reported as such."""
    assert unpacked(b"") == gzip.decompress(b"") == b""


def test_how_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the limit, and no more: each costs time, and next to no bytes."""
    monkeypatch.setattr(tar, "MAX_MEMBERS", 3)
    empty = gzip.compress(b"", mtime=0)
    assert unpacked(empty * 2 + MEMBER) == b"some text " * 100
    with pytest.raises(BadGzip, match="it has more than 3 gzip members"):
        unpacked(empty * 4)
