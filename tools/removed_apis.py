"""Write the table of the API versions that Kubernetes removes: `python tools/removed_apis.py`.

usage: python tools/removed_apis.py [--check]

The API server stops to serve a kind in the minor version that its method `APILifecycleRemoved` names
(https://github.com/kubernetes/apiserver/blob/master/pkg/server/deleted_kinds.go), and it cannot serve one that its Go
module k8s.io/api does not have any more. So the table is made of that module's minor versions, by the Go module proxy
(`go` must be installed): a kind goes in the minor version that the newest module with the kind names, or in the one
whose module lacks it, whichever comes first. `DATED` has what no module tells, each with its source.

What was read of a module is kept in `$XDG_CACHE_HOME/runup/kubernetes-api`. `--check` writes nothing, prints how the
table differs, and ends with 1 if it does; it ends with 3 where a module cannot be had.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

OUTPUT = Path(__file__).parents[1] / "src/runup/checks/decide/data/removed-apis.yaml"
MODULE = "k8s.io/api"
# A patch of each minor version. Only the newest matters for what is still to go: its year and month are in `DATE`.
VERSIONS = (
    *("v0.20.6", "v0.21.1", "v0.22.5", "v0.23.16", "v0.24.3", "v0.25.9", "v0.26.9", "v0.27.4", "v0.28.3"),
    *("v0.29.15", "v0.30.14", "v0.31.14", "v0.32.13", "v0.33.13", "v0.34.13", "v0.35.10", "v0.36.6", "v0.37.2"),
)
DATE = "2026-11"
# Before 1.16 no version of a built-in kind was removed (https://kubernetes.io/docs/reference/using-api/deprecation-guide/).
FIRST = 16
WIDTH = 125

# Group, version and kind.
Kind = tuple[str, str, str]
# Kinds of a module, and the minor version that `APILifecycleRemoved` names; None without that method.
Registered = dict[Kind, int | None]

_GUIDE = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22"
_ROLES = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
# Removals that no module names: alpha versions from before the methods, which kept their types for long, and kinds of
# other modules. Each has the minor version and where that is said.
DATED: Mapping[Kind, tuple[int, str]] = {
    ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"): (22, _GUIDE),
    ("apiregistration.k8s.io", "v1beta1", "APIService"): (22, _GUIDE),
    ("settings.k8s.io", "v1alpha1", "PodPreset"): (20, "https://github.com/kubernetes/kubernetes/pull/94090"),
    **{
        ("rbac.authorization.k8s.io", "v1alpha1", kind): (23, "https://github.com/kubernetes/kubernetes/pull/104248")
        for kind in _ROLES
    },
    ("scheduling.k8s.io", "v1alpha1", "PriorityClass"): (
        23,
        "https://github.com/kubernetes/kubernetes/blob/v1.23.0/pkg/registry/scheduling/rest/storage_scheduling.go",
    ),
    ("node.k8s.io", "v1alpha1", "RuntimeClass"): (24, "https://github.com/kubernetes/kubernetes/pull/103061"),
    **{
        ("networking.k8s.io", "v1alpha1", kind): (
            31,
            "https://github.com/kubernetes/kubernetes/blob/v1.31.0/pkg/registry/networking/rest/storage_settings.go",
        )
        for kind in ("IPAddress", "ServiceCIDR")
    },
}
# Bodies of subresources and of webhooks, and documents: nobody can ask for an object of these.
NO_OBJECTS = frozenset(
    {"AdmissionReview", "APIGroupDiscovery", "DeploymentRollback", "EphemeralContainers", "JobTemplate"}
    | {"PodStatusResult", "Scale"}
)
_GROUP = re.compile(r'\bGroupName\s*=\s*"([^"]*)"')
_KNOWN = re.compile(r"&(\w+)\{\}")
_REMOVED = re.compile(r"func \(in \*(\w+)\) APILifecycleRemoved\(\) \(major, minor int\) \{\s*return 1, (\d+)\s")


class Unavailable(Exception):
    """A version of the module cannot be had; the message says why."""


def registered(version: str, environ: Mapping[str, str] = os.environ) -> Registered:
    """Returns the kinds of one version of the module. Raises Unavailable."""
    kept = _cache(environ) / f"{version}.json"
    if not kept.exists():
        found = read_module(_download(version))
        kept.parent.mkdir(parents=True, exist_ok=True)
        written = kept.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps([[*kind, minor] for kind, minor in sorted(found.items())]))
        written.rename(kept)
    return {(group, api, kind): minor for group, api, kind, minor in json.loads(kept.read_text())}


def _cache(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "runup" / "kubernetes-api"


def _download(version: str) -> Path:
    """Returns where the Go tool keeps that version of the module. Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module types\n\ngo 1.24\n")
        command = ["go", "mod", "download", "-json", f"{MODULE}@{version}"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{MODULE}@{version} needs the go command: {error}") from error
    if done.returncode:
        raise Unavailable(f"{MODULE}@{version} could not be downloaded: {(done.stdout + done.stderr).strip()[-500:]}")
    return Path(json.loads(done.stdout)["Dir"])


def read_module(module: Path) -> Registered:
    """Returns the kinds of a module in its folder."""
    found: Registered = {}
    for file in sorted(module.glob("*/*/register.go")):
        text = file.read_text()
        group = _GROUP.search(text)
        methods = file.with_name("zz_generated.prerelease-lifecycle.go")
        removed = dict(_REMOVED.findall(methods.read_text())) if methods.exists() else {}
        for kind in _KNOWN.findall(text):
            minor = removed.get(kind)
            if group is not None and _is_object(kind):
                found[group[1], file.parent.name, kind] = int(minor) if minor else None
    return found


def _is_object(kind: str) -> bool:
    return kind not in NO_OBJECTS and not kind.endswith(("List", "Options"))


def removals(modules: Mapping[int, Registered], dated: Mapping[Kind, int]) -> dict[Kind, int]:
    """Returns the minor version in which each kind goes, of the modules by their minor version."""
    newest = max(modules)
    last = {kind: minor for minor in sorted(modules) for kind in modules[minor]}
    found: dict[Kind, int] = {}
    for kind in {*last, *dated}:
        named = modules[last[kind]][kind] if kind in last else None
        lacking = last[kind] + 1 if kind in last and last[kind] < newest else None
        said = [minor for minor in (named, lacking, dated.get(kind)) if minor is not None]
        if said:
            found[kind] = min(said)
    return found


def text(found: Mapping[Kind, int], newest: int) -> str:
    """Returns the table."""
    lines = [
        "# Built-in API versions by the Kubernetes minor version that no longer serves them. Written by",
        "# tools/removed_apis.py, not by hand. A minor version without any is listed, too: an empty list says that",
        "# nothing is removed. What is planned after the last is what the last says of itself, and may change.",
        "# Versions of CustomResourceDefinitions are judged by the definitions.",
        f"source: the methods APILifecycleRemoved of {MODULE} {VERSIONS[0]} to {VERSIONS[-1]}, and where no",
        "  method tells it, what tools/removed_apis.py names",
        f"date: {DATE}",
        f"first: {FIRST}",
        f"last: {newest}",
        "removed:",
        *_rows(found, range(FIRST, newest + 1)),
        "planned:",
        *_rows(found, sorted({minor for minor in found.values() if minor > newest})),
    ]
    return "\n".join(lines) + "\n"


def _rows(found: Mapping[Kind, int], minors: Iterable[int]) -> Iterable[str]:
    for minor in minors:
        kinds: dict[tuple[str, str], list[str]] = {}
        for group, version, kind in sorted(each for each, removed in found.items() if removed == minor):
            kinds.setdefault((group, version), []).append(kind)
        yield f'  "1.{minor}":' if kinds else f'  "1.{minor}": []'
        for (group, version), names in kinds.items():
            yield from _wrapped(f"  - {{group: {group}, version: {version}, kinds: [", names)


def _wrapped(head: str, names: list[str]) -> Iterable[str]:
    line = head
    for index, name in enumerate(names):
        word = f"{name}]}}" if index == len(names) - 1 else f"{name},"
        if len(line) + 1 + len(word) > WIDTH and not line.endswith("["):
            yield line
            line = f"    {word}"
        else:
            line += word if line.endswith("[") else f" {word}"
    yield line


def made(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the table as it should be. Raises Unavailable."""
    modules = {int(version.split(".")[1]): registered(version, environ) for version in VERSIONS}
    return text(removals(modules, {kind: minor for kind, (minor, _) in DATED.items()}), max(modules))


def main(arguments: list[str]) -> int:
    """Writes the table, or compares it; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python tools/removed_apis.py [--check]", file=sys.stderr)
        return 2
    try:
        wanted = made()
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 3
    if not arguments:
        OUTPUT.write_text(wanted)
        print(f"wrote {OUTPUT}")
        return 0
    before = OUTPUT.read_text()
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), wanted.splitlines(True), str(OUTPUT), "made"))
    return int(before != wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
