"""How findings are put into words: lists and texts as long as they may be, and one longer."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.factories import NOW, SINCE, condition, context, node

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import resource_of
from kubekit.lang.text import count
from runup.checks.decide.engine import one_line, run_check, unknown_risk
from runup.checks.decide.model import Check, Finding, Snapshot
from runup.checks.decide.wording import names
from runup.checks.writing import cause, condition_text, severity_after, since_suffix, since_text

NODES = resource_of(Node)


@pytest.mark.parametrize(
    ("items", "shown"),
    [
        pytest.param("", "", id="none"),
        pytest.param("a", "a", id="one"),
        pytest.param("ab", "a and b", id="two"),
        pytest.param("abcde", "a, b, c, d and e", id="as many as are named"),
        pytest.param("abcdef", "a, b, c, d, e and 1 more", id="one more"),
        pytest.param("abcdefgh", "a, b, c, d, e and 3 more", id="three more"),
    ],
)
def test_a_list(items: str, shown: str) -> None:
    """Five names at most, then how many more."""
    assert names(list(items)) == shown


def test_how_many() -> None:
    """One is singular, and nothing else."""
    assert [count(number, "node") for number in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
    assert [count(2, kind) for kind in ("NetworkPolicy", "StorageClass", "Gateway", "IPAddress")] == [
        "2 NetworkPolicies",
        "2 StorageClasses",
        "2 Gateways",
        "2 IPAddresses",
    ]


def test_since_when() -> None:
    """Nothing where nobody knows."""
    assert (since_text(SINCE), since_suffix(SINCE)) == ("since 2026-01-14T09:30:00Z", " (since 2026-01-14T09:30:00Z)")
    assert (since_text(None), since_suffix(None)) == ("", "")


@pytest.mark.parametrize(
    ("reason", "message", "shown"),
    [
        pytest.param("Broken", "It is.", "Broken: It is", id="both"),
        pytest.param("Broken", "", "Broken", id="a reason alone"),
        pytest.param("", "It is.", "It is", id="a message alone"),
        pytest.param("AsExpected", "It is.", "It is", id="a reason that is none"),
        pytest.param("AsExpected", "", "", id="nothing"),
        pytest.param("", "a\n  b..", "a b", id="one line, without its end"),
        pytest.param("", "x" * 600, "x" * 600, id="as long as is shown"),
        pytest.param("", "x" * 601, "x" * 596 + " ...", id="a character more"),
        pytest.param("", "it is so " * 80, f"{('it is so ' * 80)[:593]} ...", id="cut between two words"),
        pytest.param(
            "",
            'no quorum: [{Member:ID:1 name:"a" Errors:[{Text:x}]} {Member:ID:2}]\nB: c',
            "no quorum: [...] B: c",
            id="a list of printed values",
        ),
        pytest.param("", "because &{Op:get Err:nil} and {A:b}.", "because [...] and [...]", id="printed values alone"),
        pytest.param("", "cut before: [{Member:ID:1 na", "cut before: [...]", id="a value that was cut before"),
        pytest.param("", 'spec {"a": [1]} and {} stay', 'spec {"a": [1]} and {} stay', id="JSON is no printed value"),
    ],
)
def test_a_cause(reason: str, message: str, shown: str) -> None:
    """Another component's words, as far as they say why."""
    found = condition("Degraded", "True", reason, message)
    assert cause(found) == shown
    assert condition_text(found) == f"{': ' if shown else ''}{shown} (since 2026-01-14T09:30:00Z)."


@pytest.mark.parametrize(
    ("since", "severity"),
    [
        pytest.param(NOW - timedelta(minutes=10), "critical", id="as long as it takes"),
        pytest.param(NOW - timedelta(minutes=10) + timedelta(seconds=1), "warning", id="a second less"),
        pytest.param(None, "critical", id="nobody knows since when"),
    ],
)
def test_how_grave(since: datetime | None, severity: str) -> None:
    """A lasting problem is more severe."""
    assert severity_after(since, NOW, patience=timedelta(minutes=10), before="warning", after="critical") == severity


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("first\nsecond", "ValueError: first", id="the first line"),
        pytest.param("", "ValueError", id="none"),
        pytest.param("x" * 288, f"ValueError: {'x' * 288}", id="three hundred characters"),
        pytest.param("x" * 289, f"ValueError: {'x' * 288}", id="a character more"),
    ],
)
def test_an_error_on_one_line(text: str, shown: str) -> None:
    """Its kind, and as much of its first line as there is room for."""
    assert one_line(ValueError(text)) == shown


def messages_of(*findings: Finding) -> list[str]:
    """What a check that finds this comes to, in messages."""
    outcome = run_check(
        Check(name="Example", component="tests", reads=(), run=lambda _snapshot, _context: findings),
        Snapshot(),
        context(),
    )
    return [finding.message for finding in outcome.findings]


@pytest.mark.parametrize(
    ("length", "taken"), [pytest.param(256, True, id="the longest name"), pytest.param(257, False, id="one longer")]
)
def test_how_long_a_risks_name_may_be(length: int, taken: bool) -> None:
    """As long as ClusterVersion takes; the name that represents a check, too."""
    name = "X" * length
    assert (messages_of(Finding(name=name, message="It is.")) == ["It is."]) is taken
    check = Check(name="Other", component="tests", reads=(), run=lambda _snapshot, _context: (), unknown_risk=name)
    assert unknown_risk(check) == (name if taken else "Other")


@pytest.mark.parametrize(
    ("number", "end"),
    [
        pytest.param(5, "Node n4 cannot be read: odd.", id="as many as are named"),
        pytest.param(6, "; and 1 more.", id="one more"),
    ],
)
def test_how_many_unreadable_objects_are_named(number: int, end: str) -> None:
    """Five, then how many more."""
    bad = tuple(Undecodable("", f"n{each}", "odd") for each in range(number))
    check = Check(
        name="Example",
        component="tests",
        reads=(NODES,),
        run=lambda snapshot, _context: (snapshot.all(Node) and ()) or (),
    )
    (finding,) = run_check(
        check, Snapshot(objects={NODES: (node(),)}, unreadable={}, undecoded={NODES: bad}), context()
    ).findings
    assert finding.message.startswith(f"Whether Example applies to {number} objects is unknown: Node n0 cannot")
    assert finding.message.endswith(end)


def test_one_object_of_a_namespace_is_referred_to_whole() -> None:
    """Group, kind, namespace and name."""
    bad = (Undecodable("shop", "web", "odd"),)
    check = Check(
        name="Example",
        component="tests",
        reads=(NODES,),
        run=lambda snapshot, _context: (snapshot.all(Node) and ()) or (),
    )
    (finding,) = run_check(
        check, Snapshot(objects={NODES: (node(),)}, unreadable={}, undecoded={NODES: bad}), context()
    ).findings
    (resource,) = finding.resources
    assert (resource.group, resource.kind, resource.namespace, resource.name) == ("", "Node", "shop", "web")
