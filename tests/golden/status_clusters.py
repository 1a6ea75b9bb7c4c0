"""Clusters that no example shows: a seeded generator of the files that `upgrade status --mock-clusterversion` reads.

A seed gives the same files everywhere. A case starts from a small cluster made here, or from an example, and rows of it
are changed: conditions, ages at the thresholds, annotations of nodes, pools, versions, history, alerts. What the rules
leave open is not generated: a node that two custom pools select, a cluster without master or worker pool, a Completed
entry of the history without its end.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

Obj = dict[str, Any]

MCO = "machineconfiguration.openshift.io/"
NEWEST = datetime(2025, 3, 1, 12, 0, 0, tzinfo=UTC)
AGES_S = (
    0,
    0,
    1,
    2,
    45,
    59,
    60,
    61,
    70,
    119,
    120,
    299,
    300,
    301,
    599,
    600,
    601,
    630,
    1199,
    1200,
    1201,
    2399,
    2400,
    2401,
)
LONG_AGES_S = (3540, 3599, 3600, 3601, 3660, 3690, 4200, 5400, 7199, 7200, 7210, 9000, 36000, 86400, 90061, 8640000)
STATUSES = ("True", "False", "Unknown", "True", "False", "Unknown", "True", "False", "Unknown", "", "true")
VERSIONS = ("4.17.0", "4.16.9", "4.16.8", "4.17.0-rc.1", "4.18.0-0.nightly-2025-02-28-082745", "5.0.0")
TARGET = "4.17.0"
REASONS = (
    "AsExpected",
    "",
    "NodeInstaller",
    "ExactlyTwentyLetters",
    "TwentyOneLettersLongs",
    "A::B_C::TooLongToBeShown",
    "%s",
)
MESSAGES = (
    "",
    "all is well",
    "two\nlines",
    "ends in a newline\n",
    "\nbegins with one",
    "a\n\nblank line, and a\ttab",
    "tab\tone\ttwo\nand\tthree",
    "Größe ≠ 3 — 節点が遅い",
    "emoji 🚀 in a \"quoted\" 'message' \\ with a backslash",
    "windows\r\nline",
    "control \x07 and \x7f, no-break\u00a0space, zero\u200bwidth, private \ue000",
    "  blanks around  ",
    "percent %d %s %!",
    "<node> and n1 and node-one.example.com said: node-one.example.com is down",
    "x" * 300,
    "a long one, " * 500,
)
NAMES = ("n1", "node-1", "seven77", "eight888", "node-one.example.com", "ip-10-0-1-2.ec2.internal", "worker-a", "w")
OPERATORS = (
    "authentication",
    "etcd",
    "kube-apiserver",
    "machine-config",
    "network",
    "openshift-apiserver",
    "storage",
    "a-rather-long-operator-name",
)
INCLUDED = {"include.release.openshift.io/self-managed-high-availability": "true"}


def text_of(at: datetime, rng: random.Random) -> str:
    """A time as the files write it: whole seconds, seldom with an offset."""
    style = rng.random()
    if style < 0.015:
        return (at + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S+02:00")
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(rng: random.Random) -> str:
    """A time at or before the newest one, often at a threshold."""
    age = rng.choice(AGES_S) if rng.random() < 0.7 else rng.choice((*LONG_AGES_S, rng.randrange(20000)))
    return text_of(NEWEST - timedelta(seconds=age), rng)


def at_a_threshold(rng: random.Random) -> str:
    """A time at which trouble of an operator begins to count, or to count for more, or a second next to it."""
    age = rng.choice((300, 1200, 2400)) + rng.choice((-1, 0, 1))
    return text_of(NEWEST - timedelta(seconds=age), rng)


def condition(kind: str, rng: random.Random, status: str | None = None) -> Obj:
    """A condition; fields that may be absent sometimes are."""
    made: Obj = {
        "type": kind,
        "status": rng.choice(STATUSES) if status is None else status,
        "lastTransitionTime": ago(rng),
    }
    if rng.random() < 0.85:
        made["reason"] = rng.choice(REASONS)
    if rng.random() < 0.85:
        made["message"] = rng.choice(MESSAGES)
    return made


def set_condition(owner: Obj, made: Obj) -> None:
    """Put a condition in place of the first one of its type."""
    rows = conditions_of(owner)
    for index, row in enumerate(rows):
        if row["type"] == made["type"]:
            rows[index] = made
            return
    rows.append(made)


def status_of(owner: Obj) -> Obj:
    """The status, made where it does not exist."""
    made: Obj = owner.get("status") or {}
    owner["status"] = made
    return made


def conditions_of(owner: Obj) -> list[Obj]:
    """The conditions, made where they do not exist."""
    rows: list[Obj] = status_of(owner).get("conditions") or []
    owner["status"]["conditions"] = rows
    return rows


def likely(rng: random.Random, *values: str) -> str:
    """The first value most of the time."""
    return values[0] if rng.random() < 0.6 else rng.choice(values)


# A small cluster


def small_cluster(rng: random.Random) -> Obj:
    """Everything consistent and somewhere in an update from 4.16.9 to 4.17.0."""
    names = rng.sample(OPERATORS, rng.choice((1, 2, 4, len(OPERATORS))))
    how_far = rng.random() if rng.random() < 0.8 else 1.0
    operators = [operator(name, TARGET if rng.random() <= how_far else "4.16.9", rng) for name in sorted(names)]
    pools = [pool("master", "node-role.kubernetes.io/master"), pool("worker", "node-role.kubernetes.io/worker")]
    for name in rng.sample(("infra", "gpu", "zbeast"), rng.choice((0, 0, 1, 2))):
        pools.insert(rng.randrange(len(pools) + 1), pool(name, f"node-role.kubernetes.io/{name}"))
    nodes = [node(f"master-{index}.example.com", "master", rng) for index in range(rng.choice((1, 3)))]
    for index in range(rng.choice((0, 1, 2, 3, 3, 14, 25))):
        role = rng.choice([one["metadata"]["name"] for one in pools if one["metadata"]["name"] != "master"])
        nodes.append(node(f"{role}-{index}.example.com", role, rng))
    configs = [config(f"rendered-{one['metadata']['name']}-{age}", age) for one in pools for age in ("old", "new")]
    return {"cv": cluster_version(rng), "co": operators, "mcp": pools, "mc": configs, "node": nodes}


def operator(name: str, version: str, rng: random.Random) -> Obj:
    """A ClusterOperator."""
    quiet = version == TARGET
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {"name": name, "annotations": dict(INCLUDED)},
        "status": {
            "conditions": [
                condition("Available", rng, "True"),
                condition("Progressing", rng, "False" if quiet else rng.choice(("True", "False"))),
                condition("Degraded", rng, "False"),
            ],
            "versions": [{"name": "operator", "version": version}],
        },
    }


def cluster_version(rng: random.Random) -> Obj:
    """A ClusterVersion in an update."""
    history = [
        {
            "version": TARGET,
            "image": "example.com/r@sha256:new",
            "state": "Partial",
            "startedTime": ago(rng),
            "completionTime": None,
        },
        entry("4.16.9", rng),
        entry("4.16.8", rng),
    ]
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "b2a0d3a5-2f0e-4a53-8f6f-2f1d0f6c9f5e"},
        "status": {
            "desired": {"version": TARGET, "image": "example.com/r@sha256:new"},
            "history": history[: rng.choice((1, 2, 3))],
            "conditions": [condition("Failing", rng, "False"), condition("Progressing", rng, "True")],
        },
    }


def entry(version: str, rng: random.Random, state: str = "Completed") -> Obj:
    """An older entry of the history, with both of its times."""
    began = NEWEST - timedelta(days=rng.randrange(1, 90), seconds=rng.randrange(86400))
    took = timedelta(seconds=rng.choice((0, 1, 599, 600, 3600, 4321, 7200, 90000)))
    return {
        "version": version,
        "image": rng.choice(("example.com/r@sha256:old", "example.com/r@sha256:new")),
        "state": state,
        "startedTime": text_of(began, rng),
        "completionTime": text_of(began + took, rng),
    }


def pool(name: str, label: str) -> Obj:
    """A pool that wants its nodes on the new configuration."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": name},
        "spec": {
            "configuration": {"name": f"rendered-{name}-new"},
            "nodeSelector": {"matchLabels": {label: ""}},
            "paused": False,
        },
    }


def config(name: str, age: str) -> Obj:
    """A rendered configuration of one of the two releases."""
    version = TARGET if age == "new" else "4.16.9"
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "annotations": {MCO + "release-image-version": version}},
    }


def node(name: str, role: str, rng: random.Random) -> Obj:
    """A node of a role in any of the states that an update brings it through; custom roles are workers too."""
    at, to, state, drain, applied = rng.choice(
        (
            ("old", "old", "Done", "uncordon-old", "uncordon-old"),
            ("old", "new", "Working", "drain-new", "uncordon-old"),
            ("old", "new", "Working", "drain-new", "drain-new"),
            ("old", "new", "Rebooting", "drain-new", "drain-new"),
            ("old", "new", "Done", "uncordon-old", "uncordon-old"),
            ("old", "new", "Degraded", "drain-new", "drain-new"),
            ("new", "new", "Done", "uncordon-new", "uncordon-new"),
            ("new", "new", "Done", "uncordon-new", "drain-new"),
        )
    )
    labels = {f"node-role.kubernetes.io/{role}": ""}
    if role not in ("master", "worker"):
        labels["node-role.kubernetes.io/worker"] = ""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {
                MCO + "currentConfig": f"rendered-{role}-{at}",
                MCO + "desiredConfig": f"rendered-{role}-{to}",
                MCO + "state": state,
                MCO + "reason": rng.choice(MESSAGES) if state == "Degraded" else "",
                MCO + "desiredDrain": drain,
                MCO + "lastAppliedDrain": applied,
            },
        },
        "spec": {"unschedulable": True} if drain.startswith("drain") else {},
        "status": {
            "conditions": [
                condition("MemoryPressure", rng, "False"),
                condition("DiskPressure", rng, "False"),
                condition("Ready", rng, "True"),
            ]
        },
    }


# Changes. Each takes the files and a generator and alters the files in place.


def change_operators(files: Obj, rng: random.Random) -> None:
    """Conditions of a few operators."""
    for op in some(files["co"], rng):
        kind = rng.choice(("Progressing", "Available", "Degraded"))
        usual = {"Progressing": "True", "Available": "False", "Degraded": "True"}[kind]
        made = condition(kind, rng, likely(rng, usual, *STATUSES))
        if rng.random() < 0.5:
            made["lastTransitionTime"] = at_a_threshold(rng)
        set_condition(op, made)


def drop_conditions(files: Obj, rng: random.Random) -> None:
    """One condition, or all of them, of a few operators; or a second one of a type that is there."""
    for op in some(files["co"], rng):
        rows = conditions_of(op)
        what = rng.random()
        if what < 0.2:
            op["status"]["conditions"] = rng.choice(([], None))
        elif what < 0.6 and rows:
            rows.remove(rng.choice(rows))
        else:
            rows.insert(
                rng.randrange(len(rows) + 1), condition(rng.choice(("Progressing", "Available", "Degraded")), rng)
            )


def change_versions(files: Obj, rng: random.Random) -> None:
    """What operators say that they run."""
    target = files["cv"]["status"]["desired"]["version"]
    for op in some(files["co"], rng):
        rows = [{"name": "operator", "version": likely(rng, target, *VERSIONS)}]
        if rng.random() < 0.3:
            rows.insert(
                rng.randrange(2),
                {"name": rng.choice(("operand", "operator", "operator-image")), "version": rng.choice(VERSIONS)},
            )
        status_of(op)["versions"] = rng.choice((rows, rows, rows, rows, [], None))


def everything_updated(files: Obj, rng: random.Random) -> None:
    """All operators are there, or all but one, often machine-config."""
    target = files["cv"]["status"]["desired"]["version"]
    for op in files["co"]:
        status_of(op)["versions"] = [{"name": "operator", "version": target}]
    late = rng.choice((None, "machine-config", rng.choice(files["co"])["metadata"]["name"] if files["co"] else None))
    for op in files["co"]:
        if op["metadata"]["name"] == late:
            op["status"]["versions"][0]["version"] = "4.1.0"
            set_condition(op, condition("Progressing", rng, likely(rng, "True", *STATUSES)))


def change_mco_image(files: Obj, rng: random.Random) -> None:
    """The image that machine-config says it runs, and the Deployment that says which it is."""
    images = ("example.com/mco@sha256:1", "example.com/mco@sha256:2", "")
    for op in files["co"]:
        if op["metadata"]["name"] == "machine-config":
            rows = status_of(op).get("versions") or []
            op["status"]["versions"] = [*rows, {"name": "operator-image", "version": rng.choice(images)}]
    container = {"name": likely(rng, "machine-config-operator", "kube-rbac-proxy"), "image": rng.choice(images)}
    containers = [container, {"name": "kube-rbac-proxy", "image": "example.com/proxy"}]
    rng.shuffle(containers)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "machine-config-operator", "namespace": "openshift-machine-config-operator"},
        "spec": {"template": {"spec": {"containers": rng.choice((containers, containers, []))}}},
    }
    if rng.random() < 0.7:
        files["mco"] = deployment


def change_annotations(files: Obj, rng: random.Random) -> None:
    """Operators that no release put there, or that one excludes."""
    for op in some(files["co"], rng):
        op["metadata"]["annotations"] = rng.choice(
            (
                None,
                {},
                {"exclude.release.openshift.io/internal": "true"},
                {"release.openshift.io/x": "y"},
                {"include.release.openshift.io/": ""},
            )
        )
        if rng.random() < 0.1:
            del op["metadata"]["annotations"]


def cut_operators(files: Obj, rng: random.Random) -> None:
    """Fewer operators, seldom none."""
    count = rng.choice((0, 1, 1, 2, 3, 5, 7))
    files["co"] = rng.sample(files["co"], min(count, len(files["co"])))


def change_progressing(files: Obj, rng: random.Random) -> None:
    """The ClusterVersion's Progressing: any status, or none at all."""
    rows = files["cv"]["status"]["conditions"]
    if rng.random() < 0.15:
        files["cv"]["status"]["conditions"] = [row for row in rows if row["type"] != "Progressing"]
        return
    set_condition(files["cv"], condition("Progressing", rng, rng.choice(("True", "False", *STATUSES))))


def change_failing(files: Obj, rng: random.Random) -> None:
    """The ClusterVersion's Failing: any status, or none at all."""
    rows = files["cv"]["status"]["conditions"]
    if rng.random() < 0.25:
        files["cv"]["status"]["conditions"] = [row for row in rows if row["type"] != "Failing"]
        return
    set_condition(files["cv"], condition("Failing", rng, rng.choice(("True", "Unknown", "False"))))


def change_history(files: Obj, rng: random.Random) -> None:
    """Another history: none, one, many; partial ones; the same version from another image."""
    desired = files["cv"]["status"]["desired"]["version"]
    count = rng.choice((0, 1, 2, 2, 3, 4, 6))
    versions = [likely(rng, desired, *VERSIONS), *(rng.choice((desired, *VERSIONS)) for _ in range(count))]
    rows = [entry(version, rng, rng.choice(("Completed", "Completed", "Partial"))) for version in versions[:count]]
    if rows:
        rows[0]["startedTime"] = ago(rng)
        if rng.random() < 0.6:
            rows[0] |= {"state": "Partial", "completionTime": None}
        else:
            rows[0] |= {"state": "Completed", "completionTime": ago(rng)}
    for row in rows[1:]:
        if row["state"] == "Partial" and rng.random() < 0.5:
            row["completionTime"] = None
    files["cv"]["status"]["history"] = rows if rows or rng.random() < 0.5 else None


def change_start(files: Obj, rng: random.Random) -> None:
    """When the update began: for the durations and the estimate."""
    for row in (files["cv"]["status"].get("history") or [])[:1]:
        row["startedTime"] = ago(rng)


def change_desired(files: Obj, rng: random.Random) -> None:
    """A target that the history does not name."""
    files["cv"]["status"]["desired"] = rng.choice(({"version": rng.choice(VERSIONS)}, {"version": ""}))


def rename_version(files: Obj, rng: random.Random) -> None:
    """A ClusterVersion of another name."""
    files["cv"]["metadata"]["name"] = rng.choice(("version", "another"))


def to_multi(files: Obj, rng: random.Random) -> None:
    """A migration: the version that is there already, from another image."""
    rows = files["cv"]["status"].get("history") or []
    if len(rows) < 2:
        files["cv"]["status"]["history"] = rows = [*rows, *(entry(TARGET, rng) for _ in range(2))]
    rows[1] |= {"version": rows[0].get("version", ""), "image": "example.com/r@sha256:single"}
    if rng.random() < 0.8:
        rows[0]["image"] = "example.com/r@sha256:multi"
        rows[1] |= {"state": "Completed", "completionTime": rows[1].get("completionTime") or rows[1]["startedTime"]}
    if rng.random() < 0.7:
        for item in files["mc"]:
            item["metadata"]["annotations"] = {MCO + "release-image-version": rows[0].get("version", "")}


def change_nodes(files: Obj, rng: random.Random) -> None:
    """Annotations of a few nodes: any value, or none."""
    configs = [one["metadata"]["name"] for one in files["mc"]] + ["", "rendered-nowhere"]
    values = {
        "currentConfig": configs,
        "desiredConfig": configs,
        "currentImage": ["", "example.com/os@sha256:1", "example.com/os@sha256:2"],
        "desiredImage": ["", "example.com/os@sha256:1", "example.com/os@sha256:2"],
        "state": ["Done", "Working", "Degraded", "Unreconcilable", "Rebooting", ""],
        "reason": list(MESSAGES),
        "desiredDrain": ["", "drain-x", "drain", "uncordon-x", "drainx-y", "-drain"],
        "lastAppliedDrain": ["", "drain-x", "drain", "uncordon-x"],
    }
    for one in some(files["node"], rng):
        notes = one["metadata"].get("annotations")
        if notes is None:
            notes = one["metadata"]["annotations"] = {}
        for key in rng.sample(sorted(values), rng.choice((1, 1, 2, 3))):
            if rng.random() < 0.25:
                notes.pop(MCO + key, None)
            else:
                notes[MCO + key] = rng.choice(values[key])


def degrade_nodes(files: Obj, rng: random.Random) -> None:
    """Nodes that the daemon gave up on, and what it says about them."""
    for one in some(files["node"], rng):
        notes = one["metadata"].get("annotations") or {}
        said = rng.choice((*MESSAGES, f"{one['metadata']['name']}: no space on {one['metadata']['name']}"))
        notes |= {MCO + "state": rng.choice(("Degraded", "Unreconcilable")), MCO + "reason": said}
        one["metadata"]["annotations"] = notes


def trouble_nodes(files: Obj, rng: random.Random, real_now: datetime) -> None:
    """Conditions of nodes, some young by the real clock, and cordons."""
    for one in some(files["node"], rng):
        for kind in rng.sample(("Ready", "DiskPressure", "NetworkUnavailable"), rng.choice((1, 1, 2, 3))):
            made = condition(kind, rng)
            if rng.random() < 0.3:
                age = rng.choice((5, 30, 100, 200, 400, 4000, -100))
                made["lastTransitionTime"] = text_of(real_now - timedelta(seconds=age), rng)
            elif rng.random() < 0.15:
                del made["lastTransitionTime"]
            rows = conditions_of(one)
            if rng.random() < 0.2:
                rows.append(made)
            else:
                set_condition(one, made)
        if rng.random() < 0.4:
            one["spec"] = {"unschedulable": rng.choice((True, True, False))}


def bare_nodes(files: Obj, rng: random.Random) -> None:
    """Nodes with less than usual."""
    for one in some(files["node"], rng):
        what = rng.choice(("annotations", "conditions", "spec", "labels"))
        if what == "conditions":
            one["status"] = {}
        elif what == "spec":
            one.pop("spec", None)
        else:
            one["metadata"].pop(what, None)


def rename_nodes(files: Obj, rng: random.Random) -> None:
    """Names below, at and above the length from which a message hides them."""
    taken = {one["metadata"]["name"] for one in files["node"]}
    for one in some(files["node"], rng):
        name = rng.choice(NAMES)
        if name not in taken:
            taken.add(name)
            one["metadata"]["name"] = name


def change_node_count(files: Obj, rng: random.Random) -> None:
    """None, few, or so many of one pool that a table leaves some out."""
    if not files["node"] or rng.random() < 0.3:
        files["node"] = rng.sample(files["node"], rng.randrange(len(files["node"]) + 1))
        return
    like = rng.choice(files["node"])
    for index in range(rng.choice((1, 8, 9, 10, 11, 30))):
        one = copy.deepcopy(like)
        one["metadata"]["name"] = f"more-{rng.randrange(1000)}-{index}.example.com"
        files["node"].append(one)
    rng.shuffle(files["node"])


def change_pools(files: Obj, rng: random.Random) -> None:
    """Paused pools, other targets, layering, order."""
    for one in some(files["mcp"], rng):
        name = one["metadata"]["name"]
        what = rng.choice(("pause", "pause", "target", "layering", "bare"))
        if what == "pause":
            one["spec"]["paused"] = True
        elif what == "target":
            one["spec"]["configuration"] = rng.choice(
                (None, {"name": ""}, {"name": f"rendered-{name}-old"}, {"name": "x"})
            )
        elif what == "layering":
            one["metadata"]["labels"] = rng.choice(
                ({MCO + "layering-enabled": ""}, {MCO + "layering-enabled": "false"}, {})
            )
            one["metadata"]["annotations"] = {
                MCO + "newestImageEquivalentConfig": rng.choice(("", "example.com/os@sha256:1"))
            }
        else:
            one["spec"].pop(rng.choice(("paused", "configuration")), None)
    if rng.random() < 0.3:
        rng.shuffle(files["mcp"])


def change_selectors(files: Obj, rng: random.Random) -> None:
    """Selectors by expression, that match nothing, or everything."""
    for one in files["mcp"]:
        name = one["metadata"]["name"]
        label = f"node-role.kubernetes.io/{name}"
        if name in ("master", "worker"):
            choices: list[Obj | None] = [
                {"matchExpressions": [{"key": label, "operator": "Exists"}]},
                {"matchExpressions": [{"key": label, "operator": "In", "values": ["", "yes"]}]},
                {"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}], "matchLabels": {label: ""}},
                None,
            ]
            if name == "worker":
                choices += [{}, {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}]
        else:
            both = [label, "node-role.kubernetes.io/worker"]
            choices = [
                {"matchExpressions": [{"key": key, "operator": "Exists"} for key in both]},
                {"matchExpressions": [{"key": label, "operator": "In", "values": ["", "x"]}]},
                {"matchLabels": {label: "", "gone": "x"}},
                None,
            ]
        if rng.random() < 0.5:
            one["spec"]["nodeSelector"] = rng.choice(choices)
            if one["spec"]["nodeSelector"] is None and rng.random() < 0.5:
                del one["spec"]["nodeSelector"]


def add_pool(files: Obj, rng: random.Random) -> None:
    """An empty pool, or one that takes a node from the workers."""
    name = rng.choice(("empty", "a-pool-with-a-long-name", "zeta"))
    if any(one["metadata"]["name"] == name for one in files["mcp"]):
        return
    label = f"node-role.kubernetes.io/{name}"
    files["mcp"].insert(rng.randrange(len(files["mcp"]) + 1), pool(name, label))
    custom = {"node-role.kubernetes.io/infra", "node-role.kubernetes.io/gpu", "node-role.kubernetes.io/zbeast"}
    for one in some(files["node"], rng) if rng.random() < 0.6 else []:
        labels = one["metadata"].get("labels") or {}
        if not custom & set(labels) and not any(key.endswith(("empty", "-name", "zeta")) for key in labels):
            one["metadata"]["labels"] = labels | {label: ""}


def change_configs(files: Obj, rng: random.Random) -> None:
    """Configurations that are gone, say no version, or another."""
    for one in some(files["mc"], rng):
        what = rng.random()
        if what < 0.3:
            files["mc"].remove(one)
        elif what < 0.5:
            one["metadata"].pop("annotations", None)
        else:
            one["metadata"]["annotations"] = {MCO + "release-image-version": rng.choice(("", *VERSIONS))}


def follow_history(files: Obj, rng: random.Random) -> None:
    """The new configurations are of the version that the history begins with, the nodes' others of the one before."""
    rows = files["cv"]["status"].get("history") or []
    targets = {(one["spec"].get("configuration") or {}).get("name") for one in files["mcp"]}
    for one in files["mc"]:
        index = 0 if one["metadata"]["name"] in targets else 1
        if index < len(rows) and rng.random() < 0.9:
            one["metadata"]["annotations"] = {MCO + "release-image-version": rows[index].get("version", "")}


def nodes_all_updated(files: Obj, rng: random.Random) -> None:
    """Every node of a few pools is where its pool wants it."""
    for one in some(files["mcp"], rng):
        name, target = one["metadata"]["name"], (one["spec"].get("configuration") or {}).get("name", "")
        for item in files["node"]:
            if f"node-role.kubernetes.io/{name}" in (item["metadata"].get("labels") or {}):
                notes = item["metadata"].get("annotations") or {}
                item["metadata"]["annotations"] = notes | {
                    MCO + "currentConfig": target,
                    MCO + "desiredConfig": target,
                    MCO + "state": "Done",
                }


def add_alerts(files: Obj, rng: random.Random) -> None:
    """Alerts of all levels and ages; or an answer that is none."""
    if rng.random() < 0.15:
        files.pop("alerts", None)
        files["alerts_text"] = rng.choice(
            ("", "{", "not json", "[]", '"text"', "{}", '{"data": null}', '{"data": {"alerts": null}}')
        )
        return
    files.pop("alerts_text", None)
    alerts = []
    for _ in range(rng.choice((1, 2, 4, 16))):
        labels = {
            "alertname": rng.choice(
                ("PodDisruptionBudgetLimit", "PodDisruptionBudgetAtLimit", "KubePodNotReady", "Watchdog", "")
            ),
            "severity": rng.choice(("warning", "critical", "warning", "critical", "info", "none", "Warning", "")),
            "namespace": rng.choice(("openshift-etcd", "default", "")),
        }
        notes = {
            "summary": rng.choice(("It hurts.", "Größe", "", "two\nlines")),
            "description": rng.choice(MESSAGES),
            "message": rng.choice(("", "older message", "more\nlines")),
            "runbook_url": rng.choice(("https://example.com/runbook.md", "")),
        }
        for block in (labels, notes):
            for key in rng.sample(sorted(block), rng.choice((0, 0, 1, 2))):
                del block[key]
        alert = {
            "labels": labels,
            "annotations": notes,
            "state": rng.choice(("firing", "firing", "pending")),
            "activeAt": ago(rng),
        }
        if rng.random() < 0.2:
            alert["activeAt"] = text_of(NEWEST + timedelta(seconds=rng.choice((1, 90, 7200))), rng)
        if alert["activeAt"].endswith(":00Z") or rng.random() < 0.5:
            alert["activeAt"] = alert["activeAt"][:19] + f".{rng.randrange(10**9):09}Z"
        if rng.random() < 0.5:
            alert |= {"value": "1e+00", "partialResponseStrategy": "WARN"}
        if rng.random() < 0.1:
            del alert[rng.choice(("labels", "annotations", "state", "activeAt"))]
        alerts.append(alert)
        if rng.random() < 0.1:
            alerts.append(alert | {"annotations": {"summary": "the same labels"}})
    files["alerts"] = {"status": "success", "data": {"alerts": alerts}}


def same_age(files: Obj, rng: random.Random) -> None:
    """Many findings of one age and of a few levels."""
    since = at_a_threshold(rng) if rng.random() < 0.7 else ago(rng)
    for op in files["co"]:
        kind, wrong = rng.choice((("Available", "False"), ("Degraded", "True")))
        set_condition(op, condition(kind, rng, wrong) | {"lastTransitionTime": since})


def leave_out(files: Obj, rng: random.Random) -> None:
    """Members that may be absent, or null, are so."""
    for op in some(files["co"], rng):
        what = rng.choice(("status", "versions", "conditions", "annotations", "times"))
        if what == "status":
            op["status"] = rng.choice((None, {}))
        elif what == "annotations":
            op["metadata"]["annotations"] = None
        elif what == "times":
            for row in (op.get("status") or {}).get("conditions") or []:
                if row["type"] != "Progressing":
                    row["lastTransitionTime"] = rng.choice((None, row.get("lastTransitionTime")))
        elif op.get("status"):
            op["status"][what] = rng.choice((None, []))
    for one in some(files["mcp"], rng):
        if rng.random() < 0.3:
            one["spec"][rng.choice(("paused", "configuration"))] = None
    for one in some(files["node"], rng):
        what = rng.choice(("spec", "status", "unschedulable", "labels"))
        if what == "unschedulable":
            one["spec"] = {"unschedulable": None}
        elif what == "labels":
            one["metadata"]["labels"] = rng.choice((None, {}))
        else:
            one[what] = rng.choice((None, {}))
    for row in files["cv"]["status"].get("history") or []:
        if rng.random() < 0.1:
            row.pop(rng.choice(("image", "version")), None)


def long_texts(files: Obj, rng: random.Random) -> None:
    """Texts beyond what an object of the API may hold."""
    for op in some(files["co"], rng):
        made = condition(rng.choice(("Progressing", "Available", "Degraded")), rng)
        set_condition(op, made | {"reason": "Long" * 400, "message": "words " * 9000})
    for row in (files["cv"]["status"].get("history") or [])[:2]:
        if rng.random() < 0.3:
            row["version"] = f"4.17.0-0.ci.test-{'7' * rng.choice((10, 47, 48, 80))}"
    files.pop("alerts_text", None)
    labels = {"alertname": "A" * 300, "severity": "critical", "namespace": "n" * 300}
    notes = {"summary": "long " * 300, "runbook_url": "https://example.com/" + "r" * 3000}
    files["alerts"] = {
        "data": {"alerts": [{"labels": labels, "annotations": notes, "state": "firing", "activeAt": ago(rng)}]}
    }


def more_operators(files: Obj, rng: random.Random) -> None:
    """So many operators, in some part updated, that percents round in every way."""
    target = files["cv"]["status"]["desired"].get("version", "")
    count = rng.choice((40, 64, 80, 200))
    for index in range(count):
        version = target if index < count * rng.random() else "4.1.0"
        files["co"].append(operator(f"extra-{index}", version, rng))


def some(rows: list[Obj], rng: random.Random) -> list[Obj]:
    """A few of the rows, or all."""
    return rng.sample(rows, min(len(rows), rng.choice((1, 1, 2, 3, len(rows)))))


CHANGES: tuple[Callable[..., None], ...] = (
    change_operators,
    change_operators,
    drop_conditions,
    change_versions,
    everything_updated,
    change_mco_image,
    change_annotations,
    cut_operators,
    change_progressing,
    change_failing,
    change_history,
    change_history,
    change_start,
    change_start,
    change_desired,
    rename_version,
    to_multi,
    change_nodes,
    change_nodes,
    degrade_nodes,
    trouble_nodes,
    trouble_nodes,
    bare_nodes,
    rename_nodes,
    change_node_count,
    change_pools,
    change_pools,
    change_selectors,
    add_pool,
    change_configs,
    follow_history,
    follow_history,
    nodes_all_updated,
    add_alerts,
    same_age,
    leave_out,
    long_texts,
    more_operators,
)


def cluster(seed: int, examples: list[Obj], real_now: datetime) -> Obj:
    """The files of a seed. Without examples, or half of the time with them, the cluster is one made here."""
    rng = random.Random(seed)
    files = json.loads(json.dumps(rng.choice(examples))) if examples and rng.random() < 0.5 else small_cluster(rng)
    for change in rng.sample(CHANGES, rng.choice((0, 1, 1, 2, 3, 5, 8, 13))):
        if change is trouble_nodes:
            trouble_nodes(files, rng, real_now)
        else:
            change(files, rng)
    fill_statuses(files, random.Random(f"statuses of {seed}"))
    return files


POOL_CONDITIONS = ("Updated", "Updating", "Degraded", "NodeDegraded", "RenderDegraded")
VERSION_CONDITIONS = ("ReleaseAccepted", "Upgradeable", "RetrievedUpdates", "Available")
COUNTS = ("machineCount", "readyMachineCount", "updatedMachineCount", "unavailableMachineCount", "degradedMachineCount")


def fill_statuses(files: Obj, rng: random.Random) -> None:
    """Whatever else a report may read: the counts and conditions of pools, taints of nodes, a requested release.

    None of it decides about oc's text, so none of it may decide about ours.
    """
    for one in files["mcp"]:
        if rng.random() < 0.8:
            # A pool whose status is left out altogether stays among them.
            kinds = rng.sample(POOL_CONDITIONS, rng.randrange(len(POOL_CONDITIONS) + 1))
            status_of(one)["conditions"] = [condition(kind, rng, rng.choice(STATUSES[:3])) for kind in kinds]
            status_of(one).update({count: rng.choice((0, 1, 3, 25)) for count in COUNTS})
    for one in some(files["node"], rng):
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": ago(rng)}
        one["spec"] = {**(one.get("spec") or {}), "taints": [cordon]}
    version = files["cv"]
    for kind in rng.sample(VERSION_CONDITIONS, rng.randrange(3)):
        set_condition(version, condition(kind, rng, rng.choice(STATUSES[:3])))
    releases = [{"version": name, "image": f"example.com/r@sha256:{name}"} for name in VERSIONS]
    version["spec"] = {**(version.get("spec") or {}), "desiredUpdate": rng.choice((None, *releases))}
    status_of(version)["availableUpdates"] = rng.choice((None, [], releases[:2]))


# Examples and files


def example(folder: Path, name: str) -> Obj:
    """An example, without what no rule reads (it would only be slow)."""

    def items(suffix: str) -> list[Obj]:
        text = (folder / f"{name}-{suffix}.yaml").read_text()
        loaded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return list(loaded.get("items", [loaded]))

    files = {"cv": items("cv")[0]} | {suffix: items(suffix) for suffix in ("co", "mcp", "mc", "node")}
    for one in [files["cv"], *files["co"], *files["mcp"], *files["mc"], *files["node"]]:
        kept = ("name", "labels", "annotations")
        one["metadata"] = {key: value for key, value in one["metadata"].items() if key in kept}
        status = one.get("status") or {}
        one["status"] = {key: status[key] for key in ("conditions", "versions", "history", "desired") if key in status}
        if one["kind"] == "MachineConfigPool":
            one["status"] = {}
            one["spec"]["configuration"] = {"name": one["spec"]["configuration"]["name"]}
    return files


def brought_to_newest(files: Obj) -> Obj:
    """The same with all times moved, so that its newest transition is ours and changes to it are of fitting age."""
    transitions = [
        parsed(row["lastTransitionTime"])
        for one in [files["cv"], *files["co"]]
        for row in one["status"].get("conditions") or []
        if row.get("lastTransitionTime")
    ]
    by = NEWEST - max(transitions)

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        if isinstance(value, list):
            return [moved(item) for item in value]
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value):
            return (parsed(value) + by).strftime("%Y-%m-%dT%H:%M:%SZ")
        return value

    changed: Obj = moved(files)
    return changed


def parsed(text: str) -> datetime:
    """A time of an example."""
    return datetime.fromisoformat(text)


def as_yaml(value: object) -> str:
    """JSON that is YAML 1.1 as well: ASCII, with characters beyond the first plane as \\U."""
    text = json.dumps(value)
    pair = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")

    def joined(found: re.Match[str]) -> str:
        return f"\\U{0x10000 + (int(found[1], 16) - 0xD800) * 0x400 + int(found[2], 16) - 0xDC00:08x}"

    return pair.sub(joined, text)


def write(files: Obj, folder: Path, seed: int) -> Path:
    """Write the files of a case; the ClusterVersion's path comes back. Lists are v1 Lists or typed ones."""
    rng = random.Random(seed)
    for old in folder.glob("case-*"):
        old.unlink()
    kinds = {"co": "ClusterOperator", "mcp": "MachineConfigPool", "mc": "MachineConfig", "node": "Node"}
    for suffix, kind in kinds.items():
        typed = rng.random() < 0.2 and bool(files[suffix])
        head = (
            {"apiVersion": files[suffix][0]["apiVersion"], "kind": f"{kind}List"}
            if typed
            else {"apiVersion": "v1", "kind": "List"}
        )
        (folder / f"case-{suffix}.yaml").write_text(as_yaml(head | {"items": files[suffix]}))
    version = files["cv"] if rng.random() < 0.5 else {"apiVersion": "v1", "kind": "List", "items": [files["cv"]]}
    by_hand = yaml.dump(version, allow_unicode=rng.random() < 0.5, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    if rng.random() < 0.3:
        by_hand = re.sub(r"'(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)'", r"\1", by_hand)
    (folder / "case-cv.yaml").write_text(by_hand if rng.random() < 0.5 else as_yaml(version))
    if "mco" in files:
        (folder / "case-mco-deployment.yaml").write_text(as_yaml(files["mco"]))
    if "alerts" in files or "alerts_text" in files:
        (folder / "case-alerts.json").write_text(files.get("alerts_text", json.dumps(files.get("alerts"))))
    return folder / "case-cv.yaml"
