"""Keeps the results of a fleet in a temporary file, so that memory holds only the one that is read or written."""

from __future__ import annotations

import os
import pickle
import tempfile
import zlib
from collections.abc import Sequence
from typing import overload

from kubekit.error_types import Terminal
from runup.evaluation.results import ClusterResult

# The least compression: the results of two clusters differ little, and a report of 24 KB takes 3 KB.
_LEVEL = 1


class ResultSpool(Sequence[ClusterResult]):
    """The results of `size` clusters by their index, in whatever order they arrive.

    The file has no name, so that it disappears with this process however that ends. Worker processes inherit it, and
    therefore each access names its position. Raises Terminal if the temporary folder has no room.
    """

    def __init__(self, size: int) -> None:
        self._places: list[tuple[int, int]] = [(0, 0)] * size
        self._end = 0
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (open as long as the results are)
        except OSError as error:
            raise _no_room(error) from error

    def put(self, index: int, result: ClusterResult) -> None:
        """Adds the result of a cluster."""
        data = memoryview(zlib.compress(pickle.dumps(result, pickle.HIGHEST_PROTOCOL), _LEVEL))
        self._places[index] = self._end, len(data)
        while data:
            try:
                written = os.pwrite(self._file.fileno(), data, self._end)
            except OSError as error:
                raise _no_room(error) from error
            self._end += written
            data = data[written:]

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ClusterResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[ClusterResult]: ...
    def __getitem__(self, index: int | slice) -> ClusterResult | list[ClusterResult]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        start, size = self._places[index]
        result: ClusterResult = pickle.loads(zlib.decompress(os.pread(self._file.fileno(), size, start)))  # noqa: S301
        return result


def _no_room(error: OSError) -> Terminal:
    text = f"results cannot be kept in the temporary folder {tempfile.gettempdir()}: {error.strerror or error}"
    return Terminal(f"{text}; set TMPDIR to a folder that has room", reason="NoRoom")
