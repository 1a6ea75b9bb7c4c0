"""What `runup check` makes of what it saw: one row a question, Unknown apart from fine."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.lang import yaml
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.cli.clusterversion.check_command import text
from runup.clusterversion.decide.check_prerequisites import (
    Facts,
    Installed,
    PrerequisiteRow,
    Result,
    Right,
    exit_code,
    rows,
)

OK, PROBLEM, UNKNOWN = Result.OK, Result.PROBLEM, Result.UNKNOWN
PATCH = Right("patch", "clusterversions.config.openshift.io", "asking for preflights")
NODES = Right("list", "nodes", "`upgrade status`", needed=False)
REGISTRY, STORE = "https://registry.example/v2/", "https://store.example/signatures"
CLUSTER = """
metadata: {name: version, generation: 4}
spec: {channel: stable-5.0}
status:
  observedGeneration: 4
  desired: {version: 5.0.0, image: registry.example/release@sha256:1}
  conditions: [{type: RetrievedUpdates, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]
"""
GATES = """
metadata: {name: cluster}
status:
  featureGates:
  - {version: 5.0.0, enabled: [{name: ClusterUpdatePreflight}, {name: ClusterUpdateAcceptRisks}]}
"""


def _cluster(**changes: str) -> ClusterVersion:
    text = CLUSTER
    for old, new in (pair.split("=>") for pair in changes.values()):
        assert old in text
        text = text.replace(old, new)
    return codec.convert(ClusterVersion, yaml.load(text))


ALL_WELL = Facts(
    server="https://api.example:6443",
    kubernetes="v1.34.4",
    cluster=_cluster(),
    gates=codec.convert(FeatureGate, yaml.load(GATES)),
    mode="",
    rights={PATCH: True, NODES: True},
    stores=(STORE,),
    reached={REGISTRY: "", STORE: ""},
    components=(),
)


def _row(facts: Facts, name: str) -> PrerequisiteRow:
    return next(row for row in rows(facts) if row.name == name and row.result is not OK)


def test_all_is_well() -> None:
    """Exit code 0, and not one word about what to do."""
    found = rows(ALL_WELL)
    assert [(row.name, row.says) for row in found] == [
        ("server", "https://api.example:6443 answers: Kubernetes v1.34.4"),
        ("cluster", "its ClusterVersion says 5.0.0"),
        ("operator", "it has observed the newest request (generation 4)"),
        ("preflight field", "the server takes spec.desiredUpdate.mode (asked by a dry run)"),
        ("gate ClusterUpdatePreflight", "open for 5.0.0: preflights"),
        ("gate ClusterUpdateAcceptRisks", "open for 5.0.0: accepting risks by name"),
        ("update service", "the operator reached it, in channel stable-5.0"),
        ("registry", f"{REGISTRY} answers from here"),
        ("signature store", f"{STORE} answers from here"),
        (
            "components",
            "not installed as a Deployment: operator, update-status, kernel-modules, update-policy, fleet-update",
        ),
        ("rights", "you may do everything that the commands need"),
    ]
    assert {row.result for row in found} == {OK}
    assert [row.way_out for row in found if row.way_out] == []
    assert exit_code(found) == 0


@pytest.mark.parametrize(
    ("changes", "name", "result", "says", "code"),
    [
        pytest.param(
            {"kubernetes": "", "errors": {"server": "connection refused"}},
            "server", PROBLEM, "connection refused", 1, id="a server that does not answer"),
        pytest.param({"kubernetes": ""}, "server", PROBLEM, "no answer", 1, id="a server that says nothing of itself"),
        pytest.param({"cluster": None}, "cluster", PROBLEM, "could not be read", 2, id="no ClusterVersion"),
        pytest.param({"mode": None}, "preflight field", UNKNOWN, "the server was not asked", 3, id="a field unasked"),
        pytest.param(
            {"gates": None}, "gate ClusterUpdatePreflight", UNKNOWN, "there is no FeatureGate cluster", 3,
            id="no FeatureGate"),
        pytest.param(
            {"gates": None}, "gate ClusterUpdateAcceptRisks", UNKNOWN, "the operator counts it as closed", 3,
            id="no FeatureGate, the other gate"),
        pytest.param(
            {"gates": codec.convert(FeatureGate, yaml.load(GATES.replace(", {name: ClusterUpdateAcceptRisks}", "")))},
            "gate ClusterUpdateAcceptRisks", PROBLEM, "no accepting risks by name", 2, id="one gate of two"),
        pytest.param(
            {"cluster": _cluster(a='status: "True"=>status: "Unknown", reason: Asking, message: not yet')},
            "update service", UNKNOWN, "Asking: not yet", 3, id="an update service that is being asked"),
        pytest.param(
            {"reached": {REGISTRY: "", STORE: "refused"}},
            "signature store", UNKNOWN, "refused", 3, id="a store that this machine does not reach"),
        pytest.param(
            {"stores": (), "reached": {}, "errors": {"stores": "forbidden"}},
            "signature store", UNKNOWN, "not known: forbidden", 3, id="stores that may not be read"),
        pytest.param(
            {"cluster": None, "errors": {"ClusterVersion": "the server could not find the requested resource"}},
            "cluster", PROBLEM, "could not find", 2, id="a cluster that is no OpenShift"),
        pytest.param(
            {"cluster": _cluster(a="observedGeneration: 4=>observedGeneration: 3")},
            "operator", PROBLEM, "generation 4, observed 3", 2, id="an operator that does not look"),
        pytest.param(
            {"mode": 'unknown field "spec.desiredUpdate.mode"'},
            "preflight field", PROBLEM, "unknown field", 2, id="a server that does not know mode"),
        pytest.param(
            {"mode": None, "errors": {"mode": "forbidden"}},
            "preflight field", UNKNOWN, "forbidden", 3, id="a user who may not patch"),
        pytest.param(
            {"gates": None, "errors": {"FeatureGate": "forbidden"}},
            "gate ClusterUpdatePreflight", UNKNOWN, "forbidden", 3, id="a FeatureGate that cannot be read"),
        pytest.param(
            {"gates": codec.convert(FeatureGate, yaml.load(GATES.replace("5.0.0", "4.9.0")))},
            "gate ClusterUpdatePreflight", PROBLEM, "says nothing of version 5.0.0", 2, id="gates of another version"),
        pytest.param(
            {"cluster": _cluster(a="channel: stable-5.0=>channel: ''")},
            "update service", PROBLEM, "no channel is set", 2, id="no channel"),
        pytest.param(
            {"cluster": _cluster(a='status: "True"=>status: "False", reason: RemoteFailed, message: no route')},
            "update service", PROBLEM, "RemoteFailed: no route", 2, id="an update service that was not reached"),
        pytest.param(
            {"cluster": _cluster(a="type: RetrievedUpdates=>type: Available")},
            "update service", UNKNOWN, "does not report whether", 3, id="an operator that has not asked yet"),
        pytest.param(
            {"reached": {REGISTRY: "timed out", STORE: ""}},
            "registry", UNKNOWN, "timed out", 3, id="a registry that this machine does not reach"),
        pytest.param({"stores": (), "reached": {}}, "signature store", UNKNOWN, "not known", 3, id="no store is known"),
        pytest.param(
            {"rights": {PATCH: False, NODES: True}}, "rights", PROBLEM, "may not patch", 2, id="a needed right"),
        pytest.param(
            {"rights": {PATCH: True, NODES: False}}, "rights", UNKNOWN, "may not list", 3, id="a right for details"),
        pytest.param(
            {"rights": {PATCH: None, NODES: True}}, "rights", UNKNOWN, "does not say", 3, id="a review that fails"),
    ],
)  # fmt: skip
def test_what_is_amiss_is_a_row(changes: dict[str, Any], name: str, result: Result, says: str, code: int) -> None:
    """With what was seen, a way out, and its exit code."""
    facts = replace(ALL_WELL, **changes)
    row = _row(facts, name)
    assert row.result is result
    assert says in row.says
    assert row.way_out
    assert exit_code(rows(facts)) == code


def test_an_operator_that_has_seen_more_is_not_behind() -> None:
    """As after a ClusterVersion that was recreated."""
    facts = replace(ALL_WELL, cluster=_cluster(a="observedGeneration: 4=>observedGeneration: 5"))
    assert exit_code(rows(facts)) == 0


def test_a_server_without_a_cluster_is_told_of_rights_all_the_same() -> None:
    """Does not query below the cluster; has queried the user's rights."""
    found = rows(replace(ALL_WELL, cluster=None))
    assert [row.name for row in found] == ["server", "cluster", "rights"]
    assert [row.name for row in rows(replace(ALL_WELL, cluster=None, rights={}))] == ["server", "cluster"]


def test_each_right_that_is_lacking_is_a_row() -> None:
    """With what it is needed for; nobody says next to it that all may be done."""
    found = [row for row in rows(replace(ALL_WELL, rights={PATCH: False, NODES: None})) if row.name == "rights"]
    assert [(row.result, row.says, row.way_out) for row in found] == [
        (
            PROBLEM,
            "you may not patch clusterversions.config.openshift.io",
            "needed for asking for preflights; ClusterRole cluster-admin has this right: `oc adm policy "
            "add-cluster-role-to-user cluster-admin USER`",
        ),
        (UNKNOWN, "list nodes: the server does not say", "needed for `upgrade status`"),
    ]


def test_the_rows_as_lines() -> None:
    """How it is in a column, the way out below what was seen."""
    found = [
        PrerequisiteRow("server", OK, "answers"),
        PrerequisiteRow("rights", PROBLEM, "you may not", "ask"),
        PrerequisiteRow("gate", UNKNOWN, "who knows"),
    ]
    assert text(found) == (
        "ok       server: answers\nproblem  rights: you may not\n         ask\nunknown  gate: who knows\n"
    )


COMPONENT = Installed(component="update-status", namespace="ns", deployment="update-status-controller", version="1.2.0")
COMPONENTS: dict[str, tuple[Installed, Result, str, str]] = {
    "ready": (COMPONENT, OK, "runup 1.2.0 in namespace ns, 1 of 1 pods ready, its account has its rights", ""),
    "its version could not be read": (
        replace(COMPONENT, version="", version_error="forbidden"),
        OK,
        "a version that could not be read (forbidden) in namespace ns, 1 of 1 pods ready, its account has its rights",
        "",
    ),
    "no pod is ready": (
        replace(COMPONENT, ready=0, why="Deployment does not have minimum availability."),
        PROBLEM,
        "runup 1.2.0 in namespace ns, 0 of 1 pods ready: Deployment does not have minimum availability.",
        "see `kubectl -n ns describe pods`",
    ),
    "an older pod is ready, the newest is not": (
        replace(COMPONENT, rolled_out=False),
        PROBLEM,
        "runup 1.2.0 in namespace ns, 1 of 1 pods ready: its newest pods are not available yet",
        "see `kubectl -n ns describe pods`",
    ),
    "scaled to nothing": (
        replace(COMPONENT, wanted=0, ready=0),
        PROBLEM,
        "runup 1.2.0 in namespace ns, 0 of 0 pods ready: it is scaled to 0 replicas",
        "`kubectl -n ns scale deployment/update-status-controller --replicas=1`",
    ),
    "its account lacks a right": (
        replace(COMPONENT, lacking=("watch nodes",)),
        PROBLEM,
        "runup 1.2.0 in namespace ns, 1 of 1 pods ready; its account may not watch nodes",
        "`runup install update-status` gives it its roles again",
    ),
    "its rights could not be told": (
        replace(COMPONENT, rights_error="forbidden"),
        UNKNOWN,
        "runup 1.2.0 in namespace ns, 1 of 1 pods ready; whether its account has its rights: forbidden",
        "ask again as somebody who may create subjectaccessreviews",
    ),
    "of a release": (
        replace(COMPONENT, by_install=False, version="", image="quay.example/release@sha256:1"),
        OK,
        "quay.example/release@sha256:1 in namespace ns, 1 of 1 pods ready; "
        "Deployment ns/update-status-controller was not made by `runup install`",
        "",
    ),
}


@pytest.mark.parametrize(("component", "result", "says", "way_out"), COMPONENTS.values(), ids=COMPONENTS.keys())
def test_an_installed_component(component: Installed, result: Result, says: str, way_out: str) -> None:
    """Where it is, its version, its pods, its rights; the others are named in one row."""
    found = [row for row in rows(replace(ALL_WELL, components=(component,))) if row.name.startswith("component")]
    assert found == [
        PrerequisiteRow("component update-status", result, says, way_out),
        PrerequisiteRow(
            "components", OK, "not installed as a Deployment: operator, kernel-modules, update-policy, fleet-update"
        ),
    ]


def test_components_that_nobody_may_list() -> None:
    """That none was found is not said."""
    facts = replace(ALL_WELL, components=None, errors={"components": "forbidden"})
    assert _row(facts, "components").result is UNKNOWN
    assert "forbidden" in _row(facts, "components").says
    assert exit_code(rows(facts)) == 3
