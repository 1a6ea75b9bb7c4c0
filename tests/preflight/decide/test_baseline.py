"""A baseline makes known what was there before; what is new, or was not known to apply, still counts."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.error_types import Terminal
from runup.evaluation import baseline
from runup.preflight.decide.findings import Risk


def risk(name: str, applies: str = "True", *, accepted: bool = False) -> Risk:
    """A risk."""
    return Risk(name=name, applies=applies, accepted=accepted, message="so", url="")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "applies", "still_open"),
    [
        pytest.param({}, "True", True, id="new"),
        pytest.param({"Ack": "True"}, "True", False, id="known"),
        pytest.param({"Ack": "Unknown"}, "True", True, id="could not be told then, and applies now"),
        pytest.param({"Ack": "True"}, "Unknown", False, id="applied then, and cannot be told now"),
        pytest.param({"Ack": "Unknown"}, "Unknown", False, id="could not be told then either"),
        pytest.param({"Ack": "False"}, "True", True, id="did not apply then"),
        pytest.param({"Acknowledged": "True"}, "True", True, id="another name"),
    ],
)
def test_only_what_is_new_counts(known: dict[str, str], applies: str, still_open: bool) -> None:
    """And what does not is told as accepted, with the file."""
    (found,) = baseline.mark_known_risks([risk("Ack", applies)], known, "last.json")
    assert found.open is still_open
    assert found.because == ("" if still_open else "known: it is in the baseline last.json")


ENTRY = {"cluster": "a", "risks": [{"name": "Ack", "applies": "True"}]}
FORMS: dict[str, tuple[Any, dict[str, dict[str, str]]]] = {
    "one cluster": (ENTRY, {"a": {"Ack": "True"}}),
    "several": ([ENTRY, {**ENTRY, "cluster": "b", "risks": []}], {"a": {"Ack": "True"}, "b": {}}),
    # The risks at the top of a fleet's output are of no one cluster.
    "a fleet": ({"clusters": [ENTRY], "risks": [{"name": "Other"}]}, {"a": {"Ack": "True"}}),
    "a report that was kept": ({**ENTRY, "format": "preflight-v1-json"}, {"a": {"Ack": "True"}}),
}


@pytest.mark.parametrize(("document", "clusters"), FORMS.values(), ids=list(FORMS))
def test_every_output_is_a_baseline(document: Any, clusters: dict[str, dict[str, str]]) -> None:
    """As `-o json` prints it."""
    assert baseline.read(document, "f").clusters == clusters


@pytest.mark.parametrize("document", [{}, [], 7, ["a"], {"clusters": []}, {"risks": {}}, {"risks": [1]}, None])
def test_what_is_no_baseline_is_refused(document: Any) -> None:
    """Else nothing would be known, or everything."""
    with pytest.raises(Terminal, match="f is not a baseline"):
        baseline.read(document, "f")


def test_which_cluster_of_a_baseline() -> None:
    """By name; of one beside one whatever they are called, since dumps have a new name each time."""
    one = baseline.read(ENTRY, "f")
    assert baseline.baseline_of_cluster(one, "must-gather.2", alone=True) == {"Ack": "True"}
    assert baseline.baseline_of_cluster(one, "must-gather.2", alone=False) == {}
    two = baseline.read([ENTRY, {**ENTRY, "cluster": "b"}], "f")
    assert baseline.baseline_of_cluster(two, "c", alone=True) == {}


def test_two_clusters_of_one_name_are_no_baseline() -> None:
    """The risks of one would be known of the other."""
    with pytest.raises(Terminal, match="f has two clusters called a, whose risks could not be told apart"):
        baseline.read([ENTRY, {**ENTRY, "risks": []}], "f")


DOUBTS: dict[str, tuple[dict[str, str], dict[str, str], list[str]]] = {
    "the same": ({"a": "4.16.0", "b": "4.16.0"}, {"a": "4.16.0", "b": "4.16.0"}, []),
    "another target": (
        {"a": "4.16.0", "b": "4.16.0"},
        {"a": "4.17.0", "b": "4.17.0"},
        ["the baseline f is of the update to 4.16.0, and this one to 4.17.0: a, b"],
    ),
    "a new cluster": (
        {"a": "4.16.0", "b": "4.16.0"},
        {"a": "4.16.0", "c\n": "4.16.0"},
        ["the baseline f does not have c\\n, of which every risk counts as new"],
    ),
    "one dump under another name": ({"a": "4.16.0"}, {"b": "4.16.0"}, []),
    "one dump under another name and target": (
        {"a": "4.16.0"},
        {"b": "4.17.0"},
        ["the baseline f is of the update to 4.16.0, and this one to 4.17.0: b"],
    ),
    "one that could not be judged": ({"a": "4.16.0"}, {"a": ""}, []),
    "a baseline that does not say it": ({"a": ""}, {"a": "4.16.0"}, []),
    "many": (
        {"a": "", "b": ""},
        dict.fromkeys("cdefghi", ""),
        ["the baseline f does not have c, d, e, f, g and 2 more, of which every risk counts as new"],
    ),
}


@pytest.mark.parametrize(("then", "now", "said"), DOUBTS.values(), ids=list(DOUBTS))
def test_a_baseline_of_something_else_is_told(then: dict[str, str], now: dict[str, str], said: list[str]) -> None:
    """It still counts: whoever moves to another target may want just that."""
    known = baseline.read([{"cluster": name, "target": target, "risks": []} for name, target in then.items()], "f")
    assert baseline.target_mismatches(known, now) == said
