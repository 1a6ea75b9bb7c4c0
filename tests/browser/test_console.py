"""The console in a real browser: axe-core finds nothing, nothing moves sideways, keys reach all, and pages are renewed.

Runs where Chromium and npm are; the rules of the markup itself are held everywhere by `tests/cli/console`.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict
from tests.browser import browser
from tests.cli.commands import Server
from tests.cli.console.test_actions import STATUS
from tests.console import boards
from tests.console.control.test_web_server import ENTER_KEY, served
from tests.kubekit.kube.apiscript import scripted_api
from tests.process.forward_proxy import Authority
from tests.process.test_readers import Reviews

from kubekit.kube.client import Client
from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig
from runup.cli.console.pages import ConsolePages
from runup.cli.console.render.frame import CSS, SCRIPT
from runup.console.control.cluster_actions import ClusterActions
from runup.console.control.evaluation_process import EvaluationProcess
from runup.console.control.login import Logins
from runup.process.connection import Connection

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("browser")]
LINKED = '<link rel="stylesheet" href="/console.css"><script src="/console.js" defer=""></script>'
# A page is looked at as a file: its style is put into it, and its policy, which the server sends, is written into it.
POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
ALL = {
    name: page
    for name, page in boards.pages().items()
    if name
    in (
        "a fleet",
        "a preflight with everything",
        "an update under way",
        "an update with its forecast",
        "a forecast",
        "a way",
        "a way of one update",
        "a history",
        "a history of a cluster",
        "a login",
        "a cluster that can be changed",
        "a risk to be confirmed",
        "a policy where clusters can be changed",
        "an approval to be confirmed",
        "an update that was refused",
        "an update that was started",
        "the end of a login",
    )
}
# 640: a window of 1280 pixels at a zoom of 200 % (WCAG 2.2, 1.4.4).
LOOKS = {
    "on a screen": (False, 1280),
    "at 200 %": (False, 640),
    "in the dark": (True, 1280),
    "on a phone": (False, 390),
}


def _as_file(page: str, *, dark: bool = False) -> str:
    assert LINKED in page
    style = CSS.replace("@media (prefers-color-scheme: dark)", "@media all") if dark else CSS
    assert (style != CSS) == dark
    return page.replace(LINKED, f"{POLICY}<style>{style}</style>")


@pytest.fixture(scope="session")
def axe() -> Path:
    """axe-core; where it cannot be fetched that is tried once."""
    browser.chromium()
    return browser.axe()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ALL)
def test_axe_finds_nothing(name: str, look: str, axe: Path, tmp_path: Path) -> None:
    """Contrast of 4.5 to 1, headings in order, captions, landmarks, labels, what keys reach."""
    dark, width = LOOKS[look]
    found = browser.found_by_axe(axe, _as_file(ALL[name], dark=dark), tmp_path, width=width)
    assert [one for one in found if not _is_undecided(one)] == []


def _is_undecided(found: dict[str, Any]) -> bool:
    """Whether axe-core could not decide about a contrast: of what reaches out of a frame, is a digit long, or is drawn.

    Words in a drawing have the colour of the page's text on the page's ground, which axe-core evaluates elsewhere, and
    a line of the drawing may cross them. A command that is folded overlaps its button's line.
    """
    undecided = found["kind"] == "incomplete" and found["id"] == "color-contrast"
    known = (
        "partially obscured",
        "content is too short",
        "contains an image node",
        "is overlapped by another element",
        "partially overlaps other elements",
    )
    return undecided and all(any(words in why for words in known) for _, why in found["nodes"])


@pytest.mark.parametrize("width", [1280, 640, 390])
@pytest.mark.parametrize("name", ALL)
def test_nothing_moves_sideways(name: str, width: int, tmp_path: Path) -> None:
    """Long names are folded; tables and drawings scroll in separate frames."""
    browser.chromium()
    assert browser.moved_sideways(_as_file(ALL[name]), tmp_path, width=width) == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_a_hostile_fleet_does_not_move_sideways(width: int, tmp_path: Path) -> None:
    """Names of hundreds of letters neither."""
    browser.chromium()
    board, name = boards.hostile()
    for page in (boards.PAGES.fleet(board, boards.NOW), boards.PAGES.cluster(board, name, boards.NOW)):
        assert browser.moved_sideways(_as_file(page), tmp_path, width=width) == 0


# Each thing that can be used gets the focus, is seen then, and nothing takes it out of order.
REACHED = """Promise.resolve([...document.querySelectorAll(
  "a, summary, button, textarea, input[type=text], [role=region]")].map(each => {
  for (let around = each.parentElement; around; around = around.parentElement)
    if (around.tagName === "DETAILS" && each.tagName !== "SUMMARY") around.open = true;
  each.focus();
  const box = each.getBoundingClientRect();
  return [document.activeElement === each, each.tabIndex, box.width > 0 && box.height > 0 && box.left >= 0];
}))"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ALL)
def test_keys_reach_all(name: str, width: int, tmp_path: Path) -> None:
    """Links, folded texts, tables that move, the form; the first is the way past the head."""
    browser.chromium()
    reached = browser.asked(_as_file(ALL[name]), tmp_path, REACHED, width=width)
    assert len(reached) > 4
    assert [each for each in reached if each != [True, 0, True]] == []


# Each drawing has a name, and a table with the same after it in the page.
NAMED = """Promise.resolve([...document.querySelectorAll("svg[role=img], [role=img]")].map(each => {
  const after = [...document.querySelectorAll("main table")].filter(
    table => each.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING);
  return [each.getAttribute("aria-label") || each.textContent, each.tagName === "svg" ? after.length > 0 : true];
}))"""


@pytest.mark.parametrize(
    "name", ["a fleet", "an update with its forecast", "a forecast", "a way", "a history", "a history of a cluster"]
)
def test_drawings_have_names_and_tables(name: str, tmp_path: Path) -> None:
    """What a screen reader reads of a chart, of a lane, and of a mark in a cell."""
    browser.chromium()
    drawings = browser.asked(_as_file(ALL[name]), tmp_path, NAMED, width=1280)
    assert drawings
    assert [each for each in drawings if not each[0].strip() or not each[1]] == []


# A stream that a test writes to, in place of the browser's own: a page that is a file has no server.
STREAM = """<script>
window.EventSource = class extends EventTarget {
  constructor(url) { super(); window.stream = this; this.url = url; this.readyState = 1; }
};
window.EventSource.CLOSED = 2;
</script>"""
RENEWED = """new Promise(done => {
  const live = document.getElementById("live"), state = document.getElementById("live-state");
  const send = html => stream.dispatchEvent(Object.assign(new Event("status"), {data: html, lastEventId: "7"}));
  const told = [stream.url];
  send("<details><summary>Nodes</summary><a href='#main'>first</a></details><p>one</p>");
  live.querySelector("details").open = true;
  live.querySelector("a").focus();
  send("<details><summary>Nodes</summary><a href='#main'>second</a></details><p>two</p>");
  told.push(live.textContent, live.querySelector("details").open, document.activeElement.textContent);
  told.push(/^Renewed at [0-9:]{8} UTC; this page renews itself\\.$/.test(state.textContent));
  stream.readyState = 2; stream.dispatchEvent(new Event("error"));
  told.push(state.textContent);
  done(told);
})"""


def test_an_update_is_renewed(tmp_path: Path) -> None:
    """Opened sections stay open and the focus stays in place; the end of the stream is reported."""
    browser.chromium()
    page = _as_file(ALL["an update under way"]).replace("</body>", f"{STREAM}<script>{SCRIPT}</script></body>")
    shown = browser.asked(page, tmp_path, RENEWED, width=1280)
    assert shown == [
        "/clusters/harbour/update/events",
        "Nodessecondtwo",
        True,
        "second",
        True,
        "This page is not renewed any more: reload it.",
    ]


class Typing(ConsolePages):
    """Pages whose script types a token into the login and sends it: what a person does, within the page's policy."""

    def script(self) -> str:
        """Returns the script."""
        return """
const token = document.getElementById("token");
if (token && !document.getElementById("problem")) { token.value = "t0k3n"; token.form.requestSubmit(); }
"""


async def test_a_login(tmp_path: Path) -> None:
    """The form goes through in a browser, with the headers that it sends, and leads to the page that was asked for."""
    browser.chromium()
    pages, process = Typing(max_age=timedelta(hours=24)), EvaluationProcess({}, parallel=1)
    try:
        async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
            reviews = Reviews(api)
            async with served(process, tmp_path, Logins(client, SystemClock()), pages=pages) as world:
                asked = f"{world.url}/clusters/apps%2Fisland:6443%2Fadmin"
                drawn = await asyncio.to_thread(browser.run, "--virtual-time-budget=30000", "--dump-dom", asked)
    finally:
        process.close()
    assert [each.get("token") for each in reviews.asked[:1]] == ["t0k3n"]
    assert "Nothing is known about this cluster yet" in drawn


async def test_a_sibling_host_shadows_no_cookie(tmp_path: Path) -> None:
    """Chromium takes a cookie with the prefix from the console's own host only (RFC 6265bis, 4.1.3.2)."""
    browser.chromium()
    process = EvaluationProcess({}, parallel=1)
    sent: list[str] = []
    try:
        async with scripted_api() as api, Client(ClusterConfig(server=api.url)) as client:
            Reviews(api)
            async with served(process, tmp_path, Logins(client, SystemClock())) as world, AsyncExitStack() as stack:
                real, other = [
                    (await world.ask("/login", "POST", data={"token": "t"}))[2].headers["Set-Cookie"] for _ in range(2)
                ]
                pair = other.partition(";")[0]
                shadows = [
                    f"{pair}; Path=/; Secure; Domain=corp.example",
                    f"{pair}; Path=/; Secure",
                    f"{pair.removeprefix('__Host-')}; Path=/; Secure; Domain=corp.example",
                ]

                async def answer(request: web.Request) -> web.Response:
                    port = request.url.port
                    if request.path == "/begin":
                        headers = CIMultiDict({"Location": f"https://sibling.corp.example:{port}/", "Set-Cookie": real})
                        return web.Response(status=303, headers=headers)
                    if request.path == "/":
                        headers = CIMultiDict({"Location": f"https://updates.corp.example:{port}/end"})
                        headers.extend([("Set-Cookie", shadow) for shadow in shadows])
                        return web.Response(status=303, headers=headers)
                    sent.extend(request.headers.getall("Cookie", []) if request.path == "/end" else [])
                    return web.Response(text="end")

                front = web.Application()
                front.router.add_get("/{path:.*}", answer)
                runner = web.AppRunner(front, access_log=None)
                stack.push_async_callback(runner.cleanup)
                await runner.setup()
                tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                tls.load_cert_chain(*Authority().issue("updates.corp.example", tmp_path))
                await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
                await asyncio.to_thread(
                    browser.run,
                    "--ignore-certificate-errors",
                    "--host-resolver-rules=MAP *.corp.example 127.0.0.1",
                    "--dump-dom",
                    f"https://updates.corp.example:{runner.addresses[0][1]}/begin",
                )
                (cookies,) = sent
                # The sibling did set cookies; that with the prefix is still the console's own.
                assert shadows[2].partition(";")[0] in cookies
                assert cookies.count("__Host-runup-console=") == 1
                assert real.partition(";")[0] in cookies
                assert "You are logged in as ann." in (await world.ask("/logout", headers={"Cookie": cookies}))[1]
    finally:
        process.close()


class Confirming(ConsolePages):
    """Pages whose script goes to an action and confirms it: what a person does, within the page's policy."""

    def script(self) -> str:
        """Returns the script."""
        return """
const sent = document.querySelector("input[name=confirmed]");
if (sent) sent.form.requestSubmit();
else if (location.pathname === "/") location.href = "/clusters/harbour/start?to=5.1.0";
"""


async def test_an_action(tmp_path: Path, server: Server) -> None:
    """From the printed address to the confirmation, with the cookie and the headers that a browser sends."""
    browser.chromium()
    server.set_cluster_version(status=STATUS)
    pages, process = Confirming(max_age=timedelta(hours=24), site=boards.SITE), EvaluationProcess({}, parallel=1)
    actions = ClusterActions(Connection())
    try:
        async with served(process, tmp_path, pages=pages, actions=actions, kubeconfig=server.kubeconfig) as world:
            entered = f"{world.url}/enter?key={ENTER_KEY}"
            drawn = await asyncio.to_thread(browser.run, "--virtual-time-budget=30000", "--dump-dom", entered)
    finally:
        process.close()
    assert "Requested update to 5.1.0" in drawn
    assert server.cluster_version()["spec"]["desiredUpdate"]["version"] == "5.1.0"


# A clipboard that a test reads, in place of the machine's.
COPIED = """new Promise(done => {
  const button = document.querySelector("code.command + button.copy");
  const before = [button.textContent, button.getAttribute("aria-label")];
  button.click();
  setTimeout(() => done([...before, copied, button.textContent]));
})"""
CLIPBOARD = """<script>
Object.defineProperty(navigator, "clipboard", {value: {writeText: async line => { window.copied = line; }}});
</script>"""


def test_a_command_is_copied(tmp_path: Path) -> None:
    """The button says which, and then that it did."""
    browser.chromium()
    page = _as_file(ALL["an update that was started"]).replace(
        "</body>", f"{CLIPBOARD}<script>{SCRIPT}</script></body>"
    )
    command = "runup upgrade --to 5.2.0 --context harbour"
    assert browser.asked(page, tmp_path, COPIED, width=1280) == ["Copy", f"Copy: {command}", command, "Copied"]
