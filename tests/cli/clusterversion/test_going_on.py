"""Tests what `upgrade` prints and sends while an update is in progress, and how it treats old findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.commands import Ran, Run, Server, cluster

from kubekit.error_types import InputError
from runup.advice.decide.update_in_progress import update_in_progress
from runup.cli.render.text import age
from runup.clusterversion.decide import upgrade_request
from runup.clusterversion.decide.upgrade_request import notes
from runup.clusterversion.decide.upgrade_target import Flags, Target, choose

OLD, NEW, OTHER = (f"quay.io/ocp/release@sha256:{letter * 64}" for letter in "abc")
NEW_ELSEWHERE = f"mirror.example/release@sha256:{'b' * 64}"
SINCE = "2026-01-14T09:30:00Z"


def _entry(version: str, image: str, state: str) -> dict[str, Any]:
    done = SINCE if state == "Completed" else None
    entry = {"version": version, "image": image, "state": state, "verified": True}
    return {**entry, "startedTime": SINCE, "completionTime": done}


HISTORY = [_entry("5.0.3", NEW, "Partial"), _entry("5.0.0", OLD, "Completed")]
UPDATING = {"desired": {"version": "5.0.3", "image": NEW}, "history": HISTORY, "observedGeneration": 99}
BACK = {"architecture": "", "version": "5.0.0", "image": OLD, "force": False}
GOES_ON = "The update to 5.0.3 has begun and continues. Revert it: runup upgrade --to=5.0.0\n"
CLEARED = "Cleared the update field\n" + GOES_ON
TAKEN_BACK = "Asking to go from 5.0.3, whose update has begun, back to 5.0.0\n"
UNCHANGED = "nothing is sent"


def _cluster(asked: dict[str, Any] | None, **status: Any) -> Any:
    spec = {"clusterID": "x", **({"desiredUpdate": asked} if asked else {})}
    return cluster({"metadata": {"generation": 3}, "spec": spec, "status": {**UPDATING, **status}})


CLEARINGS: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | str | None, str]] = {
    "a preflight ends, the update goes on": (
        {"mode": "Preflight", "version": "5.1.0"},
        None,
        "Ended the preflight of 5.1.0\n" + GOES_ON,
    ),
    "a preflight of what is under way ends, the update goes on": (
        {"mode": "Preflight", "version": "5.0.3"},
        None,
        "Ended the preflight of 5.0.3\n" + GOES_ON,
    ),
    "the update's own request is removed, and it goes on": ({"version": "5.0.3", "image": NEW}, None, CLEARED),
    "the update's own request by its digest elsewhere": ({"version": "x", "image": NEW_ELSEWHERE}, None, CLEARED),
    "a request by image goes, the update goes on": (
        {"image": OTHER},
        None,
        f"Cancelled requested upgrade to {OTHER}\n" + GOES_ON,
    ),
    "a request that names nothing is no request": ({"acceptRisks": [{"name": "A"}]}, UNCHANGED, GOES_ON),
    "nothing is asked for any more": (None, UNCHANGED, GOES_ON),
    "the way back is no longer asked for": (
        {"version": "5.0.0", "image": OLD},
        None,
        "Cancelled requested upgrade to 5.0.0\n" + GOES_ON,
    ),
    "another request goes, the update goes on": (
        {"version": "5.1.0"},
        None,
        "Cancelled requested upgrade to 5.1.0\n" + GOES_ON,
    ),
}


@pytest.mark.parametrize("name", CLEARINGS)
def test_what_clear_means_during_an_update(name: str) -> None:
    """Shows what was removed, and that the update continues."""
    desired, sent, said = CLEARINGS[name]
    found = upgrade_request.plan_clearing(_cluster(desired))
    assert found.patch == (None if sent == UNCHANGED else {"spec": {"desiredUpdate": sent}})
    assert "".join(text for _, text in found.said) == said


def test_no_way_back_over_a_minor_version() -> None:
    """Neither command promises one."""
    minor = {"version": "5.1.0", "image": NEW}
    history = [_entry("5.1.0", NEW, "Partial"), HISTORY[1]]
    seen = _cluster(minor, desired=minor, history=history)
    none = "5.0.0 is of another minor version, and no way back to it is supported\n"
    said = "".join(text for _, text in upgrade_request.plan_clearing(seen).said)
    assert said == f"Cleared the update field\nThe update to 5.1.0 has begun and continues. {none}"
    found = upgrade_request.way_back(seen, version="5.0.0", image="")
    assert found is not None
    assert found.said[0][1].endswith(f"back to 5.0.0\nwarning: {none}")


def test_accepted_risks_alone_are_no_update_to_cancel() -> None:
    """They stay, and the way to end them is named."""
    found = upgrade_request.plan_clearing(_cluster({"acceptRisks": [{"name": "A"}, {"name": "B"}]}, history=[]))
    kept = "accepted risks are kept: A, B (runup upgrade accept --clear ends that)"
    assert (found.patch, found.said) == (None, (("out", f"info: No update in progress; {kept}\n"),))


def test_the_old_version_takes_the_update_back() -> None:
    """`--to` the release that the update started from needs no list and no other flag."""
    found = upgrade_request.way_back(_cluster({"version": "5.0.3"}), version="5.0.0", image="")
    assert found == Target("5.0.0", OLD, (("err", TAKEN_BACK),), takes_back=True)
    assert upgrade_request.way_back(_cluster(None), version="5.1.0", image="") is None
    assert upgrade_request.way_back(_cluster(None), version="4.9.0", image="") is None


@pytest.mark.parametrize(
    ("image", "meant"),
    [
        pytest.param(OLD, True, id="the image"),
        pytest.param(f"mirror.example/release@sha256:{'a' * 64}", True, id="its digest elsewhere"),
        pytest.param(OTHER, False, id="another"),
        pytest.param("quay.io/ocp/release:5.0.0", False, id="a tag"),
        pytest.param(OLD.rpartition("@")[2], False, id="the digest without a place"),
    ],
)
def test_the_old_image_takes_the_update_back(image: str, meant: bool) -> None:
    """As its version does; an image counts by its digest, and a version that is typed next to it does not."""
    found = upgrade_request.way_back(_cluster(None), version="5.0.0", image=image)
    assert found == (Target("5.0.0", OLD, (("err", TAKEN_BACK),), takes_back=True) if meant else None)


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
        pytest.param({"desired": {"version": "5.0.4", "image": OTHER}}, id="a later release is desired by now"),
        pytest.param({"desired": {"version": "5.0.1", "image": OTHER}}, id="an earlier release is desired by now"),
        pytest.param({"history": [_entry("5.0.3", NEW, "Completed"), HISTORY[1]]}, id="it is complete"),
        pytest.param({"history": [HISTORY[0], _entry("5.0.0", NEW, "Completed")]}, id="the image is the same"),
        pytest.param({"history": [HISTORY[0], _entry("5.0.0", "", "Completed")]}, id="no image to go back to"),
        pytest.param({"history": [HISTORY[0], _entry("5.0.0", OLD, "Partial")]}, id="nothing was ever complete"),
        pytest.param({"history": []}, id="no history"),
    ],
)
def test_without_an_update_nothing_is_taken_back(status: dict[str, Any]) -> None:
    """The command says what it always said."""
    assert update_in_progress(_cluster(None, **status)) is None
    assert upgrade_request.plan_clearing(_cluster(None, **status)).said == (("out", "info: No update in progress\n"),)


def test_another_request_goes_by_its_name() -> None:
    """Where no update is under way, and the cluster has not what was asked for."""
    found = upgrade_request.plan_clearing(_cluster({"version": "5.1.0"}, history=[]))
    assert (found.patch, found.said) == (
        {"spec": {"desiredUpdate": None}},
        (("out", "Cancelled requested upgrade to 5.1.0\n"),),
    )


def test_back_is_to_what_was_complete_last() -> None:
    """Not to what was tried in between, nor to what came before."""
    history = [HISTORY[0], _entry("5.0.2", OTHER, "Partial"), HISTORY[1], _entry("4.9.0", OTHER, "Completed")]
    found = update_in_progress(_cluster(None, history=history))
    assert found is not None
    assert (found.to.version, found.back_to.version, found.back_to.image) == ("5.0.3", "5.0.0", OLD)


ASKED: dict[str, tuple[dict[str, Any] | None, bool]] = {
    "nothing": (None, True),
    "the update": ({"version": "5.0.3"}, False),
    "the update, by its image alone": ({"image": NEW_ELSEWHERE}, False),
    "a later version": ({"version": "5.1.0"}, True),
    "an earlier version": ({"version": "5.0.0"}, True),
    "its version by another image": ({"version": "5.0.3", "image": OTHER}, True),
    "a preflight of the same release": ({"version": "5.0.3", "mode": "Preflight"}, True),
    "names of risks alone": ({"acceptRisks": [{"name": "A"}]}, True),
}


@pytest.mark.parametrize("name", ASKED)
def test_an_update_that_nobody_would_see(name: str) -> None:
    """It is reported wherever the spec does not ask for it."""
    asked, reported = ASKED[name]
    text = "\nThe update to 5.0.3 continues, whatever else is requested. Revert it: runup upgrade --to=5.0.0\n"
    assert upgrade_request.unshown_update(_cluster(asked)) == ((("out", text),) if reported else ())
    assert upgrade_request.unshown_update(_cluster(asked, history=[])) == ()


UNDER_WAY = "warning: the update to 5.0.3 is under way and continues; new findings may differ when it is done\n"
IN_ITS_PLACE = "warning: this takes the place of the request to update to {}, which was not accepted\n"
BEFORE_A_PREFLIGHT: dict[str, tuple[dict[str, Any] | None, dict[str, Any], list[str]]] = {
    "an update under way": ({"version": "5.0.3"}, {}, [UNDER_WAY]),
    "its request was removed": (None, {"observedGeneration": 2}, [UNDER_WAY]),
    "the way back a moment ago": ({"version": "5.0.0"}, {}, [UNDER_WAY, IN_ITS_PLACE.format("5.0.0")]),
    "asked for a moment ago": ({"version": "5.0.3"}, {"observedGeneration": 2}, [UNDER_WAY]),
    "another by its version": ({"version": "5.1.0"}, {}, [UNDER_WAY, IN_ITS_PLACE.format("5.1.0")]),
    "another by its image": ({"image": OTHER}, {}, [UNDER_WAY, IN_ITS_PLACE.format(OTHER)]),
    "a preflight": ({"version": "5.1.0", "mode": "Preflight"}, {}, [UNDER_WAY]),
    "names of risks alone": ({"acceptRisks": [{"name": "A"}]}, {}, [UNDER_WAY]),
    "what the cluster has": ({"version": "5.0.3"}, {"history": []}, []),
    "what the cluster has not": ({"version": "5.1.0"}, {"history": []}, [IN_ITS_PLACE.format("5.1.0")]),
    "nothing, and nothing under way": (None, {"history": [], "observedGeneration": 2}, []),
}


@pytest.mark.parametrize("name", BEFORE_A_PREFLIGHT)
def test_what_a_preflight_takes_the_place_of(name: str) -> None:
    """Each thing that the request ends, or does not end, is reported."""
    asked, status, lines = BEFORE_A_PREFLIGHT[name]
    assert upgrade_request.before_a_preflight(_cluster(asked, **status)) == tuple(("err", line) for line in lines)


def test_a_preflight_during_an_update_says_that_it_goes_on() -> None:
    """Before the request is sent; and a request that was not accepted is asked to be gone."""
    text = "".join(text for _, text in notes(_cluster({"version": "5.0.3"}), Flags(to="5.1.0")))
    assert text.startswith("warning: the update to 5.0.3 is under way and continues; new findings may differ")
    text = "".join(text for _, text in notes(_cluster({"version": "5.2.0"}), Flags(to="5.1.0")))
    assert "this takes the place of the request to update to 5.2.0, which was not accepted\n" in text


WAY_BACK = {
    "desired": {"version": "5.0.0", "image": OLD},
    "history": [_entry("5.0.0", OLD, "Partial"), *HISTORY],
    "observedGeneration": 99,
}
ON_ITS_WAY = "The way back to 5.0.0 has begun and continues. Follow it: runup upgrade status\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param({"version": "5.0.0", "image": OLD}, "Cleared the update field\n" + ON_ITS_WAY, id="its request"),
        pytest.param({"version": "5.1.0"}, "Cancelled requested upgrade to 5.1.0\n" + ON_ITS_WAY, id="another request"),
        pytest.param(None, ON_ITS_WAY, id="nothing is asked for any more"),
    ],
)
def test_what_clear_means_on_the_way_back(asked: dict[str, Any] | None, said: str) -> None:
    """The cluster left the release that it returns to, so it is not still there."""
    found = upgrade_request.plan_clearing(_cluster(asked, **WAY_BACK))
    assert "".join(text for _, text in found.said) == said


def test_a_way_back_is_told_beside_what_is_asked_for() -> None:
    """And is not taken back itself."""
    seen = _cluster({"version": "5.1.0", "mode": "Preflight"}, **WAY_BACK)
    reported = "\nThe way back to 5.0.0 continues, whatever else is requested. Follow it: runup upgrade status\n"
    assert upgrade_request.unshown_update(seen) == (("out", reported),)
    text = "warning: the way back to 5.0.0 is under way and continues; new findings may differ when it is done"
    assert upgrade_request.before_a_preflight(seen) == (("err", f"{text}\n"),)
    assert upgrade_request.way_back(seen, version="5.0.0", image="") is None


@pytest.mark.slow
def test_a_way_back_on_a_server(run: Run, server: Server) -> None:
    """No command says that the cluster is still at the release that it left, or is at it already, and no more."""

    def upgrade(*words: str) -> Ran:
        return run("upgrade", "--kubeconfig", server.kubeconfig, *words)

    asked = {"desiredUpdate": {"version": "5.0.0", "image": OLD}}
    server.set_cluster_version(status=WAY_BACK, spec=asked)
    assert upgrade("--to=5.0.0").out == "info: Cluster is already at version 5.0.0\n" + ON_ITS_WAY
    said = [upgrade().out, upgrade("--clear").out, upgrade("--clear").out, upgrade().out]
    assert said[1:3] == ["Cleared the update field\n" + ON_ITS_WAY, ON_ITS_WAY]
    assert "The way back to 5.0.0 continues" in said[3]
    server.set_cluster_version(status=UPDATING, spec={"desiredUpdate": {"version": "5.0.3", "image": NEW}})
    assert upgrade("--to=5.0.3").out == "info: Cluster is already at version 5.0.3\n" + GOES_ON


def test_on_a_server(run: Run, server: Server) -> None:
    """The whole way: request, clear, take back."""

    def upgrade(*words: str) -> Ran:
        return run("upgrade", "--kubeconfig", server.kubeconfig, *words)

    server.set_cluster_version(status=UPDATING, spec={"desiredUpdate": {"version": "5.0.3", "image": NEW}})
    assert "continues" in upgrade("--mode=preflight", "--to=5.1.0").err
    assert "\nThe update to 5.0.3 continues, whatever else is requested." in upgrade().out
    assert upgrade("--clear-preflight").out == "Ended the preflight of 5.1.0\n" + GOES_ON
    assert upgrade("--clear").out == GOES_ON
    server.set_cluster_version(status=UPDATING, spec={"desiredUpdate": {"version": "5.0.3", "image": NEW}})
    assert upgrade("--clear").out == CLEARED
    assert "desiredUpdate" not in server.cluster_version()["spec"]
    done = upgrade("--to=5.0.0")
    assert done.out == "Requested update to 5.0.0\n"
    assert done.err.startswith(TAKEN_BACK)
    assert server.cluster_version()["spec"]["desiredUpdate"] == BACK


def _offered(
    *verdicts: tuple[str, str, str], recommended: str, named: bool = True, accepted: Sequence[str] = ()
) -> Any:
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
        {
            "spec": {"clusterID": "x", "desiredUpdate": {"acceptRisks": [{"name": name} for name in accepted]}},
            "status": {"desired": {"version": "5.0.0"}, "conditionalUpdates": [entry]},
        }
    )


_TIME = {"lastTransitionTime": SINCE}
INFORMS = {
    "old findings": (
        ("A", "Unknown", "PreflightOutdated"),
        "PreflightOutdated",
        "what the preflight of 5.1.0 found is old, and nobody has looked since; check again with runup upgrade "
        "--mode=preflight --to=5.1.0",
    ),
    "a preflight that failed": (
        ("PreflightIncomplete", "Unknown", "PreflightFailed"),
        "PreflightFailed",
        "the preflight of 5.1.0 has failed, so its risks are not known",
    ),
    "one that goes on": (
        ("PreflightInProgress", "Unknown", "PreflightRunning"),
        "PreflightRunning",
        "the preflight of 5.1.0 has not finished; the update waits for it, at most its time limit; to go without it: "
        "runup upgrade --clear-preflight",
    ),
}


@pytest.mark.parametrize("named", [True, False], ids=["risks have verdicts", "the older API"])
@pytest.mark.parametrize("case", INFORMS)
def test_what_only_informs_is_a_warning(case: str, named: bool) -> None:
    """`--to` goes, says why one may not want to, and how to know better."""
    verdict, reason, words = INFORMS[case]
    found = choose(_offered(verdict, recommended=reason, named=named), Flags(to="5.1.0"))
    assert isinstance(found, Target)
    assert (found.version, found.image) == ("5.1.0", OTHER)
    risk = f"{verdict[0]}: {verdict[0]} at 10:00." if named else "Recommended: Why."
    assert found.said == (("err", f"warning: {words}\n  {risk}\n"),)


def test_each_reason_is_one_warning_with_its_risks() -> None:
    """Risks that do not apply, and accepted ones, are not shown."""
    verdicts = [
        ("A", "Unknown", "PreflightOutdated"),
        ("B", "Unknown", "PreflightRunning"),
        ("C", "Unknown", "PreflightOutdated"),
        ("D", "False", "PreflightOutdated"),
        ("E", "True", "Match"),
    ]
    offered = _offered(*verdicts, recommended="MultipleReasons", accepted=["E"])
    found = choose(offered, Flags(to="5.1.0"))
    assert [text.partition("\n")[2] for _, text in found.said] == [
        "  A: A at 10:00.\n  C: C at 10:00.\n",
        "  B: B at 10:00.\n",
    ]
    assert choose(offered, Flags(to="5.1.0", allow_not_recommended=True)) == found


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        pytest.param([("A", "Unknown", "PreflightOutdated"), ("B", "True", "Match")], "MultipleReasons", id="another"),
        pytest.param([("A", "Unknown", "ReportStale")], "ReportStale", id="a silent target"),
        pytest.param([("A", "Unknown", "PreflightPartial")], "PreflightPartial", id="could not be told"),
        pytest.param([("A", "False", "PreflightOutdated")], "PreflightOutdated", id="nothing that applies"),
    ],
)
def test_what_holds_an_update_up_is_refused_as_ever(verdicts: list[tuple[str, str, str]], reason: str) -> None:
    """oc's refusal, and its flag."""
    with pytest.raises(InputError, match="--allow-not-recommended"):
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
