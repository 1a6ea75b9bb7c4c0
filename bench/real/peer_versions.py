"""What Pluto, kubepug and runup find of removed API versions in the same files, a part of `python -m bench peers`.

The set has an object of each kind that Kubernetes 1.22 to 1.37 removed a version of and serves in another one, last
applied by kubectl in the removed version (a risk), and the same object last applied in the version that stays (a
lookalike). The tools get it three times: as files in the applied version, as a dump of a cluster of 1.21 with managed
fields, and as the same dump without them, which `kubectl get` leaves out; the dumps have the kinds that 1.21 serves in
the version that stays. Go builds Pluto and kubepug from the module proxy, and kubepug's generator makes its database
from k8s.io/api: it is not in its module. `NOT_RUN` says why the others are not run on these.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kubekit.api.scheme import guess_plural
from runup.checks.decide.removal_tables import life_of, table

PLUTO = "v5.20.3"
KUBEPUG = "v1.7.1"
# The version in kubepug's go.mod. From types of 1.31 on, which say when a stable version was introduced, its generator
# gives stable versions a removal as well.
KUBERNETES_API = "v0.28.2"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runup"
NOT_RUN = {
    "kubent": "the module proxy does not have github.com/doitintl/kube-no-trouble",
    "popeye": "it asks clusters, and not files or dumps; see the other tables",
}
SOURCE, TARGET = 21, 37
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TIME = "2026-10-30T08:00:00Z"
_DEADLINE_S = 600
# Names that a tool reports.
Found = set[str]


def of_versions() -> dict[str, Any]:
    """Returns by set and tool how many risks are found, how many are missed, and how many lookalikes are named."""
    rows: dict[str, Any] = {}
    finders: dict[str, Callable[[Path, str], Found]] = {"runup": _by_runup}
    for tool, program, finder in (("pluto", _pluto(), _by_pluto), ("kubepug", _kubepug(), _by_kubepug)):
        if isinstance(program, str):
            rows[tool] = program
        else:
            finders[tool] = partial(finder, program)
    with tempfile.TemporaryDirectory() as folder:
        for name, write in _SETS.items():
            place = Path(folder, name.replace(" ", "-"))
            place.mkdir()
            write(place)
            option = "--manifests" if name == "files" else "--dump"
            for tool, finder in finders.items():
                found = finder(place, option)
                risks = {each for each, *_ in _objects(in_dump=name != "files") if each.startswith("risk-")}
                counts = {"found": len(found & risks), "missed": len(risks - found), "false": len(found - risks)}
                rows[f"{name}: {tool}"] = counts
    return {**rows, **NOT_RUN}


def _objects(*, in_dump: bool) -> Iterator[tuple[str, str, str, str]]:
    """Yields name, kind, served version and applied version: of each kind a risk, and a lookalike."""
    seen: set[str] = set()
    for minor, entries in table("removed-apis").removed.items():
        for entry in entries if minor > SOURCE else ():
            for kind in entry["kinds"]:
                applied = f"{entry['group']}/{entry['version']}"
                served, _, other_kind = life_of(entry["group"], entry["version"], kind).replacement.partition(" ")
                stays = bool(served) and not other_kind and served.rpartition("/")[0] == entry["group"]
                since = life_of(entry["group"], served.rpartition("/")[2], kind).introduced or 0
                if (
                    stays
                    and kind not in seen
                    and "alpha" not in entry["version"]
                    and "beta" not in served
                    and not kind.endswith(("Review", "Eviction"))
                    and not (in_dump and since > SOURCE)
                ):
                    seen.add(kind)
                    yield f"risk-{kind.lower()}", kind, served, applied
                    yield f"lookalike-{kind.lower()}", kind, served, served


def _write_files(folder: Path) -> None:
    for name, kind, _, applied in _objects(in_dump=False):
        manifest = {"apiVersion": applied, "kind": kind, "metadata": {"name": name}}
        (folder / f"{name}.yaml").write_text(json.dumps(manifest))


def _write_dump(folder: Path, *, managed: bool) -> None:
    (folder / "version.json").write_text(json.dumps({"serverVersion": {"gitVersion": "v1.21.14", "minor": "21"}}))
    for name, kind, served, applied in _objects(in_dump=True):
        manifest = {"apiVersion": applied, "kind": kind, "metadata": {"name": name}}
        metadata: dict[str, Any] = {"name": name, "annotations": {_LAST_APPLIED: json.dumps(manifest)}}
        if managed:
            fields = {"f:metadata": {"f:annotations": {f"f:{_LAST_APPLIED}": {}}}}
            entry = {"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": applied}
            metadata["managedFields"] = [{**entry, "time": _TIME, "fieldsType": "FieldsV1", "fieldsV1": fields}]
        file = folder / f"{guess_plural(kind)}.{served.rpartition('/')[0]}.json"
        content = json.loads(file.read_text()) if file.exists() else {"apiVersion": "v1", "kind": "List", "items": []}
        content["items"].append({"apiVersion": served, "kind": kind, "metadata": metadata})
        file.write_text(json.dumps(content))


_SETS: dict[str, Callable[[Path], None]] = {
    "files": _write_files,
    "dump with managed fields": lambda folder: _write_dump(folder, managed=True),
    "dump without managed fields": lambda folder: _write_dump(folder, managed=False),
}


def _by_pluto(program: Path, folder: Path, _option: str) -> Found:
    versions = f"k8s=v1.{TARGET}.0"
    command = [program, "detect-files", "-d", folder, "-o", "json", "--target-versions", versions, "--no-footer"]
    # It ends with 2 or 3 where it finds something.
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return set()
    return {item["name"] for item in report.get("items") or () if item.get("removed")}


def _by_kubepug(program: Path, folder: Path, _option: str) -> Found:
    command = [program, "--input-file", folder, "--database", program.with_name("data.json"), "--format", "json"]
    done = subprocess.run(
        [*command, "--k8s-version", f"v1.{TARGET}"], capture_output=True, text=True, check=False, timeout=_DEADLINE_S
    )
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return set()
    return {
        item["objectname"] for of_version in report.get("deleted_apis") or () for item in of_version["deleted_items"]
    }


def _by_runup(folder: Path, option: str) -> Found:
    command = [sys.executable, "-m", "runup", "preflight", "run", option, folder, "--to", f"1.{TARGET}", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S)
    report = json.loads(done.stdout)
    risks = [risk for risk in report["risks"] if risk["applies"] == "True" and risk["name"].startswith("RemovedAPI")]
    return {resource["name"] for risk in risks for resource in risk["resources"]}


def _pluto() -> Path | str:
    """Returns Pluto's program, which Go builds once, or why there is none."""
    program = _CACHE / "pluto" / PLUTO / "pluto"
    try:
        if not program.exists():
            _build("github.com/fairwindsops/pluto/v5", PLUTO, {program: "./cmd/pluto"})
    except (OSError, subprocess.SubprocessError) as error:
        return f"not asked: {error}"
    return program


def _kubepug() -> Path | str:
    """Returns kubepug's program with its database next to it, which Go builds once, or why there is none."""
    program = _CACHE / "kubepug" / KUBEPUG / "kubepug"
    generator, database = program.with_name("generator"), program.with_name("data.json")
    if database.exists():
        return program
    try:
        _build("github.com/kubepug/kubepug", KUBEPUG, {program: ".", generator: "./generator"})
        with tempfile.TemporaryDirectory() as folder:
            # The generator reads the packages of the module in which it runs.
            Path(folder, "go.mod").write_text("module api\n\ngo 1.24\n")
            Path(folder, "api.go").write_text('package api\n\nimport _ "k8s.io/api/core/v1"\n')
            _run(["go", "get", f"k8s.io/api@{KUBERNETES_API}"], folder)
            text = _run([str(generator), "-i", "k8s.io/api/./..."], folder)
        json.loads(text)
        database.write_text(text)
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        return f"not asked: {error}"
    return program


def _build(module: str, version: str, packages: Mapping[Path, str]) -> None:
    """Builds packages of a module as programs. Raises OSError or SubprocessError.

    `go install` asks the proxy for all versions of the module, which it does not have.
    """
    print(f"bench: peers: building {module}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module peers\n\ngo 1.24\n")
        source = Path(folder, "source")
        shutil.copytree(
            json.loads(_run(["go", "mod", "download", "-json", f"{module}@{version}"], folder))["Dir"], source
        )
        _run(["chmod", "-R", "u+w", str(source)], folder)
        for program, package in packages.items():
            program.parent.mkdir(parents=True, exist_ok=True)
            _run(["go", "build", "-o", str(program), package], str(source))


def _run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=3 * _DEADLINE_S)
    return done.stdout
