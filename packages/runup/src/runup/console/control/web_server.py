"""Serves the console: which request gets which page, who must log in, and how much is served at once.

In: requests, the `Board`, the statuses. Out: pages that `Pages` renders, in threads, and streams of events. Clusters
are changed by `Actions` alone, where the server has them, for a session, by a form that was made for it.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import partial
from typing import Protocol
from urllib.parse import quote

import structlog
from aiohttp import web

from kubekit.kube.clock import Clock, run_within
from runup.console.control.login import MAX_TOKEN, Logins
from runup.console.control.reports import Reports
from runup.console.control.statuses import ClusterStatus, Statuses
from runup.console.decide import request_rules, sessions
from runup.console.decide.asked_actions import ACTIONS, ActionResult, RequestedAction, asked_of, can_be_changed
from runup.console.decide.board import Board
from runup.console.decide.sessions import Session, Sessions
from runup.process.endpoint import Refusal

log = structlog.get_logger("console")
# Streams of events that are open at once, forms that are being sent, and other requests that are answered at once.
MOST_STREAMS = 64
MOST_FORMS = 32
MOST_REQUESTS = 64
# Seconds that a browser may take to send a form, which whoever is not logged in can send, too.
FORM_S = 10.0
# Pages that are rendered at once, and clusters that are looked at or changed for somebody: each takes a thread.
_RENDERED_AT_ONCE = 4
_ACTING_AT_ONCE = 4
# Bytes of an answer; and of pages that are kept, since many readers look at one page.
MAX_ANSWER = 16 * 1024 * 1024
_MOST_KEPT = 16
_MAX_KEPT_PAGE = 2 * 1024 * 1024
# Seconds: between signs of life of a stream, that a page waits for a status, and that a stream lasts.
_SIGN_OF_LIFE_S = 15.0
_WAIT_FOR_STATUS_S = 10.0
_STREAM_LASTS_S = 3600.0
# Seconds after which a browser opens a stream again.
_RETRY_MS = 10_000
_COOKIE = "runup-console"
_BUSY = "the console is busy; try again in a moment"
_NOT_OURS = "this form was not made for you by this console, or your login is over; open its page again"
_NO_SESSION = (
    "only the user who started the console may change clusters: open the address, with its key, that the console "
    "printed at its start"
)
_SESSION = web.RequestKey("session", Session)


class Pages(Protocol):
    """Renders every page as HTML. Each call may take a while, and is made in a thread."""

    def fleet(self, board: Board, now: datetime, query: Mapping[str, str]) -> str:
        """Returns the page of the clusters that `query`, that of the address, selects."""

    def cluster(self, board: Board, name: str, now: datetime) -> str:
        """Returns the page of one cluster's preflight."""

    def update(
        self, board: Board, name: str, status: ClusterStatus | None, *, outlook: ClusterStatus | None, now: datetime
    ) -> str:
        """Returns the page of one cluster's update; `outlook` has its forecast, None until it was read."""

    def update_part(self, name: str, status: ClusterStatus, *, outlook: ClusterStatus | None, now: datetime) -> str:
        """Returns the part of that page that is renewed."""

    def forecast(self, board: Board, name: str, outlook: ClusterStatus | None, now: datetime) -> str:
        """Returns the page of one cluster's forecast and simulated drains."""

    def policy(self, board: Board, name: str, read: ClusterStatus | None, now: datetime) -> str:
        """Returns the page of one cluster's update policy and runs; `read` is None until they were read."""

    def graph(self, board: Board, name: str, now: datetime) -> str:
        """Returns the page of one cluster's way through the update graph."""

    def history(self, board: Board, cluster: str, now: datetime, *, weeks: bool) -> str:
        """Returns the page of new and gone risks, of one cluster if `cluster` names one."""

    def login(self, problem: str, next_page: str) -> str:
        """Returns the page with the form of the login."""

    def logout(self, user: str, form_key: str) -> str:
        """Returns the page with the form that ends a login."""

    def action(self, asked: RequestedAction, looked: ActionResult, form_key: str, now: datetime) -> str:
        """Returns the page of an action: the choices, the confirmation, or the result."""

    def problem(self, status: int, problem: str) -> str:
        """Returns the page of a request that has no other answer."""

    def style(self) -> str:
        """Returns the style sheet."""

    def script(self) -> str:
        """Returns the script."""


class Actions(Protocol):
    """Reads and changes clusters on behalf of users. Calls block, and are made in a thread."""

    def look(self, asked: RequestedAction) -> ActionResult:
        """Returns the state of the cluster, and the messages or refusal of the action; changes nothing."""

    def act(self, asked: RequestedAction, confirmed: str) -> ActionResult:
        """Performs the action if the `confirmed` state has not changed; returns the state afterwards."""


class ConsoleServer:
    """The console's web application. Without `logins` every client that reaches it may read. Without `actions` nothing
    can be changed from it. With actions and without logins, a client that has `enter_key` may change clusters.
    """

    def __init__(
        self,
        reports: Reports,
        statuses: Statuses,
        pages: Pages,
        clock: Clock,
        hosts: frozenset[str],
        *,
        logins: Logins | None = None,
        actions: Actions | None = None,
        enter_key: str = "",
        outlooks: Statuses | None = None,
        policies: Statuses | None = None,
    ) -> None:
        self._reports = reports
        self._statuses = statuses
        self._outlooks = outlooks
        self._policies = policies
        self._pages = pages
        self._clock = clock
        self._hosts = hosts
        self._logins = logins
        self._actions = actions
        self._enter_key = enter_key
        self._sessions = Sessions()
        self._acting = asyncio.Semaphore(_ACTING_AT_ONCE)
        self._streams = 0
        self._forms = 0
        self._requests = 0
        self._rendering = asyncio.Semaphore(_RENDERED_AT_ONCE)
        self._kept: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._ending = asyncio.Event()

    def app(self) -> web.Application:
        """Returns the application."""
        app = web.Application(middlewares=[self._guard], client_max_size=4 * MAX_TOKEN)
        app.on_response_prepare.append(_add_headers)
        app.on_shutdown.append(self._end_streams)
        app.router.add_get("/", self._fleet)
        app.router.add_get("/clusters/{name}", self._cluster)
        app.router.add_get("/clusters/{name}/update", self._update)
        app.router.add_get("/clusters/{name}/update/events", self._events, allow_head=False)
        app.router.add_get("/clusters/{name}/forecast", self._forecast)
        app.router.add_get("/clusters/{name}/policy", self._policy)
        app.router.add_get("/clusters/{name}/graph", self._graph)
        app.router.add_get("/history", self._history)
        app.router.add_get(request_rules.LOGIN, self._login_page)
        app.router.add_post(request_rules.LOGIN, self._login)
        app.router.add_get(request_rules.LOGOUT, self._logout_page)
        app.router.add_post(request_rules.LOGOUT, self._logout)
        if self._actions is not None:
            app.router.add_get(request_rules.ENTER, self._enter, allow_head=False)
            for action in ACTIONS:
                app.router.add_get(f"/clusters/{{name}}/{action}", self._action_page, allow_head=False)
                app.router.add_post(f"/clusters/{{name}}/{action}", self._act)
        app.router.add_get("/console.css", self._style)
        app.router.add_get("/console.js", self._script)
        app.router.add_get("/healthz", self._healthy)
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answers what may be answered, within the limits; every error becomes a page."""
        acts = self._actions is not None
        refused = request_rules.refusal(request.method, request.path, request.headers, self._hosts, acts=acts)
        if refused is not None:
            return await self._problem(*refused)
        session = self._session_of(request)
        if session is not None:
            request[_SESSION] = session
        elif self._logins is not None and request.path not in request_rules.PUBLIC:
            return _to_login(request)
        if request.path == "/healthz":
            # A console that is busy is not ill: a kubelet would restart it.
            return await handler(request)
        if self._requests >= MOST_REQUESTS:
            return await self._problem(503, _BUSY)
        self._requests += 1
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            # The sentence for a status that has no text of its own.
            if error.status == 404:
                default_reason = "there is no such page or cluster"
            elif error.status == 503:
                default_reason = "the clusters have not been listed yet; try again in a moment"
            elif error.status == 413:
                default_reason = "the request is larger than a login"
            else:
                default_reason = "the request cannot be answered"
            return await self._problem(error.status, default_reason)
        finally:
            self._requests -= 1

    def _session_of(self, request: web.Request) -> Session | None:
        """Returns the session of the request's cookie, None without one or if it has ended."""
        now = self._clock.now()
        self._sessions = sessions.without_ended(self._sessions, now)
        return sessions.session_of(self._sessions, self._cookie(request), now)

    def _cookie(self, request: web.Request) -> str:
        """Returns the value of the session's cookie; empty without one.

        A sibling host or port can set a cookie of the same name, and a browser may send it first or last. Two cookies
        of the name are thus as none.
        """
        name = self._cookie_name(request)
        pairs = ";".join(request.headers.getall("Cookie", [])).split(";")
        values = [value.strip() for key, _, value in (pair.partition("=") for pair in pairs) if key.strip() == name]
        return values[0] if len(values) == 1 else ""

    def _is_secure(self, request: web.Request) -> bool:
        # A login is asked for only where TLS is, so its cookie is for TLS alone.
        return self._logins is not None or request.secure

    def _cookie_name(self, request: web.Request) -> str:
        # A browser sends the cookies of one port of this machine to all of them. It takes a cookie with the prefix
        # only from this very host (RFC 6265bis, 4.1.3.2).
        name = _COOKIE if self._logins is not None else f"{_COOKIE}-{request.url.port}"
        return f"__Host-{name}" if self._is_secure(request) else name

    async def _problem(self, status: int, problem: str) -> web.Response:
        headers = {"Retry-After": "10"} if status == 503 else {"Allow": "GET, HEAD"} if status == 405 else {}
        return _page(self._pages.problem(status, problem).encode(), status, headers)

    async def _rendered(self, render: Callable[[], str], key: tuple[object, ...] | None = None) -> web.Response:
        """Returns the response with a page that `render` makes in a thread.

        With a `key` the page is kept, and the next request with that key gets the same.
        """
        body = self._kept.get(key) if key else None
        if body is None:
            async with self._rendering:
                body = await asyncio.to_thread(lambda: render().encode())
        if len(body) > MAX_ANSWER:
            problem = (
                f"this page would have {len(body) // 1024} KiB; `runup fleet preflight -o html=FILE` writes such pages"
            )
            return await self._problem(507, problem)
        if key and len(body) <= _MAX_KEPT_PAGE:
            self._kept[key] = body
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return _page(body)

    def _cluster_name(self, request: web.Request) -> str:
        """Returns the cluster that a request is about. Raises HTTPNotFound and HTTPServiceUnavailable."""
        name = request.match_info["name"]
        self._check_known(name)
        return name

    def _check_known(self, name: str) -> None:
        """Raises HTTPNotFound for an unknown cluster, HTTPServiceUnavailable until the clusters have been listed."""
        board = self._reports.board
        if name not in board.entries:
            raise web.HTTPNotFound if board.version else web.HTTPServiceUnavailable

    def _key_now(self, *key_parts: object) -> tuple[object, ...]:
        # Pages say ages to the minute.
        return (*key_parts, self._reports.board.version, int(self._clock.now().timestamp()) // 60)

    async def _fleet(self, request: web.Request) -> web.Response:
        board, now = self._reports.board, self._clock.now()
        query = dict(request.query)
        key = self._key_now("fleet", *sorted(query.items()))
        return await self._rendered(lambda: self._pages.fleet(board, now, query), key)

    async def _cluster(self, request: web.Request) -> web.Response:
        name, board, now = self._cluster_name(request), self._reports.board, self._clock.now()
        return await self._rendered(lambda: self._pages.cluster(board, name, now), self._key_now("cluster", name))

    async def _graph(self, request: web.Request) -> web.Response:
        name, board, now = self._cluster_name(request), self._reports.board, self._clock.now()
        return await self._rendered(lambda: self._pages.graph(board, name, now), self._key_now("graph", name))

    async def _history(self, request: web.Request) -> web.Response:
        """Answers with the history of all clusters, or of the one that the query names."""
        board, now = self._reports.board, self._clock.now()
        cluster, weeks = request.query.get("cluster", ""), request.query.get("by") == "week"
        if cluster:
            self._check_known(cluster)
        return await self._rendered(lambda: self._pages.history(board, cluster, now, weeks=weeks))

    async def _update(self, request: web.Request) -> web.Response:
        name = self._cluster_name(request)
        status = await self._newest_of(self._statuses, name)
        # A forecast takes longer than a status: a page that renews itself does not wait for it.
        member, outlooks = self._reports.member(name), self._outlooks
        outlook = None
        if outlooks is not None:
            is_dump = member is not None and bool(member.dump)
            outlook = await self._newest_of(outlooks, name) if is_dump else outlooks.newest(name)
        board, now = self._reports.board, self._clock.now()
        return await self._rendered(lambda: self._pages.update(board, name, status, outlook=outlook, now=now))

    async def _forecast(self, request: web.Request) -> web.Response:
        name = self._cluster_name(request)
        outlook = await self._newest_of(self._outlooks, name) if self._outlooks is not None else None
        board, now = self._reports.board, self._clock.now()
        return await self._rendered(lambda: self._pages.forecast(board, name, outlook, now))

    async def _policy(self, request: web.Request) -> web.Response:
        name = self._cluster_name(request)
        read = await self._newest_of(self._policies, name) if self._policies is not None else None
        board, now = self._reports.board, self._clock.now()
        return await self._rendered(lambda: self._pages.policy(board, name, read, now))

    async def _newest_of(self, statuses: Statuses, name: str) -> ClusterStatus | None:
        """Returns the status of a cluster, read again if it is old; None if it did not come in time or never does."""
        if not self._is_readable(name) or statuses.is_fresh(name):
            return statuses.newest(name)
        newest = statuses.newest(name)
        with statuses.looking_at(name), suppress(TimeoutError):
            waiting = statuses.after(name, newest.count if newest else 0)
            newest = await run_within(self._clock, _WAIT_FOR_STATUS_S, waiting)
        return newest

    def _is_readable(self, name: str) -> bool:
        member = self._reports.member(name)
        return not self._reports.board.kept and member is not None and not member.problem

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Streams each new status of a cluster as it is read."""
        name = self._cluster_name(request)
        member = self._reports.member(name)
        if not self._is_readable(name) or (member is not None and member.dump):
            # A dump is of one moment: nothing will be renewed. A browser does not open a stream again after 204.
            return web.Response(status=204)
        if self._streams >= MOST_STREAMS:
            return await self._problem(503, f"{MOST_STREAMS} pages are renewed already; {_BUSY}")
        self._streams += 1
        # A stream is no request that ends soon: it has a separate limit.
        self._requests -= 1
        try:
            return await self._stream(request, name)
        finally:
            self._requests += 1
            self._streams -= 1

    async def _stream(self, request: web.Request, name: str) -> web.StreamResponse:
        """Sends each new status as a server-sent event, until the limit, the end of the session or of the server."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        until_s = self._clock.monotonic() + _STREAM_LASTS_S
        # A browser that comes again gets the newest, whatever it had: numbers begin again with the server. One that
        # nobody looked at for a while is not the newest: the next is.
        newest = self._statuses.newest(name)
        count = newest.count if newest and not self._statuses.is_fresh(name) else 0
        looking = self._outlooks.looking_at(name) if self._outlooks is not None else nullcontext()
        with self._statuses.looking_at(name), looking, suppress(ConnectionError):
            await response.write(f"retry: {_RETRY_MS}\n\n".encode())
            while self._clock.monotonic() < until_s and self._is_session_valid(request) and not self._ending.is_set():
                cluster_status = await self._next_status(name, count)
                if not self._is_session_valid(request):
                    break
                if cluster_status is None:
                    await response.write(b": still here\n\n")
                    continue
                count = cluster_status.count
                now = self._clock.now()
                async with self._rendering:
                    outlook = self._outlooks.newest(name) if self._outlooks is not None else None
                    render = partial(self._pages.update_part, name, cluster_status, outlook=outlook, now=now)
                    page_part = await asyncio.to_thread(render)
                # An event with a part of a page. https://html.spec.whatwg.org/multipage/server-sent-events.html
                lines = "".join(f"data: {line}\n" for line in page_part.replace("\r", "").split("\n"))
                await response.write(f"id: {count}\nevent: status\n{lines}\n".encode())
        return response

    def _is_session_valid(self, request: web.Request) -> bool:
        # A session that was there when the stream began may have ended since.
        return request.get(_SESSION) is None or self._session_of(request) is not None

    async def _next_status(self, name: str, count: int) -> ClusterStatus | None:
        """Returns the next status of a cluster; None when it is time for a sign of life, or the server ends."""
        status = asyncio.ensure_future(self._statuses.after(name, count))
        ending = asyncio.ensure_future(self._ending.wait())
        pause = asyncio.ensure_future(self._clock.sleep(_SIGN_OF_LIFE_S))
        try:
            await asyncio.wait((status, ending, pause), return_when=asyncio.FIRST_COMPLETED)
            return status.result() if status.done() else None
        finally:
            for task in (status, ending, pause):
                task.cancel()

    async def _end_streams(self, _app: web.Application) -> None:
        self._ending.set()

    async def _login_page(self, request: web.Request) -> web.Response:
        next_path = request_rules.next_page(request.query.get("next", "/"))
        return _page(self._pages.login("", next_path).encode())

    async def _login(self, request: web.Request) -> web.Response:
        """Answers the form of the login: with a cookie and the page that was asked for, or with the form again."""
        if self._logins is None:
            raise web.HTTPNotFound
        form = await self._form(request)
        if isinstance(form, web.Response):
            return form
        after = form.get("next")
        after = request_rules.next_page(after if isinstance(after, str) else "/")
        token = form.get("token")
        token = token.strip() if isinstance(token, str) else ""
        user = await self._logins.user_of(token)
        if isinstance(user, Refusal):
            return _page(self._pages.login(user.message, after).encode(), user.status)
        # Kept only where the console may do something for its user, who is asked by it.
        return await self._begin_session(request, user, after, token=token if self._actions is not None else "")

    async def _enter(self, request: web.Request) -> web.Response:
        """Answers the address that the console printed when it was started: who has it, started it."""
        sent = request.query.get("key", "").encode()
        if self._logins is not None or not self._enter_key or not hmac.compare_digest(sent, self._enter_key.encode()):
            return await self._problem(403, _NO_SESSION)
        return await self._begin_session(request, "", "/", local=True)

    async def _begin_session(
        self, request: web.Request, user: str, after: str, *, token: str = "", local: bool = False
    ) -> web.Response:
        """Begins a session, and leads to the page `after`."""
        cookie, now = secrets.token_urlsafe(sessions.COOKIE_BYTES), self._clock.now()
        session = sessions.begin(user, secrets.token_urlsafe(sessions.COOKIE_BYTES), now, token=token, local=local)
        more = sessions.with_session(self._sessions, cookie, session, now)
        if more is None:
            return await self._problem(503, f"{sessions.MOST} are logged in already; {_BUSY}")
        self._sessions = more
        response = web.Response(status=303, headers={"Location": after})
        name, secure = self._cookie_name(request), self._is_secure(request)
        response.set_cookie(name, cookie, httponly=True, secure=secure, samesite="Strict", path="/")
        return response

    async def _logout_page(self, request: web.Request) -> web.Response:
        session = request.get(_SESSION)
        if session is None:
            raise web.HTTPNotFound
        return _page(self._pages.logout(session.user, session.form_key).encode())

    async def _logout(self, request: web.Request) -> web.Response:
        """Ends the session, here and in the browser."""
        form = await self._form(request)
        if isinstance(form, web.Response):
            return form
        session = request.get(_SESSION)
        if session is None or not sessions.is_form_of(session, form.get("key")):
            return await self._problem(403, _NOT_OURS)
        name = self._cookie_name(request)
        self._sessions = sessions.without(self._sessions, self._cookie(request))
        after = "/" if self._logins is None else request_rules.LOGIN
        response = web.Response(status=303, headers={"Location": after})
        response.del_cookie(name, path="/", httponly=True, secure=self._is_secure(request), samesite="Strict")
        return response

    def _asked(self, request: web.Request, session: Session, values: Mapping[str, object]) -> RequestedAction:
        """Returns the requested action on a cluster. Raises HTTPNotFound if actions are not possible."""
        name = self._cluster_name(request)
        member = self._reports.member(name)
        if member is None or not can_be_changed(member, kept=self._reports.board.kept):
            raise web.HTTPNotFound
        return asked_of(request.path.rpartition("/")[2], member, values, session.token)

    async def _action_page(self, request: web.Request) -> web.Response:
        """Answers with the possible actions on a cluster, or with a confirmation page."""
        session = request.get(_SESSION)
        if session is None or self._actions is None:
            return await self._problem(403, _NO_SESSION)
        asked = self._asked(request, session, request.query)
        async with self._acting:
            looked = await asyncio.to_thread(self._actions.look, asked)
        return await self._action(asked, looked, session)

    async def _act(self, request: web.Request) -> web.Response:
        """Performs the confirmed action, and answers with the state afterwards."""
        session = request.get(_SESSION)
        form = await self._form(request)
        if isinstance(form, web.Response):
            return form
        if session is None or self._actions is None or not sessions.is_form_of(session, form.get("key")):
            return await self._problem(403, _NOT_OURS)
        asked, confirmed = self._asked(request, session, form), form.get("confirmed")
        async with self._acting:
            looked = await asyncio.to_thread(self._actions.act, asked, confirmed if isinstance(confirmed, str) else "")
        user = looked.truth.user if looked.truth else session.user
        log.info(
            "an action was carried out" if looked.done else "an action was refused",
            action=asked.action,
            cluster=asked.member.name,
            target=asked.target,
            user=user,
            why=looked.refused,
        )
        self._reports.again(asked.member.name)
        if self._policies is not None:
            self._policies.forget(asked.member.name)
        return await self._action(asked, looked, session)

    async def _action(self, asked: RequestedAction, looked: ActionResult, session: Session) -> web.Response:
        now = self._clock.now()
        async with self._rendering:
            page = await asyncio.to_thread(lambda: self._pages.action(asked, looked, session.form_key, now))
        return _page(page.encode(), looked.status)

    async def _form(self, request: web.Request) -> Mapping[str, object] | web.Response:
        """Returns the form that a request sends, or the answer to one that is not sent in time.

        Raises HTTPException for one that is too large.
        """
        if self._forms >= MOST_FORMS:
            return await self._problem(503, f"{MOST_FORMS} forms are being sent already; {_BUSY}")
        try:
            return await self._receive_form(request)
        except TimeoutError:
            late = await self._problem(408, f"the form was not sent within {FORM_S:g} seconds")
            late.force_close()
            return late

    async def _receive_form(self, request: web.Request) -> Mapping[str, object]:
        """Returns the form once it is received. Raises TimeoutError after `FORM_S` seconds."""
        self._forms += 1
        # What is still being sent keeps no page from being answered: it has a separate limit.
        self._requests -= 1
        try:
            return await run_within(self._clock, FORM_S, request.post())
        finally:
            self._requests += 1
            self._forms -= 1

    async def _style(self, _request: web.Request) -> web.Response:
        return web.Response(text=self._pages.style(), content_type="text/css")

    async def _script(self, _request: web.Request) -> web.Response:
        return web.Response(text=self._pages.script(), content_type="text/javascript")

    async def _healthy(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")


def _page(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=status, headers=headers, content_type="text/html", charset="utf-8")


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(request_rules.HEADERS)
    response.headers.popall("Server", None)


def _to_login(request: web.Request) -> web.Response:
    """Redirects to the login; a stream of events gets an error for the script instead."""
    if request.path.endswith("/events"):
        return web.Response(status=401)
    next_path = quote(request_rules.next_page(request.path_qs), safe="")
    return web.Response(status=303, headers={"Location": f"{request_rules.LOGIN}?next={next_path}"})
