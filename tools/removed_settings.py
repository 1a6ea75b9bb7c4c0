"""Write the table of locked feature gates, and verify the tables of removed gates and flags.

usage: python tools/removed_settings.py [--check]

A component does not start with a feature gate or a flag that it does not know, nor with a gate that is set against
the value that it is locked to. Which gates a minor version of Kubernetes has, and from which on one is locked, is in
its own list of gates (`versioned_feature_list.yaml` and `unversioned_feature_list.yaml` of the Go module
k8s.io/kubernetes). Which flags a component has is in the calls of its sources that register them. etcd's version is the
one that kubeadm of the minor version starts.

The rows of removed-gates.yaml and removed-flags.yaml from `FIRST` on are compared with what the modules lost; those
before have the sources that the tables name. `BY_HAND` has the flags that no call tells, each with its source.

The modules come from the Go module proxy (`go` must be installed) and stay in Go's own cache. `--check` writes nothing;
differences are printed, and end the program with 1; it ends with 3 where a module cannot be had.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DATA = Path(__file__).parents[1] / "packages/runup/src/runup/checks/decide/data"
LOCKED, GATES, FLAGS = (DATA / f"{name}.yaml" for name in ("locked-gates", "removed-gates", "removed-flags"))
# A patch of each minor version that the proxy has of both k8s.io/kubernetes and the modules of its repository.
VERSIONS = ("32.13", "33.13", "34.4", "35.4", "36.3", "37.2")
# The first minor version whose predecessor is among them.
FIRST = 33
DATE = "2026-11"
# A module of each minor version of etcd.
ETCD = {"3.5": "v3.5.16", "3.6": "v3.6.4", "3.7": "v3.7.0"}
_KUBERNETES = "k8s.io/kubernetes@v1.{}"
# The folders of modules that register the flags of a component.
FOLDERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "kube-apiserver": (
        (_KUBERNETES, "cmd/kube-apiserver"),
        (_KUBERNETES, "pkg/controlplane"),
        (_KUBERNETES, "pkg/kubeapiserver"),
        (_KUBERNETES, "plugin/pkg/admission"),
        ("k8s.io/apiserver@v0.{}", "pkg/server"),
        ("k8s.io/component-base@v0.{}", ""),
    ),
    "kube-controller-manager": (
        (_KUBERNETES, "cmd/kube-controller-manager"),
        ("k8s.io/apiserver@v0.{}", "pkg/server"),
        ("k8s.io/cloud-provider@v0.{}", "options"),
        ("k8s.io/component-base@v0.{}", ""),
        ("k8s.io/controller-manager@v0.{}", ""),
    ),
    "kube-scheduler": (
        (_KUBERNETES, "cmd/kube-scheduler"),
        ("k8s.io/apiserver@v0.{}", "pkg/server"),
        ("k8s.io/component-base@v0.{}", ""),
    ),
    "kubelet": ((_KUBERNETES, "cmd/kubelet"), ("k8s.io/component-base@v0.{}", "")),
    "kube-proxy": ((_KUBERNETES, "cmd/kube-proxy"), ("k8s.io/component-base@v0.{}", "")),
}
# Of a minor version and a component: flags whose loss no call of the folders tells.
BY_HAND: Mapping[tuple[int, str], Mapping[str, str]] = {
    (37, "kube-controller-manager"): {
        "concurrent-service-syncs": "cmd/kube-controller-manager/app/options: no ServiceControllerOptions"
    },
}
# Flags that a constant names in the later version.
NOT_LOST: Mapping[tuple[int, str], Mapping[str, str]] = {
    (37, "kubelet"): {"housekeeping-interval": "cadvisorflags.HousekeepingInterval, cmd/kubelet/app/options"}
}
# Before 1.36 the list has the identifiers of gates, and not their names: pkg/features/kube_features.go.
NAMES = {"CPUCFSQuotaPeriod": "CustomCPUCFSQuotaPeriod", "RuntimeClassInImageCriAPI": "RuntimeClassInImageCriApi"}
# Fields of log lines look like flags.
_FLAG = re.compile(
    r"(?:(?<!zap)\.\w*(?:Var|VarP|Bool|String|Int|Duration|Float64|StringSlice|Changed)|\bregister(?:Deprecated)?)"
    r'\((?:[^"()]|\([^()]*\))*"([a-z0-9][a-z0-9_-]*)"'
)
_ETCD_OF_KUBEADM = re.compile(r'DefaultEtcdVersion = "(\d+\.\d+)\.')


class Unavailable(Exception):
    """A module cannot be had; the message says why."""


class Locked(NamedTuple):
    """The minor version from which on a gate is locked, and the value."""

    minor: int
    value: bool


def download(module: str) -> Path:
    """Returns where the Go tool keeps a module (`PATH@VERSION`). Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module settings\n\ngo 1.24\n")
        command = ["go", "mod", "download", "-json", module]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{module} needs the go command: {error}") from error
    if done.returncode:
        raise Unavailable(f"{module} could not be downloaded: {(done.stdout + done.stderr).strip()[-500:]}")
    return Path(json.loads(done.stdout)["Dir"])


def gates_of(module: Path) -> dict[str, list[dict[str, Any]]]:
    """Returns the specifications of each gate in the lists of a folder of k8s.io/kubernetes, oldest first."""
    lists = sorted(module.glob("test/*/*/*versioned_feature_list.yaml"))
    if not lists:
        raise Unavailable(f"{module} has no list of its gates")
    rows = (row for file in lists for row in yaml.safe_load(file.read_text()) or ())
    return {NAMES.get(row["name"], row["name"]): row["versionedSpecs"] for row in rows}


def locked(gates: Mapping[int, Mapping[str, list[dict[str, Any]]]]) -> dict[str, Locked]:
    """Returns the gates that are locked, of the lists of each minor version. Raises ValueError if one is unlocked.

    A later list may lock a gate from an earlier version on, whose own list and programs do not: that one counts from
    the version of the first list. What the first of all lists locks is locked from the version that it names.
    """
    found: dict[str, Locked] = {}
    for minor in sorted(gates):
        for name, specifications in gates[minor].items():
            # A specification without a version is that of the list's own.
            by_version = [(int(str(each["version"]).partition(".")[2] or minor), each) for each in specifications]
            since, now = next((pair for pair in reversed(by_version) if pair[0] <= minor), (minor, None))
            value = now["default"] if now is not None and now["lockToDefault"] else None
            if name in found and found[name].value is not value:
                raise ValueError(f"{name} is unlocked, or locked to two values: the table cannot say it")
            if value is not None and name not in found:
                found[name] = Locked(since if minor == min(gates) else minor, value)
    return found


def flags_of(folders: Iterator[Path]) -> set[str]:
    """Returns the flags that the sources in the folders register, with dashes."""
    files = (file for folder in folders for file in folder.rglob("*.go"))
    own = (file for file in files if not file.name.endswith("_test.go") and "testing" not in file.parts)
    return {name.replace("_", "-") for file in own for name in _FLAG.findall(file.read_text(errors="replace"))}


def lost(names: Mapping[int, set[str]]) -> dict[int, set[str]]:
    """Returns by minor version the names that the one before has and it has not."""
    return {minor: names[minor - 1] - names[minor] for minor in sorted(names) if minor - 1 in names}


def locked_text(found: Mapping[str, Locked], newest: int) -> str:
    """Returns the table of locked gates."""
    lines = [
        "# Feature gates by the Kubernetes minor version that locks them: a component that is given another value does",
        "# not start. Written by tools/removed_settings.py, not by hand. Which are removed: removed-gates.yaml.",
        "source: test/compatibility_lifecycle/reference/versioned_feature_list.yaml of k8s.io/kubernetes v1.33 to "
        f"v1.{newest},",
        "  test/featuregates_linter/test_data of v1.32",
        f"date: {DATE}",
        "first: 25",
        f"last: {newest}",
        "removed:",
    ]
    for minor in range(25, newest + 1):
        parts = {
            value: sorted(
                name for name, lock in found.items() if lock == (minor, value) or _is_older(lock, minor, value)
            )
            for value in (True, False)
        }
        lines.append(f'  "1.{minor}":' if any(parts.values()) else f'  "1.{minor}": {{}}')
        for value, names in parts.items():
            if names:
                lines += _wrapped(f'    "{str(value).lower()}": [', names)
    return "\n".join(lines) + "\n"


def _is_older(lock: Locked, minor: int, value: bool) -> bool:
    """Returns whether the gate was locked before the table begins; its first row has these."""
    return minor == 25 and lock.minor < 25 and lock.value is value


def _wrapped(head: str, names: list[str]) -> Iterator[str]:
    line = head
    for index, name in enumerate(names):
        word = f"{name}]" if index == len(names) - 1 else f"{name},"
        if len(line) + 1 + len(word) > 125 and not line.endswith("["):
            yield line
            line = f"      {word}"
        else:
            line += word if line.endswith("[") else f" {word}"
    yield line


def differences(gates: Mapping[int, set[str]], flags: Mapping[tuple[int, str], set[str]]) -> Iterator[str]:
    """Yields in words how the rows of removed gates and flags from `FIRST` on differ from the tables."""
    table = yaml.safe_load(GATES.read_text())["removed"]
    for minor, names in gates.items():
        yield from _different(f"{GATES.name}: 1.{minor}", set(table[f"1.{minor}"]), names)
    table = yaml.safe_load(FLAGS.read_text())["removed"]
    for (minor, component), names in flags.items():
        told = set(table[f"1.{minor}"].get(component, ()))
        at = (minor, component)
        expected = (names | {*BY_HAND.get(at, ())}) - {*NOT_LOST.get(at, ())}
        yield from _different(f"{FLAGS.name}: 1.{minor}: {component}", told, expected)


def _different(where: str, told: set[str], made: set[str]) -> Iterator[str]:
    for names, word in ((made - told, "lacks"), (told - made, "has, and the modules do not lose,")):
        if names:
            yield f"{where} {word} {', '.join(sorted(names))}"


def main(arguments: list[str]) -> int:
    """Writes or compares the tables; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python tools/removed_settings.py [--check]", file=sys.stderr)
        return 2
    try:
        wanted, told = made()
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 3
    before = LOCKED.read_text() if LOCKED.exists() else ""
    if not arguments:
        LOCKED.write_text(wanted)
        print(f"wrote {LOCKED}")
    elif before != wanted:
        lines = (before.splitlines(keepends=True), wanted.splitlines(keepends=True))
        sys.stdout.writelines(difflib.unified_diff(*lines, str(LOCKED), "made"))
    for line in told:
        print(line)
    return int(bool(told) or (bool(arguments) and before != wanted))


def made() -> tuple[str, list[str]]:
    """Returns the table of locked gates as it should be, and in words how the other two differ. Raises Unavailable."""
    minors = {int(version.partition(".")[0]): version for version in VERSIONS}
    kubernetes = {minor: download(_KUBERNETES.format(version)) for minor, version in minors.items()}
    gates = {minor: gates_of(module) for minor, module in kubernetes.items()}
    flags = {
        component: {
            minor: flags_of(download(module.format(version)) / folder for module, folder in folders)
            for minor, version in minors.items()
        }
        for component, folders in FOLDERS.items()
    }
    flags["etcd"] = {minor: _flags_of_etcd(module) for minor, module in kubernetes.items()}
    lost_flags = {(minor, name): some for name, of in flags.items() for minor, some in lost(of).items()}
    lost_gates = lost({minor: {*of} for minor, of in gates.items()})
    return locked_text(locked(gates), max(minors)), [*differences(lost_gates, lost_flags)]


def _flags_of_etcd(kubernetes: Path) -> set[str]:
    constants = (kubernetes / "cmd/kubeadm/app/constants/constants.go").read_text()
    match = _ETCD_OF_KUBEADM.search(constants)
    if match is None or match[1] not in ETCD:
        raise Unavailable(f"{kubernetes}: kubeadm's version of etcd is not among {', '.join(ETCD)}")
    module = download(f"go.etcd.io/etcd/server/v3@{ETCD[match[1]]}")
    return flags_of(module / folder for folder in ("embed", "etcdmain"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
