"""Write the tables of settings that Kubernetes adds, locks and removes: `python tools/kubernetes_tables.py`.

usage: python tools/kubernetes_tables.py [--check]

A component does not start with a flag, a feature gate or an admission plug-in that it does not know, nor with a gate
that is set against the value that it is locked to. `tools/kubernetes_facts` reads which of them a minor version has
from the sources of Kubernetes: the Go modules k8s.io/kubernetes and those of its repository, from the Go module proxy.
This program compares each minor version with the one before. A prerelease is the source of what is planned. etcd's
version is the one that kubeadm of the minor version starts.

A metric whose name is not a constant in the sources is not found, and so counts in no minor version. The lists in
`test/instrumentation` of Kubernetes are not used: that of v1.34.4 lacks 41 metrics, and keeps removed ones
(scheduler_pod_scheduling_duration_seconds), and the one of stable metrics has few.

The table of removed versions of configuration files is written by hand, and compared. `BY_HAND` has facts that the
sources declare in a form that the program does not read, each with its source.

The go command must be installed; it keeps the modules in its own cache, and this program keeps what was read of them
in `$XDG_CACHE_HOME/runup/kubernetes-facts`. The differences from the tables are printed. `--check` writes nothing, and
ends with 1 if there are any; the program ends with 3 if a module cannot be downloaded.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DATA = Path(__file__).parents[1] / "packages/runup/src/runup/checks/decide/data"
READER = Path(__file__).parent / "kubernetes_facts" / "main.go"
# The newest patch of each minor version that the proxy has of both k8s.io/kubernetes and the modules of its repository.
VERSIONS = (
    *("22.17", "23.17", "24.17", "25.16", "26.15", "27.16", "28.15", "29.15", "30.14", "31.14"),
    *("32.13", "33.13", "34.4", "35.4", "36.3", "37.2", "38.0-beta.0"),
)
DATE = "2026-11"
MODULES = (
    *("apimachinery", "apiserver", "apiextensions-apiserver", "client-go", "cloud-provider", "component-base"),
    *("controller-manager", "kube-aggregator", "kube-proxy", "kube-scheduler", "kubelet"),
)
# The proxy lacks the newest patch of these.
OTHER_PATCH = {
    ("kube-proxy", "25.16"): "25.9",
    ("kube-proxy", "26.15"): "26.13",
    ("kube-proxy", "31.14"): "31.11",
    ("controller-manager", "25.16"): "25.6",
    ("controller-manager", "26.15"): "26.13",
    ("kube-scheduler", "31.14"): "31.13",
}
# Modules that only declare metrics, with the patches that the proxy has, of one minor version each. A metric of a minor
# version between is not lost, since a later version has it.
OF_METRICS = {
    "endpointslice": ("30.14", "31.13", "32.12", "33.13", "34.4", "35.4", "36.3", "37.2", "38.0-beta.0"),
    "dynamic-resource-allocation": (
        *("27.16", "29.14", "30.14", "31.14", "32.13", "33.13", "34.4", "35.4", "36.3", "37.2", "38.0-beta.0"),
    ),
    "pod-security-admission": (
        "27.16",
        "30.14",
        "31.14",
        "32.13",
        "33.13",
        "34.4",
        "35.4",
        "36.3",
        "37.2",
        "38.0-beta.0",
    ),
}
# Names that programs of other projects export as well, so that an alert need not be about Kubernetes' components.
OF_OTHERS = frozenset({"process_start_time_seconds", "version_info", "scrape_error"})
COMPONENTS = (
    *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"),
    *("cloud-controller-manager", "kubeadm"),
)
# The flags of klog that 1.26 took from every component; -v and -vmodule stay
# (k8s.io/klog/v2, InitFlags; k8s.io/component-base v0.26.15, logs/klogflags).
KLOG = (
    *("add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size"),
    *("logtostderr", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold"),
)
# By minor version and component: flags that a loop over a list of names registers, or none does.
BY_HAND: Mapping[tuple[int, str], Mapping[str, str]] = {
    (24, "kube-apiserver"): dict.fromkeys(
        ("insecure-port", "port"), "v1.23 cmd/kube-apiserver/app/options/options.go: InsecurePortFlags"
    ),
}
# Names that a later version registers by a constant of a module that is not read.
NOT_LOST: Mapping[tuple[int, str], Mapping[str, str]] = {
    (37, "kubelet"): {"housekeeping-interval": "cadvisorflags.HousekeepingInterval, cmd/kubelet/app/options"}
}
# A module of each minor version of etcd.
ETCD = {"3.5": "v3.5.16", "3.6": "v3.6.4", "3.7": "v3.7.0"}
_ETCD_OF_KUBEADM = re.compile(r'DefaultEtcdVersion\s+= "(\d+\.\d+)\.')
_FLAG_OF_ETCD = re.compile(
    r"(?<!zap)\.\w*(?:Var|Bool|String|Int|Uint|Duration|Float64)"
    r'\((?:[^"()]|\([^()]*\))*"([a-z0-9][a-z0-9_-]*)"'
)
# How kube-controller-manager declares its controllers: up to 1.27, and the aliases from 1.29 on.
_CONTROLLERS = tuple(
    re.compile(pattern)
    for pattern in (
        r'register\("([a-z-]+)"',
        r'controllers\["([a-z-]+)"\]',
        r'saTokenControllerName\s+= "([a-z-]+)"',
        r'aliases:\s+\[\]string\{"([a-z-]+)"\}',
    )
)
_CONSTANT = re.compile(r'^\t\w+\s+= "([a-z-]+)"', re.MULTILINE)
# Folders of volume plug-ins, by the fields of a PersistentVolume. A CSI driver takes over the volumes of some
# (k8s.io/csi-translation-lib, plugins).
VOLUMES = {
    **{name: name for name in ("cephfs", "flocker", "glusterfs", "quobyte", "rbd", "storageos", "cinder", "fc")},
    "awsebs": "awsElasticBlockStore",
    "azuredd": "azureDisk",
    "azure_file": "azureFile",
    "iscsi": "iscsi",
    "gcepd": "gcePersistentDisk",
    "vsphere_volume": "vsphereVolume",
    "portworx": "portworxVolume",
    "nfs": "nfs",
    "flexvolume": "flexVolume",
    "git_repo": "gitRepo",
    "hostpath": "hostPath",
    "local": "local",
    "csi": "csi",
}
MIGRATED = frozenset(
    {"awsElasticBlockStore", "azureDisk", "azureFile", "cinder", "gcePersistentDisk", "portworxVolume", "vsphereVolume"}
)
WIDTH = 125


class Unavailable(Exception):
    """A module cannot be downloaded or read; the message says why."""


class Locked(NamedTuple):
    """The minor version from which on a gate is locked, and the value."""

    minor: int
    value: bool


Facts = Mapping[str, Any]


def download(module: str) -> Path:
    """Returns the folder in which the go command keeps a module (`PATH@VERSION`). Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module settings\n\ngo 1.24\n")
        command = ["go", "mod", "download", "-json", module]
        # A prerelease may need a newer go command, which the go command then downloads.
        environ = {**os.environ, "GOTOOLCHAIN": "auto"}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=600
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{module} needs the go command: {error}") from error
    if done.returncode:
        raise Unavailable(f"{module} could not be downloaded: {(done.stdout + done.stderr).strip()[-500:]}")
    return Path(json.loads(done.stdout)["Dir"])


def facts_of(version: str) -> Facts:
    """Returns what the sources of one minor version declare. Raises Unavailable."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    reader = hashlib.sha256(READER.read_bytes()).hexdigest()[:12]
    kept = base / "runup" / "kubernetes-facts" / f"{version}-{reader}.json"
    if not kept.exists():
        folders = {"k8s.io/kubernetes": download(f"k8s.io/kubernetes@v1.{version}")}
        for module in MODULES:
            patch = OTHER_PATCH.get((module, version), version)
            folders[f"k8s.io/{module}"] = download(f"k8s.io/{module}@v0.{patch}")
        for module, patches in OF_METRICS.items():
            for patch in patches:
                if patch.partition(".")[0] == version.partition(".")[0]:
                    folders[f"k8s.io/{module}"] = download(f"k8s.io/{module}@v0.{patch}")
        command = ["go", "run", str(READER), *(f"{module}={folder}" for module, folder in folders.items())]
        done = subprocess.run(command, cwd=READER.parent, capture_output=True, text=True, check=False, timeout=600)
        facts = json.loads(done.stdout) if done.returncode == 0 else {"unreadable": [done.stderr[-500:]]}
        if facts["unreadable"]:
            raise Unavailable(f"v1.{version} could not be read: {', '.join(facts['unreadable'])}")
        facts["flags"]["etcd"] = _flags_of_etcd(folders["k8s.io/kubernetes"])
        kept.parent.mkdir(parents=True, exist_ok=True)
        written = kept.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps(facts))
        written.rename(kept)
    content: dict[str, Any] = json.loads(kept.read_text())
    patch = OTHER_PATCH.get(("cloud-provider", version), version)
    folders = download(f"k8s.io/kubernetes@v1.{version}"), download(f"k8s.io/cloud-provider@v0.{patch}")
    content["controllers"] = _controllers_of(*folders)
    return content


def _flags_of_etcd(kubernetes: Path) -> dict[str, str]:
    """Returns the flags of the etcd that kubeadm starts. Raises Unavailable."""
    constants = (kubernetes / "cmd/kubeadm/app/constants/constants.go").read_text()
    match = _ETCD_OF_KUBEADM.search(constants)
    if match is None or match[1] not in ETCD:
        raise Unavailable(f"{kubernetes}: kubeadm's version of etcd is not among {', '.join(ETCD)}")
    module = download(f"go.etcd.io/etcd/server/v3@{ETCD[match[1]]}")
    files = (file for folder in ("embed", "etcdmain") for file in (module / folder).rglob("*.go"))
    sources = [file.read_text() for file in files if not file.name.endswith("_test.go")]
    return {name.replace("_", "-"): "" for text in sources for name in _FLAG_OF_ETCD.findall(text)}


def _controllers_of(kubernetes: Path, cloud: Path) -> list[str]:
    """Returns the names and aliases that `--controllers` of kube-controller-manager takes. Raises Unavailable."""
    folder = kubernetes / "cmd/kube-controller-manager"
    files = [file for file in (folder / "app").glob("*.go") if not file.name.endswith("_test.go")]
    sources = "".join(file.read_text() for file in files)
    own = folder / "names" / "controller_names.go"
    names = {name for pattern in _CONTROLLERS for name in pattern.findall(sources)}
    if own.exists():
        text = own.read_text()
        names |= {*_CONSTANT.findall(text)} - {""} | {*re.findall(r'^\t\t"([a-z-]+)":\s', text, re.MULTILINE)}
        constants = dict(re.findall(r'(\w+)\s+= "([a-z-]+)"', (cloud / "names" / "controller_names.go").read_text()))
        names |= {constants[name] for name in re.findall(r"(?:name:\s+|register\()cpnames\.(\w+)", sources)}
    if len(names) < 30:
        raise Unavailable(f"{folder}: {len(names)} controllers are too few")
    return sorted(names)


def differences(names: Mapping[int, set[str]]) -> tuple[dict[int, set[str]], dict[int, set[str]]]:
    """Returns by minor version the names that are added, and those that it and all later versions lack."""
    minors = sorted(names)
    added, lost = {}, {}
    for before, minor in itertools.pairwise(minors):
        earlier = {name for each in minors if each < minor for name in names[each]}
        later = {name for each in minors if each >= minor for name in names[each]}
        added[minor] = names[minor] - earlier
        lost[minor] = names[before] - later
    return added, lost


def locked(gates: Mapping[int, Mapping[str, list[dict[str, Any]]]]) -> dict[str, Locked]:
    """Returns the gates that are locked, by the sources of each minor version. Raises ValueError if one is unlocked.

    A later version may say that it locks a gate from an earlier version on, which itself does not: the lock counts from
    the version whose own sources have it.
    """
    found: dict[str, Locked] = {}
    for minor in sorted(gates):
        for name, specifications in gates[minor].items():
            now = max((each for each in specifications if each["since"] <= minor), key=_since, default=None)
            value = now["default"] if now is not None and now["locked"] else None
            if name in found and found[name].value is not value:
                raise ValueError(f"{name} is unlocked, or locked to two values, in 1.{minor}: the table cannot say it")
            if value is not None and name not in found:
                found[name] = Locked(minor, value)
    return found


def _since(specification: Mapping[str, Any]) -> int:
    return int(specification["since"])


def flags_of(facts: Mapping[int, Facts]) -> dict[str, tuple[dict[int, set[str]], dict[int, set[str]]]]:
    """Returns the flags of each component that each minor version adds and loses; names of plug-ins are under
    `admission`, those of controllers under `controllers`."""
    found = {}
    for component in (*COMPONENTS, "etcd"):
        names = {minor: set(each["flags"][component]) for minor, each in facts.items()}
        added, lost = differences({minor: _without_klog(each) for minor, each in names.items()})
        for minor in lost:
            lost[minor] |= {*BY_HAND.get((minor, component), ())}
            lost[minor] -= {*NOT_LOST.get((minor, component), ())}
        found[component] = (added, lost)
    found["controllers"] = differences({minor: set(each["controllers"]) for minor, each in facts.items()})
    found["admission"] = differences({minor: set(each["admission"]) for minor, each in facts.items()})
    # Values of --cloud-provider of kubelets, controller managers and API servers.
    found["providers"] = differences({minor: set(each["providers"]) for minor, each in facts.items()})
    return found


def _without_klog(flags: set[str]) -> set[str]:
    return flags - {"(klog)"} | {*KLOG} if "(klog)" in flags else flags


def tables(facts: Mapping[int, Facts], planned: frozenset[int] = frozenset()) -> dict[str, str]:
    """Returns the tables by name. `planned` are the minor versions that are not released."""
    gates = {minor: each["gates"] for minor, each in facts.items()}
    added, lost = differences({minor: {*each} for minor, each in gates.items()})
    locks: dict[int, dict[str, set[str]]] = {minor: {"true": set(), "false": set()} for minor in lost}
    for name, (minor, value) in locked(gates).items():
        # The first row has those that were locked before.
        locks[max(minor, min(locks))][str(value).lower()].add(name)
    flags = flags_of(facts)
    flag_rows = {
        key: {minor: {name: pair[number][minor] for name, pair in flags.items()} for minor in lost}
        for number, key in ((0, "added"), (1, "removed"))
    }
    volumes = {minor: {VOLUMES[each] for each in facts[minor]["volumes"] if each in VOLUMES} for minor in facts}
    _, gone = differences(volumes)
    # scaleIO went before the first version that is read: https://github.com/kubernetes/kubernetes/pull/101685.
    gone[22] = {"scaleIO"}
    attachable = {
        VOLUMES[each] for of in facts.values() for each, is_ in of["volumes"].items() if is_ and each in VOLUMES
    }
    oldest = min(facts)
    base = {name: _without_klog({*facts[oldest]["flags"][name]}) for name in COMPONENTS if name != "kubeadm"}
    base["admission"] = {*facts[oldest]["admission"]}
    base["controllers"] = {*facts[oldest]["controllers"]}
    newest = max({*facts} - planned)
    nodes = {
        key: differences({minor: set(each["kubeadm"][key]) for minor, each in facts.items()})
        for key in ("labels", "taints")
    }
    head = _head(facts, planned)
    components = f"components: [{', '.join((*COMPONENTS, 'etcd'))}]\n"
    taken_over = {minor: names & MIGRATED for minor, names in sorted(gone.items())}
    gone = {minor: names - MIGRATED for minor, names in sorted(gone.items())}
    return {
        "removed-gates": head
        + _section("removed", lost, planned)
        + _section("added", added, planned)
        + "".join(f"{line}\n" for line in _wrapped("base: [", gates[oldest])),
        "locked-gates": head + _section("removed", locks, planned),
        "removed-flags": head
        + components
        + _section("removed", flag_rows["removed"], planned)
        + _section("added", flag_rows["added"], planned)
        + "base:\n"
        + "".join(f"{line}\n" for name, names in base.items() for line in _wrapped(f"  {name}: [", names)),
        "removed-volumes": head.replace("first: 23", "first: 22")
        + f"attachable: [{', '.join(sorted(attachable))}]\n"
        + f"plugins: [{', '.join(sorted({*VOLUMES.values(), 'scaleIO'} - {'csi'}))}]\n"
        + _section("removed", gone, planned)
        + _section("migrated", taken_over, frozenset()),
        "removed-metrics": head
        + _section("removed", _metric_rows(facts), planned)
        + "".join(f"{line}\n" for line in _wrapped("base: [", {*facts[newest]["metrics"]} - OF_OTHERS)),
        "kubeadm-nodes": head
        + _section("removed", {minor: {key: pair[1][minor] for key, pair in nodes.items()} for minor in lost}, planned)
        + _section("added", {minor: {key: pair[0][minor] for key, pair in nodes.items()} for minor in lost}, planned)
        + "base:\n"
        + "".join(f"{line}\n" for key in nodes for line in _wrapped(f"  {key}: [", facts[oldest]["kubeadm"][key])),
    }


def _metric_rows(facts: Mapping[int, Facts]) -> dict[int, dict[str, set[str]]]:
    """Returns by minor version the metrics that it removes, and those that it hides.

    A component hides a metric that an earlier minor version deprecates (k8s.io/component-base, metrics/registry.go,
    shouldHide).
    """
    names = {minor: {*each["metrics"]} - OF_OTHERS for minor, each in facts.items()}
    _, lost = differences(names)
    hidden = {
        minor: {
            name for name in names[minor] if (at := facts[minor]["metrics"][name]) and int(at.split(".")[1]) < minor
        }
        for minor in facts
    }
    added, _ = differences(hidden)
    return {minor: {"removes": lost[minor], "hides": added[minor]} for minor in lost}


def _head(facts: Mapping[int, Facts], planned: frozenset[int]) -> str:
    released = sorted({*facts} - planned)
    return (
        "# Written by tools/kubernetes_tables.py, not by hand: by the minor version that no longer has a name, or\n"
        "# locks it (what was locked before is in the first row); `added` by the first that has it, and `base` has\n"
        "# what the version before the first row has. `planned` is of a prerelease, and may change. Plug-ins are\n"
        "# under `admission`, names of --controllers under `controllers`, values of --cloud-provider under\n"
        "# `providers`; a CSI driver takes over the volumes of the plug-ins under `migrated`.\n"
        f"source: the sources of Kubernetes, k8s.io/kubernetes v1.{VERSIONS[0]} to v1.{VERSIONS[-1]} and the modules\n"
        "  of its repository, as tools/kubernetes_tables.py reads them\n"
        f"date: {DATE}\nfirst: {released[0] + 1}\nlast: {released[-1]}\n"
    )


def _section(name: str, rows: Mapping[int, Any], planned: frozenset[int]) -> str:
    """Returns the lines of rows by minor version; those of `planned` versions are a section of their own."""
    released = "".join(f"{line}\n" for minor, row in rows.items() if minor not in planned for line in _row(minor, row))
    ahead = "".join(f"{line}\n" for minor, row in rows.items() if minor in planned for line in _row(minor, row))
    kept = "planned" if name == "removed" else f"planned{name.capitalize()}"
    return f"{name}:\n{released}" + (f"{kept}:\n{ahead}" if ahead else "")


def _row(minor: int, row: set[str] | Mapping[str, set[str]]) -> Iterator[str]:
    if isinstance(row, set):
        yield from _wrapped(f'  "1.{minor}": [', row)
        return
    filled = {name: names for name, names in row.items() if names}
    yield f'  "1.{minor}":' if filled else f'  "1.{minor}": {{}}'
    for name, names in filled.items():
        key = f'"{name}"' if name in ("true", "false") else name
        yield from _wrapped(f"    {key}: [", names)


def _wrapped(head: str, names: Iterable[str]) -> Iterator[str]:
    line = head
    words = sorted(names)
    for index, name in enumerate(words):
        word = f"{name}]" if index == len(words) - 1 else f"{name},"
        if len(line) + 1 + len(word) > WIDTH and not line.endswith("["):
            yield line
            line = f"      {word}"
        else:
            line += word if line.endswith("[") else f" {word}"
    yield line if words else f"{head}]"


def all_facts() -> dict[int, Facts]:
    """Returns what the sources of each minor version declare. Raises Unavailable."""
    return {int(version.partition(".")[0]): facts_of(version) for version in VERSIONS}


def config_differences(facts: Mapping[int, Facts]) -> Iterator[str]:
    """Yields in words how the table of removed versions of configuration files, written by hand, differs."""
    _, lost = differences({minor: set(each["configurations"]) for minor, each in facts.items()})
    made = {(version, minor) for minor, versions in lost.items() for version in versions}
    rows = yaml.safe_load((DATA / "removed-config-apis.yaml").read_text())["removed"]
    told = {(f"{row['group']}/{row['version']}", row["removed"]) for row in rows if row["removed"] > min(facts)}
    for version, minor in sorted(made ^ told):
        word = "lacks" if (version, minor) in made else "has, and the modules do not lose,"
        yield f"removed-config-apis.yaml {word} {version} in 1.{minor}"


def made(facts: Mapping[int, Facts]) -> dict[Path, str]:
    """Returns the tables as they should be, by their files."""
    planned = frozenset(int(version.partition(".")[0]) for version in VERSIONS if "-" in version)
    return {DATA / f"{name}.yaml": text for name, text in tables(facts, planned).items()}


def main(arguments: list[str]) -> int:
    """Prints how the tables differ, and writes them unless only asked to check; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python tools/kubernetes_tables.py [--check]", file=sys.stderr)
        return 2
    try:
        facts = all_facts()
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 3
    told = [*config_differences(facts)]
    for line in told:
        print(line)
    differ = bool(told)
    for file, content in made(facts).items():
        before = file.read_text() if file.exists() else ""
        lines = (before.splitlines(keepends=True), content.splitlines(keepends=True))
        sys.stdout.writelines(difflib.unified_diff(*lines, str(file), "made"))
        differ |= before != content
        if not arguments:
            file.write_text(content)
    return int(differ and bool(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
