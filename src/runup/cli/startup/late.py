"""Modules that libraries import in case they need them: found when they are imported, read when they are used.

click imports `inspect` for a generator's sake, `email` imports `random` to invent addresses, and no short command comes
near. `install` puts a finder in front that gives such a module its name and its place in `sys.modules`, and runs its
code when the first thing is asked of it; whoever writes `from inspect import ...` gets it at once, as ever. What that
saves is in docs/decisions/0043-a-command-in-five-interpreters.md.

`importlib.util.LazyLoader` is meant for this, but in Python 3.11 a second `import` of the module reads it, and two
threads that use it at the same moment see it half made.
"""

from __future__ import annotations

import _datetime  # type: ignore[import-not-found]
import _thread
import os
import sys
from _frozen_importlib_external import PathFinder  # `importlib.machinery` has the same, and imports four modules more
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec

# No packages: a part that is imported first would find its package unread.
MODULES = frozenset(
    {
        "argparse",
        "array",
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
        "msgspec.inspect",
        "ntpath",
        "platform",
        "random",
        "selectors",
        "textwrap",
        "threading",
        "uuid",
    }
)


# What is asked of a late module on every command's way, and can be told without it: `uuid` asks which system it is on,
# click has its messages translated, which ours are not, and keeps its context in a `local`; all that `datetime` has of
# its own is replaced by C.
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
    """Finds `MODULES` as everything else is found, and has them read late."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The specification of a module that is read late, None for every other."""
        if name == "typing_extensions" and _half_made("msgspec._utils", lacks="get_type_hints"):
            # msgspec takes two names from it, and does without where it is not installed.
            raise ModuleNotFoundError(name=name)
        spec = PathFinder.find_spec(name, path, target) if name in MODULES else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Late(spec.loader)  # type: ignore[assignment]
        return spec


class _Late:
    """Loads a module with another loader, when its first attribute is asked for."""

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
    """What an unread module answers with when it is asked for what it does not have: it is read first."""

    def __init__(self, module: ModuleType, loader: Loader) -> None:
        self._module, self._loader = module, loader
        self._lock = _thread.RLock()
        self._begun = False

    def __call__(self, name: str) -> Any:
        if name == "__path__":  # asked by every `from ... import`: these are no packages
            raise AttributeError(name)
        with self._lock:  # another thread waits until all of it is there; the module itself may look for its parts
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
    """Whether `module` is there by name alone."""
    return isinstance(vars(module).get("__getattr__"), _Attributes)


def install() -> None:
    """Have `MODULES` read late from now on; those that are there already stay as they are."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
