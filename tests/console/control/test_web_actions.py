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
from tests.console.control.test_web_server import ENTER_KEY, HOSTS, World, process, served

from kubekit.kube import config
from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from runup.console.control import web_server
from runup.console.control.cluster_actions import ClusterActions
from runup.console.control.judging_process import JudgingProcess
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
async def world(process: JudgingProcess, tmp_path: Path, cluster: Server) -> AsyncIterator[World]:
    """A console on this machine, from which clusters can be changed."""
    actions = ClusterActions(Connection())
    async with served(process, tmp_path, pages=boards.ACTING, actions=actions, kubeconfig=cluster.kubeconfig) as made:
        yield made


async def _entered(world: World) -> dict[str, str]:
    """The cookie of whoever opens the address that was printed."""
    status, _, answer = await world.ask(f"/enter?key={ENTER_KEY}")
    assert (status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    return {"Cookie": cookie.partition(";")[0]}


async def _fields(world: World, path: str, cookie: dict[str, str]) -> dict[str, str]:
    """What the form of a confirmation sends."""
    status, text, _ = await world.ask(path, headers=cookie)
    assert status == 200
    return {name: unescape(value) for name, value in FIELD.findall(text)}


async def _sent(
    world: World, path: str, cookie: dict[str, str], fields: dict[str, str], **headers: str
) -> tuple[int, str]:
    status, text, _ = await world.ask(path.partition("?")[0], "POST", headers={**cookie, **headers}, data=fields)
    return status, text


async def test_an_update_is_started(world: World, cluster: Server) -> None:
    """After it was confirmed; the page then says what the cluster has."""
    cookie = await _entered(world)
    fields = await _fields(world, START, cookie)
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]
    status, text = await _sent(world, START, cookie, fields)
    assert (status, "Requested update to 5.1.0" in text) == (200, True)
    assert cluster.cluster_version()["spec"]["desiredUpdate"]["version"] == "5.1.0"
    assert re.search(r"<dt>Requested</dt><dd>5\.1\.0</dd>", text)


async def test_a_risk_is_accepted(world: World, cluster: Server) -> None:
    """By its name; what else is accepted stays."""
    cluster.patch_spec(desiredUpdate={"acceptRisks": [{"name": "Other"}]})
    cookie = await _entered(world)
    status, text = await _sent(world, ACCEPT, cookie, await _fields(world, ACCEPT, cookie))
    assert (status, f"Accept risks are [Other, {RISK}]" in text) == (200, True)
    names = [risk["name"] for risk in cluster.cluster_version()["spec"]["desiredUpdate"]["acceptRisks"]]
    assert names == ["Other", RISK]


async def test_the_choices(world: World) -> None:
    """Without a name, each page says what there is; a refusal of the command is told before anything is confirmed."""
    cookie = await _entered(world)
    assert 'href="/clusters/harbour/start?to=5.1.0"' in (await world.ask("/clusters/harbour/start", headers=cookie))[1]
    assert f'href="{ACCEPT}"' in (await world.ask("/clusters/harbour/accept", headers=cookie))[1]
    status, text, _ = await world.ask("/clusters/harbour/start?to=5.2.0", headers=cookie)
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
    change: dict[str, str], headers: dict[str, str], status: int, world: World, cluster: Server
) -> None:
    """Whatever is not the form that was made for this session, of what is so now."""
    cookie = await _entered(world)
    fields = await _fields(world, START, cookie)
    assert (await _sent(world, START, cookie, {**fields, **change}, **headers))[0] == status
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]
    # The form itself works: it was not refused for another reason.
    assert (await _sent(world, START, cookie, fields))[0] == 200


async def test_more_forms_at_once_than_are_read(world: World, cluster: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that is not read is told so, and does nothing."""
    cookie = await _entered(world)
    fields = await _fields(world, START, cookie)
    monkeypatch.setattr(web_server, "MOST_FORMS", 0)
    status, text = await _sent(world, START, cookie, fields)
    assert (status, "0 forms are being sent already" in text) == (503, True)
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


async def test_a_page_by_another_method(world: World, cluster: Server) -> None:
    """A link cannot do it."""
    cookie = await _entered(world)
    fields = await _fields(world, START, cookie)
    query = "&".join(f"{name}={value}" for name, value in fields.items())
    assert (await world.ask(f"/clusters/harbour/start?{query}", headers=cookie))[0] == 200
    assert (await world.ask(f"/clusters/harbour/start?{query}", "PUT", headers=cookie))[0] == 405
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


@pytest.mark.parametrize("key", ["", "made-up", ENTER_KEY[:-1], "%ff"])
async def test_who_was_not_told_the_address(key: str, world: World) -> None:
    """Others on this machine may look, and no more; they are told how it is done."""
    status, text, answer = await world.ask(f"/enter?key={key}")
    assert (status, "Set-Cookie" in answer.headers) == (403, False)
    assert "open the address that it printed" in text
    assert (await world.ask(START))[0] == 403
    assert (await world.ask("/clusters/harbour"))[0] == 200


@pytest.mark.parametrize("path", ["/clusters/ruin/start", "/clusters/nobody/start", "/clusters/harbour/stop"])
async def test_where_nothing_can_be_done(path: str, world: World) -> None:
    """A cluster that cannot be read, one that is not there, and an action that there is not."""
    assert (await world.ask(path, headers=await _entered(world)))[0] == 404


@pytest.mark.parametrize("what", ["a dump", "a kept report"])
async def test_what_is_of_one_moment(what: str, world: World, cluster: Server) -> None:
    """Neither a dump nor a kept report can be asked for anything, also by a form that was made before."""
    from msgspec.structs import replace

    cookie = await _entered(world)
    fields = await _fields(world, START, cookie)
    board = world.reports.board
    if what == "a dump":
        member = replace(board.entries["harbour"].member, dump="dumps/harbour")
        entry = replace(board.entries["harbour"], member=member)
        world.reports.board = replace(board, entries={**board.entries, "harbour": entry})
    else:
        world.reports.board = replace(board, kept=True)
    assert (await world.ask(START, headers=cookie))[0] == 404
    assert (await _sent(world, START, cookie, fields))[0] == 404
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


async def test_the_end_of_a_session(world: World, cluster: Server) -> None:
    """Whoever has its cookie and its form can do nothing any more."""
    cookie = await _entered(world)
    fields = await _fields(world, START, cookie)
    status, _, answer = await world.ask("/logout", "POST", headers=cookie, data={"key": fields["key"]})
    assert (status, answer.headers["Location"]) == (303, "/")
    assert (await _sent(world, START, cookie, fields))[0] == 403
    assert "desiredUpdate" not in cluster.cluster_version()["spec"]


async def test_a_console_that_only_shows(process: JudgingProcess, tmp_path: Path, cluster: Server) -> None:
    """It has neither the pages nor the forms, unless it is started with them."""
    async with served(process, tmp_path, kubeconfig=cluster.kubeconfig) as world:
        assert (await world.ask(f"/enter?key={ENTER_KEY}"))[0] == 404
        assert (await world.ask(START))[0] == 404
        assert (await world.ask("/clusters/harbour/start", "POST", data={"to": "5.1.0"}))[0] == 405


async def test_by_the_right_of_whoever_is_logged_in(process: JudgingProcess, tmp_path: Path, cluster: Server) -> None:
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
        ) as world,
    ):
        assert (await world.ask(f"/enter?key={ENTER_KEY}"))[0] == 303
        cookies = {}
        for name, token in tokens.items():
            _, _, answer = await world.ask("/login", "POST", data={"token": token})
            cookies[name] = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        fields = await _fields(world, START, cookies["reader"])
        status, text = await _sent(world, START, cookies["reader"], fields)
        assert (status, "cannot patch resource" in text) == (403, True)
        # Nobody's form is taken from somebody else.
        assert (await _sent(world, START, cookies["writer"], fields))[0] == 403
        assert "desiredUpdate" not in cluster.cluster_version()["spec"]
        fields = await _fields(world, START, cookies["writer"])
        status, text = await _sent(world, START, cookies["writer"], fields)
        assert (status, "system:serviceaccount:default:writer" in text) == (200, True)
        assert cluster.cluster_version()["spec"]["desiredUpdate"]["version"] == "5.1.0"


async def test_routes_that_change_something(process: JudgingProcess) -> None:
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
        "/clusters/{name}/start",
    }
