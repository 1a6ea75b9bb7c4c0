"""Write the tables of the API versions that Kubernetes removes and of their lives: `python tools/removed_apis.py`.

usage: python tools/removed_apis.py [--check]

The API server stops to serve a kind in the minor version that its method `APILifecycleRemoved` names
(https://github.com/kubernetes/apiserver/blob/master/pkg/server/deleted_kinds.go), and it cannot serve one that its Go
module k8s.io/api does not have any more. So the table is made of that module's minor versions, by the Go module proxy
(`go` must be installed): a kind goes in the minor version that the newest module with the kind names, or in the one
whose module lacks it, whichever comes first. `DATED` has what no module tells, each with its source.

A second table has the life of each version that is or will be removed, is deprecated, or came after the first module:
the minor version that introduces it (by its method, or the first module that has it), the one that deprecates it, and
what takes its place, as its methods say. Where the named replacement goes itself, it is the next one that stays; where
none is named, the same kind in a more stable version. All other versions are listed as stable.

What was read of a module is kept in `$XDG_CACHE_HOME/runup/kubernetes-api`. The differences from
the tables are printed. `--check` writes nothing, and ends with 1 if there are any; 3 if a module cannot be had.
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
from typing import NamedTuple

DATA = Path(__file__).parents[1] / "packages/runup/src/runup/checks/decide/data"
OUTPUT, LIVES = DATA / "removed-apis.yaml", DATA / "api-lifecycle.yaml"
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


class Life(NamedTuple):
    """What the lifecycle methods of a kind say, each a minor version of Kubernetes 1; None without the method."""

    introduced: int | None = None
    deprecated: int | None = None
    removed: int | None = None
    replacement: Kind | None = None


# Kinds of a module.
Registered = dict[Kind, Life]

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
# Kinds of other modules that stay (k8s.io/apiextensions-apiserver, k8s.io/kube-aggregator).
OTHER_MODULES = frozenset(
    {("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), ("apiregistration.k8s.io", "v1", "APIService")}
)
# Replacements that no method names: kinds of other modules, and what is replaced under another group.
DATED_REPLACEMENTS: Mapping[Kind, Kind] = {
    ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"): (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ),
    ("apiregistration.k8s.io", "v1beta1", "APIService"): ("apiregistration.k8s.io", "v1", "APIService"),
}
# Bodies of subresources and of webhooks, and documents: nobody can ask for an object of these.
NO_OBJECTS = frozenset(
    {"AdmissionReview", "APIGroupDiscovery", "DeploymentRollback", "EphemeralContainers", "JobTemplate"}
    | {"PodStatusResult", "Scale"}
)
_GROUP = re.compile(r'\bGroupName\s*=\s*"([^"]*)"')
_KNOWN = re.compile(r"&(\w+)\{\}")
_MINOR = re.compile(
    r"func \(in \*(\w+)\) APILifecycle(Introduced|Deprecated|Removed)\(\) \(major, minor int\) \{\s*return 1, (\d+)\s"
)
_REPLACEMENT = re.compile(
    r"func \(in \*(\w+)\) APILifecycleReplacement\(\) [\w.]+ \{\s*"
    r'return [\w.]+\{Group: "([^"]*)", Version: "([^"]*)", Kind: "([^"]*)"\}'
)
_STABILITY = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class Unavailable(Exception):
    """A version of the module cannot be had; the message says why."""


def registered(version: str, environ: Mapping[str, str] = os.environ) -> Registered:
    """Returns the kinds of one version of the module. Raises Unavailable."""
    kept = _cache(environ) / f"{version}-lives.json"
    if not kept.exists():
        found = read_module(_download(version))
        kept.parent.mkdir(parents=True, exist_ok=True)
        written = kept.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps([[*kind, *life] for kind, life in sorted(found.items())]))
        written.rename(kept)
    return {
        (group, api, kind): Life(*minors, tuple(replacement) if replacement else None)
        for group, api, kind, *minors, replacement in json.loads(kept.read_text())
    }


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
        lives = _lives(methods.read_text()) if methods.exists() else {}
        for kind in _KNOWN.findall(text):
            if group is not None and _is_object(kind):
                found[group[1], file.parent.name, kind] = lives.get(kind, Life())
    return found


def _lives(methods: str) -> dict[str, Life]:
    """Returns what generated lifecycle methods say, by kind."""
    found: dict[str, Life] = {}
    for kind, when, minor in _MINOR.findall(methods):
        found[kind] = found.get(kind, Life())._replace(**{when.lower(): int(minor)})
    for kind, *replacement in _REPLACEMENT.findall(methods):
        found[kind] = found.get(kind, Life())._replace(replacement=tuple(replacement))
    return found


def _is_object(kind: str) -> bool:
    return kind not in NO_OBJECTS and not kind.endswith(("List", "Options"))


def removals(modules: Mapping[int, Registered], dated: Mapping[Kind, int]) -> dict[Kind, int]:
    """Returns the minor version in which each kind goes, of the modules by their minor version."""
    newest = max(modules)
    last = {kind: minor for minor in sorted(modules) for kind in modules[minor]}
    found: dict[Kind, int] = {}
    for kind in {*last, *dated}:
        named = modules[last[kind]][kind].removed if kind in last else None
        lacking = last[kind] + 1 if kind in last and last[kind] < newest else None
        said = [minor for minor in (named, lacking, dated.get(kind)) if minor is not None]
        if said:
            found[kind] = min(said)
    return found


def lives(modules: Mapping[int, Registered], removed: Mapping[Kind, int]) -> dict[Kind, Life]:
    """Returns the life of each kind that came after the first module, goes, or is deprecated; a replacement stays."""
    newest, first = modules[max(modules)], min(modules)
    said = {kind: life for minor in sorted(modules) for kind, life in modules[minor].items()}
    since = {kind: minor for minor in sorted(modules, reverse=True) for kind in modules[minor]}
    # Of what the first module has already, only a method tells when it came.
    introduced = {
        kind: life.introduced or (since[kind] if since[kind] > first else None) for kind, life in said.items()
    }
    told = {kind for kind, minor in introduced.items() if minor is not None and minor > first}
    return {
        kind: Life(
            introduced.get(kind),
            said.get(kind, Life()).deprecated,
            removed.get(kind),
            _replacement(kind, said, removed, newest),
        )
        for kind in sorted({*removed, *told, *(kind for kind in newest if newest[kind].deprecated is not None)})
    }


def _replacement(
    kind: Kind, said: Mapping[Kind, Life], removed: Mapping[Kind, int], newest: Mapping[Kind, Life]
) -> Kind | None:
    """Returns what takes the place of a kind: what is named and stays, else the most stable version that there is."""
    after, seen = kind, {kind}
    while (following := said.get(after, Life()).replacement) is not None and following not in seen:
        seen.add(after := following)
    # The methods of networking.k8s.io/v1beta1 IngressClass name the list of the kind.
    after = (after[0], after[1], after[2] if kind[2].endswith("List") else after[2].removesuffix("List"))
    if after != kind and after not in removed:
        return after
    if kind in DATED_REPLACEMENTS:
        return DATED_REPLACEMENTS[kind]
    versions = [each for each in newest if (each[0], each[2]) == (after[0], after[2])]
    best = max(versions, key=lambda each: _stability(each[1]), default=None)
    return best if best is not None and _stability(best[1]) > _stability(kind[1]) else None


def _stability(version: str) -> tuple[int, int, int]:
    """Returns the order of versions as the API server prefers them: v2 before v1 before v1beta1 before v1alpha1."""
    match = _STABILITY.fullmatch(version)
    assert match is not None, version
    level = {"alpha": 0, "beta": 1}.get(match[2] or "", 2)
    return level, int(match[1]), int(match[3] or 0)


def lives_text(found: Mapping[Kind, Life], newest: int) -> str:
    """Returns the table of lives."""
    lines = [
        "# The life of built-in API versions that came, are or will be removed, or are deprecated, in minor versions",
        "# of Kubernetes 1. Written by tools/removed_apis.py, not by hand. What nothing tells is left out.",
        f"source: the kinds of {MODULE} {VERSIONS[0]} to {VERSIONS[-1]}, and their methods APILifecycleIntroduced,",
        "  Deprecated and Replacement; removals as in removed-apis.yaml",
        f"date: {DATE}",
        f"last: {newest}",
        "lives:",
    ]
    rows: dict[tuple[str, str, Life], list[str]] = {}
    for (group, version, kind), life in sorted(found.items()):
        other = life.replacement
        # The same kind in another version is the usual replacement, and one row tells it of all kinds.
        same = other is not None and other[2] == kind
        shown = life._replace(replacement=(other[0], other[1], "")) if other is not None and same else life
        rows.setdefault((group, version, shown), []).append(kind)
    for (group, version, life), kinds in rows.items():
        lines += _wrapped(f"- {{group: {group}, version: {version}, {_life_words(life)}kinds: [", kinds)
    return "\n".join(lines) + "\n"


def stable_text(kinds: Iterable[Kind]) -> str:
    """Returns the rows of the kinds without a life in the table."""
    rows: dict[tuple[str, str], list[str]] = {}
    for group, version, kind in sorted(kinds):
        rows.setdefault((group, version), []).append(kind)
    lines = ["stable:"]
    for (group, version), of_version in rows.items():
        lines += _wrapped(f'- {{group: "{group}", version: {version}, kinds: [', of_version)
    return "\n".join(lines) + "\n"


def _life_words(life: Life) -> str:
    minors = (("introduced", life.introduced), ("deprecated", life.deprecated), ("removed", life.removed))
    said = "".join(f"{name}: {minor}, " for name, minor in minors if minor is not None)
    if life.replacement is None:
        return said
    group, version, kind = life.replacement
    told = f"{group}/{version}" if group else version
    return f"{said}replacement: {told}, " + (f"as: {kind}, " if kind else "")


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


def made(environ: Mapping[str, str] = os.environ) -> dict[Path, str]:
    """Returns the tables as they should be, by their files. Raises Unavailable."""
    modules = {int(version.split(".")[1]): registered(version, environ) for version in VERSIONS}
    removed = removals(modules, {kind: minor for kind, (minor, _) in DATED.items()})
    newest = max(modules)
    found = lives(modules, removed)
    stable = {kind for kinds in modules.values() for kind in kinds} | OTHER_MODULES
    return {OUTPUT: text(removed, newest), LIVES: lives_text(found, newest) + stable_text(stable - {*found})}


def main(arguments: list[str]) -> int:
    """Prints how the tables differ, and writes them unless only asked to check; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python tools/removed_apis.py [--check]", file=sys.stderr)
        return 2
    try:
        wanted = made()
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 3
    differ = False
    for file, content in wanted.items():
        before = file.read_text() if file.exists() else ""
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), content.splitlines(True), str(file), "made")
        )
        differ |= before != content
        if not arguments:
            file.write_text(content)
    return int(differ and bool(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
