"""Renders an UpdateStatus as one self-contained HTML page: the progress, the problems, and a timeline.

The page has no script, font, picture or other resource that is fetched, so it can be mailed, archived with a
must-gather, or printed. Every state is written out, never shown by colour alone. What is not known is shown as such, in
the place where a reader would otherwise see that all is well.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from kubekit.api.conditions import find, status_of
from kubekit.lang.text import count
from runup.api.update_v1alpha1 import (
    ClusterOperatorInsight,
    ClusterVersionInsight,
    ControlPlane,
    KubernetesVersionInsight,
    UpdateStatusStatus,
    WorkerPool,
)
from runup.cli.render.html import markup
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import BAD, BUSY, GOOD, IDLE, WARN, Child, Markup, age, badge, el, join
from runup.cli.updatestatus.render.timeline import timeline
from runup.updatestatus.decide.finding import level_rank
from runup.updatestatus.decide.read_status import NodeRow, PoolReport, merged_insights, parts_of, pool_report

# More rows than this are folded away on the screen; on paper all are there.
ROWS_SHOWN = 12
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
# An assessment or a level that is not known has the colour of a warning.
_TONES = {
    "Completed": GOOD,
    "Progressing": BUSY,
    "Stalled": BAD,
    "Degraded": BAD,
    "Unavailable": BAD,
    "Pending": IDLE,
    "Outdated": IDLE,
}
_LEVEL_TONES = {"Info": BUSY, "Error": BAD, "Critical": BAD}


def page(status: UpdateStatusStatus | None, now: datetime, *, cluster: str = "") -> str:
    """Returns the page of `cluster` as of `now`; a status of None gives a page that says that none was written."""
    return document("Cluster update", page_body(status, now), now=now, cluster=cluster)


def page_body(status: UpdateStatusStatus | None, now: datetime) -> Markup:
    """Returns the sections of the page, in the order in which they are read."""
    if status is None:
        text = "The object UpdateStatus has no content: the update status controller has not written it."
        return el("section", el("h1", "No status yet"), el("p", text), class_="card")
    control_plane = status.control_plane or ControlPlane()
    # Not doubtful: alerts that were not queried, and nodes that were omitted, as these were read and are counted.
    doubts = [c for c in status.conditions if c.status != "True" and c.reason != "NotAsked" and c.type != "Complete"]
    doubt_items = (
        el("li", el("strong", f"{c.type}: {c.reason or c.status}"), *((f". {c.message}",) if c.message else ()))
        for c in doubts
    )
    doubt_card = el("div", el("ul", *doubt_items, class_="refs"), class_="card issue warn")
    all_known = status_of(status.conditions, "Available") == "True" and not doubts
    drawing = timeline(status, now)
    nodes = _pool_card(control_plane, "Control plane nodes")
    pool_cards = [card for pool in status.worker_pools if (card := _pool_card(pool, pool.name))]
    if status.omitted_worker_pools:
        pool_cards.append(el("p", f"{status.omitted_worker_pools} more pools were left out.", class_="faint"))
    insights = [insight for part in parts_of(status) for insight in merged_insights(part.informers)]
    # Only a newer runup can read an insight without a member that is known here.
    unread = {
        i.type
        for i in insights
        if not (i.of_version or i.cluster_operator or i.machine_config_pool or i.node or i.health)
    }
    types = ", ".join(sorted(unread))
    warning = f"This version of runup cannot read insights of the type {types}, which the object holds."
    return join(
        _head(status, control_plane, now),
        el("section", el("h2", "Not everything is known"), doubt_card) if doubts else None,
        _attention(status, now, all_known=all_known),
        drawing and el("section", el("h2", "Timeline (UTC)"), el("div", drawing, class_="card long")),
        nodes and el("section", el("h2", "Nodes"), nodes),
        el("section", el("h2", "Worker pools"), *pool_cards) if pool_cards else None,
        el("section", el("p", warning, class_="card issue warn")) if unread else None,
    )


def _head(status: UpdateStatusStatus, control_plane: ControlPlane, now: datetime) -> Markup:
    """Returns the head of the page: title, verdict, progress and facts."""
    insights = merged_insights(control_plane.informers)
    insight = next((i.of_version for i in insights if i.of_version), None)
    if insight is None:
        why = find(control_plane.conditions, "Updating")
        text = (why.message if why else "") or "ClusterVersion could not be read."
        return el("section", el("h1", "The update's state is not known"), el("p", text, class_="faint"), class_="card")
    pairs: list[tuple[str, Child]] = [("Control plane", f"{insight.completion} %")]
    if insight.started_at:
        pairs.append(("Started", markup.minute_text(insight.started_at)))
        pairs.append(("Duration", age((insight.completed_at or now) - insight.started_at)))
    if insight.completed_at:
        pairs.append(("Completed", markup.minute_text(insight.completed_at)))
    elif end := insight.estimated_completed_at:
        pairs.append(
            ("Expected to be done", f"{age(now - end)} ago, by its estimate" if end < now else f"in {age(end - now)}")
        )
    if isinstance(insight, KubernetesVersionInsight):
        pairs += [
            (
                "API servers",
                ", ".join(f"{server.name} {server.version}" for server in insight.api_servers) or "unknown",
            ),
            ("Distribution", insight.distribution),
        ]
        updated = round(insight.completion * len(insight.api_servers) / 100)
        whole = "API servers"
        tally = [(updated, "updated", GOOD), (len(insight.api_servers) - updated, "waiting", IDLE)]
    else:
        whole = "operators"
        operators = [i.cluster_operator for i in insights if i.cluster_operator]
        healthy = sum(status_of(operator.conditions, "Healthy") == "True" for operator in operators)
        pairs.append(("Healthy operators", f"{healthy} of {len(operators)}"))
        if insight.waiting_for:
            pairs.append(("Waits for", ", ".join(operator.name for operator in insight.waiting_for)))
        tally = _operator_tally(operators)
    is_updating = any(status_of(part.conditions, "Updating") == "True" for part in parts_of(status))
    title, verdict, subtitle = _headline(insight, is_updating=is_updating)
    # How old a current report is; one that is not current is among the doubts.
    current = find(status.conditions, "Current")
    return el(
        "section",
        el("div", el("h1", title), verdict, class_="head"),
        el("p", subtitle, class_="faint"),
        markup.bar(
            [(tone, count) for count, _, tone in tally if tone != WARN],
            max(sum(count for count, _, _ in tally), 1),
            f"{insight.completion} % of the control plane's {whole}",
        ),
        el("div", *(el("span", f"{count} {word}", class_=tone) for count, word, tone in tally), class_="tally"),
        markup.facts(pairs),
        el("p", current.message, class_="faint") if current and current.status == "True" else None,
        class_="card",
    )


def _operator_tally(operators: Sequence[ClusterOperatorInsight]) -> list[tuple[int, str, str]]:
    """Returns how many operators are updated, updating and waiting, each with its colour; others if there are any."""
    updating = [find(operator.conditions, "Updating") for operator in operators]
    reasons = [condition.reason if condition else "" for condition in updating]
    counts = [
        (reasons.count(reason), word, tone)
        for reason, word, tone in (
            ("Updated", "updated", GOOD),
            ("Progressing", "updating", BUSY),
            ("Pending", "waiting", IDLE),
        )
    ]
    unknown = len(reasons) - sum(count for count, _, _ in counts)
    return [*counts, *([(unknown, "not known", WARN)] if unknown else [])]


def _headline(insight: ClusterVersionInsight, *, is_updating: bool) -> tuple[str, Markup, str]:
    """Returns the title, the verdict, and what the update is: from which version, an installation, or a migration."""
    target = insight.versions.target.version if insight.versions else "an unknown version"
    control_plane = status_of(insight.conditions, "Updating")
    if is_updating:
        title = f"Updating to {target}" if control_plane != "False" else f"Worker nodes are updating to {target}"
        # The assessment is that of the API servers, which are done while nodes of Kubernetes are updated.
        nodes_alone = isinstance(insight, KubernetesVersionInsight) and insight.assessment == "Completed"
        word = "Progressing" if nodes_alone else insight.assessment
        verdict = badge(word, _TONES.get(word, WARN))
    else:
        title = f"The cluster is at {target}"
        verdict = badge("Not updating", GOOD) if control_plane == "False" else badge("Not known", WARN)
    of_kubernetes = isinstance(insight, KubernetesVersionInsight)
    if insight.versions is None:
        why = "The version of the API servers is not known." if of_kubernetes else "ClusterVersion has no history."
        return title, verdict, why
    if insight.versions.previous.version == insight.versions.target.version and of_kubernetes:
        return title, verdict, "No node that is known has an older version."
    previous = insight.versions.previous
    remarks = {entry.key: entry.value for entry in (*previous.metadata, *insight.versions.target.metadata)}
    if "Installation" in remarks:
        return title, verdict, "A new installation."
    if "Architecture" in remarks:
        return title, verdict, f"A migration to another architecture: {remarks['Architecture'] or 'Multi'}."
    partial = " (which was never completed)" if "Partial" in remarks else ""
    return title, verdict, f"From {previous.version}{partial}."


def _attention(status: UpdateStatusStatus, now: datetime, *, all_known: bool) -> Markup:
    """Returns the section of the health insights: unknown levels first, then the worst, the newest of equal levels."""
    insights = [i.health for part in parts_of(status) for i in merged_insights(part.informers) if i.health]
    insights.sort(key=lambda insight: insight.started_at or insight.first_observed_at or _NEVER, reverse=True)
    insights.sort(key=lambda insight: -level_rank(insight.impact.level))
    cards = []
    for insight in insights:
        impact, tone = insight.impact, _LEVEL_TONES.get(insight.impact.level, WARN)
        about = impact.type
        if since := insight.started_at or insight.first_observed_at:
            label = "since" if insight.started_at else "first seen"
            about += f" · {label} {markup.minute_text(since)} ({age(now - since)})"
        references: list[Child] = []
        if insight.scope.resources:
            names: list[Child] = []
            for ref in insight.scope.resources:
                name = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
                kind = f"{ref.resource}.{ref.group} " if ref.group else f"{ref.resource} "
                names += [", " if names else "", kind, el("strong", name)]
            references.append(el("li", "Concerns ", *names))
        if reference := insight.remediation.reference:
            references.append(el("li", "Read on: ", markup.link(reference, reference)))
        cards.append(
            el(
                "article",
                el("div", el("h3", impact.summary), badge(impact.level, tone), class_="head"),
                el("div", about, class_="faint"),
                el("div", impact.description, class_="body") if impact.description else None,
                el("ul", *references, class_="refs") if references else None,
                class_=f"card issue {tone}",
            )
        )
    omitted = sum(part.omitted.health for part in parts_of(status))
    if omitted:
        cards.append(el("p", f"{omitted} more were left out to keep the object small.", class_="faint"))
    if not cards:
        message = "Nothing needs attention." if all_known else "Nothing was found, but not everything could be read."
        cards = [el("p", message, class_="card")]
    title = f"Needs attention ({len(insights) + omitted})" if insights else "Needs attention"
    return el("section", el("h2", title), *cards)


def _pool_card(part: ControlPlane | WorkerPool, title: str) -> Markup | None:
    """Returns a pool's card with its nodes by state and as a table, or None if the part says nothing about nodes."""
    pool = pool_report(title, merged_insights(part.informers), part.omitted.nodes)
    if pool.completion is None and not pool.rows:
        return None
    owner = "the control plane" if isinstance(part, ControlPlane) else f"pool {title}"
    open_, folded = pool.rows[:ROWS_SHOWN], pool.rows[ROWS_SHOWN:]
    parts = [el("h3", title)] if pool.completion is None else _pool_head(pool, title)
    if open_:
        parts.append(_node_table(open_, f"Nodes of {owner}"))
    if folded:
        more = _node_table(folded, f"The other nodes of {owner}")
        parts.append(el("details", el("summary", f"{count(len(folded), 'more node')}"), more))
    if part.omitted.nodes:
        note = f"{part.omitted.nodes} more nodes are counted above and not listed, to keep the object small."
        parts.append(el("p", note, class_="faint"))
    return el("div", *parts, class_="card long")


def _pool_head(pool: PoolReport, title: str) -> list[Markup]:
    """Returns the head of a pool's card: assessment, bar and counts."""
    counts, total = pool.counts, pool.counts.total
    if total == 0:
        return [el("div", el("h3", title), badge("Empty", IDLE), class_="head")]
    # Each node is counted once: the object's counts overlap, as a node can be degraded and draining.
    busy = max(0, counts.progressing - counts.draining)
    waiting = max(0, total - counts.done - counts.draining - busy - counts.degraded - counts.excluded)
    parts = [
        ("updated", GOOD, counts.done),
        ("updating", BUSY, busy),
        ("draining", BUSY, counts.draining),
        ("degraded", BAD, min(counts.degraded, total - counts.done)),
        ("paused", WARN, counts.excluded),
        ("waiting", IDLE, waiting),
    ]
    share = f"{pool.completion} % of {total} nodes"
    labels = (el("span", f"{count} {label}", class_=tone) for label, tone, count in parts if count)
    verdict = badge(pool.assessment, _TONES.get(pool.assessment, WARN))
    return [
        el("div", el("h3", title), verdict, class_="head"),
        markup.bar(((tone, count) for _, tone, count in parts), total, share),
        el("div", *labels, el("span", share, class_="sum"), class_="tally"),
    ]


def _node_table(rows: Sequence[NodeRow], caption: str) -> Markup:
    """Returns the rows as a table; it has no column for messages if they do not exist, so that long names fit."""
    messages = any(row.message for row in rows)
    lines = []
    for row in rows:
        assessment = el("td", badge(row.assessment, _TONES.get(row.assessment, WARN)))
        cells = [el("td", row.phase), el("td", row.version or "?"), el("td", row.estimate_text)]
        message = el("td", row.message, class_="wide") if messages else None
        lines.append(el("tr", el("th", row.name, scope="row"), assessment, *cells, message))
    return markup.grid(
        caption, ("Node", "State", "Phase", "Version", "Needs", *(("Message",) if messages else ())), lines
    )
