"""`python -m bench peers`: what other tools find, and what runup finds, of the same rules, fixtures and clusters.

Four tables; `peer_versions` has the second one, of files and dumps with removed API versions. The rules that Pluto,
kubent and kubepug publish (`peer_rules.yaml`) are each asked of `--manifests` as a manifest, for the minor version that
removes it; the lookalike is the version before. The planted clusters (`tests/planted`) are imported into a sandbox one
by one, and popeye looks at each over its API: what it reports about the objects of a plant as a warning or an error
counts as told, once with all of its codes and once without those of good practice. On the plain cluster whose plants
are tried on a newer kube-apiserver (`tests/preflight/newer_server`) both are asked live, where that server is built.
`POPEYE` names popeye's program; without it Go builds it from the module proxy, which takes some minutes and is kept in
`$XDG_CACHE_HOME/runup/popeye`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bench.real.peer_versions import of_versions
from kubekit.lang.version import Version
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Applies, Context, Snapshot
from runup.checks.decide.stored_manifests import IN_FILES, Manifest, Manifests, file_check

RULES = Path(__file__).with_name("peer_rules.yaml")
PLANTED = Path(__file__).parents[2] / "tests/planted"
POPEYE = "v0.22.1"
# The add-ons' own versions say nothing of Kubernetes'; any minor version of the table does.
_ADDONS_AT = 30
# popeye's codes of what it tells of nearly every object, and an update never meets: image tags, probes, requests and
# limits, ports without a name, accounts, root, network policies (derailed/popeye, internal/issues/assets/codes.yaml).
GOOD_PRACTICE = frozenset({100, 101, 102, 106, 107, 108, 300, 301, 302, 306, 1204})
# popeye's levels: 0 ok, 1 information, 2 warning, 3 error (derailed/popeye, internal/rules).
_WARNING = 2
_DEADLINE_S = 600
_CODE = re.compile(r"\[POP-(\d+)\]")
_NAMES_AND_NUMBERS = r'"[^"]*"|\(.*\)|\d+%?'


@dataclass(frozen=True)
class Rule:
    """A version of a kind that a tool tells of; `minor` is the one that removes it, None if an add-on does."""

    version: str
    kind: str
    minor: int | None


def run() -> dict[str, Any]:
    """Compares the rules, then the clusters."""
    return {
        "rules": of_rules(),
        "API versions": of_versions(),
        "planted clusters": of_clusters(),
        "plain cluster": of_plain_cluster(),
    }


def of_rules() -> dict[str, Any]:
    """Returns, for each tool, how many of its rules runup has, too, which are explained, and which are missed."""
    content = yaml.safe_load(RULES.read_text())
    explained = {(row["version"], kind): row for row in content.pop("explained") for kind in row["kinds"]}
    table: dict[str, Any] = {}
    for tool, published in content.items():
        counts = {"rules": 0, "alike": 0, "explained": 0}
        missed: list[str] = []
        for rule in _rules(published):
            counts["rules"] += 1
            reason = explained.get((rule.version, rule.kind))
            if reason is None:
                agrees = _agrees(rule)
            else:
                said = reason.get("removed")
                agrees = said is None or _agrees(Rule(rule.version, rule.kind, _minor(said)))
            if not agrees:
                missed.append(f"{rule.version} {rule.kind}")
            else:
                counts["explained" if reason else "alike"] += 1
        table[tool] = {"source": published["source"], **counts, "missed": missed}
    return table


def _rules(published: Mapping[str, Any]) -> Iterator[Rule]:
    for name in ("rules", "addons"):
        for row in published.get(name, ()):
            for kind in row["kinds"]:
                yield Rule(row["version"], kind, _minor(row["removed"]) if name == "rules" else None)


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _agrees(rule: Rule) -> bool:
    """Returns whether runup tells of the version from that minor version on, and not before."""
    if rule.minor is None:
        return _tells(rule, _ADDONS_AT)
    return _tells(rule, rule.minor) and not _tells(rule, rule.minor - 1)


def _tells(rule: Rule, minor: int) -> bool:
    target = Version(f"1.{minor}.0")
    context = Context(
        source=target,
        target=target,
        now=datetime(2026, 11, 1, tzinfo=UTC),
        target_kubernetes=str(target),
        cluster=ClusterKind.KUBERNETES,
    )
    # A list in a file is read as its items.
    kind = rule.kind.removesuffix("List")
    read = Manifests((Manifest(api_version=rule.version, kind=kind, namespace="shop", name="it", place="it.yaml:1"),))
    findings = run_check(file_check(read), Snapshot(), context).findings
    return any(each.applies is Applies.YES and each.name.startswith(IN_FILES) for each in findings)


def of_clusters() -> dict[str, Any]:
    """Returns, for each planted cluster, how many risks and lookalikes popeye and runup tell of."""
    program = _popeye()
    if isinstance(program, str):
        return {"popeye": program}
    table: dict[str, Any] = {}
    total: dict[str, list[int]] = {}
    codes: Counter[str] = Counter()
    for truth in sorted(PLANTED.glob("*/*/truth.yaml")):
        name = str(truth.parent.relative_to(PLANTED))
        print(f"bench: peers: {name}", file=sys.stderr)
        plants = yaml.safe_load(truth.read_text())
        seconds, report = _told_by_popeye(program, truth.parent / "cluster.tar.gz")
        told, told_closer = set(told_of(report)), set(told_of(report, GOOD_PRACTICE))
        codes += codes_of(report)
        expected = yaml.safe_load(truth.with_name("expected.yaml").read_text())
        ours = {*expected["found"], *expected["told"]}
        popeyes, closer = (
            {plant["id"] for plant in plants if any(text in texts for text in plant["objects"])}
            for texts in (told, told_closer)
        )
        row = {"popeye's seconds": seconds}
        for tool, names in (("popeye", popeyes), ("popeye without good practice", closer), ("runup", ours)):
            for kind in ("risk", "lookalike"):
                of_kind = {plant["id"] for plant in plants if plant["plant"] == kind}
                row[f"{tool}: {kind}s"] = f"{len(names & of_kind)} of {len(of_kind)}"
                sums = total.setdefault(f"{tool}: {kind}s", [0, 0])
                sums[0] += len(names & of_kind)
                sums[1] += len(of_kind)
        row["risks of popeye alone"] = sorted(
            plant["id"] for plant in plants if plant["plant"] == "risk" and plant["id"] in closer - ours
        )
        table[name] = row
    return {
        **table,
        "all": {what: f"{some} of {every}" for what, (some, every) in total.items()},
        "popeye's findings by code": dict(sorted(codes.items())),
    }


def _popeye() -> Path | str:
    """Returns popeye's program, or why there is none."""
    if named := os.environ.get("POPEYE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    program = Path(base) / "runup/popeye" / POPEYE / "popeye"
    if program.exists():
        return program
    print("bench: peers: building popeye", file=sys.stderr)
    try:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "go.mod").write_text("module peers\n\ngo 1.24\n")
            module = _go(["mod", "download", "-json", f"github.com/derailed/popeye@{POPEYE}"], folder)
            source = Path(folder, "popeye")
            subprocess.run(["cp", "-r", json.loads(module)["Dir"], source], check=True)
            subprocess.run(["chmod", "-R", "u+w", source], check=True)
            program.parent.mkdir(parents=True, exist_ok=True)
            _go(["build", "-o", str(program), "."], str(source))
    except (OSError, subprocess.SubprocessError) as error:
        return f"not asked: {error}"
    return program


def _go(arguments: list[str], folder: str) -> str:
    return subprocess.run(["go", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def of_plain_cluster() -> dict[str, Any]:
    """Returns what popeye and runup tell of the plants that a newer kube-apiserver proves, or why nobody was asked."""
    program = _popeye()
    if isinstance(program, str):
        return {"popeye": program}
    from tests.controlplane import build
    from tests.preflight.newer_server import cluster

    try:
        older = build.find({**os.environ, build.KUBERNETES: ""})
    except build.Unavailable as error:
        return {"kube-apiserver": f"not asked: {error}"}
    minor = build.version({build.KUBERNETES: build.NEWEST}).split(".")[1]
    with tempfile.TemporaryDirectory() as folder, cluster.planted(Path(folder), older) as (plane, plants):
        # What is asked for in a version that goes is what the server counts.
        cluster.asked_before(plane.kubeconfig, plants)
        report = cluster.report_of(plane.kubeconfig, f"1.{minor}")
        popeyes_report = _report_of_popeye(program, plane.kubeconfig, folder)
    popeyes = set(told_of(popeyes_report))
    applying = [risk for risk in report["risks"] if risk["applies"] == "True"]
    table: dict[str, Any] = {}
    for kind in ("risk", "lookalike"):
        of_kind = [plant for plant in plants if bool(plant.risk) == (kind == "risk")]
        told = [plant.id for plant in of_kind if any(_names(popeyes, text) for text in plant.about)]
        table[f"popeye: {kind}s"] = f"{len(told)} of {len(of_kind)}"
        table[f"popeye tells of {kind}s"] = told
        ours = sum(cluster.is_named(plant, applying) for plant in of_kind)
        table[f"runup: {kind}s"] = f"{ours} of {len(of_kind)}"
    return {**table, "popeye's findings by code": dict(sorted(codes_of(popeyes_report).items()))}


def codes_of(report: Mapping[str, Any]) -> Counter[str]:
    """Returns how often popeye's report has each of its codes (`POP-106`), with its words, as a warning or an error."""
    messages = (
        issue["message"]
        for section in report["popeye"].get("sections") or report["popeye"].get("sanitizers") or ()
        for issues in (section.get("issues") or {}).values()
        for issue in issues
        if issue["level"] >= _WARNING
    )
    coded = (text.partition("] ") for text in messages)
    return Counter(f"{code}] {re.sub(_NAMES_AND_NUMBERS, '...', words)}" for code, _, words in coded)


def _names(told: set[str], text: str) -> bool:
    """Returns whether popeye tells of the object, or of a pod that the text's Deployment has."""
    kind, _, key = text.partition(" ")
    return text in told or (kind == "Deployment" and any(each.startswith(f"Pod {key}-") for each in told))


def _told_by_popeye(program: Path, dump: Path) -> tuple[float, dict[str, Any]]:
    """Returns how long popeye took on the dump's cluster, and its report."""
    runup = Path(sys.executable).with_name("runup")
    with tempfile.TemporaryDirectory() as folder:
        data = ["--data", f"{folder}/sandbox"]
        subprocess.run([runup, "sandbox", "start", "--import", dump, *data], check=True, stdout=subprocess.DEVNULL)
        try:
            kubeconfig = Path(folder, "sandbox", "admin.kubeconfig")
            began = time.monotonic()
            report = _report_of_popeye(program, kubeconfig, folder)
            seconds = round(time.monotonic() - began, 1)
        finally:
            subprocess.run([runup, "sandbox", "stop", *data], check=False, stdout=subprocess.DEVNULL)
    return seconds, report


def _report_of_popeye(program: Path, kubeconfig: Path, home: str) -> dict[str, Any]:
    done = subprocess.run(
        [program, "--kubeconfig", kubeconfig, "-A", "-o", "json", "--force-exit-zero"],
        capture_output=True,
        text=True,
        check=True,
        timeout=_DEADLINE_S,
        env={**os.environ, "HOME": home},
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def told_of(report: Mapping[str, Any], leave_out: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yields the objects of which popeye's report has a warning or an error, of other codes than those left out."""
    for section in report["popeye"].get("sections") or report["popeye"].get("sanitizers") or ():
        resource = section["gvr"].rpartition("/")[2]
        for name, issues in (section.get("issues") or {}).items():
            if any(issue["level"] >= _WARNING and _code_of(issue) not in leave_out for issue in issues):
                yield f"{_KINDS.get(resource, resource)} {name}"


def _code_of(issue: Mapping[str, Any]) -> int:
    """Returns the number of a finding's code, 0 without one."""
    match = _CODE.match(issue["message"])
    return int(match[1]) if match else 0


_KINDS = {
    "pods": "Pod",
    "nodes": "Node",
    "services": "Service",
    "namespaces": "Namespace",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "serviceaccounts": "ServiceAccount",
    "persistentvolumes": "PersistentVolume",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "deployments": "Deployment",
    "daemonsets": "DaemonSet",
    "statefulsets": "StatefulSet",
    "replicasets": "ReplicaSet",
    "jobs": "Job",
    "cronjobs": "CronJob",
    "horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "networkpolicies": "NetworkPolicy",
    "ingresses": "Ingress",
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
