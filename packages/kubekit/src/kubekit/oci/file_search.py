"""Searches an image for files while its layers arrive, the uppermost first.

Nothing is stored, and the search ends early. Upper layers take precedence: a lower layer adds only what they neither
have nor hide. So a file that was seen and is not hidden is final, and nothing further need be fetched. Links are
followed to a file or a folder, as in the image. A link may come after its target, so files of wanted names are
remembered wherever they are. The memory for this is limited.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kubekit.oci.registry_errors import BeyondLimits
from kubekit.oci.tar import Entry
from kubekit.oci.tarstream import hidden_by

# Maximum size of the names that a search stores; a distribution's folders and links have less than 1 MiB.
MAX_REMEMBERED_BYTES = 8 * 1024 * 1024
MAX_HOPS = 40  # maximum number of links that are followed for one path, as in Linux
MAX_LINKS = 512  # maximum number of links on the paths to the searched folder, and in it
MAX_LOOKUPS = 2_000_000
"""Maximum number of folders looked up to follow an image's links, a link as two: below 2 s of a core.

512 links to other folders need 0.7 million.
"""

HEAD_BYTES = 64 * 1024  # how much of a wanted file is shown to `FileQuery.fault`
_EACH = 120  # bytes that a name costs besides its characters, about


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuery:
    """The files to search for: those below `folder`, at any depth, whose names `key` maps to one of `wanted`.

    `key` returns an empty text for a file that is of no interest. `fault` returns from the path and the first
    `HEAD_BYTES` of a wanted file why it does not count, "" if it does; None counts every file. `group` returns the
    group of a file or link with a key, wanted or not, from its path; the result names the groups that the image has.
    """

    folder: str
    wanted: frozenset[str]
    key: Callable[[str], str]
    fault: Callable[[str, bytes], str] | None = None
    group: Callable[[str], str] = lambda _path: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of a search: the path of each file found, and files of wanted names that are elsewhere.

    `faults` are the files in the folder that do not count, each with the reason; `faults_elsewhere` are those of wanted
    names elsewhere. `unread` are links in the folder by their paths, with the key and the target of each: files of
    other names, which were not looked at and may not exist. `groups` are complete only if a file was not found.
    `other_images`: the reference names an index with images of other architectures, which were not searched.
    `layers` of `of` layers were read, the last one perhaps in part; `fetched` are the bytes of them as they were sent.
    """

    found: Mapping[str, str] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    layers: int = 0
    of: int = 0
    fetched: int = 0
    faults: Mapping[str, str] = field(default_factory=dict)
    faults_elsewhere: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    groups: frozenset[str] = frozenset()
    other_images: bool = False


class Search:
    """A search; `layer` is called for each layer from the uppermost down, until it returns True."""

    def __init__(self, image: str, sought: FileQuery) -> None:
        self._image = image
        self._sought = sought
        self._folder = posixpath.normpath(f"/{sought.folder}").lstrip("/")
        self._left = MAX_REMEMBERED_BYTES
        # Read so far: folders, links with their targets, files of wanted names, and other relevant paths.
        self._folders: set[str] = set()
        self._links: dict[str, str] = {}
        self._links_below: dict[str, list[str]] = {}
        self._files: dict[str, str] = {}
        self._others: set[str] = set()
        # Paths that the layers read so far hide in the layers below.
        self._gone: set[str] = set()
        self._opaque: set[str] = set()
        # All names of the folder, and the paths at which a link would add another one.
        self._roots: tuple[str, ...] = ()
        self._ways: set[str] = set()
        self._awaited: dict[str, tuple[str, str]] = {}
        self._relevant = 0
        self._lookups = 0
        self.groups: set[str] = set()
        self._found: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        # Hard links of wanted names to files of other names.
        self._unread: dict[str, tuple[str, str]] = {}
        self._follow_links()

    @property
    def found(self) -> Mapping[str, str]:
        """The path of each file that was found."""
        return dict(self._found)

    @property
    def complete(self) -> bool:
        """Reports whether all files were found."""
        return self._sought.wanted <= self._found.keys()

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The files of wanted names that were not found in the folder."""
        return tuple(sorted(path for path, key in self._files.items() if key not in self._found))

    @property
    def faults(self) -> Mapping[str, str]:
        """The files in the folder that do not count, and why; none of a name that was found elsewhere in it."""
        key = self._sought.key
        return {
            path: why
            for path, why in sorted(self._faults.items())
            if key(posixpath.basename(path)) not in self._found and self._counts(path)
        }

    @property
    def faults_elsewhere(self) -> Mapping[str, str]:
        """The files outside of the folder that do not count, and why; none of a name that was found in it."""
        key = self._sought.key
        return {
            path: why
            for path, why in sorted(self._faults.items())
            if key(posixpath.basename(path)) not in self._found and not self._counts(path)
        }

    @property
    def unread(self) -> Mapping[str, tuple[str, str]]:
        """Unread links of the folder by path, each with key and target; none of a found name."""
        links = self._unread | {
            path: (key, real)
            for real, (path, key) in self._awaited.items()
            if self._sought.key(posixpath.basename(real)) not in self._sought.wanted
        }
        return {
            path: (key, target)
            for path, (key, target) in sorted(links.items())
            if key in self._sought.wanted and key not in self._found and self._counts(path)
        }

    def layer(
        self, entries: Iterable[tuple[str, Entry]], content: Callable[[], Iterator[bytes]] = lambda: iter(())
    ) -> bool:
        """Reads a layer's entries and their `content` until all is found; returns if it is. Raises BeyondLimits."""
        above = _Above(
            frozenset(self._gone),
            frozenset(self._opaque),
            frozenset(self._folders),
            frozenset((*self._links, *self._files, *self._others)),
        )
        for path, entry in entries:
            if whiteout := hidden_by(path):
                name, stays = whiteout
                self._charge_memory(name)
                (self._opaque if stays else self._gone).add(name)
            elif above.is_visible(path, entry):
                self._record_entry(path, entry, content)
                if self.complete:
                    return True
        return False

    def _record_entry(self, path: str, entry: Entry, content: Callable[[], Iterator[bytes]]) -> None:
        """Records an entry that is visible in the image: a folder, a link, or a file that may be wanted."""
        folders = (path, *_parent_folders(path)) if entry.isdir() else _parent_folders(path)
        for folder in folders:
            if folder in self._folders:
                break
            self._charge_memory(folder)
            self._folders.add(folder)
        if entry.isdir():
            return
        key = self._sought.key(posixpath.basename(path))
        is_sought = key in self._sought.wanted
        if key and (group := self._sought.group(path)) and group not in self.groups:
            self._charge_memory(group)
            self.groups.add(group)
        if entry.issym():
            if not key or is_sought:
                # The target from the root, which it does not leave, as in a container.
                self._record_link(path, _from_root(posixpath.join(posixpath.dirname(path), entry.linkname)))
        elif is_sought and (entry.isreg() or entry.islnk()):
            self._charge_memory(path)
            if target := self._unread_target(entry):
                self._unread[path] = key, target
                self._others.add(path)
                return
            if fault := self._why_unusable(path, entry, content):
                self._faults[path] = fault
                self._others.add(path)
                return
            self._files[path] = key
            self._record_file(path, key)
        elif path in self._ways or self._is_inside(path):
            self._charge_memory(path)
            self._others.add(path)

    def _unread_target(self, entry: Entry) -> str:
        """Returns the target of a hard link if its content matters and was not read, else ""."""
        if self._sought.fault is None or not entry.islnk():
            return ""
        target = _from_root(entry.linkname)
        return "" if target in self._files or target in self._faults else target

    def _why_unusable(self, path: str, entry: Entry, content: Callable[[], Iterator[bytes]]) -> str:
        """Returns why a wanted file does not count. A hard link has the content of a file earlier in its layer."""
        if self._sought.fault is None:
            return ""
        if entry.islnk():
            return self._faults.get(_from_root(entry.linkname), "")
        head = b""
        for piece in content():
            head += piece
            if len(head) >= HEAD_BYTES:
                break
        return self._sought.fault(path, head[:HEAD_BYTES])

    def _record_file(self, path: str, key: str) -> None:
        """Records a file of a wanted name as found, if it is in the folder or a link in the folder leads to it."""
        if self._is_inside(path):
            self._found.setdefault(key, path)
        elif path in self._awaited:
            link, target_name = self._awaited[path]
            self._found.setdefault(target_name, link)

    def _record_link(self, path: str, target: str) -> None:
        """Records a link, and follows it again if it concerns the folder. Raises BeyondLimits for too many."""
        self._charge_memory(path, target)
        self._links[path] = target
        for folder in (*_parent_folders(path), ""):
            self._links_below.setdefault(folder, []).append(path)
        if path not in self._ways and not self._is_inside(path):
            return
        self._relevant += 1
        if self._relevant > MAX_LINKS:
            raise BeyondLimits(f"image {self._image}: more than {MAX_LINKS} links lead to or from {self._folder}")
        self._follow_links()
        for file_path, key in self._files.items():
            self._record_file(file_path, key)

    def _counts(self, path: str) -> bool:
        """Returns whether a file at `path` is one of the folder's: in it, or where a link of it leads."""
        return self._is_inside(path) or path in self._awaited

    def _is_inside(self, path: str) -> bool:
        return any(not root or path.startswith(f"{root}/") for root in self._roots)

    def _follow_links(self) -> None:
        """Recomputes the names under which the folder is known, and the files to which its links lead."""
        self._ways = set()
        roots = dict.fromkeys((self._folder, self._resolve_links(self._folder)))
        waiting = list(roots)
        while waiting:
            root = waiting.pop()
            for path in self._links_below.get(root, ()):
                real = self._resolve_links(self._links[path])
                if key := self._sought.key(posixpath.basename(path)):
                    self._awaited[real] = (path, key)
                elif real not in roots and real:
                    roots[real] = None
                    waiting.append(real)
        self._roots = tuple(roots)

    def _resolve_links(self, path: str) -> str:
        """Returns where `path` leads, or the path after MAX_HOPS links. Raises BeyondLimits for too many lookups."""
        for _ in range(MAX_HOPS):
            way = (*reversed(_parent_folders(path)), path)
            self._ways.update(way)
            self._lookups += len(way) + 2
            if self._lookups > MAX_LOOKUPS:
                raise BeyondLimits(f"image {self._image}: following its links takes more than {MAX_LOOKUPS} lookups")
            at = next((part for part in way if part in self._links), None)
            if at is None:
                return path
            path = posixpath.normpath(f"/{self._links[at]}/{path[len(at) + 1 :]}").lstrip("/")
        return path

    def _charge_memory(self, *names: str) -> None:
        """Subtracts the memory for `names` from the limit. Raises BeyondLimits if it is used up."""
        self._left -= sum(len(name) + _EACH for name in names)
        if self._left < 0:
            raise BeyondLimits(
                f"image {self._image}: the names of its folders and links have more than {MAX_REMEMBERED_BYTES} bytes"
            )


@dataclass(frozen=True, slots=True)
class _Above:
    """The layers above the current one: what they hide, their folders, and their paths that are not folders."""

    gone: frozenset[str]
    opaque: frozenset[str]
    folders: frozenset[str]
    others: frozenset[str]

    def is_visible(self, path: str, entry: Entry) -> bool:
        """Returns whether an entry of the current layer is visible in the image."""
        if path in self.gone or path in self.others or (path in self.folders and not entry.isdir()):
            return False
        return not any(
            folder in self.gone or folder in self.opaque or folder in self.others
            for folder in (*_parent_folders(path), "")
        )


def _parent_folders(path: str) -> list[str]:
    """Returns the folders that contain `path`, the nearest first."""
    folders = []
    while (at := path.rfind("/")) > 0:
        path = path[:at]
        folders.append(path)
    return folders


def _from_root(path: str) -> str:
    """Returns `path` normalised, without a slash before it; `..` does not leave the root."""
    return posixpath.normpath(posixpath.join("/", path)).lstrip("/")
