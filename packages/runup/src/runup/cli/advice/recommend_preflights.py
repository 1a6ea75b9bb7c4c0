"""Renders the findings of preflights as lines with source, time and completeness, and as data. Pure.

The findings of an ended preflight may have changed since: they are shown with their time and marked
(docs/decisions/0072 D24).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.error_types import InputError
from kubekit.lang.text import printable, timestamp
from runup.advice.decide import acceptance
from runup.api.clusterversion_json import JSON, texts
from runup.api.config_v1 import ClusterVersion
from runup.cli.preflight.render import finding_texts as rendered
from runup.cli.render.text import Output, align_columns, out, shorten
from runup.preflight.decide import findings
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.findings import Findings
from runup.preflight.decide.stored_reports import History

_MAX_CHARACTERS = 100


def preflight_lines(
    document: JSON,
    history: JSON | None,
    accepted: JSON | None,
    version: str,
    now: datetime | None,
    *,
    lapse: str = "",
) -> tuple[list[Output], list[JSON]]:
    """Returns the lines about every target's preflight, or only about that of `version`, and their machine form.

    `lapse` says since when no operator keeps their state up to date.
    """
    try:
        cluster = codec.convert(ClusterVersion, document)
        stored = histories.read(codec.convert(ConfigMap, history)) if history else History()
    except codec.DecodeError as error:
        raise InputError(f"what preflights found cannot be read: {error}") from error
    stored = msgspec.structs.replace(stored, lapse=lapse)
    accepted_names = acceptance.accepted(cluster, texts(accepted, "data"), now)
    every = findings.all_findings(cluster, stored, accepted_names)
    results = [found for found in every if version in ("", found.target)]
    data = [{**rendered.as_data(found), "ended": found.ended} for found in results]
    if not results:
        return [], data
    rows = [("  TARGET", "SOURCE", "OBSERVED", "STATE", "RISKS"), *map(_table_row, results)]
    lines = [out(f"\nPreflights:\n\n{align_columns(rows)}")]
    if any(found.ended for found in results):
        lines.append(out("\nFindings of an ended preflight may have changed since, and hold no update up.\n"))
    if lapse and any(found.lapse for found in results):
        lines.append(out(f"\nNo operator confirms these any more: {printable(lapse)}.\n"))
    grown = dict.fromkeys(text for found in results for text in found.grown_texts)
    lines += [out(f"\n  {printable(text)}.\n") for text in grown]
    for found in results if version else ():
        risks = [risk for risk in found.risks if risk.from_preflight and risk.applies != "False"]
        lines += [out(f"\n  {risk.name}: {shorten(risk.message, _MAX_CHARACTERS)}\n") for risk in risks]
    return lines, data


def _table_row(found: Findings) -> tuple[str, ...]:
    """Returns the table's row of one preflight."""
    state = found.phase.value if found.phase else ""
    state += f" ({found.failed.reason})" if found.failed else ""
    state += ", partial" if found.partial else ""
    total = sum(1 for check in found.checks if check.result != "Skipped")
    unknown = sum(1 for check in found.checks if check.result == "Unknown")
    coverage = f" ({total - unknown} of {total} checks with a result)" if total else ""
    names = [risk.name for risk in found.risks if (risk.from_preflight if found.ended else risk.applies != "False")]
    return (
        f"  {found.target}",
        found.source,
        timestamp(found.observed) or "not yet",
        f"{state}{coverage}",
        shorten(", ".join(names) or "none", _MAX_CHARACTERS),
    )
