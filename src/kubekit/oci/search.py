"""Files looked for in an image whose layers arrive, the uppermost first; nothing is kept, and it ends early.

What upper layers say counts: a lower one only adds what they neither have nor hide. So a file that was seen and is not
hidden is there for good, and nothing further need be fetched. Links are followed as the image has them, to a file or to
a folder; a link may come after what it leads to, so what has a wanted name is remembered wherever it is. What is
remembered has a limit.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kubekit.oci.errors import BeyondLimits
from kubekit.oci.tar import Entry
from kubekit.oci.tarstream import hidden_by

MAX_REMEMBERED_BYTES = 8 * 1024 * 1024
"""Most bytes of names that a search keeps; a distribution's folders and links have less than one mebibyte."""

MAX_HOPS = 40
"""Most links that one path may lead through, as in Linux."""

MAX_LINKS = 512
"""Most links on the way to the folder that is searched, and in it."""

_EACH = 120  # bytes that a name costs besides its characters, about


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: files below `folder`, at any depth, by what `key` makes of their names.

    `key` gives an empty text for a file that is of no interest.
    """

    folder: str
    wanted: frozenset[str]
    key: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Searched:
    """What became of it: where each was found, and where files of wanted names are elsewhere.

    `layers` of `of` layers were read, the last one perhaps in part; `fetched` are bytes of them as they were sent.
    """

    found: Mapping[str, str] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    layers: int = 0
    of: int = 0
    fetched: int = 0


class Search:
    """One search; `layer` is called for each layer from the uppermost down, until it says that all was found."""

    def __init__(self, image: str, sought: Sought) -> None:
        self._image = image
        self._sought = sought
        self._folder = posixpath.normpath(f"/{sought.folder}").lstrip("/")
        self._left = MAX_REMEMBERED_BYTES
        # Of what was read so far: folders, links and where they lead, files of wanted names, others where it matters.
        self._folders: set[str] = set()
        self._links: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._others: set[str] = set()
        # What the layers that were read hide of those below.
        self._gone: set[str] = set()
        self._opaque: set[str] = set()
        # The folder under all its names, and on which paths a link would give it another one.
        self._roots: tuple[str, ...] = ()
        self._ways: set[str] = set()
        self._awaited: dict[str, tuple[str, str]] = {}
        self._relevant = 0
        self._found: dict[str, str] = {}
        self._follow()

    @property
    def found(self) -> Mapping[str, str]:
        """Where each was found that was."""
        return dict(self._found)

    @property
    def complete(self) -> bool:
        """Whether all was found."""
        return self._sought.wanted <= self._found.keys()

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Files of wanted names that were not found where they belong."""
        return tuple(sorted(path for path, key in self._files.items() if key not in self._found))

    def layer(self, entries: Iterable[tuple[str, Entry]]) -> bool:
        """Take a layer's entries, up to that which completes the search; says whether one does. Raises BeyondLimits."""
        above = _Above(
            frozenset(self._gone),
            frozenset(self._opaque),
            frozenset(self._folders),
            frozenset((*self._links, *self._files, *self._others)),
        )
        for path, entry in entries:
            if whiteout := hidden_by(path):
                name, stays = whiteout
                self._charge(name)
                (self._opaque if stays else self._gone).add(name)
            elif above.shows(path, entry):
                self._take(path, entry)
                if self.complete:
                    return True
        return False

    def _take(self, path: str, entry: Entry) -> None:
        folders = (path, *_parents(path)) if entry.isdir() else _parents(path)
        for folder in folders:
            if folder in self._folders:
                break
            self._charge(folder)
            self._folders.add(folder)
        if entry.isdir():
            return
        key = self._sought.key(posixpath.basename(path))
        wanted = key in self._sought.wanted
        if entry.issym():
            if not key or wanted:
                self._link(path, _target(path, entry.linkname))
        elif wanted and (entry.isreg() or entry.islnk()):
            self._charge(path)
            self._files[path] = key
            self._file(path, key)
        elif path in self._ways or self._is_inside(path):
            self._charge(path)
            self._others.add(path)

    def _file(self, path: str, key: str) -> None:
        if self._is_inside(path):
            self._found.setdefault(key, path)
        elif path in self._awaited:
            link, named = self._awaited[path]
            self._found.setdefault(named, link)

    def _link(self, path: str, target: str) -> None:
        self._charge(path, target)
        self._links[path] = target
        if path not in self._ways and not self._is_inside(path):
            return
        self._relevant += 1
        if self._relevant > MAX_LINKS:
            raise BeyondLimits(f"image {self._image}: more than {MAX_LINKS} links lead to or from {self._folder}")
        self._follow()
        for known, key in self._files.items():
            self._file(known, key)

    def _is_inside(self, path: str) -> bool:
        return any(_below(path, root) for root in self._roots)

    def _follow(self) -> None:
        """Find out anew under which names the folder is known, and which files its links lead to."""
        self._ways = set()
        roots = dict.fromkeys((self._folder, self._resolved(self._folder)))
        waiting = list(roots)
        while waiting:
            root = waiting.pop()
            for path, target in self._links.items():
                if not _below(path, root):
                    continue
                real = self._resolved(target)
                if key := self._sought.key(posixpath.basename(path)):
                    self._awaited[real] = (path, key)
                elif real not in roots and real:
                    roots[real] = None
                    waiting.append(real)
        self._roots = tuple(roots)

    def _resolved(self, path: str) -> str:
        """Where `path` really is, its links followed; as it is where they lead in a circle."""
        for _ in range(MAX_HOPS):
            way = (*reversed(_parents(path)), path)
            self._ways.update(way)
            at = next((part for part in way if part in self._links), None)
            if at is None:
                return path
            path = posixpath.normpath(f"/{self._links[at]}/{path[len(at) + 1 :]}").lstrip("/")
        return path

    def _charge(self, *names: str) -> None:
        self._left -= sum(len(name) + _EACH for name in names)
        if self._left < 0:
            raise BeyondLimits(
                f"image {self._image}: the names of its folders and links have more than {MAX_REMEMBERED_BYTES} bytes"
            )


@dataclass(frozen=True, slots=True)
class _Above:
    """The layers above the one that is read: what they hide, their folders, and what they have that is none."""

    gone: frozenset[str]
    opaque: frozenset[str]
    folders: frozenset[str]
    others: frozenset[str]

    def shows(self, path: str, entry: Entry) -> bool:
        """Whether an entry of this layer is seen in the image."""
        if path in self.gone or path in self.others or (path in self.folders and not entry.isdir()):
            return False
        return not any(
            folder in self.gone or folder in self.opaque or folder in self.others for folder in (*_parents(path), "")
        )


def _parents(path: str) -> list[str]:
    """The folders that `path` is in, the nearest first."""
    found = []
    while (at := path.rfind("/")) > 0:
        path = path[:at]
        found.append(path)
    return found


def _target(path: str, link: str) -> str:
    """Where a link leads, from the root; one that leaves the root stays in it, as in a container."""
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(path), link)).lstrip("/")


def _below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")
