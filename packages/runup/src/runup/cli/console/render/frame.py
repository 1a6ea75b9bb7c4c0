"""The frame of every page of the console: landmarks, navigation, style and script."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import quote

import msgspec

from kubekit.lang.text import is_to_come
from runup import __version__
from runup.cli.render.html.document import COPY_SCRIPT, STYLE
from runup.cli.render.html.markup import Child, Markup, age, el, minute_text, text
from runup.fleet.decide.members import Member

_OWN_STYLE = """
.skip { position: absolute; left: -9999px; }
.skip:focus { position: static; display: inline-block; padding: 8px 12px; }
:focus-visible { outline: 3px solid var(--busy); outline-offset: 2px; }
body > header, body > footer { max-width: 1080px; margin: 0 auto; padding: 14px 20px 0; }
body > header { display: flex; flex-wrap: wrap; gap: 6px 24px; align-items: baseline; }
body > header strong { font-size: 1.05rem; }
body > header .top { margin: 0 0 0 auto; }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0; padding: 0; list-style: none; }
nav a { display: inline-block; padding: 4px 0; overflow-wrap: anywhere; }
nav a[aria-current] { color: var(--text); font-weight: 600; text-decoration: none;
  border-bottom: 2px solid var(--busy); }
nav.cluster { margin: 0 0 14px; }
main { padding-top: 18px; overflow-wrap: anywhere; }
table { overflow-wrap: normal; }
main:focus { outline: none; }
body > footer { padding-bottom: 32px; margin-top: 0; }
label { display: block; font-weight: 600; margin: 0 0 4px; }
textarea { width: 100%; min-height: 7em; font: inherit; font-family: ui-monospace, monospace; color: var(--text);
  background: var(--page); border: 1px solid var(--faint); border-radius: 6px; padding: 8px; }
button { font: inherit; font-weight: 600; margin-top: 10px; padding: 8px 18px; border-radius: 6px; cursor: pointer;
  color: var(--card); background: var(--busy); border: 1px solid var(--busy); }
input[type=text] { display: block; width: 100%; max-width: 40em; box-sizing: border-box; margin: 0 0 10px;
  font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--faint); border-radius: 6px;
  padding: 6px 8px; }
form.filter { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: end; margin: 0 0 12px; }
form.filter label { font-size: .84rem; margin: 0; }
form.filter input, form.filter select { display: block; margin: 2px 0 0; min-width: 0; max-width: 100%; }
form.filter button { margin: 0; padding: 6px 14px; }
select { font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--faint); border-radius: 6px;
  padding: 6px 8px; }
button.copy { margin: 0 0 0 10px; padding: 0 8px; font-size: .85rem; font-weight: 400; color: var(--busy);
  background: none; }
tbody th { min-width: 7em; }
tbody th a { overflow-wrap: anywhere; }
svg text { fill: var(--text); font: 13px system-ui, "DejaVu Sans", sans-serif;
  paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
svg .origin, svg .goal { font-weight: 700; }
svg circle { fill: var(--text); }
svg path { fill: none; stroke-width: 1.5; }
svg .plain { stroke: var(--good); }
svg .risky { stroke: var(--warn); stroke-dasharray: 7 4; }
svg .blocked { stroke: var(--bad); stroke-dasharray: 2 4; }
svg .onway { stroke-width: 3.5; }
"""
CSS = f"{STYLE}\n{_OWN_STYLE}"


class Site(msgspec.Struct, frozen=True):
    """Settings of every page: whether there are sessions to log out of, and whether clusters can be changed."""

    has_sessions: bool = False
    acts: bool = False


ONLY_SHOWS = Site()


def path_of(cluster: str, page: str = "") -> str:
    """Returns the path of a cluster's page."""
    # Browsers take . and .. for folders, however they are written; no cluster can be called so in a link.
    return f"/clusters/{quote(cluster, safe='')}{f'/{page}' if page else ''}"


_PAGES = (("/", "Fleet", "fleet"), ("/history", "History", "history"))
_LOGOUT = (("/logout", "Log out", "logout"),)
_SHOWS = "The console only shows; nothing is changed from here."
_ACTS = "Clusters can be changed from here, with the rights of the user who changes them."


def whole_page(
    title: str,
    *body: Child,
    now: datetime | None = None,
    current_path: str = "",
    cluster: str = "",
    notes: Sequence[str] = (),
    site: Site = ONLY_SHOWS,
) -> str:
    """Returns the page `title`, which stands `current_path` among the pages (of `cluster`, if it is about one)."""
    full_title = f"{title}: {cluster}" if cluster else title
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{full_title} - runup console"),
        el("link", rel="stylesheet", href="/console.css"),
        el("script", src="/console.js", defer=""),
    )
    top = el(
        "header",
        el("strong", "runup console"),
        _links("Console", (*_PAGES, *(_LOGOUT if site.has_sessions else ())), current_path),
        el("span", "As of ", el("strong", minute_text(now)), class_="top") if now else None,
    )
    parts: list[Child] = []
    if cluster:
        pages = (
            ("", "Preflight", "cluster"),
            ("update", "Update", "update"),
            ("policy", "Policy", "policy"),
            ("forecast", "Forecast", "forecast"),
            ("graph", "Way", "graph"),
        )
        links = tuple((path_of(cluster, page), label, name) for page, label, name in pages)
        parts.append(el("p", "Cluster ", el("strong", cluster), class_="name"))
        parts.append(_links(f"Cluster {cluster}", links, current_path, class_="cluster"))
    if notes:
        items = (el("li", note) for note in notes)
        parts.append(el("section", el("ul", *items, class_="refs"), class_="card issue warn", aria_label="Warnings"))
    page = el(
        "body",
        el("a", "Skip to the content", href="#main", class_="skip"),
        top,
        el("main", *parts, *body, id="main", tabindex="-1"),
        el("footer", f"All times are UTC. {_ACTS if site.acts else _SHOWS} runup {__version__}."),
    )
    return f"<!DOCTYPE html>\n{el('html', head, page, lang='en')}\n"


def _links(label: str, links: Iterable[tuple[str, str, str]], current_path: str, class_: str | None = None) -> Markup:
    """Returns a navigation list of (path, text, name); the one named `current_path` is marked as the current page."""
    items = (
        el("li", el("a", text, href=path, aria_current="page" if name == current_path else None))
        for path, text, name in links
    )
    return el("nav", el("ul", *items), aria_label=label, class_=class_)


def cluster_link(name: str) -> Markup:
    """Returns the name of a cluster as a link to its page."""
    return el("a", name, href=path_of(name))


def where_options(member: Member) -> str:
    """Returns the flags by which a command reads this cluster, as they are typed."""
    words = (
        [("--dump", member.dump)]
        if member.dump
        else [("--kubeconfig", member.kubeconfig), ("--context", member.context)]
    )
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in words if value)


def how_old(moment: datetime | None, now: datetime) -> str:
    """Returns how long ago something was, and when."""
    if moment and is_to_come(moment, now):
        return f"at {minute_text(moment)}, which is still to come"
    return f"{age(now - moment)} ago ({minute_text(moment)})" if moment else "at an unknown time"


def commands(lines: Iterable[tuple[str, str]]) -> Markup | None:
    """Returns commands to type, each after what it does; None without one."""
    rows = [
        cell for purpose, line in lines for cell in (el("dt", purpose), el("dd", el("code", line, class_="command")))
    ]
    if not rows:
        return None
    card = el("div", el("dl", *rows, class_="rows"), class_="card")
    return el("section", el("h2", "To type in a terminal"), card)


def message(title: str, *lines: Child) -> Markup:
    """Returns a card with a heading and sentences."""
    return el("section", el("h1", title), *(el("p", text(line)) for line in lines if line), class_="card")


def form(path: str, hidden: Iterable[tuple[str, str]], *content: Child) -> Markup:
    """Returns a form that is sent to a path of the console, with fields that are not shown."""
    fields = (el("input", type="hidden", name=name, value=value) for name, value in hidden)
    return el("form", *fields, *content, method="post", action=path)


SCRIPT = (
    COPY_SCRIPT
    + """
(() => {
  const live = document.getElementById("live");
  const state = document.getElementById("live-state");
  if (!live?.dataset.events || !state || !window.EventSource) return;
  const time = () => new Date().toISOString().slice(11, 19) + " UTC";
  const opened = () => [...live.querySelectorAll("details[open] > summary")].map(each => each.textContent);
  const renew = html => {
    const kept = opened();
    const focus = document.activeElement && live.contains(document.activeElement)
      ? [...live.querySelectorAll("a, summary, [tabindex]")].indexOf(document.activeElement) : -1;
    live.innerHTML = html;
    for (const summary of live.querySelectorAll("details > summary"))
      if (kept.includes(summary.textContent)) summary.parentElement.open = true;
    if (focus >= 0) live.querySelectorAll("a, summary, [tabindex]")[focus]?.focus();
  };
  let last = live.innerHTML;
  const events = new EventSource(live.dataset.events);
  events.addEventListener("status", event => {
    if (event.data !== last) renew(last = event.data);
    live.dataset.renewed = event.lastEventId;
    state.textContent = "Renewed at " + time() + "; this page renews itself.";
  });
  events.addEventListener("error", () => {
    state.textContent = events.readyState === EventSource.CLOSED
      ? "This page is not renewed any more: reload it." : "The console does not answer since " + time() + ".";
  });
})();
"""
)


_KEPT = "It is kept in memory until you log out, and counts for an hour: what you do from here is done by it."


def login_page(problem: str, next_page: str, site: Site) -> str:
    """Returns the page with the form; `problem` says why the last try was refused."""
    content = (
        el("p", problem, class_="bad", role="alert", id="problem") if problem else None,
        el("label", "Bearer token of the cluster", for_="token"),
        el(
            "p",
            "`oc whoami -t` or `kubectl create token NAME` prints one. " + (_KEPT if site.acts else "It is not kept."),
            class_="faint",
            id="hint",
        ),
        el(
            "textarea",
            id="token",
            name="token",
            required="",
            autocomplete="off",
            spellcheck="false",
            aria_describedby="problem hint" if problem else "hint",
        ),
        el("button", "Log in", type="submit"),
    )
    rights_text = "Users who may get the cluster's ClusterVersion may look."
    shown = form("/login", (("next", next_page),), *content)
    return whole_page(
        "Login",
        el("section", el("h1", "Login"), el("p", rights_text), shown, class_="card"),
        site=Site(acts=site.acts),
    )


def logout_page(user: str, form_key: str, site: Site) -> str:
    """Returns the page with the form that ends a session; `user` is empty for a session of the printed address."""
    who = f"You are logged in as {user}." if user else "You came by the address that the console printed."
    after = "Your cookie is useless afterwards."
    button = el("button", "Log out", type="submit")
    shown = form("/logout", (("key", form_key),), el("p", f"{who} {after}"), button)
    return whole_page(
        "Log out", el("section", el("h1", "Log out"), shown, class_="card"), current_path="logout", site=site
    )


def problem_page(status: int, problem: str, site: Site) -> str:
    """Returns the page of an error."""
    return whole_page(
        "Error",
        message(f"{status}: not shown", f"{problem[:1].upper()}{problem[1:]}."),
        site=Site(acts=site.acts),
    )
