"""Preflight every dump of a folder, and print the table of docs/explanation/corpus-preflight.md.

    python tools/corpus_table.py DIR > table.md

DIR holds NAME-{cv,co,mcp,node}.yaml. Each dump goes the way of a user: `runup preflight run --dump`, as a process. (An
import into the sandbox and a preflight by the operator is a test.) Each risk stands beside what the raw YAML says of
the object that it names, looked up here without any of the checks' code. At the end of each dump stands what was
looked for and rightly not reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubekit.kube.clock import SystemClock
from kubekit.lang import yaml as kyaml
from kubekit.lang.version import Version

PARTS = ("cv", "co", "mcp", "node")
ABSENT = "the dump does not hold the kind"
RUNUP = (sys.executable, "-m", "runup")
LIMIT_S = 120
Raw = dict[str, Any]


def load(folder: Path, name: str) -> dict[str, list[Raw]]:
    """The raw objects of a dump, by the suffix of their file."""
    raw: dict[str, list[Raw]] = {}
    for suffix in PARTS:
        document = kyaml.load((folder / f"{name}-{suffix}.yaml").read_bytes())
        raw[suffix] = document["items"] if document["kind"].endswith("List") else [document]
    return raw


def preflighted(dump: Path, target: Version) -> list[Raw]:
    """The risks of `target` on the dump's cluster; raises CalledProcessError with what the command said."""
    answer = json.loads(_run("preflight", "run", "--dump", str(dump), f"--to={target}", "-o", "json", codes=(0, 2, 3)))
    found: list[Raw] = answer["risks"]
    return found


def _run(*words: str, codes: tuple[int, ...]) -> str:
    done = subprocess.run([*RUNUP, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode not in codes:
        raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
    return done.stdout


def next_minor(raw: dict[str, list[Raw]]) -> tuple[Version, Version]:
    """What the cluster is at, and the next minor release."""
    source = Version(raw["cv"][0]["status"]["desired"]["version"])
    return source, Version(f"{source.major}.{source.minor + 1}.0")


def _conditions(obj: Raw) -> dict[str, Raw]:
    return {condition["type"]: condition for condition in obj.get("status", {}).get("conditions") or ()}


def evidence(risk: str, raw: dict[str, list[Raw]]) -> str:
    """What the raw YAML says about the object that a risk names."""
    family, _, name = risk.partition("-")
    by_name = {item["metadata"]["name"]: item for suffix in ("co", "mcp") for item in raw[suffix]}
    if family.startswith("ClusterOperator"):
        type_ = {"Upgradeable": "Upgradeable", "Degraded": "Degraded"}.get(family[15:], "Available")
        found = _conditions(by_name[name])[type_]
        return f"{type_}={found['status']} {found.get('reason', '')} {found['lastTransitionTime']}"
    if family.startswith("MachineConfigPool"):
        pool = by_name[name]
        status = pool["status"]
        types = ("Updated", "Updating", "Degraded")
        conditions = " ".join(f"{t}={_conditions(pool).get(t, {}).get('status')}" for t in types)
        counts = f"{status['updatedMachineCount']}/{status['machineCount']} updated"
        return f"paused={pool['spec'].get('paused', False)} {counts} {conditions}"
    if family == "NodeCordoned":
        cordoned = [item["metadata"]["name"] for item in raw["node"] if item.get("spec", {}).get("unschedulable")]
        return f"unschedulable: {', '.join(cordoned) or 'none'}"
    if family in ("ClusterVersionFailing", "ClusterVersionUpgradeable"):
        type_ = family[14:]
        found = _conditions(raw["cv"][0]).get(type_)
        if not found:
            return f"not said by the dump; said by the sandbox's operator of: {_holding_back(raw)}"
        return f"{type_}={found['status']} {found.get('reason', '')} {found['lastTransitionTime']}"
    if family.startswith("EtcdMembersUnhealthy"):
        found = _conditions(by_name["etcd"])
        types = ("Available", "Degraded")
        return ", ".join(f"etcd {type_}={found[type_]['status']} {found[type_].get('reason', '')}" for type_ in types)
    if family.startswith("HeadroomShort"):
        told = sum("allocatable" in item["status"] for item in raw["node"])
        return f"allocatable of {told} of {len(raw['node'])} nodes, and no pods"
    if family.startswith(("KubeletSkew", "NodeReleasesMixed")):
        versions = {item["status"].get("nodeInfo", {}).get("kubeletVersion") for item in raw["node"]}
        return f"kubeletVersion of {len(raw['node'])} nodes: {', '.join(sorted(map(str, versions)))}"
    if family == "ClusterVersionUpdating":
        status = raw["cv"][0]["status"]
        newest = status["history"][0]
        progressing = _conditions(raw["cv"][0])["Progressing"]["status"]
        return f"history[0]={newest['state']} {newest['version']}, Progressing={progressing}"
    return ABSENT


def _holding_back(raw: dict[str, list[Raw]]) -> str:
    """What makes an operator say Upgradeable=False: an update under way, or operators that say so themselves."""
    newest = raw["cv"][0]["status"]["history"][0]
    under_way = [f"history[0]={newest['state']} {newest['version']}"] * (newest["state"] == "Partial")
    said = [i["metadata"]["name"] for i in raw["co"] if _conditions(i).get("Upgradeable", {}).get("status") == "False"]
    return ", ".join([*under_way, *said]) or "nothing in the dump"


def not_reported(raw: dict[str, list[Raw]]) -> Iterator[str]:
    """What a check could have been tempted by."""
    operators = {item["metadata"]["name"]: _conditions(item) for item in raw["co"]}
    for type_, good in (("Upgradeable", "True"), ("Degraded", "False"), ("Available", "True")):
        bad = [n for n, found in operators.items() if found.get(type_, {}).get("status", good) != good]
        absent = [n for n, found in operators.items() if type_ not in found]
        yield f"operators not {type_}={good}: {', '.join(bad) or 'none'}; without it: {', '.join(absent) or 'none'}"
    for pool in raw["mcp"]:
        yield f"pool {pool['metadata']['name']}: {evidence('MachineConfigPool-' + pool['metadata']['name'], raw)}"
    not_ready = [i["metadata"]["name"] for i in raw["node"] if _conditions(i).get("Ready", {}).get("status") != "True"]
    yield f"{len(raw['node'])} nodes, not Ready: {', '.join(not_ready) or 'none'}; {evidence('NodeCordoned', raw)}"


def section(folder: Path, name: str) -> Iterator[str]:
    """The part of the page about one dump."""
    raw = load(folder, name)
    source, target = next_minor(raw)
    kubernetes = f"1.{target.minor + 13}.0"
    yield f"## {name}\n\n{source} to {target} (Kubernetes {kubernetes}).\n"
    yield "| risk | applies | the raw YAML says |\n|---|---|---|"
    found = sorted(preflighted(folder / name, target), key=lambda risk: str(risk["name"]))
    told = [(risk, evidence(risk["name"], raw)) for risk in found]
    # What applies must have its line; what could not be told for want of a kind is one list.
    lacking = [risk["name"] for risk, why in told if risk["applies"] == "Unknown" and why == ABSENT]
    for risk, why in told:
        if risk["name"] not in lacking:
            yield f"| {risk['name']} | {risk['applies']} | {why} |"
    yield f"\nUnknown, because {ABSENT} ({len(lacking)}): {', '.join(lacking)}."
    yield "\nAll kinds that the checks could read:\n"
    yield from (f"- {line}" for line in not_reported(raw))
    yield ""


def main(folder: Path) -> int:
    """Print the sections of every dump in `folder`."""
    names = sorted(path.name.removesuffix("-cv.yaml") for path in folder.glob("*-cv.yaml"))
    if not names:
        print(f"error: {folder} holds no NAME-cv.yaml", file=sys.stderr)
        return 1
    clock = SystemClock()
    for name in names:
        began = clock.monotonic()
        print("\n".join(section(folder, name)), flush=True)
        print(f"{name}: {clock.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python tools/corpus_table.py DIR", file=sys.stderr)
        raise SystemExit(1)
    raise SystemExit(main(Path(sys.argv[1])))
