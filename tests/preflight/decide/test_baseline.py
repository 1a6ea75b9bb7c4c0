"""A baseline makes known what was there before; what is new, has grown, or was not known to apply, still counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from kubekit.error_types import Terminal
from runup.evaluation import baseline
from runup.evaluation.baseline import Since
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED
from runup.report.report import ReportedCheck, ReportedResource

DONE = Condition(type=COMPLETED, status="True", reason="ChecksCompleted")


def nodes(*names: str) -> tuple[ReportedResource, ...]:
    """Nodes of these names."""
    return tuple(ReportedResource(kind="Node", name=name) for name in names)


def risk(name: str, applies: str = "True", resources: tuple[ReportedResource, ...] = (), omitted: int = 0) -> Risk:
    """A risk."""
    return Risk(
        name=name,
        applies=applies,  # type: ignore[arg-type]
        accepted=False,
        message="so",
        url="",
        resources=resources,
        resources_omitted=omitted,
    )


def findings(*risks: Risk, cluster_id: str = "", target: str = "4.16.0", **more: Any) -> Findings:
    """The findings of a cluster."""
    return Findings(source="4.15.0", target=target, conditions=(DONE,), risks=risks, cluster_id=cluster_id, **more)


def compare(
    then: baseline.Baseline, clusters: Sequence[tuple[str, Findings]]
) -> tuple[list[tuple[Findings, Since]], list[str]]:
    """Compares the clusters with the baseline, and returns the notes, too."""
    comparison = baseline.Comparison(then)
    return [comparison.compare(name, found) for name, found in clusters], comparison.notes()


def known(applies: str, *names: str, omitted: int = 0) -> baseline.Baseline:
    """The baseline `last.json`, in which the risk Ack of cluster a is about nodes of these names."""
    entry = {"name": "Ack", "applies": applies, "resources": [{"kind": "Node", "name": name} for name in names]}
    risks = [{**entry, "resourcesOmitted": omitted}] if applies else []
    return baseline.read({"cluster": "a", "observedTime": "2027-01-14T10:00:00Z", "risks": risks}, "last.json")


HUNDRED = tuple(f"{number:03}" for number in range(100))


@pytest.mark.parametrize(
    ("then", "now", "grown"),
    [
        pytest.param(known(""), risk("Ack"), "new", id="new"),
        pytest.param(known("True"), risk("Ack"), "", id="known"),
        pytest.param(known("Unknown"), risk("Ack"), "new", id="could not be told then, and applies now"),
        pytest.param(known("True"), risk("Ack", "Unknown"), "", id="applied then, and cannot be told now"),
        pytest.param(known("Unknown"), risk("Ack", "Unknown"), "", id="could not be told then either"),
        pytest.param(known("False"), risk("Ack"), "new", id="did not apply then"),
        pytest.param(known("True"), risk("Acknowledged"), "new", id="another name"),
        pytest.param(known("True", "n1", "n2"), risk("Ack", resources=nodes("n1")), "", id="an object less"),
        pytest.param(known("True", "n1"), risk("Ack", resources=nodes("n1", "n2")), "Node n2", id="an object more"),
        pytest.param(known("True", "n1"), risk("Ack", resources=nodes("n2")), "Node n2", id="another object"),
        pytest.param(known("True"), risk("Ack", resources=nodes("n1")), "Node n1", id="its first object"),
        pytest.param(
            known("True", *HUNDRED, omitted=50),
            risk("Ack", resources=nodes("new", *HUNDRED[1:]), omitted=50),
            "",
            id="both lists are cut: as many",
        ),
        pytest.param(
            known("True", *HUNDRED, omitted=50),
            risk("Ack", resources=nodes(*HUNDRED), omitted=52),
            "2 objects",
            id="both lists are cut: two more",
        ),
        pytest.param(
            known("True", *HUNDRED, omitted=20), risk("Ack", resources=nodes("new")), "", id="the earlier list is cut"
        ),
        pytest.param(
            known("True", *HUNDRED),
            risk("Ack", resources=nodes(*HUNDRED[:20]), omitted=80),
            "",
            id="the new list is shorter: what it leaves out may be known",
        ),
        pytest.param(
            known("True", "000"),
            risk("Ack", resources=nodes(*HUNDRED[:2]), omitted=3),
            "Node 001, 3 more",
            id="the new list is cut, and has more",
        ),
    ],
)
def test_only_what_is_new_counts(then: baseline.Baseline, now: Risk, grown: str) -> None:
    """What is known is reported as accepted, with the file; what has grown is open, with the objects that are new."""
    [(marked, since)], notes = compare(then, [("a", findings(now))])
    (found,) = marked.risks
    assert found.open is bool(grown)
    assert found.because == ("" if grown else "known: it is in the baseline last.json")
    assert (found.grown.listed if found.grown else "") == ("" if grown == "new" else grown)
    assert (since.new, since.grown, since.same) == tuple(
        (now.name,) if state else () for state in (grown == "new", grown not in ("", "new"), not grown)
    )
    part = not grown and (
        now.resources_omitted or any(each.resources_omitted for each in then.clusters[0].risks.values())
    )
    said = "the objects of Ack are not all named, so only their number was compared with last.json"
    assert notes == ([said] if part else [])


def test_what_has_grown_says_since_when_it_is_known() -> None:
    """As the clause of a sentence about the risk."""
    [(marked, _)], _ = compare(known("True", "n1"), [("a", findings(risk("Ack", resources=nodes("n2"))))])
    (found,) = marked.risks
    assert found.grown is not None
    assert found.grown.text == (
        "in the baseline last.json with 1 object at 2027-01-14T10:00:00Z, and has grown: Node n2"
    )


def test_what_no_acceptance_lifts_stays_open() -> None:
    """It is the same, and a note says why it still counts."""
    refusal = replace(risk("Ack"), acceptable=False)
    [(marked, since)], notes = compare(known("True"), [("a", findings(refusal))])
    assert (marked.risks, since.same) == ((refusal,), ("Ack",))
    assert notes == ["the baseline last.json does not accept Ack, which no acceptance lifts"]


def test_what_is_gone() -> None:
    """But not where the check could not tell; a risk that did not apply cannot be gone."""
    names = {"Gone": "True", "Off": "False", "Paused-x": "True", "Net": "Unknown", "Ack": "True"}
    then = baseline.read({"cluster": "a", "risks": [{"name": n, "applies": a} for n, a in names.items()]}, "f")
    checks = (ReportedCheck(name="Paused", result="Unknown"), ReportedCheck(name="Gone", result="Clear"))
    now = findings(risk("Ack"), risk("NetUnknown", "Unknown"), checks=checks)
    [(_, since)], _ = compare(then, [("a", now)])
    assert since == Since(new=("NetUnknown",), gone=("Gone",), untold=("Net", "Paused-x"), same=("Ack",))


ENTRY = {"cluster": "a", "risks": [{"name": "Ack", "applies": "True"}]}
FORMS: dict[str, tuple[Any, dict[str, dict[str, str]]]] = {
    "one cluster": (ENTRY, {"a": {"Ack": "True"}}),
    "several": ([ENTRY, {**ENTRY, "cluster": "b", "risks": []}], {"a": {"Ack": "True"}, "b": {}}),
    # The risks at the top of a fleet's output are of no one cluster.
    "a fleet": ({"clusters": [ENTRY], "risks": [{"name": "Other"}]}, {"a": {"Ack": "True"}}),
    "a report that was kept": ({"risks": [{"name": "Ack"}], "format": "preflight-v1-json"}, {"": {"Ack": "True"}}),
}


@pytest.mark.parametrize(("document", "clusters"), FORMS.values(), ids=list(FORMS))
def test_every_output_is_a_baseline(document: Any, clusters: dict[str, dict[str, str]]) -> None:
    """As `-o json` prints it."""
    found = {
        each.name: {risk.name: risk.applies for risk in each.risks.values()}
        for each in baseline.read(document, "f").clusters
    }
    assert found == clusters


@pytest.mark.parametrize(
    "document", [{}, [], 7, ["a"], {"clusters": []}, {"risks": {}}, {"risks": [1]}, None, {"risks": [{"resources": 5}]}]
)
def test_what_is_no_baseline_is_refused(document: Any) -> None:
    """Else nothing would be known, or everything."""
    with pytest.raises(Terminal, match="f is not a baseline"):
        baseline.read(document, "f")


def test_two_clusters_of_one_name_are_no_baseline() -> None:
    """The risks of one would be known about the other."""
    with pytest.raises(Terminal, match="f has two clusters called a, whose risks cannot be distinguished"):
        baseline.read([ENTRY, {**ENTRY, "risks": []}], "f")


# Name -> (ID, target) of then and now; which are known, and the notes.
Clusters = dict[str, tuple[str, str]]
MISSING = "the baseline f does not have {}, of which each risk counts as new"
NO_ID = "; it has no IDs of clusters"
OTHER = "the baseline f is of another cluster than {}, of which each risk counts as new"
TARGET = "the baseline f is of the update to 4.16.0, and this one is to 4.17.0: each risk of {} counts as new"
CLUSTERS: dict[str, tuple[Clusters, Clusters, set[str], list[str]]] = {
    "the same": (
        {"a": ("1", "4.16.0"), "b": ("2", "4.16.0")},
        {"a": ("1", "4.16.0"), "b": ("2", "4.16.0")},
        {"a", "b"},
        [],
    ),
    "a dump under another name": ({"dump.1": ("1", "4.16.0")}, {"dump.2": ("1", "4.16.0")}, {"dump.2"}, []),
    "clusters that changed their names": (
        {"a": ("1", "4.16.0"), "b": ("2", "4.16.0")},
        {"b": ("1", "4.16.0"), "c": ("2", "4.16.0")},
        {"b", "c"},
        [],
    ),
    "another cluster": ({"a": ("1", "4.16.0")}, {"b": ("2", "4.16.0")}, set(), [MISSING.format("b")]),
    "another cluster of that name": ({"a": ("1", "4.16.0")}, {"a": ("2", "4.16.0")}, set(), [OTHER.format("a")]),
    "without IDs": ({"a": ("", "4.16.0")}, {"a": ("", "4.16.0")}, {"a"}, []),
    "without IDs, another name": ({"a": ("", "4.16.0")}, {"b": ("", "4.16.0")}, set(), [MISSING.format("b") + NO_ID]),
    "only the older output has no IDs": ({"a": ("", "4.16.0")}, {"a": ("1", "4.16.0")}, {"a"}, []),
    "only the older output has no IDs, another name": (
        {"a": ("", "4.16.0")},
        {"b\n": ("1", "4.16.0")},
        set(),
        [MISSING.format("b\\n") + NO_ID],
    ),
    "a live cluster": ({"the cluster": ("1", "4.16.0")}, {"the cluster": ("1", "4.16.0")}, {"the cluster"}, []),
    "another live cluster": (
        {"the cluster": ("1", "4.16.0")},
        {"the cluster": ("2", "4.16.0")},
        set(),
        [OTHER.format("the cluster")],
    ),
    "a live cluster without an ID, as every other one is called": (
        {"the cluster": ("", "4.16.0")},
        {"the cluster": ("1", "4.16.0")},
        set(),
        [MISSING.format("the cluster") + NO_ID],
    ),
    "another target": (
        {"a": ("", "4.16.0"), "b": ("1", "4.16.0")},
        {"a": ("", "4.17.0"), "c": ("1", "4.17.0")},
        set(),
        [TARGET.format("a, c")],
    ),
    "one that could not be evaluated": ({"a": ("", "4.16.0")}, {"a": ("", "")}, {"a"}, []),
    "a baseline that does not say it": ({"a": ("", "")}, {"a": ("", "4.16.0")}, {"a"}, []),
    "many": (
        {"a": ("1", ""), "b": ("2", "")},
        dict.fromkeys("cdefghi", ("", "")),
        set(),
        [MISSING.format("c, d, e, f, g and 2 more")],
    ),
}


@pytest.mark.parametrize(("then", "now", "same", "said"), CLUSTERS.values(), ids=list(CLUSTERS))
def test_which_cluster_of_a_baseline(then: Clusters, now: Clusters, same: set[str], said: list[str]) -> None:
    """By ID where both have one, else by name, and for the same target; each risk of others is new, with a note."""
    entries = [{**ENTRY, "cluster": name, "clusterID": id_, "target": target} for name, (id_, target) in then.items()]
    clusters = [(name, findings(risk("Ack"), cluster_id=id_, target=target)) for name, (id_, target) in now.items()]
    compared, notes = compare(baseline.read(entries, "f"), clusters)
    assert {name for (name, _), (_, since) in zip(clusters, compared, strict=True) if since.same} == same
    assert notes == said


def test_of_several_dumps_of_a_cluster_the_newest_counts() -> None:
    """Unless one has the name."""
    dumps = [
        {"cluster": f"dump.{day}", "clusterID": "1", "observedTime": f"2027-01-0{day}T00:00:00Z", "risks": risks}
        for day, risks in ((1, ENTRY["risks"]), (3, []), (2, ENTRY["risks"]))
    ]
    for name, new in (("dump.4", ("Ack",)), ("dump.2", ())):
        [(_, since)], _ = compare(baseline.read(dumps, "f"), [(name, findings(risk("Ack"), cluster_id="1"))])
        assert since.new == new
