"""The parts of `recommend` beyond oc: the findings of preflights, and who accepted which risk until when.

If a cluster has neither, the output is only oc's, and no module for preflights is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from runup.advice.decide import acceptance
from runup.advice.decide.acceptance import Acceptance, stamp
from runup.advice.decide.preflight_reasons import OUTDATED
from runup.api.clusterversion_json import JSON, mapping, mappings, newest_transition, text, texts
from runup.cli.render.text import Output, align_columns, err, out
from runup.process.names import ACCEPTED, HISTORY


class Extras(msgspec.Struct, frozen=True):
    """The lines to print, and the same for programs."""

    output: tuple[Output, ...] = ()
    preflights: list[JSON] = []
    acceptances: list[JSON] = []


def additional_output(
    cluster: JSON, config_maps: Sequence[JSON], version: str, now: datetime | None, *, lapse: str = ""
) -> Extras:
    """Returns the additional output; `version` limits preflights to one target, `now` is None for files.

    `lapse` says since when no operator keeps their state up to date.
    """
    by_name = {text(mapping(config_map, "metadata"), "name"): config_map for config_map in config_maps}
    names = accepted_names(cluster)
    output: list[Output] = []
    preflights: list[JSON] = []
    acceptances: list[JSON] = []
    status = mapping(cluster, "status")
    risks = [risk for update in mappings(status, "conditionalUpdates") for risk in mappings(update, "risks")]
    reasons = [text(condition, "reason") for risk in risks for condition in mappings(risk, "conditions")]
    types = [text(condition, "type") for condition in mappings(status, "conditions")]
    # A mode, a condition or a risk of ClusterVersion is from a preflight.
    speaks_of_preflights = (
        bool(text(mapping(mapping(cluster, "spec"), "desiredUpdate"), "mode"))
        or any(reason.startswith(("Preflight", "ReportStale")) for reason in reasons)
        or any(type_.startswith("Preflight") for type_ in types)
    )
    if HISTORY in by_name or speaks_of_preflights:
        from runup.cli.advice import recommend_preflights

        preflight_lines, preflights = recommend_preflights.preflight_lines(
            cluster, by_name.get(HISTORY), accepted=by_name.get(ACCEPTED), version=version, now=now, lapse=lapse
        )
        output.extend(preflight_lines)
    if names or ACCEPTED in by_name:
        lines, acceptances = acceptance_lines(cluster, names, by_name.get(ACCEPTED), now)
        output.extend(lines)
    return Extras(tuple(output), preflights, acceptances)


def accepted_names(cluster: JSON) -> tuple[str, ...]:
    """Returns the names in `spec.desiredUpdate.acceptRisks`, in their order."""
    desired = mapping(mapping(cluster, "spec"), "desiredUpdate")
    return tuple(name for accepted_risk in mappings(desired, "acceptRisks") if (name := text(accepted_risk, "name")))


def acceptance_lines(
    cluster: JSON, names: Sequence[str], config_map: JSON | None, now: datetime | None
) -> tuple[list[Output], list[JSON]]:
    """Returns the lines, and the machine form of every accepted name."""
    records = acceptance.read(texts(config_map, "data"))
    as_of = now or newest_transition(cluster)
    known_names = risk_names(cluster)
    nearest = acceptance.unused_names(names, known_names)
    rows: list[JSON] = []
    for name in names:
        record = acceptance.record_of(name, records) or Acceptance(name=name)
        row: JSON = {
            "name": name,
            "reason": record.reason or None,
            "by": record.by or None,
            "at": stamp(record.at) or None,
            "until": stamp(record.until) or None,
            # Where the time is not known, none has ended.
            "counts": as_of is None or not record.ended(as_of),
            "carried": name not in nearest,
            "nearest": nearest.get(name) or None,
            "problem": record.problem or None,
        }
        rows.append(row)
    lines: list[Output] = []
    if any(acceptance.record_of(name, records) for name in names):
        table = [("RISK", "COUNTS", "UNTIL", "BY", "REASON")]
        for row in rows:
            counts = "no, ended" if not row["counts"] else "yes" if row["carried"] else "yes, unused"
            table.append((row["name"], counts, row["until"] or "", row["by"] or "", row["reason"] or ""))
        lines.append(out(f"\nAccepted risks:\n\n{align_columns(table)}"))
    for row in rows:
        if row["problem"]:
            lines.append(
                err(f"warning: {row['problem']}, so {row['name']} does not count; accept it again, or remove it\n")
            )
        elif not row["counts"]:
            lines.append(
                err(f"warning: the acceptance of {row['name']} ended at {row['until']} and does not count any more\n")
            )
        if not row["carried"]:
            hint = f"; did you mean {row['nearest']}?" if row["nearest"] else ""
            lines.append(
                err(f"warning: {row['name']} is accepted, and no update of this cluster carries it now{hint}\n")
            )
    return lines, rows


def risk_names(cluster: JSON) -> list[str]:
    """Returns the names of all risks that some update of this cluster carries."""
    status = mapping(cluster, "status")
    updates = mappings(status, "conditionalUpdates")
    # What is kept for reference only is carried by no update.
    listed = [
        risk
        for risk in mappings(status, "conditionalUpdateRisks")
        if all(text(condition, "reason") != OUTDATED for condition in mappings(risk, "conditions"))
    ]
    risks = [*listed, *(r for u in updates for r in mappings(u, "risks"))]
    names = {name for u in updates for name in (u.get("riskNames") or ()) if isinstance(name, str)}
    return sorted(names | {text(risk, "name") for risk in risks})
