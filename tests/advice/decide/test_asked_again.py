"""How long what was found out counts, and when it is asked for again: at that very moment, and no earlier.

A moment of tomorrow was one before the clock was set back: nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.clusterversion.decide.world import OWN, release
from tests.factories import NOW

from runup.advice.decide.promql import AlertState, Answer
from runup.advice.decide.risks import alert_risks
from runup.advice.decide.service import Query, ServiceState, is_due
from runup.api.config_v1 import Release
from runup.applying.decide.progress import Loading
from runup.clusterversion.decide.applying import load_work
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.work import check_work, read_work
from runup.preflight.decide.deployment_steps import Trust
from runup.updatestatus.decide.alerts import Alert

MOMENT, SECOND, MINUTE = timedelta(milliseconds=1), timedelta(seconds=1), timedelta(minutes=1)
QUERY = Query(
    url="https://example.com/graph",
    channel="stable-5.0",
    architecture="amd64",
    cluster_id="6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11",
    version="5.0.0",
)
ALERT = Alert(labels={"alertname": "Broken", "severity": "critical"}, annotations={}, state="firing")


def _verified(at: datetime) -> bool:
    return bool(check_work(OWN, ReleaseCheck(trust=Trust.FAILED, at=at), NOW))


def _read(at: datetime) -> bool:
    return bool(read_work(OWN, ReleaseCheck(unreadable="no answer", read_at=at), NOW))


def _loaded(at: datetime) -> bool:
    return bool(
        load_work(Release(version="5.0.0", image=OWN), Loading(reason="RetrievePayload", error="no", at=at), NOW)
    )


def _service(at: datetime) -> bool:
    return is_due(ServiceState(query=QUERY, attempted_at=at), QUERY, now=NOW)


def _failed(times: int) -> Callable[[datetime], bool]:
    return lambda at: is_due(ServiceState(query=QUERY, attempted_at=at, failures=times), QUERY, now=NOW)


def _alerts_are_old(at: datetime) -> bool:
    (risk,) = alert_risks.risks(AlertState(at=at, alerts=(ALERT,)), NOW)
    return risk.unknown.endswith("and now: Prometheus has not answered since")


@pytest.mark.parametrize(
    ("again", "after"),
    [
        pytest.param(_verified, MINUTE, id="a signature that was refused"),
        pytest.param(_read, MINUTE, id="an image that could not be read"),
        pytest.param(_loaded, MINUTE, id="a payload that could not be loaded"),
        pytest.param(_service, 3 * MINUTE, id="the update service"),
        pytest.param(_failed(1), 5 * SECOND, id="the update service after one failure"),
        pytest.param(_failed(2), 10 * SECOND, id="after two"),
        pytest.param(_failed(6), 160 * SECOND, id="after six"),
        pytest.param(_failed(7), 3 * MINUTE, id="after seven"),
        pytest.param(_failed(100_000), 3 * MINUTE, id="after a night of them"),
        pytest.param(_alerts_are_old, MINUTE, id="the alerts"),
        pytest.param(lambda at: Answer(at, applies=True).is_due(NOW), 30 * SECOND, id="a rule that applies"),
        pytest.param(lambda at: Answer(at, applies=False).is_due(NOW), 5 * MINUTE, id="a rule that does not"),
        pytest.param(lambda at: Answer(at, error="no").is_due(NOW), 30 * SECOND, id="a rule without an answer"),
        pytest.param(lambda at: not Answer(at, applies=True).counts(NOW), MINUTE, id="that a rule applies counts"),
        pytest.param(lambda at: not Answer(at, applies=False).counts(NOW), 10 * MINUTE, id="that it does not counts"),
    ],
)
def test_when(again: Callable[[datetime], bool], after: timedelta) -> None:
    """Its age decides, to the moment."""
    ages = {-SECOND: True, 0 * SECOND: False, after - MOMENT: False, after: True}
    assert {age: again(NOW - age) for age in ages} == ages


@pytest.mark.parametrize(
    ("again", "due"),
    [
        pytest.param(lambda: check_work(OWN, None, NOW), True, id="a signature that nobody looked at"),
        pytest.param(lambda: check_work(OWN, ReleaseCheck(running=True), NOW), False, id="it is being verified"),
        pytest.param(
            lambda: check_work(OWN, ReleaseCheck(trust=Trust.VERIFIED, at=NOW - 60 * MINUTE), NOW),
            False,
            id="it was verified long ago",
        ),
        pytest.param(lambda: read_work(OWN, None, NOW), True, id="an image that nobody read"),
        pytest.param(lambda: read_work("", None, NOW), False, id="no image"),
        pytest.param(lambda: read_work(OWN, ReleaseCheck(reading=True), NOW), False, id="it is being read"),
        pytest.param(lambda: read_work(OWN, ReleaseCheck(version="5.0.0"), NOW), False, id="it was read"),
        pytest.param(
            lambda: load_work(Release(version="5.0.0", image=OWN), None, NOW), True, id="a payload that nobody loaded"
        ),
        pytest.param(
            lambda: load_work(Release(version="5.0.0", image=OWN), Loading(running=True), NOW),
            False,
            id="it is loading",
        ),
        pytest.param(
            lambda: load_work(Release(version="5.0.0", image=OWN), Loading(payload=release("5.0.0")), NOW),
            False,
            id="it was loaded",
        ),
        pytest.param(lambda: is_due(ServiceState(), QUERY, now=NOW), True, id="a service that was never asked"),
        pytest.param(
            lambda: is_due(ServiceState(query=QUERY, asking=True, attempted_at=NOW - 60 * MINUTE), QUERY, now=NOW),
            False,
            id="it is being asked",
        ),
    ],
)
def test_without_an_age(again: Callable[[], object], due: bool) -> None:
    """Nobody asks twice at a time, nor for what is known for good."""
    assert bool(again()) is due
