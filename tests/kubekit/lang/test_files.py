"""Files are written whole or not at all, with the mode they had; and what is no file is written as it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kubekit.lang.files import write_whole


def test_a_file_that_was_there_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    """As opening it for writing would."""
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_a_new_file_may_be_read_as_the_umask_says(tmp_path: Path) -> None:
    """Not by its owner alone, as scratch files are."""
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", "ö\n")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_bytes() == b"\xc3\xb6\n"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    """A half of it is never seen, nor a scratch file."""
    (tmp_path / "file").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file", "x" * 100_000 + "\ud800")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("file", "old")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_error_names_the_file() -> None:
    """Of a full disk Python does not say which."""
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole("/dev/full", "x" * 100_000)


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    """Whoever reads it waits for that very pipe."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(tmp_path / "pipe", "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
