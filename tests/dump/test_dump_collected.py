"""Which kinds a dump is known to hold in full: what proves it, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from runup.dump import load

CV = """apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {desired: {version: 4.16.3}}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: good}\n"
EMPTY = "apiVersion: v1\nkind: List\nitems: []\n"
BUDGET = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: NS}\n"
BUDGETS = "apiVersion: policy/v1\nkind: PodDisruptionBudgetList\nitems: []\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}\n"
TREE_CV = "cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml"
NODE_FILES = "cluster-scoped-resources/core/nodes"
SPACES = "cluster-scoped-resources/core/namespaces"
PDBS = ("policy", "poddisruptionbudgets")
POOLS = ("machineconfiguration.openshift.io", "machineconfigpools")
NODES = ("", "nodes")
VOLUMES = ("", "persistentvolumes")
SERVICES = ("apiregistration.k8s.io", "apiservices")
WHOLE, PARTLY, ABSENT = "whole", "partly", "absent"

ROWS: dict[str, tuple[dict[str, str], tuple[str, str], str]] = {
    "a kind that no file has": ({"cv.yaml": CV}, NODES, ABSENT),
    "an object that is in no namespace": ({"cv.yaml": CV, "a.yaml": NODE}, NODES, WHOLE),
    "an empty list, named by its file": ({"cv.yaml": CV, "poddisruptionbudgets.yaml": EMPTY}, PDBS, WHOLE),
    "an empty list, named in short": ({"cv.yaml": CV, "pdb.yaml": EMPTY}, PDBS, WHOLE),
    "an empty list that says of what": ({"cv.yaml": CV, "x.yaml": BUDGETS}, PDBS, WHOLE),
    "an empty list of nobody knows what": ({"cv.yaml": CV, "x.yaml": EMPTY}, PDBS, ABSENT),
    "an empty list of another kind": ({"cv.yaml": CV, "nodes.yaml": EMPTY}, PDBS, ABSENT),
    "an empty list of a case": ({"a-cv.yaml": CV, "a-mcp.yaml": EMPTY}, POOLS, WHOLE),
    "an empty list, named by resource and group": (
        {"cv.yaml": CV, "apiservices.apiregistration.k8s.io.yaml": EMPTY}, SERVICES, WHOLE,
    ),
    "an empty list of the core group": ({"cv.yaml": CV, "persistentvolumes.yaml": EMPTY}, VOLUMES, WHOLE),
    "a file of no bytes, named by resource": ({"cv.yaml": CV, "persistentvolumes.yaml": ""}, VOLUMES, ABSENT),
    "a file with a date in its name": ({"cv.yaml": CV, "2026-11-22.yaml": EMPTY}, NODES, ABSENT),
    "one object of a namespace": ({"cv.yaml": CV, "b.yaml": BUDGET}, PDBS, PARTLY),
    "a file of that name that is broken": ({"cv.yaml": CV, "nodes.yaml": "a: ["}, NODES, ABSENT),
    "an inspected resource without objects": (
        {TREE_CV: CV, f"cluster-scoped-resources/{POOLS[0]}/{POOLS[1]}/": ""}, POOLS, WHOLE,
    ),
    "an inspected resource that is not there": ({TREE_CV: CV}, POOLS, ABSENT),
    "an empty list beside a tree": ({TREE_CV: CV, "persistentvolumes.yaml": EMPTY}, VOLUMES, WHOLE),
    "budgets beside a tree that has some of them": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, f"{SPACES}/b.yaml": NAMESPACE.replace("NS", "b"),
         "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGET, "poddisruptionbudgets.policy.yaml": EMPTY},
        PDBS, WHOLE,
    ),
    "a broken file in a tree, collected again beside it": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": "a: [", "nodes.yaml": EMPTY}, NODES, WHOLE,
    ),
    "a broken file beside a tree": ({TREE_CV: CV, "nodes.yaml": "a: ["}, NODES, ABSENT),
    "a broken file of nodes": ({TREE_CV: CV, f"{NODE_FILES}/n.yaml": "a: ["}, NODES, ABSENT),
    "budgets of one of two namespaces": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, f"{SPACES}/b.yaml": NAMESPACE.replace("NS", "b"),
         "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS}, PDBS, ABSENT,
    ),
    "budgets of one of two namespaces, with one in it": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, f"{SPACES}/b.yaml": NAMESPACE.replace("NS", "b"),
         "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGET}, PDBS, PARTLY,
    ),
    "empty lists of all namespaces": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS},
        PDBS, WHOLE,
    ),
    "empty lists of namespaces that nobody counted": (
        {TREE_CV: CV, "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS}, PDBS, ABSENT,
    ),
    "what was collected in all namespaces at once": (
        {TREE_CV: CV, "namespaces/all/policy/poddisruptionbudgets.yaml": BUDGETS}, PDBS, WHOLE,
    ),
}  # fmt: skip


PARTS: dict[str, tuple[list[str], str]] = {
    "one namespace": (["b"], "of poddisruptionbudgets the dump has only the namespace b"),
    "three": (["c", "b", "d"], "of poddisruptionbudgets the dump has only the namespaces b, c, d"),
    "many": (list("ihgfedcb"), "of poddisruptionbudgets the dump has only the namespaces b, c, d, e, f and 3 more"),
}


@pytest.mark.parametrize(("spaces", "said"), PARTS.values(), ids=list(PARTS))
def test_a_kind_in_part_says_of_which_namespaces(spaces: list[str], said: str, tmp_path: Path) -> None:
    """Those that a tree has a file or a folder of."""
    files = {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, f"{SPACES}/b.yaml": NAMESPACE.replace("NS", "b")}
    files |= {f"namespaces/{space}/policy/poddisruptionbudgets.yaml": BUDGET.replace("NS", space) for space in spaces}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content.replace("NS", "a"))
    assert load.read(tmp_path).collected.why_partly(PDBS) == f"{said}: whether there were others is not known"


def test_a_kind_in_part_of_which_nothing_is_proven(tmp_path: Path) -> None:
    """A folder with one budget does not say what was looked for."""
    (tmp_path / "cv.yaml").write_text(CV)
    (tmp_path / "b.yaml").write_text(BUDGET)
    held = load.read(tmp_path).collected
    assert held.why_partly(PDBS).startswith("the dump has only a part of the poddisruptionbudgets: ")


@pytest.mark.parametrize(("files", "resource", "held"), ROWS.values(), ids=list(ROWS))
def test_what_is_proven(files: dict[str, str], resource: tuple[str, str], held: str, tmp_path: Path) -> None:
    """Whole, in part, or not known to have been collected."""
    for name, content in files.items():
        path = tmp_path / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.replace("NS", "a"))
    found = load.read(tmp_path).collected
    told = WHOLE if resource in found.whole else PARTLY if resource in found.partly else ABSENT
    assert told == held
