"""The console's pages as a browser takes them: what they say, where they lead, and that nobody's text is markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace as dataclass_replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from msgspec.structs import replace
from tests.cli.preflight.render import samples
from tests.cli.render.reading import read
from tests.console import boards
from tests.console.boards import EVIL, NOW, PAGES

from kubekit.lang.text import is_hazardous
from runup.cli.console.pages import ConsolePages
from runup.cli.console.render.frame import path_of
from runup.console.control.statuses import ClusterStatus
from runup.console.decide.asked_actions import (
    ACCEPT,
    ACTIONS,
    APPROVE,
    ActionResult,
    ClusterState,
    RequestedAction,
    RunState,
)
from runup.console.decide.board import Board, Evaluation
from runup.evaluation.suppressions import Suppression
from runup.rehearse.decide.drains.drain_result import Blocked
from runup.rehearse.decide.update_forecast import ForecastPart, Range

ALL = boards.pages()


@pytest.mark.parametrize("name", ALL)
def test_landmarks_and_tables(name: str) -> None:
    """One main part, a way past the head, a heading, a caption for each table and a scope for each head of it."""
    page = read(ALL[name])
    tags = [tag for tag, _ in page.tags]
    assert tags.count("main") == tags.count("header") == tags.count("footer") == 1
    assert next(attributes for tag, attributes in page.tags if tag == "a") == {"href": "#main", "class": "skip"}
    assert "h1" in tags
    assert tags.count("table") == tags.count("caption")
    assert all(attributes.get("scope") in ("col", "row", "rowgroup") for tag, attributes in page.tags if tag == "th")
    # The policy lets no inline script and no inline style sheet work.
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{"src": "/console.js", "defer": ""}]
    assert "style" not in tags


def test_marks_of_severities_differ() -> None:
    """By class, letter and name, and not by colour alone; a filter keeps the marks that fit."""
    marks = r'<span class="(mark [a-z ]+)" role="img" aria-label="([^"]+)">([^<]+)</span>'
    whole = set(re.findall(marks, ALL["a fleet"].partition("<tbody>")[2]))
    assert {
        ("mark critical applies", "critical, applies", "C"),
        ("mark warning unknown", "warning, unknown", "W?"),
        ("mark info applies", "info, applies", "I"),
        ("mark critical accepted", "critical, accepted", "a"),
    } <= whole
    filtered = set(re.findall(marks, ALL["a fleet, filtered"].partition("<tbody>")[2]))
    assert {mark[0].split()[1] for mark in filtered} == {"critical"}


@pytest.mark.parametrize("name", ALL)
def test_links_lead_to_pages(name: str) -> None:
    """Every link of the console's own leads to a page that there is; nothing is fetched from elsewhere."""
    known = re.compile(
        r"#main|#object-\d+|/|/history(\?.*)?|/clusters/[^/]+(/update|/policy|/forecast|/graph|/(accept|start)(\?(risk|to)=[^&]+)?|/(approve|hold|resume)(\?run=[^&]+(&gate=[^&]+)?)?)?|/logout|https?://.*|/console\.css"
    )
    targets = [str(attributes["href"]) for _, attributes in read(ALL[name]).tags if "href" in attributes]
    assert [target for target in targets if not known.fullmatch(target)] == []
    assert "src=" not in ALL[name].replace('src="/console.js"', "")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param(
            "a fleet",
            "1 with risks that apply, 1 not all known, 1 with nothing in the way",
            id="an old result is unknown",
        ),
        pytest.param("a fleet", "2 could not be evaluated", id="what was not judged is not fine"),
        pytest.param("a fleet", "Not evaluated yet: 1 of 5 clusters.", id="what is still to come"),
        pytest.param("a fleet", "too old to count", id="too old"),
        pytest.param("a fleet", "2 d ago (2026-11-19 08:30 UTC): older than 24 h", id="how old"),
        pytest.param("a fleet", "context b leads to the server of a", id="notes about the fleet"),
        pytest.param("a fleet, filtered", "2 of 5 clusters do not fit and are left out.", id="what is filtered out"),
        pytest.param("a fleet, filtered", "2 of these have no result: whether they fit is unknown.", id="no result"),
        pytest.param("a fleet, filtered", "area=x is not known and was ignored", id="a filter that is not known"),
        pytest.param("a fleet, filtered", "env=production (1)", id="a group"),
        pytest.param("a fleet of nothing yet", "Not evaluated yet: 5 of 5 clusters.", id="nothing yet"),
        pytest.param("a preflight with everything", "Cluster harbour", id="whose it is"),
        pytest.param("a preflight with everything", "kind: Node", id="an object"),
        pytest.param("a preflight with everything", "Secrets are never shown.", id="a Secret"),
        pytest.param("a preflight with everything", "network team, CHG-7712", id="why a risk is accepted"),
        pytest.param("a preflight with everything", "runup preflight run --context harbour", id="what to type"),
        pytest.param("a preflight of a dump", "--dump 'dumps/light house'", id="what to type, quoted"),
        pytest.param("a preflight of a dump", "A dump is of one moment", id="the age of a dump"),
        pytest.param("a preflight of a dump", "runup dump collect more", id="what the dump lacks"),
        pytest.param("a preflight that is too old", "older than 24 h", id="an old preflight"),
        pytest.param("a preflight that is too old", "Ended", id="has ended"),
        pytest.param("a preflight to come", "at 2026-11-23 08:30 UTC, which is still to come.", id="a time to come"),
        pytest.param("a preflight to come", "it does not count as known", id="does not count"),
        pytest.param("a fleet with a preflight to come", "its time is still to come", id="a time to come in the fleet"),
        pytest.param("a fleet with a preflight to come", "1 not all known, 1 with nothing in the way", id="is unknown"),
        pytest.param("a kept preflight", "does not hold them", id="objects of a kept report"),
        pytest.param(
            "a cluster that was not evaluated yet", "Nothing is known about this cluster yet", id="nothing known"
        ),
        pytest.param("a cluster that cannot be judged", "Nothing is known about it.", id="cannot be judged"),
        pytest.param("a cluster that could be judged before", "It does not count any more", id="what was before"),
        pytest.param("an update under way", "Updating to", id="an update"),
        pytest.param(
            "an update under way", "As the cluster was at 2026-11-21 07:37 UTC.", id="the moment of an update"
        ),
        pytest.param("an update of a dump", "As the cluster was at 2026-11-21 07:37 UTC.", id="the moment of a dump"),
        pytest.param("an update of a dump", "this page does not change", id="a dump's update"),
        pytest.param("an update of a dump to come", "Reload this page in a moment", id="a dump's update to come"),
        pytest.param("an update without a time", "As the cluster was at an unknown time", id="an unknown moment"),
        pytest.param("an update that cannot be read", "no route", id="an update that is not known"),
        pytest.param("an update that was not read yet", "Not read yet", id="an update to come"),
        pytest.param(
            "a policy",
            "The update to 5.2.0 starts at 2026-11-22T08:30:00Z if all other gates are open then.",
            id="when a policy starts",
        ),
        pytest.param("a policy", "May approve: Group cab, User jane.", id="who may approve"),
        pytest.param("a policy", "closed: The update takes up to 400 min.", id="why an opening is of no use"),
        pytest.param("a policy", "alerts Unknown AlertsUnknown no answer", id="a gate that is unknown"),
        pytest.param("a policy", "report: sha256:77", id="the evidence of a gate"),
        pytest.param("a policy", "pool infra is degraded", id="the decision of a run that failed"),
        pytest.param("a policy", "Ready True AsExpected", id="the conditions of a policy"),
        pytest.param("a policy that starts nothing", "No release is chosen: the update service", id="starts nothing"),
        pytest.param(
            "a policy whose approvers are not known",
            "Could not determine who may approve: clusterroles is forbidden",
            id="approvers that are not known",
        ),
        pytest.param("a cluster without a policy", "no update starts by itself", id="no policy"),
        pytest.param("a policy that cannot be read", "It could not be read: no route", id="a policy that is not known"),
        pytest.param("a policy of a dump", "An update policy is read from a live cluster.", id="the policy of a dump"),
        pytest.param("a run to be held", "it starts no further step until runup upgrade run resume.", id="the effect"),
        pytest.param("a run to be held", "sha256:2222", id="the image of a run"),
        pytest.param("no run to resume", "No run of this cluster is held.", id="nothing to resume"),
        pytest.param("an approval to be confirmed", "harbour may update to 5.2.0 once all", id="what is approved"),
        pytest.param("a way", "2 updates, 1 with known risks", id="a way"),
        pytest.param("a way", "blocked.yaml", id="a blocked update"),
        pytest.param("a way that is not known", "The cluster's own release is not known", id="no way"),
        pytest.param("a history", "2026-11-12", id="a day"),
        pytest.param("a history by week", "2026-11-16", id="a week, by its Monday"),
        pytest.param("a history", "By week", id="the other grouping, of days"),
        pytest.param("a history", "each day come to, the newest first Day Clusters", id="what a row is, of days"),
        pytest.param("a history by week", "By day", id="the other grouping, of weeks"),
        pytest.param("a history by week", "each week come to, the newest first Week of Clusters", id="a row, of weeks"),
        pytest.param("a history of a cluster", "NodeCordoned (Node worker-7)", id="an object that came"),
        pytest.param("a history of a cluster", "could not be evaluated", id="a report that failed"),
        pytest.param("a history", "not read yet: 1 of 5 clusters", id="what the history lacks"),
        pytest.param(
            "a fleet of no cluster yet", "Not evaluated yet: the clusters are still being listed", id="no cluster"
        ),
        pytest.param("a history of no cluster yet", "No report is known.", id="no report is known of no cluster"),
        pytest.param(
            "a history of no cluster yet", "the clusters are still being listed", id="no cluster in the history"
        ),
        pytest.param("a history of nothing yet", "No report is known.", id="no report is known"),
        pytest.param(
            "a history of nothing yet", "not read yet: 5 of 5 clusters; reload this page", id="nothing was read"
        ),
        pytest.param("a history of a cluster of nothing yet", "not read yet; reload this page", id="it was not read"),
        pytest.param("a history of an empty store", "The store has no report of this cluster yet.", id="no report"),
        pytest.param("a history that is lost", "No report is known.", id="none could be read"),
        pytest.param("a history that is lost", "2 clusters: no route", id="why none could be read"),
        pytest.param("a history of many reports", "harbour: left out: 1.json", id="a report that is left out"),
        pytest.param("a history of many reports", "the newest 200 of 201 reports", id="reports that are cut"),
        pytest.param("a history of many days", "the newest 200 of 201 days", id="days that are cut"),
        pytest.param("no history", "runup serve --store reports", id="how to have a history"),
        pytest.param("a login that was refused", "does not know this token", id="why a login was refused"),
        pytest.param("a login", "It is not kept.", id="that a token is not kept"),
        pytest.param(
            "a login where clusters can be changed", "It is kept in memory until you log out", id="that it is"
        ),
        pytest.param("the end of a login", "You are logged in as ann.", id="who is logged in"),
        pytest.param("the end of who came by the address", "by the address that the console printed", id="who came"),
        pytest.param("a preflight with everything", "nothing is changed from here", id="a console that only shows"),
        pytest.param("a cluster that can be changed", "Clusters can be changed from here", id="one that does not"),
        pytest.param("a cluster that can be changed", "Accept a risk by its name", id="what can be done"),
        pytest.param("a cluster that can be changed", "Start the update to 5.2.0", id="the update that was checked"),
        pytest.param("risks to accept", "NodeCordoned", id="a risk to accept"),
        pytest.param("updates to start", "5.1.0", id="an update to start"),
        pytest.param("no update to start", "No update is offered to this cluster now.", id="no update"),
        pytest.param(
            "an update to be confirmed",
            "Update prod-x7k2p from 5.0.0 to 5.2.0, with these risks accepted: DualStackIncompatible.",
            id="what is confirmed: cluster, versions, risks",
        ),
        pytest.param("an update to be confirmed", "runup upgrade --to 5.2.0 --context harbour", id="the command"),
        pytest.param("an update to be confirmed", "api.prod.example:6443", id="where"),
        pytest.param("a risk to be confirmed", "Accept NodeCordoned in prod-x7k2p", id="which risk"),
        pytest.param("a risk to be confirmed", "runup upgrade accept NodeCordoned --context harbour", id="its command"),
        pytest.param("an update that was started", "Requested update to 5.2.0", id="what the command says"),
        pytest.param("an update that was started", "What the cluster says now", id="what the cluster says"),
        pytest.param("an update that was refused", "clusterversions is forbidden", id="why it was refused"),
        pytest.param("an update of which nothing is known", "no route", id="that it is not known what is so"),
        pytest.param("a cluster that does not say", "could not be read", id="no answer"),
    ],
)
def test_what_is_said(name: str, says: str) -> None:
    """The state of the cluster in words, not by a colour."""
    assert says in read(ALL[name]).text


EVIL_TRUTH = ClusterState(
    cluster=EVIL,
    server=EVIL,
    user=EVIL,
    release=EVIL,
    requested=EVIL,
    accepted=(EVIL,),
    progress=EVIL,
    offered=(EVIL,),
    risks=("another",),
    grown=(EVIL,),
)


def _evil_outlook() -> ClusterStatus:
    """An outlook in which every name and reason is markup."""
    outlook = boards.OUTLOOK
    drain = outlook.slow.pools[0].nodes[1]
    held = Blocked(pod=EVIL, why=EVIL, by=(EVIL,), from_s=0, to_s=None)
    evil_drain = dataclass_replace(drain, node=EVIL, pool=EVIL, blocked=(held,))
    pool = dataclass_replace(outlook.slow.pools[0], name=EVIL, nodes=(evil_drain,), held=EVIL)
    forecast = dataclass_replace(
        outlook.forecast,
        parts=(ForecastPart(EVIL, Range(1, None), (EVIL,)),),
        unknown=(EVIL,),
        needs_help=(EVIL,),
    )
    slow = dataclass_replace(outlook.slow, pools=(pool,), unknown=(EVIL,), assumed=(EVIL,))
    under_way = (dataclass_replace(outlook.under_way[0], node=EVIL, pool=EVIL),)
    evil = replace(outlook, forecast=forecast, slow=slow, under_way=under_way, why_no_events=EVIL, notes=(EVIL,))
    return ClusterStatus(evil, count=1)


def _action(board: Board, name: str, target: str, looked: ActionResult) -> str:
    asked = RequestedAction(action=ACCEPT, member=board.entries[name].member, risk=target, reason=target, until=target)
    return boards.ACTING.action(asked, looked, EVIL, NOW)


def _hostile_pages() -> dict[str, Callable[[Board, str], str]]:
    seen = ClusterStatus(boards.reading(notes=(EVIL,), alerts_problem=EVIL), EVIL, 1)
    return {
        "fleet": lambda board, _: PAGES.fleet(board, NOW),
        "cluster": lambda board, name: PAGES.cluster(board, name, NOW),
        "a cluster that failed": lambda board, _: PAGES.cluster(board, "other", NOW),
        "update": lambda board, name: PAGES.update(board, name, seen, outlook=None, now=NOW),
        "an update with a forecast": lambda board, name: PAGES.update(
            board, name, seen, outlook=_evil_outlook(), now=NOW
        ),
        "a forecast": lambda board, name: PAGES.forecast(board, name, _evil_outlook(), NOW),
        "a forecast that failed": lambda board, name: PAGES.forecast(board, name, ClusterStatus(EVIL, EVIL, 1), NOW),
        "an update that failed": lambda board, name: PAGES.update(
            board, name, ClusterStatus(EVIL, EVIL, 1), outlook=None, now=NOW
        ),
        "graph": lambda board, name: PAGES.graph(board, name, NOW),
        "graph of offers": lambda board, name: ConsolePages(max_age=timedelta(days=1)).graph(board, name, NOW),
        "history": lambda board, _: PAGES.history(board, "", NOW, weeks=False),
        "a policy": lambda board, name: boards.ACTING.policy(
            board, name, boards.policy_status(boards.EVIL_POLICY), NOW
        ),
        "a policy that failed": lambda board, name: PAGES.policy(board, name, ClusterStatus(EVIL, EVIL, 1), NOW),
        "an approval": lambda board, name: boards.ACTING.action(
            RequestedAction(action=APPROVE, member=board.entries[name].member, run=EVIL, gate=EVIL, reason=EVIL),
            ActionResult(truth=RunState(cluster=EVIL, server=EVIL, user=EVIL, run=boards.EVIL_RUN), said=(EVIL,)),
            EVIL,
            NOW,
        ),
        "history of a cluster": lambda board, name: PAGES.history(board, name, NOW, weeks=False),
        "logout": lambda _, __: boards.ACTING.logout(EVIL, EVIL),
        "a cluster that can be changed": lambda board, name: boards.ACTING.cluster(board, name, NOW),
        "a choice": lambda board, name: _action(board, name, "", ActionResult(truth=EVIL_TRUTH)),
        "a confirmation": lambda board, name: _action(board, name, EVIL, ActionResult(truth=EVIL_TRUTH, said=(EVIL,))),
        "an action": lambda board, name: _action(
            board, name, EVIL, ActionResult(truth=EVIL_TRUTH, said=(EVIL,), done=True)
        ),
        "a refusal": lambda board, name: _action(
            board, name, EVIL, ActionResult(truth=None, said=(EVIL,), refused=EVIL, status=403, unread=EVIL)
        ),
        "login": lambda _, __: PAGES.login(EVIL, EVIL),
        "error": lambda _, __: PAGES.problem(404, EVIL),
    }


HOSTILE = _hostile_pages()


@pytest.mark.parametrize("name", HOSTILE)
def test_nobodys_text_is_markup(name: str) -> None:
    """Tags, quotes, line ends and marks of direction are shown, in texts and in attributes alike."""
    page = HOSTILE[name](*boards.hostile())
    assert not is_hazardous(page)
    reader = read(page)
    assert [attributes for tag, attributes in reader.tags if tag == "script"] == [{"src": "/console.js", "defer": ""}]
    assert "img" not in {tag for tag, _ in reader.tags}
    assert not [key for _, attributes in reader.tags for key in attributes if key.startswith("on")]
    assert not [each for _, each in reader.tags if str(each.get("href", "")).lower().startswith("javascript")]
    assert "alert(1)" in page


@pytest.mark.parametrize(
    ("name", "renewed"),
    [
        pytest.param("an update under way", True, id="live"),
        pytest.param("an update that was not read yet", True, id="live, to come"),
        pytest.param("an update of a dump", False, id="a dump"),
        pytest.param("an update of a dump to come", False, id="a dump to come"),
    ],
)
def test_what_is_renewed(name: str, renewed: bool) -> None:
    """A dump's status is not: nothing on its page says so, to people or to the script."""
    page = read(ALL[name])
    assert any("data-events" in attributes for _, attributes in page.tags) == renewed
    assert any(attributes.get("id") == "live-state" for _, attributes in page.tags) == renewed
    assert ("renews itself" in page.text or "Reload this page for a newer status" in page.text) == renewed


def test_every_cluster_can_be_reached() -> None:
    """By its link, whatever it is called."""
    name = boards.hostile()[1]
    path = path_of(name, "update")
    assert re.fullmatch(r"/clusters/[A-Za-z0-9%_.~-]+/update", path)
    assert unquote(path) == f"/clusters/{name}/update"


def test_what_is_suppressed() -> None:
    """It counts as accepted, with its reason, on both pages; what suppresses nothing is reported."""
    rules = (Suppression("DualStack*", "moved in May", None, "harbour"), Suppression("Nothing", "why", None, "*"))
    pages = ConsolePages(max_age=timedelta(hours=24), rules=rules)
    board = boards.board(**{"apps/island:6443/admin": Evaluation(findings=samples.CLEAR)})
    assert "suppressed: moved in May" in pages.cluster(board, "harbour", NOW)
    assert "Nothing suppresses nothing" in read(pages.fleet(board, NOW)).text.replace('"', "")


def test_the_fleet_of_kept_reports() -> None:
    """No objects, no update: a report has neither, and says so."""
    kept = replace(boards.board(), kept=True)
    assert "do not say how an update goes" in PAGES.update(kept, "harbour", None, outlook=None, now=NOW)


@pytest.mark.parametrize(
    ("name", "acts"),
    [
        pytest.param("a cluster that can be changed", True, id="where clusters can be changed"),
        pytest.param("a preflight with everything", False, id="where they cannot"),
        pytest.param("a dump where clusters can be changed", False, id="a dump"),
        pytest.param("a kept report where clusters can be changed", False, id="a kept report"),
        pytest.param("a policy where clusters can be changed", True, id="runs that can be changed"),
        pytest.param("a policy", False, id="runs that cannot"),
    ],
)
def test_where_something_can_be_done(name: str, acts: bool) -> None:
    """Links to it are where it can be done, and nowhere else."""
    links = [str(attributes.get("href")) for _, attributes in read(ALL[name]).tags]
    assert any(f"/{action}" in link for link in links for action in ACTIONS) == acts


def test_links_to_the_approvals_that_are_missing() -> None:
    """Not to one that was given, and not to a control that has no effect: neither on a run that has ended."""
    tags = read(ALL["a policy where clusters can be changed"]).tags
    links = [str(attributes["href"]) for _, attributes in tags if "run=" in str(attributes.get("href"))]
    assert links == [
        "/clusters/harbour/approve?run=5.2.0-ff4b4c&gate=cab",
        "/clusters/harbour/hold?run=5.2.0-ff4b4c",
    ]


def test_shows_no_address_of_notifications() -> None:
    """A webhook's path may be its password."""
    assert not [name for name, page in ALL.items() if "secret-path" in page]


@pytest.mark.parametrize("name", [name for name in ALL if "confirmed" in name])
def test_what_a_confirmation_sends(name: str) -> None:
    """By POST, to the page itself: the key of the session, what was seen, and what must be done."""
    tags = read(ALL[name]).tags
    (form,) = [attributes for tag, attributes in tags if tag == "form"]
    fields = {attributes["name"]: attributes["value"] for tag, attributes in tags if tag == "input"}
    what = next(action for word, action in (("risk", "accept"), ("approval", "approve"), ("", "start")) if word in name)
    sent = {"accept": {"risk", "reason", "until"}, "start": {"to"}, "approve": {"run", "gate", "reason", "until"}}
    assert form == {"method": "post", "action": f"/clusters/harbour/{what}"}
    assert fields["key"] == "key"
    assert len(str(fields["confirmed"])) == 64
    assert set(fields) == {"key", "confirmed", *sent[what]}


@pytest.mark.parametrize("name", [name for name in ALL if "refused" in name or "started" in name or "does not" in name])
def test_nothing_is_sent_by_what_is_over(name: str) -> None:
    """An action that was done or refused has no form; the user must confirm again."""
    assert name == "a login that was refused" or "form" not in {tag for tag, _ in read(ALL[name]).tags}


def test_pictures() -> None:
    """Each is shown on the page about the console; all together are small, as everybody who clones has them."""
    docs = Path(__file__).parents[3] / "docs"
    pictures = sorted(docs.glob("pictures/console-*.png"))
    shown = re.findall(r"\]\(\.\./pictures/(console-[a-z]+\.png)\)", (docs / "how-to" / "console.md").read_text())
    assert sorted(shown) == [picture.name for picture in pictures]
    assert sum(picture.stat().st_size for picture in pictures) < 700_000


def _rows(page: str, caption: str) -> list[list[str]]:
    """Returns the texts of the cells of the table with this caption."""
    table = re.search(rf"<caption>{re.escape(caption)}.*?</table>", page, re.DOTALL)
    assert table is not None, caption
    rows = re.findall(r"<tr>(.*?)</tr>", table[0].partition("<tbody>")[2], re.DOTALL)
    return [[unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(?:<[^>]+>)*([^<]*)", row)] for row in rows]


def test_puts_the_forecast_next_to_the_progress() -> None:
    """Of each part, with how long it has taken; a forecast without an upper end does not say that all is well."""
    page = ALL["an update with its forecast"]
    assert _rows(page, "The forecast, and the progress so far") == [
        ["Control plane", "30 min to 1 h", "50 % in 1 h 37 min", "late by 37 min", "Progressing"],
        ["Pool worker", "at least 20 min", "1 of 3 nodes updated", "unknown", "Progressing"],
    ]
    assert _rows(page, "Nodes that were being updated at") == [["worker-1", "worker", "10 min", "8 min", "2 min"]]


def test_shows_the_steps_of_each_node_and_what_blocks_it() -> None:
    """A step without a record is unknown, or not yet due; the chart has the same as the table."""
    page = ALL["an update with its forecast"]
    rows = {row[0]: row[2:] for row in _rows(page, "When each step of each node began")}
    times = ["21 Nov 06:57", "21 Nov 06:58", "21 Nov 07:07", "21 Nov 07:12", "21 Nov 07:17"]
    assert rows["worker-0"] == [*times, ""]
    assert rows["worker-1"][:5] == ["21 Nov 07:27", "21 Nov 07:28", "not yet", "not yet", "not yet"]
    assert rows["worker-2"][:5] == ["not yet"] * 5
    assert "Node worker-1 is degraded\nSimulated drain: pod shop/db-0" in rows["worker-1"][5]
    assert rows["worker-2"][5].startswith("Simulated drain: pod shop/db-1")
    assert "Events may be missing: of events the dump has only a part." in page
    lanes = re.findall(r'class="lane"[^>]*aria-label="(worker-[^"]*)"', page.partition("Steps of nodes (UTC)")[2])
    assert lanes == [
        "worker-1: cordon 07:27, drain 07:28",
        "worker-0: cordon 06:57, drain 06:58, apply 07:07, reboot 07:12, ready 07:17",
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("an update under way", "The forecast is being computed.", id="not read yet"),
        pytest.param("an update without a forecast", "The forecast is not known: no route", id="cannot be read"),
        pytest.param("a forecast that cannot be computed", "It could not be computed: no node", id="a page without it"),
        pytest.param("a forecast that was not computed yet", "Not computed yet", id="a page too early"),
        pytest.param("a forecast of a kept report", "which hold no nodes and pods", id="a kept report"),
        pytest.param("a forecast", "pod shop/db-0 until it is deleted: maxUnavailable 0", id="a drain that is held up"),
    ],
)
def test_says_why_there_is_no_forecast(name: str, says: str) -> None:
    """Nothing is left out in silence."""
    assert says in read(ALL[name]).text


def test_says_that_updates_after_the_first_are_unknown() -> None:
    """With the commands that load the graph of the cluster's channel and of the target's, and the texts of risks."""
    page = ALL["a way of one update"]
    text = read(page).text
    assert "Updates after the one from 5.0.0 are unknown" in text
    address = "https://api.openshift.com/api/upgrades_info/v1/graph?channel=stable-5.2"
    assert f"curl --fail --output graph.json '{address}'" in text
    assert _rows(page, "Risks as the graph describes them") == [["SlowBoot", "Nodes boot slowly.", "About SlowBoot"]]


def test_shows_updates_after_the_first_with_their_risks() -> None:
    """Each with the channel that has it."""
    rows = _rows(ALL["a way"], "Where these releases can go")
    assert rows == [["5.1.0", "5.2.0", "stable-5 (the cluster's)", "with risks", "Slow"]]
    assert "Updates after the one from" not in ALL["a way"]
