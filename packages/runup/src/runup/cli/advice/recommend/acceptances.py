"""Renders who accepted which risk, why and until when: a table, warnings about unused names, and data. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance, stamp
from runup.api.clusterversion_json import JSON, mapping, mappings, text, texts
from runup.cli.render.text import Output, align_columns, err, out


def acceptance_lines(
    cluster: JSON, names: Sequence[str], config_map: JSON | None, now: datetime | None
) -> tuple[list[Output], list[JSON]]:
    """Returns the lines, and the machine form of every accepted name."""
    records = acceptance.read(texts(config_map, "data"))
    as_of = now or _newest_transition(cluster)
    known_names = risk_names(cluster)
    nearest = acceptance.unused_names(names, known_names)
    rows = [_as_row(name, acceptance.record_of(name, records), nearest, as_of) for name in names]
    lines: list[Output] = []
    if any(acceptance.record_of(name, records) for name in names):
        lines.append(out(_render_table(rows)))
    lines.extend(_warnings(rows))
    return lines, rows


def risk_names(cluster: JSON) -> list[str]:
    """Returns the names of all risks that some update of this cluster carries."""
    status = mapping(cluster, "status")
    updates = mappings(status, "conditionalUpdates")
    risks = [*mappings(status, "conditionalUpdateRisks"), *(r for u in updates for r in mappings(u, "risks"))]
    names = {name for u in updates for name in (u.get("riskNames") or ()) if isinstance(name, str)}
    return sorted(names | {text(risk, "name") for risk in risks})


def _as_row(name: str, record: Acceptance | None, nearest: dict[str, str], moment: datetime | None) -> JSON:
    """Returns one acceptance for the output; `moment` is None where the time is not known, and none has ended."""
    effective = record or Acceptance(name)
    return {
        "name": name,
        "reason": effective.reason or None,
        "by": effective.by or None,
        "at": stamp(effective.at) or None,
        "until": stamp(effective.until) or None,
        "counts": moment is None or not effective.ended(moment),
        "carried": name not in nearest,
        "nearest": nearest.get(name) or None,
        "problem": effective.problem or None,
    }


def _render_table(rows: list[JSON]) -> str:
    head = ("RISK", "COUNTS", "UNTIL", "BY", "REASON")
    lines = [(row["name"], _counts_text(row), row["until"] or "", row["by"] or "", row["reason"] or "") for row in rows]
    return f"\nAccepted risks:\n\n{align_columns([head, *lines])}"


def _counts_text(row: JSON) -> str:
    if not row["counts"]:
        return "no, ended"
    return "yes" if row["carried"] else "yes, unused"


def _warnings(rows: list[JSON]) -> Iterator[Output]:
    """Yields a warning for each acceptance that has a problem, has ended, or names a risk that no update carries."""
    for row in rows:
        if row["problem"]:
            yield err(f"warning: {row['problem']}, so {row['name']} does not count; accept it anew, or not\n")
        elif not row["counts"]:
            yield err(f"warning: the acceptance of {row['name']} ended at {row['until']} and does not count any more\n")
        if not row["carried"]:
            hint = f"; did you mean {row['nearest']}?" if row["nearest"] else ""
            yield err(f"warning: {row['name']} is accepted, and no update of this cluster carries it now{hint}\n")


def _newest_transition(cluster: JSON) -> datetime | None:
    """Returns the newest transition time in the conditions, or None if there is none or one is unreadable.

    For files it serves as the current time.
    """
    conditions = mappings(mapping(cluster, "status"), "conditions")
    times = [text(condition, "lastTransitionTime") for condition in conditions]
    try:
        return max((datetime.fromisoformat(time) for time in times if time), default=None)
    except (ValueError, TypeError):
        return None
