"""A stream cut anywhere comes out as the lines that went in."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubekit.kube import list_pages
from kubekit.kube.api_errors import Transient
from kubekit.kube.list_pages import Lines


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=20), st.data())
def test_chunks_do_not_matter(expected: list[bytes], data: st.DataObject) -> None:
    """However a stream is cut, its lines are the same; the unfinished last one is not a line."""
    stream = b"".join(line + b"\n" for line in expected) + b"unfinished"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    splitter = Lines()
    assert [line for piece in pieces for line in splitter.feed(piece)] == [line for line in expected if line.strip()]


def test_a_long_line_costs_its_length() -> None:
    """16 MiB in chunks of 1 KiB: adding bytes up would copy 128 GiB."""
    splitter, chunk = Lines(), b"x" * 1024
    started = time.process_time()
    for _ in range(16 * 1024):
        assert splitter.feed(chunk) == []
    (line,) = splitter.feed(b"\n")
    assert len(line) == 16 * 1024 * 1024
    assert time.process_time() - started < 2


def test_an_endless_line_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never ends its line cannot fill the memory."""
    monkeypatch.setattr(list_pages, "LONGEST_LINE", 10)
    splitter = Lines()
    splitter.feed(b"x" * 10)
    with pytest.raises(Transient, match="longer than 10 bytes") as caught:
        splitter.feed(b"x")
    assert caught.value.reason == "LineTooLong"


def test_how_long_a_line_may_be() -> None:
    """64 MiB, which no object's event has."""
    splitter, chunk = Lines(), bytes(1024 * 1024)
    for _ in range(64):
        assert splitter.feed(chunk) == []
    with pytest.raises(Transient, match="a line of a watch is longer than 67108864 bytes"):
        splitter.feed(b"x")


def test_each_line_has_the_whole_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came of the next one counts for that, and for no other."""
    monkeypatch.setattr(list_pages, "LONGEST_LINE", 10)
    splitter = Lines()
    assert splitter.feed(b"x" * 9) == []
    assert splitter.feed(b"x\n" + b"y" * 30 + b"\n" + b"z" * 4) == [b"x" * 10, b"y" * 30]
    assert splitter.feed(b"z" * 6) == []
    with pytest.raises(Transient):
        splitter.feed(b"z")
