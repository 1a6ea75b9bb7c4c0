"""Delays a module that libraries import just in case: found when it is imported, executed when it is used.

click and attrs import `inspect`, which commands in daily use do not need. `install` adds a finder that puts that module
into `sys.modules` and executes its code at the first access to an attribute; `from inspect import ...` executes it at
once, as ever. Without the finder, these commands take a fifth longer (docs/decisions/0114-start-up-in-proportion.md).

`importlib.util.LazyLoader` is meant for this, but in Python 3.11 a second `import` of the module executes it, and two
threads that use it at the same moment see it partly initialised.
"""

from __future__ import annotations

import _thread
import sys

# `importlib.machinery` and `importlib.util` have the same, and import four modules more.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader

# No packages: a submodule that is imported first would find its package not yet executed. Further modules would save
# less than a tenth of any command.
MODULES = frozenset({"inspect"})


class Finder:
    """A finder that finds `MODULES` as usual and delays their execution."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the specification of a module that is delayed, None for every other."""
        importing = sys.modules.get("msgspec._utils") if name == "typing_extensions" else None
        if importing is not None and not hasattr(importing, "get_type_hints"):
            # msgspec imports two names from it, and does without them if it is not installed.
            raise ModuleNotFoundError(name=name)
        spec = PathFinder.find_spec(name, path, target) if name in MODULES else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Late(spec.loader)  # type: ignore[assignment]
        return spec


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
        vars(module)["__getattr__"] = _Attributes(module, self._loader)


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
                self._begun, before = True, dict(vars(self._module))
                try:
                    self._loader.exec_module(self._module)
                except BaseException:
                    # As if it had not begun: its names are not half there, and the next access tries again.
                    vars(self._module).clear()
                    vars(self._module).update(before)
                    self._begun = False
                    raise
                if vars(self._module).get("__getattr__") is self:
                    del vars(self._module)["__getattr__"]
        try:
            return vars(self._module)[name]
        except KeyError:
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}") from None


def is_unread(module: ModuleType) -> bool:
    """Returns whether `module` is imported and not yet executed."""
    return isinstance(vars(module).get("__getattr__"), _Attributes)


def install() -> None:
    """Delays `MODULES` from now on; those that are already imported stay as they are."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
