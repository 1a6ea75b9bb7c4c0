"""The console's routes: who gets which page, who must log in, how much is served at once, and streams of events."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.console import boards
from tests.kubekit.kube.apiscript import scripted_api
from tests.process.test_readers import Reviews
from yarl import URL

from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, ManualClock, SystemClock
from kubekit.kube.config import ClusterConfig
from runup.cli.console.pages import ConsolePages
from runup.cli.console.render.frame import path_of
from runup.console.control import login, statuses, web_server
from runup.console.control.cluster_actions import ClusterActions
from runup.console.control.evaluation_process import EvaluationProcess
from runup.console.control.login import Logins
from runup.console.control.reports import Reports
from runup.console.control.statuses import STATUS, Statuses
from runup.console.control.web_server import ConsoleServer
from runup.console.decide import request_rules, sessions
from runup.console.decide.board import Board
from runup.fleet.decide.members import Member
from runup.updatestatus.control.status_reading import StatusReading

pytestmark = pytest.mark.timeout(240)
ENTER_KEY = "the-key-that-was-printed"
HOSTS = request_rules.hosts_of("127.0.0.1", ())
ISLAND = path_of("apps/island:6443/admin")


def _status(member: Member) -> StatusReading:
    """A status with the name of its cluster, and a number that goes up: the length of a file."""
    with (Path(member.kubeconfig) / member.name.replace("/", "_")).open("a+") as file:
        file.write("x")
        file.flush()
        return boards.reading(notes=(f"{member.name} {file.tell()}",))


@pytest.fixture
def process() -> Iterator[EvaluationProcess]:
    """A process that reads statuses."""
    made = EvaluationProcess({STATUS: _status}, parallel=2)
    yield made
    made.close()


class ServedConsole:
    """A console that is served, and what it is asked."""

    def __init__(self, url: str, session: aiohttp.ClientSession, reports: Reports) -> None:
        self.url = url
        self.session = session
        self.reports = reports

    async def ask(self, path: str, method: str = "GET", **more: Any) -> tuple[int, str, aiohttp.ClientResponse]:
        """Status, text and the whole answer."""
        url = URL(f"{self.url}{path}", encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **more) as answer:
            return answer.status, await answer.text(), answer


@asynccontextmanager
async def served(
    process: EvaluationProcess,
    folder: Path,
    logins: Logins | None = None,
    *,
    pages: ConsolePages = boards.PAGES,
    clock: Clock | None = None,
    actions: ClusterActions | None = None,
    kubeconfig: Path | None = None,
) -> AsyncIterator[ServedConsole]:
    """Yields a console that is served; its cluster's files are in `folder`. `kubeconfig` is that of harbour."""
    clock = clock or SystemClock()
    reports = Reports(process, lambda: ((), ()), clock, every_s=600)
    board = boards.board()
    members = {name: _in(entry.member, folder) for name, entry in board.entries.items()}
    if kubeconfig is not None:
        members["harbour"] = Member(name="harbour", kubeconfig=str(kubeconfig))
    reports.board = replace(
        board, entries={name: replace(entry, member=members[name]) for name, entry in board.entries.items()}
    )
    statuses = Statuses(process, reports.member, clock, every_s=0.05)
    server = ConsoleServer(reports, statuses, pages, clock, HOSTS, logins=logins, actions=actions, enter_key=ENTER_KEY)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    reading = asyncio.create_task(statuses.run())
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield ServedConsole(url, session, reports)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await runner.cleanup()


def _in(member: Member, folder: Path) -> Member:
    return member if member.problem else Member(name=member.name, kubeconfig=str(folder), context=member.context or "x")


@pytest.fixture
async def console(process: EvaluationProcess, tmp_path: Path) -> AsyncIterator[ServedConsole]:
    """A console for anybody who reaches it."""
    async with served(process, tmp_path) as made:
        yield made


@pytest.mark.parametrize("path", ["/clusters/harbour", "/clusters/harbour/update/events", "/history?cluster=harbour"])
async def test_a_cluster_is_not_unknown_before_clusters_are_listed(console: ServedConsole, path: str) -> None:
    """An empty list that nobody has read yet proves nothing about a name."""
    console.reports.board = Board()
    status, text, answer = await console.ask(path)
    assert (status, answer.headers["Retry-After"]) == (503, "10")
    assert "he clusters have not been listed yet" in text


@pytest.mark.parametrize(
    ("path", "says"),
    [
        pytest.param("/", "Preflights of 5 clusters", id="the fleet"),
        pytest.param("/clusters/harbour", "Findings", id="a cluster"),
        pytest.param(ISLAND, "Not evaluated yet", id="a cluster with a slash in its name"),
        pytest.param("/clusters/harbour/update", "harbour 1", id="an update"),
        pytest.param(f"{ISLAND}/update", "apps/island:6443/admin 1", id="an update, with a slash"),
        pytest.param("/clusters/ruin/update", "no such file", id="an update that cannot be read"),
        pytest.param("/clusters/harbour/forecast", "Not computed yet", id="a forecast"),
        pytest.param("/clusters/harbour/graph", "The way from", id="a way"),
        pytest.param("/?state=accepted&text=lighthouse", "Clusters (", id="the fleet, filtered"),
        pytest.param("/?severity=x", "severity=x is not known and was ignored", id="a filter that is not known"),
        pytest.param("/history", "What came and went", id="the history"),
        pytest.param("/history?cluster=harbour", "What came and went: harbour", id="the history of a cluster"),
        pytest.param("/console.css", "--page:", id="the style"),
        pytest.param("/console.js", "EventSource", id="the script"),
        pytest.param("/healthz", "ok", id="health"),
    ],
)
async def test_pages(console: ServedConsole, path: str, says: str) -> None:
    """Each with the headers that keep it from doing harm; HEAD has the same without a body."""
    status, text, answer = await console.ask(path)
    assert status == 200
    assert says in text
    assert {name: answer.headers.get(name) for name in request_rules.HEADERS} == dict(request_rules.HEADERS)
    assert "Server" not in answer.headers
    assert (await console.ask(path, "HEAD"))[:2] == (200, "")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("GET", "/clusters/nobody", {}, 404, id="no cluster"),
        pytest.param("GET", "/clusters/%3Cscript%3E", {}, 404, id="no cluster, with markup"),
        pytest.param("GET", "/history?cluster=nobody", {}, 404, id="no cluster in the history"),
        pytest.param("GET", "/etc/passwd", {}, 404, id="no page"),
        pytest.param("GET", "/..%2f..%2fetc/passwd", {}, 404, id="no file"),
        pytest.param("GET", "/", {"Host": "evil.example"}, 421, id="another host"),
        pytest.param("GET", "/console.js", {"Host": "evil.example"}, 421, id="another host, of a file"),
        pytest.param("POST", "/", {}, 405, id="a change"),
        pytest.param("PUT", "/clusters/harbour", {}, 405, id="a write"),
        pytest.param("OPTIONS", "/", {}, 405, id="what a script of another site asks first"),
        pytest.param("POST", "/login", {"Origin": "https://evil.example"}, 403, id="a login by another site"),
        pytest.param("POST", "/login", {}, 404, id="a login where nobody has to"),
    ],
)
async def test_what_is_refused(
    console: ServedConsole, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """As a page with the reason and the same headers; what was asked is not repeated in it."""
    code, text, answer = await console.ask(path, method, headers=headers)
    assert code == status
    assert "evil" not in text
    assert "<script>" not in text
    assert answer.headers["Content-Security-Policy"] == request_rules.HEADERS["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_no_route_changes_anything(process: EvaluationProcess) -> None:
    """All routes are for reading, but those that begin and end a login."""
    clock = SystemClock()
    reports = Reports(process, lambda: ((), ()), clock, every_s=600)
    statuses = Statuses(process, reports.member, clock, every_s=1)
    app = ConsoleServer(reports, statuses, boards.PAGES, clock, HOSTS).app()
    writing = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource}
    assert {each for each in writing if each[0] not in ("GET", "HEAD")} == {("POST", "/login"), ("POST", "/logout")}


async def _events(answer: aiohttp.ClientResponse, most: int = 0) -> AsyncIterator[str]:
    """The data of each event, line by line, of as many events (0: all)."""
    ended = 0
    async for line in answer.content:
        if line.startswith(b"data: "):
            yield line.decode()
        ended += line.startswith(b"event: ")
        if ended and ended == most and line == b"\n":
            return


async def test_an_update_is_renewed(console: ServedConsole) -> None:
    """Each reading is an event, and the next one follows by itself."""
    async with console.session.get(f"{console.url}/clusters/orchard/update/events") as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        # When a browser comes again, in milliseconds (HTML, server-sent events).
        assert await answer.content.readline() == b"retry: 10000\n"
        found: list[int] = []
        async for data in _events(answer):
            if number := re.search(r"orchard (\d+)", data):
                found.append(int(number[1]))
            if len(found) == 3:
                break
    assert found == sorted(set(found))


async def test_an_old_status_is_no_event(process: EvaluationProcess, tmp_path: Path) -> None:
    """An old reading is not sent as new; the next reading is."""
    clock = ManualClock()
    async with served(process, tmp_path, clock=clock) as console:
        assert "orchard 1" in (await console.ask("/clusters/orchard/update"))[1]
        await clock.advance(60)
        async with console.session.get(f"{console.url}/clusters/orchard/update/events") as answer:
            shown = [number[1] async for data in _events(answer, 1) if (number := re.search(r"orchard (\d+)", data))]
    assert shown == ["2"]


async def test_nobody_looks(console: ServedConsole, tmp_path: Path) -> None:
    """A cluster that nobody looks at is not asked."""
    await console.ask("/clusters/harbour/update")
    assert os.listdir(tmp_path) == ["harbour"]  # noqa: PTH208 -- a name is all that is asked


async def test_streams_are_counted(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than there may be is refused, pages are not; whoever leaves makes room."""
    monkeypatch.setattr(web_server, "MOST_STREAMS", 2)
    url = f"{console.url}/clusters/orchard/update/events"
    async with AsyncExitStack() as open_:
        for _ in range(2):
            stream = await open_.enter_async_context(console.session.get(url))
            assert stream.status == 200
        status, _, answer = await console.ask("/clusters/orchard/update/events")
        assert (status, answer.headers["Retry-After"]) == (503, "10")
        assert (await console.ask("/"))[0] == 200
    # The server notices that they have left when it writes to them.
    left = asyncio.Event()
    while not left.is_set():
        async with console.session.get(url) as answer:
            if answer.status == 200:
                left.set()


async def test_a_cluster_without_a_live_status_has_no_stream(console: ServedConsole) -> None:
    """A browser does not come again; a dump is of one moment."""
    assert (await console.ask("/clusters/ruin/update/events"))[0] == 204
    board = console.reports.board
    dump = replace(board.entries["lighthouse"], member=Member(name="lighthouse", dump="dumps/lighthouse"))
    console.reports.board = replace(board, entries={**board.entries, "lighthouse": dump})
    assert (await console.ask("/clusters/lighthouse/update/events"))[0] == 204
    assert (await console.ask("/clusters/nobody/update/events"))[0] == 404


async def test_an_answer_that_is_too_large(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not sent; the reason and another way are."""
    monkeypatch.setattr(web_server, "MAX_ANSWER", 10_000)
    status, text, _ = await console.ask("/clusters/harbour")
    assert (status, "runup fleet preflight -o html=FILE" in text) == (507, True)


async def test_too_many_requests(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused at once, and say when to come again."""
    monkeypatch.setattr(web_server, "MOST_REQUESTS", 0)
    status, text, answer = await console.ask("/")
    assert (status, answer.headers["Retry-After"]) == (503, "10")
    assert "busy" in text


@pytest.fixture
async def closed(process: EvaluationProcess, tmp_path: Path) -> AsyncIterator[tuple[ServedConsole, Reviews]]:
    """A console with a login, and the API server that it asks."""
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        reviews = Reviews(api)
        async with served(process, tmp_path, Logins(client, SystemClock())) as console:
            yield console, reviews


@pytest.mark.parametrize("path", ["/", "/clusters/harbour", "/clusters/nobody", "/history?by=week", "/nowhere"])
async def test_nothing_is_shown_without_a_login(closed: tuple[ServedConsole, Reviews], path: str) -> None:
    """Not even which pages there are; the login leads back to what was asked."""
    status, text, answer = await closed[0].ask(path)
    assert (status, text) == (303, "")
    assert answer.headers["Location"].startswith("/login?next=%2F")
    for value in ("x", "eyJ1c2VyIjoiYSIsInVudGlsX3MiOjk5OTk5OTk5OTl9.x"):
        assert (await closed[0].ask(path, headers={"Cookie": f"__Host-runup-console={value}"}))[0] == 303
    assert (await closed[0].ask("/clusters/harbour/update/events"))[0] == 401
    assert (await closed[0].ask("/healthz"))[0] == 200


async def test_a_login(closed: tuple[ServedConsole, Reviews]) -> None:
    """By a token that the cluster knows, whose user may get the ClusterVersion; its cookie is for this server alone."""
    console, reviews = closed
    status, text, _ = await console.ask("/login?next=%2Fhistory")
    assert (status, 'value="/history"' in text) == (200, True)
    status, _, answer = await console.ask("/login", "POST", data={"token": " t0k3n\n", "next": "/history"})
    assert (status, answer.headers["Location"]) == (303, "/history")
    cookie = answer.headers["Set-Cookie"]
    # A browser takes a cookie with this prefix only with these, and only from this very host.
    assert cookie.startswith("__Host-runup-console=")
    assert set(cookie.split("; ")[1:]) == {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"}
    assert "t0k3n" not in cookie
    pair = cookie.partition(";")[0]
    assert (await console.ask("/history", headers={"Cookie": pair}))[0] == 200
    token, access = reviews.asked
    assert token == {"token": "t0k3n"}
    assert access["user"] == "ann"
    assert access["resourceAttributes"] == {
        "verb": "get",
        "group": "config.openshift.io",
        "version": "v1",
        "resource": "clusterversions",
        "name": "version",
    }


@pytest.mark.parametrize(
    ("form", "access", "status", "says"),
    [
        pytest.param({"token": "made-up"}, {"allowed": True}, 401, "does not know this token", id="a made-up token"),
        pytest.param({"token": "t"}, {"allowed": False}, 403, "ann may not get", id="no right"),
        pytest.param({"token": "t"}, {"allowed": True, "denied": True}, 403, "ann may not get", id="denied by one"),
        pytest.param({"token": ""}, {"allowed": True}, 401, "not a bearer token", id="no token"),
        pytest.param({"token": "a b"}, {"allowed": True}, 401, "not a bearer token", id="two words"),
        pytest.param({"token": "a\r\nX: y"}, {"allowed": True}, 401, "not a bearer token", id="another header"),
        pytest.param({"token": "\u00e9"}, {"allowed": True}, 401, "not a bearer token", id="not ASCII"),
        pytest.param({"token": "x" * 20_000}, {"allowed": True}, 401, "not a bearer token", id="a long one"),
        pytest.param({"token": "x" * 100_000}, {"allowed": True}, 413, "larger than a login", id="no token at all"),
        pytest.param({"next": "/"}, {"allowed": True}, 401, "not a bearer token", id="another form"),
    ],
)
async def test_logins_that_are_refused(
    closed: tuple[ServedConsole, Reviews], form: dict[str, str], access: dict[str, bool], status: int, says: str
) -> None:
    """With the reason, and without a cookie."""
    console, reviews = closed
    reviews.access = access
    code, text, answer = await console.ask("/login", "POST", data=form)
    assert (code, says in text) == (status, True)
    assert "Set-Cookie" not in answer.headers


async def _begin_a_login(url: str, ending: AsyncExitStack) -> asyncio.StreamReader:
    """Returns the answer to a login that is begun and never sent whole."""
    address = URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    ending.callback(writer.close)
    head = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100"
    writer.write(f"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\ntoken=".encode())
    return reader


async def test_logins_that_are_never_sent_whole(process: EvaluationProcess, tmp_path: Path) -> None:
    """Whoever is not logged in can begin many: they stop neither pages nor probes, and end after a while."""
    clock = ManualClock()
    async with AsyncExitStack() as ending:
        api = await ending.enter_async_context(scripted_api())
        client = await ending.enter_async_context(Client(ClusterConfig(server=api.url)))
        Reviews(api)
        console = await ending.enter_async_context(served(process, tmp_path, Logins(client, clock), clock=clock))
        _, _, answer = await console.ask("/login", "POST", data={"token": "t"})
        cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        begun = [await _begin_a_login(console.url, ending) for _ in range(web_server.MOST_FORMS)]
        await clock.until_sleeping(web_server.MOST_FORMS)
        for _ in range(web_server.MOST_REQUESTS - web_server.MOST_FORMS):
            assert b" 503 " in await (await _begin_a_login(console.url, ending)).readline()
        assert (await console.ask("/healthz"))[0] == 200
        assert (await console.ask("/history", headers=cookie))[0] == 200
        await clock.advance(web_server.FORM_S)
        for reader in begun:
            assert b" 408 " in await reader.readline()
        assert (await console.ask("/login", "POST", data={"token": "t"}))[0] == 303


async def test_more_logins_than_there_may_be(
    closed: tuple[ServedConsole, Reviews], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all users together, and of those that the API server is asked about at once: the login is refused."""
    console, _ = closed
    monkeypatch.setattr(sessions, "MOST", 0)
    status, text, answer = await console.ask("/login", "POST", data={"token": "t"})
    assert (status, "0 are logged in already" in text, "Set-Cookie" in answer.headers) == (503, True, False)
    monkeypatch.setattr(login, "WAITING", 0)
    status, text, answer = await console.ask("/login", "POST", data={"token": "t"})
    assert (status, "too many logins at once; try again in a minute" in text) == (503, True)
    assert "Set-Cookie" not in answer.headers


async def test_a_login_where_nobody_has_to_is_not_read(console: ServedConsole) -> None:
    """It is refused before it is sent whole."""
    async with AsyncExitStack() as ending:
        assert b" 404 " in await (await _begin_a_login(console.url, ending)).readline()


async def test_a_busy_console_is_not_ill(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe is answered when nobody else is: a kubelet would end the console."""
    monkeypatch.setattr(web_server, "MOST_REQUESTS", 0)
    assert (await console.ask("/"))[0] == 503
    assert (await console.ask("/healthz"))[0] == 200


async def test_an_api_server_that_does_not_answer(process: EvaluationProcess, tmp_path: Path) -> None:
    """Nobody gets in."""
    async with scripted_api() as api:
        gone = ClusterConfig(server=api.url)
    async with Client(gone) as client, served(process, tmp_path, Logins(client, SystemClock())) as console:
        status, text, answer = await console.ask("/login", "POST", data={"token": "t"})
    assert (status, "could not be asked who this is" in text) == (503, True)
    assert "Set-Cookie" not in answer.headers


KEY = re.compile(r'name="key" value="([^"]+)"')


async def _cookie(console: ServedConsole, user: str = "t") -> dict[str, str]:
    """The header with the cookie of a new login."""
    _, _, answer = await console.ask("/login", "POST", data={"token": user})
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


async def _form_key(console: ServedConsole, cookie: dict[str, str], path: str = "/logout") -> str:
    status, text, _ = await console.ask(path, headers=cookie)
    match = KEY.search(text)
    assert (status, match is not None) == (200, True)
    assert match is not None
    return match[1]


async def test_a_login_ends(closed: tuple[ServedConsole, Reviews]) -> None:
    """In the browser, and on the server: whoever kept the cookie has nothing. The same user's other login continues."""
    console, _ = closed
    cookie, other = await _cookie(console), await _cookie(console)
    assert "You are logged in as ann." in (await console.ask("/logout", headers=cookie))[1]
    key = await _form_key(console, cookie)
    status, _, answer = await console.ask("/logout", "POST", headers=cookie, data={"key": key})
    assert (status, answer.headers["Location"]) == (303, "/login")
    assert re.match(r'__Host-runup-console=""; .*Max-Age=0', answer.headers["Set-Cookie"])
    for path in ("/", "/clusters/harbour", "/history", "/logout"):
        assert (await console.ask(path, headers=cookie))[0] == 303
    assert (await console.ask("/clusters/harbour/update/events", headers=cookie))[0] == 401
    assert (await console.ask("/", headers=other))[0] == 200


@pytest.mark.parametrize("more", ["{}; {}", "{}; __Host-runup-console=x", "__Host-runup-console=x; {}"])
async def test_two_cookies_are_none(closed: tuple[ServedConsole, Reviews], more: str) -> None:
    """A sibling host's cookie of the name neither logs a user in as another, nor counts next to the real one."""
    console, _ = closed
    real, other = (await _cookie(console))["Cookie"], (await _cookie(console))["Cookie"]
    assert (await console.ask("/", headers={"Cookie": more.format(real, other)}))[0] == 303
    assert (await console.ask("/", headers={"Cookie": f"a=b; {real}; runup-console=x"}))[0] == 200


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        pytest.param({"Origin": "https://evil.example"}, "own", id="by another site"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, "own", id="by another site, as browsers say it"),
        pytest.param({}, "", id="without a key"),
        pytest.param({}, "made-up", id="with a key that is made up"),
        pytest.param({}, "other", id="with the key of another session"),
    ],
)
async def test_a_login_is_not_ended_by_others(
    closed: tuple[ServedConsole, Reviews], headers: dict[str, str], key: str
) -> None:
    """A foreign form does not end a login."""
    console, _ = closed
    cookie, other = await _cookie(console), await _cookie(console)
    keys = {"own": await _form_key(console, cookie), "other": await _form_key(console, other)}
    sent = {"key": keys.get(key, key)}
    assert (await console.ask("/logout", "POST", headers={**cookie, **headers}, data=sent))[0] == 403
    assert (await console.ask("/", headers=cookie))[0] == 200


async def test_a_stream_ends_with_its_login(process: EvaluationProcess, tmp_path: Path) -> None:
    """Nothing is sent any more to anybody who has the cookie, also on a page that was opened before."""
    clock = ManualClock()
    async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
        Reviews(api)
        async with served(process, tmp_path, Logins(client, clock), clock=clock) as console:
            cookie = await _cookie(console)
            key = await _form_key(console, cookie)
            url = f"{console.url}/clusters/orchard/update/events"
            async with console.session.get(url, headers=cookie) as answer:
                assert [data async for data in _events(answer, 1)]
                assert (await console.ask("/logout", "POST", headers=cookie, data={"key": key}))[0] == 303
                await clock.advance(60)
                assert await answer.content.read() == b""


async def test_an_end_that_is_not_read(closed: tuple[ServedConsole, Reviews], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more forms are being sent than are read; the login continues."""
    console, _ = closed
    cookie = await _cookie(console)
    key = await _form_key(console, cookie)
    with monkeypatch.context() as patch:
        patch.setattr(web_server, "MOST_FORMS", 0)
        status, text, _ = await console.ask("/logout", "POST", headers=cookie, data={"key": key})
        assert (status, "0 forms are being sent already" in text) == (503, True)
    assert (await console.ask("/history", headers=cookie))[0] == 200


async def test_a_status_that_is_too_large(console: ServedConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept, and the page says so."""
    monkeypatch.setattr(statuses, "MAX_STATUS", 10)
    status, text, _ = await console.ask("/clusters/harbour/update")
    assert (status, "more than the console keeps" in text, "harbour 1" in text) == (200, True, False)


async def test_no_end_without_a_login(console: ServedConsole) -> None:
    """Where nobody logs in there is nothing to end."""
    assert (await console.ask("/logout"))[0] == 404
    assert (await console.ask("/logout", "POST", data={"key": "x"}))[0] == 403
