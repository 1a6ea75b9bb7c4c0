"""The flags of kube-apiserver that turn admission plugins and versions of the API off, as values.

In: the texts of `--enable-admission-plugins`, `--disable-admission-plugins` and `--runtime-config`. Out: `Disabled`, or
ValueError in the words of kube-apiserver 1.34. `warnings` names the plugins and versions that cannot be turned on,
since this server lacks them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubesandbox.apiserver.kubernetes_version import FALSE, TRUE
from kubesandbox.apiserver.objects.admission_plugins import PLUGINS
from kubesandbox.apiserver.served_kinds import BUILTIN, Kind

# Keys of --runtime-config that select versions by their stage (k8s.io/apiserver/pkg/server/resourceconfig).
_STAGES = {
    "api/all": r"v\d+((alpha|beta)\d+)?",
    "api/ga": r"v\d+",
    "api/beta": r"v\d+beta\d+",
    "api/alpha": r"v\d+alpha\d+",
}


@dataclass(frozen=True, slots=True)
class Disabled:
    """The plugins and versions that are turned off; `versions` holds group/version, and group/version/resource."""

    plugins: frozenset[str] = frozenset()
    versions: Mapping[str, bool] | None = None
    warnings: tuple[str, ...] = ()

    def serves(self, kind: Kind) -> bool:
        """Returns whether a built-in kind is served: the most precise key decides."""
        keys = self.versions or {}
        stages = (
            key for key in ("api/alpha", "api/beta", "api/ga", "api/all") if re.fullmatch(_STAGES[key], kind.version)
        )
        named = (f"{kind.api_version}/{kind.plural}", kind.api_version, *stages)
        # The core group holds what the server itself needs.
        return next((keys[key] for key in named if key in keys and (kind.group or key == kind.api_version)), True)


def parse(enabled: Iterable[str] = (), disabled: Iterable[str] = (), runtime_config: Iterable[str] = ()) -> Disabled:
    """Returns what the flags turn off; each value is a list with commas. Raises ValueError."""
    known = {plugin.name: plugin for plugin in PLUGINS}
    on, off = (frozenset(filter(None, ",".join(values).split(","))) for values in (enabled, disabled))
    for flag, names in (("enable", on), ("disable", off)):
        for name in sorted(names - set(known)):
            raise ValueError(f'{flag}-admission-plugins plugin "{name}" is unknown')
    if both := on & off:
        raise ValueError(
            f"[{' '.join(sorted(both))}] in enable-admission-plugins and disable-admission-plugins overlapped"
        )
    versions = dict(map(_parse_version, filter(None, ",".join(runtime_config).split(","))))
    warnings = [f"admission plugin {name}" for name in sorted(on) if not known[name].present]
    served = {kind.api_version for kind in BUILTIN}
    warnings += [
        f"API {key}"
        for key, wanted in versions.items()
        if wanted and key not in _STAGES and _version_of(key) not in served
    ]
    return Disabled(off, versions, tuple(warnings))


def parse_or_exit(enabled: Iterable[str], disabled: Iterable[str], runtime_config: Iterable[str]) -> Disabled:
    """Returns the same for a program, which ends with one line for a wrong flag, and warns of what is absent."""
    try:
        found = parse(enabled, disabled, runtime_config)
    except ValueError as error:
        sys.exit(f"error: {error}")
    if found.warnings:
        sys.stderr.write(f"warning: kubesandbox does not have: {', '.join(found.warnings)}\n")
    return found


def _parse_version(text: str) -> tuple[str, bool]:
    key, _, value = text.partition("=")
    if value and value not in TRUE | FALSE:
        raise ValueError(f'invalid value of {key}: {value}, err: strconv.ParseBool: parsing "{value}": invalid syntax')
    group, _, version = _version_of(key).rpartition("/")
    if key not in _STAGES and group not in {kind.group for kind in BUILTIN}:
        raise ValueError(f"unknown api groups {group}")
    if (group, version) == ("", "v1") and value in FALSE:
        raise ValueError("kubesandbox needs v1, and cannot turn it off")
    return key, value not in FALSE  # a key without a value turns a version on


def _version_of(key: str) -> str:
    """Returns the group and version of a key that may also have a resource."""
    parts = key.split("/")
    return "/".join(parts[:1] if re.fullmatch(r"v\d+\w*", parts[0]) else parts[:2])
