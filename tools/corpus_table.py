"""Run the built-in checks over folders of dumps and print the table of docs/corpus-preflight.md.

    python tools/corpus_table.py DIR > table.md

DIR holds NAME-{cv,co,mcp,node}.yaml. Each risk stands beside what the raw YAML says of the object that it names, looked
up here without any of the checks' code. At the end of each dump stands what was looked for and rightly not reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runup.api import codec
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.core_v1 import Node
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.meta_v1 import Object
from runup.api.scheme import RESOURCES, resource_of
from runup.domain.checks.catalogue import CHECKS
from runup.domain.checks.engine import evaluate
from runup.domain.checks.model import Context, Snapshot
from runup.domain.checks.results import risks
from runup.domain.version import Version
from runup.kube.clock import SystemClock
from runup.lang import yaml as kyaml

KINDS: dict[str, type[Object]] = {
    "cv": ClusterVersion,
    "co": ClusterOperator,
    "mcp": MachineConfigPool,
    "node": Node,
}
Raw = dict[str, Any]


def load(folder: Path, name: str) -> dict[str, list[Raw]]:
    """The raw objects of a dump, by the suffix of their file."""
    raw: dict[str, list[Raw]] = {}
    for suffix in KINDS:
        document = kyaml.load((folder / f"{name}-{suffix}.yaml").read_bytes())
        raw[suffix] = document["items"] if document["kind"].endswith("List") else [document]
    return raw


def snapshot_of(raw: dict[str, list[Raw]]) -> Snapshot:
    """The dump as the checks see it: the four kinds of its files; other kinds are not in a dump."""
    objects = {
        resource_of(KINDS[suffix]): tuple(codec.convert(KINDS[suffix], item) for item in items)
        for suffix, items in raw.items()
    }
    read = {resource for check in CHECKS for resource in check.reads} | set(RESOURCES.values())
    absent = {resource: "the dump does not hold it" for resource in read if resource not in objects}
    return Snapshot(objects, absent)


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
        found = _conditions(raw["cv"][0])[type_]
        return f"{type_}={found['status']} {found.get('reason', '')} {found['lastTransitionTime']}"
    if family in ("EtcdMembersUnhealthy", "EtcdMembersUnhealthyUnknown"):
        found = _conditions(by_name["etcd"])
        types = ("Available", "Degraded")
        return ", ".join(f"etcd {type_}={found[type_]['status']} {found[type_].get('reason', '')}" for type_ in types)
    if family.startswith("KubeletSkew"):
        versions = {item["status"].get("nodeInfo", {}).get("kubeletVersion") for item in raw["node"]}
        return f"kubeletVersion of {len(raw['node'])} nodes: {', '.join(sorted(map(str, versions)))}"
    if family == "ClusterVersionUpdating":
        status = raw["cv"][0]["status"]
        newest = status["history"][0]
        progressing = _conditions(raw["cv"][0])["Progressing"]["status"]
        return f"history[0]={newest['state']} {newest['version']}, Progressing={progressing}"
    return "the dump does not hold the kind"


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
    context = Context(source, target, SystemClock().now(), kubernetes)
    outcomes = evaluate(CHECKS, snapshot_of(raw), context)
    yield f"## {name}\n\n{source} to {target} (Kubernetes {kubernetes}).\n"
    yield "| risk | applies | the raw YAML says |\n|---|---|---|"
    for risk in risks(outcomes):
        yield f"| {risk.name} | {risk.applies} | {evidence(risk.name, raw)} |"
    yield "\nThe whole of what the checks could look at:\n"
    yield from (f"- {line}" for line in not_reported(raw))
    yield ""


def main(folder: Path) -> int:
    """Print the sections of every dump in `folder`."""
    names = sorted(path.name.removesuffix("-cv.yaml") for path in folder.glob("*-cv.yaml"))
    if not names:
        print(f"error: {folder} holds no NAME-cv.yaml", file=sys.stderr)
        return 1
    for name in names:
        print("\n".join(section(folder, name)))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python tools/corpus_table.py DIR", file=sys.stderr)
        raise SystemExit(1)
    raise SystemExit(main(Path(sys.argv[1])))
