"""Asks Prometheus (or Thanos) what matching rules and alerts need; `state` is what is known.

The budget: eight queries at once, none longer than half a minute, each as often as `runup.advice.decide.promql` says
and no oftener. So a hundred rules are known after seconds, and cost the monitoring less than a dashboard does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import urlencode

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.kube.auth import Auth
from kubekit.kube.clock import Clock
from runup.advice.decide import promql
from runup.advice.decide.promql import Alerting, Answer, BadAnswer, Known
from runup.process.monitoring import FAILURES, Monitoring
from runup.updatestatus.decide.alerts import PATH as ALERTS
from runup.updatestatus.decide.alerts import read_alerts

AT_ONCE = 8
TIMEOUT_S = 30.0
# It says what is wrong with a query in the body of a 400 or 422.
TOLD = (200, 400, 422)
# How long answers that are there wait for those that are not, before anybody is told.
TELL_S = 1.0


class Prometheus:
    """`url` is without the path, empty where there is none; `auth` its credential, `ca_file` more authorities.

    `hosted`: many clusters share it, and a query is asked for one of them. `alerts`: whether those are asked for, too.
    """

    def __init__(
        self,
        url: str,
        auth: Auth,
        clock: Clock,
        on_change: Callable[[], None],
        *,
        ca_file: str = "",
        hosted: bool = False,
        alerts: bool = True,
    ) -> None:
        self.state = Known(configured=bool(url))
        self._server = Monitoring(url, auth, clock, asker="ClusterVersionOperator", ca_file=ca_file)
        self._clock = clock
        self._on_change = on_change
        self._with_alerts = alerts
        self._wanted: tuple[str, ...] = ()
        self._hosted = hosted
        self._cluster_id = ""
        self._alerts_at: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    def want(self, queries: Sequence[str], cluster_id: str = "") -> None:
        """Keep the answers to `queries` and the alerts fresh; to be said again on every pass. Others are forgotten."""
        self._wanted, self._cluster_id = tuple(queries), cluster_id
        kept = {query: answer for query, answer in self.state.answers.items() if query in self._wanted}
        if len(kept) != len(self.state.answers):
            self.state = replace(self.state, answers=kept)
        if self._server.url and (self._task is None or self._task.done()) and self._due():
            self._task = asyncio.create_task(self._round(), name="prometheus")

    async def close(self) -> None:
        """Give up what is being asked."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _due(self) -> list[str]:
        """What is to be asked; empty text stands for the alerts."""
        now = self._clock.now()
        answers = self.state.answers
        due = [query for query in self._wanted if query not in answers or answers[query].is_due(now)]
        # The longest without an answer first.
        due.sort(key=lambda query: answers[query].at.timestamp() if query in answers else 0.0)
        asked = self._alerts_at
        alerts = asked is None or not 0 <= (now - asked).total_seconds() < promql.AGAIN[True].total_seconds()
        return ["", *due] if alerts and self._with_alerts else due

    async def _round(self) -> None:
        slots = asyncio.Semaphore(AT_ONCE)
        waiting = {asyncio.create_task(self._one(query, slots)) for query in self._due()}
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=TELL_S if waiting else None)
                if done:
                    self._on_change()
        finally:
            for task in waiting:
                task.cancel()

    async def _one(self, query: str, slots: asyncio.Semaphore) -> None:
        async with slots:
            if query:
                answer = await self._answer(query)
                self.state = replace(self.state, answers={**self.state.answers, query: answer})
            else:
                await self._alerts()

    async def _answer(self, query: str) -> Answer:
        try:
            # The tenancy proxy maps POST to `create`, so a query is in the address.
            asked = promql.of_cluster(query, self._cluster_id) if self._hosted else query
            path = f"{promql.PATH}?{urlencode({'query': asked})}"
            body = await self._server.get(path, within_s=TIMEOUT_S, statuses=TOLD)
            return Answer(self._clock.now(), promql.read(body))
        except BadAnswer as error:
            return Answer(self._clock.now(), error=error.message)
        except FAILURES as error:
            return Answer(self._clock.now(), error=self._server.why("", error))

    async def _alerts(self) -> None:
        known = self.state.alerting
        try:
            found = read_alerts(await self._server.get(ALERTS, within_s=TIMEOUT_S, statuses=TOLD))
            known = Alerting(self._clock.now(), found)
        except (*FAILURES, codec.DecodeError) as error:
            known = replace(known, error=self._server.why(ALERTS, error))
        self._alerts_at = self._clock.now()
        self.state = replace(self.state, alerting=known)
