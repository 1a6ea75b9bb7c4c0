"""The engine: one check's trouble stays its own, and never looks like a pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.factories import context, node, snapshot

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Node, Pod
from kubekit.api.meta_v1 import Object
from kubekit.api.scheme import resource_of
from runup.api.config_v1 import ClusterVersion
from runup.checks.control.logged_checks import run_logged
from runup.checks.decide import engine
from runup.checks.decide.engine import PARTIAL, evaluate, run_check
from runup.checks.decide.model import Applies, Check, CheckFunction, Context, Finding, Snapshot

NODES = (resource_of(Node),)


def check(run: CheckFunction, name: str = "Example", unknown_risk: str = "") -> Check:
    """A check that reads nodes."""
    return Check(name=name, component="tests", reads=NODES, run=run, unknown_risk=unknown_risk)


def _looks(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    snapshot.listed(NODES[0])
    yield from ()


def _clear(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield from ()


def _applies(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield Finding(name="ExampleApplies", message="It applies.")


def _unknown(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield Finding(name="ExampleUnknown", message="Whether it applies could not be told.", applies=Applies.UNKNOWN)


def _both(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield from _unknown(_snapshot, _context)
    yield from _applies(_snapshot, _context)


def _finds_then_crashes(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield Finding(name="ExampleApplies", message="It applies.")
    raise RuntimeError("first line\nsecond line")


def _crashes(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield from (Finding(name="Example", message=f"{number}") for number in (1 / 0,))


def _reads_what_it_did_not_name(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield from (Finding(name="Example", message=pod.metadata.name) for pod in snapshot.all(Pod))


def _bad_name(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield Finding(name="no_such_name", message="Something.")


def _no_message(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield Finding(name="Example", message="  ")


def _bad_url(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield Finding(name="Example", message="Something.", url="javascript:alert(1)")


def _not_a_finding(_snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    yield "Example"  # type: ignore[misc]


pytestmark = pytest.mark.failing_checks


@pytest.mark.parametrize(
    ("run", "result", "risks", "message"),
    [
        (_clear, "Clear", [], ""),
        (_applies, "Applies", [("ExampleApplies", Applies.YES)], "1 found"),
        (_unknown, "Unknown", [("ExampleUnknown", Applies.UNKNOWN)], "1 unknown"),
        (
            _both,
            "Applies",
            [("ExampleUnknown", Applies.UNKNOWN), ("ExampleApplies", Applies.YES)],
            "1 found, 1 unknown",
        ),
        (
            _finds_then_crashes,
            "Unknown",
            [("ExampleApplies", Applies.YES), ("Example", Applies.UNKNOWN)],
            "the check failed: RuntimeError: first line.",
        ),
        (
            _crashes,
            "Unknown",
            [("Example", Applies.UNKNOWN)],
            "the check failed: ZeroDivisionError: division by zero.",
        ),
        (
            _reads_what_it_did_not_name,
            "Unknown",
            [("Example", Applies.UNKNOWN)],
            "pods could not be listed: it was not read; the check must name it in `reads`.",
        ),
        (
            _bad_name,
            "Unknown",
            [("Example", Applies.UNKNOWN)],
            "the check failed: BadFinding: risk name 'no_such_name' does not match ^[A-Z][A-Za-z0-9.-]*$.",
        ),
        (
            _no_message,
            "Unknown",
            [("Example", Applies.UNKNOWN)],
            "the check failed: BadFinding: risk Example has no message.",
        ),
        (
            _bad_url,
            "Unknown",
            [("Example", Applies.UNKNOWN)],
            "the check failed: BadFinding: risk Example has the url 'javascript:alert(1)', which is not http or https.",
        ),
        (
            _not_a_finding,
            "Unknown",
            [("Example", Applies.UNKNOWN)],
            "the check failed: BadFinding: it yielded str, not a Finding.",
        ),
    ],
    ids=[
        "nothing found is clear",
        "a risk applies",
        "only what could not be told is not clear",
        "a risk applies and another could not be told",
        "what was found before a crash stays",
        "a crash before the first risk",
        "a kind that the check did not name",
        "a name that ClusterVersion refuses",
        "a risk without words",
        "a link that is none",
        "something that is no finding",
    ],
)
def test_outcomes(run: CheckFunction, result: str, risks: list[tuple[str, Applies]], message: str) -> None:
    """Whatever a check does, its outcome says it, and Unknown carries a risk."""
    only_nodes = Snapshot(objects={NODES[0]: (node(),)})
    outcome = run_check(check(run), only_nodes, context())
    assert result == outcome.result
    assert risks == [(finding.name, finding.applies) for finding in outcome.findings]
    line = run.__code__.co_firstlineno + (2 if run is _finds_then_crashes else 1)
    place = f" (decide/{Path(__file__).name}, line {line})"
    is_bug = "the check failed" in message and "BadFinding" not in message
    assert outcome.message == (f"{message[:-1]}{place}." if is_bug else message)
    assert ("Traceback (most recent call last)" in outcome.traceback) is is_bug


def test_logs_the_traceback_of_a_check_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    """The developer of a check sees where it failed; other checks' tracebacks are separate."""
    outcomes = [run_logged(check(run, name), snapshot(), context()) for run, name in ((_clear, "A"), (_crashes, "B"))]
    assert [outcome.result for outcome in outcomes] == ["Clear", "Unknown"]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("checks", "ERROR")
    assert record.getMessage().startswith("check B failed:\nTraceback (most recent call last)")
    assert record.getMessage().endswith("ZeroDivisionError: division by zero")


def test_raises_what_a_check_raised_where_bugs_are_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in all other tests: a check that fails is a bug, and its traceback says where."""
    monkeypatch.setattr(engine, "reraise_bugs", True)
    with pytest.raises(ZeroDivisionError):
        run_check(check(_crashes), snapshot(), context())


def test_what_could_not_be_read_is_named() -> None:
    """The check's Unknown risk names the missing rule."""
    lacking = "the service account needs get, list and watch on nodes"
    risk = run_check(
        check(lambda snapshot, _context: snapshot.all(Node)), snapshot(unreadable={Node: lacking}), context()
    ).findings[0]
    assert risk.message == f"Whether Example applies is unknown: nodes could not be listed: {lacking}."
    assert risk.reason == PARTIAL
    assert risk.applies is Applies.UNKNOWN


def _each_node(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    for each in snapshot.all(Node):
        yield Finding(name="ExampleApplies", message=f"{each.metadata.name}.")


def _the_version(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    if snapshot.get(ClusterVersion, "version") is None:
        yield Finding(name="ExampleApplies", message="There is none.")


@pytest.mark.parametrize(
    ("run", "kind", "name", "result", "messages"),
    [
        (
            _each_node,
            Node,
            "b",
            "Applies",
            ["a.", "Whether Example applies to the object is unknown: Node b cannot be read: it is odd."],
        ),
        (
            _looks,
            Node,
            "b",
            "Unknown",
            ["Whether Example applies to the object is unknown: Node b cannot be read: it is odd."],
        ),
        (
            _the_version,
            ClusterVersion,
            "version",
            "Unknown",
            ["Whether Example applies to the object is unknown: ClusterVersion version cannot be read: it is odd."],
        ),
        (_looks, Pod, "b", "Clear", []),
        (_clear, Node, "b", "Clear", []),
    ],
    ids=[
        "the others are answered",
        "nothing found is not clear",
        "the one that is asked for is not absent",
        "one of a kind that the check does not read",
        "one of a kind that it did not ask for on this cluster",
    ],
)
def test_one_object_that_could_not_be_read_costs_one_answer(
    run: CheckFunction, kind: type[Object], name: str, result: str, messages: list[str]
) -> None:
    """It is Unknown, by name and with what is wrong with it."""
    reads = (resource_of(Node), resource_of(ClusterVersion))
    seen = snapshot(node("a"), undecoded={kind: name})
    outcome = run_check(
        Check(name="Example", component="tests", reads=reads, run=run, unknown_risk="ExampleUnknown"), seen, context()
    )
    assert (outcome.result, [finding.message for finding in outcome.findings]) == (result, messages)
    unknown = [finding for finding in outcome.findings if finding.applies is Applies.UNKNOWN]
    assert [finding.name for finding in unknown] == ["ExampleUnknown"] * len(unknown)
    assert [item.name for finding in unknown for item in finding.resources] == [name] * len(unknown)


PARTLY = "the dump has only the namespace shop"
UNLISTED = f"Whether Example applies to what was not listed is unknown: Node: {PARTLY}."
ABSENT = f"Node b is not in the list, which is incomplete: {PARTLY}"


def _looks_elsewhere(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    snapshot.all(ClusterVersion)
    yield from ()


def _finds_among_nodes(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    for node_ in snapshot.all(Node):
        yield Finding(name="ExampleRisk", message=f"It is so of {node_.metadata.name}.")


def _wants(name: str) -> CheckFunction:
    def run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
        if snapshot.get(Node, name) is None:
            yield Finding(name="ExampleRisk", message="There is no such node.")

    return run


@pytest.mark.parametrize(
    ("run", "nodes", "result", "messages"),
    [
        pytest.param(_finds_among_nodes, "", "Unknown", [UNLISTED], id="nothing found is not clear"),
        pytest.param(_finds_among_nodes, "a", "Applies", ["It is so of a.", UNLISTED], id="what is found is reported"),
        pytest.param(_wants("b"), "a", "Unknown", [f"Whether Example applies is unknown: {ABSENT}."],
                     id="what is not in it may be there all the same"),
        pytest.param(_wants("a"), "a", "Unknown", [UNLISTED], id="what is in it is there"),
        pytest.param(_looks_elsewhere, "a", "Clear", [], id="a kind that nobody asked for"),
    ],
)  # fmt: skip
def test_a_kind_that_is_known_in_part(run: CheckFunction, nodes: str, result: str, messages: list[str]) -> None:
    """The objects that were read count; the rest is Unknown, with the server's reason."""
    reads = (resource_of(Node), resource_of(ClusterVersion))
    seen = snapshot(*(node(name) for name in nodes), incomplete={Node: PARTLY})
    outcome = run_check(
        Check(name="Example", component="tests", reads=reads, run=run, unknown_risk="ExampleUnknown"), seen, context()
    )
    assert (outcome.result, [finding.message for finding in outcome.findings]) == (result, messages)


def test_many_objects_that_could_not_be_read_are_one_finding() -> None:
    """Named as far as a message holds, all of them in the resources."""
    bad = tuple(Undecodable("", f"n{number}", "odd") for number in range(300))
    outcome = run_check(
        check(_looks), Snapshot(objects={NODES[0]: ()}, unreadable={}, undecoded={NODES[0]: bad}), context()
    )
    (finding,) = outcome.findings
    assert finding.message.startswith("Whether Example applies to 300 objects is unknown: Node n0 cannot be read")
    assert finding.message.endswith("; and 295 more.")
    assert len(finding.resources) == 300


def test_a_check_for_other_updates_is_skipped() -> None:
    """A check that is not for this source or target does not run, and says so."""
    skipped = Check(
        name="Example",
        component="tests",
        reads=NODES,
        run=_finds_then_crashes,
        applies_to=lambda context: context.target.major > 5,
    )
    outcome = run_check(skipped, snapshot(), context())
    assert outcome.result == "Skipped"
    assert outcome.findings == ()
    assert outcome.message == "Not for an update from 5.0.0 to 5.2.0."


def test_one_broken_check_leaves_the_others_alone() -> None:
    """Every check has its outcome, in the order given."""
    outcomes = evaluate(
        (check(_clear, "A"), check(_finds_then_crashes, "B"), check(_applies, "C")), snapshot(), context()
    )
    assert [(outcome.check.name, outcome.result) for outcome in outcomes] == [
        ("A", "Clear"),
        ("B", "Unknown"),
        ("C", "Applies"),
    ]


@pytest.mark.parametrize(
    ("name", "unknown_risk", "expected"),
    [
        ("Example", "", "Example"),
        ("Example", "ExampleUnknown", "ExampleUnknown"),
        ("my check", "", "PreflightCheckUnknown"),
    ],
    ids=["the check's own", "the one it names", "neither is a name of a risk"],
)
def test_the_risk_of_a_check_that_could_not_tell(name: str, unknown_risk: str, expected: str) -> None:
    """It is the one that the check names, else the check's name, else one that ClusterVersion takes."""
    outcome = run_check(check(lambda _snapshot, _context: 1 / 0, name, unknown_risk), snapshot(), context())
    assert [expected] == [finding.name for finding in outcome.findings]
