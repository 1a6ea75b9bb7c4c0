"""Queries Prometheus (or Thanos) for matching rules and alerts; `state` holds the answers.

At most eight queries run at once, each for at most half a minute, and each as often as `runup.advice.decide.promql`
says. So a hundred rules are evaluated within seconds, and cost the monitoring stack less than a dashboard does.
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
from runup.process.cluster_egress import EgressSource, environment_egress
from runup.process.monitoring import FAILURES, Monitoring
from runup.process.threads import in_thread
from runup.updatestatus.decide.alerts import PATH as ALERTS
from runup.updatestatus.decide.alerts import read_alerts

AT_ONCE = 8
TIMEOUT_S = 30.0
# Prometheus describes an error of the query in the body of a 400 or 422.
ANSWERED = (200, 400, 422)
# Seconds for which answers are collected before `on_change` is called.
TELL_S = 1.0


class Prometheus:
    """The client of Prometheus. `url` is without the path, empty without Prometheus, `ca_file` adds a CA.

    `hosted`: many clusters share it, and a query must select one of them. `alerts`: whether alerts are read,
    too. `egress` returns how the server is reached.
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
        egress: EgressSource = environment_egress,
    ) -> None:
        self.state = promql.PrometheusState(configured=bool(url))
        self._server = Monitoring(url, auth, clock, asker="ClusterVersionOperator", ca_file=ca_file, egress=egress)
        self._clock = clock
        self._on_change = on_change
        self._with_alerts = alerts
        self._wanted: tuple[str, ...] = ()
        self._hosted = hosted
        self._cluster_id = ""
        self._alerts_at: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    def want(self, queries: Sequence[str], cluster_id: str = "") -> None:
        """Keeps the answers to `queries` and the alerts fresh, and forgets others. To be called again on every pass."""
        self._wanted, self._cluster_id = tuple(queries), cluster_id
        # Without this, the state would grow with every rule that changes.
        kept_answers = {query: answer for query, answer in self.state.answers.items() if query in self._wanted}
        if len(kept_answers) != len(self.state.answers):
            self.state = replace(self.state, answers=kept_answers)
        if self._server.url and (self._task is None or self._task.done()) and self._due_queries():
            self._task = asyncio.create_task(self._send_due_queries(), name="prometheus")

    async def close(self) -> None:
        """Cancels the queries in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _due_queries(self) -> list[str]:
        """Returns the queries to send now; an empty string represents the alerts."""
        now = self._clock.now()
        answers = self.state.answers
        due = [query for query in self._wanted if query not in answers or answers[query].is_due(now)]
        # The query that has been without an answer for longest comes first.
        due.sort(key=lambda query: answers[query].at.timestamp() if query in answers else 0.0)
        last_asked = self._alerts_at
        alerts = (
            last_asked is None
            or not 0 <= (now - last_asked).total_seconds() < promql.QUERY_INTERVAL[True].total_seconds()
        )
        return ["", *due] if alerts and self._with_alerts else due

    async def _send_due_queries(self) -> None:
        """Sends all queries that are due, a few at a time, and reports what has arrived every `TELL_S` seconds."""
        # Bounds the load on the monitoring stack, however many rules there are.
        slots = asyncio.Semaphore(AT_ONCE)
        waiting = {asyncio.create_task(self._run_query(query, slots)) for query in self._due_queries()}
        try:
            while waiting:
                completed, waiting = await asyncio.wait(waiting, timeout=TELL_S if waiting else None)
                if completed:
                    self._on_change()
        finally:
            for task in waiting:
                task.cancel()

    async def _run_query(self, query: str, slots: asyncio.Semaphore) -> None:
        """Sends one query and stores its answer; the empty query requests the alerts."""
        async with slots:
            if query:
                answer = await self._evaluate(query)
                self.state = replace(self.state, answers={**self.state.answers, query: answer})
            else:
                await self._alerts()

    async def _evaluate(self, query: str) -> promql.Answer:
        """Returns the answer to one PromQL query; a failure is an answer that says why."""
        try:
            # The tenancy proxy maps POST to `create`, so a query is in the address.
            expression = promql.query_for_cluster(query, self._cluster_id) if self._hosted else query
            path = f"{promql.PATH}?{urlencode({'query': expression})}"
            body = await self._server.get(path, within_s=TIMEOUT_S, statuses=ANSWERED, limit=promql.MAX_BYTES)
            return promql.Answer(self._clock.now(), promql.read(body))
        except promql.BadAnswer as error:
            return promql.Answer(self._clock.now(), error=error.message)
        except FAILURES as error:
            return promql.Answer(self._clock.now(), error=f"{promql.EXECUTING}{self._server.why('', error)}")

    async def _alerts(self) -> None:
        """Reads the alerts; when that fails, the known ones stay and the state says why."""
        alert_state = self.state.alerting
        try:
            body = await self._server.get(ALERTS, within_s=TIMEOUT_S, statuses=ANSWERED)
            # In a thread: the event loop has a lease to renew.
            alert_state = promql.AlertState(
                self._clock.now(), await in_thread(lambda: read_alerts(body), "read alerts")
            )
        except (*FAILURES, codec.DecodeError) as error:
            alert_state = replace(alert_state, error=self._server.why(ALERTS, error))
        self._alerts_at = self._clock.now()
        self.state = replace(self.state, alerting=alert_state)
