"""Renders an UpdateStatus as one self-contained HTML page: the progress, the problems, and a timeline.

The page has no script, font, picture or other resource that is fetched, so it can be mailed, archived with a
must-gather, or printed. Every state is written out, never shown by colour alone. What is not known is shown as such, in
the place where a reader would otherwise see that all is well.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from kubekit.api.conditions import find, status_of
from kubekit.api.meta_v1 import Condition
from runup.api.update_v1alpha1 import (
    ClusterVersionInsight,
    ControlPlane,
    HealthInsight,
    Insight,
    ResourceRef,
    UpdateStatusStatus,
)
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import (
    BUSY,
    GOOD,
    IDLE,
    WARN,
    Child,
    Markup,
    age,
    badge,
    bar,
    el,
    facts,
    join,
    link,
    minute_text,
    text,
)
from runup.cli.updatestatus.render.html.pool_card import (
    LEVELS,
    all_insights,
    insights_of,
    parts_of,
    pool_card,
    tone_of_assessment,
    tone_of_level,
)
from runup.cli.updatestatus.render.html.timeline import timeline

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def page(status: UpdateStatusStatus | None, now: datetime, *, cluster: str = "") -> str:
    """Returns the page of `cluster` as of `now`; a status of None gives a page that says that none was written."""
    return document("Cluster update", page_body(status, now), now=now, cluster=cluster)


def page_body(status: UpdateStatusStatus | None, now: datetime) -> Markup:
    """Returns the body of the page."""
    return (
        el(
            "section",
            el("h1", "No status yet"),
            el("p", "The object UpdateStatus has no content: the update status controller has not written it."),
            class_="card",
        )
        if status is None
        else _body_of_status(status, now)
    )


def _body_of_status(status: UpdateStatusStatus, now: datetime) -> Markup:
    """Returns the sections of the page, in the order in which they are read."""
    control_plane = status.control_plane or ControlPlane()
    health_insights = health_of(status)
    omitted = sum(part.omitted.health for part in parts_of(status))
    cards = [_issue(insight, now) for insight in health_insights]
    if omitted:
        cards.append(el("p", f"{omitted} more were left out to keep the object small.", class_="faint"))
    if not cards:
        all_known = status_of(status.conditions, "Available") == "True" and not _doubtful_conditions(status)
        message = "Nothing needs attention." if all_known else "Nothing was found, but not everything could be read."
        cards = [el("p", message, class_="card")]
    attention_section = el(
        "section",
        el("h2", f"Needs attention ({len(health_insights) + omitted})" if health_insights else "Needs attention"),
        *cards,
    )
    card = pool_card(control_plane, "Control plane nodes")
    control_plane_nodes = card and el("section", el("h2", "Nodes"), card)
    return join(
        _head(status, control_plane, now),
        _doubts_section(status),
        attention_section,
        _timeline(status, now),
        control_plane_nodes,
        _workers(status),
        _unknown_types(status),
    )


def is_updating(status: UpdateStatusStatus) -> bool:
    """Reports whether the control plane or any pool is updating."""
    return any(status_of(part.conditions, "Updating") == "True" for part in parts_of(status))


def _head(status: UpdateStatusStatus, control_plane: ControlPlane, now: datetime) -> Markup:
    """Returns the head of the page: title, verdict, progress and facts."""
    insight = next((i.cluster_version for i in insights_of(control_plane) if i.cluster_version), None)
    if insight is None:
        why = find(control_plane.conditions, "Updating")
        return el(
            "section",
            el("h1", "The update's state is not known"),
            el("p", (why.message if why else "") or "ClusterVersion could not be read.", class_="faint"),
            class_="card",
        )
    busy = is_updating(status)
    health = [find(i.cluster_operator.conditions, "Healthy") for i in insights_of(control_plane) if i.cluster_operator]
    good = sum(condition is not None and condition.status == "True" for condition in health)
    pairs: list[tuple[str, Child]] = [("Control plane", f"{insight.completion} %")]
    if insight.started_at:
        pairs.append(("Started", minute_text(insight.started_at)))
        pairs.append(("Duration", age((insight.completed_at or now) - insight.started_at)))
    if insight.completed_at:
        pairs.append(("Completed", minute_text(insight.completed_at)))
    elif insight.estimated_completed_at:
        pairs.append(("Expected to be done", _relative_time(insight.estimated_completed_at, now)))
    pairs.append(("Healthy operators", f"{good} of {len(health)}"))
    if insight.waiting_for:
        pairs.append(("Waits for", ", ".join(operator.name for operator in insight.waiting_for)))
    return el(
        "section",
        el("div", el("h1", _page_title(insight, busy=busy)), badge(*_verdict(insight, busy=busy)), class_="head"),
        el("p", _subtitle(insight), class_="faint"),
        _control_plane_bar(insight, control_plane),
        facts(pairs),
        _age(status),
        class_="card",
    )


def _age(status: UpdateStatusStatus) -> Markup | None:
    """Returns how old a report is that is current; where it is not, `_doubts_section` says so."""
    current = find(status.conditions, "Current")
    return el("p", current.message, class_="faint") if current and current.status == "True" else None


def _page_title(insight: ClusterVersionInsight, *, busy: bool) -> str:
    """Returns the headline: the release that the cluster is at, or is updating to."""
    target = insight.versions.target.version if insight.versions else "an unknown version"
    if not busy:
        return f"The cluster is at {target}"
    control_plane = status_of(insight.conditions, "Updating")
    return f"Updating to {target}" if control_plane != "False" else f"Worker nodes are updating to {target}"


def _verdict(insight: ClusterVersionInsight, *, busy: bool) -> tuple[str, str]:
    if not busy:
        not_updating = status_of(insight.conditions, "Updating") == "False"
        return ("Not updating", GOOD) if not_updating else ("Not known", WARN)
    return insight.assessment, tone_of_assessment(insight.assessment)


def _subtitle(insight: ClusterVersionInsight) -> str:
    """Returns what the update is: from which version, an installation, or a migration to another architecture."""
    if insight.versions is None:
        return "ClusterVersion has no history."
    remarks = {
        entry.key: entry.value for entry in (*insight.versions.previous.metadata, *insight.versions.target.metadata)
    }
    if "Installation" in remarks:
        return "A new installation."
    if "Architecture" in remarks:
        return f"A migration to another architecture: {remarks['Architecture'] or 'Multi'}."
    partial = " (which was never completed)" if "Partial" in remarks else ""
    return f"From {insight.versions.previous.version}{partial}."


def _control_plane_bar(insight: ClusterVersionInsight, control_plane: ControlPlane) -> Markup:
    """Returns the bar of the control plane: operators updated, updating, waiting and not known."""
    reasons = [
        _updating_reason(i.cluster_operator.conditions) for i in insights_of(control_plane) if i.cluster_operator
    ]
    updated_count, busy = reasons.count("Updated"), reasons.count("Progressing")
    waiting, total = reasons.count("Pending"), len(reasons)
    parts: list[tuple[str, int]] = [(GOOD, updated_count), (BUSY, busy), (IDLE, waiting)]
    unknown = total - updated_count - busy - waiting
    tally = [(f"{updated_count} updated", GOOD), (f"{busy} updating", BUSY), (f"{waiting} waiting", IDLE)]
    tally += [(f"{unknown} not known", WARN)] if unknown else []
    return join(
        bar(parts, max(total, 1), f"{insight.completion} % of the control plane's operators"),
        el("div", *(el("span", label, class_=tone) for label, tone in tally), class_="tally"),
    )


def _relative_time(moment: datetime, now: datetime) -> str:
    if moment < now:
        return f"{age(now - moment)} ago, by its estimate"
    return f"in {age(moment - now)}"


def _doubts_section(status: UpdateStatusStatus) -> Markup | None:
    """Returns a section with the conditions that say what is not known, or None if everything was read."""
    doubtful = _doubtful_conditions(status)
    if not doubtful:
        return None
    items = (
        el(
            "li",
            el("strong", f"{condition.type}: {condition.reason or condition.status}"),
            *((f". {condition.message}",) if condition.message else ()),
        )
        for condition in doubtful
    )
    card = el("div", el("ul", *items, class_="refs"), class_="card issue warn")
    return el("section", el("h2", "Not everything is known"), card)


def _doubtful_conditions(status: UpdateStatusStatus) -> list[Condition]:
    """Returns the conditions that say that something is not known.

    Leaves out that alerts were not queried (reason NotAsked) and that nodes were omitted (type Complete): omitted nodes
    were read and are counted.
    """
    not_true = (condition for condition in status.conditions if condition.status != "True")
    return [condition for condition in not_true if condition.reason != "NotAsked" and condition.type != "Complete"]


def health_of(status: UpdateStatusStatus) -> list[HealthInsight]:
    """Returns all health insights: unknown levels first, then the worst first, and the newest first of equal levels."""
    health_insights = [insight.health for insight in all_insights(status) if insight.health]
    health_insights.sort(key=lambda insight: -(insight.started_at or insight.first_observed_at or _NEVER).timestamp())
    health_insights.sort(key=lambda insight: -LEVELS.get(insight.impact.level, len(LEVELS)))
    return health_insights


def _issue(insight: HealthInsight, now: datetime) -> Markup:
    """Returns the card of a health insight."""
    tone = tone_of_level(insight.impact.level)
    since = insight.started_at or insight.first_observed_at
    label = "since" if insight.started_at else "first seen"
    about = (
        f"{insight.impact.type} · {label} {minute_text(since)} ({age(now - since)})" if since else insight.impact.type
    )
    references: list[Child] = []
    if insight.scope.resources:
        names = join(
            *(join(", " if place else "", _resource_name(ref)) for place, ref in enumerate(insight.scope.resources))
        )
        references.append(el("li", "Concerns ", names))
    if insight.remediation.reference:
        references.append(el("li", "Read on: ", link(insight.remediation.reference, insight.remediation.reference)))
    return el(
        "article",
        el("div", el("h3", insight.impact.summary), badge(insight.impact.level, tone), class_="head"),
        el("div", about, class_="faint"),
        el("div", insight.impact.description, class_="body") if insight.impact.description else None,
        el("ul", *references, class_="refs") if references else None,
        class_=f"card issue {tone}",
    )


def _resource_name(ref: ResourceRef) -> Markup:
    kind = f"{ref.resource}.{ref.group}" if ref.group else ref.resource
    name = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    return join(text(f"{kind} "), el("strong", name))


def _timeline(status: UpdateStatusStatus, now: datetime) -> Markup | None:
    drawn_timeline = timeline(status, now)
    return drawn_timeline and el("section", el("h2", "Timeline (UTC)"), el("div", drawn_timeline, class_="card long"))


def _workers(status: UpdateStatusStatus) -> Markup | None:
    cards = [card for pool in status.worker_pools if (card := pool_card(pool, pool.name))]
    if status.omitted_worker_pools:
        cards.append(el("p", f"{status.omitted_worker_pools} more pools were left out.", class_="faint"))
    return el("section", el("h2", "Worker pools"), *cards) if cards else None


def _unknown_types(status: UpdateStatusStatus) -> Markup | None:
    """Returns a warning that names the insight types that only a newer runup can read, or None if there are none."""
    unread = sorted({insight.type for insight in all_insights(status) if not _has_member(insight)})
    if not unread:
        return None
    message = f"This version of runup cannot read insights of the type {', '.join(unread)}, which the object holds."
    return el("section", el("p", message, class_="card issue warn"))


def _has_member(insight: Insight) -> bool:
    members = (insight.cluster_version, insight.cluster_operator, insight.machine_config_pool, insight.node)
    return any(member is not None for member in (*members, insight.health))


def _updating_reason(conditions: Iterable[Condition]) -> str:
    updating = find(conditions, "Updating")
    return updating.reason if updating else ""
