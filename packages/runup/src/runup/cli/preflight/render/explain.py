"""Renders everything that mentions one risk for `preflight explain`, as text and as data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from kubekit.lang.gotext import quote_go
from kubekit.lang.text import timestamp
from runup.advice.decide.acceptance import Accepted, accepted_without_records
from runup.advice.decide.preflight_reasons import OUTDATED
from runup.api.config_v1 import ClusterVersion
from runup.cli.errors import CommandError
from runup.cli.preflight.render.finding_texts import risk_data
from runup.cli.render.screen import PIPE, Drawn, Screen, join_parts
from runup.cli.render.table import wrap_text
from runup.preflight.decide.findings import (
    Risk,
    findings_of_target,
    known_risk_names,
    risk_of_report,
    risks_of_update,
)
from runup.preflight.decide.stored_reports import History

_MAX_RESOURCES = 20
_NO_REPORT = "no preflight's report is kept here: `runup preflight run` evaluates the cluster now"


class Explanation(msgspec.Struct, frozen=True):
    """A risk, with its entry for each target that carries it. `not_asked`: the reason why nothing is known about it."""

    name: str
    by_target: tuple[tuple[str, Risk], ...]
    page: str
    not_asked: str = ""


def explain_risk(
    cluster: ClusterVersion,
    history: History,
    name: str,
    page: str,
    documented: Sequence[str] = (),
    accepted: Accepted | None = None,
) -> Explanation:
    """Returns all that is known about the risk `name` now.

    Raises CommandError if neither the cluster nor `documented` has the risk.
    """
    counts = accepted_without_records(cluster) if accepted is None else accepted
    offered = {(update.release.version, update.release.image): update for update in cluster.status.conditional_updates}
    targets = dict.fromkeys([*offered, *((report.target_version, report.target_image) for report in history.reports)])
    by_target: list[tuple[str, Risk]] = []
    for version, image in targets:
        findings = findings_of_target(cluster, history, version, image, accepted=accepted)
        found = {risk.name for risk in findings.risks}
        # A report of the past does not say which risks the update has from elsewhere now.
        published = risks_of_update(
            cluster, offered.get((version, image)), report=None, version=version, accepted=counts, current=False
        )
        carried = (*findings.risks, *(risk for risk in published if risk.name not in found))
        by_target += [(findings.target, risk) for risk in carried if _is_about(risk.name, name)]
    if not by_target and not page:
        names, text = known_risk_names(cluster), f"no update of this cluster has a risk {quote_go(name)}"
        similar = get_close_matches(name, names, 1) or get_close_matches(name, documented, 1, cutoff=0.8)
        known = f"there are {', '.join(names)}" if names else "there are no risks"
        raise CommandError(f"{text}; did you mean {quote_go(similar[0])}?" if similar else f"{text}; {known}")
    return Explanation(name, tuple(by_target), page, not_asked=_no_report(history))


def explain_from_reports(history: History, name: str, page: str, documented: Sequence[str] = ()) -> Explanation:
    """Returns what reports alone say about the risk. Raises CommandError if neither they nor `documented` have it."""
    by_target = tuple(
        (report.target_version, risk_of_report(risk, report))
        for report in history.reports
        for risk in report.risks
        if _is_about(risk.name, name)
    )
    if not by_target and not page:
        reported = {risk.name for report in history.reports for risk in report.risks}
        near = get_close_matches(name, [*reported, *documented], 1)
        hint = f"; did you mean {quote_go(near[0])}?" if near else ""
        raise CommandError(f"no risk {quote_go(name)} was found{hint}")
    return Explanation(name, by_target, page, not_asked=_no_report(history))


def _no_report(history: History) -> str:
    return "" if history.reports else _NO_REPORT


def _is_about(found: str, name: str) -> bool:
    """Returns whether the risk `found` is the risk `name`, or says that its check could not tell.

    Names of one object's risk continue after a hyphen: `MachineConfigPoolPaused-worker`.
    """
    return found in (name, f"{name.partition('-')[0]}Unknown")


def explanation(explained: Explanation, screen: Screen = PIPE) -> Drawn:
    """Returns the explanation as text."""
    sections = [f"{explained.name}\n"]
    if explained.not_asked and not explained.by_target:
        text = f"Whether an update has this risk is not known, {explained.not_asked}"
        sections += ["\n", wrap_text(text, screen)]
    elif not explained.by_target:
        sections.append("\nNo update of this cluster has this risk now.\n")
    for target, risk in explained.by_target:
        # A field a line, with the risk's name if another was asked for.
        found_by = f"the preflight of {target}" if risk.from_preflight else "the update service or the cluster"
        omitted = len(risk.resources) - _MAX_RESOURCES
        concerns = [item.text for item in risk.resources[:_MAX_RESOURCES]]
        concerns += [f"and {omitted} more"] if omitted > 0 else []
        fields = (
            ("Risk", risk.name if risk.name != explained.name else ""),
            ("Severity", risk.severity),
            ("Applies", f"{risk.applies} ({risk.reason})" if risk.reason else risk.applies),
            ("Accepted", _acceptance_text(risk)),
            ("Message", risk.message),
            ("Fix", risk.fix.strip()),
            ("Concerns", "\n".join(concerns)),
            ("Found by", found_by),
            ("Since", timestamp(risk.since)),
            ("More", risk.url),
        )
        as_of = f", as of {timestamp(risk.since)}" if risk.reason == OUTDATED else ""
        lines = (wrap_text(text, screen, first=f"  {name + ':':<10}", indent=12) for name, text in fields if text)
        sections.append(f"\nFor {target}{as_of}:\n" + "".join(lines))
    if explained.page:
        sections += [
            "\nAbout this risk:\n\n",
            *(wrap_text(line, screen) for line in explained.page.strip().split("\n")),
        ]
    return join_parts(*sections)


def _acceptance_text(risk: Risk) -> str:
    """Returns whether the risk is accepted, and if not, the command that accepts it."""
    if risk.reason == OUTDATED:
        return "yes, then" if risk.accepted else "no"
    if not risk.acceptable:
        return "no: accepting it does not lift it"
    if not risk.accepted:
        how = f"{risk.suppressed_by} lets it stay, with a reason" if risk.suppressed_by else ""
        return f"no ({how or f'runup upgrade accept {risk.name}'})"
    return f"yes; {risk.grown.text}" if risk.grown else "yes"


def explanation_data(explained: Explanation) -> dict[str, Any]:
    """Returns the explanation for programs."""
    return {
        "name": explained.name,
        "targets": [{"target": target, **risk_data(risk)} for target, risk in explained.by_target],
        "page": explained.page or None,
        **({"notAsked": explained.not_asked} if explained.not_asked and not explained.by_target else {}),
    }
