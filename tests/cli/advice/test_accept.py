"""`upgrade accept`: oc's texts, its order, and a warning for names that nothing carries."""

from __future__ import annotations

import pytest
from tests.cli.commands import Run, Server

from runup.advice.decide.acceptance_change import check_names, parse_change, unknown_names

USAGE = {
    "nothing": ([], "no positional arguments given"),
    "two arguments": (["A", "B"], "multiple positional arguments given"),
    "both flags": (["--clear", "--replace"], "--clear and --replace are mutually exclusive"),
    "clear with a name": (["--clear", "A", "B"], 'unknown command "A B"'),
    "an empty item": (["A,,B"], 'illegal risk ""'),
    "a lone minus": (["A,-"], 'illegal risk "-"'),
    "in and out": (["B,A,A-,B-"], "requested risks with both Risk and Risk-: A,B"),
    "replace and remove": (["--replace", "A,B-"], "The suffix '-' on risks is not allowed if --replace is specified"),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage(name: str, run: Run) -> None:
    """Each mistake is a usage error that names where the help is, before any connection."""
    words, message = USAGE[name]
    ran = run("upgrade", "accept", *words)
    help_ = "See 'runup upgrade accept -h' for help and examples"
    assert (ran.code, ran.out, ran.err) == (1, "", f"error: {message}\n{help_}\n")


CHANGES = {
    "added at the end, sorted": (["D,C"], False, False, ("B", "A"), ("B", "A", "C", "D")),
    "already there": (["A"], False, False, ("B", "A"), ("B", "A")),
    "removed by suffix": (["A-"], False, False, ("B", "A"), ("B",)),
    "removed and added": (["C,B-"], False, False, ("B", "A"), ("A", "C")),
    "replaced, sorted": (["B,A"], True, False, ("C",), ("A", "B")),
    "cleared": ([], False, True, ("A",), ()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str) -> None:
    """Existing names keep their order; new names are sorted."""
    words, replace, clear, before, after = CHANGES[name]
    assert parse_change(words, replace=replace, clear=clear).applied(before) == after


NAMES = {
    "a blank and a mark": ("bad name!", "see them with `runup upgrade --include-not-recommended`. "),
    "an empty-looking one": ("\u200b", "see them with `runup upgrade --include-not-recommended`. "),
    "a typo with a mark": ("Dual_Stack!Incompatible", 'did you mean "DualStackIncompatible"? '),
    "too long": ("R" * 257, "see them with `runup upgrade --include-not-recommended`. "),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_no_risk_can_be_called(name: str, run: Run, server: Server) -> None:
    """Nothing is changed, and the nearest name, or where to look, is reported."""
    word, way_out = NAMES[name]
    known = {"name": "DualStackIncompatible", "message": "m", "url": "https://x", "matchingRules": [{"type": "Always"}]}
    server.set_cluster_version(
        status={"desired": {"version": "5.0.0", "image": "x"}, "conditionalUpdateRisks": [known]}
    )
    ran = run("upgrade", "accept", word, "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: no risk can be called ")
    assert ran.err.endswith(f"names are letters, digits, dots and dashes; {way_out}Nothing was changed\n")
    assert "desiredUpdate" not in server.cluster_version()["spec"]


def test_a_name_that_an_update_carries_can_be_accepted_whatever_it_is() -> None:
    """Others name risks, too; a name that is accepted already stays."""
    check_names(parse_change(["odd name!,old one!"], replace=False, clear=False), ["old one!"], ["odd name!"])
    check_names(parse_change(["R" * 256], replace=False, clear=False), [], [])


def test_unknown_names_get_the_nearest() -> None:
    """A typo is reported with the most similar name; a name that is already accepted is not reported again."""
    change = parse_change(["Zzz,DualStackIncompatibel,Old"], replace=False, clear=False)
    said = list(unknown_names(change, ["Older", "Old"], ["DualStackIncompatible", "Other"]))
    assert said == [
        'warning: no update of this cluster has a risk "DualStackIncompatibel" now; '
        'did you mean "DualStackIncompatible"?\n',
        'warning: no update of this cluster has a risk "Zzz" now\n',
    ]


LEFT: dict[str, tuple[list[str], tuple[str, ...], tuple[str, ...]]] = {
    "what is taken back": (["A-"], ("A", "B"), ("A",)),
    "what was not there is not there afterwards": (["C-"], ("A",), ("C",)),
    "each of several, once": (["B-,C-,A-"], ("A", "B"), ("A", "B", "C")),
    "nothing where something is added": (["C"], ("A",), ()),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_accepted_no_more(name: str) -> None:
    """Whose records go."""
    words, before, left = LEFT[name]
    assert parse_change(words, replace=False, clear=False).left(before) == left


@pytest.mark.parametrize(
    ("replace", "left"), [pytest.param(True, ("A", "C"), id="replaced"), pytest.param(False, (), id="added")]
)
def test_what_another_takes_the_place_of(replace: bool, left: tuple[str, ...]) -> None:
    """All but those that are named again."""
    assert parse_change(["B,D"], replace=replace, clear=False).left(("A", "B", "C")) == left


def test_a_flag_that_there_is_not(run: Run) -> None:
    """No risk begins with two dashes."""
    ran = run("upgrade", "accept", "A", "--untill=30d")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: unknown flag: --untill")


RISK = {
    "name": "RiskA",
    "message": "m",
    "url": "https://example.com/a",
    "matchingRules": [{"type": "Always"}],
    "conditions": [
        {
            "type": "Applies",
            "status": "True",
            "reason": "R",
            "message": "m",
            "lastTransitionTime": "2026-01-14T09:30:00Z",
        }
    ],
}


def test_a_story_of_accepting(run: Run, server: Server) -> None:
    """Added, unchanged, removed in both spellings, cleared; the rest of the request is left alone."""
    server.set_cluster_version(
        spec={"desiredUpdate": {"version": "5.2.0", "mode": "Preflight"}}, status={"conditionalUpdateRisks": [RISK]}
    )

    def accept(*words: str) -> tuple[int, str, str]:
        ran = run("--kubeconfig", server.kubeconfig, "upgrade", "accept", *words)
        return ran.code, ran.out, ran.err

    unknown = 'warning: no update of this cluster has a risk "RiskB" now; did you mean "RiskA"?\n'
    assert accept("RiskB,RiskA") == (0, "info: Accept risks are [RiskA, RiskB]\n", unknown)
    assert server.cluster_version()["spec"]["desiredUpdate"] == {
        "version": "5.2.0",
        "mode": "Preflight",
        "acceptRisks": [{"name": "RiskA"}, {"name": "RiskB"}],
    }
    assert accept("--replace", "RiskB,RiskA") == (0, "info: Accept risks are not changed\n", "")
    assert accept("RiskB-") == (0, "info: Accept risks are [RiskA]\n", "")
    assert accept("-RiskA") == (0, "info: Accept risks are []\n", "")
    assert accept("--replace", "X, Y,RiskA")[:2] == (0, "info: Accept risks are [RiskA, X, Y]\n")
    assert accept(" -X,-Y,-RiskA") == (0, "info: Accept risks are []\n", "")
    assert server.cluster_version()["spec"]["desiredUpdate"] == {"version": "5.2.0", "mode": "Preflight"}
    assert accept("--clear") == (0, "info: Accept risks are not changed\n", "")


@pytest.mark.slow
def test_a_server_without_the_field(run: Run, old_server: Server) -> None:
    """Where acceptRisks would be dropped silently, nothing is said to be accepted."""
    old_server.set_cluster_version()
    ran = run("upgrade", "accept", "RiskA", "--kubeconfig", old_server.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[-1] == (
        'error: unable to accept risks: strict decoding error: unknown field "spec.desiredUpdate.acceptRisks"'
    )
    assert "desiredUpdate" not in old_server.cluster_version()["spec"]
