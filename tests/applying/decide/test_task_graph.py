"""Which task waits for which, in each of the three states."""

from __future__ import annotations

import pytest
from tests.applying.decide.tasks import manifest, task, tasks

from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task_graph import Graph, after_definitions, everything_before, graph_of

U, R, I = ApplyReason.UPDATING, ApplyReason.RECONCILING, ApplyReason.INITIALIZING  # noqa: E741
JOB = "job!"


def shape(files: list[str], state: ApplyReason) -> list[tuple[list[str], list[int]]]:
    """Each node's files, and the nodes before it; a file that ends in `!` is a Job."""
    return [
        ([task.manifest.file.rpartition("/")[2] for task in node.tasks], sorted(node.after))
        for node in graph(files, state)
    ]


def graph(files: list[str], state: ApplyReason) -> Graph:
    """The graph of a release of these files."""
    made = [manifest(name, "Job", "batch") if name.endswith("!") else manifest(name) for name in files]
    return graph_of(tasks(*made), state)


@pytest.mark.parametrize(
    ("files", "state", "expected"),
    [
        pytest.param([], U, [], id="nothing is nothing"),
        pytest.param(["0000_01_a_f"], U, [(["0000_01_a_f"], [])], id="one file is one node"),
        pytest.param(
            ["0000_01_a_f", "0000_01_x_f1", "0000_01_x_f2", "a", "0000_01_x_f2", "0000_01_x_f3"],
            U,
            [
                (["0000_01_a_f"], []),
                (["0000_01_x_f1", "0000_01_x_f2"], []),
                (["a", "0000_01_x_f2", "0000_01_x_f3"], [0, 1]),
            ],
            id="components of a level go side by side, and what has no level waits for them",
        ),
        pytest.param(
            ["0000_01_a_f", "0000_02_a_f", "0000_03_b_f"],
            U,
            [(["0000_01_a_f", "0000_02_a_f", "0000_03_b_f"], [])],
            id="levels of one component each are one row",
        ),
        pytest.param(
            ["0000_05_a_f", "0000_10_a_f", "0000_10_b_f", "0000_20_c_f"],
            U,
            [(["0000_05_a_f"], []), (["0000_10_a_f"], [0]), (["0000_10_b_f"], [0]), (["0000_20_c_f"], [1, 2])],
            id="a level waits for all of the one before",
        ),
        pytest.param(
            ["0000_10_a_f", "0000_9_b_f"],
            U,
            [(["0000_10_a_f", "0000_9_b_f"], [])],
            id="levels are text: nothing sorts them but the release",
        ),
        pytest.param(
            ["0000_10_a_f", "0000_10_b_f", "0000_20_a_f", "0000_20_b_f"],
            R,
            [([name], []) for name in ("0000_10_a_f", "0000_10_b_f", "0000_20_a_f", "0000_20_b_f")],
            id="what is kept goes all at once",
        ),
        pytest.param(
            ["0000_10_a_f", f"0000_10_b_{JOB}", "0000_20_a_f", "0000_20_b_f"],
            I,
            [(["0000_10_a_f"], []), ([f"0000_10_b_{JOB}"], [0]), (["0000_20_a_f"], [1]), (["0000_20_b_f"], [1])],
            id="a Job stands between what is before it and what is after, in an installation too",
        ),
        pytest.param(
            [f"0000_10_a_1{JOB}", f"0000_10_a_2{JOB}"],
            U,
            [([f"0000_10_a_1{JOB}"], []), ([f"0000_10_a_2{JOB}"], [0])],
            id="Jobs wait for each other",
        ),
        pytest.param(
            ["0000_10_a_f", "0000_10_b_f", f"0000_10_b_g{JOB}", "0000_10_b_h", "0000_10_c_f"],
            R,
            [
                (["0000_10_a_f"], []),
                (["0000_10_b_f"], []),
                ([f"0000_10_b_g{JOB}"], [0, 1]),
                (["0000_10_b_h"], [2]),
                (["0000_10_c_f"], [2]),
            ],
            id="a Job divides its level and its component, while a release is kept too",
        ),
        pytest.param(
            [f"0000_10_a_f{JOB}", "0000_10_a_g", "0000_20_a_f", "0000_20_b_f"],
            U,
            [
                ([f"0000_10_a_f{JOB}"], []),
                (["0000_10_a_g"], [0]),
                (["0000_20_a_f"], [1]),
                (["0000_20_b_f"], [1]),
            ],
            id="a Job that comes first holds up everything",
        ),
        pytest.param(
            ["0000_20_a_f", "0000_20_b_f", f"0000_30_a_f{JOB}"],
            U,
            [(["0000_20_a_f"], []), (["0000_20_b_f"], []), ([f"0000_30_a_f{JOB}"], [0, 1])],
            id="a Job that comes last waits for everything",
        ),
    ],
)
def test_what_comes_after_what(
    files: list[str], state: ApplyReason, expected: list[tuple[list[str], list[int]]]
) -> None:
    """The rows of docs/reference/upstream.md 4.2, and the ends of each rule."""
    assert shape(files, state) == expected


@pytest.mark.parametrize(
    ("group", "kind", "annotations", "nodes"),
    [
        pytest.param("batch", "Job", {}, 3, id="a Job"),
        pytest.param("batch", "Job", {"release.openshift.io/delete": "true"}, 3, id="a Job that goes"),
        pytest.param("batch", "CronJob", {}, 1, id="a CronJob ends nothing"),
        pytest.param("example.org", "Job", {}, 1, id="a Job of another group"),
    ],
)
def test_what_is_a_barrier(group: str, kind: str, annotations: dict[str, str], nodes: int) -> None:
    """As `SplitOnJobs`, which uses group, version and kind (cluster-version-operator pkg/payload/task_graph.go)."""
    names = ("0000_10_a_1", "0000_10_a_2", "0000_10_a_3")
    middle = manifest(names[1], kind, group, metadata={"annotations": annotations})
    made = tasks(manifest(names[0]), middle, manifest(names[2]))
    assert {len(graph_of(made, state)) for state in (U, R, I)} == {nodes}


def test_everything_that_comes_before_a_node() -> None:
    """Not only what it waits for itself."""
    files = ["0000_10_a_f", "0000_10_b_f", f"0000_20_a_{JOB}", "0000_30_a_f"]
    assert everything_before(graph(files, U)) == (frozenset(), frozenset(), frozenset({0, 1}), frozenset({0, 1, 2}))


@pytest.mark.parametrize(
    ("group", "kind", "annotations", "waits"),
    [
        pytest.param("apps", "Deployment", {}, True, id="what runs may use the kind at once"),
        pytest.param("apps", "DaemonSet", {}, True, id="so does what runs on every node"),
        pytest.param("batch", "Job", {}, True, id="a Job runs, too"),
        pytest.param("config.openshift.io", "ClusterOperator", {}, True, id="an operator reports what runs"),
        pytest.param("", "ConfigMap", {"release.openshift.io/delete": "true"}, True, id="what goes, goes in its turn"),
        pytest.param("", "ConfigMap", {}, False, id="a ConfigMap uses nothing"),
        pytest.param("rbac.authorization.k8s.io", "ClusterRole", {}, False, id="a role may name what is not there"),
        pytest.param("apiextensions.k8s.io", "CustomResourceDefinition", {}, False, id="no definition needs another"),
        pytest.param("example.org", "Deployment", {}, False, id="a kind of that name in another group is no workload"),
    ],
)
def test_what_waits_for_the_definitions_before_it(
    group: str, kind: str, annotations: dict[str, str], waits: bool
) -> None:
    """Only what would use them, or say that all is well with them."""
    made = task("0000_20_a_x", kind, group, metadata={"annotations": annotations})
    assert after_definitions(made) is waits
