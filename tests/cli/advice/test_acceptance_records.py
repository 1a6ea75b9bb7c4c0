"""`accept --reason --until`: what is recorded next to the API's names, renewed and dropped."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.clusterversion.between import Between
from tests.cli.commands import Run, Server
from tests.cli.rights import LOOKER, let_looker

from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.api.meta_v1 import Status
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.request import Request
from runup.advice.decide import acceptance, acceptance_change
from runup.advice.decide.acceptance import Acceptance
from runup.cli.result_output import ResultPrinter
from runup.clusterversion.control import upgrade as accepting

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

ENDS = {
    "30d": datetime(2026, 3, 31, 12, tzinfo=UTC),
    "12h": datetime(2026, 3, 2, 0, tzinfo=UTC),
    "90m": datetime(2026, 3, 1, 13, 30, tzinfo=UTC),
    "2026-03-01": datetime(2026, 3, 2, tzinfo=UTC),
    "2026-03-01T12:00:01Z": datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC),
    "2026-12-31T12:00:00Z": datetime(2026, 12, 31, 12, tzinfo=UTC),
    "2026-12-31T12:00:00+02:00": datetime(2026, 12, 31, 10, tzinfo=UTC),
}


@pytest.mark.parametrize("text", ENDS)
def test_ends(text: str) -> None:
    """A span from now, a day to its end, or a moment."""
    assert acceptance_change.parse_until(text, NOW) == ENDS[text]


REFUSED = {
    "soon": "must be a span or a time",
    "0d": "must be a span or a time",
    "2026-12-31T12:00:00": "must be a span or a time",
    "999999d": "must be a span or a time",
    "2026-02-30": "must be a span or a time",
    "9999-12-31": "must be a span or a time",
    "2026-02-28": "is over already; it is 2026-03-01T12:00:00Z now",
    "2026-03-01T12:00:00Z": "is over already; it is 2026-03-01T12:00:00Z now",
}


@pytest.mark.parametrize("text", [*REFUSED, "30x"])
def test_ends_that_are_none(text: str) -> None:
    """The message names what was typed, and how it may look."""
    if text == "999999d":
        # Inside what a date can be: some 2700 years.
        assert acceptance_change.parse_until(text, NOW).year > 4000
        return
    with pytest.raises(InputError, match=REFUSED.get(text, "must be a span or a time")) as caught:
        acceptance_change.parse_until(text, NOW)
    assert text in caught.value.message


OLD = acceptance.encode_record(Acceptance(name="A", reason="once", by="kim", at=NOW, until=NOW - timedelta(hours=1)))
LIVE = acceptance.encode_record(Acceptance(name="A", reason="still", by="kim", at=NOW, until=NOW + timedelta(hours=1)))
PLANS: dict[str, tuple[dict[str, str], list[str], list[str], Acceptance, set[str], set[str]]] = {
    "nothing is told": ({}, ["A"], [], Acceptance(name=""), set(), set()),
    "a reason": ({}, ["A"], [], Acceptance(name="", reason="why"), {"A"}, set()),
    "an end for two": ({}, ["A", "B"], [], Acceptance(name="", until=NOW), {"A", "B"}, set()),
    "what ended is renewed": ({"A": OLD}, ["A"], [], Acceptance(name=""), {"A"}, set()),
    "what still counts stays": ({"A": LIVE}, ["A"], [], Acceptance(name=""), set(), set()),
    "what is taken back goes": ({"A": LIVE}, [], ["A"], Acceptance(name=""), set(), {"A"}),
    "what another replaced goes": ({"A": LIVE}, ["B"], ["A"], Acceptance(name="", reason="why"), {"B"}, {"A"}),
    "what somebody else accepts just now stays": (
        {"A": LIVE},
        ["B"],
        ["C"],
        Acceptance(name="", reason="why"),
        {"B"},
        set(),
    ),
    "what cannot be read goes with its name": ({"A": "?"}, [], ["A"], Acceptance(name=""), set(), {"A"}),
    "what cannot be read is renewed": ({"A": "?"}, ["A"], [], Acceptance(name=""), {"A"}, set()),
}


@pytest.mark.parametrize("name", PLANS)
def test_what_is_written(name: str) -> None:
    """Records follow the list of names and never precede it."""
    found, add, left, new, written, dropped = PLANS[name]
    assert set(acceptance_change.plan_records(found, add, new, now=NOW)) == written
    assert set(acceptance_change.removal_data(found, left)) == dropped


NODE, OTHER = "Node worker-1", "Node worker-2"
COVERING = acceptance.encode_record(
    Acceptance(name="A", reason="still", by="kim", at=NOW, until=NOW + timedelta(hours=1)).covering([NODE])
)
OBJECTS: dict[str, tuple[dict[str, str], tuple[str, ...], Acceptance | None]] = {
    "the objects are kept without any flag": (
        {},
        (NODE,),
        Acceptance(name="A", reason="", by="ann", at=NOW).covering([NODE]),
    ),
    "nothing is known of objects": ({}, (), None),
    "the same objects once more": ({"A": COVERING}, (NODE,), None),
    "nothing is known of its objects any more": ({"A": COVERING}, (), None),
    "more objects; reason and end stay": (
        {"A": COVERING},
        (OTHER, NODE),
        Acceptance(name="A", reason="still", by="ann", at=NOW, until=NOW + timedelta(hours=1)).covering([NODE, OTHER]),
    ),
    "a record from before objects were kept": (
        {"A": LIVE},
        (NODE,),
        Acceptance(name="A", reason="still", by="ann", at=NOW, until=NOW + timedelta(hours=1)).covering([NODE]),
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_record_keeps_what_the_risk_was_accepted_for(name: str) -> None:
    """Accepting again keeps the existing acceptance and its end."""
    found, objects, expected = OBJECTS[name]
    written = acceptance_change.plan_records(
        found, ["A"], Acceptance(name="", by="ann", at=NOW), now=NOW, objects={"A": objects}
    )
    read = acceptance.read({key: text for key, text in written.items() if text is not None})
    assert read.get("A") == expected


@pytest.fixture
def place(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with a separate operator namespace, without records."""
    namespace = "records"
    monkeypatch.setenv("CVO_NAMESPACE", namespace)
    with contextlib.suppress(AlreadyExists):
        server.client.send(calls.create(resource_of(Namespace), {"metadata": {"name": namespace}}))
    with contextlib.suppress(NotFound):
        server.client.send(calls.delete(resource_of(ConfigMap), acceptance.NAME, namespace))
    return server


def _stored(server: Server) -> dict[str, Any]:
    found = server.client.send(calls.get_raw(resource_of(ConfigMap), acceptance.NAME, "records"))
    return {key: json.loads(value) for key, value in (found.get("data") or {}).items()}


RISK = {"name": "RiskA", "message": "m", "url": "https://example.com/a", "matchingRules": [{"type": "Always"}]}
APPLIES = {"type": "Applies", "status": "True", "reason": "Match", "message": "m"}
CARRIED = {**RISK, "conditions": [{**APPLIES, "lastTransitionTime": "2026-01-14T09:30:00Z"}]}
OFFER = {"release": {"version": "5.1.0", "image": "x"}, "risks": [CARRIED], "riskNames": ["RiskA"]}


@pytest.mark.slow
def test_a_story(run: Run, place: Server) -> None:
    """Accepted with why and until when, shown, pointed out where it does nothing, taken back."""
    desired = {"version": "5.0.0", "image": "y"}
    place.set_cluster_version(status={"desired": desired, "conditionalUpdates": [OFFER]})

    def upgrade(*words: str) -> Any:
        return run("upgrade", *words, "--kubeconfig", place.kubeconfig)

    ran = upgrade("accept", "RiskA", "--reason", "fixed in 5.1.4", "--until", "30d")
    assert (ran.code, ran.out) == (0, "info: Accept risks are [RiskA]\n")
    stored = _stored(place)["RiskA"]
    assert (stored["name"], stored["reason"], stored["by"]) == ("RiskA", "fixed in 5.1.4", "kubernetes-admin")
    assert datetime.fromisoformat(stored["until"]) - datetime.fromisoformat(stored["at"]) == timedelta(days=30)
    assert upgrade("accept", "RiskB").out == "info: Accept risks are [RiskA, RiskB]\n"
    assert set(_stored(place)) == {"RiskA"}

    shown = upgrade("recommend")
    table = shown.out.partition("\nAccepted risks:\n\n")[2].splitlines()
    assert table[1].split()[:2] == ["RiskA", "yes"]
    assert table[1].endswith("kubernetes-admin   fixed in 5.1.4")
    assert table[2].split() == ["RiskB", "yes,", "unused"]
    assert (
        "warning: RiskB is accepted, and no update of this cluster carries it now; did you mean RiskA?\n" in shown.err
    )

    data = json.loads(upgrade("recommend", "-o", "json").out)
    assert [(row["name"], row["counts"], row["carried"]) for row in data["acceptances"]] == [
        ("RiskA", True, True),
        ("RiskB", True, False),
    ]
    answer = json.loads(upgrade("accept", "RiskA-", "-o", "json").out)
    assert (answer["action"], answer["changed"], answer["acceptRisks"]) == ("accept", True, ["RiskB"])
    assert _stored(place) == {}


def test_what_ended_is_accepted_anew(run: Run, place: Server) -> None:
    """The API's list is the same; the record that held it up goes."""
    old = acceptance.encode_record(Acceptance(name="RiskA", reason="once", by="kim", at=NOW, until=NOW))
    metadata = {"name": acceptance.NAME, "namespace": "records", "labels": acceptance.LABELS}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"RiskA": old}}
    place.client.send(calls.create(resource_of(ConfigMap), body))
    place.set_cluster_version(
        spec={"desiredUpdate": {"acceptRisks": [{"name": "RiskA"}]}}, status={"conditionalUpdates": [OFFER]}
    )
    shown = run("upgrade", "recommend", "--kubeconfig", place.kubeconfig)
    assert "warning: the acceptance of RiskA ended at 2026-03-01T12:00:00Z and does not count any more\n" in shown.err
    ran = run("upgrade", "accept", "RiskA", "--kubeconfig", place.kubeconfig)
    assert ran.out == "info: Accept risks are [RiskA]\n"
    assert "until" not in _stored(place)["RiskA"]
    assert _stored(place)["RiskA"]["by"] == "kubernetes-admin"
    again = run("upgrade", "accept", "RiskA", "--kubeconfig", place.kubeconfig)
    assert again.out == "info: Accept risks are not changed\n"


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        pytest.param(("--reason", "CHG-7"), {"reason"}, id="a reason alone"),
        pytest.param(("--until", "1d"), {"until"}, id="an end alone"),
    ],
)
def test_who_accepted_is_recorded_with_either(run: Run, place: Server, words: tuple[str, ...], keys: set[str]) -> None:
    """And where the operator looks for it."""
    place.set_cluster_version(status={"conditionalUpdates": [OFFER]})
    assert run("upgrade", "accept", "RiskA", *words, "--kubeconfig", place.kubeconfig).code == 0
    stored = _stored(place)["RiskA"]
    assert set(stored) == {"name", "by", "at", *keys}
    assert stored["by"] == "kubernetes-admin"
    found = place.client.send(calls.get_raw(resource_of(ConfigMap), acceptance.NAME, "records"))
    assert found["metadata"]["labels"] == acceptance.LABELS


def test_what_changes_and_what_is_recorded_are_told_apart(run: Run, place: Server) -> None:
    """A record alone is news, a name alone is, and neither is neither."""
    place.set_cluster_version(
        spec={"desiredUpdate": {"acceptRisks": [{"name": "RiskA"}]}}, status={"conditionalUpdates": [OFFER]}
    )

    def accept(*words: str) -> tuple[bool, bool, str]:
        answer = json.loads(run("upgrade", "accept", *words, "-o", "json", "--kubeconfig", place.kubeconfig).out)
        assert (answer["patch"] is not None) is answer["changed"]
        return answer["changed"], answer["recorded"], answer["messages"][0]

    assert accept("RiskA") == (False, False, "info: Accept risks are not changed")
    assert accept("RiskA", "--reason", "CHG-7") == (False, True, "info: Accept risks are [RiskA]")
    assert accept("RiskB") == (True, False, "info: Accept risks are [RiskA, RiskB]")
    assert accept("RiskB-") == (True, False, "info: Accept risks are [RiskA]")
    assert accept("RiskC-") == (False, False, "info: Accept risks are not changed")
    place.patch_spec(desiredUpdate=None)
    assert accept("RiskA-") == (False, True, "info: Accept risks are []")
    assert accept("RiskA-") == (False, False, "info: Accept risks are not changed")


def test_the_length_of_a_reason(run: Run, place: Server) -> None:
    """Surrounding blanks are removed; one character too many is refused, and nothing is accepted."""
    place.set_cluster_version()
    ran = run("upgrade", "accept", "A", "--reason", " " + 1025 * "x", "--kubeconfig", place.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert "error: --reason is longer than 1024 characters; give the gist and a link\n" in ran.err
    assert "desiredUpdate" not in place.cluster_version()["spec"]
    assert run("upgrade", "accept", "A", "--reason", f" {1024 * 'x'} ", "--kubeconfig", place.kubeconfig).code == 0
    assert _stored(place)["A"]["reason"] == 1024 * "x"


CLUSTER_VERSIONS = "clusterversions.config.openshift.io"


def test_a_reason_that_may_not_be_recorded(run: Run, place: Server) -> None:
    """That the place is there and closed is no reason to go without."""
    before = place.set_cluster_version()
    let_looker(place.client, {CLUSTER_VERSIONS: ("get", "patch")})
    ran = run("upgrade", "accept", "A", "--reason", "CHG-7", "--as", LOOKER, "--kubeconfig", place.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    said = ran.err.splitlines()[-1]
    assert said.startswith(
        "error: unable to record why and until when, so nothing was accepted: ConfigMap records/accepted-risks: "
    )
    assert "forbidden" in said
    assert place.cluster_version()["spec"] == before["spec"]


def test_records_that_may_not_be_taken_away(run: Run, place: Server) -> None:
    """They accept nothing by themselves: the name goes, and that they stay is reported."""
    place.set_cluster_version()
    run("upgrade", "accept", "A", "--reason", "CHG-7", "--kubeconfig", place.kubeconfig)
    let_looker(place.client, {CLUSTER_VERSIONS: ("get", "patch"), "configmaps": ("get",)})
    ran = run("upgrade", "accept", "A-", "--as", LOOKER, "--kubeconfig", place.kubeconfig)
    assert (ran.code, ran.out) == (0, "info: Accept risks are []\n")
    assert ran.err.startswith("warning: the records of what is accepted no more stay: ")
    assert set(_stored(place)) == {"A"}


def test_a_preflight_counts_what_counts(run: Run, place: Server) -> None:
    """Why is shown with the risk; once the time is over the risk is in the way again, and the exit code says so."""
    state = {"lastTransitionTime": "2026-01-14T09:30:00Z", "reason": "R", "message": "m", "status": "True"}
    place.set_cluster_version(
        spec={"desiredUpdate": {"version": "5.1.0", "mode": "Preflight", "acceptRisks": [{"name": "RiskA"}]}},
        status={"conditionalUpdates": [OFFER], "conditions": [{**state, "type": "PreflightCompleted"}]},
    )

    def shown(until: datetime) -> tuple[int, bool, bool]:
        record = acceptance.encode_record(
            Acceptance(name="RiskA", reason="network team, CHG-7712", by="kim", at=NOW, until=until)
        )
        metadata = {"name": acceptance.NAME, "namespace": "records"}
        change = {"metadata": metadata, "data": {"RiskA": record}}
        place.client.send(calls.apply(resource_of(ConfigMap), change, field_manager="test", force=True))
        ran = run("preflight", "show", "-o", "json", "--kubeconfig", place.kubeconfig)
        (risk,) = json.loads(ran.out)["risks"]
        page = run("upgrade", "-o", "html", "--kubeconfig", place.kubeconfig).out
        assert ("network team, CHG-7712" in page) is risk["accepted"]
        overview = json.loads(run("upgrade", "-o", "json", "--kubeconfig", place.kubeconfig).out)
        return ran.code, risk["accepted"], overview["preflight"]["risks"][0]["accepted"]

    now = datetime.now(UTC)
    assert shown(now + timedelta(days=1)) == (0, True, True)
    assert shown(now - timedelta(days=1)) == (2, False, False)


def test_a_reason_without_a_place_is_told(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The risk is accepted all the same: nothing that counts is lost."""
    monkeypatch.setenv("CVO_NAMESPACE", "nowhere-to-record")
    server.set_cluster_version(status={"conditionalUpdates": [OFFER]})
    ran = run("upgrade", "accept", "RiskA", "--reason", "CHG-7", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out) == (0, "info: Accept risks are [RiskA]\n")
    assert ran.err == "warning: why could not be recorded: there is no namespace nowhere-to-record\n"


def test_nothing_is_accepted_without_its_record(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without its end would count for ever."""
    monkeypatch.setenv("CVO_NAMESPACE", "nowhere-to-record")
    server.set_cluster_version()
    ran = run("upgrade", "accept", "RiskA", "--until", "1d", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert "unable to record why and until when, so nothing was accepted: " in ran.err
    assert "desiredUpdate" not in server.cluster_version()["spec"]


def test_a_reason_needs_a_risk(run: Run) -> None:
    """Before any connection."""
    ran = run("upgrade", "accept", "A-", "--reason", "x")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "error: --reason says why risks are accepted; name some")
    ran = run("upgrade", "accept", "A-", "--until", "1d")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "error: --until says how long risks are accepted; name some")


def test_records_that_somebody_made_by_hand_are_watched(run: Run, place: Server) -> None:
    """The operator watches labelled objects, so the end of an acceptance must be on a labelled object."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": acceptance.NAME, "namespace": "records"}}
    place.client.send(calls.create(resource_of(ConfigMap), body))
    place.set_cluster_version(status={"conditionalUpdates": [OFFER]})
    ran = run("upgrade", "accept", "RiskA", "--until", "1d", "--kubeconfig", place.kubeconfig)
    assert ran.code == 0
    found = place.client.send(calls.get_raw(resource_of(ConfigMap), acceptance.NAME, "records"))
    assert found["metadata"]["labels"] == acceptance.LABELS


def _carry_out(client: SyncClient, arguments: str, why: accepting.AcceptanceReason) -> None:
    change = acceptance_change.parse_change([arguments], replace=False, clear=False)
    accepting.accept_risks(change, client, why, ResultPrinter("accept", None).say)


@pytest.mark.parametrize(
    ("words", "after"),
    [
        pytest.param("RiskB", ["RiskC", "RiskB"], id="accepting keeps what another took back taken back"),
        pytest.param("RiskA-", ["RiskC"], id="taking back keeps what another accepted"),
    ],
)
def test_two_at_once(place: Server, words: str, after: list[str]) -> None:
    """The other takes RiskA back and accepts RiskC for a day; neither is lost."""
    place.set_cluster_version(spec={"desiredUpdate": {"acceptRisks": [{"name": "RiskA"}]}})

    def other() -> None:
        _carry_out(place.client, "RiskA-,RiskC", accepting.AcceptanceReason("", "1d"))

    with Between(other, ("PATCH", "clusterversions"), place.client.config) as client:
        _carry_out(client, words, accepting.AcceptanceReason())
    assert [risk["name"] for risk in place.cluster_version()["spec"]["desiredUpdate"]["acceptRisks"]] == after
    assert set(_stored(place)) == {"RiskC"}


def test_two_who_accept_their_first_at_once(place: Server) -> None:
    """The records of the second go to those of the first, which stay."""
    place.set_cluster_version()

    def other() -> None:
        _carry_out(place.client, "RiskC", accepting.AcceptanceReason("CHG-7"))

    with Between(other, ("POST", "configmaps"), place.client.config) as client:
        _carry_out(client, "RiskB", accepting.AcceptanceReason("", "1d"))
    assert {name: set(record) & {"reason", "until"} for name, record in _stored(place).items()} == {
        "RiskB": {"until"},
        "RiskC": {"reason"},
    }
    assert [risk["name"] for risk in place.cluster_version()["spec"]["desiredUpdate"]["acceptRisks"]] == [
        "RiskC",
        "RiskB",
    ]


def test_a_server_that_does_not_tell_who_asks(place: Server) -> None:
    """As before Kubernetes 1.28: the rest is recorded."""
    place.set_cluster_version()

    def unknown() -> None:
        raise NotFound(Status(code=404, message="no such path"), Request(method="POST", path="/"))

    with Between(unknown, ("POST", "selfsubjectreviews"), place.client.config) as client:
        _carry_out(client, "RiskA", accepting.AcceptanceReason("CHG-7"))
    stored = _stored(place)["RiskA"]
    assert (stored["reason"], "by" in stored) == ("CHG-7", False)
