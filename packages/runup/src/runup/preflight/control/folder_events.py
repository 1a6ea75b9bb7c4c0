"""Tells when a file is renamed into a folder, by the kernel's inotify; where there is none, it tells nothing.

Python has no binding of inotify, whose three calls are made through ctypes. File systems of a network tell only what
their own machine changes, and some tell nothing: whoever waits for an event looks now and then all the same.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

# <sys/inotify.h>
_IN_MOVED_TO = 0x80
_IN_ONLYDIR, _IN_DONT_FOLLOW = 0x01000000, 0x02000000
_MASK = _IN_MOVED_TO | _IN_ONLYDIR | _IN_DONT_FOLLOW
# Events that are read together; those that are left over are told at the next `wait`.
_READ_BYTES = 1 << 16


class FolderEvents:
    """A context manager that watches one folder at a time, and follows no link to it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._handle = -1
        # The watch of the folder in the kernel, negative for none.
        self._watch = -1
        self.has_told = False
        """Whether there was any event in the folder that is watched."""

    def __enter__(self) -> Self:
        if self._libc is not None:
            self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def watch(self, folder: Path | None) -> None:
        """Watches `folder` and no other; one that does not exist yet is watched when this is called again."""
        if self._libc is None or self._handle < 0:
            return
        watch = -1
        if folder is not None:
            # Again each time: there may be another folder of this name by now. For the same one it is the same watch.
            watch = self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _MASK)
        if watch == self._watch:
            return
        if self._watch >= 0:
            # An error if the folder is gone: then the kernel has removed the watch.
            self._libc.inotify_rm_watch(self._handle, self._watch)
        self._watch, self.has_told = watch, False

    async def wait(self) -> None:
        """Waits for an event in the folder; for ever where there is no inotify."""
        happened = asyncio.Event()
        if self._handle < 0:
            await happened.wait()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._handle, happened.set)
        try:
            await happened.wait()
        finally:
            loop.remove_reader(self._handle)
        self.has_told = True
        with suppress(BlockingIOError):
            os.read(self._handle, _READ_BYTES)
