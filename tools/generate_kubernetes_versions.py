"""Write what each version of Kubernetes has that the sandbox's API server can be.

usage: tools/generate_kubernetes_versions.py [--check]

The tables of one version are in the package in full: types, descriptions, protobuf fields, bootstrap roles. A file of
each version has the difference as JSON merge patches (RFC 7386), its feature gates with their defaults, and the fields
that need a gate. The sources come from the Go module proxy (`go` must be installed). `--check` writes nothing and fails
if a file is stale. `kubesandbox/apiserver/kubernetes_version.py` reads the result, which is checked in.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_tables

from kubesandbox.apiserver import kubernetes_version, version_tables

JSON = dict[str, Any]
OUTPUT = Path(kubernetes_version.__file__).parent / "versions"
GENERATORS = ("builtin_schemas", "protobuf_fields", "bootstrap_rbac")
READERS: dict[str, tuple[str, Callable[[bytes], JSON]]] = {
    "types": ("builtin_types.txt", version_tables.parse_types),
    "descriptions": ("descriptions.json.z", version_tables.parse_descriptions),
    "protobuf": ("protobuf_fields.json", version_tables.parse_protobuf),
    "rbac": ("bootstrap_rbac.json", version_tables.parse_rbac),
}
# Comments that name a gate otherwise than pkg/features/kube_features.go, and fields that need one without a comment.
RENAMED = {"PodCertificateProjection": "PodCertificateRequest"}
UNTAGGED = {
    "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy": {"maxUnavailable": ["MaxUnavailableStatefulSet"]},
}


def main(arguments: list[str]) -> int:
    """Writes the files, or returns 1 if `--check` finds one that is stale."""
    stale = []
    with tempfile.TemporaryDirectory() as temporary:
        base = _tables_of(kubernetes_version.RELEASES[kubernetes_version.DEFAULT], Path(temporary))
        for minor, release in kubernetes_version.RELEASES.items():
            gates = _gates_of(release)
            known = base if minor == kubernetes_version.DEFAULT else _tables_of(release, Path(temporary))
            document: JSON = {name: _difference(base[name], known[name]) for name in READERS}
            document |= {"gates": gates, "gated": _gated(known["gated"], gates)}
            text = json.dumps(document, separators=(",", ":"), sort_keys=True)
            path = OUTPUT / f"{minor}.json.z"
            if "--check" not in arguments:
                OUTPUT.mkdir(exist_ok=True)
                path.write_bytes(zlib.compress(text.encode(), 9))
            elif not path.exists() or zlib.decompress(path.read_bytes()).decode() != text:
                stale.append(path.name)
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}: run tools/generate_kubernetes_versions.py\n")
    return 1 if stale else 0


def _tables_of(release: str, temporary: Path) -> JSON:
    """Returns the tables of a release such as 1.36.3, and the fields that need a gate."""
    folder = temporary / release
    folder.mkdir()
    for name in GENERATORS:
        command = [sys.executable, str(Path(__file__).with_name(f"generate_{name}.py")), release, str(folder)]
        subprocess.run(command, check=True)
    tables: JSON = {name: parse((folder / file).read_bytes()) for name, (file, parse) in READERS.items()}
    return tables | {"gated": json.loads((folder / "gated_fields.json").read_text())}


def _gates_of(release: str) -> dict[str, list[Any]]:
    """Returns the feature gates of a release: the default, whether it is locked, and the stage."""
    _, minor, patch = release.split(".")
    facts = kubernetes_tables.facts_of(f"{minor}.{patch}")
    gates = {}
    for name, rows in facts["gates"].items():
        reached = [row for row in rows if row["since"] <= int(minor)]
        if reached:
            row = max(reached, key=lambda row: row["since"])
            gates[name] = [row["default"], row["locked"], row["stage"]]
    return gates


def _gated(fields: JSON, gates: JSON) -> JSON:
    """Returns the fields that need a gate of the version. Those of gates that are gone are always there."""
    result: JSON = {}
    for name, of_type in {**fields, **UNTAGGED}.items():
        for field, needed in of_type.items():
            if known := [gate for each in needed if (gate := RENAMED.get(each, each)) in gates]:
                result.setdefault(name, {})[field] = known
    return result


def _difference(old: Any, new: Any) -> Any:
    """Returns the merge patch that makes `new` of `old`; neither has a null."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: JSON = dict.fromkeys(old.keys() - new.keys())
    return patch | {name: _difference(old.get(name), value) for name, value in new.items() if old.get(name) != value}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
