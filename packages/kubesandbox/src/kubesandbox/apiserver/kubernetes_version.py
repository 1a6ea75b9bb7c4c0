"""The version of Kubernetes whose API a process serves, and its feature gates.

Both are chosen once, before the tables are read: `choose` raises ValueError for what kube-apiserver refuses. A file of
each version (`versions/1.36.json.z`, written by tools/generate_kubernetes_versions.py) has its differences from the
tables of the default version as JSON merge patches, and its gates.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kubesandbox.apiserver.json_copy import merge_patch

JSON = dict[str, Any]
# The release of each minor version from which its tables are generated.
RELEASES: Mapping[str, str] = {
    "1.33": "1.33.13",
    "1.34": "1.34.4",
    "1.35": "1.35.4",
    "1.36": "1.36.3",
    "1.37": "1.37.2",
}
DEFAULT = "1.34"
_FOLDER = Path(__file__).with_name("versions")
# Gates that turn on all gates of a stage (k8s.io/component-base/featuregate).
_OF_STAGE = {"AllAlpha": "Alpha", "AllBeta": "Beta"}
# The words of Go's strconv.ParseBool.
TRUE, FALSE = (
    frozenset({"1", "t", "T", "TRUE", "true", "True"}),
    frozenset({"0", "f", "F", "FALSE", "false", "False"}),
)


class _Choice:
    """The choice of this process; `read` is whether a table has been read by it."""

    minor = DEFAULT
    gates: Mapping[str, bool] = {}
    read = False


def choose(version: str = "", gates: str = "") -> None:
    """Chooses a version such as 1.36 and its gates, in the form of --feature-gates. Raises ValueError.

    The choice must precede the import of the tables, since what is served is computed once.
    """
    minor = ".".join((version or DEFAULT).removeprefix("v").split(".")[:2])
    if minor not in RELEASES:
        raise ValueError(
            f"{version!r} is not a version of Kubernetes that can be served; choose of {', '.join(RELEASES)}"
        )
    chosen = _parse_gates(gates, _document(minor)["gates"]) if gates else {}
    if _Choice.read and (minor, chosen) != (_Choice.minor, _Choice.gates):
        raise RuntimeError("the version must be chosen before its tables are read")
    _Choice.minor, _Choice.gates = minor, chosen


def choose_or_exit(version: str = "", gates: str = "") -> None:
    """Chooses a version and its gates for a program, which ends with one line if it cannot have them."""
    try:
        choose(version, gates)
    except ValueError as error:
        sys.exit(f"error: {error}")
    if ignored := gates_without_effect():
        sys.stderr.write(f"warning: these feature gates change nothing on this server: {', '.join(ignored)}\n")


def number() -> int:
    """Returns the number of the minor version that is served, for example 34."""
    _Choice.read = True
    return int(_Choice.minor.partition(".")[2])


def release() -> str:
    """Returns the release that is served, for example 1.34.4."""
    _Choice.read = True
    return RELEASES[_Choice.minor]


def table(name: str, base: JSON) -> JSON:
    """Returns a table of the default version as it is in the version that is served."""
    _Choice.read = True
    if _Choice.minor == DEFAULT:
        return base
    patched: JSON = merge_patch(base, _document(_Choice.minor)[name])
    return patched


def enabled(gate: str) -> bool:
    """Returns whether a feature gate is on; a gate that the version does not have is off."""
    _Choice.read = True
    if gate in _Choice.gates:
        return _Choice.gates[gate]
    entry = _document(_Choice.minor)["gates"].get(gate)
    return bool(entry and entry[0])


def fields_without_gate() -> Mapping[str, frozenset[str]]:
    """Returns by type the fields that the API server drops, since a feature gate that they need is off."""
    return {
        name: dropped
        for name, fields in _document(_Choice.minor)["gated"].items()
        if (dropped := frozenset(field for field, gates in fields.items() if not all(map(enabled, gates))))
    }


def gates_without_effect() -> list[str]:
    """Returns the chosen gates that change nothing on this server: no field needs them, or they are as by default."""
    document = _document(_Choice.minor)
    needed = {gate for fields in document["gated"].values() for gates in fields.values() for gate in gates}
    known = document["gates"]
    return sorted(name for name, on in _Choice.gates.items() if name not in needed and on != known[name][0])


def _parse_gates(text: str, known: Mapping[str, list[Any]]) -> dict[str, bool]:
    """Returns the gates of a text such as `A=true,B=false`. Raises ValueError in the words of kube-apiserver."""
    chosen: dict[str, bool] = {}
    for part in filter(None, re.split(r"\s*,\s*", text.strip())):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise ValueError(f"missing bool value for {name}")
        if value not in TRUE | FALSE:
            raise ValueError(
                f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax'
            )
        if name in _OF_STAGE:
            of_stage = [gate for gate, (_, locked, stage) in known.items() if stage == _OF_STAGE[name] and not locked]
            chosen = dict.fromkeys(of_stage, value in TRUE) | chosen
        elif name not in known:
            raise ValueError(f"unrecognized feature gate: {name}")
        else:
            default, locked, _ = known[name]
            if locked and (value in TRUE) != default:
                raise ValueError(
                    f"cannot set feature gate {name} to {str(value in TRUE).lower()}, "
                    f"feature is locked to {str(default).lower()}"
                )
            chosen[name] = value in TRUE
    return chosen


@cache
def _document(minor: str) -> JSON:
    """Returns the content of the file of a version."""
    document: JSON = orjson.loads(zlib.decompress((_FOLDER / f"{minor}.json.z").read_bytes()))
    return document
