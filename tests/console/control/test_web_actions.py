"""Actions as a browser asks for them: who may, what is taken for a confirmation, and what is in the cluster then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cli.commands import Server
from tests.cli.console.test_actions import READS, STATUS, WRITES
from tests.console import boards
from tests.console.accounts import token_of
from tests.console.control.test_web_server import ENTER_KEY, HOSTS, ServedConsole, process, served

from kubekit.kube import config
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from runup.console.control import web_server
from runup.console.control.cluster_actions import ClusterActions
from runup.console.control.evaluation_process import EvaluationProcess
from runup.console.control.login import Logins
from runup.console.control.reports import Reports
from runup.console.control.statuses import Statuses
from runup.console.control.web_server import ConsoleServer
from runup.process.connection import Connection

__all__ = ["process"]
pytestmark = pytest.mark.timeout(240)
FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
RISK = "DualStackIncompatible"
START = "/clusters/harbour/start?to=5.1.0"
ACCEPT = f"/clusters/harbour/accept?risk={RISK}"


@pytest.fixture
def cluster(server: Server) -> Iterator[Server]:
    """A cluster to which 5.1.0 is offered, and 5.2.0 with a risk."""
    server.set_cluster_version(status=STATUS)
    yield server


@pytest.fixture
async def console(process: EvaluationProcess, tmp_path: Path, cluster: Server) -> AsyncIterator[ServedConsole]:
    """A console on this machine, from which clusters can be changed."""
    actions = ClusterActions(Connection())
    async with served(process, tmp_path, pages=boards.ACTING, actions=actions, kubeconfig=cluster.kubeconfig) as made:
        yield made


async def _entered(console: ServedConsole) -> dict[str, str]:
    """The cookie of whoever opens the address that was printed."""
    status, _, answer = await console.ask(f"/enter?key={ENTER_KEY}")
    assert (status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    return {"Cookie": cookie.partition(";")[0]}


async def _fields(console: ServedConsole, path: str, cookie: dict[str, str]) -> dict[str, str]:
    """What the form of a confirmation sends."""
    status, text, _ = await console.ask(path, headers=cookie)
    assert status == 200
    return {name: unescape(value) for name, value in FIELD.findall(text)}


async def _sent(
    console: ServedConsole, path: str, cookie: dict[str, str], fields: dict[str, str], **headers: str
) -> tuple[int, str]:
    status, text, _ = await console.ask(path.partition("?")[0], "POST", headers={**cookie, **headers}, data=fields)
    return status, text


async def test_an_update_is_started(console: ServedConsole, cluster: Server) -> None:
    """After it was confirmed; the page then says what the cluster has."""
    cookie = await _entered(console)
    fields = await _fields(console, START, cookie)
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]
    status, text = await _sent(console, START, cookie, fields)
    assert (status, "Requested update to 5.1.0" in text) == (200, True)
    assert cluster.cluster_version()["spec"]["desiredUpdate"]["version"] == "5.1.0"
    assert re.search(r"<dt>Requested</dt><dd>5\.1\.0</dd>", text)


async def test_a_risk_is_accepted(console: ServedConsole, cluster: Server) -> None:
    """By its name; what else is accepted stays."""
    cluster.patch_spec(desiredUpdate={"acceptRisks": [{"name": "Other"}]})
    cookie = await _entered(console)
    status, text = await _sent(console, ACCEPT, cookie, await _fields(console, ACCEPT, cookie))
    assert (status, f"Accept risks are [Other, {RISK}]" in text) == (200, True)
    names = [risk["name"] for risk in cluster.cluster_version()["spec"]["desiredUpdate"]["acceptRisks"]]
    assert names == ["Other", RISK]


async def test_the_choices(console: ServedConsole) -> None:
    """Without a name, each page says what there is; a refusal of the command is told before anything is confirmed."""
    cookie = await _entered(console)
    assert (
        'href="/clusters/harbour/start?to=5.1.0"' in (await console.ask("/clusters/harbour/start", headers=cookie))[1]
    )
    assert f'href="{ACCEPT}"' in (await console.ask("/clusters/harbour/accept", headers=cookie))[1]
    status, text, _ = await console.ask("/clusters/harbour/start?to=5.2.0", headers=cookie)
    assert (status, "is not one of the recommended updates" in text, "<form" in text) == (409, True, False)


@pytest.mark.parametrize(
    ("change", "headers", "status"),
    [
        pytest.param({"key": ""}, {}, 403, id="without the key of the session"),
        pytest.param({"key": "made-up"}, {}, 403, id="with another key"),
        pytest.param({"confirmed": ""}, {}, 409, id="without what was confirmed"),
        pytest.param({"confirmed": "0" * 64}, {}, 409, id="with something else"),
        pytest.param({"to": "5.2.0"}, {}, 409, id="another version than was confirmed"),
        pytest.param({}, {"Origin": "https://evil.example"}, 403, id="by another site"),
        pytest.param({}, {"Origin": "null"}, 403, id="by a frame in a sandbox"),
        pytest.param({}, {"Sec-Fetch-Site": "cross-site"}, 403, id="by another site, as browsers say it"),
        pytest.param({}, {"Sec-Fetch-Site": "same-site"}, 403, id="by another port of this machine"),
        pytest.param({}, {"Host": "evil.example"}, 421, id="by a name that was made to lead here"),
        pytest.param({}, {"Cookie": ""}, 403, id="without a cookie"),
        pytest.param({}, {"Cookie": "runup-console=x"}, 403, id="with another cookie"),
    ],
)
async def test_what_does_nothing(
    change: dict[str, str], headers: dict[str, str], status: int, console: ServedConsole, cluster: Server
) -> None:
    """Whatever is not the form that was made for this session, of what is so now."""
    cookie = await _entered(console)
    fields = await _fields(console, START, cookie)
    assert (await _sent(console, START, cookie, {**fields, **change}, **headers))[0] == status
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]
    # The form itself works: it was not refused for another reason.
    assert (await _sent(console, START, cookie, fields))[0] == 200


async def test_more_forms_at_once_than_are_read(
    console: ServedConsole, cluster: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form that is not read is refused, and does nothing."""
    cookie = await _entered(console)
    fields = await _fields(console, START, cookie)
    monkeypatch.setattr(web_server, "MOST_FORMS", 0)
    status, text = await _sent(console, START, cookie, fields)
    assert (status, "0 forms are being sent already" in text) == (503, True)
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


async def test_a_page_by_another_method(console: ServedConsole, cluster: Server) -> None:
    """A link cannot do it."""
    cookie = await _entered(console)
    fields = await _fields(console, START, cookie)
    query = "&".join(f"{name}={value}" for name, value in fields.items())
    assert (await console.ask(f"/clusters/harbour/start?{query}", headers=cookie))[0] == 200
    assert (await console.ask(f"/clusters/harbour/start?{query}", "PUT", headers=cookie))[0] == 405
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


@pytest.mark.parametrize("key", ["", "made-up", ENTER_KEY[:-1], "%ff"])
async def test_refuses_a_wrong_key(key: str, console: ServedConsole) -> None:
    """Others on this machine may look, and no more; they see how it is done."""
    status, text, answer = await console.ask(f"/enter?key={key}")
    assert (status, "Set-Cookie" in answer.headers) == (403, False)
    assert "open the address, with its key, that the console printed" in text
    assert (await console.ask(START))[0] == 403
    assert (await console.ask("/clusters/harbour"))[0] == 200


@pytest.mark.parametrize("path", ["/clusters/ruin/start", "/clusters/nobody/start", "/clusters/harbour/stop"])
async def test_where_nothing_can_be_done(path: str, console: ServedConsole) -> None:
    """A cluster that cannot be read, one that is not there, and an action that there is not."""
    assert (await console.ask(path, headers=await _entered(console)))[0] == 404


@pytest.mark.parametrize("what", ["a dump", "a kept report"])
async def test_what_is_of_one_moment(what: str, console: ServedConsole, cluster: Server) -> None:
    """Neither a dump nor a kept report can be asked for anything, also by a form that was made before."""
    from msgspec.structs import replace

    cookie = await _entered(console)
    fields = await _fields(console, START, cookie)
    board = console.reports.board
    if what == "a dump":
        member = replace(board.entries["harbour"].member, dump="dumps/harbour")
        entry = replace(board.entries["harbour"], member=member)
        console.reports.board = replace(board, entries={**board.entries, "harbour": entry})
    else:
        console.reports.board = replace(board, kept=True)
    assert (await console.ask(START, headers=cookie))[0] == 404
    assert (await _sent(console, START, cookie, fields))[0] == 404
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


async def test_the_end_of_a_session(console: ServedConsole, cluster: Server) -> None:
    """Whoever has its cookie and its form can do nothing any more."""
    cookie = await _entered(console)
    fields = await _fields(console, START, cookie)
    status, _, answer = await console.ask("/logout", "POST", headers=cookie, data={"key": fields["key"]})
    assert (status, answer.headers["Location"]) == (303, "/")
    assert (await _sent(console, START, cookie, fields))[0] == 403
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


async def test_a_console_that_only_shows(process: EvaluationProcess, tmp_path: Path, cluster: Server) -> None:
    """It has neither the pages nor the forms, unless it is started with them."""
    async with served(process, tmp_path, kubeconfig=cluster.kubeconfig) as console:
        assert (await console.ask(f"/enter?key={ENTER_KEY}"))[0] == 404
        assert (await console.ask(START))[0] == 404
        assert (await console.ask("/clusters/harbour/start", "POST", data={"to": "5.1.0"}))[0] == 405


async def test_by_the_right_of_whoever_is_logged_in(
    process: EvaluationProcess, tmp_path: Path, cluster: Server
) -> None:
    """The console's own account may do all; a user who may only read is refused in the server's words."""
    own = config.load(str(cluster.kubeconfig))
    tokens = {
        name: await asyncio.to_thread(token_of, cluster.client, name, verbs)
        for name, verbs in (("reader", READS), ("writer", WRITES))
    }
    async with (
        Client(own) as client,
        served(
            process,
            tmp_path,
            Logins(client, SystemClock()),
            pages=boards.ACTING,
            actions=ClusterActions(Connection(), own),
            kubeconfig=cluster.kubeconfig,
        ) as console,
    ):
        assert (await console.ask(f"/enter?key={ENTER_KEY}"))[0] == 303
        cookies = {}
        for name, token in tokens.items():
            _, _, answer = await console.ask("/login", "POST", data={"token": token})
            cookies[name] = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        fields = await _fields(console, START, cookies["reader"])
        status, text = await _sent(console, START, cookies["reader"], fields)
        assert (status, "cannot patch resource" in text) == (403, True)
        # Nobody's form is taken from somebody else.
        assert (await _sent(console, START, cookies["writer"], fields))[0] == 403
        assert "desiredUpdate" not in cluster.cluster_version()["spec"]
        fields = await _fields(console, START, cookies["writer"])
        status, text = await _sent(console, START, cookies["writer"], fields)
        assert (status, "system:serviceaccount:default:writer" in text) == (200, True)
        assert cluster.cluster_version()["spec"]["desiredUpdate"]["version"] == "5.1.0"


async def test_routes_that_change_something(process: EvaluationProcess) -> None:
    """There are these, and no others."""
    clock = SystemClock()
    reports = Reports(process, lambda: ((), ()), clock, every_s=600)
    statuses = Statuses(process, reports.member, clock, every_s=1)
    actions = ClusterActions(Connection())
    app: web.Application = ConsoleServer(reports, statuses, boards.ACTING, clock, HOSTS, actions=actions).app()
    routes: Any = ((route.method, route.resource.canonical) for route in app.router.routes() if route.resource)
    assert {path for method, path in routes if method not in ("GET", "HEAD")} == {
        "/login",
        "/logout",
        "/clusters/{name}/accept",
        "/clusters/{name}/approve",
        "/clusters/{name}/hold",
        "/clusters/{name}/resume",
        "/clusters/{name}/start",
    }
