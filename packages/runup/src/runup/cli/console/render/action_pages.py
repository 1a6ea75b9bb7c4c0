"""Renders the pages of actions: the form, its confirmation, and the cluster's state afterwards."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from runup.api.update_policy_v1alpha1 import Control
from runup.cli.console.render.frame import Site, commands, form, path_of, where_options, whole_page
from runup.cli.render.html.markup import Markup, el, join, text
from runup.console.decide import asked_actions
from runup.console.decide.asked_actions import (
    ACCEPT,
    APPROVE,
    HOLD,
    OF_RUNS,
    RESUME,
    START,
    ActionResult,
    ClusterState,
    RequestedAction,
    RunState,
)
from runup.rollout.decide.run_controls import EFFECTS

_TITLES = {
    ACCEPT: "Accept a risk",
    START: "Start an update",
    APPROVE: "Approve an update",
    HOLD: "Hold a run",
    RESUME: "Resume a run",
}
_NO_CHOICES = {
    ACCEPT: "No update of this cluster has a risk that is not accepted.",
    START: "No update is offered to this cluster now.",
    APPROVE: "No run of this cluster waits for an approval.",
    HOLD: "No run of this cluster can be held.",
    RESUME: "No run of this cluster is held.",
}


def page(asked: RequestedAction, looked: ActionResult, form_key: str, now: datetime, site: Site) -> str:
    """Returns the page; its form, if there is something to confirm, holds `form_key` and what is confirmed."""
    title = _TITLES[asked.action]
    command = command_of(asked)
    if looked.refused:
        body = join(_told(title, "Refused: nothing was done.", (*looked.said, looked.refused), class_="warn"))
    elif looked.done:
        of_cluster = "The cluster is being evaluated again; its pages show the result in a while."
        shown = "The page of the policy shows the result." if asked.action in OF_RUNS else of_cluster
        body = _told(title, f"Done. {shown}", looked.said)
    elif looked.truth is None:
        body = _told(title, "The cluster could not be read.", ())
    elif asked.target:
        body = _confirmation(asked, looked, truth=looked.truth, form_key=form_key, title=title)
    elif choices := _choices(asked, looked.truth):
        items = (el("li", el("a", name, href=path_of(asked.member.name, path))) for name, path in choices)
        body = el("section", el("h1", title), el("ul", *items, class_="refs"), class_="card")
    else:
        body = el("section", el("h1", title), el("p", _NO_CHOICES[asked.action]), class_="card")
    rows = None
    if (looked.refused or looked.done or not asked.target) and looked.truth is not None:
        rows = el("section", el("h2", "What the cluster says now"), _state_list(looked.truth), class_="card")
    elif looked.refused or looked.done or not asked.target:
        why = el("p", looked.unread or "It could not be read.")
        rows = el("section", el("h2", "The present state of the cluster is unknown"), why, class_="card issue warn")
    lines = [("The same in a terminal", command)]
    return whole_page(title, join(body, rows), commands(lines), now=now, cluster=asked.member.name, site=site)


def _choices(asked: RequestedAction, truth: ClusterState | RunState) -> Sequence[tuple[str, str]]:
    """Returns what can be asked for, each with the path of its confirmation."""
    if isinstance(truth, RunState):
        return [
            (f"{gate} of run {run}" if gate else run, asked_actions.link_to_run(asked.action, run, gate))
            for run, gate in truth.choices
        ]
    names = asked_actions.not_accepted(truth) if asked.action == ACCEPT else truth.offered
    return [(name, asked_actions.link_to(asked.action, name)) for name in names]


def command_of(asked: RequestedAction) -> str:
    """Returns the command that does the same, as it is typed."""
    where = where_options(asked.member)
    if asked.action == START:
        return f"runup upgrade --to {shlex.quote(asked.version) if asked.version else 'VERSION'}{where}"
    run = shlex.quote(asked.run) if asked.run else "RUN"
    if asked.action in (HOLD, RESUME):
        return f"runup upgrade run {asked.action} {run}{where}"
    more = "".join(
        f" {flag} {shlex.quote(value)}"
        for flag, value in (("--reason", asked.reason), ("--until", asked.until))
        if value
    )
    if asked.action == APPROVE:
        more = more if asked.reason else f" --reason TEXT{more}"
        return f"runup upgrade approve {run} --gate {shlex.quote(asked.gate) if asked.gate else 'NAME'}{more}{where}"
    return f"runup upgrade accept {shlex.quote(asked.risk) if asked.risk else 'NAME'}{more}{where}"


def _told(title: str, head: str, said: Sequence[str], class_: str = "") -> Markup:
    words = "\n".join(said)
    shown = el("pre", el("code", words), tabindex="0") if words else None
    return el("section", el("h1", title), el("p", head, role="status"), shown, class_=f"card issue {class_}".strip())


def _state_list(truth: ClusterState | RunState) -> Markup:
    """Returns the state of the cluster, or of the run, as a list of terms and values."""
    head = (
        ("Cluster", truth.cluster),
        ("API server", truth.server),
        ("By the rights of", truth.user or "a user that the server does not name"),
    )
    rows = (*head, *(_run_rows(truth) if isinstance(truth, RunState) else _cluster_rows(truth)))
    return el("dl", *(part for name, value in rows for part in (el("dt", name), el("dd", value))), class_="rows")


def _cluster_rows(truth: ClusterState) -> Sequence[tuple[str, str]]:
    return (
        ("Release", truth.release or "not known"),
        ("Requested", truth.requested or "nothing"),
        ("Accepted risks", ", ".join(truth.accepted) or "none"),
        *(("Covers more", text) for text in truth.grown),
        ("Progress", truth.progress or "not reported"),
    )


def _run_rows(truth: RunState) -> Sequence[tuple[str, str]]:
    if (run := truth.run) is None:
        return ()
    closed = [f"{gate.name}: {gate.message or gate.reason}" for gate in run.status.gates if gate.state != "Open"]
    return (
        ("Run", run.metadata.name),
        ("From", run.status.from_ or "not known yet"),
        ("To", run.spec.target.version),
        *(("Release image", image) for image in asked_actions.images_of(run)),
        ("Step", run.status.step),
        ("Control", run.spec.control),
        *(("Not open", text) for text in closed),
    )


def _confirmation(
    asked: RequestedAction, looked: ActionResult, truth: ClusterState | RunState, form_key: str, title: str
) -> Markup:
    """Returns the action, the current state, and the form to confirm it."""
    words, button, fields, named = _run_form(asked, truth) if isinstance(truth, RunState) else _form(asked, truth)
    hidden = (("key", form_key), ("confirmed", asked_actions.seal(asked, truth)), *named)
    back = "policy" if asked.action in OF_RUNS else ""
    warned = el("ul", *(el("li", line) for line in looked.said), class_="refs")
    return el(
        "section",
        el("h1", title),
        el("p", el("strong", words)),
        _state_list(truth),
        el("div", warned, class_="card issue warn") if looked.said else None,
        form(path_of(asked.member.name, asked.action), hidden, *fields, el("button", button, type="submit")),
        el("p", el("a", "Back, without doing anything", href=path_of(asked.member.name, back))),
        class_="card",
    )


# The sentence that is confirmed, the button, the fields to fill in, and those that are not shown.
_Form = tuple[str, str, Sequence[Markup], Sequence[tuple[str, str]]]


def _form(asked: RequestedAction, truth: ClusterState) -> _Form:
    if asked.action == ACCEPT:
        fields = (
            *_field("reason", "Why (recorded with your name)", asked.reason),
            *_field("until", "Until when (30d, 12h, 2026-12-31; empty: for ever)", asked.until),
        )
        words = f"Accept {asked.risk} in {truth.cluster}: it no longer blocks its updates."
        return words, f"Accept {asked.risk}", fields, [("risk", asked.risk)]
    accepted = f"with these risks accepted: {', '.join(truth.accepted)}" if truth.accepted else "with no risk accepted"
    words = f"Update {truth.cluster} from {truth.release} to {asked.version}, {accepted}."
    return words, f"Start the update to {asked.version}", (), [("to", asked.version)]


def _run_form(asked: RequestedAction, truth: RunState) -> _Form:
    if asked.action == APPROVE:
        fields = (
            *_field("reason", "Why, for example a change number (recorded with your name)", asked.reason),
            *_field("until", "Until when (2026-12-24T22:00:00Z; empty: as long as the policy says)", asked.until),
        )
        target = f"to {truth.run.spec.target.version} " if truth.run else ""
        words = f"Approve {asked.gate} of run {asked.run}: {truth.cluster} may update {target}once all gates are open."
        return words, f"Approve {asked.gate}", fields, [("run", asked.run), ("gate", asked.gate)]
    word = "Hold" if asked.action == HOLD else "Resume"
    control: Control = "Hold" if asked.action == HOLD else "Run"
    words = f"{word} run {asked.run} of {truth.cluster}: it {EFFECTS[control].replace('`', '')}."
    return words, f"{word} {asked.run}", (), [("run", asked.run)]


def _field(name: str, label: str, value: str) -> tuple[Markup, Markup]:
    shown = el("input", type="text", id=name, name=name, value=value, autocomplete="off", maxlength="1024")
    return el("label", text(label), for_=name), shown
