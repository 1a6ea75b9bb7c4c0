"""Renders the pages of the console from its board and the time. Makes no requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from runup.checks.areas import areas
from runup.cli.console.render import action_pages, cluster_pages, fleet_pages, frame, outlook_pages, policy_pages
from runup.cli.render.html.markup import Markup
from runup.console.control.statuses import ClusterStatus
from runup.console.decide.asked_actions import ActionResult, RequestedAction
from runup.console.decide.board import Board, findings_now
from runup.console.decide.graph_ways import Graph, UpdateWay, find_way
from runup.console.decide.outlook import Outlook
from runup.evaluation.results import ClusterResult, with_accepted
from runup.evaluation.suppressions import Suppression
from runup.fleet.decide.selection import selection_of
from runup.rollout.control.policy_reading import PolicyReading
from runup.updatestatus.control.status_reading import StatusReading


class ConsolePages:
    """The pages; `rules` are suppressions, and a result that is older than `max_age` does not count as known.

    `site` is what every page says about the console.
    """

    def __init__(
        self,
        *,
        max_age: timedelta,
        rules: Sequence[Suppression] = (),
        loaded_graph: Graph | None = None,
        stored: bool = False,
        site: frame.Site = frame.ONLY_SHOWS,
    ) -> None:
        self._max_age = max_age
        self._rules = rules
        self._graph = loaded_graph
        self._stored = stored
        self._site = site

    def _results(self, board: Board, names: Sequence[str], now: datetime) -> tuple[list[ClusterResult], list[str]]:
        """Returns the current results of each cluster with suppressions applied, and warnings about suppressions."""
        results = [
            ClusterResult(name=name, findings=findings_now(board, name, now, self._max_age), tried=now)
            for name in names
        ]
        return with_accepted(results, self._rules, None, now)

    def fleet(self, board: Board, now: datetime, query: Mapping[str, str] = {}) -> str:
        """Returns the page of the clusters that `query` selects."""
        results, notes = self._results(board, tuple(board.entries), now)
        is_whole = all(entry.evaluated is not None for entry in board.entries.values())
        # What suppresses nothing is known once every cluster was evaluated.
        return fleet_pages.board_page(
            board,
            results,
            now=now,
            max_age=self._max_age,
            notes=notes if is_whole else (),
            site=self._site,
            selection=selection_of(query, areas()),
        )

    def cluster(self, board: Board, name: str, now: datetime) -> str:
        """Returns the page of one cluster's preflight."""
        (result,), _ = self._results(board, (name,), now)
        return cluster_pages.preflight_page(
            board, name, findings=result.findings, now=now, max_age=self._max_age, site=self._site
        )

    def update(
        self,
        board: Board,
        name: str,
        status: ClusterStatus | None,
        *,
        outlook: ClusterStatus | None,
        now: datetime,
    ) -> str:
        """Returns the page of one cluster's update, with the forecast if it was read."""
        live = _live(status, outlook) if status else None
        return cluster_pages.update_page(board, name, live=live, now=now, site=self._site)

    def update_part(self, name: str, status: ClusterStatus, *, outlook: ClusterStatus | None, now: datetime) -> str:  # noqa: ARG002 -- `Pages` has it for all pages
        """Returns the part of that page that is renewed."""
        return _live(status, outlook)

    def forecast(self, board: Board, name: str, outlook: ClusterStatus | None, now: datetime) -> str:
        """Returns the page of one cluster's forecast and simulated drains."""
        return outlook_pages.forecast_page(board, name, *_outlook_of(outlook), now=now, site=self._site)

    def policy(self, board: Board, name: str, read: ClusterStatus | None, now: datetime) -> str:
        """Returns the page of one cluster's update policy and runs."""
        reading = read.value if read is not None and isinstance(read.value, PolicyReading) else None
        why = (read.why or str(read.value)) if read is not None and reading is None else ""
        return policy_pages.policy_page(board, name, reading, why, now=now, site=self._site)

    def graph(self, board: Board, name: str, now: datetime) -> str:
        """Returns the page of one cluster's way through the update graph."""
        evaluated = board.entries[name].evaluated
        way = (
            UpdateWay(why="Nothing is known about this cluster yet.")
            if evaluated is None
            else find_way(evaluated, self._graph)
        )
        return cluster_pages.way_page(name, way, now, self._site)

    def history(self, board: Board, name: str, now: datetime, *, weeks: bool) -> str:
        """Returns the page of new and gone risks, of one cluster if it is named."""
        if not self._stored:
            return fleet_pages.no_store_page(now, board.notes, self._site)
        entries = [board.entries[name]] if name else list(board.entries.values())
        listing = () if board.version else ("the clusters are still being listed; reload this page",)
        notes = (*board.notes, *listing)
        return fleet_pages.history(entries, name, now, weeks=weeks, notes=notes, site=self._site)

    def login(self, problem: str, next_page: str) -> str:
        """Returns the page with the form of the login."""
        return frame.login_page(problem, next_page, self._site)

    def logout(self, user: str, form_key: str) -> str:
        """Returns the page with the form that ends a login."""
        return frame.logout_page(user, form_key, self._site)

    def action(self, asked: RequestedAction, looked: ActionResult, form_key: str, now: datetime) -> str:
        """Returns the page of an action: the choices, the confirmation, or the result."""
        return action_pages.page(asked, looked, form_key=form_key, now=now, site=self._site)

    def problem(self, status: int, problem: str) -> str:
        """Returns the page of a request that has no other answer."""
        return frame.problem_page(status, problem, self._site)

    def style(self) -> str:
        """Returns the style sheet."""
        return frame.CSS

    def script(self) -> str:
        """Returns the script."""
        return frame.SCRIPT


def _outlook_of(read: ClusterStatus | None) -> tuple[Outlook | None, str]:
    """Returns the outlook that was read, or why it is missing; an empty reason if nothing was read yet."""
    if read is None:
        return None, ""
    return (read.value, "") if isinstance(read.value, Outlook) else (None, read.why or str(read.value))


def _live(status: ClusterStatus, outlook: ClusterStatus | None) -> Markup:
    if isinstance(status.value, StatusReading):
        return cluster_pages.status_part(status.value, *_outlook_of(outlook))
    return cluster_pages.problem_part(status.why or str(status.value))
