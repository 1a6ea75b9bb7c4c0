"""Which kinds a dump is known to hold in full: what proves it, and what does not."""

from __future__ import annotations

import json
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
HELD = "apiVersion: policy/v1\nkind: PodDisruptionBudgetList\nmetadata: {META}\nitems:\n"
ANSWER = HELD.replace("META", 'resourceVersion: ""')
IN_NS = "- metadata: {name: b, namespace: NS}\n"
IN_B = "- metadata: {name: b, namespace: b}\n"
NODE_LIST = f"""apiVersion: v1
kind: List
metadata: {{resourceVersion: ''}}
items:
- {json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "good"}})}
"""
POD_LIST = "apiVersion: v1\nkind: PodList\nmetadata: {resourceVersion: '1'}\nitems:\n" + IN_NS
FAILED = '{"status_reports": [{"name": "clusterconfig/nodes", "errors": ["timeout"]}]}'
SPACE_LIST = "apiVersion: v1\nkind: NamespaceList\nmetadata: {resourceVersion: '7'}\nitems:\n- metadata: {name: NS}\n"
DEFINITION = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c}\n"
OPERATOR = """apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: machine-config}
status:
  relatedObjects:
  - {group: "", name: "", resource: nodes}
  - {group: policy, name: "", namespace: NS, resource: poddisruptionbudgets}
  - {group: apiextensions.k8s.io, name: c, resource: customresourcedefinitions}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}\n"
TREE_CV = "cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml"
NODE_FILES = "cluster-scoped-resources/core/nodes"
SPACES = "cluster-scoped-resources/core/namespaces"
PDBS = ("policy", "poddisruptionbudgets")
POOLS = ("machineconfiguration.openshift.io", "machineconfigpools")
NODES = ("", "nodes")
VOLUMES = ("", "persistentvolumes")
SERVICES = ("apiregistration.k8s.io", "apiservices")
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
OPERATORS = "cluster-scoped-resources/config.openshift.io/clusteroperators"
API_SERVICES = "cluster-scoped-resources/apiregistration.k8s.io/apiservices"
API_SERVICE = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.apps}\n"
POOL = f"apiVersion: {POOLS[0]}/v1\nkind: MachineConfigPool\nmetadata: {{name: p}}\n"
POOL_LIST = f"""apiVersion: {POOLS[0]}/v1
kind: MachineConfigPoolList
metadata: {{resourceVersion: '7'}}
items:
- metadata: {{name: worker}}
  status: {{machineCount: COUNT}}
- metadata: {{name: master}}
  status: {{machineCount: 0}}
"""
CLUSTER_OPERATORS = ("config.openshift.io", "clusteroperators")
AN_OPERATOR = "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: NAME}\n"
CORE = ["authentication", "config-operator", "dns", "etcd", "kube-apiserver", "kube-controller-manager"]
CORE += ["kube-scheduler", "machine-config", "network", "openshift-apiserver"]
GATHERED = "2024-01-01 00:00:00.1 +0000 UTC m=+0.1\n"
JSON_CV = '{"metadata": {"name": "version"}, "status": {"desired": {"version": "4.16.3"}}}'
ARRAY = '[{"metadata": {"name": "good"}}]'
TWO_SPACES = '[{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]'
BUNDLED = "b/cluster-resources/pod-disruption-budgets"
VERSION = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", **json.loads(JSON_CV)}
BUNDLE = {
    "b/cluster-resources/custom-resources/clusterversions.config.openshift.io.json": json.dumps([VERSION]),
    "b/cluster-resources/nodes-errors.json": "null",
    "b/cluster-resources/auth-cani-list/a.json": '[{"verbs": ["get"]}]',
    "b/analysis.json": '[{"name": "x"}]',
}
WHOLE, PARTLY, ABSENT = "whole", "partly", "absent"

ROWS: dict[str, tuple[dict[str, str], tuple[str, str], str]] = {
    "a kind that no file has": ({"cv.yaml": CV}, NODES, ABSENT),
    "an object that is in no namespace": ({"cv.yaml": CV, "a.yaml": NODE}, NODES, PARTLY),
    "one definition": ({"cv.yaml": CV, "crds.yaml": DEFINITION}, DEFINITIONS, PARTLY),
    "one object in a file that is called like its kind": ({"cv.yaml": CV, "nodes.yaml": NODE}, NODES, PARTLY),
    "an object of which the API has one": ({"cv.yaml": CV}, ("config.openshift.io", "clusterversions"), WHOLE),
    "a list of objects that are in no namespace": ({"cv.yaml": CV, "whatever.yaml": NODE_LIST}, NODES, WHOLE),
    "a list that goes on": (
        {"cv.yaml": CV, "nodes.yaml": NODE_LIST.replace("''", "'', continue: abc")}, NODES, PARTLY,
    ),
    "a list that somebody put together": (
        {"cv.yaml": CV, "nodes.yaml": NODE_LIST.replace("metadata: {resourceVersion: ''}\n", "")}, NODES, PARTLY,
    ),
    "a list with an item that is broken": (
        {"cv.yaml": CV, "nodes.yaml": f"{NODE_LIST}- {{apiVersion: v1, kind: Node}}\n"}, NODES, PARTLY,
    ),
    "an empty list as Go writes it": (
        {"cv.yaml": CV, "x.yaml": BUDGETS.replace("[]", "null")}, PDBS, WHOLE,
    ),
    "a list across namespaces, whatever it is called": (
        {"cv.yaml": CV, "x.yaml": ANSWER + IN_NS + IN_B}, PDBS, WHOLE,
    ),
    "a list of one namespace, called like its kind": (
        {"cv.yaml": CV, "poddisruptionbudgets.yaml": ANSWER + IN_NS}, PDBS, PARTLY,
    ),
    "two lists of one namespace each": (
        {"cv.yaml": CV, "a.yaml": ANSWER + IN_NS, "b.yaml": ANSWER + IN_B}, PDBS, PARTLY,
    ),
    "a list of each namespace, and a list of these": (
        {"cv.yaml": CV, "spaces.yaml": SPACE_LIST, "a.yaml": ANSWER + IN_NS}, PDBS, WHOLE,
    ),
    "a list of one of two namespaces": (
        {"cv.yaml": CV, "spaces.yaml": f"{SPACE_LIST}- metadata: {{name: other}}\n", "a.yaml": ANSWER + IN_NS},
        PDBS, PARTLY,
    ),
    "a list of one kind in one namespace, asked for with one across namespaces": (
        {"cv.yaml": CV, "x.yaml": (ANSWER + IN_NS).replace("PodDisruptionBudgetList", "List").replace("policy/v1", "v1")
         .replace("- ", "- apiVersion: policy/v1\n  kind: PodDisruptionBudget\n  ")
         + "- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: b}}\n"}, PDBS, WHOLE,
    ),
    "an empty list beside lists of one namespace only": (
        {"cv.yaml": CV, "pods.yaml": POD_LIST, "pdb.yaml": EMPTY}, PDBS, ABSENT,
    ),
    "an empty list of a kind beside objects of it": (
        {"cv.yaml": CV, "a.yaml": ANSWER + IN_NS, "b.yaml": BUDGETS}, PDBS, PARTLY,
    ),
    "a folder of a namespace, as kubectl cluster-info dump has them": (
        {"cv.yaml": CV, "nodes.json": '{"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": []}',
         "a/replication-controllers.json": '{"kind": "ReplicationControllerList", "apiVersion": "v1", "items": []}',
         "a/poddisruptionbudgets.yaml": BUDGETS}, PDBS, PARTLY,
    ),
    "a folder of the only namespace, as kubectl cluster-info dump has them": (
        {"cv.yaml": CV, "nodes.json": NODE_LIST, "spaces.yaml": SPACE_LIST, "a/replication-controllers.json": "{}",
         "a/poddisruptionbudgets.yaml": BUDGETS}, PDBS, WHOLE,
    ),
    "a folder of the only namespace, with an empty list that lacks one of the dump's objects": (
        {"cv.yaml": CV, "nodes.json": NODE_LIST, "spaces.yaml": SPACE_LIST, "a/replication-controllers.json": "{}",
         "a/poddisruptionbudgets.yaml": BUDGETS, "other.yaml": BUDGET}, PDBS, PARTLY,
    ),
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
        {TREE_CV: CV, f"cluster-scoped-resources/{POOLS[0]}/{POOLS[1]}/": ""}, POOLS, ABSENT,
    ),
    "one inspected node": ({TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE}, NODES, PARTLY),
    "nodes, to which an inspected operator relates": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, f"{OPERATORS}/machine-config.yaml": OPERATOR}, NODES, WHOLE,
    ),
    "nodes, to which an operator relates that was listed with all others": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, f"{OPERATORS}.yaml": OPERATOR}, NODES, PARTLY,
    ),
    "nodes of which one file is broken, to which an inspected operator relates": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, f"{NODE_FILES}/m.yaml": "a: [",
         f"{OPERATORS}/machine-config.yaml": OPERATOR}, NODES, PARTLY,
    ),
    "budgets of the namespace in which an inspected operator relates to them, the only one": (
        {TREE_CV: CV, f"{SPACES}.yaml": SPACE_LIST, "namespaces/a/policy/poddisruptionbudgets/b.yaml": BUDGET,
         f"{OPERATORS}/machine-config.yaml": OPERATOR}, PDBS, WHOLE,
    ),
    "budgets of another namespace than that in which an inspected operator relates to them": (
        {TREE_CV: CV, f"{SPACES}.yaml": SPACE_LIST, "namespaces/b/policy/poddisruptionbudgets/b.yaml":
         BUDGET.replace("NS", "b"), f"{OPERATORS}/machine-config.yaml": OPERATOR}, PDBS, PARTLY,
    ),
    "a definition, to which an inspected operator relates by name": (
        {TREE_CV: CV, "cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/c.yaml": DEFINITION,
         f"{OPERATORS}/machine-config.yaml": OPERATOR}, DEFINITIONS, PARTLY,
    ),
    "operators of every cluster, inspected": (
        {TREE_CV: CV, **{f"{OPERATORS}/{name}.yaml": AN_OPERATOR.replace("NAME", name) for name in CORE}},
        CLUSTER_OPERATORS, WHOLE,
    ),
    "some operators of every cluster, inspected": (
        {TREE_CV: CV, **{f"{OPERATORS}/{name}.yaml": AN_OPERATOR.replace("NAME", name) for name in CORE[1:]}},
        CLUSTER_OPERATORS, PARTLY,
    ),
    "as many nodes as the pools count": (
        {"cv.yaml": CV, "n.yaml": NODE, "mcp.yaml": POOL_LIST.replace("COUNT", "1")}, NODES, WHOLE,
    ),
    "fewer nodes than the pools count": (
        {"cv.yaml": CV, "n.yaml": NODE, "mcp.yaml": POOL_LIST.replace("COUNT", "2")}, NODES, PARTLY,
    ),
    "as many nodes as one of the pools counts": (
        {"cv.yaml": CV, "n.yaml": NODE, "p.yaml": f"{POOL}status: {{machineCount: 1}}\n"}, NODES, PARTLY,
    ),
    "a pool whose status is no map": (
        {"cv.yaml": CV, "n.yaml": NODE, "p.yaml": f"{POOL}status: broken\n"}, NODES, PARTLY,
    ),
    "nodes of must-gather's own image": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, "version": "openshift/must-gather\n4.16.3\n"}, NODES, WHOLE,
    ),
    "nodes of another image": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, "version": "kubevirt/must-gather\n"}, NODES, PARTLY,
    ),
    "nodes of a tool whose name has no end": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, "version": "openshift/must-gather\n" + "4" * (1 << 20)},
        NODES, PARTLY,
    ),
    "nodes of a must-gather that came to its end": (
        {"timestamp": GATHERED * 2, f"image/{TREE_CV}": CV, f"image/{NODE_FILES}/n.yaml": NODE}, NODES, WHOLE,
    ),
    "nodes of a must-gather that was broken off": (
        {"timestamp": GATHERED, f"image/{TREE_CV}": CV, f"image/{NODE_FILES}/n.yaml": NODE,
         "image/version": "openshift/must-gather\n4.16.3\n"}, NODES, PARTLY,
    ),
    "a folder of nodes without a file, of must-gather's own image": (
        {TREE_CV: CV, f"{NODE_FILES}/": "", "version": "openshift/must-gather\n4.16.3\n"}, NODES, WHOLE,
    ),
    "pools of must-gather's own image, which it does not list itself": (
        {TREE_CV: CV, f"cluster-scoped-resources/{POOLS[0]}/{POOLS[1]}/p.yaml": POOL,
         "version": "openshift/must-gather\n4.16.3\n"}, POOLS, PARTLY,
    ),
    "API services of a must-gather that lists them": (
        {TREE_CV: CV, f"{API_SERVICES}/v1.apps.yaml": API_SERVICE, "version": "openshift/must-gather\n4.16.3\n"},
        SERVICES, WHOLE,
    ),
    "API services of a must-gather that collects some by name": (
        {TREE_CV: CV, f"{API_SERVICES}/v1.build.openshift.io.yaml": API_SERVICE,
         "version": "openshift/must-gather\n4.16.3\n"}, SERVICES, PARTLY,
    ),
    "a list of nodes that lacks one of the dump's": (
        {"cv.yaml": CV, "workers.yaml": NODE_LIST, "other.yaml": NODE.replace("good", "other")}, NODES, PARTLY,
    ),
    "two lists of nodes that lack each other's": (
        {"cv.yaml": CV, "a.yaml": NODE_LIST, "b.yaml": NODE_LIST.replace("good", "other")}, NODES, PARTLY,
    ),
    "an empty list of nodes, of which the dump has one": (
        {"cv.yaml": CV, "nodes.yaml": EMPTY, "n.yaml": NODE}, NODES, PARTLY,
    ),
    "a list of one namespace that lacks one of the dump's, and a list of the namespaces": (
        {"cv.yaml": CV, "spaces.yaml": SPACE_LIST, "some.yaml": ANSWER + IN_NS,
         "other.yaml": BUDGET.replace("name: b", "name: other")}, PDBS, PARTLY,
    ),
    "two lists of the same nodes": ({"cv.yaml": CV, "a.yaml": NODE_LIST, "b.yaml": NODE_LIST}, NODES, WHOLE),
    "nodes of a troubleshoot bundle": ({**BUNDLE, "b/cluster-resources/nodes.json": ARRAY}, NODES, WHOLE),
    "no nodes of a troubleshoot bundle": ({**BUNDLE, "b/cluster-resources/nodes.json": "[]"}, NODES, WHOLE),
    "budgets of a troubleshoot bundle, of one of two namespaces": (
        {**BUNDLE, "b/cluster-resources/namespaces.json": TWO_SPACES, f"{BUNDLED}/a.json": "[]"}, PDBS, PARTLY,
    ),
    "budgets of a troubleshoot bundle, of both namespaces": (
        {**BUNDLE, "b/cluster-resources/namespaces.json": TWO_SPACES, f"{BUNDLED}/a.json": "[]",
         f"{BUNDLED}/b.json": json.dumps([{"metadata": {"name": "till", "namespace": "b"}}])}, PDBS, WHOLE,
    ),
    "nodes of a sonobuoy tarball": (
        {"cv.yaml": CV, "resources/cluster/Nodes.json": ARRAY, "meta/config.json": "{}"}, NODES, WHOLE,
    ),
    "budgets of a sonobuoy tarball, of one namespace": (
        {"cv.yaml": CV, "resources/cluster/Nodes.json": ARRAY,
         "resources/ns/a/policy_v1_poddisruptionbudgets.json": (ANSWER + IN_NS).replace("NS", "a")}, PDBS, PARTLY,
    ),
    "nodes of an Insights archive whose record says so": (
        {"config/version.json": JSON_CV, "config/node/n.json": '{"metadata": {"name": "n"}}',
         "insights-operator/gathers.json": '{"status_reports": [{"name": "clusterconfig/nodes", "errors": null}]}'},
        NODES, WHOLE,
    ),
    "nodes of an Insights archive, of which one cannot be read": (
        {"config/version.json": JSON_CV, "config/node/n.json": '{"metadata": {"name": "n"}}',
         "config/node/m.json": '{"metadata": ',
         "insights-operator/gathers.json": '{"status_reports": [{"name": "clusterconfig/nodes", "errors": null}]}'},
        NODES, PARTLY,
    ),
    "nodes of an Insights archive that could not list them": (
        {"config/version.json": JSON_CV, "config/node/n.json": '{"metadata": {"name": "n"}}',
         "insights-operator/gathers.json": FAILED},
        NODES, PARTLY,
    ),
    "nodes of an Insights archive without a record": (
        {"config/version.json": JSON_CV, "config/node/n.json": '{"metadata": {"name": "n"}}'}, NODES, PARTLY,
    ),
    "budgets of an Insights archive, which has those of the platform only": (
        {"config/version.json": JSON_CV, "config/pdbs/openshift-x/b.json":
         '{"metadata": {"name": "b", "namespace": "openshift-x"}}',
         "insights-operator/gathers.json": '{"status_reports": [{"name": "clusterconfig/pdbs", "errors": null}]}'},
        PDBS, PARTLY,
    ),
    "an inspected resource that is not there": ({TREE_CV: CV}, POOLS, ABSENT),
    "an empty list beside a tree": ({TREE_CV: CV, "persistentvolumes.yaml": EMPTY}, VOLUMES, WHOLE),
    "budgets across namespaces beside a tree that has another": (
        {TREE_CV: CV, "namespaces/a/policy/poddisruptionbudgets/c.yaml": BUDGET.replace("name: b", "name: c"),
         "poddisruptionbudgets.policy.yaml": ANSWER + IN_NS + IN_B}, PDBS, WHOLE,
    ),
    "an empty list beside a tree that has an object of the kind": (
        {TREE_CV: CV, "namespaces/a/policy/poddisruptionbudgets/b.yaml": BUDGET,
         "poddisruptionbudgets.policy.yaml": EMPTY}, PDBS, PARTLY,
    ),
    "an empty list that says of what, beside a tree that has an object of the kind": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": NODE, "x.yaml": EMPTY.replace("List", "NodeList")}, NODES, PARTLY,
    ),
    "a broken file in a tree, collected again beside it": (
        {TREE_CV: CV, f"{NODE_FILES}/n.yaml": "a: [", "nodes.yaml": EMPTY}, NODES, WHOLE,
    ),
    "a broken file beside a tree": ({TREE_CV: CV, "nodes.yaml": "a: ["}, NODES, ABSENT),
    "a broken file of nodes": ({TREE_CV: CV, f"{NODE_FILES}/n.yaml": "a: ["}, NODES, ABSENT),
    "budgets of one of two namespaces": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, f"{SPACES}/b.yaml": NAMESPACE.replace("NS", "b"),
         "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS}, PDBS, PARTLY,
    ),
    "budgets of one of two namespaces, with one in it": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, f"{SPACES}/b.yaml": NAMESPACE.replace("NS", "b"),
         "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGET}, PDBS, PARTLY,
    ),
    "empty lists of all namespaces": (
        {TREE_CV: CV, f"{SPACES}.yaml": SPACE_LIST, "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS},
        PDBS, WHOLE,
    ),
    "empty lists of all namespaces that somebody inspected": (
        {TREE_CV: CV, f"{SPACES}/a.yaml": NAMESPACE, "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS},
        PDBS, PARTLY,
    ),
    "empty lists of namespaces that nobody counted": (
        {TREE_CV: CV, "namespaces/a/policy/poddisruptionbudgets.yaml": BUDGETS}, PDBS, PARTLY,
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
    files |= {
        f"namespaces/{space}/policy/poddisruptionbudgets.yaml": ANSWER + IN_NS.replace("NS", space) for space in spaces
    }
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
    dump = load.read(tmp_path)
    assert [problem for problem in dump.problems if "b/" in problem] == []
    found = dump.collected
    shown = WHOLE if resource in found.whole else PARTLY if resource in found.partly else ABSENT
    assert shown == held
