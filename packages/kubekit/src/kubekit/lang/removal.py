"""Removes folders that others filled: of any depth, in bounded memory, with a handful of open files, following no link.

`shutil.rmtree` calls itself for each level and keeps a file open for each: a folder 1,000 deep ends it, by an error
that it does not ignore. Here a folder's folders are moved up beside it before it is removed, so that no path is longer
than two names, however deep the tree was.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

MAX_ENTRIES = 1_000_000
"""The number of entries that one call removes at most."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Entries that are looked at together: a folder may have millions.
_TOGETHER = 1000


class _Stuck(OSError):
    """Raised if nothing of a folder can be removed any more."""


def remove_tree(path: Path, most: int = MAX_ENTRIES) -> str:
    """Removes the folder `path` with all that it holds; returns why something of it is left, or an empty text.

    A link in its place is left alone. What is on other file systems goes as well, as far as it can be moved.
    """
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _error_text(error)
    try:
        return _remove_at(parent, path.name, most)
    finally:
        os.close(parent)


def _remove_at(parent: int, name: str, most: int) -> str:
    """Removes the folder `name` in the open folder `parent`; returns why it could not, or "".

    At most `most` entries go.
    """
    try:
        root = os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _error_text(error)
    try:
        removal_error = _Removal(root, most).run()
    except OSError as error:
        return _error_text(error)
    finally:
        os.close(root)
    if not removal_error:
        return f"it has more than {most} entries"
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        return _error_text(error)
    return ""


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)


class _Removal:
    def __init__(self, root: int, most: int) -> None:
        self._root = root
        self._removals_left = most
        self._names = count()
        self._error: OSError | None = None

    def run(self) -> bool:
        """Empties the folder; returns False if it has more than `most` entries. Raises OSError if one stays."""
        while batch := list(_first_entries(self._root)):
            left_before = self._removals_left
            for name, is_folder in batch:
                if self._removals_left <= 0:
                    return False
                if not is_folder:
                    self._do_step(os.unlink, name, self._root)
                elif self._empty_folder(name):
                    self._do_step(os.rmdir, name, self._root)
            if self._removals_left == left_before:
                raise self._error or _Stuck("it is filled again and again")
        return True

    def _empty_folder(self, name: str) -> bool:
        """Unlinks the files of a folder and moves its folders up to the root; returns whether nothing is left in it."""
        try:
            folder = os.open(name, _FOLDER, dir_fd=self._root)
        except OSError as error:
            self._error = error
            return False
        try:
            while batch := list(_first_entries(folder)):
                left_before = self._removals_left
                for path, is_folder in batch:
                    if self._removals_left <= 0:
                        return False
                    self._do_step(self._move_up if is_folder else os.unlink, path, folder)
                if self._removals_left == left_before:
                    return False
            return True
        finally:
            os.close(folder)

    def _move_up(self, name: str, *, dir_fd: int) -> None:
        """Moves a folder up to the root under a new name, so that paths never become too long. Raises OSError."""
        # A name that is taken already may be a folder with something in it: then the next number is tried.
        for number in islice(self._names, 3):
            try:
                os.rename(name, f".removed-{os.getpid()}-{number}", src_dir_fd=dir_fd, dst_dir_fd=self._root)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            else:
                return
        raise _Stuck(f"{name} cannot be moved")

    def _do_step(self, step: Callable[..., None], name: str, folder: int) -> None:
        """Does one step, and counts it; an error is kept, because other entries can go all the same."""
        try:
            step(name, dir_fd=folder)
        except FileNotFoundError:
            self._removals_left -= 1
        except OSError as error:
            self._error = error
        else:
            self._removals_left -= 1


def _first_entries(folder: int) -> Iterator[tuple[str, bool]]:
    """Yields the first entries of a folder: the name, and whether it is a folder itself."""
    with os.scandir(folder) as entries:
        for entry in islice(entries, _TOGETHER):
            yield entry.name, entry.is_dir(follow_symlinks=False)
