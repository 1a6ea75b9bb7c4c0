"""Renders the pages of actions: the form, its confirmation, and the cluster's state afterwards."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from runup.cli.console.render.frame import Site, commands, form, path_of, where_options, whole_page
from runup.cli.render.html.markup import Markup, el, join, text
from runup.console.decide import asked_actions
from runup.console.decide.asked_actions import ACCEPT, ActionResult, ClusterState, RequestedAction

_TITLES = {ACCEPT: "Accept a risk"}
_START = "Start an update"


def page(asked: RequestedAction, looked: ActionResult, form_key: str, now: datetime, site: Site) -> str:
    """Returns the page; its form, if there is something to confirm, holds `form_key` and what is confirmed."""
    title = _TITLES.get(asked.action, _START)
    command = command_of(asked)
    if looked.refused:
        body = join(_told(title, "Refused: nothing was done.", (*looked.said, looked.refused), class_="warn"))
    elif looked.done:
        body = _told(
            title, "Done. The cluster is being evaluated again; its pages show the result in a while.", looked.said
        )
    elif looked.truth is None:
        body = _told(title, "The cluster could not be read.", ())
    elif asked.target:
        body = _confirmation(asked, looked, truth=looked.truth, form_key=form_key, title=title)
    elif names := asked_actions.not_accepted(looked.truth) if asked.action == ACCEPT else looked.truth.offered:
        # What can be asked for, each as a link to its confirmation.
        paths = ((name, path_of(asked.member.name, asked_actions.link_to(asked.action, name))) for name in names)
        items = (el("li", el("a", name, href=path)) for name, path in paths)
        body = el("section", el("h1", title), el("ul", *items, class_="refs"), class_="card")
    else:
        none = "No update of this cluster has a risk that is not accepted."
        words = none if asked.action == ACCEPT else "No update is offered to this cluster now."
        body = el("section", el("h1", title), el("p", words), class_="card")
    rows = None
    if (looked.refused or looked.done or not asked.target) and looked.truth is not None:
        rows = el("section", el("h2", "What the cluster says now"), _state_list(looked.truth), class_="card")
    elif looked.refused or looked.done or not asked.target:
        why = el("p", looked.unread or "It could not be read.")
        rows = el("section", el("h2", "The present state of the cluster is unknown"), why, class_="card issue warn")
    lines = [("The same in a terminal", command)]
    return whole_page(title, join(body, rows), commands(lines), now=now, cluster=asked.member.name, site=site)


def command_of(asked: RequestedAction) -> str:
    """Returns the command that does the same, as it is typed."""
    where = where_options(asked.member)
    if asked.action != ACCEPT:
        return f"runup upgrade --to {shlex.quote(asked.version) if asked.version else 'VERSION'}{where}"
    more = "".join(
        f" {flag} {shlex.quote(value)}"
        for flag, value in (("--reason", asked.reason), ("--until", asked.until))
        if value
    )
    return f"runup upgrade accept {shlex.quote(asked.risk) if asked.risk else 'NAME'}{more}{where}"


def _told(title: str, head: str, said: Sequence[str], class_: str = "") -> Markup:
    words = "\n".join(said)
    shown = el("pre", el("code", words), tabindex="0") if words else None
    return el("section", el("h1", title), el("p", head, role="status"), shown, class_=f"card issue {class_}".strip())


def _state_list(truth: ClusterState) -> Markup:
    """Returns the cluster's state as a list of terms and values."""
    rows = (
        ("Cluster", truth.cluster),
        ("API server", truth.server),
        ("By the rights of", truth.user or "a user that the server does not name"),
        ("Release", truth.release or "not known"),
        ("Requested", truth.requested or "nothing"),
        ("Accepted risks", ", ".join(truth.accepted) or "none"),
        *(("Covers more", text) for text in truth.grown),
        ("Progress", truth.progress or "not reported"),
    )
    return el("dl", *(part for name, value in rows for part in (el("dt", name), el("dd", value))), class_="rows")


def _confirmation(
    asked: RequestedAction, looked: ActionResult, truth: ClusterState, form_key: str, title: str
) -> Markup:
    """Returns the action, the current state, and the form to confirm it."""
    if asked.action == ACCEPT:
        words = f"Accept {asked.risk} in {truth.cluster}: it no longer blocks its updates."
        button = f"Accept {asked.risk}"
        fields: tuple[Markup, ...] = (
            *_field("reason", "Why (recorded with your name)", asked.reason),
            *_field("until", "Until when (30d, 12h, 2026-12-31; empty: for ever)", asked.until),
        )
        named = ("risk", asked.risk)
    else:
        accepted = (
            f"with these risks accepted: {', '.join(truth.accepted)}" if truth.accepted else "with no risk accepted"
        )
        words = f"Update {truth.cluster} from {truth.release} to {asked.version}, {accepted}."
        button = f"Start the update to {asked.version}"
        fields, named = (), ("to", asked.version)
    hidden = (("key", form_key), ("confirmed", asked_actions.seal(asked, truth)), named)
    warned = el("ul", *(el("li", line) for line in looked.said), class_="refs")
    return el(
        "section",
        el("h1", title),
        el("p", el("strong", words)),
        _state_list(truth),
        el("div", warned, class_="card issue warn") if looked.said else None,
        form(path_of(asked.member.name, asked.action), hidden, *fields, el("button", button, type="submit")),
        el("p", el("a", "Back, without doing anything", href=path_of(asked.member.name))),
        class_="card",
    )


def _field(name: str, label: str, value: str) -> tuple[Markup, Markup]:
    shown = el("input", type="text", id=name, name=name, value=value, autocomplete="off", maxlength="1024")
    return el("label", text(label), for_=name), shown
