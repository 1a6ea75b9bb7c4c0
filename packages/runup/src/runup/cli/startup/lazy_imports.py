"""Delays modules that libraries import just in case: found when they are imported, executed when they are used.

click imports `inspect` for a generator, `email` imports `random` to invent addresses, aiohttp brings the validators of
attrs, and nothing here uses any of it. `install` adds a finder that puts such a module into `sys.modules` and executes
its code at the first access to an attribute; `from inspect import ...` executes it at once, as ever. What that saves is
in docs/decisions/0043-a-command-in-five-interpreters.md.

It also finds the modules of the packages that every command imports, as source in their package's folder, and takes
their byte code where it is that of the source. The finders that come after it ask for each kind of module, and their
loaders ask again where a source is and how old: 4 % of a short command (record 112).

`importlib.util.LazyLoader` is meant for this, but in Python 3.11 a second `import` of the module executes it, and two
threads that use it at the same moment see it partly initialised.
"""

from __future__ import annotations

import _datetime  # type: ignore[import-not-found]
import _thread
import os
import sys

# `importlib.machinery` and `importlib.util` have the same, and import four modules more.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, PathFinder, SourceFileLoader
from io import open_code
from marshal import loads
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from types import CodeType

# No packages: a submodule that is imported first would find its package not yet executed.
MODULES = frozenset(
    {
        "argparse",
        "array",
        "attr.converters",
        "attr.filters",
        "attr.validators",
        "base64",
        "calendar",
        "datetime",
        "email.base64mime",
        "email.header",
        "email.quoprimime",
        "fnmatch",
        "gettext",
        "hashlib",
        "heapq",
        "inspect",
        "ipaddress",
        "mimetypes",
        "msgspec.inspect",
        "ntpath",
        "platform",
        "random",
        "selectors",
        "textwrap",
        "threading",
        "tokenize",
        "uuid",
        "zipfile",
    }
)

OF_SOURCE = ("runup.", "kubekit.", "click.", "msgspec.")
"""Packages whose modules are looked for as source, in one folder, before the finders that know every kind of module."""

_HEAD = 16
_OF_ANY_SOURCE = bytes((1, 0, 0, 0))
_COMPILED = "" if sys.pycache_prefix or sys.flags.optimize else f".{sys.implementation.cache_tag}.pyc"
"""How files of byte code end; empty where they lie elsewhere, or are those of optimised code."""

# Attributes that every command uses and that need no execution of the module: `uuid` asks which system it runs on,
# click translates its messages, which ours are not, and keeps its context in a `local`; and the C implementation
# replaces everything in `datetime`.
_TOLD: dict[str, dict[str, Any]] = {
    "platform": {"system": lambda: os.uname().sysname},
    "gettext": {
        "gettext": lambda message: message,
        "ngettext": lambda one, many, number: one if number == 1 else many,
    },
    "threading": {"local": _thread._local},
    "datetime": {name: value for name, value in vars(_datetime).items() if not name.startswith("_")},
}


class Finder:
    """A finder that finds `MODULES` as usual and delays their execution, and modules of `OF_SOURCE` where they lie."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the specification of a module that is delayed or found as source, None for every other."""
        if name == "typing_extensions" and _half_made("msgspec._utils", lacks="get_type_hints"):
            # msgspec imports two names from it, and does without them if it is not installed.
            raise ModuleNotFoundError(name=name)
        if name in MODULES:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Late(spec.loader)  # type: ignore[assignment]
            return spec
        return _source_beside(name, path[0]) if path and name.startswith(OF_SOURCE) else None


def _source_beside(name: str, folder: str) -> ModuleSpec | None:
    """Returns the specification of a module whose source is in its package's `folder`, None if it is not there."""
    last = name.rpartition(".")[2]
    for beside, stem in ((folder, last), (f"{folder}/{last}", "__init__")):
        file = f"{beside}/{stem}.py"
        try:
            source = os.stat(file)  # noqa: PTH116
        except OSError:
            continue
        loader = _Source(name, file, source, f"{beside}/__pycache__/{stem}{_COMPILED}" if _COMPILED else "")
        spec = ModuleSpec(name, loader, origin=file, is_package=stem == "__init__")
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(beside)
        if loader.compiled:
            spec.cached = loader.compiled
        return spec
    return None


class _Source(SourceFileLoader):
    """Loads the byte code `compiled` of a source file if it is that of `source`; leaves everything else to its base.

    A file of byte code begins with a magic number, flags, and the source's time and size, 4 bytes each; one whose flags
    are 1 has a hash instead, and holds whatever the source is (PEP 552).
    """

    def __init__(self, name: str, file: str, source: os.stat_result, compiled: str) -> None:
        super().__init__(name, file)
        self.compiled = compiled
        self._of_source = b"".join(
            (number & 0xFFFFFFFF).to_bytes(4, "little") for number in (0, int(source.st_mtime), source.st_size)
        )

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            with open_code(self.compiled) as file:
                data = file.read()
            if data.startswith(MAGIC_NUMBER) and data.startswith((self._of_source, _OF_ANY_SOURCE), len(MAGIC_NUMBER)):
                code = loads(memoryview(data)[_HEAD:])  # noqa: S302 (as Python itself does)
                if code.co_filename == self.path:
                    return cast("CodeType", code)
        except (OSError, EOFError, ValueError, TypeError, AttributeError):
            pass
        return super().get_code(fullname)


class _Late:
    """A loader that lets another loader execute the module when its first attribute is accessed."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        vars(module).update(_TOLD.get(module.__name__, {}), __getattr__=_Attributes(module, self._loader))


class _Attributes:
    """The `__getattr__` of a module not yet executed: it executes the module first."""

    def __init__(self, module: ModuleType, loader: Loader) -> None:
        self._module, self._loader = module, loader
        self._lock = _thread.RLock()
        self._begun = False

    def __call__(self, name: str) -> Any:
        if name == "__path__":  # every `from ... import` asks for it, and these modules are not packages
            raise AttributeError(name)
        with self._lock:  # other threads wait until execution ends; the lock is reentrant, for the module itself
            if not self._begun:
                self._begun = True
                self._loader.exec_module(self._module)
                if vars(self._module).get("__getattr__") is self:
                    del vars(self._module)["__getattr__"]
        try:
            return vars(self._module)[name]
        except KeyError:
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}") from None


def _half_made(name: str, *, lacks: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not hasattr(module, lacks)


def is_unread(module: ModuleType) -> bool:
    """Returns whether `module` is imported and not yet executed."""
    return isinstance(vars(module).get("__getattr__"), _Attributes)


def install() -> None:
    """Delays `MODULES` from now on; those that are already imported stay as they are."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
