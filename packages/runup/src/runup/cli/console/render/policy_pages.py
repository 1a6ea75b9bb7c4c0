"""Renders the page of a cluster's update policy and its runs. Pure.

The values are those of `runup upgrade policy explain` and `runup upgrade runs`; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kubekit.api.meta_v1 import Condition
from runup.api.update_policy_v1alpha1 import RunGate, UpdateRun
from runup.cli.console.render import frame
from runup.cli.render.html.markup import (
    BAD,
    BUSY,
    GOOD,
    IDLE,
    WARN,
    Child,
    Markup,
    badge,
    el,
    facts,
    grid,
    join,
    long_section,
    minute_text,
)
from runup.cli.rollout.policy_command import opening_state, settings, start_sentence
from runup.cli.rollout.runs_command import approvers_text
from runup.console.decide.asked_actions import APPROVE, HOLD, RESUME, approvals_to_give, can_be_changed, link_to_run
from runup.console.decide.board import Board
from runup.rollout.control.policy_reading import PolicyReading
from runup.rollout.decide.explain import StartPreview
from runup.rollout.decide.gates.gate import Gate
from runup.rollout.decide.run_steps import FINISHED

# Runs and openings that are shown.
_MOST_RUNS, _MOST_OPENINGS = 20, 20
_TONES = {"Open": GOOD, "Closed": WARN, "Unknown": IDLE}
_NO_POLICY = (
    "The cluster has no UpdatePolicy, so no update starts by itself. `runup upgrade policy set FILE` stores one; "
    "the guide about gates and calendars of updates has one to start from."
)


def policy_page(
    board: Board,
    name: str,
    reading: PolicyReading | None,
    why: str,
    now: datetime,
    site: frame.Site = frame.ONLY_SHOWS,
) -> str:
    """Returns the page of cluster `name`; without a reading, `why` says why it is missing (empty: not read yet)."""
    member = board.entries[name].member
    flags = frame.where_options(member)
    body: Markup
    if reading is not None:
        acts = site.acts and can_be_changed(member, kept=board.kept)
        body = join(
            el("p", f"As the cluster was {frame.how_old(reading.now, now)}.", class_="faint"),
            *_policy_parts(reading),
            *_run_parts(reading, name, acts=acts),
        )
    elif board.kept:
        body = frame.message("Not known", "The console reads kept reports, which hold no update policies.")
    elif member.dump:
        text = "An update policy is read from a live cluster. `runup upgrade gate --dump` evaluates gates on a dump."
        body = frame.message("Not known", text)
    elif why or member.problem:
        body = frame.message("The update policy is not known", f"It could not be read: {why or member.problem}")
    else:
        body = frame.message("Not read yet", "The cluster is being read. Reload this page in a moment.")
    lines = [
        ("What the policy would start", f"runup upgrade policy explain{flags}"),
        ("The runs", f"runup upgrade runs{flags}"),
        ("Keep every run from starting", f"runup upgrade policy pause --reason TEXT{flags}"),
    ]
    commands = None if board.kept or member.dump else frame.commands(lines)
    return frame.whole_page("Update policy", body, commands, now=now, current_path="policy", cluster=name, site=site)


def _policy_parts(reading: PolicyReading) -> Sequence[Markup]:
    policy, shown = reading.policy, reading.shown
    if policy is None or shown is None:
        return (frame.message("No update policy", _NO_POLICY),)
    opening = policy.status.next_opening
    head = el(
        "section",
        el("h1", "Update policy"),
        el("p", el("strong", start_sentence(shown))),
        facts((*settings(policy.spec), ("Next opening", minute_text(opening) if opening else "none is known"))),
        class_="card",
    )
    return (head, *_outlook_parts(shown), _conditions(policy.status.conditions))


def _outlook_parts(shown: StartPreview) -> Sequence[Markup]:
    explanation = shown.explanation
    parts = []
    if explanation.closed_now:
        table = grid(
            "Gates that are not open, whatever the time is", _GATE_HEADS, map(_gate_row, explanation.closed_now)
        )
        parts.append(el("section", el("h2", "Not open now"), table))
    lines = [
        el(
            "tr",
            el("th", minute_text(each.period.start), scope="row"),
            el("td", minute_text(each.period.end)),
            el("td", opening_state(each), class_="wide"),
        )
        for each in explanation.openings[:_MOST_OPENINGS]
    ]
    more = len(explanation.openings) - len(lines)
    body: Child = grid("Times at which all calendars are open", ("Opens", "Closes", "State"), lines)
    if not lines:
        body = el("p", "No calendar opens in the next 14 days.", class_="card")
    rest = el("p", f"{more} more openings are not listed.", class_="faint") if more else None
    parts.append(el("section", el("h2", "Openings in the next 14 days"), body, rest))
    return parts


def _conditions(conditions: Sequence[Condition]) -> Markup:
    lines = [
        el(
            "tr",
            el("th", each.type, scope="row"),
            el("td", each.status),
            el("td", each.reason),
            el("td", each.message, class_="wide"),
        )
        for each in conditions
    ]
    heads = ("Condition", "Status", "Reason", "Message")
    body = grid("Conditions that the controller reports", heads, lines)
    if not lines:
        body = el("p", "The controller has not reported any condition: is it running?", class_="card issue warn")
    return el("section", el("h2", "State of the policy"), body)


def _run_parts(reading: PolicyReading, name: str, *, acts: bool) -> Sequence[Markup]:
    shown = reading.runs[:_MOST_RUNS]
    if not shown:
        return (el("section", el("h2", "Runs"), el("p", "There are no update runs.", class_="card")),)
    parts = [_run_part(run, reading.approvers, name, acts=acts) for run in shown]
    if more := len(reading.runs) - len(shown):
        parts.append(el("p", f"{more} older runs are not shown.", class_="faint"))
    return parts


def _run_part(run: UpdateRun, approvers: Mapping[str, tuple[str, ...] | str], name: str, *, acts: bool) -> Markup:
    """Returns a run: its step, what it waits for, who may approve it, its hops, pools and decisions."""
    status = run.status
    finished = status.step in FINISHED
    tone = {"Done": GOOD, "Failed": BAD}.get(status.step, IDLE if finished else BUSY)
    summary = facts(
        (
            ("From", status.from_),
            ("To", run.spec.target.version),
            ("Step", badge(status.step, tone)),
            ("Hop", f"{status.hop + 1} of {len(status.hops)}" if status.hops else ""),
            ("Control", run.spec.control),
            ("Requested by", run.spec.requested_by),
            ("Started", minute_text(status.started) if status.started else ""),
            ("Completed", minute_text(status.completed) if status.completed else ""),
        )
    )
    who = approvers.get(run.metadata.name)
    details: list[Child] = [
        grid(f"Gates of run {run.metadata.name}, as evaluated last", _GATE_HEADS, map(_gate_row, status.gates))
        if status.gates and not finished
        else None,
        el("p", approvers_text(who)) if who is not None else None,
        _actions(run, name) if acts and not finished else None,
        _hops(run),
        _pools(run),
        _decisions(run),
    ]
    return long_section(f"Run {run.metadata.name}", summary, *details)


_GATE_HEADS = ("Gate", "State", "Reason", "Message", "Until", "Evidence")


def _gate_row(gate: Gate | RunGate) -> Markup:
    return el(
        "tr",
        el("th", gate.name, scope="row"),
        el("td", badge(gate.state, _TONES[gate.state])),
        el("td", gate.reason),
        el("td", gate.message, class_="wide"),
        el("td", minute_text(gate.until) if gate.until else ""),
        el("td", _evidence(gate.evidence), class_="wide"),
    )


def _evidence(evidence: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in evidence.items())


def _actions(run: UpdateRun, name: str) -> Markup:
    """Returns links to the actions on a run; each leads to a page that asks for confirmation."""
    run_name = run.metadata.name
    links = [(f"Approve {gate}", link_to_run(APPROVE, run_name, gate)) for gate in approvals_to_give(run)]
    if run.spec.control == "Run":
        links.append((f"Hold {run_name}", link_to_run(HOLD, run_name)))
    elif run.spec.control == "Hold":
        links.append((f"Resume {run_name}", link_to_run(RESUME, run_name)))
    items = (el("li", el("a", label, href=frame.path_of(name, path))) for label, path in links)
    return el("ul", *items, class_="refs")


def _hops(run: UpdateRun) -> Markup | None:
    if not run.status.hops:
        return None
    lines = [
        el(
            "tr",
            el("th", each.version, scope="row"),
            el("td", minute_text(each.started) if each.started else ""),
            el("td", minute_text(each.completed) if each.completed else ""),
            el("td", each.image, class_="wide"),
        )
        for each in run.status.hops
    ]
    return grid(f"Hops of run {run.metadata.name}", ("Release", "Started", "Completed", "Image"), lines)


def _pools(run: UpdateRun) -> Markup | None:
    if not run.status.paused_pools:
        return None
    lines = [
        el(
            "tr",
            el("th", each.name, scope="row"),
            el("td", minute_text(each.since)),
            el("td", minute_text(each.resumed) if each.resumed else "not yet"),
            el("td", minute_text(each.updated) if each.updated else "not yet"),
        )
        for each in run.status.paused_pools
    ]
    heads = ("Pool", "Paused", "Resumed", "Updated")
    return grid(f"Pools that run {run.metadata.name} pauses", heads, lines)


def _decisions(run: UpdateRun) -> Markup | None:
    if not run.status.decisions:
        return None
    lines = [
        el(
            "tr",
            el("th", minute_text(each.at), scope="row"),
            el("td", each.step),
            el("td", each.reason),
            el("td", each.message, class_="wide"),
            el("td", _evidence(each.evidence), class_="wide"),
        )
        for each in run.status.decisions
    ]
    table = grid(f"Decisions of run {run.metadata.name}", ("Time", "Step", "Reason", "Message", "Evidence"), lines)
    return el("details", el("summary", f"Decisions ({len(lines)})"), table)
