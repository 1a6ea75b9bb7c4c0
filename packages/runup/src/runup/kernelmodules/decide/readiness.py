"""Decides whether Modules will load on a kernel, and which Modules need an answer.

Apart from `verdict`, which decides it, since every preflight reads this and few clusters have Modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from kubekit.api.meta_v1 import key_of
from runup.api.kmm_v1beta1 import Module

# How long an answer counts: registries are not watched, and ConfigMaps and Secrets only where they may be (KMM: 180 s).
RECHECK_INTERVAL_S = 180.0


class Status(Enum):
    """The verdict on whether a Module will load."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a Module for one kernel, as far as it is known without building or signing anything.

    `stage` is where that was decided: Image, or Build or Sign where one would be needed, or Done. `kernel` is empty
    where it is not known.
    """

    namespace: str
    name: str
    kernel: str
    architecture: str
    stage: str
    status: Status
    reason: str
    image: str = ""


class PreflightResults(msgspec.Struct, frozen=True):
    """The results of a preflight for Modules' images, or `why` none was examined.

    A Module that is not in `found` was not examined yet.
    """

    found: tuple[Readiness, ...] = ()
    why: str = ""


def loads_something(module: Module) -> bool:
    """Returns whether nodes load a kernel module: a Module without a loader only has a device plugin."""
    return module.spec.module_loader is not None


def loading_modules(modules: Sequence[Module]) -> tuple[Module, ...]:
    """Returns the Modules that load a kernel module and are not being deleted, sorted by namespace and name."""
    loading = (module for module in modules if module.metadata.deletion_timestamp is None and loads_something(module))
    return tuple(sorted(loading, key=key_of))
