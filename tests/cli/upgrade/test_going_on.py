"""What the command says and sends while an update is under way, and of findings that are old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.conftest import Ran, Run, Server, cluster

from runup.cli.errors import CommandError
from runup.cli.render.text import age
from runup.cli.upgrade import going_on
from runup.cli.upgrade.preflight import notes
from runup.cli.upgrade.targets import Flags, Target, choose

OLD, NEW, OTHER = (f"quay.io/ocp/release@sha256:{letter * 64}" for letter in "abc")
SINCE = "2026-01-14T09:30:00Z"


def _entry(version: str, image: str, state: str) -> dict[str, Any]:
    done = SINCE if state == "Completed" else None
    entry = {"version": version, "image": image, "state": state, "verified": True}
    return {**entry, "startedTime": SINCE, "completionTime": done}


HISTORY = [_entry("5.0.3", NEW, "Partial"), _entry("5.0.0", OLD, "Completed")]
UPDATING = {"desired": {"version": "5.0.3", "image": NEW}, "history": HISTORY, "observedGeneration": 99}
BACK = {"architecture": "", "version": "5.0.0", "image": OLD, "force": False}
GOES_ON = "The update to 5.0.3 is under way and goes on. Take it back: runup upgrade --clear\n"
TAKEN_BACK = "Taking back the update to 5.0.3; the cluster stays at 5.0.0\n"


def _cluster(asked: dict[str, Any] | None, **status: Any) -> Any:
    spec = {"clusterID": "x", **({"desiredUpdate": asked} if asked else {})}
    return cluster({"metadata": {"generation": 3}, "spec": spec, "status": {**UPDATING, **status}})


CLEARINGS: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None, str]] = {
    "a preflight ends, the update goes on": (
        {"mode": "Preflight", "version": "5.1.0"},
        None,
        "Ended the preflight of 5.1.0\n" + GOES_ON,
    ),
    "the update's own request is removed": ({"version": "5.0.3", "image": NEW}, None, TAKEN_BACK),
    "nothing shows the update any more, so its origin is named": (None, BACK, TAKEN_BACK),
    "another request goes, the update goes on": (
        {"version": "5.1.0"},
        None,
        "Cancelled requested upgrade to 5.1.0\n" + GOES_ON,
    ),
}


@pytest.mark.parametrize("name", CLEARINGS)
def test_what_clear_means_during_an_update(name: str) -> None:
    """Ending a preflight and taking an update back are two things, and each is called what it is."""
    desired, sent, said = CLEARINGS[name]
    found = going_on.clearing(_cluster(desired))
    assert found.patch == {"spec": {"desiredUpdate": sent}}
    assert "".join(text for _, text in found.said) == said


def test_an_operator_that_is_behind_is_told_by_name() -> None:
    """What it has not seen asked for it cannot see removed."""
    found = going_on.clearing(_cluster({"version": "5.0.3"}, observedGeneration=2))
    assert found.patch == {"spec": {"desiredUpdate": BACK}}


def test_taking_back_twice_changes_nothing() -> None:
    """The request is there already; removing it now would hide it."""
    found = going_on.clearing(_cluster({"version": "5.0.0", "image": OLD}))
    assert (found.patch, found.said) == (None, (("out", "info: " + TAKEN_BACK),))


def test_the_old_version_takes_the_update_back() -> None:
    """`--to` the release that the update started from needs no list and no other flag."""
    found = going_on.back(_cluster({"version": "5.0.3"}), version="5.0.0", image="")
    assert found == Target("5.0.0", OLD, (("out", TAKEN_BACK),), takes_back=True)
    assert going_on.back(_cluster(None), version="5.1.0", image="") is None


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(
            {"history": HISTORY[1:], "desired": {"version": "5.0.0", "image": OLD}}, id="nothing is under way"
        ),
        pytest.param(
            {"history": [_entry("5.0.0", OLD, "Partial")], "desired": {"version": "5.0.0", "image": OLD}},
            id="the cluster is being installed",
        ),
    ],
)
def test_without_an_update_nothing_is_taken_back(status: dict[str, Any]) -> None:
    """The command says what it always said."""
    assert going_on.going_on(_cluster(None, **status)) is None
    assert going_on.clearing(_cluster(None, **status)).said == (("out", "info: No update in progress\n"),)


def test_a_preflight_during_an_update_says_that_it_goes_on() -> None:
    """Before the request is sent; and a request that was not accepted is told to be gone."""
    text = "".join(text for _, text in notes(_cluster({"version": "5.0.3"}), Flags(to="5.1.0")))
    assert text.startswith("warning: the update to 5.0.3 is under way and goes on; what is found now may be different")
    text = "".join(text for _, text in notes(_cluster({"version": "5.2.0"}), Flags(to="5.1.0")))
    assert "this takes the place of the request to update to 5.2.0, which was not accepted\n" in text


def test_on_a_server(run: Run, server: Server) -> None:
    """The whole way: request, clear, take back."""

    def upgrade(*words: str) -> Ran:
        return run("upgrade", "--kubeconfig", server.kubeconfig, *words)

    server.set_cluster_version(status=UPDATING, spec={"desiredUpdate": {"version": "5.0.3", "image": NEW}})
    assert "goes on" in upgrade("--mode=preflight", "--to=5.1.0").err
    assert "\nThe update to 5.0.3 goes on, whatever is asked for beside it." in upgrade().out
    assert upgrade("--clear-preflight").out == "Ended the preflight of 5.1.0\n" + GOES_ON
    assert upgrade("--clear").out == TAKEN_BACK
    assert server.cluster_version()["spec"]["desiredUpdate"] == BACK
    server.set_cluster_version(status=UPDATING, spec={"desiredUpdate": {"version": "5.0.3", "image": NEW}})
    assert upgrade("--to=5.0.0").out == TAKEN_BACK + "Requested update to 5.0.0\n"


def _offered(*verdicts: tuple[str, str, str], recommended: str, named: bool = True) -> Any:
    def risk(name: str, status: str, reason: str) -> dict[str, Any]:
        applies = {"type": "Applies", "status": status, "reason": reason, "message": f"{name} at 10:00."}
        rules = [{"type": "Always"}]
        return {
            "name": name,
            "message": "m",
            "url": "https://example.com",
            "matchingRules": rules,
            **({"conditions": [{**applies, "lastTransitionTime": SINCE}]} if named else {}),
        }

    verdict = {"type": "Recommended", "status": "Unknown", "reason": recommended, "message": "Why.", **_TIME}
    entry = {
        "release": {"version": "5.1.0", "image": OTHER},
        "risks": [risk(*verdict) for verdict in verdicts],
        "conditions": [verdict],
    }
    return cluster(
        {"spec": {"clusterID": "x"}, "status": {"desired": {"version": "5.0.0"}, "conditionalUpdates": [entry]}}
    )


_TIME = {"lastTransitionTime": SINCE}
INFORMS = {
    "old findings": (
        ("A", "Unknown", "PreflightOutdated"),
        "PreflightOutdated",
        "check again with runup upgrade --mode",
    ),
    "a preflight that failed": (("PreflightIncomplete", "Unknown", "PreflightFailed"), "PreflightFailed", "has failed"),
    "one that goes on": (("PreflightInProgress", "Unknown", "PreflightRunning"), "PreflightRunning", "waits for it"),
}


@pytest.mark.parametrize("named", [True, False], ids=["risks have verdicts", "the older API"])
@pytest.mark.parametrize("case", INFORMS)
def test_what_only_informs_is_a_warning(case: str, named: bool) -> None:
    """`--to` goes, says why one may not want to, and how to know better."""
    verdict, reason, words = INFORMS[case]
    found = choose(_offered(verdict, recommended=reason, named=named), Flags(to="5.1.0"))
    assert isinstance(found, Target)
    assert (found.version, found.image) == ("5.1.0", OTHER)
    assert [stream for stream, _ in found.said] == ["err"]
    assert words in found.said[0][1]


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        pytest.param([("A", "Unknown", "PreflightOutdated"), ("B", "True", "Match")], "MultipleReasons", id="another"),
        pytest.param([("A", "Unknown", "ReportStale")], "ReportStale", id="a silent target"),
        pytest.param([("A", "Unknown", "PreflightPartial")], "PreflightPartial", id="could not be told"),
    ],
)
def test_what_holds_an_update_up_is_refused_as_ever(verdicts: list[tuple[str, str, str]], reason: str) -> None:
    """oc's refusal, and its flag."""
    with pytest.raises(CommandError, match="--allow-not-recommended"):
        choose(_offered(*verdicts, recommended=reason), Flags(to="5.1.0"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s ago"), (119, "119 s ago"), (120, "2 min ago"), (7199, "119 min ago"), (7200, "2 h ago")],
)
def test_an_age(seconds: int, text: str) -> None:
    """In its largest unit; a clock that is ahead makes no negative age."""
    now = datetime(2026, 1, 14, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == text
    assert age(now + timedelta(seconds=5), now) == "0 s ago"
    assert age(now - timedelta(days=12, hours=3), now) == "12 days ago"
