"""Matching rules by what Prometheus said, how long that counts, and alerts as risks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.meta_v1 import Condition
from runup.advice.decide import promql
from runup.advice.decide.promql import AlertState, Answer, BadAnswer, PrometheusState, evaluate_rules
from runup.advice.decide.risks import alert_risks
from runup.api.config_v1 import ConditionalUpdateRisk, MatchingRule, PromQL
from runup.updatestatus.decide.alerts import Alert, read_alerts

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
S = timedelta(seconds=1)


def _rule(query: str) -> MatchingRule:
    return MatchingRule(type="PromQL", promql=PromQL(promql=query))


def _known(**answers: Answer) -> PrometheusState:
    return PrometheusState(configured=True, answers=answers)


def _answer(applies: bool | None, age: timedelta = timedelta(), error: str = "") -> Answer:
    return Answer(NOW - age, applies, error)


ALWAYS = MatchingRule(type="Always")
RULES: dict[str, tuple[tuple[MatchingRule, ...], PrometheusState, str, str]] = {
    "always": ((ALWAYS,), PrometheusState(), "True", ""),
    "a query that says so": ((_rule("a"),), _known(a=_answer(True)), "True", ""),
    "a query that says no": ((_rule("a"),), _known(a=_answer(False)), "False", ""),
    "nobody to ask": ((_rule("a"),), PrometheusState(), "Unknown", "no Prometheus is configured to ask"),
    "not asked yet": ((_rule("a"),), _known(), "Unknown", "Prometheus has not answered yet"),
    "an error": ((_rule("a"),), _known(a=_answer(None, error="it is away")), "Unknown", "(it is away)"),
    "an error, then a rule that is known": ((_rule("a"), ALWAYS), _known(a=_answer(None, error="x")), "True", ""),
    "the first that is known decides": ((_rule("a"), ALWAYS), _known(a=_answer(False)), "False", ""),
    "both errors are shown": (
        (_rule("a"), _rule("b")),
        _known(a=_answer(None, error="x"), b=_answer(None, error="y")),
        "Unknown",
        "(x; y)",
    ),
    "it applied 59 s ago": ((_rule("a"),), _known(a=_answer(True, 59 * S)), "True", ""),
    "it applied a minute ago": ((_rule("a"),), _known(a=_answer(True, 60 * S)), "Unknown", "is too old"),
    "it did not apply 9 min ago": ((_rule("a"),), _known(a=_answer(False, 599 * S)), "False", ""),
    "it did not apply 10 min ago": ((_rule("a"),), _known(a=_answer(False, 600 * S)), "Unknown", "is too old"),
    "it applied an hour ago": ((_rule("a"),), _known(a=_answer(True, 3600 * S)), "Unknown", "is too old"),
    "an answer of tomorrow": ((_rule("a"),), _known(a=_answer(True, -S)), "Unknown", "is too old"),
    "a type that nobody knows": (
        (MatchingRule(type="Moon"),),
        PrometheusState(),
        "Unknown",
        "unknown matching rule type 'Moon'",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    """The first rule that can be evaluated decides; what is unknown is Unknown, with its reason."""
    matching, known, status, text = RULES[name]
    found = evaluate_rules(
        ConditionalUpdateRisk(name="R", message="m", url="https://u", matching_rules=matching), known, NOW
    )
    assert found.status == status
    assert text in found.message


DUE = {
    "it applied 29 s ago": (_answer(True, 29 * S), False),
    "it applied 30 s ago": (_answer(True, 30 * S), True),
    "it did not apply 4 min ago": (_answer(False, 299 * S), False),
    "it did not apply 5 min ago": (_answer(False, 300 * S), True),
    "an error 29 s ago": (_answer(None, 29 * S), False),
    "an error 30 s ago": (_answer(None, 30 * S), True),
    "an error an hour ago": (_answer(None, 3600 * S), True),
    "just now": (_answer(True), False),
    "it applied a day ago": (_answer(True, 86400 * S), True),
    "the clock was set back": (_answer(False, -S), True),
}


@pytest.mark.parametrize("name", DUE)
def test_when_it_is_asked_again(name: str) -> None:
    """Long before its answer stops counting."""
    answer, due = DUE[name]
    assert answer.is_due(NOW) is due


def test_every_query_once() -> None:
    """However many updates have the risk."""
    risks = [
        ConditionalUpdateRisk(name="R", message="m", url="u", matching_rules=(_rule("a"), ALWAYS, _rule("b")))
        for _ in range(2)
    ]
    assert promql.queries(risks) == ("a", "b")


@pytest.mark.parametrize("rule_type", ["Always", "Moon", "Query"])
def test_a_query_under_another_type_is_not_asked(rule_type: str) -> None:
    """Nobody knows what it would mean."""
    rule = MatchingRule(type=rule_type, promql=PromQL(promql="a"))
    assert promql.queries([ConditionalUpdateRisk(name="R", message="m", url="u", matching_rules=(rule,))]) == ()


@pytest.mark.parametrize(
    ("cluster_id", "expected"),
    [
        pytest.param("6f1c", 'up{_id="6f1c"} * on(_id) a{_id="6f1c"}', id="each place"),
        pytest.param("", 'up{_id=""} * on(_id) a{_id=""}', id="a Prometheus of one cluster"),
    ],
)
def test_a_shared_prometheus_is_asked_about_one_cluster(cluster_id: str, expected: str) -> None:
    """The update service writes an empty ID for the cluster that asks."""
    assert promql.query_for_cluster('up{_id=""} * on(_id) a{_id=""}', cluster_id) == expected


def _body(result: Any, kind: str = "vector", **more: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more}).encode()


def _sample(value: str) -> dict[str, Any]:
    return {"metric": {"a": "b"}, "value": [1.5, value]}


ANSWERS: dict[str, tuple[bytes, bool | str]] = {
    "one": (_body([_sample("1")]), True),
    "zero": (_body([_sample("0")]), False),
    "none": (_body([]), "length must be one, but is 0"),
    "two": (_body([_sample("1"), _sample("1")]), "length must be one, but is 2"),
    "another value": (_body([_sample("2")]), "must be 0 or 1"),
    "half": (_body([_sample("0.5")]), "must be 0 or 1"),
    "below zero": (_body([_sample("-1")]), "must be 0 or 1"),
    "text": (_body([_sample("often")]), "'often' is not a number"),
    "no number": (_body([_sample("NaN")]), "must be 0 or 1"),
    "a scalar": (_body([1.5, "1"], "scalar"), "invalid PromQL result type is scalar, not vector"),
    "a result of no type": (_body([_sample("1")], ""), 'executing PromQL query: unexpected value type ""'),
    "a result of an unknown type": (
        _body([_sample("1")], "wave"),
        'executing PromQL query: unexpected value type "wave"',
    ),
    "a status that nobody knows": (_body([_sample("1")]).replace(b"success", b"trouble"), "it says no more"),
    "a failure": (
        b'{"status": "error", "errorType": "bad_data", "error": "parse error"}',
        "executing PromQL query: bad_data: parse error",
    ),
    "no JSON": (b"<html>", "cannot be read"),
    "nothing": (b"{}", "it says no more"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str) -> None:
    """A vector of one sample that is 0 or 1; anything else is an error."""
    body, expected = ANSWERS[name]
    if isinstance(expected, bool):
        assert promql.read(body) is expected
        return
    with pytest.raises(BadAnswer) as caught:
        promql.read(body)
    assert expected in caught.value.message


def _alert(name: str, state: str = "firing", annotations: dict[str, str] | None = None, **labels: str) -> Alert:
    return Alert(labels={"alertname": name, **labels}, annotations=annotations or {}, state=state, active_at=NOW)


SLOW = "which may slow workload redistribution during rolling node updates."
ALERTS: dict[str, tuple[Alert, str]] = {
    "critical": (
        _alert("Bad", severity="critical", annotations={"summary": "It is bad", "description": "D", "message": "M"}),
        "critical alert Bad firing, suggesting significant cluster issues worth investigating. It is bad. "
        "The alert description is: D | M <alert does not have a runbook_url annotation>",
    ),
    "a budget": (
        _alert("PodDisruptionBudgetAtLimit", severity="warning", namespace="n", poddisruptionbudget="b"),
        "warning alert PodDisruptionBudgetAtLimit firing, which might slow node drains. Namespace=n, "
        "PodDisruptionBudget=b. PodDisruptionBudgetAtLimit. The alert has no description. "
        "<alert does not have a runbook_url annotation>",
    ),
    "a virtual machine": (
        _alert("VMCannotBeEvicted", severity="warning", annotations={"runbook_url": "https://r"}),
        f"warning alert VMCannotBeEvicted firing, {SLOW} VMCannotBeEvicted. The alert has no description. https://r",
    ),
    "one that its owner marked": (
        _alert("Mine", openShiftUpdatePrecheck="true"),
        " alert Mine firing, suggesting issues worth investigating before updating the cluster. Mine. The alert has no "
        "description. <alert does not have a runbook_url annotation>",
    ),
}


@pytest.mark.parametrize("name", ALERTS)
def test_alerts_are_risks_of_every_update(name: str) -> None:
    """By the alert's name, with its own words."""
    alert, message = ALERTS[name]
    (found,) = alert_risks.risks(AlertState(NOW, (alert,)), NOW)
    evaluated = found.evaluated()
    assert (found.everywhere, evaluated.risk.name) == (True, alert.labels["alertname"])
    assert evaluated.applies == Condition(
        type="Applies", status="True", reason="Alert:firing", message=message, last_transition_time=NOW
    )


def test_alerts_that_are_none_of_an_update_s_affair() -> None:
    """Pending, unimportant, or without a name."""
    ignored = (
        _alert("Bad", state="pending", severity="critical"),
        _alert("Watchdog", severity="none"),
        _alert("", severity="critical"),
    )
    assert list(alert_risks.risks(AlertState(NOW, ignored), NOW)) == []


@pytest.mark.parametrize(
    ("alert", "risk"),
    [
        ("etcdMembersDown", "Alert-etcdMembersDown"),
        ("my_app:down", "Alert-my-app-down"),
        ("9Lives", "Alert-9Lives"),
        ("Größe", "Alert-Gr--e"),
        ("x" * 300, f"Alert-{'x' * 250}"),
    ],
)
def test_an_alert_whose_name_is_no_name_of_a_risk_is_reported(alert: str, risk: str) -> None:
    """Alerts become risks under a derived name. The texts contain the alert's name, and acceptance uses the risk's."""
    (found,) = alert_risks.risks(AlertState(NOW, (_alert(alert, severity="critical"),)), NOW)
    assert (found.name, found.everywhere, found.message) == (risk, True, f"{alert}.")
    assert found.evaluated().applies.message.startswith(f"critical alert {alert} firing, ")


def test_instances_are_joined() -> None:
    """One risk a name, since the earliest."""
    early = replace(_alert("Bad", severity="critical", annotations={"summary": "A"}), active_at=NOW - S)
    late = _alert("Bad", severity="critical", annotations={"summary": "B"})
    (found,) = alert_risks.risks(AlertState(NOW, (late, early)), NOW)
    assert found.found is not None
    assert found.found.message.count("; critical alert Bad firing") == 1
    assert found.found.last_transition_time == NOW - S


def test_alerts_of_which_nothing_was_heard_since() -> None:
    """After a minute without an answer nobody says that they fire; that they did is Unknown, not gone."""
    known = AlertState(NOW - 60 * S, (_alert("Bad", severity="critical"),), "connection refused")
    unread, found = alert_risks.risks(known, NOW)
    assert unread.name == "AlertsUnknown"
    evaluated = found.evaluated()
    assert evaluated.applies.status == "Unknown"
    assert (
        "the alert Bad was firing when Prometheus answered last, and now: connection refused"
        in evaluated.applies.message
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        pytest.param(AlertState(), "", id="nobody was asked yet"),
        pytest.param(AlertState(error="connection refused"), "connection refused", id="never answered"),
        pytest.param(AlertState(NOW - 59 * S, (), "connection refused"), "", id="answered a moment ago"),
        pytest.param(AlertState(NOW - 60 * S, (), "connection refused"), "connection refused", id="answered long ago"),
        pytest.param(AlertState(NOW + S, (), "no route"), "no route", id="answered in the future"),
    ],
)
def test_that_nobody_tells_of_alerts_is_a_risk_of_every_update(known: AlertState, said: str) -> None:
    """An alert that began to fire meanwhile must not look like none."""
    found = [(risk.name, risk.everywhere, risk.evaluated().applies) for risk in alert_risks.risks(known, NOW)]
    assert [(name, everywhere, applies.status) for name, everywhere, applies in found] == (
        [("AlertsUnknown", True, "Unknown")] if said else []
    )
    assert all(f"the alerts could not be read: {said}" in applies.message for _, _, applies in found)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b'{"status": "error", "error": "too busy"}', "too busy", id="with a reason"),
        pytest.param(b'{"status": "error"}', "the answer says error and no more", id="without one"),
        pytest.param(b"<html>", "JSON", id="no JSON"),
        pytest.param(
            json.dumps({"status": "error", "error": "x" * 5000}).encode(), "x{900}.*more characters$", id="a long one"
        ),
        pytest.param(
            json.dumps({"data": {"alerts": [{}] * 10_001}}).encode(), "10001 alerts; the limit is 10000", id="too many"
        ),
        pytest.param(b'{"x":[' + b"1," * 400_000 + b"1]}", "values; the limit is 400000", id="a flood"),
    ],
)
def test_an_answer_that_tells_no_alerts(body: bytes, words: str) -> None:
    """It is reported from one that says that none fires."""
    with pytest.raises(codec.DecodeError, match=words):
        read_alerts(body)
    assert read_alerts(b'{"status": "success", "data": {"alerts": []}}') == ()


def _critical(number: int, **annotations: str) -> Alert:
    labels = {"alertname": f"Alert{number:03}", "severity": "critical"}
    return Alert(labels=labels, annotations=annotations, state="firing")


@pytest.mark.parametrize(("count", "more"), [pytest.param(200, False, id="all"), pytest.param(201, True, id="more")])
def test_as_many_alerts_become_risks_as_an_update_can_have(count: int, more: bool) -> None:
    """That there are more is a separate risk, and not silence."""
    found = list(alert_risks.risks(AlertState(NOW, tuple(map(_critical, range(count)))), NOW))
    names = [risk.name for risk in found if risk.name != alert_risks.UNKNOWN]
    assert names == [f"Alert{number:03}" for number in range(200)]
    shown = [risk.unknown for risk in found if risk.name == alert_risks.UNKNOWN]
    assert shown == (["alerts of 201 names fire, and 200 are listed"] if more else [])


def test_what_alerts_tell_is_short_enough_for_every_update() -> None:
    """Whatever their annotations say: each update has the risk, and is written with it."""
    shown = [_critical(0, summary="s" * 100_000, description=f"{number}" * 40_000) for number in range(3)]
    (risk,) = alert_risks.risks(AlertState(NOW, tuple(shown)), NOW)
    assert risk.found is not None
    assert max(len(risk.message), len(risk.found.message)) <= 32_768


def test_a_query_with_a_flood_of_samples_has_no_answer() -> None:
    """It is refused by the number of values, in few words."""
    sample = {"metric": {}, "value": [1, "1"]}
    body = {"status": "success", "data": {"resultType": "vector", "result": [sample] * 3000}}
    with pytest.raises(BadAnswer, match="cannot be read: it has more than 10000 values"):
        promql.read(json.dumps(body).encode())


def test_the_words_of_prometheus_are_kept_short() -> None:
    """They become part of a message for each risk."""
    with pytest.raises(BadAnswer) as caught:
        promql.read(json.dumps({"status": "error", "error": "x" * 5000}).encode())
    assert 900 < len(caught.value.message) <= 1024


def test_a_time_without_a_zone_costs_no_pass() -> None:
    """It is taken for UTC; compared with another's as it is, it would raise out of every pass while the alert fires."""
    labels = {"alertname": "EtcdDown", "severity": "critical"}
    times = ("2026-03-01T11:00:00", "2026-03-01T11:30:00Z")
    shown = [{"labels": labels, "state": "firing", "activeAt": time} for time in times]
    found = read_alerts(json.dumps({"status": "success", "data": {"alerts": shown}}).encode())
    (risk,) = alert_risks.risks(AlertState(NOW, found), NOW)
    assert risk.found is not None
    assert risk.found.last_transition_time == datetime(2026, 3, 1, 11, tzinfo=UTC)
